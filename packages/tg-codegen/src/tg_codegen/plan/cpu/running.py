"""Running reductions over short rows: each result goes on where the one before it ends.

Whether a term counts for a result is known where the loops over both are unrolled: a term that does not is left out,
and what two results begin with is the same value, computed once. The lanes run along another dimension.
"""

from __future__ import annotations

from tg_lazy import Ops, identity
from tg_shape import Variable, coefficient, upper

from ...machine.target import Target
from ...nest.nest import Nest, Node
from ...nest.spec import Kind, NodeOp
from ..actions import LoopAction, Mark, Split, reductions_of
from ..planner import power_below

MOST_RESULTS = 16
"""Results of a row, and terms of each, at the most: a square of vectors that is transposed in registers."""


def running(nest: Nest, lanes: int, target: Target) -> list[LoopAction]:
    """Computes all results of a short row together, in lanes along another dimension.

    Args:
      nest: its loops are not cut yet.
      lanes: of a vector.
      target: the machine.

    Returns:
      actions; none where the nest is something else.
    """
    reductions = reductions_of(nest)
    if len(reductions) != 1 or len(reductions[0].arg[1]) != 1:
        return []
    node, term = reductions[0], reductions[0].arg[1][0]
    results = chosen_by(nest, node, term)
    if results is None:
        return []
    short = [nest.of_root(results)[0], nest.of_root(term)[0]]
    if any(not isinstance(a.extent, int) or not 2 <= a.extent <= MOST_RESULTS for a in short):
        return []
    across = beside(nest, node, results, term)
    if across is None or target.copies < upper(short[0].extent) + upper(short[1].extent):
        return []
    axis = nest.of_root(across)[0]
    width = min(lanes, power_below(upper(axis.extent)))
    if width < 2:
        return []
    cut: LoopAction = Mark(axis.name, Kind.VECTOR) if axis.extent == width else Split(axis.name, width, Kind.VECTOR)
    return [cut, Mark(short[0].name, Kind.UPCAST), Mark(short[1].name, Kind.UNROLL)]


def beside(nest: Nest, reduction: Node, results: Variable, term: Variable) -> Variable | None:
    """The innermost dimension along which lanes gain; None if there is none.

    Every load either has its elements side by side along it, or reads the same one, or has them side by side along the
    row, so that a tile of it is transposed in registers; and so it is with every store.
    """
    loads = [n for n in reduction.toposort() if n.op is NodeOp.LOAD]
    others = [root for root in reduction.free if root is not results and isinstance(nest.roots[root].extent, int)]
    for root in sorted(others, key=lambda root: -nest.axes.index(nest.of_root(root)[0])):
        read = all(coefficient(n.arg[1], root) in (0, 1) or coefficient(n.arg[1], term) == 1 for n in loads)
        written = all(1 in (coefficient(s.index, root), coefficient(s.index, results)) for s in nest.stores)
        if read and written:
            return root
    return None


def chosen_by(nest: Nest, reduction: Node, term: Variable) -> Variable | None:
    """The dimension of the results that a term's place is compared with to tell whether the term counts."""
    value = reduction.src[0]
    if value.op is not Ops.WHERE:
        return None
    neutral = identity(reduction.arg[0], reduction.dtype)
    kept = [s for s in value.src[1:] if not (s.op is NodeOp.CONST and s.arg == neutral)]
    roots = [root for root in value.src[0].free if root is not term]
    counted = all(n.op is not NodeOp.LOAD and n.op is not NodeOp.GATHER for n in value.src[0].toposort())
    if len(kept) != 1 or len(roots) != 1 or not counted or term not in value.src[0].free:
        return None
    return None if roots[0] in kept[0].free or nest.roots[roots[0]].reduce else roots[0]
