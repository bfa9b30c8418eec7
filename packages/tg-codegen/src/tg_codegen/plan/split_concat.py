"""Outputs in parts: what was put together from several operands is written operand by operand.

A concatenation is lowered to one loop over its output, in which masks choose between operands: every iteration would
ask for all of them. An operand that is rolled is read at an index that begins anew somewhere: a remainder, which says
nothing about how far neighbours are apart. Where masks change and indices begin anew at places that are known, the
output is several outputs, each with the operands that are its own, with indices that are linear, and with loops planned
for it. The dimensions around are loops around all of them (see :mod:`tg_codegen.nest.kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, coefficient, linear_terms, upper

from ..machine.target import Target
from ..nest.dimensions import join_dimensions, over_dimensions, quotients
from ..nest.interior import masks
from ..nest.kernel import Kernel
from ..nest.nest import Axis, Nest, Node, NodeTable, Root
from ..nest.spec import READS, Kind, NodeOp
from .actions import ActionError, KernelAction
from .cpu.plan_cost import walk_cycles
from .side_by_side import are_common

MOST_PARTS = 16
"""Parts of an output: the code of each stands in the kernel."""
MOST_PERIODS = 4
"""Times, at the most, that an operand begins anew along a dimension for its output to be in parts: an operand that is
rolled does it once, one that goes on around its ends twice. What begins anew more often is short."""


def begins(quotient: Expr, root: Root) -> Iterable[int]:
    """The values of a dimension at which a quotient, or a remainder, of it alone begins anew; none if it often does."""
    shifted, period = quotient.args
    if isinstance(shifted, Expr) and isinstance(period, int) and upper(root.extent) <= MOST_PERIODS * period:
        terms, constant = linear_terms(shifted)
        if len(terms) == 1 and terms[0][0] is root.var and abs(terms[0][1]) == 1:
            return range((-constant if terms[0][1] > 0 else constant + 1) % period, upper(root.extent), period)
    return ()


def changes(nest: Nest, root: Root) -> list[int]:
    """The values of a dimension at which masks on it alone change, and quotients of it alone begin anew."""
    found = {at for quotient in quotients(nest) for at in begins(quotient, root)}
    for mask in masks(nest):
        if mask.op == "lt" and isinstance(mask.args[0], Expr) and isinstance(mask.args[1], int):
            terms, constant = linear_terms(mask.args[0])
            if len(terms) == 1 and terms[0][0] is root.var and abs(terms[0][1]) == 1:
                found.add(mask.args[1] - constant if terms[0][1] > 0 else 1 + constant - mask.args[1])
    return sorted(at for at in found if isinstance(root.extent, int) and 0 < at < root.extent)


def joined_dimensions(nest: Nest) -> list[Variable]:
    """The dimensions along which masks choose between operands, or operands begin anew."""
    return [root.var for root in nest.roots.values() if changes(nest, root)]


def without_dimensions(nest: Nest, around: frozenset[Variable]) -> Nest:
    """The nest less the dimensions ``around``, which are given; masks that are known are gone."""
    table = NodeTable()
    table.roots = {v: r for v, r in nest.roots.items() if v not in around}
    new: dict[Node, Node] = {}
    for node in nest.nodes():
        src = tuple(new[s] for s in node.src)
        valid = node.arg[2] if node.op is NodeOp.LOAD else node.arg if node.op is NodeOp.SELECT else None
        if isinstance(valid, int) and not valid:
            new[node] = table.make(NodeOp.CONST, node.dtype, (), dtypes.as_const(0, node.dtype))
        elif isinstance(valid, int) and node.op is NodeOp.SELECT:
            new[node] = src[0]
        elif node.op is Ops.WHERE and src[0].op is NodeOp.CONST:
            new[node] = src[1] if src[0].arg else src[2]
        else:
            new[node] = table.make(node.op, node.dtype, src, node.arg)
    stores = tuple(
        s.over(tuple(v for v in s.roots if v not in around), new, lambda expr: expr)
        for s in nest.stores
    )
    axes = tuple(a for a in nest.axes if a.root not in around)
    return Nest(stores, nest.buffers, table.roots, axes)


def part_between(nest: Nest, root: Root, start: int, end: int, around: frozenset[Variable]) -> Nest:
    """The nest with ``root`` from ``start`` up to ``end``."""
    count = end - start
    fresh = Root(Variable(f"{root.var.name}p{start}", 0, count - 1), count, False)
    name = next(a.name for a in nest.axes if a.root is root.var)
    into, at = ((), start) if count == 1 else ((fresh,), fresh.var + start)
    return join_dimensions(without_dimensions(over_dimensions(nest, {root.var: into}, {root.var: at}, name), around))


def read_nodes(nest: Nest) -> frozenset[Node]:
    """What a nest reads."""
    return frozenset(n for n in nest.nodes() if n.op in READS)


def simpler(part: Nest, nest: Nest) -> bool:
    """Whether a part of an output reads less than the whole, or divides less for its indices."""
    return len(read_nodes(part)) < len(read_nodes(nest)) or len(quotients(part)) < len(quotients(nest))


def concat_parts(nest: Nest) -> Kernel | None:
    """The kernel with its output in parts; None where it is none that can be cut, or where that makes nothing simpler.

    Only one output without reductions, which does not overwrite what it reads: parts are written one after the other.
    """
    if len(nest.stores) != 1 or nest.stores[0].update or any(n.op is NodeOp.REDUCE for n in nest.nodes()):
        return None
    store, reads = nest.stores[0], read_nodes(nest)
    if not isinstance(store.index, Expr) or any(n.arg[0] == store.slot for n in reads):
        return None
    wrapped = {var for quotient in quotients(nest) for var in quotient.variables()}
    if len(reads) < 2 and not wrapped:
        return None
    steps = {root: coefficient(store.index, root) for root in store.roots}
    # an index that begins anew costs most along the lanes
    for var in sorted(store.roots, key=lambda var: (steps[var] or 0) if var in wrapped else math.inf):
        root, step = nest.roots[var], steps[var]
        places = changes(nest, root)
        if not places or len(places) >= MOST_PARTS or step is None or any(s is None or s < 1 for s in steps.values()):
            continue
        spans = list(pairwise([0, *places, int(root.extent)]))
        outer = sorted((r for r, s in steps.items() if s is not None and s > step), key=lambda r: -(steps[r] or 0))
        if not all(isinstance(nest.roots[r].extent, int) for r in outer):
            continue
        parts = []
        for start, end in spans:
            parts.append(part_between(nest, root, start, end, frozenset(outer)))
            if not simpler(parts[-1], nest):
                break
        else:
            if sum(bool(read_nodes(part)) for part in parts) > 1:
                shared = tuple(Axis(r.name, r, 1, nest.roots[r].extent, Kind.LOOP) for r in outer)
                return Kernel(nest, tuple(parts), shared)
    return None


@dataclass(frozen=True, slots=True)
class SplitConcat(KernelAction):
    """Writes an output that masks put together from several operands in parts, each of which reads its own alone."""

    def on(self, kernel: Kernel) -> Kernel:
        found = concat_parts(kernel.whole) if kernel.single else None
        if found is None:
            raise ActionError(f"{self}: the kernel is no output that is put together from several operands")
        if not kernel.untouched:
            raise ActionError(f"{self}: comes before any change to the loops")
        return found


def parts_cycles(kernel: Kernel, target: Target) -> float:
    """About how many cycles an output in parts takes for each iteration of the loops around them."""
    return sum(walk_cycles(part, frozenset(), target) for part in kernel.parts)


def proposed(kernel: Kernel, target: Target) -> list[SplitConcat]:
    """The action, where loops for each part cost less than masks that choose between all operands.

    Work-items do not gain by it: each of them is at one place of the output, and has no loops. Nor does an output whose
    operands have much in common, which is computed once where they are side by side.
    """
    found = concat_parts(kernel.whole) if kernel.single and not target.grid else None
    if found is None or are_common(kernel.whole, joined_dimensions(kernel.whole)):
        return []
    together = walk_cycles(kernel.whole, frozenset(a.root for a in found.shared), target)
    return [SplitConcat()] if parts_cycles(found, target) < together else []
