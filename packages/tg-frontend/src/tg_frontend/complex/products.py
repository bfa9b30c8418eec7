"""Products of complex vectors and matrices: sums of those of their parts."""

from __future__ import annotations

from tg_dtype import part_dtype

from ..array.array import Array
from ..ops.einsum import spelled
from .algebra import minus, plus
from .arithmetic import add, mul
from .componentwise import alike, conj
from .parts import Parts, as_kind, is_complex, joint, made, parts_of, plain_class, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BILINEAR = frozenset("dot mm mv bmm outer inner kron cross tensordot".split())
"""Methods of two tensors that are linear in each."""


def bilinear(name: str) -> Callable[..., Any]:
    """A method of two tensors that is linear in each."""

    def method(t: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        given = t, tensor(x, t, name)
        kind = part_dtype(joint(given, name))
        a, b = (as_kind(parts_of(one, one, name), kind) for one in given)

        def one(left: Any, right: Any) -> Any:
            return None if left is None or right is None else getattr(left, name)(right, *args, **kwargs)

        return made(Parts(minus(one(a.re, b.re), one(a.im, b.im)), plus(one(a.re, b.im), one(a.im, b.re))))

    method.__name__ = name
    return method


def strips(name: str) -> Callable[..., Any]:
    """A method that is linear in values and in positions, or in their distance."""
    of_parts, of_both = alike(name), bilinear(name)

    def method(y: Any, x: Any = None, dx: Any = None, axis: int = -1) -> Any:
        if is_complex(x):
            return of_both(y, x, dx, axis)
        if isinstance(dx, complex) or is_complex(dx):
            if x is not None:
                raise ValueError(f"{name}: either positions x or a distance dx, not both")
            return mul((of_parts if is_complex(y) else getattr(plain_class(y), name))(y, None, None, axis), dx)
        return of_parts(y, x, dx, axis)

    method.__name__ = name
    return method


def matmul(t: Any, w: Any, reverse: bool = False, **kwargs: Any) -> Any:
    left, right = (w, t) if reverse else (t, w)
    like = t if isinstance(t, Array) else w
    return _matmul(tensor(left, like, "matmul"), tensor(right, like, "matmul"), **kwargs)


_matmul = bilinear("matmul")


def rmatmul(t: Any, w: Any) -> Any:
    return matmul(t, w, True)


def vdot(t: Any, x: Any) -> Any:
    left = conj(t) if is_complex(t) else t
    return bilinear("vdot")(left, x)  # of parts, which are vectors


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    out = bilinear("linear")(x, weight)
    return out if bias is None else add(out, bias)


def convolution(name: str) -> Callable[..., Any]:
    """A convolution of complex signals, windows or both."""
    product = bilinear(name)

    def method(x: Any, weight: Any, bias: Any = None, *args: Any, **kwargs: Any) -> Any:
        out = product(x, weight, None, *args, **kwargs)
        return out if bias is None else add(out, tensor(bias, x, name).reshape((-1, *(1,) * (weight.ndim - 2))))

    method.__name__ = name
    return method


CONVOLUTIONS = tuple(f"conv{way}{axes}d" for way in ("", "_transpose") for axes in (1, 2, 3))


def _added(name: str) -> Callable[..., Any]:
    """``beta * x + alpha * (a product)``."""
    product: dict[str, Callable[[Any, Any], Any]] = {
        "addmm": bilinear("mm"), "addmv": bilinear("mv"), "addr": bilinear("outer"), "baddbmm": bilinear("bmm"),
        "addbmm": lambda a, b: bilinear("bmm")(a, b).sum(0),
    }  # fmt: skip

    def method(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        made_of = product[name](a, b)
        made_of = made_of if alpha == 1 else mul(made_of, alpha)
        return made_of if beta == 0 else add(x if beta == 1 else mul(x, beta), made_of)

    method.__name__ = name
    return method


ADDED = {name: _added(name) for name in ("addmm", "addmv", "addr", "baddbmm", "addbmm")}


def einsum(cls: Any, formula: Any, *given: Any) -> Any:
    formula, listed = spelled(formula, given)
    part = part_dtype(joint(listed, "einsum"))
    terms: list[tuple[tuple[Any, ...], int]] = [((), 0)]  # operands, and how often i is a factor
    for one in listed:
        re, im = as_kind(parts_of(one, one, "einsum"), part)
        terms = [((*done, p), n + k) for done, n in terms for k, p in enumerate((re, im)) if p is not None]
    call = plain_class(cls).einsum
    sums: list[Any] = [None, None]
    for done, n in terms:
        value = call(formula, *done)
        sums[n % 2] = (minus if n % 4 >= 2 else plus)(sums[n % 2], value)
    return made(Parts(*sums))
