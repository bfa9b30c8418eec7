"""Modes of floats: another rounding or flushed subnormals are refused, unless the kernel has no floats."""

from __future__ import annotations

import re
from typing import Final

from ..engine import EngineFault, Fault, FaultKind, Launch
from ..engine.code import Code, CodeFault
from ..engine.launch import Group
from .registers import FLOATS

_FLOAT: Final = re.compile(r"_b?f(8|16|32|64)|f16f|fp8|bf8|setreg|s_(round|denorm)_mode|s_(setpc|swappc|call|rfe)")
"""Names of instructions that compute with floats, change the mode, or go on where a walk does not find."""


def refuse_modes(launch: Launch, group: Group, code: Code) -> Group:
    """Refuses modes of floats that handlers do not obey.

    Raises:
      EngineFault: if a wave has one, and its kernel may compute with floats.
    """
    for wave in group.waves:
        if wave.scalar("mode") & 0xFF != FLOATS and (name := _float_of(code, launch.entry)):
            why = (
                f"MODE is {wave.scalar('mode'):#x}, and the kernel has {name}: other roundings and flushed subnormals"
                " are not executed yet"
            )
            raise EngineFault(
                Fault(FaultKind.UNDECODABLE, launch.name, group.number, wave.index, launch.entry, detail=why)
            )
    return group


def _float_of(code: Code, entry: int) -> str:
    """The first instruction of a kernel that may compute with floats; none if it has none."""
    waiting, seen = [entry], set[int]()
    while waiting:
        pc = waiting.pop()
        if pc in seen:
            continue
        seen.add(pc)
        try:
            code.enter(pc)
        except CodeFault as error:
            return str(error)
        found = code.instruction(pc)
        if any(_FLOAT.search(name) for name in (found.handler, found.text.partition(" ")[0], *found.parts)):
            return found.text or found.handler
        if found.handler.startswith(("s_branch", "s_cbranch")):
            waiting.append(found.immediate)
        if not found.handler.startswith(("s_branch", "s_endpgm")):
            waiting.append(pc + found.nbytes)
    return ""
