"""Counting: how many elements have each value, or lie in each of several bins."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.trackers import max_size

from ..array.array import A, Array
from ..array.axes import iota
from ..array.positions import signed
from ..autograd.functions.parallel_updates import updated
from .searching import searchsorted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
    x: A, bins: int | Sequence[float] | A = 10, *, range: tuple[float, float] | None = None, weight: A | None = None,
    density: bool = False,
) -> tuple[A, A]:  # fmt: skip
    """Counts of elements in equal bins, and the edges of the bins.

    Args:
      bins: how many; or their edges, shape (bins + 1,), in order, also in a list.
      range: where the first begins and the last ends; if it is not given, the least and the greatest
        element (of nothing 0 and 1).
      weight: this tensor's shape: what each element counts.
      density: divide by the sum and by the width of a bin, so that the integral is 1.

    Returns:
      Counts, shape (bins,), and edges, shape (bins + 1,): the dtype of this tensor.

    Raises:
      TypeError: if the elements are no floats.
      ValueError: if there are no bins, edges in a list are not in order, the range is no range of finite numbers, or
        weights have another shape.

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
    place, edges, widths = _divided(x.flatten(), bins, range, "histogram")
    counts = _weighed(place, weight, edges._ints()[0] - 1, x.dtype)
    if density:
        counts = counts / counts.sum() / widths
    return counts, edges


def histogramdd(
    x: A, bins: int | Sequence[int | Sequence[float] | A] = 10,
    range: Sequence[float] | Sequence[tuple[float, float]] | None = None, weight: A | None = None,
    density: bool = False,
) -> tuple[A, tuple[A, ...]]:  # fmt: skip
    """Counts of points in the cells of a grid, and the edges of the grid along each of its axes.

    Args:
      x: coordinates of points, shape (…, d): floats.
      bins: how many bins there are along each axis, one number for all or one for each; or their edges, a tensor of
        shape (bins + 1,) for each, or a list, in order.
      range: where the first bin begins and the last ends, of each axis one after another, 2 * d numbers, or d pairs;
        if it is not given, the least and the greatest coordinate, which are computed at once.
      weight: what each point counts, shape (…).
      density: divide by the sum and by the size of a cell, so that the integral is 1.

    Returns:
      Counts, shape (bins of the first axis, …), and d tensors of edges: the dtype of this tensor.

    Raises:
      TypeError: if the coordinates are no floats.
      ValueError: if there are no axes or no bins, edges in a list are not in order, the numbers of bins or bounds are
        not d, a range is no range of finite numbers, or weights have another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> points = Tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
      >>> counts, edges = points.histogramdd(bins=2)
      >>> counts.tolist(), edges[0].tolist()
      ([[0.0, 1.0], [1.0, 1.0]], [0.0, 1.0, 2.0])
    """
    what = "histogramdd"
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"{what}: floats are wanted, got a tensor of {x.dtype.name}; cast it")
    if x.ndim < 2 or x.shape[-1] == 0:
        raise ValueError(f"{what}: coordinates of points have a shape (…, d), got {x.shape}")
    if weight is not None and weight.shape != x.shape[:-1]:
        raise ValueError(f"{what}: weights of shape {weight.shape} for points of shape {x.shape}")
    d = x._ints()[-1]
    each: Any = [bins] * d if isinstance(bins, int) else list(bins)
    bounds: Any = range
    if range is not None and all(isinstance(bound, (list, tuple)) for bound in range):
        bounds = [bound for pair in bounds for bound in pair]
    if len(each) != d or (range is not None and len(bounds) != 2 * d):
        raise ValueError(f"{what}: bins {bins!r} and range {range!r} of points with {d} coordinates")
    points = x.reshape((-1, d))
    divided = [
        _divided(points.shrink((None, (axis, axis + 1))).flatten(), one,
                 None if range is None else (bounds[2 * axis], bounds[2 * axis + 1]), what)
        for axis, one in enumerate(each)
    ]  # fmt: skip
    edges = [edge for _, edge, _ in divided]
    sizes = [edge._ints()[0] - 1 for edge in edges]
    place: Any = 0
    inside: Any = True
    cell: Any = 1.0
    for axis, (along, _, widths) in enumerate(divided):
        place, inside = place * sizes[axis] + along, (along >= 0) & inside
        cell = cell * (widths if isinstance(widths, float) else widths.reshape((-1, *(1 for _ in sizes[axis + 1 :]))))
    counts = _weighed(inside.where(place, -1), weight, prod(sizes), x.dtype).reshape(sizes)
    if density:
        counts = counts / counts.sum() / cell
    return counts, tuple(edges)


def _divided(
    x: A, bins: int | Sequence[float] | A, range: tuple[float, float] | None, what: str
) -> tuple[A, A, Any]:  # fmt: skip
    """The bin of each element of a vector (-1 for none), the edges of the bins, and how wide each bin is."""
    given: Any = bins
    if isinstance(given, str):
        raise TypeError(f"{what}: a number of bins or their edges are wanted, got {given!r}")
    if isinstance(given, (list, tuple)):
        if any(left > right for left, right in pairwise(given)):
            raise ValueError(f"{what}: edges {given!r} are not in order")
        given = type(x)(given, dtype=x.dtype, device=x.device)
    if isinstance(given, Array):
        edges: A = given.cast(x.dtype)  # type: ignore[assignment]
        number = given._ints()[0] - 1 if given.ndim == 1 else 0
        if number < 1 or range is not None:
            raise ValueError(f"{what}: edges of shape {given.shape}, range {range}; two edges or more alone are used")
        place = searchsorted(edges, x, right=True) - 1
        place = x.eq(edges.shrink(((number, number + 1),))).where(number - 1, place)
        place = (place < number).where(place, -1).cast(dtypes.int32)
        return place, edges, edges.shrink(((1, number + 1),)) - edges.shrink(((0, number),))
    low, high = _bounds(x, given, *(range or (0.0, 0.0)), 0.5, what)
    width = (high - low) / given
    edges = iota(type(x), given + 1, dtypes.int32, x.device).cast(x.dtype) * width + low
    return _bin_of(x, given, low, high), edges, width


def _weighed(place: A, weight: A | None, number: int, dtype: DType) -> A:
    """How many elements are in each bin, or how much they weigh."""
    if weight is None:
        return _counts(place, None, number, dtypes.int32).cast(dtype)
    return _counts(place, weight.flatten().cast(dtype), number, dtype)


def _summed(weights: Any) -> DType:
    if weights is None:
        return dtypes.int64
    found: DType = weights.dtype
    return found if found in (dtypes.float32, dtypes.float64) else dtypes.float64


def _counts(place: A, each: A | None, length: int, dtype: DType) -> A:
    """What goes to each position: 1 for each element, or ``each``."""
    at = signed(place, length).lazydata
    if each is None:  # a table of narrow numbers takes half of the cache
        kind = dtypes.int32 if max_size(at.shape) <= dtypes.max(dtypes.int32) else dtype
        value = LazyBuffer.const(1, kind, at.shape, at.device)
    else:
        kind, value = dtype, each.lazydata
    counts = place._value(updated(LazyBuffer.const(0, kind, (length,), at.device), 0, at, value, Ops.ADD))
    return counts if kind is dtype else counts.cast(dtype)


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
