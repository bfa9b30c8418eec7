"""Emits a kernel: the loops that its parts share, and inside them part after part."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops
from tg_shape import sint

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.launch_shape import foreign, launch_sizes
from ..nest.nest import Axis, Nest
from ..nest.spec import GRID, Kind
from .emitter import Emitter, arguments, parameters
from .launch import launch
from .outputs import loops_around
from .site import Region
from .symbols import Symbols


def emit(kernel: Kernel, target: Target) -> UOp:
    """The structured UOps of a kernel.

    Raises:
      EmitError: if the loops do not fit together (two vector loops in one value, a symbolic loop unrolled …), or the
        machine has none of their kind.
    """
    axes, none = (*kernel.shared, *(a for part in kernel.every_part for a in part.axes)), foreign(target)
    for axis in axes:
        if axis.kind in none:
            raise EmitError(f"{axis.name} is {axis.kind.name}, of which a {target.kind.upper()} has none")
        if axis.kind in GRID and kernel.scratch:
            raise EmitError(f"{axis.name} is {axis.kind.name}: work-items share no scratch from part to part")
    if len(kernel.parts) > 1 and any(axis.kind in GRID for axis in axes):
        require_one_launch(kernel, target)
    return KernelEmitter(kernel, target).emitted()


def require_one_launch(kernel: Kernel, target: Target) -> None:
    """Refuses parts for which different grids of work-items would be launched.

    Raises:
      EmitError: if there are some.
    """
    try:
        first, *others = (launch_sizes(part, target) for part in kernel.parts)
    except ValueError as error:
        raise EmitError(str(error)) from None
    for number, sizes in enumerate(others, 1):
        if sizes != first:
            raise EmitError(f"part {number} is for groups and items {sizes}, and part 0 for {first}: a launch has one")


def emit_nest(nest: Nest, target: Target) -> UOp:
    """The structured UOps of a kernel of one part.

    Raises:
      EmitError: as :func:`emit`.
    """
    return emit(Kernel(nest, (nest,)), target)


class KernelEmitter:
    """Emits the parts of a kernel: an emitter for each, over the same symbols."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.symbols = Symbols(target)

    def emitted(self) -> UOp:
        """The structured form of the whole kernel."""
        shared = {axis.root for axis in self.kernel.shared}
        self.symbols.arguments({v for part in self.kernel.every_part for v in arguments(part)} - shared)
        top = Region()
        regions = [top]
        for axis in self.kernel.shared:
            regions.append(Region(regions[-1]))
            self.open(axis, regions[-1])
        self.parts(self.kernel.parts, regions[-1])
        left = self.kernel.last
        for axis, inner, outer in zip(reversed(self.kernel.shared), regions[:0:-1], regions[-2::-1], strict=True):
            outer.effects.append(UOp(UOps.LOOP, dtypes.void, (self.symbols.leaves[axis.root], *inner.effects)))
            if left:
                self.leftover(left, outer, axis.kind is Kind.THREAD)
                left = ()
        return UOp(UOps.SINK, dtypes.void, tuple(top.effects))

    def open(self, axis: Axis, region: Region) -> None:
        """A counter for a shared loop."""
        start: sint = 0
        end: sint = axis.extent
        if axis.kind is Kind.THREAD:
            # the last thread, which has the rows that are no full block, has a block less
            extra = axis is self.kernel.shared[-1] and bool(self.kernel.last)
            start, end = self.symbols.share(axis.extent + extra, axis.extent)
        self.symbols.counter(axis.root, start, end, region)

    def leftover(self, parts: Sequence[Nest], region: Region, threaded: bool) -> None:
        """The rows that are no full block, after the loop over those that are: the last thread has them."""
        if not threaded:
            self.parts(parts, region)
            return
        last = Region(region)
        self.parts(parts, last)
        core = self.symbols.build.value(self.symbols.core(), dtypes.int32)
        mine = core.alu(Ops.CMPEQ, const(self.target.threads - 1, dtypes.int32))
        region.effects.append(UOp(UOps.IF, dtypes.void, (mine, *last.effects)))

    def parts(self, parts: Sequence[Nest], region: Region) -> None:
        """Parts, one after the other, in one region; each reads what those before it left in scratch."""
        params = parameters(self.kernel.whole)
        for slot, size in self.kernel.scratch.items():
            dtype = self.kernel.whole.buffers[slot].dtype
            params[slot] = UOp(UOps.SCRATCH, dtype.ptr(size, AddrSpace.REG), (), (f"rows{slot}", size))
        for part in parts:
            before = len(region.effects)
            place = launch(part, self.target, self.symbols)
            emitter = Emitter(part, self.target, self.symbols, place, tuple(params), region)
            emitter.run(loops_around(part))
            slot = part.stores[0].slot
            if slot in self.kernel.scratch:
                params[slot] = UOp(UOps.AFTER, params[slot].dtype, (params[slot], *region.effects[before:]))
