"""Writing at computed positions: elements along an axis are replaced by values, or combined with them, one by one."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops
from tg_lazy.trackers import contiguous
from tg_shape import ShapeTracker, prod, sint


def places(st: ShapeTracker, axis: int, shape: tuple[sint, ...]) -> ShapeTracker:
    """Where the elements of a tensor lie for a value of ``shape`` each: (*shape, n), n being the size along ``axis``.

    Args:
      st: how the tensor lies in memory.
      axis: the one along which positions are computed.
      shape: of the values, which may be smaller than the tensor along other axes.
    """
    n = st.shape[axis]
    box = st.shrink([(0, n if i == axis else dim) for i, dim in enumerate(shape)])
    last = box.permute((*(i for i in range(len(shape)) if i != axis), axis))
    single = (*shape[:axis], 1, *shape[axis + 1 :], n)
    return last.reshape(single).expand((*shape, n))


def updated_in_order(
    table: LazyBuffer, axis: int, index: LazyBuffer, value: LazyBuffer, op: Ops | None = None
) -> LazyBuffer:
    """``table`` in new memory, with ``value`` at the positions ``index`` along an axis, one after the other.

    Args:
      table: of any shape.
      axis: one of its axes.
      index: positions, of as many axes, not larger along the others; nothing is written for those out of range.
      value: of the shape of the index, and the dtype of the table.
      op: ADD, MUL or MAX, with which an element is combined with each value for it; None to replace it.
    """
    if 0 in index.shape or 0 in table.shape:
        return table
    return table.clone().update(value, index, places(contiguous(table.shape), axis, index.shape), op)


def fetched(
    table: LazyBuffer, axis: int, index: LazyBuffer, value: LazyBuffer, op: Ops | None = None
) -> tuple[LazyBuffer, LazyBuffer]:
    """:func:`updated_in_order`, and what each value found in its place: shape of the index, 0 where out of range.

    Both lie in one new memory.
    """
    if 0 in index.shape or 0 in table.shape:
        return table, LazyBuffer.const(0, table.dtype, index.shape, table.device)
    size, total = prod(table.shape), prod(table.shape) + prod(index.shape)
    memory = LazyBuffer.empty((total,), table.dtype, table.device)
    memory = memory.shrink(((0, size),)).assign(table.reshape((size,))).base
    front = memory.st.shrink(((0, size),)).reshape(table.shape)
    back = memory.st.shrink(((size, total),)).reshape(index.shape)
    new = memory.update(value, index, places(front, axis, index.shape), op, back)
    return new.seen(front), new.seen(back)


def arranged(axis: int, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
    """``value`` in new memory, each element at its position along an axis: along it, the positions are all there are.

    Args:
      axis: one of the axes of the value.
      index: positions, of the value's shape.
      value: of any shape.
    """
    if 0 in value.shape:
        return value
    memory = LazyBuffer.empty(value.shape, value.dtype, value.device)
    return memory.update(value, index, places(contiguous(value.shape), axis, value.shape), distinct=True)
