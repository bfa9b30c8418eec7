"""Moves between registers, and between a register and a vector of narrower ones."""

from __future__ import annotations

from .kinds import PTXType, kind_of, ptx_type
from .syntax import Instruction, Vector
from .whole import Whole


class Moves:
    """Translates ``mov``."""

    def __init__(self, whole: Whole) -> None:
        self.ir, self.operands = whole.ir, whole.operands

    def op_mov(self, i: Instruction) -> None:
        kind = kind_of(i).raw
        target, source = i.operands
        if isinstance(source, Vector):
            self.operands.write(target, kind, self.packed(source, kind))
        elif isinstance(target, Vector):
            whole = self.operands.read(source, ptx_type(f"b{kind.bits}"))
            each = kind.bits // len(target.items)
            for lane, item in enumerate(target.items):
                part = self.ir.emit(f"lshr i{kind.bits} {whole}, {lane * each}")
                self.operands.write(item, ptx_type(f"b{each}"), self.ir.emit(f"trunc i{kind.bits} {part} to i{each}"))
        else:
            self.operands.write(target, kind, self.operands.read(source, kind))

    def packed(self, source: Vector, kind: PTXType) -> str:
        each, word, found = kind.bits // len(source.items), f"i{kind.bits}", "0"
        for lane, item in enumerate(source.items):
            part = self.ir.emit(f"zext i{each} {self.operands.read(item, ptx_type(f'b{each}'))} to {word}")
            found = self.ir.emit(f"or {word} {found}, {self.ir.emit(f'shl {word} {part}, {lane * each}')}")
        return found
