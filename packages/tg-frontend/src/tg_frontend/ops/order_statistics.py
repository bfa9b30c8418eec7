"""Elements by their rank: the k-th least, the median, quantiles.

Each is found by selection, which takes as many passes over the elements as half the bits of one, and is then read at
its place: the gradient goes to that element.
"""

from __future__ import annotations

import math
from typing import overload

from tg_dtype import DType, dtypes
from tg_shape import prod, sint

from ..array.array import A, Array
from ..array.axes import axes_of, check_nonempty
from ..array.casts import floating
from ..array.ingest import sure_of
from ..array.operands import beside
from .creation import full, zeros_like
from .found import Found
from .gather_scatter import gather
from .nth_element import first_of, kth_keys
from .order_keys import from_rows, key_rows, rows_along
from .predicates import isfinite, isnan
from .rounding import round as rounded
from .scan import cumsum
from .sorting import sort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from ..array.reduction import Axes

    Interpolation = Literal[
        "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
        "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
    ]  # fmt: skip

_POSITIONS = {
    "inverted_cdf": (0.0, 1.0), "averaged_inverted_cdf": (0.0, 1.0), "closest_observation": (-0.5, 1.5),
    "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
    **dict.fromkeys(("lower", "higher", "midpoint", "nearest"), (1.0, 1.0)),
}  # fmt: skip
"""Ways to find the place of a quantile among n elements, with the parameters alpha and beta of that place.

The place, from 0, is n q + alpha + q (1 - alpha - beta) - 1. Source: Hyndman and Fan, "Sample Quantiles in Statistical
Packages", The American Statistician 50 (4), 1996, whose definitions 1 to 9 are the first nine, in their order.
"""

_CHOOSING = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
"""Those that give an element, and nothing between two."""


def _whole(x: A, count: sint) -> A:
    """A number of elements as a tensor that stands beside rows of ranks: shape (1, 1)."""
    return full(type(x), (1, 1), 0, x.device).cast(dtypes.int32) + count


def _chosen(x: A, axis: int, ranks: A) -> Found[A]:
    """The elements of ranks (from 1) along an axis, and where each stands first; the axis is that of the ranks."""
    keys = key_rows(x, axis)
    at = from_rows(first_of(keys, kth_keys(keys, ranks)), x.shape, axis)
    return Found(gather(x, axis, at), at)


def _one(x: A, axis: int, ranks: A, keepdim: bool) -> Found[A]:
    values, at = _chosen(x, axis, ranks)
    return Found(values, at) if keepdim else Found(values.squeeze(axis), at.squeeze(axis))


def kthvalue(x: A, k: int, dim: int = -1, keepdim: bool = False) -> Found[A]:
    """The k-th least element along an axis (from 1), and where it is, the first of equals (int32).

    NaN is greater than every number.

    Raises:
      ValueError: if the axis has not ``k`` elements.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3, 1, 2], [6, 5, 4]]).kthvalue(2)
      Found(values=Tensor([2, 5]), indices=Tensor([2, 1]))
    """
    axis = x._axis(dim, "kthvalue")
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"kthvalue: k is an integer, got {k!r}")
    n = sure_of(x.shape[axis], k, x.shape) if x.ndim else 1
    if k < 1 or (isinstance(n, int) and k > n):
        raise ValueError(f"kthvalue: {k!r} of {n} elements along axis {dim} of shape {x.shape}")
    if x.ndim == 0:
        return Found(x, zeros_like(x, dtype=dtypes.int32))
    return _one(x, axis, _whole(x, k), keepdim)


def _median(x: A, axis: int | None, keepdim: bool, skip: bool) -> A | Found[A]:
    what = "nanmedian" if skip else "median"
    if axis is not None:
        return _median_along(x, x._axis(axis, what), keepdim, skip, what)
    check_nonempty(x, tuple(range(x.ndim)), what)
    value, _ = _median_along(x.flatten(), 0, False, skip, what)
    return value.reshape((1,) * x.ndim) if keepdim else value


def _median_along(x: A, axis: int, keepdim: bool, skip: bool, what: str) -> Found[A]:
    if x.ndim == 0:
        return Found(x, zeros_like(x, dtype=dtypes.int32))
    check_nonempty(x, (axis,), what)
    n = x.shape[axis]
    if x.dtype.kind != "float":
        return _one(x, axis, _whole(x, (n + 1) // 2), keepdim)
    nans = isnan(rows_along(x.detach(), axis)).sum(1, keepdim=True, dtype=dtypes.int32)
    if skip:
        return _one(x, axis, ((_whole(x, n + 1) - nans) // 2).maximum(1), keepdim)
    return _one(x, axis, nans.eq(0).where(_whole(x, (n + 1) // 2), _whole(x, n)), keepdim)


@overload
def median(x: A, axis: None = None, keepdim: bool = False) -> A: ...
@overload
def median(x: A, axis: int, keepdim: bool = False) -> Found[A]: ...
def median(x: A, axis: int | None = None, keepdim: bool = False) -> A | Found[A]:
    """The element in the middle of the order; of an even number the lower of the two, as PyTorch has it.

    Where there is a NaN, it is NaN. ``quantile(0.5)`` is what numpy calls the median.

    Returns:
      The median of all elements; or, along an axis, medians and where they are, the first of equals (int32).

    Raises:
      ValueError: if there is no element.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[3, 1, 2], [6, 5, 4]])
      >>> x.median()
      Tensor(3)
      >>> x.median(1)
      Found(values=Tensor([2, 5]), indices=Tensor([2, 1]))
    """
    return _median(x, axis, keepdim, skip=False)


@overload
def nanmedian(x: A, axis: None = None, keepdim: bool = False) -> A: ...
@overload
def nanmedian(x: A, axis: int, keepdim: bool = False) -> Found[A]: ...
def nanmedian(x: A, axis: int | None = None, keepdim: bool = False) -> A | Found[A]:
    """The :meth:`median` of the elements that are not NaN; NaN where there are none.

    Returns:
      As :meth:`median` does.

    Raises:
      ValueError: if there is no element.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3.0, float("nan"), 1.0, 2.0]).nanmedian()
      Tensor(2.)
    """
    return _median(x, axis, keepdim, skip=True)


def _fractions(x: A, q: float | Sequence[float] | A, what: str, wide: DType) -> tuple[A, tuple[int, ...]]:
    """The fractions of a quantile as a row of the dtype ``wide``; and their shape."""
    if isinstance(q, Array):
        if q.ndim > 1 or q.dtype.kind != "float":
            raise ValueError(f"{what}: q is one float or a vector of them, got {q.dtype.name} of shape {q.shape}")
        if q.device != x.device:
            raise ValueError(f"{what}: q on {q.device} for a tensor on {x.device}; use .to()")
        q = q.cast(wide)
        inside = (q >= 0) & (q <= 1)
        return inside.where(q, math.nan).reshape((1, q.numel())), q._ints()
    several = isinstance(q, (list, tuple))
    given: list[float] = []
    for value in q if isinstance(q, (list, tuple)) else (q,):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{what}: q is a number, several, or a tensor, got {q!r}")
        if not 0 <= value <= 1:
            raise ValueError(f"{what}: {value!r} is no fraction from 0 to 1")
        given.append(float(value))
    row = type(x)(given, device=x.device, dtype=wide)
    return row.reshape((1, len(given))), (len(given),) if several else ()


def _steps(rank: A, method: str) -> A:
    """Places of quantiles by methods that choose elements, or the middle of two, as whole numbers and halves."""
    down = rank.floor()
    even = rank.eq(down)
    if method == "inverted_cdf":
        return even.where(down, down + 1)
    if method == "averaged_inverted_cdf":
        return even.where(down + 0.5, down + 1)
    return (even & (down % 2).eq(1)).where(down, down + 1)  # closest_observation


def _quantile(x: A, q: float | Sequence[float] | A, axis: int | None, keepdim: bool, method: str, skip: bool) -> A:
    what = "nanquantile" if skip else "quantile"
    if method not in _POSITIONS:
        raise ValueError(f"{what}: interpolation {method!r}; there are {', '.join(_POSITIONS)}")
    place = None if axis is None else x._axis(axis, what)
    kept = tuple(1 if place is None or i == place else dim for i, dim in enumerate(x.shape))
    left = () if place is None else tuple(dim for i, dim in enumerate(x.shape) if i != place)
    x = floating(x)
    flat = x.flatten() if place is None or x.ndim == 0 else x
    place = place if place is not None and x.ndim else 0
    check_nonempty(flat, (place,), what)
    ranks = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    fractions, shape = _fractions(x, q, what, ranks)
    keys = key_rows(flat, place)
    nans = isnan(rows_along(flat.detach(), place)).sum(1, keepdim=True, dtype=dtypes.int32)
    last = _whole(x, flat.shape[place]) - 1
    if skip:
        last = (last - nans).maximum(0)
    # The rank as a whole number, from 0, and a fraction that goes to the next one.
    alpha, beta = _POSITIONS[method]
    top = last.cast(fractions.dtype)
    if alpha == beta == 1:
        rank = fractions * top
    else:
        rank = fractions * (top + 1) + (alpha + fractions * (1 - alpha - beta)) - 1
        if method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
            outside = (rank < 0) | (rank >= top)
            rank = outside.where(rank, _steps(rank, method))
        rank = isnan(rank).where(rank, rank.maximum(0).minimum(top))
    rank = rank.expand(keys.shape[0], rank.shape[1])
    below = rank.floor().cast(dtypes.int32).minimum(last).maximum(0)
    weight = rank - below.cast(rank.dtype)
    if method == "higher":
        below = below + (weight > 0).cast(dtypes.int32)
    elif method == "nearest":
        below = rounded(rank).cast(dtypes.int32).minimum(last).maximum(0)
    low = kth_keys(keys, below + 1)
    at = from_rows(first_of(keys, low), flat.shape, place)
    values = gather(flat, place, at)
    if method not in _CHOOSING:
        # The next in order is equal where there are more of the first, else the least of those above it.
        above, table = low.unsqueeze(2), keys.unsqueeze(1)
        upto = (table <= above).sum(2, dtype=dtypes.int32)
        more = (table > above).where(table, dtypes.max(keys.dtype)).min(2)
        high = ((upto >= below + 2) | weight.eq(0)).where(low, more)
        upper = gather(flat, place, from_rows(first_of(keys, high), flat.shape, place))
        part = from_rows(weight, flat.shape, place).cast(values.dtype)
        if method == "midpoint":
            part = (part > 0).where(part * 0 + 0.5, part)
        values = part.eq(0).where(values, _between(values, upper, part))
    bad = isnan(rank) if skip else isnan(rank) | (nans > 0)
    values = from_rows(bad, flat.shape, place).where(math.nan, values)
    values = values.permute(place, *(i for i in range(flat.ndim) if i != place))
    return values.reshape((*shape, *(kept if keepdim else left)))


def _between(low: A, high: A, weight: A) -> A:
    """From ``low`` to ``high``, from the nearer end, so that either is exact."""
    gap = high - low
    return (weight < 0.5).where(low + gap * weight, high - gap * (1 - weight))


def _weighted(x: A, q: Any, axis: int | None, keepdim: bool, method: str, given: Any, skip: bool) -> A:
    """The first element in order at which the sum of weights reaches a fraction of them all."""
    what = "nanquantile" if skip else "quantile"
    if method != "inverted_cdf":
        raise ValueError(f"{what}: weights are known to the method 'inverted_cdf', not to {method!r}")
    floats, place = floating(x), None if axis is None else x._axis(axis, what)
    weights: Any = given if isinstance(given, Array) else beside(type(x), given, (x,))
    if weights.shape != x.shape:
        if place is None or weights.shape != (x.shape[place],):
            raise ValueError(f"{what}: weights of shape {weights.shape} for elements of shape {x.shape}, axis {axis}")
        weights = weights.reshape(tuple(-1 if i == place else 1 for i in range(x.ndim))).expand(*x.shape)
    left = tuple(1 if place is None or i == place else n for i, n in enumerate(x.shape))
    flat, along = (floats.flatten(), weights.flatten()) if place is None else (floats, weights)
    place = place or 0
    check_nonempty(flat, (place,), what)
    fractions, shape = _fractions(floats, q, what, dtypes.float64)
    along = along.cast(fractions.dtype)
    wrong = ((along >= 0) & isfinite(along)).logical_not().any(place, keepdim=True)
    wrong = wrong | along.sum(place, keepdim=True).eq(0)
    if weights is not given and wrong.any().item():
        raise ValueError(f"{what}: weights are finite, none is below 0, and one is above it; got {given!r}")
    along = isnan(flat).where(0, along) if skip else along
    values, at = sort(flat, place)
    upto = cumsum(gather(along, place, at), place)
    total = upto.max(place, keepdim=True)
    reached, wrong = upto / total, wrong | total.eq(0)
    row = fractions.reshape((-1, *(1 for _ in flat.shape)))
    before = ((reached < row) | reached.eq(0)).sum(place + 1, keepdim=True, dtype=dtypes.int32)
    before = before.minimum(flat.shape[place] - 1)
    out = gather(values.unsqueeze(0).expand(row.shape[0], *values.shape), place + 1, before)
    missing = isnan(flat).all(place, keepdim=True) if skip else isnan(flat).any(place, keepdim=True)
    out = (isnan(row) | (missing | wrong).unsqueeze(0)).where(math.nan, out)
    found: A = out.reshape((*shape, *(left if keepdim else out.squeeze(place + 1).shape[1:])))
    return found


def _rows(x: A, axes: tuple[int, ...]) -> A:
    """The elements along some axes as a last one."""
    left = [i for i in range(x.ndim) if i not in axes]
    rows: A = x.permute(*left, *axes).reshape((*(x.shape[i] for i in left), prod(x.shape[i] for i in axes)))
    return rows


def _along_several(x: A, q: Any, axes: Any, keepdim: bool, method: str, weights: Any, skip: bool) -> A:
    """A quantile of the elements along several axes: of their rows."""
    what = "nanquantile" if skip else "quantile"
    places, whole = axes_of(x, axes, what), x.shape
    if not places:  # each element by itself
        places, x = (x.ndim,), x.unsqueeze(-1)
    rows = _rows(x, places)
    if weights is None:
        out = _quantile(rows, q, rows.ndim - 1, False, method, skip)
    else:
        heavy: Any = weights if isinstance(weights, Array) else beside(type(x), weights, (x,))
        if heavy.shape != whole:
            raise ValueError(f"{what}: weights of shape {heavy.shape} for elements of shape {whole}, axes {axes}")
        heavy = heavy.reshape(x.shape)
        out = _weighted(rows, q, rows.ndim - 1, False, method, _rows(heavy, places), skip)
    before = out.shape[: out.ndim - rows.ndim + 1]
    shape = (*before, *(1 if i in places else size for i, size in enumerate(whole)))
    shaped: A = out.reshape(shape) if keepdim else out
    return shaped


def quantile(x: A, q: float | Sequence[float] | A, axis: Axes = None, keepdim: bool = False,
             interpolation: Interpolation = "linear", *, weights: Any = None) -> A:  # fmt: skip
    """Elements such that a fraction ``q`` of all is not above: NaN where one is NaN.

    Args:
      q: from 0 to 1, a number, several, or a tensor (where a fraction outside gives NaN).
      axis: along which, one or several; None for all elements.
      interpolation: what stands between two elements: ``linear``, ``midpoint``, or one of the two: ``lower``,
        ``higher``, ``nearest``; or one of the other definitions that Hyndman and Fan give: ``inverted_cdf``,
        ``averaged_inverted_cdf``, ``closest_observation``, ``interpolated_inverted_cdf``, ``hazen``, ``weibull``,
        ``median_unbiased``, ``normal_unbiased``. numpy calls it ``method``.
      weights: how much each element counts, of the shape of ``x``, or one for each place along the axis; by the method
        ``inverted_cdf`` alone. They are finite, none is below 0, and their sum is above it; a tensor of others, which
        is not looked into, gives NaN.

    Returns:
      With several fractions, they are the first axis.

    Raises:
      ValueError: if a fraction is not from 0 to 1, there is no such interpolation, no element, or weights are wrong.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, 1.0, 2.0, 3.0]).quantile([0.5, 1.0])
      Tensor([2.5, 4. ])
    """
    if axis is not None and not isinstance(axis, int):
        return _along_several(x, q, axis, keepdim, interpolation, weights, skip=False)
    if weights is not None:
        return _weighted(x, q, axis, keepdim, interpolation, weights, skip=False)
    return _quantile(x, q, axis, keepdim, interpolation, skip=False)


def nanquantile(x: A, q: float | Sequence[float] | A, axis: Axes = None, keepdim: bool = False,
                interpolation: Interpolation = "linear", *, weights: Any = None) -> A:  # fmt: skip
    """The :meth:`quantile` of the elements that are not NaN; NaN where there are none.

    Args:
      q: as of :meth:`quantile`, and so are the others.

    Raises:
      ValueError: if a fraction is not from 0 to 1, there is no such interpolation, no element, or weights are wrong.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, float("nan"), 2.0, 3.0]).nanquantile(0.5)
      Tensor(3.)
    """
    if axis is not None and not isinstance(axis, int):
        return _along_several(x, q, axis, keepdim, interpolation, weights, skip=True)
    if weights is not None:
        return _weighted(x, q, axis, keepdim, interpolation, weights, skip=True)
    return _quantile(x, q, axis, keepdim, interpolation, skip=True)
