"""Waits until no more than so many accesses of a counter are on their way.

Counters are common to all generations; instructions of older ones wait on several of them at once.

Sources: AMD, "RDNA3 Instruction Set Architecture", section 4.4; "RDNA4", 4.5; LLVM, ``SIInsertWaitcnts.cpp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from ...engine import Emitter, Instruction, InstructionSet, Status
from ..architecture import Architecture
from ..isa.immediates import WAITS


class Counter(IntEnum):
    """What is counted."""

    LOAD = 0
    """Loads of lanes and atomics that return something; stores as well on gfx9."""
    STORE = 1
    """Stores of lanes and atomics that return nothing, from gfx10 on."""
    SHARED = 2
    """Accesses of LDS."""
    SCALAR = 3
    """Scalar loads, which return in any order."""


ORDERED: Final = frozenset({Counter.LOAD, Counter.STORE, Counter.SHARED})
"""Those whose accesses return in order."""
_NAMED: Final[Mapping[str, tuple[Counter, ...]]] = {
    "vmcnt": (Counter.LOAD,), "lgkmcnt": (Counter.SHARED, Counter.SCALAR), "expcnt": (),
}  # fmt: skip
"""Where accesses of two kinds share a counter, each kind by itself is bounded by what may be left."""
_SPLIT: Final[Mapping[str, tuple[Counter, ...]]] = {
    "s_wait_loadcnt": (Counter.LOAD,), "s_wait_storecnt": (Counter.STORE,), "s_wait_dscnt": (Counter.SHARED,),
    "s_wait_kmcnt": (Counter.SCALAR,), "s_wait_samplecnt": (), "s_wait_bvhcnt": (), "s_wait_expcnt": (),
    "s_waitcnt_vscnt": (Counter.STORE,), "s_waitcnt_vmcnt": (Counter.LOAD,), "s_waitcnt_expcnt": (),
    "s_waitcnt_lgkmcnt": (Counter.SHARED, Counter.SCALAR),
}  # fmt: skip
_PAIRS: Final = {"s_wait_loadcnt_dscnt": Counter.LOAD, "s_wait_storecnt_dscnt": Counter.STORE}


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name in (*_SPLIT, *_PAIRS, "s_waitcnt", "s_wait_idle"):
        to.control(name, lambda e: _wait(e))


def _wait(e: Emitter) -> None:
    if e.hostile:
        e.stop(Status.WAIT)
    else:
        e.go_on()


def waits(arch: Architecture, instruction: Instruction) -> dict[int, int]:
    """Of each counter that an instruction waits on, how many accesses may be left."""
    name, number = instruction.handler, instruction.immediate
    if name in _SPLIT:
        return dict.fromkeys(_SPLIT[name], number)
    if name in _PAIRS:
        return {_PAIRS[name]: number >> 8 & 63, Counter.SHARED: number & 63}
    if name == "s_wait_idle":
        return dict.fromkeys(Counter, 0)
    found: dict[int, int] = {}
    for counter, pieces in WAITS[arch.generation].items():
        count = shift = 0
        for position, width in pieces:
            count |= (number >> position & (1 << width) - 1) << shift
            shift += width
        if count < (1 << shift) - 1:
            found |= dict.fromkeys(_NAMED[counter], count)
    return found
