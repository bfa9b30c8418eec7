"""Addresses: operands in brackets as LLVM pointers, in the state space that an instruction names."""

from __future__ import annotations

from .convention import MISALIGNED
from .emitter import Emitter
from .errors import unsupported
from .kinds import ptx_type
from .operands import Operands
from .storage import Storage
from .syntax import Address, Function, Instruction, Operand, Symbol

_SPACES = ("global", "shared", "local", "param", "const")


def space_of(i: Instruction) -> str:
    """The state space that an instruction names, empty for generic addresses."""
    for modifier in i.modifiers:
        stem = modifier.partition("::")[0]
        if stem in _SPACES:
            return stem
    return ""


class Addresses:
    """Turns addresses into pointers."""

    def __init__(self, ir: Emitter, function: Function, operands: Operands, storage: Storage) -> None:
        self.ir, self.function, self.operands, self.storage = ir, function, operands, storage

    def memory(self, operand: Operand, space: str) -> str:
        """An address as an LLVM pointer."""
        assert isinstance(operand, Address)
        base, offset = operand.base, operand.offset
        named = self.storage.pointer(base.name, offset) if isinstance(base, Symbol) else ""
        if named:
            return named
        if base is None:
            number = str(offset)
        else:
            number = self.operands.read(base, ptx_type("u64"))
            if offset:
                number = self.ir.emit(f"add i64 {number}, {offset}")
        if space in ("shared", "local"):
            return self.ir.emit(f"getelementptr i8, ptr %{space}, i64 {number}")
        return self.ir.emit(f"inttoptr i64 {number} to ptr")

    def place(self, i: Instruction, operand: Operand, byte: int, space: str) -> str:
        if not isinstance(operand, Address):
            raise unsupported(self.function, i)
        return self.memory(Address(operand.base, operand.offset + byte), space)

    def check_alignment(self, i: Instruction, operand: Operand, nbytes: int, space: str) -> None:
        """Ends the kernel where the device would fault."""
        if nbytes == 1 or space in ("param", "local"):
            return
        place = self.ir.emit(f"ptrtoint ptr {self.place(i, operand, 0, space)} to i64")
        odd = self.ir.emit(f"icmp ne i64 {self.ir.emit(f'and i64 {place}, {nbytes - 1}')}, 0")
        failed, fine = self.ir.fresh("misaligned"), self.ir.fresh("aligned")
        self.ir.line(f"br i1 {odd}, label %{failed}, label %{fine}")
        self.ir.open_block(failed)
        self.ir.line(f"ret i32 {MISALIGNED}")
        self.ir.open_block(fine)
