"""Stages: nodes kept in scratch memory, and the loops that fill it.

A load is copied in vectors. Where it is strided over what scratch keeps together, but contiguous over another loop of
the fill, that loop is cut into tiles which are transposed in registers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

from tg_dtype import AddrSpace
from tg_shape import coefficient, sint

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, shuffle, vectorize
from ..machine.target import SCRATCH_BYTES, Target
from ..nest.env import Env
from ..nest.nest import LANE, Axis, Kind, Nest, Node, NodeOp, Stage
from ..nest.windows import Windowed, windowed
from .contraction import swapped
from .loops import Span, below
from .scope import Block, Context
from .tiles import joined, part, turned
from .widened_stages import Runs

COPY_LANES = 16  # an unrolled loop is copied in vectors of at most so many elements


class Staging(Runs):
    """The stages of one nest.

    Attributes:
      staged: the stage of each node that has one.
      windowed: how each load that has a stage is copied.
      fills: the filled scratch of each stage at each place, with the stride of each loop in it.
    """

    def __init__(self, nest: Nest, target: Target) -> None:
        self.windowed = {s.node: windowed(s.node, nest) for s in nest.stages if s.node.op is NodeOp.LOAD}
        roots = dict(nest.roots)
        for found in self.windowed.values():
            roots |= found.roots(nest)
        super().__init__(replace(nest, roots=roots), target)
        self.staged: dict[Node, Stage] = {s.node: s for s in nest.stages}
        self.fills: dict[tuple[object, ...], tuple[UOp, dict[str, int]]] = {}
        self.params = [UOp(UOps.PARAM, b.dtype.ptr(b.size), (), slot) for slot, b in enumerate(nest.buffers)]

    @abstractmethod
    def compute(self, node: Node, env: Env, context: Context, fill: bool = False) -> UOp:
        """One node, its operands being in the memo; ``fill`` computes also what is staged."""

    @abstractmethod
    def order(self, node: Node) -> list[Node]:
        """The nodes to compute for ``node`` in the same place, operands first."""

    def read_stage(self, stage: Stage, env: Env, context: Context) -> UOp:
        """An element of a staged node; the stage is filled first if this is the first use inside its loop."""
        where = context.at(stage.axis)
        key = (where.block, *self.key(stage.node, where.env))
        known = self.fills.get(key)
        if known is None:
            known = self.fills[key] = self.fill(stage, where)
        pointer, strides = known
        return self.load(pointer, stage.node.dtype, offset(env, strides), self.kept(env, strides))

    def kept(self, env: Env, strides: dict[str, int]) -> sint:
        """Whether a stage holds the iteration: a partial last one that depends on a variable may not be there."""
        found: sint = 1
        for name in strides:
            inside = below(env.axis[name], self.nest.axis(name).extent)
            if inside not in self.implied:
                found = found & inside
        return found

    def leave(self, block: Block) -> None:
        gone = [key for key in self.fills if key[0] is block]
        for key in gone:
            del self.fills[key]
        nodes = {key[1] for key in gone}
        if nodes:
            stale = {node for node in self.nest.nodes() if not nodes.isdisjoint(node.toposort())}
            for key in list(islice(self.memo, block.known, None)):  # newer ones stand after older ones
                if key[0] in stale:
                    del self.memo[key]

    def fill(self, stage: Stage, where: Context) -> tuple[UOp, dict[str, int]]:
        """Emits the loops that fill a stage. Returns the filled scratch and the stride of each loop in it."""
        node = stage.node
        inner = [a for a in self.nest.axes if a.root in node.free and a.name not in where.env.axis]
        run = self.fill_run(node, inner, where)
        if run is not None:
            return run
        found = self.windowed.get(node, Windowed(node, ()))
        factors = found.factors
        copied = [Axis(w.root.name, w.root, 1, w.reach(inner), Kind.LOOP) for w in found.windows]
        copied += [a for a in inner if a.root not in factors]
        copied.sort(key=lambda a: (a.kind is Kind.CONTRACT, a.kind in LANE, a.kind is Kind.UPCAST))
        strides: dict[str, int] = {}
        size = 1
        for axis in reversed(copied):
            if size * node.dtype.itemsize % self.target.period_bytes == 0:
                size += self.target.line_bytes // node.dtype.itemsize
            strides[axis.name] = size
            size *= self.fixed(axis)
        if size * node.dtype.itemsize > SCRATCH_BYTES:
            raise EmitError(f"a stage of {size} x {node.dtype.name} is larger than {SCRATCH_BYTES} bytes")
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.REG), (), (f"stage{next(self.numbers)}", size))
        before = len(where.block.effects)
        self.fill_scratch(found.load, scratch, strides, copied, self.at_windows(found, where))
        effects = tuple(where.block.effects[before:])
        read = {
            a.name: strides[factors[a.root][0].name] * factors[a.root][1] * a.stride
            if a.root in factors else strides[a.name] for a in inner
        }  # fmt: skip
        return UOp(UOps.AFTER, scratch.dtype, (scratch, *effects)), read

    @staticmethod
    def at_windows(found: Windowed, where: Context) -> Context:
        """``where``, each coordinate being what it is with the loops that are open there."""
        if not found.windows:
            return where
        env, roots = where.env, dict(where.env.root)
        for window in found.windows:
            at: sint = 0
            for root, factor in window.terms:
                at = at + env.root[root] * factor
            roots[window.root] = at
        exact = env.exact - {window.root for window in found.windows}
        return Context(where.block, Env(roots, env.axis, exact), where.opened, where.parent)

    def fill_scratch(
        self, node: Node, scratch: UOp, strides: dict[str, int], inner: Sequence[Axis], context: Context
    ) -> None:
        """Emits the effects that fill ``scratch``: the loops ``inner`` around what computes the node."""
        if node.op is NodeOp.LOAD:
            self.copy(node, scratch, strides, inner, context)
        else:
            apart = [axis for axis in inner if axis.kind is not Kind.CONTRACT]
            self.level(apart, context, lambda inside: self.put(node, scratch, strides, inside))

    def level(self, axes: Sequence[Axis], context: Context, body: Callable[[Context], None]) -> None:
        """Opens loops around ``body``: lanes together, unrolled output loops as copies, all others one by one."""
        if not axes:
            body(context)
            return
        axis, rest = axes[0], axes[1:]
        values: Sequence[sint] = ()
        if axis.kind in LANE:
            values = (self.lane(axis),)
        elif axis.kind is Kind.UPCAST:
            values = range(self.fixed(axis))
        for value in values:
            env = context.env.open(axis.name, axis.root, axis.stride, value)
            self.level(rest, Context(context.block, env, axis.name, context), body)
        if not values:
            self.one_by_one(axis, context, lambda inside: self.level(rest, inside, body))

    def one_by_one(self, axis: Axis, context: Context, body: Callable[[Context], None]) -> None:
        """A serial loop."""
        plain = Axis(axis.name, axis.root, axis.stride, axis.extent, Kind.LOOP)
        self.run(plain, Span(0, axis.extent, None), context, body)

    def put(self, node: Node, scratch: UOp, strides: dict[str, int], context: Context) -> None:
        """Computes a node and stores it."""
        contract = self.together_with(node, context.env)
        if contract is None:
            value = self.computed(node, context)
            context.block.effects.extend(self.writes(scratch, offset(context.env, strides), 1, value))
            return
        parts = []
        for number in range(self.fixed(contract)):
            here = context.env.open(contract.name, contract.root, contract.stride, number)
            parts.append(self.computed(node, Context(context.block, here, contract.name, context)))
        self.put_woven(parts, scratch, strides, contract, context)

    def computed(self, node: Node, context: Context) -> UOp:
        """A node's value, though it is staged."""
        for here in self.order(node)[:-1]:
            key = self.key(here, context.env)
            if key not in self.memo:
                self.memo[key] = self.compute(here, context.env, context)
        return self.compute(node, context.env, context, fill=True)

    def together_with(self, node: Node, env: Env) -> Axis | None:
        """The loop of kind CONTRACT whose iterations lie side by side in scratch, if it is not open."""
        return next((a for a in self.nest.axes if a.kind is Kind.CONTRACT and a.root in node.free
                     and a.name not in env.axis), None)

    def put_woven(
        self, parts: list[UOp], scratch: UOp, strides: dict[str, int], contract: Axis, context: Context
    ) -> None:
        """Stores the iterations of a loop of kind CONTRACT, lane by lane."""
        count, env = len(parts), context.env
        lane = self.lane_of(*env.root.values())
        lanes = 1 if lane is None else self.lanes[lane]
        element = self.several(f"{contract.name}_element", count * lanes)
        if lane is not None:
            env = swapped(env, lane, element // count)
        env = env.open(contract.name, contract.root, contract.stride, element % count)
        value = woven([part.broadcast(lanes) for part in parts])
        context.block.effects.extend(self.writes(scratch, offset(env, strides), 1, value))

    # copies of loads

    def copy(self, node: Node, scratch: UOp, strides: dict[str, int], inner: Sequence[Axis], context: Context) -> None:
        """Copies a load to scratch, in vectors of what scratch keeps together."""
        inner = [axis for axis in inner if axis.kind is not Kind.CONTRACT]
        near = inner[-1] if inner and inner[-1].kind in LANE | {Kind.UPCAST} else None
        if near is None:
            self.level(inner, context, lambda inside: self.put(node, scratch, strides, inside))
            return
        values = self.together(near)
        others = sorted(inner[:-1], key=lambda axis: (axis.kind is Kind.UPCAST, -self.stride(node, axis)))
        sample = context.env.open(near.name, near.root, near.stride, values[0])
        run = self.contiguous(node, others, sample)
        if not run and near.kind is Kind.UPCAST and self.pace(node, sample) != 1:
            self.level(inner, context, lambda inside: self.put(node, scratch, strides, inside))
            return

        def each(inside: Context) -> None:
            for value in values:
                env = inside.env.open(near.name, near.root, near.stride, value)
                deeper = Context(inside.block, env, near.name, inside)
                if run:
                    self.copy_run(node, scratch, strides, run, deeper)
                else:
                    self.put(node, scratch, strides, deeper)

        if run:
            self.serial([axis for axis in others if axis not in run], context, each)
        else:
            self.level(others, context, each)

    def together(self, axis: Axis) -> list[sint]:
        """The values of a loop in vectors: all lanes at once, or as many copies at once as may be."""
        if axis.kind in LANE:
            return [self.lane(axis)]
        extent, values, at = self.fixed(axis), [], 0
        while at < extent:
            _, width = part(extent, at, COPY_LANES)
            values.append(self.copies(axis, width) + at if width > 1 else at)
            at += width
        return values

    @staticmethod
    def stride(node: Node, axis: Axis) -> int:
        """How far apart in memory a load's neighbours along a loop are; 0 if that differs."""
        index = node.arg[1]
        step = None if isinstance(index, int) else coefficient(index, axis.root)
        return abs(step or 0) * axis.stride

    def pace(self, node: Node, env: Env) -> int | None:
        """By how much the index of a load grows from lane to lane; None if unevenly, or if it has no lanes."""
        lane = self.lane_of(*(env.root[root] for root in node.free))
        return None if lane is None else self.step(self.at(node.arg[1], env.root), lane, self.lanes[lane])

    def contiguous(self, node: Node, axes: Sequence[Axis], env: Env) -> list[Axis]:
        """The loops, innermost first, along which together a load that is strided over its lanes is contiguous."""
        if self.pace(node, env) in (None, -1, 0, 1):
            return []
        contract = self.together_with(node, env)
        reach = 1 if contract is None else self.fixed(contract)
        steps: dict[int, Axis] = {}
        for axis in axes:
            if self.fixed(axis) > 1:
                copy = self.copies(axis, 2)
                index = self.at(node.arg[1], env.open(axis.name, axis.root, axis.stride, copy).root)
                steps.setdefault(self.step(index, copy, 2) or 0, axis)
        found: list[Axis] = []
        while reach in steps:
            axis = steps.pop(reach)
            found.append(axis)
            reach *= self.fixed(axis)
        return found

    def serial(self, axes: Sequence[Axis], context: Context, body: Callable[[Context], None]) -> None:
        """Opens serial loops around ``body``."""
        if axes:
            self.one_by_one(axes[0], context, lambda inside: self.serial(axes[1:], inside, body))
        else:
            body(context)

    def copy_run(
        self, node: Node, scratch: UOp, strides: dict[str, int], run: Sequence[Axis], context: Context
    ) -> None:
        """Copies all of ``run`` in tiles; what the lanes are is open already."""
        lane = self.lane_of(*(context.env.root[root] for root in node.free))
        extent = prod(self.fixed(axis) for axis in run)
        most = 1 if lane is None else self.lanes[lane] & -self.lanes[lane]

        def tile(block: Block, start: sint, width: int) -> None:
            name = run[0].name
            self.copy_tile(node, scratch, strides, run, start, width, Context(block, context.env, name, context))

        _, width = part(extent, 0, most)
        self.repeat(run[0].name, extent // width, context, lambda block, number: tile(block, number * width, width))
        at = extent // width * width
        while at < extent:
            _, width = part(extent, at, most)
            tile(context.block, at, width)
            at += width

    def copy_tile(
        self, node: Node, scratch: UOp, strides: dict[str, int], run: Sequence[Axis], start: sint, width: int,
        context: Context,
    ) -> None:
        """Copies ``width`` iterations of ``run``, which are neighbours in memory, for all lanes.

        Where a loop of kind CONTRACT has its iterations between those of ``run``, they are copied too.
        """
        contract = self.together_with(node, context.env)
        count = 1 if contract is None else self.fixed(contract)
        copy = self.several(f"{run[0].name}_run", width * count)
        env = opened(context.env, run, start + copy // count)
        if contract is not None:
            env = env.open(contract.name, contract.root, contract.stride, copy % count)
        index, valid = self.place(node.arg[1], node.arg[2], tuple(node.free), env)
        lane = self.lane_of(*(context.env.root[root] for root in node.free))
        places = [Context(context.block, opened(context.env, run, start + number), run[0].name, context)
                  for number in range(width)]
        if lane is None or width == 1 or self.step(index, copy, width * count) != 1:
            for place in places:
                self.put(node, scratch, strides, place)
            return
        rows = self.load_rows(self.params[node.arg[0]], node.dtype, index, valid, lane, copy)
        columns = []
        for number in range(count):
            vectors = [row.gep(*range(number, width * count, count)) for row in rows] if count > 1 else rows
            columns.append(turned([joined(vectors[first::width]) for first in range(width)]))
        for number, place in enumerate(places):
            if contract is None:
                context.block.effects.extend(
                    self.writes(scratch, offset(place.env, strides), 1, columns[0][number]))
            else:
                self.put_woven([column[number] for column in columns], scratch, strides, contract, place)


def opened(env: Env, run: Sequence[Axis], value: sint) -> Env:
    """``env`` with loops that run as one, innermost first, at a place of all their iterations."""
    for number, axis in enumerate(run):
        last = number == len(run) - 1 or not isinstance(axis.extent, int)
        env = env.open(axis.name, axis.root, axis.stride, value if last else value % axis.extent)
        value = value if last else value // axis.extent
    return env


def woven(vectors: list[UOp]) -> UOp:
    """The lanes of several vectors in turn: the first of each, the second of each …"""
    count, lanes = len(vectors), vectors[0].dtype.count
    if count == 1 or lanes == 1:
        return vectors[0] if count == 1 else vectorize(*vectors)
    if count % 2:
        return vectorize(*(vector.gep(lane) for lane in range(lanes) for vector in vectors))
    even, odd = woven(vectors[0::2]), woven(vectors[1::2])
    half = count // 2 * lanes
    return shuffle(even, odd, *(n // 2 + n % 2 * half for n in range(2 * half)))


def offset(env: Env, strides: dict[str, int]) -> sint:
    """The place of an element in scratch."""
    index: sint = 0
    for name, stride in strides.items():
        index = index + env.axis[name] * stride
    return index
