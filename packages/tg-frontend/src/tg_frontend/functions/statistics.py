"""numpy's statistics: percentiles, averages, and reductions that leave NaN out."""

from __future__ import annotations

import math

from tg_dtype import dtypes, sum_dtype

from ..array.axes import axes_of, kept
from ..array.casts import wide
from ..array.counted import mask_of
from ..array.operands import beside
from ..array.reduction import count_along
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..array.base import DTypeLike
    from ..array.reduction import Axes
    from ..ops.order_statistics import Interpolation


def percentile(
    x: Tensor, q: Any, axis: Axes = None, *, keepdim: bool = False, interpolation: Interpolation = "linear",
    weights: Any = None,
) -> Tensor:  # fmt: skip
    """The values below which q of 100 elements lie; see ``Tensor.quantile``.

    Args:
      x: the elements.
      q: between 0 and 100: a number, several or a tensor of them, whose axis comes first.
      axis: along which ones; all elements if None.
      keepdim: whether the axes stay, with size 1.
      interpolation: what is taken between two elements.
      weights: of the elements; by the method ``inverted_cdf`` alone.

    Raises:
      ValueError: if q is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import percentile
      >>> percentile(Tensor([1.0, 2.0, 3.0, 5.0]), 50)
      Tensor(2.5)
    """
    return x.quantile(_of_one(q), axis, keepdim, interpolation, weights=weights)


def nanpercentile(
    x: Tensor, q: Any, axis: Axes = None, *, keepdim: bool = False, interpolation: Interpolation = "linear",
    weights: Any = None,
) -> Tensor:  # fmt: skip
    """:func:`percentile`, with NaN left out.

    Raises:
      ValueError: if q is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanpercentile
      >>> nanpercentile(Tensor([1.0, 2.0, float("nan"), 5.0]), 50)
      Tensor(2.)
    """
    return x.nanquantile(_of_one(q), axis, keepdim, interpolation, weights=weights)


def _of_one(q: Any) -> Any:
    return q / 100 if isinstance(q, (Tensor, int, float)) else [each / 100 for each in q]


def ptp(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The greatest element minus the least.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import ptp
      >>> ptp(Tensor([[1.0, 5.0], [2.0, 2.5]]), axis=1)
      Tensor([4. , 0.5])
    """
    return x.amax(axis, keepdim) - x.amin(axis, keepdim)


def average(
    x: Tensor, axis: Axes = None, weights: Any = None, returned: bool = False, *, keepdim: bool = False
) -> Any:
    """The mean, of elements with weights.

    Args:
      x: the elements.
      axis: along which ones; all elements if None.
      weights: of the shape of ``x``, or of these axes, in their order; all the same if None.
      returned: also give the sum of the weights.
      keepdim: whether the axis stays, with size 1.

    Raises:
      ValueError: if the weights are of another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import average
      >>> average(Tensor([1.0, 2.0, 5.0]), weights=[1.0, 0.0, 3.0])
      Tensor(4.)
    """
    if weights is None:
        mean = x.mean(axis, keepdim)
        return (mean, x.ones_like().cast(mean.dtype).sum(axis, keepdim)) if returned else mean
    each = weights if isinstance(weights, Tensor) else beside(Tensor, weights, (x,))
    if each.shape != x.shape:
        order = [x._axis(one, "average") for one in (axis if isinstance(axis, (tuple, list)) else (axis or 0,))]
        if axis is None or each.shape != tuple(x.shape[one] for one in order):
            raise ValueError(f"average: weights of shape {each.shape} for elements of shape {x.shape}, axis {axis}")
        each = each.permute(*sorted(range(len(order)), key=order.__getitem__))
        each = each.reshape([n if i in order else 1 for i, n in enumerate(x.shape)]).expand(*x.shape)
    total = each.sum(axis, keepdim)
    kind = x.result_type(each)
    if kind.kind == "float":
        mean = wide(x.cast(kind), lambda x, w: (x * w).sum(axis, keepdim) / w.sum(axis, keepdim), each.cast(kind))
        return (mean, total) if returned else mean
    products = x.cast(sum_dtype(x.dtype)) * each.cast(sum_dtype(each.dtype))  # those of narrow integers do not wrap
    mean = products.sum(axis, keepdim) / total
    return (mean, total) if returned else mean


def _extreme(
    x: Tensor, axis: Axes, keepdim: bool, greatest: bool, where: Any = None, initial: Any = None
) -> Tensor:
    nothing = x.isnan() if x.dtype.kind == "float" else None
    filled = x if nothing is None else nothing.where(-math.inf if greatest else math.inf, x)
    reduced = Tensor.amax if greatest else Tensor.amin
    found = reduced(filled, axis, keepdim, where=where, initial=initial)
    if nothing is None or initial is not None:
        return found
    return nothing.all(axis, keepdim).where(math.nan, found)


def nanmax(
    x: Tensor, axis: Axes = None, keepdim: bool = False, *, where: Any = None, initial: Any = None
) -> Tensor:
    """The greatest element, with NaN left out; NaN where there is nothing else.

    The arguments are those of ``Tensor.max``.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanmax
      >>> nanmax(Tensor([1.0, float("nan"), 3.0]))
      Tensor(3.)
    """
    return _extreme(x, axis, keepdim, True, where, initial)


def nanmin(
    x: Tensor, axis: Axes = None, keepdim: bool = False, *, where: Any = None, initial: Any = None
) -> Tensor:
    """The least element, with NaN left out; NaN where there is nothing else.

    The arguments are those of ``Tensor.max``.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanmin
      >>> nanmin(Tensor([1.0, float("nan"), 3.0]))
      Tensor(1.)
    """
    return _extreme(x, axis, keepdim, False, where, initial)


def _place(x: Tensor, axis: int | None, keepdim: bool, greatest: bool) -> Tensor:
    if x.dtype.kind != "float":
        return x.argmax(axis, keepdim) if greatest else x.argmin(axis, keepdim)
    flat = x.flatten() if axis is None else x
    along = 0 if axis is None else axis
    there = (flat == _extreme(flat, along, True, greatest)).cast(dtypes.int32)  # nowhere where all are NaN
    place = there.argmax(along, keepdim)
    place = there.amax(along, keepdim).ne(0).where(place, -1)
    return place.reshape((1,) * x.ndim) if axis is None and keepdim else place


def nanargmax(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The place of the first greatest element, with NaN left out; -1 where there is nothing else.

    Args:
      x: the elements.
      axis: along which one; the place is that in all elements, row by row, if None.
      keepdim: whether the axis stays, with size 1.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanargmax
      >>> nanargmax(Tensor([1.0, float("nan"), 3.0]))
      Tensor(2)
    """
    return _place(x, axis, keepdim, True)


def nanargmin(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The place of the first least element, with NaN left out; -1 where there is nothing else.

    Args:
      x: the elements.
      axis: along which one; the place is that in all elements, row by row, if None.
      keepdim: whether the axis stays, with size 1.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanargmin
      >>> nanargmin(Tensor([float("nan"), 4.0, 3.0]))
      Tensor(2)
    """
    return _place(x, axis, keepdim, False)


def _without(x: Tensor, value: float) -> Tensor:
    return x.isnan().where(value, x) if x.dtype.kind in ("float", "complex") else x


def nanprod(
    x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None,
    initial: Any = None,
) -> Tensor:  # fmt: skip
    """The product, with NaN left out; the arguments are those of ``Tensor.prod``.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanprod
      >>> nanprod(Tensor([2.0, float("nan"), 3.0]))
      Tensor(6.)
    """
    return _without(x, 1).prod(axis, keepdim, dtype, where=where, initial=initial)


def nanvar(
    x: Tensor, axis: Axes = None, *, correction: float = 0, keepdim: bool = False, dtype: DTypeLike | None = None,
    where: Any = None, mean: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance, with NaN left out; NaN where nothing is left to divide by.

    Args:
      x: the elements.
      axis: along which ones; all elements if None.
      correction: the sum of squares is divided by the number of elements minus this; numpy's ``ddof``.
      keepdim: whether the axes stay, with size 1.
      dtype: and ``where`` and ``mean``: as of ``Tensor.var``.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanvar
      >>> nanvar(Tensor([1.0, float("nan"), 3.0]))
      Tensor(1.)
    """
    counted = mask_of(x, where, "nanvar")
    floats = x if dtype is None else x.cast(dtype)
    if floats.dtype.kind in ("float", "complex"):
        there = floats.isnan().logical_not()
        counted = there if counted is None else there & counted
    out = floats.var(axis, keepdim=keepdim, correction=correction, where=counted, mean=mean)
    if counted is None:
        return out
    axes = axes_of(x, axis, "nanvar")
    count: Tensor = kept(count_along(x, axes, counted, "nanvar"), axes, keepdim)
    return (count > correction).where(out, math.nan)


def nanstd(
    x: Tensor, axis: Axes = None, *, correction: float = 0, keepdim: bool = False, dtype: DTypeLike | None = None,
    where: Any = None, mean: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The square root of :func:`nanvar`, whose arguments it takes.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nanstd
      >>> nanstd(Tensor([1.0, float("nan"), 5.0]))
      Tensor(2.)
    """
    return wide(x if dtype is None else x.cast(dtype), lambda x: nanvar(
        x, axis, correction=correction, keepdim=keepdim, where=where, mean=mean).sqrt())


def nancumsum(x: Tensor, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running sums, with NaN taken as 0; of all elements, row by row, if ``axis`` is None.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nancumsum
      >>> nancumsum(Tensor([1.0, float("nan"), 3.0]))
      Tensor([1., 1., 4.])
    """
    kept = _without(x, 0)
    return kept.flatten().cumsum(0, dtype) if axis is None else kept.cumsum(axis, dtype)


def nancumprod(x: Tensor, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running products, with NaN taken as 1; of all elements, row by row, if ``axis`` is None.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import nancumprod
      >>> nancumprod(Tensor([2.0, float("nan"), 3.0]))
      Tensor([2., 2., 6.])
    """
    kept = _without(x, 1)
    return kept.flatten().cumprod(0, dtype) if axis is None else kept.cumprod(axis, dtype)


def histogram2d(
    x: Tensor, y: Tensor, bins: Any = 10, range: Sequence[Sequence[float]] | None = None, density: bool = False,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """How many points lie in each field of a grid; see ``Tensor.histogramdd``.

    Args:
      x: first coordinates, shape (points,).
      y: second coordinates, shape (points,).
      bins: how many of each coordinate: a number, or two; or edges, of both or two lists or tensors of them.
      range: the least and the greatest value of each coordinate; those of the points if None.
      density: divide by the number of points and the size of the fields.
      weights: of the points, shape (points,).

    Returns:
      The counts, shape (bins of x, bins of y), and the edges along both.

    Raises:
      ValueError: if the points are no pairs.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import histogram2d
      >>> histogram2d(Tensor([0.1, 0.9]), Tensor([0.1, 0.8]), bins=2, range=[(0, 1), (0, 1)])[0]
      Tensor([[1., 0.],
              [0., 1.]])
    """
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"histogram2d: coordinates of shapes {x.shape} and {y.shape} are no points")
    bounds = None if range is None else [bound for pair in range for bound in pair]
    if not isinstance(bins, int) and len(bins) > 2:  # as numpy takes them
        bins = [bins, bins]
    counts, edges = x.stack(y, dim=1).histogramdd(bins, bounds, weights, density)
    return counts, edges[0], edges[1]


def histogram_bin_edges(x: Tensor, bins: int = 10, range: tuple[float, float] | None = None) -> Tensor:
    """The edges of bins of one width: shape (bins + 1,).

    Args:
      x: the elements.
      bins: how many.
      range: the outermost edges; the least and the greatest element if None, which are computed now.

    Raises:
      TypeError: if bins are no number: rules that choose one are numpy's.
      ValueError: if there is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import histogram_bin_edges
      >>> histogram_bin_edges(Tensor([1.0, 3.0]), bins=2)
      Tensor([1., 2., 3.])
    """
    if not isinstance(bins, int):
        raise TypeError(f"histogram_bin_edges: a number of bins is wanted, got {bins!r}")
    if bins < 1:
        raise ValueError(f"histogram_bin_edges: {bins} bins")
    low, high = range if range is not None else (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    kind = x.dtype if x.dtype.kind == "float" else dtypes.default_float
    return Tensor.linspace(float(low), float(high), bins + 1, dtype=kind, device=x.device)
