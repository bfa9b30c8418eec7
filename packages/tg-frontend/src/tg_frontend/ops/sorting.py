"""Order: sort, argsort.

Every element is compared with every other one of its row, in one kernel that takes no memory for it: the work grows
with the square of the row's length.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import sint

from ..array.array import A
from ..array.axes import iota
from .creation import zeros_like
from .gather_scatter import gather
from .predicates import isnan


def _ordered(x: A, axis: int, descending: bool, count: sint) -> A:
    """The positions of the first ``count`` elements in order."""
    x = x.detach()
    n = x.shape[axis]
    mine = x.unsqueeze(axis + 1)  # (…, i, 1, …)
    other = x.unsqueeze(axis)  # (…, 1, j, …)
    low, high = (mine, other) if descending else (other, mine)
    first = low < high
    same = mine.eq(other)
    if x.dtype.kind == "float":
        first = first | (isnan(high) & ~isnan(low))
        same = same | (isnan(mine) & isnan(other))
    tail = (1,) * (x.ndim - 1 - axis)
    i = iota(type(x), n, dtypes.int32, x.device)
    earlier = i.reshape((1, n, *tail)) < i.reshape((n, 1, *tail))
    rank = (first | (same & earlier)).sum(axis + 1, dtype=dtypes.int32)
    place = iota(type(x), count, dtypes.int32, x.device).reshape((count, 1, *tail))
    hit = rank.unsqueeze(axis).eq(place)
    return hit.where(i.reshape((1, n, *tail)), 0).sum(axis + 1, dtype=dtypes.int32)


def sort(x: A, dim: int = -1, descending: bool = False, stable: bool = True) -> tuple[A, A]:
    """The elements in order along an axis, and where they were (int32). Equal ones always keep their order.

    Args:
      stable: for those who come from elsewhere: the order is stable in either case.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> values, where = Tensor([3, 1, 2]).sort()
      >>> values.tolist(), where.tolist()
      ([1, 2, 3], [1, 2, 0])
    """
    axis = x._axis(dim, "sort")
    if x.ndim == 0 or x.numel() == 0:
        return x, zeros_like(x, dtype=dtypes.int32)
    at = _ordered(x, axis, descending, x.shape[axis])
    return gather(x, axis, at), at


def argsort(x: A, dim: int = -1, descending: bool = False, stable: bool = True) -> A:
    """Where the elements in order are along an axis (int32); ``stable`` is as of :meth:`sort`.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).argsort()
      Tensor([1, 2, 0])
    """
    return sort(x, dim, descending)[1]
