"""Row-sparse gradients: of a table of which a few rows were looked up, only those rows are kept.

A :class:`RowSparse` goes through differentiation in the place of a node, from the lookup to the table. It stays sparse
where gradients of one table add up; whatever else is to be done with it is done with the dense table.
"""

from __future__ import annotations

from tg_dtype import DType, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import prod, sint, upper

from .base import Function, Grads, held, splat
from .lookup import Take, guarded, put_back
from .movement import Cat
from .parallel_updates import updated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def row_dtype(count: sint) -> DType:
    """The type of the indices of so many rows."""
    return dtypes.int32 if upper(count) <= dtypes.max(dtypes.int32) else dtypes.int64


class RowSparse:
    """A tensor that is zero but for some rows.

    Args:
      index: which rows, shape (m,), of :func:`row_dtype`. Where a row is named several times its values add up; -1
        names none.
      values: shape (m, …).
      shape: of the whole tensor, (n, …).
      coalesced: whether the indices rise, and none is -1.
    """

    __slots__ = ("coalesced", "index", "shape", "values")

    def __init__(
        self, index: LazyBuffer, values: LazyBuffer, shape: tuple[sint, ...], coalesced: bool = False
    ) -> None:
        self.index, self.values, self.shape, self.coalesced = index, values, shape, coalesced

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.values.dtype

    @property
    def device(self) -> str:
        """Name of the device."""
        return self.values.device

    @property
    def base(self) -> LazyBuffer:
        """The node that the values are computed by."""
        return self.values.base

    def alu(self, op: Ops, other: RowSparse | LazyBuffer) -> RowSparse | LazyBuffer:
        """The sum with another gradient of the same table: the rows of both, or a dense table."""
        if op is not Ops.ADD:
            raise TypeError(f"a row-sparse gradient is added to others, not combined by {op.name}")
        if type(other) is not RowSparse:
            return self.added_to(other)  # type: ignore[arg-type]
        index, values = (Cat(0).forward(*pair) for pair in ((self.index, other.index), (self.values, other.values)))
        return RowSparse(index, values, self.shape)

    def added_to(self, table: LazyBuffer) -> LazyBuffer:
        """A dense table with these rows added, in new memory."""
        wide = table.cast(sum_acc_dtype(table.dtype))
        at = stretched(self.index, self.values.shape)
        return updated(wide, 0, at, self.values.cast(wide.dtype), Ops.ADD).cast(table.dtype)

    def dense(self) -> LazyBuffer:
        """All rows."""
        return self.added_to(LazyBuffer.const(0, self.dtype, self.shape, self.device))

    def copy_to(self, device: str) -> RowSparse:
        """The same rows on another device."""
        return RowSparse(self.index.copy_to(device), self.values.copy_to(device), self.shape, self.coalesced)

    def empty(self) -> RowSparse:
        """The same shape without rows."""
        none = [(0, 0)], [(0, 0), *((0, dim) for dim in self.shape[1:])]
        return RowSparse(self.index.shrink(none[0]), self.values.shrink(none[1]), self.shape, True)


def stretched(index: LazyBuffer, shape: tuple[sint, ...]) -> LazyBuffer:
    """The index of a row at each of its elements."""
    return index.reshape((index.shape[0], *(1 for _ in shape[1:]))).expand(shape)


def summed(before: Any, part: Any) -> Any:
    """The sum of two gradients, of which one or both may be row-sparse."""
    if type(part) is RowSparse and type(before) is not RowSparse:
        return part.added_to(before)
    return before.alu(Ops.ADD, part)


class Lookup(Function):
    """Rows of a table: shape (n, …) and an index of shape (m,) give (m, …).

    A position outside of ``0 <= i < n`` reads as 0.

    Args:
      padding: a row that gets no gradient; None if all do.
      sparse: whether the gradient is a :class:`RowSparse`. One that is to be differentiated again is dense.
    """

    __slots__ = ("index", "padding", "shape", "sparse")

    def __init__(self, padding: int | None, sparse: bool) -> None:
        self.padding, self.sparse = padding, sparse

    def forward(self, x: LazyBuffer, index: LazyBuffer) -> LazyBuffer:
        self.index, self.shape = index, x.shape
        return Take().forward(x.reshape((1, *self._matrix())), index).reshape((index.shape[0], *x.shape[1:]))

    def _matrix(self) -> tuple[sint, sint]:
        return self.shape[0], prod(self.shape[1:])

    def backward(self, grad: LazyBuffer) -> Grads:
        rows, width = self._matrix()
        index = held(self.index)
        index = guarded(index.cast(row_dtype(rows)), index, rows)
        if self.padding is not None:
            index = index.alu(Ops.CMPEQ, splat(index, self.padding)).alu(Ops.WHERE, splat(index, -1), index)
        if self.sparse and type(grad) is LazyBuffer:
            return RowSparse(index, grad, self.shape), None  # type: ignore[return-value]
        shape = (1, index.shape[0], width)
        at = index.reshape((1, index.shape[0], 1)).expand(shape)
        return put_back(grad.reshape(shape), at, (1, rows, width)).reshape(self.shape), None
