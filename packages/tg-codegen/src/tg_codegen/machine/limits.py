"""What a machine can hold of one kernel: work-items, shared memory, work-groups, scratch on the stack."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tg_dtype import AddrSpace, PtrDType, dtypes
from tg_shape import upper

from ..ir.program import ProgramSpec
from ..ir.uop import UOp, UOps
from .renderer import Renderer
from .target import Target

_SCRATCH = UOps.SCRATCH  # an Enum's members take long to look up
MAX_UOPS = 12_000
"""Nodes of a kernel; far longer ones take a compiler minutes."""
MAX_STACK_BYTES = 6 << 20
"""Scratch of one CPU kernel, all of it being on a thread's stack: three quarters of what Linux gives one by default."""
LEAST_SCRATCH_BYTES = 1 << 14
"""Of an array of scratch: a kernel that does not fit a stack is not planned with smaller ones."""


def broken_limits(spec: ProgramSpec, renderer: Renderer) -> list[str]:
    """What of a kernel does not fit the machine that it is rendered for, each with what there is; empty if all fits.

    Scratch and shared memory are told by the UOps: a kernel that was loaded without any was checked when it was made.
    """
    target = renderer.target
    found: list[str] = []
    items = prod(spec.local_size)
    if target.local_max and items > target.local_max:
        shape = " x ".join(map(str, spec.local_size))
        found.append(f"a work-group of {shape} = {items} work-items; it runs at most {target.local_max}")
    if target.grid and not renderer.numbers_groups:
        for name, size, most in zip("xyz", spec.global_size, target.global_max, strict=True):
            if upper(size) > most:
                found.append(f"{upper(size)} work-groups along {name}; it runs at most {most}")
    shared = scratch_bytes(spec, AddrSpace.LOCAL) if target.grid else 0
    if shared > target.shared_bytes:
        found.append(f"its work-groups share {shared} bytes of local memory; it has {target.shared_bytes}")
    stack = stack_bytes(spec, target)
    if stack > MAX_STACK_BYTES:
        found.append(f"{stack} bytes of scratch on a thread's stack; at most {MAX_STACK_BYTES} are put there")
    return found


def stack_bytes(spec: ProgramSpec, target: Target) -> int:
    """Bytes of scratch on the stack of a thread; work-items have no stack of ours: their compiler finds the place."""
    return 0 if target.grid else scratch_bytes(spec, AddrSpace.REG)


def scratch_bytes(spec: ProgramSpec, space: AddrSpace) -> int:
    """Bytes of scratch in an address space."""
    return sum([
        u.dtype.base.itemsize * u.arg[1] for u in spec.uops
        if u.op is _SCRATCH and isinstance(u.dtype, PtrDType) and u.dtype.space is space])


def accumulators(uops: Iterable[UOp], nbytes: int) -> int:
    """How many registers of ``nbytes`` the loop with most accumulators of floats needs for them."""
    most, open_loops = 0, [0]
    for u in uops:
        if u.op is UOps.RANGE:
            open_loops.append(0)
        elif u.op is UOps.ENDRANGE:
            most = max(most, open_loops.pop())
        elif u.op is UOps.ASSIGN and dtypes.is_float(u.src[0].dtype):
            open_loops[-1] += -(-u.src[0].dtype.itemsize // nbytes)
    return most
