"""Updates side by side: of values that may be for one element, as many are combined at once as the device has units.

In the order of its values, an update is serial along the axis of its positions. Where that leaves units without work,
one of two other ways may cost less:

* *parts*: the values are cut into parts, each of which has a table of its own; then the tables are combined. This suits
  small tables;
* *segments*: positions are sorted, so that values for one element stand together, and cut into pieces. A piece combines
  the values of each element that it meets; what began in it goes to the table side by side, as no other piece began the
  same, and the first of each piece, which may go on with the one before, is a shorter update of the same kind.

Either way the result is the same every time; floats are added in another order than one by one.
"""

from __future__ import annotations

from math import prod

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.cost import Limits, limits_of, update_parts, update_sorts
from tg_lazy.ops import identity
from tg_lazy.settings.context import STRICT
from tg_lazy.trackers import contiguous

from .base import splat
from .radix import order_of, running_sums
from .updating import places, updated_in_order


def updated(table: LazyBuffer, axis: int, index: LazyBuffer, value: LazyBuffer, op: Ops | None = None) -> LazyBuffer:
    """``table`` in new memory, with ``value`` at the positions ``index`` along an axis, as if in their order.

    Args:
      table: of any shape.
      axis: one of its axes.
      index: positions, of as many axes, not larger along the others; nothing is written for those out of range.
      value: of the shape of the index, and the dtype of the table.
      op: ADD, MUL or MAX, with which an element is combined with each value for it; None to replace it.
    """
    if 0 in index.shape or 0 in table.shape:
        return table
    for one in (table, index, value):
        if type(one) is not LazyBuffer:
            return one.updated(table, axis, index, value, op)  # type: ignore[attr-defined, no-any-return]
    sizes = (*table.shape, *index.shape)
    alike = all(a == b for i, (a, b) in enumerate(zip(table.shape, index.shape, strict=True)) if i != axis)
    rounds = op in (Ops.ADD, Ops.MUL) and dtypes.is_float(table.dtype)
    if alike and all(isinstance(dim, int) for dim in sizes) and not (rounds and STRICT.value):
        numbers = [dim for dim in index.shape if isinstance(dim, int)]
        pre, m, post = prod(numbers[:axis]), numbers[axis], prod(numbers[axis + 1 :])
        n, limits = table.shape[axis], limits_of(table.device)
        assert isinstance(n, int)
        parts = update_parts(m, n, pre * post, limits) if op is not None else 1
        rows = pre if _one_for_all(index, axis) else pre * post
        if update_sorts(m, n, rows, pre * post, parts, limits) and m * pre * max(post, 1) < 1 << 31:
            return _in_segments(table, (pre, n, post), rows, index, value, op, limits)
        if parts > 1:
            assert op is not None
            return _in_parts(table, (pre, n, post), parts, index.reshape((pre, m, post)), value, op)
    return updated_in_order(table, axis, index, value, op)


def _one_for_all(index: LazyBuffer, axis: int) -> bool:
    """Whether a position is the same for all elements behind its axis."""
    behind = zip(index.st.views[-1].strides[axis + 1 :], index.shape[axis + 1 :], strict=True)
    return all(stride == 0 or dim == 1 for stride, dim in behind)


def _in_parts(
    table: LazyBuffer, shape: tuple[int, int, int], parts: int, index: LazyBuffer, value: LazyBuffer, op: Ops
) -> LazyBuffer:
    """A table for each part of the values, and then all tables with the one that is given."""
    pre, n, post = shape
    m = index.shape[1]
    assert isinstance(m, int)
    length = -(-m // parts)
    fill, cut = parts * length - m, (pre, parts, length, post)
    value = value.reshape(index.shape)
    if fill:
        widths = ((0, 0), (0, fill), (0, 0))
        index = index.alu(Ops.ADD, splat(index, 1)).pad(widths)  # positions from 1 on: what is padded is out of range
        index, value = index.alu(Ops.SUB, splat(index, 1)), value.pad(widths)
    none = LazyBuffer.const(identity(op, table.dtype), table.dtype, (pre, parts, n, post), table.device)
    tables = updated_in_order(none, 2, index.reshape(cut), value.reshape(cut), op)
    return table.alu(op, tables.reduce(op, (1,)).reshape(table.shape))


def _in_segments(
    table: LazyBuffer, shape: tuple[int, int, int], rows: int, index: LazyBuffer, value: LazyBuffer, op: Ops | None,
    limits: Limits,
) -> LazyBuffer:  # fmt: skip
    """Values in the order of their positions, then in pieces."""
    pre, n, post = shape
    m = index.size
    assert isinstance(m, int)
    m //= pre * post
    cut = (pre, m, post)
    at, width = index.reshape(cut), post
    if rows == pre:
        at = at.shrink(((0, pre), (0, m), (0, 1)))
    else:
        width = 1
    at = at.permute((0, 2, 1)).reshape((rows, m))
    inside = at.alu(Ops.CMPLT, splat(at, n)).alu(Ops.AND, at.alu(Ops.CMPLT, splat(at, 0)).alu(Ops.NOT))
    keys = inside.alu(Ops.WHERE, at, splat(at, n)).cast(dtypes.uint32).contiguous()
    order = order_of(keys, n.bit_length()).contiguous()
    base = LazyBuffer.iota(rows, dtypes.int32, table.device).reshape((rows, 1)).expand((rows, m))
    there = base.alu(Ops.MUL, splat(base, m)).alu(Ops.ADD, order).contiguous()
    at = keys.gather(there).cast(dtypes.int32).contiguous()
    # (rows, places, width): rows of their own where positions differ along the axes behind
    rows_of = table.reshape((pre, n, post))
    new = value.reshape(cut)
    if rows != pre:
        rows_of, new = (x.permute((0, 2, 1)).reshape((rows, x.shape[1], 1)) for x in (rows_of, new))
    lane = LazyBuffer.iota(width, dtypes.int32, table.device).reshape((1, 1, width)).expand((rows, m, width))
    flat = there.reshape((rows, m, 1)).expand((rows, m, width))
    flat = flat.alu(Ops.MUL, splat(flat, width)).alu(Ops.ADD, lane)
    new = new.contiguous().gather(flat)
    out = _last_of_each(rows_of, at, new) if op is None else _pieces(rows_of, at, new, op, limits)
    if rows != pre:
        out = out.reshape((pre, post, n)).permute((0, 2, 1))
    return out.reshape(table.shape)


def _wide(at: LazyBuffer, width: int) -> LazyBuffer:
    """Positions (rows, m) for ``width`` elements each."""
    rows, m = at.shape
    return at.reshape((rows, m, 1)).expand((rows, m, width))


def _distinct(table: LazyBuffer, at: LazyBuffer, new: LazyBuffer, op: Ops | None) -> LazyBuffer:
    """A table (rows, n, width) with values at positions (rows, m), no two of which are one place."""
    index = _wide(at, int(new.shape[2]))
    return table.clone().update(new, index, places(contiguous(table.shape), 1, index.shape), op, distinct=True)


def _last_of_each(table: LazyBuffer, at: LazyBuffer, new: LazyBuffer) -> LazyBuffer:
    """Of values for one place, which stand together, the last one."""
    rows, m = at.shape
    n = int(table.shape[1])
    after = at.pad(((0, 0), (0, 1))).shrink(((0, rows), (1, m + 1)))
    turn = LazyBuffer.iota(m, dtypes.int32, at.device).reshape((1, m)).expand(at.shape)
    last = at.alu(Ops.CMPNE, after).alu(Ops.OR, turn.alu(Ops.CMPEQ, splat(turn, int(m) - 1)))
    return _distinct(table, last.alu(Ops.WHERE, at, splat(at, n)), new, None)


def _pieces(table: LazyBuffer, at: LazyBuffer, new: LazyBuffer, op: Ops, limits: Limits) -> LazyBuffer:
    """Values (rows, m, width) at positions (rows, m) in rising order."""
    rows, m, width = (int(dim) for dim in new.shape)
    n, length = int(table.shape[1]), 4 * limits.serial_updates
    if m <= 2 * length:
        return updated_in_order(table, 1, _wide(at, width), new, op)
    count = -(-m // length)
    fill = count * length - m
    at = at.alu(Ops.SUB, splat(at, n)).pad(((0, 0), (0, fill)))  # what is padded is out of range
    at = at.alu(Ops.ADD, splat(at, n)).reshape((rows * count, length)).contiguous()
    before = at.pad(((0, 0), (1, 0))).shrink(((0, rows * count), (0, length)))
    turn = LazyBuffer.iota(length, dtypes.int32, at.device).reshape((1, length)).expand(at.shape)
    starts = at.alu(Ops.CMPNE, before).alu(Ops.AND, turn.alu(Ops.CMPEQ, splat(turn, 0)).alu(Ops.NOT))
    number = running_sums(starts.cast(dtypes.int32)).contiguous()
    none = LazyBuffer.const(identity(op, new.dtype), new.dtype, (rows * count, length, width), new.device)
    new = new.pad(((0, 0), (0, fill), (0, 0))).reshape((rows * count, length, width))
    sums = updated_in_order(none, 1, _wide(number, width), new, op).reshape((rows, count, length, width))
    where = updated_in_order(splat(at, n), 1, number, at).reshape((rows, count, length))

    def part(low: int, high: int) -> tuple[LazyBuffer, LazyBuffer]:
        many = count * (high - low)
        return (where.shrink(((0, rows), (0, count), (low, high))).reshape((rows, many)),
                sums.shrink(((0, rows), (0, count), (low, high), (0, width))).reshape((rows, many, width)))

    begun = _distinct(table, *part(1, length), op)
    return _pieces(begun, *part(0, 1), op, limits)
