"""Order: sort, argsort, msort."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.array import A
from .creation import zeros_like
from .found import Found
from .gather_scatter import gather
from .order_keys import from_rows, key_rows
from .row_order import ordered


def sort(x: A, dim: int | None = -1, descending: bool = False, stable: bool = True) -> Found[A]:
    """The elements in order along an axis, and where they were (int32). Equal ones always keep their order.

    NaN is above all numbers: the last one, or with ``descending`` the first one.

    Args:
      dim: the axis; all elements in one if None, as in numpy.
      stable: for those who come from elsewhere: the order is stable in either case.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> values, where = Tensor([3, 1, 2]).sort()
      >>> values.tolist(), where.tolist()
      ([1, 2, 3], [1, 2, 0])
    """
    if dim is None:
        x, dim = x.flatten(), 0
    axis = x._axis(dim, "sort")
    if x.ndim == 0 or x.numel() == 0:
        return Found(x, zeros_like(x, dtype=dtypes.int32))
    n = x.shape[axis]
    order = ordered(key_rows(x, axis, descending))
    at = from_rows(order.shrink((None, (0, n))), x.shape, axis)
    return Found(gather(x, axis, at), at)


def argsort(x: A, dim: int | None = -1, descending: bool = False, stable: bool = True) -> A:
    """Where the elements in order are along an axis (int32); its arguments are those of :meth:`sort`.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).argsort()
      Tensor([1, 2, 0])
    """
    return sort(x, dim, descending)[1]


def msort(x: A) -> A:
    """The elements in order along the first axis.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3, 1], [2, 4]]).msort().tolist()
      [[2, 1], [3, 4]]
    """
    return sort(x, 0)[0]
