"""Sums of products whose second operand lies in memory as a matrix instruction reads it.

Weights that were put in order once for all have the few terms that an instruction adds up side by side, then the next
column's, as ``vpdpbusd`` wants its second operand. They are read in place: nothing is packed, so that a single row
gains as much as many do. The sum may stand inside another one, as that of a block of integers whose scale is multiplied
with it.
"""

from __future__ import annotations

from tg_shape import Expr, Variable, coefficient, upper

from ...ir.matrix import MatrixInstruction
from ...machine.target import Target
from ...nest.matrix_products import instruction_for
from ...nest.nest import Nest, Node, Root
from ...nest.spec import Kind, NodeOp
from ..actions import LoopAction, Mark, Outermost, Prefetch, Split, loads_of, reductions_of
from ..planner import UNROLL_MAX

ROWS = (8, 7, 6, 5, 4, 3, 2)
"""Rows that share the vectors of a tile: each has a register for the sum of integers, and one for that around it."""


def read_in_place(nest: Nest, target: Target) -> list[LoopAction]:
    """Actions for a sum that a matrix instruction does from where its second operand lies; none where there is no such.

    Args:
      nest: its loops are not changed yet.
      target: the machine.
    """
    for node in reductions_of(nest):
        for columns in nest.roots.values():
            found = None if columns.reduce else instruction_for(node, columns.var, None, target.matrices)
            if found is None:
                continue
            instruction, _, second = found
            terms = next((r for r in node.arg[1] if in_place(nest, second, columns, r, instruction)), None)
            if terms is not None and instruction.threads == 1:
                return _tile(nest, node, columns, terms, second, target, instruction.shape[1])
    return []


def in_place(nest: Nest, second: Node, columns: Root, terms: Variable, instruction: MatrixInstruction) -> bool:
    """Whether an operand's loads are each a vector of the instruction: its terms side by side, then its columns."""
    _, lanes, depth = instruction.shape
    if nest.roots[terms].extent != depth or not isinstance(columns.extent, int) or columns.extent % lanes:
        return False
    loads = [n for n in second.toposort() if n.op is NodeOp.LOAD and {columns.var, terms} & n.free]
    return bool(loads) and all(
        coefficient(load.arg[1], terms) == 1 and coefficient(load.arg[1], columns.var) == depth
        and not (isinstance(load.arg[2], Expr) and {columns.var, terms} & set(load.arg[2].variables()))
        and load.dtype.itemsize == second.dtype.itemsize for load in loads)


def _tile(
    nest: Nest, node: Node, columns: Root, terms: Variable, second: Node, target: Target, lanes: int
) -> list[LoopAction]:  # fmt: skip
    """Lanes along the columns, a few rows in registers, short sums of few rows unrolled, panels of columns outermost.

    A copy adds to the sums of the one before, row by row: where rows are so many that none waits for its sum, an
    iteration of a loop has them side by side, and copies have them one behind the other.
    """
    actions: list[LoopAction] = []
    name = nest.of_root(columns.var)[0].name
    actions.append(Mark(name, Kind.VECTOR) if columns.extent == lanes else Split(name, lanes, Kind.VECTOR))
    actions.append(Mark(nest.of_root(terms)[0].name, Kind.CONTRACT))
    output = [r for r in nest.roots.values() if not r.reduce and r.var in node.free and r is not columns]
    rows = [r for r in output if r.var not in second.free and upper(r.extent) > 1]
    many = 1
    for row in rows[-1:]:
        many = next((n for n in ROWS if isinstance(row.extent, int) and row.extent % n == 0), 1)
        if many > 1:
            axis = nest.of_root(row.var)[0].name
            actions.append(Mark(axis, Kind.UPCAST) if row.extent == many else Split(axis, many, Kind.UPCAST))
    sums = sum(other.arg[1] == node.arg[1] for other in reductions_of(nest))
    copies = 1 if many * sums < target.cpu.in_flight else UNROLL_MAX
    for root in reversed(node.arg[1]):
        extent = nest.roots[root].extent
        if root != terms and isinstance(extent, int) and 2 <= extent and copies * extent <= UNROLL_MAX:
            copies *= extent
            actions.append(Mark(nest.of_root(root)[0].name, Kind.UNROLL))
    panels = [r for r in output if r.var in second.free and upper(r.extent) > 1]
    if panels:
        axis = nest.of_root(panels[0].var)[0].name
        first = nest.axes[0].name == axis
        actions += [] if first else [Outermost(axis)]
        actions += [Mark(axis, Kind.THREAD)] if target.threads > 1 else []
    return actions if many > 1 else [*actions, *ahead(nest, columns, second, target)]


def ahead(nest: Nest, columns: Root, second: Node, target: Target) -> list[LoopAction]:
    """Fetches ahead what the columns read: hardware prefetchers stop at the end of each page."""
    loads = [n for n in second.toposort() if n.op is NodeOp.LOAD and columns.var in n.free]
    if not target.cpu.tile_ahead_bytes or nest.buffers[loads[0].arg[0]].internal:
        return []
    return [Prefetch(loads_of(nest).index(loads[0]), target.cpu.tile_ahead_bytes // loads[0].dtype.itemsize)]
