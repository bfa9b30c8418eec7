"""Reductions: many elements to one, along axes. ``axis=None`` means all; ``keepdim`` keeps axes of size 1."""

from __future__ import annotations

from tg_dtype import DType, dtypes, sum_acc_dtype, sum_dtype
from tg_lazy import Ops
from tg_lazy.trackers import max_size
from tg_shape import prod as size_of

from ..autograd.functions import Max, Neg, Prod, Sum
from ..host.coerce import to_dtype
from .arithmetic import add, mul, sub
from .axes import axes_of, check_nonempty, counter, kept
from .base import B, Base, DTypeLike
from .bits import bitwise_and, bitwise_or, logical_not, lshift, rshift
from .casts import cast, floating
from .comparison import eq, ne
from .counted import beginning, mask_of, only
from .division import div
from .gradients import detach
from .movement import flatten, reshape, stretch
from .operands import alu
from .selection import maximum, minimum
from .selection import where as chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Axes = int | Sequence[int] | None


def sum(
    x: B, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None,
    initial: Any = None,
) -> B:  # fmt: skip
    """The sum. Narrow floats are accumulated in float32 and rounded once; integers and bools give int64.

    Args:
      dtype: accumulate and return in this dtype instead.
      where: bools that broadcast to the shape of ``x``: which elements count; all if None.
      initial: a number that is added.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if an axis is given twice, or ``where`` has another shape.
      TypeError: if ``where`` holds no bools, or ``initial`` is no number that the dtype has.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.sum(), x.sum(axis=0)
      (Tensor(10.), Tensor([4., 6.]))
    """
    axes = axes_of(x, axis, "sum")
    counted = only(x, where, 0, "sum")
    if dtype is not None:
        out = cast(counted, to_dtype(dtype))._apply(Sum(axes))
    else:
        out = cast(cast(counted, _accumulator(x, axes))._apply(Sum(axes)), sum_dtype(x.dtype))
    return kept(out if initial is None else add(out, beginning(out, initial, "sum")), axes, keepdim)


def _accumulator(x: B, axes: tuple[int, ...]) -> DType:
    """What a sum along axes is accumulated in: of integers 32 bits where so few of them cannot exceed these."""
    narrow = sum_acc_dtype(x.dtype)
    if narrow.kind == "float":
        return narrow
    count, most = max_size(tuple(x.shape[axis] for axis in axes)), int(dtypes.max(x.dtype)) + 1
    return narrow if count * most <= int(dtypes.max(narrow)) else sum_dtype(x.dtype)


def prod(
    x: B, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None,
    initial: Any = None,
) -> B:  # fmt: skip
    """The product, accumulated as :meth:`sum` is, whose arguments it takes; ``initial`` is one more factor.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if an axis is given twice.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.prod(axis=1)
      Tensor([ 2., 12.])
    """
    axes = axes_of(x, axis, "prod")
    kind = sum_dtype(x.dtype) if dtype is None else to_dtype(dtype)
    accumulator = sum_acc_dtype(kind) if kind.kind == "float" and dtype is None else kind
    out = cast(cast(only(x, where, 1, "prod"), accumulator)._apply(Prod(axes)), kind)
    return kept(out if initial is None else mul(out, beginning(out, initial, "prod")), axes, keepdim)


def max(
    x: B, axis: Axes | B = None, keepdim: bool = False, *, where: Any = None, initial: Any = None
) -> B:
    """The maximum; NaN if there is one. Ties share the gradient evenly. With a tensor: :meth:`maximum`.

    Args:
      where: see :meth:`sum`; it wants an ``initial``, for where nothing counts.
      initial: a number that is chosen from, too.

    Raises:
      ValueError: if there is nothing to choose from, or an axis is given twice.
      IndexError: if an axis is out of range.
      TypeError: if ``where`` holds no bools, or ``initial`` is no number that the dtype has.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.max(axis=0, keepdim=True)
      Tensor([[3., 4.]])
    """
    if isinstance(axis, Base):
        _check_pairs(keepdim, where, initial, "max")
        return maximum(x, axis)
    axes = axes_of(x, axis, "max")
    x = _candidates(x, axes, where, initial, "max")
    out = x._apply(Max(axes))
    return kept(out if initial is None else maximum(out, beginning(out, initial, "max")), axes, keepdim)


def min(
    x: B, axis: Axes | B = None, keepdim: bool = False, *, where: Any = None, initial: Any = None
) -> B:
    """The minimum; NaN if there is one. Ties share the gradient evenly. With a tensor: :meth:`minimum`.

    Args:
      where: see :meth:`sum`; it wants an ``initial``, for where nothing counts.
      initial: a number that is chosen from, too.

    Raises:
      ValueError: if there is nothing to choose from, or an axis is given twice.
      IndexError: if an axis is out of range.
      TypeError: if ``where`` holds no bools, or ``initial`` is no number that the dtype has.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.min(axis=1)
      Tensor([1., 3.])
    """
    if isinstance(axis, Base):
        _check_pairs(keepdim, where, initial, "min")
        return minimum(x, axis)
    axes = axes_of(x, axis, "min")
    x = _candidates(x, axes, where, initial, "min")
    if x.dtype.kind == "float":
        out = x._apply(Neg())._apply(Max(axes))._apply(Neg())
    else:  # ~x reverses the order of integers and of bools, and none is lost
        out = alu(alu(x, Ops.NOT)._apply(Max(axes)), Ops.NOT)
    return kept(out if initial is None else minimum(out, beginning(out, initial, "min")), axes, keepdim)


def _check_pairs(keepdim: bool, where: Any, initial: Any, what: str) -> None:
    """Raises an error if anything but two tensors was given to an extreme of each pair of their elements."""
    if keepdim or where is not None or initial is not None:
        raise TypeError(f"{what}: of a tensor and another: keepdim, where and initial are for an axis")


def _candidates(x: B, axes: tuple[int, ...], where: Any, initial: Any, what: str) -> B:
    """What an extreme is chosen from: elements that do not count are what it begins with.

    Raises:
      ValueError: if there may be nothing to choose from.
    """
    mask = mask_of(x, where, what)
    if initial is None:
        if mask is not None:
            raise ValueError(f"{what}: where may leave nothing to choose from; give an initial value, too")
        check_nonempty(x, axes, what)
    return x if mask is None else chosen(mask, x, beginning(x, initial, what))


def any(x: B, axis: Axes = None, keepdim: bool = False, *, where: Any = None) -> B:
    """Whether some element is not 0, of those that count: see :meth:`sum` for ``where``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0, 0], [0, 3]]).any(axis=1)
      Tensor([False,  True])
    """
    axes = axes_of(x, axis, "any")
    return kept(only(cast(x, dtypes.bool), where, False, "any")._apply(Max(axes)), axes, keepdim)


def all(x: B, axis: Axes = None, keepdim: bool = False, *, where: Any = None) -> B:
    """Whether every element is not 0, of those that count: see :meth:`sum` for ``where``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [0, 3]]).all(axis=1)
      Tensor([ True, False])
    """
    return logical_not(any(logical_not(x), axis, keepdim, where=where))


_LOW = (1 << 32) - 1
"""The lower half of 64 bits."""


def count_along(x: B, axes: tuple[int, ...], where: Any, what: str) -> Any:
    """How many elements count along axes: one number, or a tensor that keeps the axes if there is a mask."""
    mask = mask_of(x, where, what)
    return size_of(x.shape[axis] for axis in axes) if mask is None else sum(stretch(mask, x.shape), axes, True)


def mean(
    x: B, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None
) -> B:
    """The mean, of integers and bools as floats, whose sum is exact; NaN of nothing.

    Args:
      dtype: cast to this float dtype first.
      where: bools that broadcast to the shape of ``x``: which elements count; all if None.

    Raises:
      TypeError: if the dtype is no float, or ``where`` holds no bools.
      ValueError: if ``where`` has another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.mean(axis=0)
      Tensor([2., 3.])
    """
    axes = axes_of(x, axis, "mean")
    count = count_along(x, axes, where, "mean")
    if dtype is None and x.dtype.kind != "float":
        return kept(_mean_of_integers(only(x, where, 0, "mean"), axes, count), axes, keepdim)
    floats = x if dtype is None else cast(x, dtype)
    if floats.dtype.kind != "float":
        raise TypeError(f"mean: a mean of {floats.dtype.name} is no {floats.dtype.name}; give a float dtype")
    wide = cast(only(floats, where, 0, "mean"), sum_acc_dtype(floats.dtype))
    return kept(cast(div(wide._apply(Sum(axes)), count), floats.dtype), axes, keepdim)


def _mean_of_integers(x: B, axes: tuple[int, ...], count: Any) -> B:
    """The sum is exact, as an integer; it is rounded once, beyond 64 bits twice, and then the quotient is."""
    kind = floating(x).dtype
    wide = sum_acc_dtype(kind)
    if x.dtype.itemsize < 8:
        total = cast(cast(x, _accumulator(x, axes))._apply(Sum(axes)), wide)
    else:  # 64 bits do not hold their sum: the sums of both halves do
        low = cast(bitwise_and(x, _LOW), dtypes.int64)._apply(Sum(axes))
        high = add(cast(rshift(x, 32), dtypes.int64)._apply(Sum(axes)), rshift(low, 32))
        low = bitwise_and(low, _LOW)
        few = eq(high, cast(cast(high, dtypes.int32), dtypes.int64))
        whole = cast(bitwise_or(lshift(high, 32), low), wide)
        total = chosen(few, whole, add(mul(cast(high, wide), float(1 << 32)), cast(low, wide)))
    return cast(div(total, count), kind)


def argmax(x: B, axis: int | None = None, keepdim: bool = False) -> B:
    """Where the maximum is (the first of them; a NaN counts as the maximum), as int32 (int64 where
    an axis is too long for that); None: in the flat tensor.

    Raises:
      ValueError: if there is nothing to choose from.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 5, 5], [7, 2, 0]]).argmax(axis=1)
      Tensor([1, 0])
    """
    if axis is None:
        flat = argmax(flatten(x), 0)
        return reshape(flat, (1,) * x.ndim) if keepdim else flat
    return _first_hit(x, x._axis(axis, "argmax"), keepdim, "argmax")


def argmin(x: B, axis: int | None = None, keepdim: bool = False) -> B:
    """Where the minimum is (the first of them; a NaN counts as the minimum), as int32 (int64 where
    an axis is too long for that); None: in the flat tensor.

    Raises:
      ValueError: if there is nothing to choose from.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 5, 5], [7, 2, 0]]).argmin(axis=1)
      Tensor([0, 2])
    """
    turned = alu(x, Ops.NEG if x.dtype.kind == "float" else Ops.NOT)
    return argmax(turned, axis, keepdim)


def _first_hit(x: B, axis: int, keepdim: bool, what: str) -> B:
    values = reshape(detach(x), (1,)) if x.ndim == 0 else detach(x)
    check_nonempty(values, (axis,), what)
    hit = eq(values, values._apply(Max((axis,))))
    if values.dtype.kind == "float":
        hit = bitwise_or(hit, ne(values, values))
    n = values.shape[axis]
    backward = sub(counter(values, axis), n, True)
    found = sub(chosen(hit, backward, 0)._apply(Max((axis,))), n, True)
    return reshape(found, ()) if x.ndim == 0 else kept(found, (axis,), keepdim)
