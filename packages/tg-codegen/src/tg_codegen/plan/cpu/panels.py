"""Panels: copies of the vectors of an operand, contiguous in scratch, which a product reads again and again.

A panel holds what some vectors side by side have along the reduction. The functions here say how large one is, how
large it may be, and which operands gain from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tg_shape import coefficient, upper

from ...machine.memory import PAGE_BYTES
from ...machine.target import Target
from ...nest.nest import Axis, Nest, Node, Root
from ...nest.spec import Kind
from ...nest.windows import held, overlapping, windowed
from ..actions import Convert, Pack, loads_of
from ..planner import Planner
from .conversions import kept_bytes
from .registers import UNLIMITED


def largest_piece(target: Target) -> int:
    """Bytes, at the most, of a panel of one piece of a reduction, with which others are read and written.

    It stays in the second-level cache beside three others of its size. However large that cache is, it has no more
    pages than the first-level TLB holds addresses of. Each partial tile may have one on the stack.
    """
    return min(target.resident_bytes, target.cpu.near_pages * PAGE_BYTES, target.panel_bytes)


def packed_itemsize(planner: Planner, load: Node) -> int:
    """Bytes of an element of a load in its panel: matrix instructions take it as it is, others what it becomes."""
    return load.dtype.itemsize if planner.contracted else kept_bytes(planner.nest, load)


def panel_bytes(planner: Planner, load: Node, reduced: Sequence[Root]) -> int:
    """Bytes of a panel of one vector, along some reduced dimensions and the loops that share it."""
    nest, inner = planner.nest, {r.var for r in reduced}
    axes = [a for a in nest.axes if a.root in load.free and (a.kind is Kind.VECTOR or a.root in inner)]
    axes = [a for a in (*axes, *overlapped(nest, load)) if isinstance(a.extent, int)]
    return held(axes, windowed(load, nest)) * packed_itemsize(planner, load)


def overlapped(nest: Nest, load: Node) -> list[Axis]:
    """The serial output loops whose iterations read overlapping windows of a load: they share one panel."""
    near = {root for pair in overlapping(load, nest) for root in pair[:2]}
    return [a for a in nest.axes if a.kind is Kind.LOOP and a.root in near]


def scattered(planner: Planner, load: Node, lanes: Root) -> bool:
    """Whether a load's vectors are strided, or so far apart along the reduction that no hardware prefetcher follows.

    A matrix instruction always gains from a panel: it reads the terms of several iterations side by side.
    """
    if planner.contracted:
        return True
    steps = (coefficient(load.arg[1], r.var) for r in planner.nest.roots.values() if r.reduce)
    jumps = [abs(step) for step in steps if step is not None]
    apart = max(jumps, default=0) * load.dtype.itemsize
    return coefficient(load.arg[1], lanes.var) != 1 or apart >= planner.target.cpu.scattered_bytes


def resident(planner: Planner, load: Node) -> bool:
    """Whether the whole operand takes no more than half of the second-level cache."""
    elements = prod(upper(planner.nest.roots[r].extent) for r in load.free)
    return elements * load.dtype.itemsize <= planner.target.beside_bytes


def least_reads(planner: Planner, load: Node) -> int:
    """How often a vector that is contiguous in memory has to be read for packing it to pay."""
    costs = planner.target.cpu
    return costs.near_panel_reads if resident(planner, load) else costs.panel_reads


def widest(planner: Planner, lanes: Root, vectors: Sequence[Node]) -> int:
    """Most vectors of a tile with which a panel of a strided operand is not larger than a panel may be."""
    reduced = [r for r in planner.nest.roots.values() if r.reduce]
    if len(reduced) == 1:
        return UNLIMITED  # the reduction can be done in pieces, each with a small panel
    for walked in (reduced, reduced[1:]):  # the outermost dimension can be done in pieces, the others cannot
        panels = (panel_bytes(planner, n, walked) for n in vectors if coefficient(n.arg[1], lanes.var) != 1)
        most = planner.target.panel_bytes // max(panels, default=1)
        if most:
            return most
    return UNLIMITED


def pack_load(planner: Planner, load: Node, axis: str | None) -> None:
    """Packs a load in each iteration of a loop, if it fits; where it is converted to a wider dtype, what it becomes."""
    action = Convert if packed_itemsize(planner, load) > load.dtype.itemsize else Pack
    planner.keep(action(loads_of(planner.nest).index(load), axis))
