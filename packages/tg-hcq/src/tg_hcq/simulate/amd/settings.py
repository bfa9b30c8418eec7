"""What a software AMD GPU is asked for by variables of the environment."""

from __future__ import annotations

import itertools
import sys
from typing import Final

from tg_lazy import ContextVar

from ..engine import AddressSpace, Machine, Step, Trace
from .machine import machine

AMD_HOSTILE: Final[ContextVar[int]] = ContextVar("AMD_HOSTILE", 0)
"""A seed, from which whatever hardware may do is drawn; 0 for a machine that does everything at once."""
AMD_TRACE: Final[ContextVar[int]] = ContextVar("AMD_TRACE", 0)
"""Whether each instruction that is executed is printed to stderr: where, its text, the mask, what changed."""
AMD_TRACE_KERNEL: Final[ContextVar[str]] = ContextVar("AMD_TRACE_KERNEL", "")
"""Only of the launch of this name, ``at 0x…`` with the address of the kernel's first instruction."""
AMD_TRACE_GROUP: Final[ContextVar[int]] = ContextVar("AMD_TRACE_GROUP", -1)
"""Only of the workgroup of this number."""
AMD_TRACE_WAVE: Final[ContextVar[int]] = ContextVar("AMD_TRACE_WAVE", -1)
"""Only of the wave of this number in its workgroup."""
AMD_PROCESS: Final[ContextVar[int]] = ContextVar("AMD_PROCESS", 0)
"""Whether the software GPU runs in a process of its own."""
_seeds = itertools.count()


def passed_on() -> dict[str, str]:
    """The settings as variables of the environment, for a process that plays the GPU."""
    chosen = (AMD_HOSTILE, AMD_TRACE, AMD_TRACE_KERNEL, AMD_TRACE_GROUP, AMD_TRACE_WAVE)
    return {var.key: str(var.value) for var in chosen if var.value not in ("", -1)}


def _print(step: Step) -> None:
    print(step, file=sys.stderr)


def trace() -> Trace | None:
    """The trace that is asked for."""
    if not AMD_TRACE.value:
        return None
    group, wave = (None if var.value < 0 else var.value for var in (AMD_TRACE_GROUP, AMD_TRACE_WAVE))
    return Trace(_print, AMD_TRACE_KERNEL.value or None, group, wave)


def asked(arch: str, lanes: int, space: AddressSpace) -> Machine:
    """The machine that is asked for; see :func:`~tg_hcq.simulate.amd.machine.machine`.

    Raises:
      ValueError: if the processor has no waves of so many lanes.
    """
    seed = AMD_HOSTILE.value
    drawn = seed * 1000 + next(_seeds) if seed else 0
    return machine(arch, lanes, space, seed=drawn, trace=trace(), hostile=bool(seed))
