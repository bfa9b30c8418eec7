"""Whether a kernel of several steps can work on blocks of rows: what one hands to the next stays within a row."""

from __future__ import annotations

from tg_shape import ShapeTracker

from ..ast.nodes import LazyOp
from ..cost import Limits
from ..ops import Ops


def has_rows(sink: LazyOp, limits: Limits) -> bool:
    """Whether all accesses of the internal buffers of a kernel stay within one row of its outer dimensions."""
    outputs = [node for node in sink.src if not sink.arg[node.arg[0]].internal]
    trackers: dict[int, list[ShapeTracker]] = {}
    for node in sink.toposort():
        if node.op in (Ops.LOAD, Ops.STORE, Ops.GATHER) and sink.arg[node.arg[0]].internal:
            if node.op is Ops.GATHER:
                return False
            trackers.setdefault(node.arg[0], []).append(node.arg[1])
    depth = min(_depth(found, [o.shape for o in outputs]) for found in trackers.values())
    rows = 1
    for dim in outputs[0].shape[:depth]:
        if not isinstance(dim, int):
            return False
        rows *= dim
    if depth == 0 or rows < limits.rows:
        return False
    nbytes: int = sum(sink.arg[slot].size * sink.arg[slot].dtype.itemsize for slot in trackers) // rows
    return nbytes * 8 <= limits.row_bytes


def _depth(trackers: list[ShapeTracker], outputs: list[tuple[object, ...]]) -> int:
    """How many outer dimensions all trackers of one buffer, and the outputs, walk alike."""
    if any(len(st.views) != 1 or st.views[0].mask is not None or st.views[0].offset for st in trackers):
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
    """Whether no access leaves the row that the first ``depth`` dimensions name."""
    strides = [s for s in trackers[0].views[0].strides[:depth] if s]
    width: int = min((s for s in strides if isinstance(s, int)), default=0)
    for st in trackers:
        view = st.views[0]
        reach = 0
        for dim, stride in zip(view.shape[depth:], view.strides[depth:], strict=True):
            if not isinstance(dim, int) or not isinstance(stride, int) or stride < 0:
                return False
            reach += (dim - 1) * stride
        if reach >= width:
            return False
    return width > 0
