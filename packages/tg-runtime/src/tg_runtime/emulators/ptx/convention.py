"""What a thread's function and its launcher agree on: statuses, the frame of a thread, names.

A *frame* holds, in this order: the place to go on at, the mask of those whom the thread waits for, eight words that the
other threads of the warp may read, the registers that live across a wait, the thread's local memory.
"""

from __future__ import annotations

import re

from .syntax import Variable

EXIT, BARRIER, WARP, TRAP, RUNNING, STUCK, MISALIGNED = range(7)
FRAME_MASK, FRAME_WORDS, FRAME_REGISTERS = 4, 8, 72
WORDS = 8
FRAME_SIZE = "@FRAME_BYTES@"
"""Stands in the text until the size of a frame is known."""
STATE = {"ntid": 0, "nctaid": 3, "ctaid": 6}
"""Block state, as the launcher fills it: threads and blocks along x, y, z, and the block's own place."""
ARGUMENTS = "ptr %state, ptr %shared, ptr %frame, i32 %tid.x, i32 %tid.y, i32 %tid.z, i32 %flat"


def align_up(at: int, align: int) -> int:
    """The next multiple of ``align``."""
    return (at + align - 1) // align * align


def offsets(variables: list[Variable], begin: int = 0) -> tuple[dict[str, int], int]:
    """Where variables lie, one after the other, and where they end."""
    found, at = {}, begin
    for variable in variables:
        at = align_up(at, max(variable.align, 1))
        found[variable.name] = at
        at += variable.nbytes
    return found, at


def identifier(name: str) -> str:
    """A PTX name as one of LLVM."""
    return '"' + re.sub(r'["\\]', "_", name) + '"'
