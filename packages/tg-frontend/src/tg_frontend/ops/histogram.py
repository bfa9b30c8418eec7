"""Counting: how many elements have each value, or lie in each of several bins."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops

from ..array.array import A, Array
from ..array.axes import iota
from ..array.positions import signed
from ..autograd.functions.parallel_updates import updated
from .searching import searchsorted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def bincount(x: A, weights: A | None = None, minlength: int = 0) -> A:
    """How often each value occurs, from 0 to the greatest; or the sum of its elements' weights.

    The greatest value is computed at once, since the result's shape depends on it.

    Args:
      x: shape (n,), integers from 0 on.
      weights: shape (n,): what each element counts.
      minlength: length of the result, at the least.

    Returns:
      int64, or with weights their dtype if it is float32 or float64, else float64.

    Raises:
      TypeError: if the elements are no integers.
      ValueError: if there is more than one axis, an element is negative, or weights have another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 3, 1]).bincount().tolist()
      [0, 2, 0, 1]
      >>> Tensor([1, 3, 1]).bincount(weights=Tensor([0.5, 1.0, 2.0])).tolist()
      [0.0, 2.5, 0.0, 1.0]
    """
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"bincount: integers are wanted, got a tensor of {x.dtype.name}")
    if x.ndim != 1:
        raise ValueError(f"bincount: one axis is wanted, got shape {x.shape}")
    if weights is not None and weights.shape != x.shape:
        raise ValueError(f"bincount: weights of shape {weights.shape} for elements of shape {x.shape}")
    if minlength < 0:
        raise ValueError(f"bincount: minlength {minlength} is negative")
    length = minlength
    if x.numel() != 0:
        signed = x.dtype.kind == "int"  # one look at the elements: as unsigned numbers negative ones are the greatest
        greatest = int((x.bitcast(dtypes.from_name(f"u{x.dtype.name}")) if signed else x).max().item())
        if greatest > dtypes.max(x.dtype):
            raise ValueError(f"bincount: element {int(x.min().item())} is negative")
        length = max(length, greatest + 1)
    dtype = _summed(weights)
    return _counts(x, None if weights is None else weights.cast(dtype), length, dtype)


def histc(x: A, bins: int = 100, min: float = 0, max: float = 0) -> A:
    """How many elements lie in each of ``bins`` equal parts of ``min`` to ``max``; the last one includes its end.

    Elements outside, and NaN, are not counted.

    Args:
      min: where the first bin begins; if it equals ``max``, the least and the greatest element, computed at once.
      max: where the last one ends.

    Returns:
      Shape (bins,), the dtype of this tensor.

    Raises:
      TypeError: if the elements are no floats.
      ValueError: if there are no bins, or ``max`` is less than ``min``, or they are not finite.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 1.0, 4.0]).histc(bins=4, min=0, max=4).tolist()
      [0.0, 2.0, 1.0, 1.0]
    """
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"histc: floats are wanted, got a tensor of {x.dtype.name}; cast it")
    low, high = _bounds(x, bins, min, max, 1.0, "histc")
    place = _bin_of(x.flatten(), bins, low, high)
    return _counts(place, None, bins, dtypes.int32).cast(x.dtype)


def histogram(
    x: A, bins: int | A = 10, *, range: tuple[float, float] | None = None, weight: A | None = None,
    density: bool = False,
) -> tuple[A, A]:  # fmt: skip
    """Counts of elements in equal bins, and the edges of the bins.

    Args:
      bins: how many; or their edges, shape (bins + 1,), in order.
      range: where the first begins and the last ends; if it is not given, the least and the greatest
        element (of nothing 0 and 1).
      weight: this tensor's shape: what each element counts.
      density: divide by the sum and by the width of a bin, so that the integral is 1.

    Returns:
      Counts, shape (bins,), and edges, shape (bins + 1,): the dtype of this tensor.

    Raises:
      TypeError: if the elements are no floats.
      ValueError: if there are no bins, the range is no range of finite numbers, or weights have another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> counts, edges = Tensor([1.0, 2.0, 1.0]).histogram(bins=4, range=(0.0, 4.0))
      >>> counts.tolist(), edges.tolist()
      ([0.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0])
    """
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"histogram: floats are wanted, got a tensor of {x.dtype.name}; cast it")
    if weight is not None and weight.shape != x.shape:
        raise ValueError(f"histogram: weights of shape {weight.shape} for elements of shape {x.shape}")
    widths: Any
    if isinstance(bins, Array):
        edges, number = bins.cast(x.dtype), bins._ints()[0] - 1 if bins.ndim == 1 else 0
        if number < 1 or range is not None:
            raise ValueError(f"histogram: edges of shape {bins.shape}, range {range}; two edges or more alone are used")
        flat = x.flatten()
        place = searchsorted(edges, flat, right=True) - 1
        place = flat.eq(edges.shrink(((number, number + 1),))).where(number - 1, place)
        place = (place < number).where(place, -1).cast(dtypes.int32)
        widths = edges.shrink(((1, number + 1),)) - edges.shrink(((0, number),))
    else:
        number = bins
        low, high = _bounds(x, bins, *(range or (0.0, 0.0)), 0.5, "histogram")
        place = _bin_of(x.flatten(), bins, low, high)
        widths = (high - low) / bins
        edges = iota(type(x), bins + 1, dtypes.int32, x.device).cast(x.dtype) * widths + low
    if weight is None:
        counts = _counts(place, None, number, dtypes.int32).cast(x.dtype)
    else:
        counts = _counts(place, weight.flatten().cast(x.dtype), number, x.dtype)
    if density:
        counts = counts / counts.sum() / widths
    return counts, edges


def _summed(weights: Any) -> DType:
    if weights is None:
        return dtypes.int64
    found: DType = weights.dtype
    return found if found in (dtypes.float32, dtypes.float64) else dtypes.float64


def _counts(place: A, each: A | None, length: int, dtype: DType) -> A:
    """What goes to each position: 1 for each element, or ``each``."""
    at = signed(place, length).lazydata
    value = LazyBuffer.const(1, dtype, at.shape, at.device) if each is None else each.lazydata
    return place._value(updated(LazyBuffer.const(0, dtype, (length,), at.device), 0, at, value, Ops.ADD))


def _bounds(x: A, bins: int, low: float, high: float, margin: float, what: str) -> tuple[float, float]:
    """Where the bins begin and end: with a margin on either side, if all elements are equal."""
    if bins < 1:
        raise ValueError(f"{what}: {bins} bins; there is at least one")
    if low == high and x.numel() != 0:
        low, high = float(x.min().item()), float(x.max().item())
    elif low == high == 0:
        high = 1.0  # of nothing, as numpy has it
    if low == high:
        low, high = low - margin, high + margin
    if not (low < high and high - low < float("inf")):
        raise ValueError(f"{what}: from {low} to {high} is no range of finite numbers")
    return low, high


def _bin_of(x: A, bins: int, low: float, high: float) -> A:
    """The bin of each element; -1 for none."""
    if x.dtype.itemsize < 4:
        x = x.cast(dtypes.float32)
    place = ((x - low) * (bins / (high - low))).floor()
    inside = (x >= low) & (x <= high)
    return inside.where(place.minimum(bins - 1), -1).cast(dtypes.int32)
