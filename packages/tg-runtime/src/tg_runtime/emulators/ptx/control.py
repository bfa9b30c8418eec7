"""Branches, calls, and the end of a thread."""

from __future__ import annotations

from .convention import ARGUMENTS, EXIT, TRAP, identifier
from .errors import PTXUnsupported, unsupported
from .syntax import Group, Instruction, Operand, Symbol
from .whole import Whole


class Control:
    """Translates control flow."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands = whole, whole.ir, whole.operands

    def target(self, i: Instruction) -> str:
        label = i.operands[0]
        assert isinstance(label, Symbol)
        return identifier(label.name)

    def unreachable_rest(self) -> None:
        """Begins a block for what stands after a terminator."""
        self.ir.open_block(self.ir.fresh("dead"))

    def op_bra(self, i: Instruction) -> None:
        self.ir.line(f"br label %{self.target(i)}")
        self.unreachable_rest()

    def op_ret(self, i: Instruction) -> None:
        self.ir.line(f"ret i32 {EXIT}")
        self.unreachable_rest()

    def op_exit(self, i: Instruction) -> None:
        if not self.whole.function.entry:
            raise unsupported(self.whole.function, i)
        self.op_ret(i)

    def op_trap(self, i: Instruction) -> None:
        self.ir.line(f"ret i32 {TRAP}")
        self.unreachable_rest()

    op_brkpt = op_trap

    def op_call(self, i: Instruction) -> None:
        """Functions take pointers to their results and parameters."""
        groups = [operand for operand in i.operands if isinstance(operand, Group)]
        name = next(operand.name for operand in i.operands if isinstance(operand, Symbol))
        callee = self.whole.module.functions.get(name)
        if callee is None or callee.body is None:
            where = f"{self.whole.function.name}, line {i.line}"
            raise PTXUnsupported(f"PTX: {where}: the function {name} is not in the text")
        pointers = [self.pointer(item) for group in groups for item in group.items]
        passed = "".join(f", ptr {pointer}" for pointer in pointers)
        status = self.ir.emit(f"call i32 @{identifier(name + '.thread')}({ARGUMENTS}{passed})")
        failed, after = self.ir.fresh("failed"), self.ir.fresh("called")
        self.ir.line(f"br i1 {self.ir.emit(f'icmp eq i32 {status}, {EXIT}')}, label %{after}, label %{failed}")
        self.ir.open_block(failed)
        self.ir.line(f"ret i32 {status}")
        self.ir.open_block(after)

    def pointer(self, operand: Operand) -> str:
        if not isinstance(operand, Symbol) or operand.name not in self.whole.storage.pointers:
            raise PTXUnsupported(f"PTX: {self.whole.function.name}: {operand} as an argument of a call")
        return self.whole.storage.pointers[operand.name]
