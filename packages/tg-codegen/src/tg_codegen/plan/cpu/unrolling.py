"""Loops over the terms of a register tile: several are unrolled, so that counting them costs little beside them.

A core begins a few instructions a cycle, whatever they do, and fewer where another thread shares it: counting and
branching take the place of loads that the multiply-adds wait for.
"""

from __future__ import annotations

import math
from math import prod

from tg_lazy import Ops
from tg_shape import Expr, upper

from ...machine.target import Target
from ...nest.nest import Axis, Nest
from ...nest.scratch import stages_fit
from ...nest.spec import REDUCING, UNROLLED, Kind
from ..actions import LoopAction, Split, loads_of, reductions_of
from .conversions import conversion

ITERATION_SHARE = 0.05
"""Part of the cycles of its multiply-adds that an iteration's counting may take, at the most.

Twice as much where a multiply-add reads no operand from memory: what several terms read then wants more registers than
a tile leaves."""
FEWEST_COPIES = 8
"""Multiply-adds of an iteration, at the least: fewer wait for memory or for one another rather than for counting."""
BESIDE_SUMS = 4
"""Registers that are left for vectors and scalars, at the least: compilers read those of the next term early."""
FEWEST_TURNS = 8
"""Iterations that are left of a loop, at the least: the terms that are left over are a copy of the code."""


def unrolled_terms(nest: Nest, target: Target) -> list[LoopAction]:
    """Unrolls some terms of the innermost loop of a product whose lanes lie along its results.

    None where it counts little, and where a window is unrolled already. What is packed along the terms has a place for
    each term that is left over, too, so that no number of them is unrolled with which it does not fit.
    """
    axis = innermost(nest)
    if axis is None or not isinstance(axis.extent, int) or not any(a.kind is Kind.VECTOR for a in nest.axes):
        return []
    reductions = reductions_of(nest)
    copies = len(reductions) * prod(
        upper(a.extent) for a in nest.axes if a.kind in UNROLLED and a.root in reductions[0].free)
    most = min(target.copies // copies, axis.extent // FEWEST_TURNS)
    share = ITERATION_SHARE if target.folds else 2 * ITERATION_SHARE
    count = min(most, math.ceil(target.cpu.iteration * target.cpu.units / (share * copies)))
    if not FEWEST_COPIES <= copies <= target.registers - BESIDE_SUMS or count < 2:
        return []
    several = [*range(count, min(2 * count, most) + 1), *range(count - 1, 1, -1)]
    copied = any(a.kind is Kind.CONTRACT for a in nest.axes) or any(conversion(nest, n) for n in loads_of(nest))
    if copied and prod(upper(a.extent) for a in nest.of_root(axis.root)) != nest.roots[axis.root].extent:
        return []  # rows are copied in vectors up to their last element, which no unrolled loop may go beyond
    if copied or nest.of_root(axis.root)[0] is not axis:  # an inner loop has nothing left over
        several = [n for n in several if axis.extent % n == 0]
    else:
        several = [max(count, next((n for n in several if axis.extent % n == 0), 0)), *several]
    splits = (Split(axis.name, n, Kind.UNROLL) for n in several)
    return next(([split] for split in splits if stages_fit(split.apply(nest), target)), [])


def innermost(nest: Nest) -> Axis | None:
    """The serial loop around the products that all reductions add up; None where masks or stages depend on it."""
    reductions = reductions_of(nest)
    products = all(node.arg[0] is Ops.ADD and node.src[0].op is Ops.MUL for node in reductions)
    if not products or len({node.arg[1] for node in reductions}) != 1 or any(node.level != 1 for node in reductions):
        return None
    inner = [a for a in nest.axes if a.kind in REDUCING and a.kind not in (Kind.CONTRACT, Kind.DEPTH)]
    if not inner or any(a.kind is not Kind.REDUCE for a in inner) or any(s.axis == inner[-1].name for s in nest.stages):
        return None
    root = inner[-1].root
    masked = any(isinstance(n.arg[2], Expr) and root in n.arg[2].variables() for n in loads_of(nest))
    return None if masked else inner[-1]
