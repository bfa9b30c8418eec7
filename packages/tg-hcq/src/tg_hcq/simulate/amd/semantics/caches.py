"""Instructions that drop what caches hold, or send what was stored on.

They do something only where there are caches: in hostile mode. The record's immediate says how far (``engine.Scope``).

Source: LLVM, "User Guide for AMDGPU Backend", memory models of gfx940, gfx10 to gfx12.
"""

from __future__ import annotations

from typing import Final

from ...engine import Emitter, HostileMachine, Instruction, InstructionSet, Machine, Scope, Status, Wave
from ..architecture import Architecture
from .waits import Counter

DROPS: Final = ("buffer_gl0_inv", "buffer_gl1_inv", "buffer_inv", "global_inv", "global_wbinv", "s_dcache_inv",
                "s_gl1_inv", "s_dcache_inv_vol")  # fmt: skip
SENDS: Final = ("buffer_wbl2", "global_wb", "global_wbinv", "s_dcache_wb", "s_dcache_wb_vol")


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name in dict.fromkeys(DROPS + SENDS):
        to.control(name, _served)


def _served(e: Emitter) -> None:
    if e.hostile:
        e.stop(Status.HOST)
    else:
        e.go_on()


def serve(machine: Machine, wave: Wave, instruction: Instruction) -> None:
    """Does what one of them says."""
    assert isinstance(machine, HostileMachine)
    name, scope, caches = instruction.handler, Scope(instruction.immediate), machine.caches
    far = scope is Scope.SYSTEM or (scope is Scope.DEVICE and len(caches.dies) > 1)
    if name in SENDS and far:
        machine.later(wave, Counter.STORE if "global" in name else Counter.LOAD, caches.die(wave.unit).flush)
    if name.startswith("s_dcache_inv"):
        caches.scalars[wave.unit].drop()
    elif name == "buffer_gl0_inv":
        caches.vectors[wave.unit].drop()
    elif name in ("buffer_gl1_inv", "s_gl1_inv"):
        caches.near(wave.unit)[0].drop()
    elif name in DROPS:
        if far:
            caches.die(wave.unit).drop()
        if scope is not Scope.UNIT:
            for cache in caches.near(wave.unit):
                cache.drop()
