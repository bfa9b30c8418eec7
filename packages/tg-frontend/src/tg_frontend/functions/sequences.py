"""Functions that are given by their values in a row: slopes, values between them, convolutions."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.casts import floating, wide
from ..array.operands import beside
from ..array.writing import fitting
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def gradient(
    input: Tensor, *varargs: Any, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:  # fmt: skip
    """Slopes of a function that is given by its values, as PyTorch's function of this name has them.

    Inside they are central differences, of second order also where places are apart unevenly; ``Tensor.gradient`` is
    something else, that of automatic differentiation. Source: B. Fornberg, "Generation of finite difference formulas on
    arbitrarily spaced grids", Mathematics of Computation 51, 1988.

    Args:
      input: the values.
      varargs: ``spacing`` as numpy takes it: a number for all axes, or for each a number or a tensor or list of places.
      spacing: how far neighbours are apart: a number, one for each axis, or for each axis a tensor of places.
      dim: along which axes; all if None.
      edge_order: 1 or 2: of what order the differences at both ends are.

    Returns:
      The slopes along each of these axes.

    Raises:
      TypeError: if distances are given by position and by name.
      ValueError: if there are too few values along an axis, or an axis is given twice; if ``spacing`` does not fit,
        or the order is another one.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import gradient
      >>> gradient(Tensor([1.0, 4.0, 9.0, 16.0]))
      (Tensor([3., 4., 6., 7.]),)
      >>> gradient(Tensor([1.0, 4.0, 16.0]), spacing=[Tensor([1.0, 2.0, 4.0])], edge_order=2)
      (Tensor([2., 4., 8.]),)
    """
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edges of order 1 or 2, got {edge_order!r}")
    x = floating(input)
    axes = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    if len({axis % max(x.ndim, 1) for axis in axes}) < len(axes):
        raise ValueError(f"gradient: an axis is given twice in {tuple(axes)}")
    if varargs and not (isinstance(spacing, int) and spacing == 1):
        raise TypeError("gradient: distances are given by position or as spacing, not both")
    step = 1 if spacing is None else spacing
    if varargs:
        step = varargs[0] if len(varargs) == 1 and isinstance(varargs[0], (int, float)) else varargs
    apart = [step] * len(axes) if isinstance(step, (int, float)) else list(step)
    apart = [beside(Tensor, one, (x,)) if isinstance(one, (list, tuple)) else one for one in apart]
    if len(apart) != len(axes):
        raise ValueError(f"gradient: {len(apart)} spacings for {len(axes)} axes")
    return tuple(_slopes(x, axis, step, edge_order) for axis, step in zip(axes, apart, strict=True))


def _slopes(x: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    """The slopes along one axis."""
    n = x._ints()[axis]
    if n <= edge_order:
        raise ValueError(f"gradient: {n} values along axis {axis}; edges of order {edge_order} take {edge_order + 1}")
    x = x.movedim(axis, -1)
    if isinstance(step, Tensor) and step.ndim:
        if step.shape != (n,):
            raise ValueError(f"gradient: places of shape {step.shape} for {n} values along axis {axis}")
        whole = step.dtype.kind in ("bool", "int", "uint")
        gaps = (step.cast(dtypes.int64) if whole else floating(step)).diff()
    else:
        gaps = x.new_full((n - 1,), 1.0) * step
    steps = x.diff() / gaps  # slopes between neighbours
    left, right, first, last = steps[..., :-1], steps[..., 1:], steps[..., :1], steps[..., -1:]
    before, behind = gaps[:-1], gaps[1:]
    middle = (left * behind + right * before) / (before + behind)
    if edge_order == 2:
        first = first + (first - steps[..., 1:2]) * (gaps[:1] / (gaps[:1] + gaps[1:2]))
        last = last + (last - steps[..., -2:-1]) * (gaps[-1:] / (gaps[-1:] + gaps[-2:-1]))
    return first.cat(middle, last, dim=-1).movedim(-1, axis)


def _without_overflow(x: Tensor, y: Tensor) -> Tensor:
    """By what both are multiplied before they are subtracted: a half where the difference is beyond the dtype."""
    return (x.detach() - y.detach()).isinf().where(x.new_full((), 0.5), 1)


def _real(z: Any) -> Any:
    return None if z is None else z.real


def _imaginary(z: Any) -> Any:
    return None if z is None else z.imag


def _beside_infinity(where: Tensor, start: Tensor, end: Tensor, height: Tensor, top: Tensor) -> Tensor:
    """Values between two points of which one is infinite: from the first, else from the second, as numpy has it."""
    slope = (top - height) / (end - start)
    other = (slope * (where - start) + height).detach().isnan()  # chosen before: what is not taken has no gradient
    found = slope * other.where(where - end, where - start) + other.where(top, height)
    found = (found.isnan() & height.eq(top)).where(height, found)
    return where.isnan().where(where, found)


def interp(
    x: Any, xp: Any, fp: Any, left: float | None = None, right: float | None = None, period: float | None = None
) -> Tensor:
    """Values of a function that is linear between given ones.

    Args:
      x: where: any shape.
      xp: places, which rise, shape (n,); with a period in any order.
      fp: the values there, shape (n,).
      left: what is before the first place; the first value if None.
      right: what is behind the last one; the last value if None.
      period: after which everything repeats; then ``left`` and ``right`` mean nothing.

    Raises:
      ValueError: if the shapes do not fit, or the period is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import interp
      >>> interp(Tensor([0.5, 2.5, 9.0]), Tensor([0.0, 1.0, 3.0]), Tensor([0.0, 10.0, 20.0]))
      Tensor([ 5. , 17.5, 20. ])
    """
    given = (x, fp, xp)
    where, values, places = (
        floating(one if isinstance(one, Tensor) else beside(Tensor, one, given)) for one in given
    )
    if places.ndim != 1 or places.shape != values.shape or not places.shape[0]:
        raise ValueError(f"interp: places of shape {places.shape} and values of shape {values.shape}")
    if values.dtype.kind == "complex":
        re, im = (
            interp(where, places, part(values), part(left), part(right), period) for part in (_real, _imaginary)
        )
        return re.complex(where.isnan().where(0, im))
    if period is not None:
        if not period:
            raise ValueError("interp: the period is 0")
        period = abs(period)
        where, places = where % period, places % period
        places, order = places.sort()
        values = values.index_select(0, order)
        places = (places[-1:] - period).cat(places, places[:1] + period)
        values = values[-1:].cat(values, values[:1])
    n = places._ints()[0]
    before = (places.detach().searchsorted(where.detach(), right=True) - 1).clamp(0, max(n - 2, 0))
    behind = (before + 1).clamp(0, n - 1)
    edge = places.take(before), values.take(before)
    ends = *edge, places.take(behind), values.take(behind)
    endless = ends[0].isinf() | ends[1].isinf() | ends[2].isinf() | ends[3].isinf()
    start, height, end, top = (endless.where(plain, one) for plain, one in zip((0, 0, 1, 0), ends, strict=True))
    part = _without_overflow(end, start)
    width = end * part - start * part
    share = (where * part - start * part) / width.eq(0).where(1, width)
    part = _without_overflow(top, height)
    out = (height * part + share * (top * part - height * part)) / part
    start, height, end, top = (endless.where(one, plain) for one, plain in zip(ends, (0, 0, 1, 0), strict=True))
    out = endless.where(_beside_infinity(where, start, end, height, top), out)
    out = (where.eq(edge[0]) & out.isfinite().logical_not()).where(edge[1], out)
    out = (where < places[0]).where(values[0] if left is None else left, out)
    out = (where > places[-1]).where(values[-1] if right is None else right, out)
    gap = (values[-1] - out).detach()
    if n == 1:
        return out
    return (where == places[-1]).where(gap.isfinite().where(out + gap, values[-1]), out)


def unwrap(p: Tensor, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Angles without jumps: where neighbours are apart by more than half a period, whole periods are added.

    Args:
      p: the angles.
      discont: from which distance on that is a jump; at least half a period.
      axis: along which one.
      period: of the angles.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import unwrap
      >>> unwrap(Tensor([0.0, 170.0, 340.0, 150.0]), period=360.0)
      Tensor([  0., 170., 340., 510.])
    """
    x = floating(p).movedim(axis, -1)
    if x.shape[-1] < 2:
        return floating(p)
    half = period / 2
    step = x.diff()
    inside = (step + half) % period - half
    inside = (inside.eq(-half) & (step > 0)).where(half, inside)
    wrong = (step.abs() < max(half if discont is None else discont, half)).where(0, inside - step)
    return x[..., :1].cat(x[..., 1:] + wrong.cumsum(-1), dim=-1).movedim(-1, axis)


def ediff1d(x: Tensor, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours among all elements, row by row, and what is to stand behind and before them.

    Args:
      x: the elements.
      to_end: behind the last difference.
      to_begin: before the first one.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import ediff1d
      >>> ediff1d(Tensor([1, 2, 4]), to_begin=[-9])
      Tensor([-9,  1,  2])
    """
    ends = [None if part is None else fitting(x, part, "ediff1d").flatten() for part in (to_begin, to_end)]
    middle = x.flatten().diff()
    first, *rest = [part for part in (ends[0], middle, ends[1]) if part is not None]
    return first.cat(*rest) if rest else first


def convolve(a: Tensor, v: Tensor, mode: str = "full") -> Tensor:
    """The convolution of two rows of numbers: shape (n,) and (m,).

    Args:
      a: one.
      v: the other.
      mode: ``"full"``, every place at which they meet: n + m - 1; ``"same"``, as many as the longer one has, in the
        middle; ``"valid"``, where the shorter one is all inside.

    Raises:
      ValueError: if one is empty, or no row; or there is no such mode.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import convolve
      >>> convolve(Tensor([1.0, 2.0, 3.0]), Tensor([0.0, 1.0, 0.5]))
      Tensor([0. , 1. , 2.5, 4. , 1.5])
    """
    return _convolved(a, v, mode, "convolve") if len(a) >= len(v) else _convolved(v, a, mode, "convolve")


def correlate(a: Tensor, v: Tensor, mode: str = "valid") -> Tensor:
    """The correlation of two rows of numbers: sums of products with the conjugate of ``v``, one for each shift.

    Args:
      a: one, shape (n,).
      v: the other, shape (m,).
      mode: see :func:`convolve`.

    Raises:
      ValueError: if one is empty, or no row; or there is no such mode.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import correlate
      >>> correlate(Tensor([1.0, 2.0, 3.0]), Tensor([0.0, 1.0, 0.5]), "full")
      Tensor([0.5, 2. , 3.5, 3. , 0. ])
    """
    if len(a) < len(v):
        return correlate(v, a, mode).flip(0).conj()
    return _convolved(a, v.flip(0).conj(), mode, "correlate")


def _convolved(a: Tensor, v: Tensor, mode: str, what: str) -> Tensor:
    """The convolution with a row that is not longer."""
    if a.ndim != 1 or v.ndim != 1 or not v.shape[0]:
        raise ValueError(f"{what}: rows of shapes {a.shape} and {v.shape}; one axis is wanted, and elements")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{what}: there are 'full', 'same' and 'valid', got {mode!r}")
    n, m = a._ints()[0], v._ints()[0]
    kind = a.result_type(v)
    a, v = a.cast(kind), v.flip(0).cast(kind)
    if mode == "valid":
        return a.unfold(0, m, 1) @ v
    full = wide(a, _slid, v) if kind.kind == "float" else _slid(a, v)
    if mode == "full":
        return full
    return full[(m - 1) // 2 : (m - 1) // 2 + n]


def _slid(a: Tensor, v: Tensor) -> Tensor:
    """Sums of products with a row, at every place at which the two meet."""
    n, m = a._ints()[0], v._ints()[0]
    ends = ((m - 1, m - 1),)
    there = Tensor.ones(n, dtype=dtypes.bool, device=a.device).pad(ends).unfold(0, m, 1)  # (n + m - 1, m)
    return there.where(a.pad(ends).unfold(0, m, 1) * v, 0).sum(-1, dtype=a.dtype)
