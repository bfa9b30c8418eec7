"""What a software GPU stops on, said exactly."""

from __future__ import annotations

from dataclasses import dataclass

from .state import NO_ACCESS, Access, FaultKind


@dataclass(frozen=True, slots=True)
class Fault:
    """One instruction that could not be executed; nothing of it was done.

    Attributes:
      kind: what was wrong.
      kernel: the name under which it was launched.
      group: the workgroup.
      wave: the number of the wave in it.
      pc: the address of the instruction.
      text: the instruction as assembly.
      lane: the lowest lane that was refused, or None where no lane was.
      address: what was accessed, or None.
      access: how.
      nbytes: of a lane's access.
      detail: whatever else there is to say.
    """

    kind: FaultKind
    kernel: str
    group: int
    wave: int
    pc: int
    text: str = ""
    lane: int | None = None
    address: int | None = None
    access: Access = NO_ACCESS
    nbytes: int = 0
    detail: str = ""

    def __str__(self) -> str:
        what = f"kernel {self.kernel}, workgroup {self.group}, wave {self.wave}, pc {self.pc:#x}"
        if self.text:
            what += f" ({self.text})"
        if self.address is not None:
            names = " and ".join(str(flag.name).lower() for flag in self.access)
            where = "" if self.lane is None else f"lane {self.lane}: "
            what += f": {where}{self.nbytes} bytes at {self.address:#x} to {names}"
        why = _WORDS[self.kind]
        return f"{what}: {why}{f': {self.detail}' if self.detail else ''}"


_WORDS = {
    FaultKind.UNMAPPED: "nothing is mapped there",
    FaultKind.PROTECTED: "the mapping does not allow that",
    FaultKind.CROSSING: "the access crosses from one mapping into the next",
    FaultKind.MISALIGNED: "the address is not aligned",
    FaultKind.SHARED: "it lies outside the workgroup's shared memory",
    FaultKind.SCRATCH: "it lies outside the lane's scratch memory",
    FaultKind.UNDECODABLE: "this is no known instruction",
    FaultKind.BUFFER: "what the buffer's descriptor says, or a lane partly outside of it, is not executed yet",
    FaultKind.PENDING: "a register is read whose load was not waited for",
    FaultKind.TRAP: "the program trapped",
    FaultKind.BARRIER: "the workgroup's barrier is used as it must not be",
}


class EngineFault(Exception):
    """A wave faulted.

    Attributes:
      fault: what is known of it.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class HungWave(Exception):
    """A wave used up its budget of instructions.

    Attributes:
      group: its workgroup.
      wave: its number in it.
      pc: where it is.
    """

    def __init__(self, kernel: str, group: int, wave: int, pc: int, text: str, budget: int) -> None:
        self.group, self.wave, self.pc = group, wave, pc
        at = f"{pc:#x} ({text})" if text else f"{pc:#x}"
        super().__init__(f"kernel {kernel}, workgroup {group}, wave {wave} is at {at} after {budget} instructions")
