"""Tiles whose lanes run along a reduction: several accumulators, of rows or of terms, hide its latency."""

from __future__ import annotations

from math import prod

from tg_lazy import Ops
from tg_shape import Variable, coefficient, upper

from ...nest.matrix_products import paired_instruction_for
from ...nest.nest import Node, Root
from ...nest.spec import Kind, NodeOp
from ..planner import Planner
from .row_tiles import rows_at_once

LONG_ROW = 128
"""Vectors of a row from which on a maximum gets as many accumulators as hide its latency."""


def lane_tile(planner: Planner, lanes: Root | None, body: list[Node]) -> None:
    """Cuts the reductions of a planner's nest: lanes run over a reduced dimension, or there are none.

    Of reductions inside one another the longest has the lanes, and the others run over vectors of them.

    Args:
      planner: takes the actions.
      lanes: the dimension that was chosen, if one was.
      body: what the reductions read.
    """
    groups: dict[tuple[Variable, ...], list[Node]] = {}
    for node in planner.reductions:
        groups.setdefault(node.arg[1], []).append(node)
    within = {roots: frozenset[Variable]().union(*(n.free for n in nodes)) for roots, nodes in groups.items()}
    wide: list[tuple[Variable, ...]] = []
    for roots in sorted(groups, key=lambda roots: -prod(upper(planner.nest.roots[r].extent) for r in roots)):
        nested = [other for other in groups if other is not roots
                  and (within[roots] & set(other) or within[other] & set(roots))]
        if any(other in wide for other in nested):
            continue
        members = len(groups[roots])
        inner = [planner.nest.roots[r] for r in roots]
        contiguous = [
            r for r in inner
            if not body or (lanes is not None and r is lanes)
            or any(coefficient(n.arg[1], r.var) == 1 for n in body)
        ]
        if not contiguous:
            continue
        root = contiguous[-1]
        if lanes in contiguous and planner.width(lanes) > planner.width(root):
            root = lanes
        if len(groups) == members == 1:
            pair_terms(planner, groups[roots][0], root)
        if planner.vectorize(root, Kind.LANES):
            wide.append(roots)
            if nested:
                continue
            if len(groups) == 1:
                planner.do_all(rows_at_once(planner.nest, planner.target, root.var))
                beside = (a for a in planner.nest.axes if a.kind in (Kind.UPCAST, Kind.ROWS))
                members *= prod(upper(a.extent) for a in beside)
            left = upper(planner.outer(root.var).extent)
            # a maximum takes longer than a sum: what came before is looked at once more, for it may be no number
            slow = left >= LONG_ROW and all(n.arg[0] is Ops.MAX for n in groups[roots])
            spread = max(s for s in (1, 2, 4, 8) if s * members <= max(8 if slow else 4, members) and s <= left)
            planner.cut(root.var, spread, Kind.SPREAD)
    planner.unroll_small(4)


def pair_terms(planner: Planner, node: Node, terms: Root) -> None:
    """Gives neighbouring terms of a sum of products to an instruction, where both factors lie so in memory."""
    found = paired_instruction_for(node, planner.target.matrices)
    if found is None:
        return
    instruction, *factors = found
    _, lanes, depth = instruction.shape
    loads = [(n, dtype) for factor, dtype in zip(factors, (instruction.a, instruction.b), strict=True)
             for n in factor.toposort() if n.op is NodeOp.LOAD]
    near = all(coefficient(load.arg[1], terms.var) == 1 and load.dtype.itemsize == dtype.itemsize
               and isinstance(load.arg[2], int) for load, dtype in loads)
    long = upper(terms.extent) >= 2 * lanes * depth
    if near and long and len(loads) == len(factors) and planner.lanes == lanes:
        planner.cut(terms.var, depth, Kind.CONTRACT)
