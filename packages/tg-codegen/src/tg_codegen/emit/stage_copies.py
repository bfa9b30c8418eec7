"""Copies to scratch: a node is computed once for each of its iterations, a load copied in vectors.

Where a load is strided over what scratch keeps together, but contiguous over another loop of the copy, that loop is cut
into tiles which are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tg_lazy import Ops
from tg_shape import sint, substitute

from ..ir.uop import UOp
from ..nest.env import Env
from ..nest.nest import Axis, Node
from ..nest.spec import FRAGMENT, LANE, Kind, NodeOp
from .known import StageMemory
from .site import Region, Site
from .space import fixed
from .tiles import part
from .transpose import transpose
from .vectors import concatenated, turned, woven
from .whole import Whole

COPY_LANES = 16
"""Elements, at the most, that a copy of an unrolled loop moves as one vector; compilers cut what no register holds."""


def copied(node: Node) -> Node | None:
    """The load that a stage is a copy of, converted or as it is; None if it is something else."""
    found = node.src[0] if node.op is Ops.CAST else node
    return found if found.op is NodeOp.LOAD else None


class StageCopies:
    """Fills the stages of one nest, iteration by iteration."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.loops, self.access, self.symbols = whole, whole.loops, whole.access, whole.symbols

    def compute(self, node: Node, memory: StageMemory, inner: Sequence[Axis], site: Site) -> None:
        """Computes a node for each iteration of the loops ``inner``."""
        apart = [own_lanes(axis) for axis in inner if axis.kind is not Kind.CONTRACT]
        self.loops.nested(apart, site, lambda inside: self.put(node, memory, inside))

    def copy(self, node: Node, memory: StageMemory, inner: Sequence[Axis], site: Site) -> None:
        """Copies a load, in vectors of what scratch keeps together; converted, where that is what is kept."""
        load = copied(node)
        assert load is not None
        inner = [own_lanes(axis) for axis in inner if axis.kind is not Kind.CONTRACT]
        if inner and inner[-1].kind is Kind.DEPTH:
            self.copy_rows(node, memory, inner[:-1], inner[-1], site)
            return
        near = inner[-1] if inner and inner[-1].kind in LANE | {Kind.UPCAST} else None
        if near is None:
            self.compute(node, memory, inner, site)
            return
        values = self.together(near)
        others = sorted(inner[:-1], key=lambda axis: (axis.kind is Kind.UPCAST, -axis.step(load.arg[1])))
        sample = site.env.open(near.name, near.root, near.stride, values[0])
        run = self.contiguous(load, others, sample)
        if not run and near.kind is Kind.UPCAST and self.lane_step(load, sample) != 1:
            self.compute(node, memory, inner, site)
            return

        def each(inside: Site) -> None:
            for value in values:
                env = inside.env.open(near.name, near.root, near.stride, value)
                deeper = Site(inside.region, env, near.name, inside)
                if run:
                    self.copy_run(node, memory, run, deeper)
                else:
                    self.put(node, memory, deeper)

        if run:
            self.loops.serial([axis for axis in others if axis not in run], site, each)
        else:
            self.loops.nested(others, site, each)

    def copy_rows(
        self, node: Node, memory: StageMemory, inner: Sequence[Axis], depth: Axis, site: Site
    ) -> None:
        """Copies the first operand of tiles, all terms of a row of which are neighbours in scratch."""
        load, contract = copied(node), self.side_by_side(node, site.env)
        assert load is not None and contract is not None
        count = fixed(contract)
        term = self.symbols.several(f"{depth.name}_term", fixed(depth) * count)

        def terms(env: Env) -> Env:
            env = env.open(depth.name, depth.root, depth.stride, term // count)
            return env.open(contract.name, contract.root, contract.stride, term % count)

        others = sorted(inner, key=lambda axis: -axis.step(load.arg[1]))
        run = self.contiguous(load, others, terms(site.env))

        def each(inside: Site) -> None:
            deeper = Site(inside.region, terms(inside.env), depth.name, inside)
            if run:
                self.copy_run(node, memory, run, deeper)
            else:
                self.put(node, memory, deeper)

        self.loops.serial([axis for axis in others if axis not in run], site, each)

    # one element, or all lanes

    def put(self, node: Node, memory: StageMemory, site: Site) -> None:
        """Computes a node and stores it."""
        contract = self.side_by_side(node, site.env)
        if contract is None:
            value = self.whole.computed(node, site)
            site.region.effects.extend(self.access.writes(memory.pointer, memory.offset(site.env), 1, value))
            return
        parts = []
        for number in range(fixed(contract)):
            here = site.env.open(contract.name, contract.root, contract.stride, number)
            parts.append(self.whole.computed(node, Site(site.region, here, contract.name, site)))
        lane = self.symbols.lane_of(*site.env.root.values())
        lanes = 1 if lane is None else self.symbols.lanes[lane]
        self.put_terms(woven([part.broadcast(lanes) for part in parts]), memory, contract, site)

    def side_by_side(self, node: Node, env: Env) -> Axis | None:
        """The loop of kind CONTRACT whose iterations lie side by side in scratch, if it is not open."""
        return next((a for a in self.whole.nest.axes if a.kind is Kind.CONTRACT and a.root in node.free
                     and a.name not in env.axis), None)

    def put_terms(self, value: UOp, memory: StageMemory, contract: Axis, site: Site) -> None:
        """Stores the iterations of a loop of kind CONTRACT, which lie side by side in ``value``, lane by lane."""
        count, env = fixed(contract), site.env
        lane = self.symbols.lane_of(*env.root.values())
        element = self.symbols.several(f"{contract.name}_element", value.dtype.count)
        if lane is not None:
            env = env.at(lane, element // count)
        env = env.open(contract.name, contract.root, contract.stride, element % count)
        site.region.effects.extend(self.access.writes(memory.pointer, memory.offset(env), 1, value))

    # which loops a load is contiguous along

    def together(self, axis: Axis) -> list[sint]:
        """The values of a loop in vectors: all lanes at once, or as many copies at once as may be."""
        if axis.kind in LANE:
            return [self.loops.lane(axis)]
        extent, values, at = fixed(axis), [], 0
        while at < extent:
            _, width = part(extent, at, COPY_LANES)
            values.append(self.loops.copies(axis, width) + at if width > 1 else at)
            at += width
        return values

    def lane_step(self, node: Node, env: Env) -> int | None:
        """By how much the index of a load grows from lane to lane; None if unevenly, or if it has no lanes."""
        lane = self.symbols.lane_of(*(env.root[root] for root in node.free))
        return None if lane is None else self.access.step(env.of(node.arg[1]), lane)

    def contiguous(self, node: Node, axes: Sequence[Axis], env: Env) -> list[Axis]:
        """The loops, innermost first, along which together a load that is strided over its lanes is contiguous."""
        if self.lane_step(node, env) in (None, -1, 0, 1):
            return []
        contract = self.side_by_side(node, env)
        reach = 1 if contract is None else fixed(contract)
        steps: dict[int, Axis] = {}
        for axis in axes:
            if fixed(axis) > 1:
                copy = self.loops.copies(axis, 2)
                index = substitute(node.arg[1], env.open(axis.name, axis.root, axis.stride, copy).root)
                steps.setdefault(self.access.step(index, copy) or 0, axis)
        found: list[Axis] = []
        while reach in steps:
            axis = steps.pop(reach)
            found.append(axis)
            reach *= fixed(axis)
        return found

    # tiles, transposed

    def copy_run(self, node: Node, memory: StageMemory, run: Sequence[Axis], site: Site) -> None:
        """Copies all of ``run`` in tiles; what the lanes are is open already."""
        lane = self.symbols.lane_of(*(site.env.root[root] for root in node.free))
        extent = prod(fixed(axis) for axis in run)
        most = 1 if lane is None else self.symbols.lanes[lane] & -self.symbols.lanes[lane]

        def tile(region: Region, start: sint, width: int) -> None:
            self.copy_tile(node, memory, run, start, width, Site(region, site.env, run[0].name, site))

        _, width = part(extent, 0, most)
        self.loops.repeat(
            run[0].name, extent // width, site, lambda region, number: tile(region, number * width, width))
        at = extent // width * width
        while at < extent:
            _, width = part(extent, at, most)
            tile(site.region, at, width)
            at += width

    def copy_tile(
        self, node: Node, memory: StageMemory, run: Sequence[Axis], start: sint, width: int, site: Site
    ) -> None:
        """Copies ``width`` iterations of ``run``, which are neighbours in memory, for all lanes.

        Where a loop of kind CONTRACT has its iterations between those of ``run``, they are copied too.
        """
        load = copied(node)
        assert load is not None
        contract = self.side_by_side(node, site.env)
        count = 1 if contract is None else fixed(contract)
        copy = self.symbols.several(f"{run[0].name}_run", width * count)
        env = opened(site.env, run, start + copy // count)
        if contract is not None:
            env = env.open(contract.name, contract.root, contract.stride, copy % count)
        index, valid = self.whole.space.access(load.arg[1], load.arg[2], tuple(node.free), env)
        lane = self.symbols.lane_of(*(site.env.root[root] for root in node.free))
        places = [Site(site.region, opened(site.env, run, start + number), run[0].name, site)
                  for number in range(width)]
        if lane is None or width == 1 or self.access.step(index, copy) != 1:
            for place in places:
                self.put(node, memory, place)
            return
        pointer = self.whole.params[load.arg[0]]
        rows = self.whole.tiles.rows(pointer, load.dtype, index, valid, lane, copy)
        vectors = [concatenated(rows[first::width]) for first in range(width)]
        if contract is not None:
            for column, place in zip(transpose(vectors, count), places, strict=True):
                self.put_terms(column.cast(node.dtype), memory, contract, place)
            return
        for column, place in zip(turned(vectors), places, strict=True):
            value = column.cast(node.dtype)
            site.region.effects.extend(self.access.writes(memory.pointer, memory.offset(place.env), 1, value))


def own_lanes(axis: Axis) -> Axis:
    """A loop as a copy runs through it: rows and columns of a matrix instruction are lanes of their own."""
    return replace(axis, kind=Kind.VECTOR) if axis.kind in FRAGMENT else axis


def opened(env: Env, run: Sequence[Axis], value: sint) -> Env:
    """``env`` with loops that run as one, innermost first, at a place of all their iterations."""
    for number, axis in enumerate(run):
        last = number == len(run) - 1 or not isinstance(axis.extent, int)
        env = env.open(axis.name, axis.root, axis.stride, value if last else value % axis.extent)
        value = value if last else value // axis.extent
    return env
