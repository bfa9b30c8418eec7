"""Where a kernel's views begin in memory, and the kernel that begins elsewhere.

The kernels of ``x[0] * 2``, ``x[1] * 2``, … differ in the place of the first element alone: one with a variable in that
place does for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tg_dtype import ImageDType
from tg_shape import ShapeTracker, Variable, View, sint

from ..ops import Ops
from .nodes import LazyOp

_PLACED = frozenset({Ops.LOAD, Ops.STORE})
_TAKEN = frozenset({Ops.GATHER, Ops.UPDATE})


def beginnings(ast: LazyOp) -> dict[int, int]:
    """By slot, where the first of a kernel's views of a buffer begins, for the buffers whose views may begin elsewhere.

    None of a kernel that has variables already, of images, and of what is read or written at computed indices.
    """
    if any(isinstance(arg.dtype, ImageDType) for arg in ast.arg) or ast.variables():
        return {}
    least: dict[int, int] = {}
    fixed: set[int] = set()
    for node in ast.toposort():
        if node.op in _PLACED:
            slot, begin = node.arg[0], node.arg[1].views[0].offset
            least[slot] = min(begin, least.get(slot, begin))
        elif node.op in _TAKEN:
            fixed.add(node.arg[0])
    return {slot: begin for slot, begin in least.items() if begin >= 0 and slot not in fixed}


def variable_of(ast: LazyOp, slot: int) -> Variable:
    """The variable that stands for the beginning of a buffer's views: such that all of them stay inside of it."""
    views = [node.arg[1].views[0] for node in ast.toposort() if node.op in _PLACED and node.arg[0] == slot]
    last = max((found[1] for view in views if (found := view.reach()) is not None), default=0)
    begin = min(view.offset for view in views)
    return Variable(f"begin{slot}", 0, max(ast.arg[slot].size - 1 - (last - begin), begin))


def beginning_at(ast: LazyOp, places: Mapping[int, sint]) -> LazyOp:
    """The kernel whose views of some buffers begin elsewhere: the first of each slot there, others as far from it.

    Args:
      ast: the kernel.
      places: where, by slot, for slots that :func:`beginnings` gives.
    """
    least = beginnings(ast)
    made: dict[LazyOp, LazyOp] = {}
    for node in ast.toposort():
        arg = node.arg
        if node.op in _PLACED and arg[0] in places:
            slot, tracker = arg[0], arg[1]
            lowest = tracker.views[0]
            begin = places[slot] + (lowest.offset - least[slot])
            moved = View(lowest.shape, lowest.strides, begin, lowest.mask)
            arg = (slot, ShapeTracker((moved, *tracker.views[1:])), *arg[2:])
        made[node] = LazyOp(node.op, node.dtype, node.shape, tuple(made[src] for src in node.src), arg)
    return made[ast]
