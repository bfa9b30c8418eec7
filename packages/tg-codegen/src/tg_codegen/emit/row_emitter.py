"""Emits kernels in blocks of rows: the loops over blocks, and inside them part after part."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops
from tg_shape import Variable, sint

from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.nest import Nest
from ..nest.row_nest import RowNest
from .emitter import Emitter, arguments, parameters
from .launch import Launch
from .outputs import serial_loops
from .scope import Block
from .symbols import Symbols


class RowEmitter:
    """Emits the loops over blocks, and inside them part after part: an emitter for each, over the same symbols."""

    def __init__(self, nest: RowNest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.symbols = Symbols(target)

    def kernel(self) -> UOp:
        """The structured form of the whole kernel."""
        shared = {root for root, _ in self.nest.shared}
        self.symbols.arguments({v for part in (*self.nest.parts, *self.nest.last) for v in arguments(part)} - shared)
        top = Block()
        blocks = [top]
        threaded = self.threaded()
        for root, extent in self.nest.shared:
            blocks.append(Block(blocks[-1]))
            self.open(root, extent, root is threaded, blocks[-1])
        self.parts(self.nest.parts, blocks[-1])
        left = self.nest.last
        for (root, _), inner, outer in zip(reversed(self.nest.shared), blocks[:0:-1], blocks[-2::-1], strict=True):
            outer.effects.append(UOp(UOps.LOOP, dtypes.void, (self.symbols.leaves[root], *inner.effects)))
            if left:
                self.leftover(left, outer, root is threaded)
                left = ()
        return UOp(UOps.SINK, dtypes.void, tuple(top.effects))

    def threaded(self) -> Variable | None:
        """The outermost dimension that is long enough for all threads."""
        threads = self.target.threads
        return next((root for root, n in self.nest.shared if n >= threads), None) if threads > 1 else None

    def open(self, root: Variable, extent: int, threaded: bool, block: Block) -> None:
        """A counter for an outer dimension."""
        start: sint = 0
        end: sint = extent
        if threaded:
            # the last thread, which has the rows that are no full block, has a block less
            start, end = self.symbols.share(
                extent + (root is self.nest.shared[-1][0] and bool(self.nest.last)), extent)
        self.symbols.counter(root, start, end, block)

    def leftover(self, parts: Sequence[Nest], block: Block, threaded: bool) -> None:
        """The rows that are no full block, after the loop over those that are: the last thread has them."""
        if not threaded:
            self.parts(parts, block)
            return
        last = Block(block)
        self.parts(parts, last)
        core = self.symbols.build.value(self.symbols.core(), dtypes.int32)
        mine = core.alu(Ops.CMPEQ, const(self.target.threads - 1, dtypes.int32))
        block.effects.append(UOp(UOps.IF, dtypes.void, (mine, *last.effects)))

    def parts(self, parts: Sequence[Nest], block: Block) -> None:
        """Parts, one after the other, in one block; each reads what those before it left in scratch."""
        params = parameters(self.nest.whole)
        for slot, size in self.nest.scratch.items():
            dtype = self.nest.whole.buffers[slot].dtype
            params[slot] = UOp(UOps.SCRATCH, dtype.ptr(size, AddrSpace.REG), (), (f"rows{slot}", size))
        for part in parts:
            before = len(block.effects)
            Emitter(part, self.target, self.symbols, Launch(), tuple(params), block).run(serial_loops(part))
            slot = part.stores[0].slot
            if slot in self.nest.scratch:
                params[slot] = UOp(UOps.AFTER, params[slot].dtype, (params[slot], *block.effects[before:]))
