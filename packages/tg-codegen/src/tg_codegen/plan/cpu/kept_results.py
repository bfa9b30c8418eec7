"""Results that are kept in scratch until all are there, so that a loop writes the outputs.

The copies of a register tile hold an accumulator each, and what follows the reduction is written for each copy. Where
that reads and writes many single elements, as an optimiser's step behind a convolution's gradient does, a kernel gets
thousands of instructions there, which take a compiler far longer than the reduction and run no faster than a loop.
"""

from __future__ import annotations

from math import prod

from tg_shape import Variable, coefficient, upper

from ...nest.nest import Nest, Node
from ...nest.spec import REDUCING, SERIAL, SERIAL_OUTPUT, Kind, NodeOp
from ..actions import LoopAction, Split, SplitReduction, reductions_of
from ..planner import masked

MANY_ACCESSES = 1024
"""Loads and stores in all copies of the outputs, at the least: fewer compile as fast as what keeps their results."""
_PLAIN = SERIAL | {Kind.UPCAST, Kind.VECTOR, Kind.UNROLL}
"""Kinds of loops of a reduction with one accumulator for each result."""


def kept_results(nest: Nest) -> list[LoopAction]:
    """Keeps the results of a register tile in scratch, where the outputs of all its copies would be long.

    The reduction is one piece: each result is added up in the order that it has in registers.

    Args:
      nest: its loops are what they are to be.

    Returns:
      actions; none where the outputs are short, no copies of them can be a loop, or the reduction is not plain.
    """
    reductions = reductions_of(nest)
    walk = next((a for a in nest.axes if a.kind is Kind.REDUCE), None)
    if len(reductions) != 1 or walk is None or not isinstance(walk.extent, int):
        return []
    node, inside = reductions[0], {a.name for a in nest.axes if a.kind in REDUCING}
    if any(a.kind not in _PLAIN for a in nest.axes) or any(s.node is node or s.axis in inside for s in nest.stages):
        return []
    if any(n.op is NodeOp.LOAD and masked(n, walk.root) for n in node.toposort()):
        return []  # which terms there are is told by the whole of a loop
    if not any(a.kind is Kind.UPCAST and not _near(nest, a.root) for a in nest.axes):
        return []
    if _accesses(nest, node) < MANY_ACCESSES:
        return []
    around = [a for a in nest.axes if a.kind in SERIAL_OUTPUT]
    if around and around[-1].root not in node.free:
        return []
    whole: list[LoopAction] = [Split(walk.name, walk.extent, Kind.REDUCE)] if walk.extent > 1 else []
    return [*whole, SplitReduction(0, around[-1].name if around else None)]


def _accesses(nest: Nest, reduction: Node) -> int:
    """Loads and stores of the outputs of all copies: one for each lane, where lanes are not neighbours."""
    lanes = next((a for a in nest.axes if a.kind is Kind.VECTOR), None)
    before = set(reduction.toposort())
    indices = [store.index for store in nest.stores]
    indices += [n.arg[1] for n in nest.nodes() if n.op is NodeOp.LOAD and n not in before]
    width = 1 if lanes is None else upper(lanes.extent)
    each = sum(1 if lanes is None or coefficient(index, lanes.root) in (0, 1) else width for index in indices)
    return each * prod(upper(a.extent) for a in nest.axes if a.kind is Kind.UPCAST)


def _near(nest: Nest, root: Variable) -> bool:
    """Whether iterations of a dimension are neighbours in an output: its copies are written together."""
    return any(coefficient(store.index, root) == 1 for store in nest.stores)
