"""Comparisons, and selections by what they give."""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import PTXType, kind_of, ptx_type
from .syntax import Instruction, Operand
from .whole import Whole

_PRED = ptx_type("pred")
_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno",
            "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}



class Comparison:
    """Translates comparisons and selections."""

    def __init__(self, whole: Whole) -> None:
        self.ir, self.operands = whole.ir, whole.operands

    def comparison(self, name: str, kind: PTXType, a: str, b: str) -> str:
        if kind.is_float:
            return self.ir.emit(f"fcmp {_ORDERED[name]} {kind.llvm} {a}, {b}")
        predicate = _UNSIGNED.get(name) or (name if name in ("eq", "ne") else f"{'s' if kind.signed else 'u'}{name}")
        return self.ir.emit(f"icmp {predicate} {kind.llvm} {a}, {b}")

    def compared(self, i: Instruction, operands: Sequence[Operand], kind: PTXType) -> tuple[str, str]:
        """What a comparison gives, and what it gives where the comparison is the other way round."""
        a, b = (self.operands.read(operand, kind) for operand in operands[:2])
        if "ftz" in i.modifiers and kind.name == "f32":
            a, b = self.ir.flushed(a), self.ir.flushed(b)
        found = self.comparison(i.modifiers[0], kind, a, b)
        other = self.ir.emit(f"xor i1 {found}, true")
        if len(operands) > 2:
            combine = next(m for m in i.modifiers if m in ("and", "or", "xor"))
            flag = self.operands.read(operands[2], _PRED)
            found, other = (self.ir.emit(f"{combine} i1 {v}, {flag}") for v in (found, other))
        return found, other

    def op_setp(self, i: Instruction) -> None:
        kind = kind_of(i)
        combined = any(m in ("and", "or", "xor") for m in i.modifiers)
        results = len(i.operands) - (3 if combined else 2)
        found, other = self.compared(i, i.operands[results:], kind)
        self.operands.write(i.operands[0], _PRED, found)
        if results > 1:
            self.operands.write(i.operands[1], _PRED, other)

    def op_set(self, i: Instruction) -> None:
        into = ptx_type(i.modifiers[-2])
        found, _ = self.compared(i, i.operands[1:], kind_of(i))
        if into.is_float:
            self.operands.write(i.operands[0], into, self.ir.emit(f"uitofp i1 {found} to {into.llvm}"))
        else:
            self.operands.write(i.operands[0], into, self.ir.emit(f"sext i1 {found} to {into.llvm}"))

    def op_selp(self, i: Instruction) -> None:
        kind = kind_of(i).raw
        yes, no = (self.operands.read(operand, kind) for operand in i.operands[1:3])
        flag = self.operands.read(i.operands[3], _PRED)
        self.operands.write(i.operands[0], kind, self.ir.emit(f"select i1 {flag}, {kind.llvm} {yes}, {kind.llvm} {no}"))

    def op_slct(self, i: Instruction) -> None:
        kind, by = ptx_type(i.modifiers[-2]).raw, kind_of(i)
        yes, no = (self.operands.read(operand, kind) for operand in i.operands[1:3])
        zero = "0.0" if by.is_float else "0"
        flag = self.comparison("ge", by, self.operands.read(i.operands[3], by), zero)
        self.operands.write(i.operands[0], kind, self.ir.emit(f"select i1 {flag}, {kind.llvm} {yes}, {kind.llvm} {no}"))
