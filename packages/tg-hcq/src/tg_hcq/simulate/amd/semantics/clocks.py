"""Clocks as programs read them: that of timestamps, and that of the processor; they return as scalar loads do.

Sources: AMD, "RDNA 2 Instruction Set Architecture", 12.6 (S_MEMTIME, S_MEMREALTIME); "RDNA3", 16.3 (S_SENDMSG_RTN_B64,
whose message GET_REALTIME alone is known).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...engine import Emitter, Instruction, InstructionSet, Machine, Status, Wave
from ..architecture import Architecture
from ..clock import clock, cycles
from .waits import Counter

CLOCKS: Final[dict[str, Callable[[], int]]] = {
    "s_memtime": cycles, "s_memrealtime": clock, "s_sendmsg_rtn_b64": clock,
}  # fmt: skip
"""What the host is asked for, by the instruction."""


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject; their operand is the result."""
    for name in CLOCKS:
        to.control(name, _asked)


def _asked(e: Emitter) -> None:
    e.stop(Status.HOST)


def serve(machine: Machine, wave: Wave, instruction: Instruction) -> None:
    """Gives the wave what the clock says."""
    now, target = CLOCKS[instruction.handler](), instruction.operands[0]
    machine.give(wave, Counter.SCALAR, {target: now & 0xFFFFFFFF, target + 4: now >> 32 & 0xFFFFFFFF})
