"""Stages: nodes kept in scratch memory, and the loops that fill it.

A load is copied in vectors. Where it is strided over what scratch keeps together, but contiguous over another loop of
the fill, that loop is cut into tiles which are transposed in registers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

from tg_dtype import AddrSpace
from tg_shape import Variable, sint

from .access import EmitError
from .loops import Span
from .nest import LANE, UNROLLED, Axis, Kind, Nest, Node, NodeOp, Stage
from .scope import Context, Env
from .target import Target
from .tiles import Tiles, part
from .uop import UOp, UOps

MAX_SCRATCH_BYTES = 1 << 20
COPY_LANES = 16  # an unrolled loop is copied in vectors of at most so many elements


class Staging(Tiles):
    """The stages of one nest.

    Attributes:
      staged: the stage of each node that has one.
      fills: the filled scratch of each stage at each place, with the stride of each loop in it.
    """

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
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
        key = (stage.node, where.block, where.env.axis.get(stage.axis or ""))
        known = self.fills.get(key)
        if known is None:
            known = self.fills[key] = self.fill(stage, where)
        pointer, strides = known
        return self.load(pointer, stage.node.dtype, offset(env, strides), 1)

    def fill(self, stage: Stage, where: Context) -> tuple[UOp, dict[str, int]]:
        """Emits the loops that fill a stage. Returns the filled scratch and the stride of each loop in it."""
        node = stage.node
        inner = [a for a in self.nest.axes if a.root in node.free and a.name not in where.env.axis]
        inner.sort(key=lambda a: (a.kind in LANE, a.kind is Kind.UPCAST))
        strides: dict[str, int] = {}
        size = 1
        for axis in reversed(inner):
            strides[axis.name] = size
            size *= self.fixed(axis)
        if size * node.dtype.itemsize > MAX_SCRATCH_BYTES:
            raise EmitError(f"a stage of {size} x {node.dtype.name} is larger than {MAX_SCRATCH_BYTES} bytes")
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.REG), (), (f"stage{next(self.numbers)}", size))
        before = len(where.block.effects)
        if node.op is NodeOp.LOAD:
            self.copy(node, scratch, strides, inner, where)
        else:
            self.level(inner, where, lambda inside: self.put(node, scratch, strides, inside))
        effects = tuple(where.block.effects[before:])
        return UOp(UOps.AFTER, scratch.dtype, (scratch, *effects)), strides

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
        for here in self.order(node)[:-1]:
            key = self.key(here, context.env)
            if key not in self.memo:
                self.memo[key] = self.compute(here, context.env, context)
        value = self.compute(node, context.env, context, fill=True)
        context.block.effects.extend(self.writes(scratch, offset(context.env, strides), 1, value))

    # copies of loads

    def copy(
        self, node: Node, scratch: UOp, strides: dict[str, int], inner: Sequence[Axis], context: Context
    ) -> None:
        """Copies a load to scratch in vectors."""
        if not inner or inner[-1].kind not in LANE | {Kind.UPCAST}:
            self.level(inner, context, lambda inside: self.put(node, scratch, strides, inside))
            return
        near, others = inner[-1], inner[:-1]
        lane, width, _ = next(self.pieces(near))
        run = self.contiguous(node, others, context.env.open(near.name, near.root, near.stride, lane)) if width > 1 else None
        if run is None:
            self.level(others, context, lambda inside: self.copy_near(node, scratch, strides, near, inside))
            return

        def tiles(inside: Context, rest: Sequence[Axis]) -> None:
            if rest:
                self.one_by_one(rest[0], inside, lambda deeper: tiles(deeper, rest[1:]))
                return
            for lane, width, _ in self.pieces(near):
                env = inside.env.open(near.name, near.root, near.stride, lane)
                self.copy_run(node, scratch, strides, run, width, Context(inside.block, env, near.name, inside))

        tiles(context, [axis for axis in others if axis is not run])
