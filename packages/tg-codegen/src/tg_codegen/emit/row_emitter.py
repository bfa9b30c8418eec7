"""Emits kernels in blocks of rows: the loops over blocks, and inside them part after part."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops
from tg_shape import Variable, smin

from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.env import Env
from ..nest.nest import Kind
from ..nest.row_nest import RowNest
from .emitter import Emitter
from .scope import Block, Context


class RowEmitter:
    """Emits the loops over blocks, and inside them part after part."""

    def __init__(self, nest: RowNest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.emitters = [Emitter(part, target) for part in nest.parts]
        self.last = [Emitter(part, target) for part in nest.last]
        first = self.emitters[0]
        for other in (*self.emitters[1:], *self.last):
            other.leaves, other.build, other.lanes = first.leaves, first.build, first.lanes
            other.owner, other.numbers = first.owner, first.numbers
        self.first = first

    def kernel(self) -> UOp:
        """The structured form of the whole kernel."""
        shared = {root for root, _ in self.nest.shared}
        variables = {v for e in (*self.emitters, *self.last) for v in e.kernel_variables()} - shared
        for variable in sorted(variables, key=lambda v: v.name):
            self.first.leaves[variable] = UOp(UOps.VAR, dtypes.int32, (), variable)
        top = Block()
        blocks = [top]
        threaded = self.threaded()
        for root, extent in self.nest.shared:
            blocks.append(Block(blocks[-1]))
            self.open(root, extent, root is threaded, blocks[-1])
        self.parts(self.emitters, blocks[-1])
        left = self.last
        for (root, _), inner, outer in zip(reversed(self.nest.shared), blocks[:0:-1], blocks[-2::-1], strict=True):
            outer.effects.append(UOp(UOps.LOOP, dtypes.void, (self.first.leaves[root], *inner.effects)))
            if left:
                self.leftover(left, outer, root is threaded)
                left = []
        return UOp(UOps.SINK, dtypes.void, tuple(top.effects))

    def leftover(self, emitters: Sequence[Emitter], block: Block, threaded: bool) -> None:
        """The rows that are no full block, after the loop over those that are: the last thread has them."""
        if not threaded:
            self.parts(emitters, block)
            return
        last = Block(block)
        self.parts(emitters, last)
        core = self.first.build.value(self.first.core(), dtypes.int32)
        mine = core.alu(Ops.CMPEQ, const(self.target.threads - 1, dtypes.int32))
        block.effects.append(UOp(UOps.IF, dtypes.void, (mine, *last.effects)))

    def threaded(self) -> Variable | None:
        """The outermost dimension that is long enough for all threads."""
        threads = self.target.threads
        return next((root for root, n in self.nest.shared if n >= threads), None) if threads > 1 else None

    def open(self, root: Variable, extent: int, threaded: bool, block: Block) -> None:
        """A counter for an outer dimension."""
        index = self.first.index
        start, end = const(0, index), const(extent, index)
        if threaded:
            core, threads = self.first.core(), self.target.threads
            total = extent + (root is self.nest.shared[-1][0] and bool(self.last))  # a block less for the last thread
            start = self.first.build.value(core * total // threads, index)
            end = self.first.build.value(smin((core + 1) * total // threads, extent), index)
        self.first.leaves[root] = UOp(UOps.RANGE, index, (start, end), root.name)
        self.first.owner[root] = block

    def parts(self, emitters: Sequence[Emitter], block: Block) -> None:
        """All parts, in order, in the innermost block."""
        params: list[UOp] = list(self.first.params)
        for slot, size in self.nest.scratch.items():
            dtype = self.nest.whole.buffers[slot].dtype
            params[slot] = UOp(UOps.SCRATCH, dtype.ptr(size, AddrSpace.REG), (), (f"rows{slot}", size))
        for emitter in emitters:
            emitter.params, emitter.top = params, block
            before = len(block.effects)
            roots = emitter.nest.roots
            env = Env(dict.fromkeys(roots, 0), {}, frozenset(root for root in roots if emitter.divides(root)))
            serial = [a for a in emitter.nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
            emitter.outputs(list(emitter.nest.stores), serial, Context(block, env), [])
            slot = emitter.nest.stores[0].slot
            if slot in self.nest.scratch:
                filled = tuple(block.effects[before:])
                params = [*params]
                params[slot] = UOp(UOps.AFTER, params[slot].dtype, (params[slot], *filled))
