"""Waits: a thread stores what it still needs in its frame and returns; called again, it goes on from there."""

from __future__ import annotations

from .convention import FRAME_REGISTERS, align_up
from .emitter import Emitter
from .errors import PTXUnsupported
from .liveness import live_after
from .operands import Operands, register
from .storage import Storage
from .syntax import Address, Function, Immediate, Instruction, Register, Symbol


class Waits:
    """The places at which a function stops until its launcher calls it again.

    Attributes:
      at: the place in the function's body that is being translated.
      count: how many places there are so far.
    """

    def __init__(self, ir: Emitter, function: Function, operands: Operands, storage: Storage) -> None:
        assert function.body is not None
        self.ir, self.function, self.operands, self.storage = ir, function, operands, storage
        self.code = function.body
        self.at = self.count = 0
        self.saved: dict[str, int] = {}
        self._live: list[frozenset[str]] | None = None

    def wait(self, i: Instruction, status: int) -> None:
        """Stops here until the launcher calls again."""
        if not self.function.entry:
            raise PTXUnsupported(f"PTX: {self.function.name}, line {i.line}: {i} in a function that is called")
        if self._live is None:
            self._live = live_after(self.code, self.function.registers)
        self.count += 1
        # In name order, so that equal texts give equal IR. What a guard skips keeps its old value: it lives too.
        live = sorted(self._live[self.at] | self.needed(i))
        for name in live:
            kind = self.operands.types[name].register
            slot = self.slot(name)
            self.ir.line(f"store {kind} {self.ir.emit(f'load {kind}, ptr {register(name)}')}, ptr {slot}")
        self.ir.line(f"store i32 {self.count}, ptr %frame")
        self.ir.line(f"ret i32 {status}")
        self.ir.open_block(f"resume{self.count}")
        for name in live:
            kind = self.operands.types[name].register
            self.ir.line(f"store {kind} {self.ir.emit(f'load {kind}, ptr {self.slot(name)}')}, ptr {register(name)}")

    def needed(self, i: Instruction) -> set[str]:
        """The registers that the rest of a waiting instruction still reads."""
        return {o.name for o in i.operands if isinstance(o, Register) and o.name in self.operands.types} | {
            item.name
            for o in i.operands
            if not isinstance(o, Register | Immediate | Symbol | Address)
            for item in o.items
            if isinstance(item, Register) and item.name in self.operands.types
        }

    def slot(self, name: str) -> str:
        offset = FRAME_REGISTERS + 8 * self.saved.setdefault(name, len(self.saved))
        return self.ir.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    @property
    def local_begin(self) -> int:
        """Where local memory begins in a frame."""
        return align_up(FRAME_REGISTERS + 8 * len(self.saved), 16)

    @property
    def frame_bytes(self) -> int:
        """The size of a frame; 0 if the function never waits."""
        return align_up(self.local_begin + self.storage.local_bytes, 16) if self.count else 0
