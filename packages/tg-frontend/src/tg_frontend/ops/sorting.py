"""Order: sort, argsort, topk.

Every element is compared with every other one of its row, in one kernel that takes no memory for it: the work grows
with the square of the row's length.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import sint

from ..array.ingest import sure_of
from .neural import Neural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Sorting(Neural):
    """Sorting along an axis. Equal elements keep their order; NaN counts as the greatest."""

    __slots__ = ()

    def _ordered(self, axis: int, descending: bool, count: sint) -> Self:
        """The positions of the first ``count`` elements in order."""
        x = self.detach()
        n = x.shape[axis]
        mine = x.unsqueeze(axis + 1)  # (…, i, 1, …)
        other = x.unsqueeze(axis)  # (…, 1, j, …)
        low, high = (mine, other) if descending else (other, mine)
        first = low < high
        same = mine.eq(other)
        if x.dtype.kind == "float":
            first = first | (high.isnan() & ~low.isnan())
            same = same | (mine.isnan() & other.isnan())
        tail = (1,) * (x.ndim - 1 - axis)
        i = x._iota(n, dtypes.int32, x.device)
        earlier = i.reshape((1, n, *tail)) < i.reshape((n, 1, *tail))
        rank = (first | (same & earlier)).sum(axis + 1, dtype=dtypes.int32)
        place = x._iota(count, dtypes.int32, x.device).reshape((count, 1, *tail))
        hit = rank.unsqueeze(axis).eq(place)
        return hit.where(i.reshape((1, n, *tail)), 0).sum(axis + 1, dtype=dtypes.int32)

    def sort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> tuple[Self, Self]:
        """The elements in order along an axis, and where they were (int32). Equal ones always keep their order.

        Args:
          stable: for those who come from elsewhere: the order is stable in either case.

        Raises:
          IndexError: the axis is out of range.

        Example:
            >>> from tg_frontend import Tensor
            >>> values, where = Tensor([3, 1, 2], device="NUMPY").sort()
            >>> values.tolist(), where.tolist()
            ([1, 2, 3], [1, 2, 0])
        """
        axis = self._axis(dim, "sort")
        if self.ndim == 0 or self.numel() == 0:
            return self, self.zeros_like(dtype=dtypes.int32)
        at = self._ordered(axis, descending, self.shape[axis])
        return self.gather(axis, at), at

    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Self:
        """Where the elements in order are along an axis (int32); ``stable`` is as of :meth:`sort`.

        Raises:
          IndexError: the axis is out of range.
        """
        return self.sort(dim, descending)[1]

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The ``k`` largest (or smallest) elements along an axis, in order, and where they are (int32).

        Args:
          sorted_: for those who come from elsewhere: the result is in order in either case.

        Raises:
          ValueError: the axis has fewer than ``k`` elements.
          IndexError: the axis is out of range.
        """
        axis = self._axis(dim, "topk")
        n = sure_of(self.shape[axis], k, self.shape) if self.ndim and isinstance(k, int) else 1
        if not isinstance(k, int) or k < 0 or (isinstance(n, int) and k > n):
            raise ValueError(f"topk: {k!r} of {n} elements along axis {dim} of shape {self.shape}")
        if self.ndim == 0 or k == 0:
            out = self if self.ndim == 0 else self.shrink([(0, 0) if i == axis else None for i in range(self.ndim)])
            return out, out.zeros_like(dtype=dtypes.int32)
        at = self._ordered(axis, largest, k)
        return self.gather(axis, at), at
