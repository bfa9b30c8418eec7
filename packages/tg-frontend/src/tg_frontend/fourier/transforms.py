"""Transforms along one axis: of complex numbers, of real ones, and back."""

from __future__ import annotations

from math import prod

from ..autograd.functions.linear_map import LinearMap
from .axes import resized
from .parts import Part, parts
from .passes import dft
from .tables import half_turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tg_lazy import LazyBuffer


def planes_transformed(planes: Any, scale: float, inverse: bool) -> Any:
    """The transform of shape (2, count, n, inner) along the third axis; its gradient is the transform the other way."""
    kind = type(planes)

    def mapped(lazy: LazyBuffer, inverse: bool) -> LazyBuffer:
        re, im = (kind._wrap(part) for part in parts(lazy))
        if inverse:
            b, a = dft((im, re), scale)
        else:
            a, b = dft((re, im), scale)
        out: LazyBuffer = a.stack(b).lazydata
        return out

    return planes._apply(LinearMap(lambda x: mapped(x, inverse), lambda x: mapped(x, not inverse)))


def transformed(re: Any, im: Any, axis: int, scale: float, inverse: bool) -> tuple[Any, Any]:
    """Real and imaginary part of the transform along an axis, of its whole length.

    Args:
      re: the real part, of any shape.
      im: the imaginary part, or None for zeros.
    """
    shape = re._ints()
    if 0 in shape:
        return re * 1, re * 1
    rows = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    a, b = re.reshape(rows), (re.zeros_like() if im is None else im).reshape(rows)
    out = planes_transformed(a.stack(b), scale, inverse)
    first, second = (out._apply(Part(n)).reshape(shape) for n in (0, 1))
    return first, second


def complex_transform(z: Any, axis: int, n: int, scale: float, inverse: bool) -> Any:
    """Of complex or real numbers, cut or padded with zeros to n: complex numbers."""
    parts = [resized(part, axis, n) for part in z._floats()]
    re, im = transformed(parts[0], parts[1] if len(parts) == 2 else None, axis, scale, inverse)
    return re._composed(re, im)


def real_transform(x: Any, axis: int, n: int, scale: float) -> Any:
    """Of real numbers: the n // 2 + 1 complex ones of which the others are conjugates."""
    x = resized(x, axis, n)
    half = n // 2 + 1
    if n % 2 or n < 4 or 0 in x.shape:
        re, im = transformed(x, None, axis, scale, False)
        re, im = (resized(part, axis, half) for part in (re, im))
        return re._composed(re, im)
    # even and odd ones as one complex number: a transform of half the length
    shape = x._ints()
    pairs = x.reshape((*shape[:axis], n // 2, 2, *shape[axis + 1 :]))
    evens, odds = (_at(pairs, axis + 1, k) for k in (0, 1))
    a, b = transformed(evens, odds, axis, scale * 0.5, False)
    (a, a2), (b, b2) = (_mirrored(part, axis) for part in (a, b))
    c, s = _turns(x, axis, n)
    # of the even ones (a + a2, b - b2), of the odd ones (b + b2, a2 - a)
    u, v = b + b2, a2 - a
    return a._composed(a + a2 + (u * c - v * s), b - b2 + (u * s + v * c))


def real_inverse(z: Any, axis: int, n: int, scale: float) -> Any:
    """Of n // 2 + 1 complex numbers, the others being their conjugates: n real ones. It is not divided by n."""
    half = n // 2 + 1
    parts = [resized(part, axis, half) for part in z._floats()]
    re, im = parts[0], parts[1] if len(parts) == 2 else parts[0].zeros_like()
    shape = re._ints()
    if 0 in shape:
        return re.new_zeros(tuple(n if i == axis else size for i, size in enumerate(shape)))
    if n % 2 or n < 4:
        first = _cut(im, axis, 1, half)
        end = half - 1 if n % 2 == 0 else half
        rest = [_cut(part, axis, 1, end).flip(axis) for part in (re, im)]
        zero = _cut(im, axis, 0, 1) * 0
        if n % 2 == 0 and half > 1:  # what is in the middle is real
            first = _cut(im, axis, 1, half - 1).cat(zero, dim=axis)
        whole_re = re.cat(rest[0], dim=axis)
        whole_im = zero.cat(first, -rest[1], dim=axis)
        return transformed(whole_re, whole_im, axis, scale, True)[0]
    # the imaginary parts of the first and the last number do not matter
    zero = _cut(im, axis, 0, 1) * 0
    im = zero.cat(_cut(im, axis, 1, half - 1), zero, dim=axis)
    a, b = (_cut(part, axis, 0, half - 1) for part in (re, im))
    a2, b2 = (_cut(part, axis, 1, half).flip(axis) for part in (re, im))
    c, s = (_cut(part, axis, 0, half - 1) for part in _turns(re, axis, n))
    # the even ones are of (a + a2, b - b2), the odd ones of (a - a2, b + b2) turned back
    d, e = a - a2, b + b2
    u, v = d * c + e * s, e * c - d * s
    evens, odds = transformed(a + a2 - v, b - b2 + u, axis, scale, True)
    out = evens.stack(odds, dim=axis + 1)
    return out.reshape((*shape[:axis], n, *shape[axis + 1 :]))


def _at(x: Any, axis: int, place: int) -> Any:
    """What is at a place along an axis, without it."""
    shape = x.shape
    return _cut(x, axis, place, place + 1).reshape((*shape[:axis], *shape[axis + 1 :]))


def _cut(x: Any, axis: int, start: int, stop: int) -> Any:
    return x.shrink([(start, stop) if i == axis else None for i in range(x.ndim)])


def _mirrored(x: Any, axis: int) -> tuple[Any, Any]:
    """Numbers 0 to n of n that repeat, and numbers n down to 0."""
    around = x.cat(_cut(x, axis, 0, 1), dim=axis)
    return around, around.flip(axis)


def _turns(x: Any, axis: int, n: int) -> tuple[Any, Any]:
    shape = tuple(n // 2 + 1 if i == axis else 1 for i in range(x.ndim))
    c, s = (part.reshape(shape) for part in half_turns(type(x), n, x.dtype, x.device))
    return c, s
