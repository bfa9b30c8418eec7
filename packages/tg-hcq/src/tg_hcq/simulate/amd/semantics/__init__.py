"""What AMD's instructions do, a room for each subject; the rooms' handlers together are the instruction set.

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 16; LLVM, "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

import functools

from ...engine import InstructionSet
from ..architecture import Architecture
from ..registers import SCALARS, VECTORS
from . import control, memory, vector


@functools.cache
def instruction_set(arch: Architecture) -> InstructionSet:
    """The handlers of an architecture, which each room adds by itself."""
    made = InstructionSet(arch.name, dict(SCALARS), VECTORS)
    for room in (control, memory, vector):
        room.add(made, arch)
    return made


__all__ = ["instruction_set"]
