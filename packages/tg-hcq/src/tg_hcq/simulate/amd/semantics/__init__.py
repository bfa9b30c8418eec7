"""What AMD's instructions do, a room for each subject; the rooms' handlers together are the instruction set.

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 16; LLVM, "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

from ...engine import InstructionSet
from ..registers import SCALARS, VECTORS
from . import control, memory, vector

GFX11 = InstructionSet("gfx11", dict(SCALARS), VECTORS)
for _room in (control, memory, vector):
    _room.add(GFX11)

__all__ = ["GFX11"]
