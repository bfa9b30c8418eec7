"""What AMD's instructions do, a room for each subject; the rooms' handlers together are the instruction set.

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 16; LLVM, "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

import functools

from ...engine import InstructionSet
from ..architecture import Architecture
from ..isa import table
from ..registers import PRIVATE_APERTURE, SCALARS, SHARED_APERTURE, vectors
from . import (
    buffers,
    caches,
    clocks,
    control,
    hardware,
    local,
    masks,
    memory,
    relative,
    scalar,
    scalar_float,
    scalar_memory,
    vector,
    waits,
)


@functools.cache
def instruction_set(arch: Architecture) -> InstructionSet:
    """The handlers of an architecture, which each room adds by itself."""
    made = InstructionSet(arch.name, dict(SCALARS), vectors(arch))
    made.apertures = SHARED_APERTURE, PRIVATE_APERTURE
    for room in (
        scalar, scalar_float, relative, masks, control, waits, hardware, scalar_memory, memory, buffers, local, caches,
        clocks,
    ):  # fmt: skip
        room.add(made, arch)
    there = {row.name for row in table(arch.name)}
    made.handlers = {name: handler for name, handler in made.handlers.items() if name.partition(".")[0] in there}
    vector.add(made, arch)
    return made


__all__ = ["instruction_set"]
