"""What waves did, instruction by instruction."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from . import state
from .wave import Wave


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of one wave.

    Attributes:
      kernel: the name under which it was launched.
      group: the workgroup.
      wave: the number of the wave in it.
      pc: the instruction's address.
      text: the instruction as assembly.
      exec: the execution mask before it.
      changes: what each register that changed holds now: a number, or the lanes of a row that changed.
      addresses: what each active lane accessed.
    """

    kernel: str
    group: int
    wave: int
    pc: int
    text: str
    exec: int
    changes: dict[str, int | dict[int, int]]
    addresses: dict[int, int]

    def __str__(self) -> str:
        parts = [f"{self.kernel} {self.group}.{self.wave} {self.pc:#x} {self.text}  exec {self.exec:#x}"]
        if self.addresses:
            parts.append("at " + _few({lane: f"{address:#x}" for lane, address in self.addresses.items()}))
        for name, value in self.changes.items():
            lanes = value if isinstance(value, int) else {lane: f"{word:#x}" for lane, word in value.items()}
            parts.append(f"{name} = {lanes:#x}" if isinstance(lanes, int) else f"{name} = {_few(lanes)}")
        return "; ".join(parts)


def _few(lanes: dict[int, str]) -> str:
    shown = ", ".join(f"{lane}: {text}" for lane, text in list(lanes.items())[:4])
    return f"{{{shown}{', …' if len(lanes) > 4 else ''}}}"


@dataclass(frozen=True)
class Trace:
    """Which waves are traced, and who is told; they run one instruction at a time.

    Attributes:
      tell: called with each step.
      kernel: the name of the launch; all of them if None.
      group: the workgroup, likewise.
      wave: the number of the wave in it, likewise.
    """

    tell: Callable[[Step], object]
    kernel: str | None = None
    group: int | None = None
    wave: int | None = None

    def wants(self, kernel: str, wave: Wave) -> bool:
        """Whether a wave is traced."""
        asked = ((self.kernel, kernel), (self.group, wave.group), (self.wave, wave.index))
        return all(wanted is None or wanted == found for wanted, found in asked)


def changes(wave: Wave, before: bytes) -> dict[str, int | dict[int, int]]:
    """The registers that differ from an earlier copy of the state."""
    layout, now = wave.layout, wave.view
    found: dict[str, int | dict[int, int]] = {}
    if now[: state.EXEC + 8] != before[: state.EXEC + 8]:
        found["exec"] = wave.exec
    for at in range(state.SCALARS, layout.rows, 4):
        if now[at : at + 4] != before[at : at + 4]:
            found[layout.name(at)] = wave.get(at)
    for register in range(layout.vectors):
        at = layout.vector(register)
        if now[at : at + layout.row_bytes] != before[at : at + layout.row_bytes]:
            old = struct.unpack_from(f"<{layout.lanes}I", before, at)
            row = wave.row(register)
            found[f"v{register}"] = {lane: row[lane] for lane in range(layout.lanes) if row[lane] != old[lane]}
    return found
