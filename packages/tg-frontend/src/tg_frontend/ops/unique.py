"""Elements that differ: each of them once, how often it is there, and which is there most often."""

from __future__ import annotations

from math import prod

from tg_dtype import ConstType, dtypes
from tg_runtime import capturing

from ..array.array import A
from ..array.axes import check_nonempty, counter, iota
from .creation import zeros, zeros_like
from .found import Found
from .gather_scatter import gather
from .indexing import getitem
from .order_keys import elements, from_rows, key_rows, order_keys
from .row_order import ordered
from .scan import cummax, cumsum
from .searching import lower_bound
from .updating import arrange, update

_SPAN = 1 << 16  # counters that are worth having in any case, and
_COUNTERS = 2  # so many for each element


def _given(*parts: A | None) -> A | tuple[A, ...]:
    """What was asked for: one tensor, or several."""
    found = tuple(part for part in parts if part is not None)
    return found if len(found) > 1 else found[0]


def _length(slices: A, what: str) -> int:
    """How many elements or slices there are.

    Raises:
      ValueError: if that is symbolic.
    """
    if any(not isinstance(dim, int) for dim in slices.shape):
        raise ValueError(f"{what}: a tensor of symbolic shape {slices.shape}")
    return slices._ints()[0]


def _slices(x: A, axis: int | None) -> A:
    """What is compared, along the first axis: the elements of a flat tensor, or slices."""
    if axis is None or x.ndim == 0:
        return x.flatten()
    return x.permute(axis, *(i for i in range(x.ndim) if i != axis))


def _unsliced(slices: A, axis: int | None) -> A:
    """Slices with their axis where it was."""
    if axis is None or slices.ndim == 1:
        return slices
    back = list(range(1, slices.ndim))
    back.insert(axis, 0)
    return slices.permute(*back)


def _differs(rows: A, apart: A | None = None) -> A:
    """Where a slice along the first axis differs from the one before; the first one does, and those ``apart``."""
    n = rows.shape[0]
    before = rows.pad(((1, 0), *((0, 0) for _ in rows.shape[1:]))).shrink(((0, n), *(None for _ in rows.shape[1:])))
    other = rows.ne(before)
    if rows.ndim > 1:
        other = other.reshape((n, rows.numel() // n)).any(1)
    other = other | iota(type(rows), n, dtypes.int32, rows.device).eq(0)
    return other if apart is None else other | apart


def _strange(slices: A) -> A:
    """Which slices along the first axis have a NaN."""
    found = slices.ne(slices)
    return found if found.ndim == 1 else found.reshape((found.shape[0], prod(found.shape[1:]))).any(1)


def _runs(first: A, size: int | None) -> tuple[A, A, A, A]:
    """Of runs that begin where ``first`` is: which each element is of, their starts, lengths, and which there are."""
    n = first.shape[0]
    number = cumsum(first.cast(dtypes.int32), 0, dtype=dtypes.int32).contiguous()
    total = number.shrink(((n - 1, n),))
    count = int(total.item()) if size is None else size
    turns = iota(type(first), count + 1, dtypes.int32, first.device)
    starts = lower_bound(number.reshape((1, n)), (turns + 1).reshape((1, count + 1))).reshape((count + 1,)).contiguous()
    start, end = starts.shrink(((0, count),)), starts.shrink(((1, count + 1),))
    return number - 1, start, end - start, turns.shrink(((0, count),)) < total


def _order_of_slices(keys: A) -> A:
    """The order of the rows of a matrix of keys, by their first elements that differ."""
    n, width = keys.shape
    assert isinstance(width, int)
    order = iota(type(keys), n, dtypes.int32, keys.device)
    for column in reversed(range(width)):
        part = keys.shrink((None, (column, column + 1))).reshape((n,))
        part = getitem(part, order).reshape((1, n)).contiguous()
        order = getitem(order, ordered(part).reshape((n,))).contiguous()
        if not capturing():
            order.realize()
    return order


def _by_counting(x: A, keys: A, low: int, span: int, inverse: bool, counts: bool) -> A | tuple[A, ...]:
    """For keys that lie close together: a table says which are there."""
    at = (keys - low).cast(dtypes.int32)
    table = update(zeros(type(x), span, device=x.device, dtype=dtypes.int32), at, 1).contiguous()
    number = cumsum(table.ne(0).cast(dtypes.int32), 0, dtype=dtypes.int32).contiguous()
    count = int(number.shrink(((span - 1, span),)).item())
    turns = iota(type(x), count, dtypes.int32, x.device) + 1
    places = lower_bound(number.reshape((1, span)), turns.reshape((1, count))).reshape((count,)).contiguous()
    return _given(
        elements(places.cast(keys.dtype) + low, x.dtype),
        (getitem(number, at) - 1).reshape(x.shape) if inverse else None,
        getitem(table, places) if counts else None,
    )


def unique(x: A, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, return_index: bool = False, size: int | None = None,
           fill_value: ConstType = 0, equal_nan: bool = True) -> A | tuple[A, ...]:  # fmt: skip
    """Each element that is there, once and in order; or each slice along an axis. All NaN are one.

    Args:
      sorted_: for those who come from elsewhere: the result is in order in either case.
      return_inverse: where each element is in the result, too (int32).
      return_counts: how often each of the result is there, too (int32).
      axis: along which slices are compared; None for elements of the flat tensor.
      return_index: where each of the result is first (int32), too; it comes before the others.
      size: how many; where there are fewer, ``fill_value`` follows. If it is not given, the tensor is computed at once
        to find out.
      fill_value: see there.
      equal_nan: False if every NaN is one of its own, as is every slice that has one.

    Returns:
      The elements, and what else was asked for.

    Raises:
      ValueError: if ``size`` is negative, or the shape is symbolic.
      TypeError: if ``fill_value`` is no number.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 3]).unique(return_counts=True)
      (Tensor([1, 3]), Tensor([1, 2]))
    """
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise ValueError(f"unique: {size!r} is not a number of elements")
    if not isinstance(fill_value, (bool, int, float)):
        raise TypeError(f"unique: fill_value is a number, got {fill_value!r}")
    x = x.detach()
    place = None if axis is None else x._axis(axis, "unique")
    slices = _slices(x, place)
    shape = x.shape if axis is None else (slices.shape[0],)
    n = _length(slices, "unique")
    if n == 0:
        none = zeros(type(x), 0, device=x.device, dtype=dtypes.int32)
        inverse = none if axis is not None else none.reshape(x.shape)
        return _given(
            x if axis is not None else slices, none if return_index else None, inverse if return_inverse else None,
            none if return_counts else None,
        )  # fmt: skip
    keys = order_keys(slices).contiguous()
    lone = None if equal_nan or slices.dtype.kind != "float" else _strange(slices).contiguous()
    if slices.ndim == 1:
        if size is None and lone is None and not return_index and not capturing():
            low, high = int(keys.min().item()), int(keys.max().item())
            if high - low < max(_SPAN, _COUNTERS * n):
                return _by_counting(x, keys, low, high - low + 1, return_inverse, return_counts)
        order = ordered(keys.reshape((1, n))).reshape((n,)).contiguous()
    else:
        order = _order_of_slices(keys.reshape((n, keys.numel() // n)))
    number, start, length, there = _runs(
        _differs(getitem(keys, order), None if lone is None else getitem(lone, order)), size
    )
    index = getitem(order, start).contiguous()
    values = getitem(slices, index)
    if size is not None:
        values = there.reshape((size, *(1 for _ in values.shape[1:]))).where(values, fill_value)
    return _given(
        _unsliced(values, place),
        index if return_index else None,
        arrange(number, order).reshape(shape) if return_inverse else None,
        length if return_counts else None,
    )


def unique_consecutive(x: A, return_inverse: bool = False, return_counts: bool = False,
                       axis: int | None = None) -> A | tuple[A, ...]:  # fmt: skip
    """The first of each run of equal elements, or of equal slices along an axis. Computes the tensor at once.

    Args:
      return_inverse: which run each element is of, too (int32).
      return_counts: how long each run is, too (int32).
      axis: along which slices are compared; None for elements of the flat tensor.

    Returns:
      The elements, and what else was asked for.

    Raises:
      ValueError: if the shape is symbolic.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 3, 1, 3]).unique_consecutive()
      Tensor([3, 1, 3])
    """
    x = x.detach()
    place = None if axis is None else x._axis(axis, "unique_consecutive")
    slices = _slices(x, place)
    n = _length(slices, "unique_consecutive")
    if n == 0:
        none = zeros(type(x), 0, device=x.device, dtype=dtypes.int32)
        inverse = none if axis is not None else none.reshape(x.shape)
        return _given(
            x if axis is not None else slices, inverse if return_inverse else None, none if return_counts else None
        )
    number, start, length, _ = _runs(_differs(order_keys(slices).contiguous()), None)
    values = _unsliced(getitem(slices, start), place)
    shape = x.shape if axis is None else (n,)
    return _given(values, number.reshape(shape) if return_inverse else None, length if return_counts else None)


def mode(x: A, dim: int = -1, keepdim: bool = False) -> Found[A]:
    """The element that is there most often along an axis, the least of several, and where it is first (int32).

    Raises:
      ValueError: if there is no element.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3, 1, 3, 1, 2]]).mode()
      Found(values=Tensor([1]), indices=Tensor([1]))
    """
    axis = x._axis(dim, "mode")
    if x.ndim == 0:
        return Found(x, zeros_like(x, dtype=dtypes.int32))
    check_nonempty(x, (axis,), "mode")
    n = x.shape[axis]
    keys = key_rows(x, axis)
    order = ordered(keys).contiguous()
    keys, width = gather(keys, 1, order).contiguous(), keys.shape[1]
    at = counter(keys, 1).cast(dtypes.int32)
    before = keys.pad(((0, 0), (1, 0))).shrink((None, (0, width)))
    first = (keys.ne(before) | at.eq(0)).where(at, 0)
    start = cummax(first, 1)[0]
    reach = at - start
    if not isinstance(n, int):
        reach = (at < n).where(reach, -1)
    best = gather(start, 1, reach.argmax(1, keepdim=True))
    place = from_rows(gather(order, 1, best), x.shape, axis)
    values = gather(x, axis, place)
    return Found(values, place) if keepdim else Found(values.squeeze(axis), place.squeeze(axis))
