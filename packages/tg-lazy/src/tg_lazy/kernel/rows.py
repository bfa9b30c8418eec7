"""Whether a kernel of several steps can work on blocks of rows: what one hands to the next stays within a row."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import Expr, ShapeTracker, View, sint, substitute, upper

from ..ast.nodes import LazyOp
from ..cost import Limits
from ..ops import Ops
from ..trackers import seen_in_rows


def in_rows(sink: LazyOp, limits: Limits) -> LazyOp | None:
    """The kernel, if all accesses of its internal buffers stay within one row of its outer dimensions; else None.

    Where a row's length is symbolic, each row of an internal buffer gets room for the longest.
    """
    outputs = [node for node in sink.src if not sink.arg[node.arg[0]].internal]
    trackers: dict[int, list[ShapeTracker]] = {}
    for node in sink.toposort():
        if node.op in (Ops.LOAD, Ops.STORE, Ops.GATHER) and sink.arg[node.arg[0]].internal:
            if node.op is Ops.GATHER:
                return None
            trackers.setdefault(node.arg[0], []).append(node.arg[1])
    depth = min(_kept(sink), *(_depth(found, [o.shape for o in outputs]) for found in trackers.values()))
    rows = 1
    for dim in outputs[0].shape[:depth]:
        if not isinstance(dim, int):
            return None
        rows *= dim
    if depth == 0 or rows < limits.rows:
        return None
    nbytes: int = sum(sink.arg[slot].size * sink.arg[slot].dtype.itemsize for slot in trackers) // rows
    return _with_longest_rows(sink) if nbytes * 8 <= limits.row_bytes else None


def _kept(sink: LazyOp) -> int:
    """How many outer dimensions of what is stored are those of each access of an internal buffer, too.

    A reduction over all rows reads every one of them for each, and so may a view of what is made of them.
    """
    kept: dict[LazyOp, int] = {}
    found = len(sink.src[0].shape)
    for node in reversed(sink.toposort()):
        depth = kept.get(node, len(node.shape))
        if node.op is Ops.LOAD and sink.arg[node.arg[0]].internal:
            found = min(found, depth)
        for operand in node.src if node.op is not Ops.SINK else ():
            mine = depth
            if node.op is Ops.REDUCE:
                mine = min([depth, *(axis for axis in node.arg[1] if operand.shape[axis] != 1)])
            elif node.op is Ops.VIEW:
                mine = min(depth, seen_in_rows(node.arg, operand.shape))
            kept[operand] = min(kept.get(operand, mine), mine)
    return found


def _with_longest_rows(sink: LazyOp) -> LazyOp:
    """A kernel whose internal buffers have rows of a fixed length."""
    done: dict[LazyOp, LazyOp] = {}
    for node in sink.toposort():
        src, arg = tuple(done[operand] for operand in node.src), node.arg
        if node.op in (Ops.LOAD, Ops.STORE) and sink.arg[arg[0]].internal:
            (view,) = arg[1].views
            strides = _longest(view.strides)
            arg = arg if strides == view.strides else (arg[0], ShapeTracker((View(view.shape, strides),)))
        same = arg is node.arg and all(a is b for a, b in zip(src, node.src, strict=True))
        done[node] = node if same else LazyOp(node.op, node.dtype, node.shape, src, arg)
    return done[sink]


def _longest(strides: Sequence[sint]) -> tuple[int, ...]:
    """Strides where all variables are at their greatest."""
    greatest = {var: var.vmax for stride in strides if isinstance(stride, Expr) for var in stride.variables()}
    return tuple(upper(substitute(stride, greatest)) for stride in strides)


def _depth(trackers: list[ShapeTracker], outputs: list[tuple[object, ...]]) -> int:
    """How many outer dimensions all trackers of one buffer, and the outputs, walk alike."""
    if any(len(st.views) != 1 or st.views[0].mask is not None for st in trackers):
        return 0
    first = trackers[0].views[0]
    depth = 0
    for axis, (dim, stride) in enumerate(zip(first.shape, first.strides, strict=True)):
        alike = all(
            len(st.views[0].shape) > axis and st.views[0].shape[axis] == dim and st.views[0].strides[axis] == stride
            for st in trackers)
        if not alike or any(len(shape) <= axis or shape[axis] != dim for shape in outputs):
            break
        depth = axis + 1
    while depth and not _within(trackers, depth):
        depth -= 1
    return depth


def _within(trackers: list[ShapeTracker], depth: int) -> bool:
    """Whether no access leaves the row that the first ``depth`` dimensions name, which are all that is symbolic."""
    width = min((stride for stride in _longest(trackers[0].views[0].strides[:depth]) if stride), default=0)
    for st in trackers:
        view = st.views[0]
        first, steps = view.offset, [*zip(view.shape[depth:], view.strides[depth:], strict=True)]
        if not isinstance(first, int) or not all(isinstance(stride, int) for _, stride in steps):
            return False
        if first and not all(isinstance(stride, int) for stride in view.strides):
            return False  # where a row's length is symbolic, its places change with those of the longest
        reaches = [(upper(dim) - 1) * stride for dim, stride in steps]
        if first + sum(reach for reach in reaches if reach < 0) < 0:
            return False
        if first + sum(reach for reach in reaches if reach > 0) >= width:
            return False
    return width > 0
