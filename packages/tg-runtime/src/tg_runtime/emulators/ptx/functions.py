"""Functions of one or two numbers: quotients, roots, exponentials, signs, extremes, classes of floats."""

from __future__ import annotations

from .kinds import PTXType, kind_of, overload, ptx_type
from .syntax import Instruction
from .whole import Whole

_PRED = ptx_type("pred")



class Functions:
    """Translates divisions, extremes and functions."""

    def __init__(self, whole: Whole) -> None:
        self.ir, self.operands = whole.ir, whole.operands

    def op_div(self, i: Instruction) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        if kind.is_float:
            self.operands.result(i, kind, self.ir.emit(f"fdiv {kind.llvm} {a}, {b}"))
            return
        self.operands.write(i.operands[0], kind, self.quotient("div", kind, a, b, "-1"))

    def op_rem(self, i: Instruction) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        self.operands.write(i.operands[0], kind, self.quotient("rem", kind, a, b, a))

    def quotient(self, name: str, kind: PTXType, a: str, b: str, of_zero: str) -> str:
        """What the host would trap on gives a number, as on the device."""
        by_zero = unsafe = self.ir.emit(f"icmp eq {kind.llvm} {b}, 0")
        if kind.signed:
            by_minus_one = self.ir.emit(f"icmp eq {kind.llvm} {b}, -1")
            unsafe = self.ir.emit(f"or i1 {by_zero}, {by_minus_one}")
        safe = self.ir.emit(f"select i1 {unsafe}, {kind.llvm} 1, {kind.llvm} {b}")
        found = self.ir.emit(f"{'s' if kind.signed else 'u'}{name} {kind.llvm} {a}, {safe}")
        if kind.signed and name == "div":
            negated = self.ir.emit(f"sub {kind.llvm} 0, {a}")
            found = self.ir.emit(f"select i1 {by_minus_one}, {kind.llvm} {negated}, {kind.llvm} {found}")
        return self.ir.emit(f"select i1 {by_zero}, {kind.llvm} {of_zero}, {kind.llvm} {found}")

    def op_min(self, i: Instruction) -> None:
        self.extreme(i, "min")

    def op_max(self, i: Instruction) -> None:
        self.extreme(i, "max")

    def extreme(self, i: Instruction, name: str) -> None:
        kind = kind_of(i)
        found, *others = self.operands.reads(i, kind)
        for other in others:
            if not kind.is_float:
                found = self.ir.binary(f"llvm.{'s' if kind.signed else 'u'}{name}", kind, found, other)
            else:
                whole = f"llvm.{name}imum" if "NaN" in i.modifiers else f"llvm.{name}num"
                found = self.ir.binary(whole, kind, found, other)
        self.operands.result(i, kind, found)

    def op_abs(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        if kind.is_float:
            self.operands.result(i, kind, self.ir.unary("llvm.fabs", kind, a))
        else:
            found = self.ir.call(f"llvm.abs.{kind.llvm}", kind.llvm, (kind.llvm, a), ("i1", "false"))
            self.operands.write(i.operands[0], kind, found)

    def op_neg(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        negated = self.ir.emit(f"fneg {kind.llvm} {a}" if kind.is_float else f"sub {kind.llvm} 0, {a}")
        self.operands.result(i, kind, negated)

    def op_copysign(self, i: Instruction) -> None:
        kind = kind_of(i)
        sign, size = self.operands.reads(i, kind)
        self.operands.write(i.operands[0], kind, self.ir.binary("llvm.copysign", kind, size, sign))

    def op_rcp(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        self.operands.result(i, kind, self.ir.emit(f"fdiv {kind.llvm} 1.0, {a}"))

    def op_rsqrt(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        self.operands.result(i, kind, self.ir.emit(f"fdiv {kind.llvm} 1.0, {self.ir.unary('llvm.sqrt', kind, a)}"))

    def op_sqrt(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.sqrt")

    def op_ex2(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.exp2")

    def op_lg2(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.log2")

    def op_sin(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.sin")

    def op_cos(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.cos")

    def op_tanh(self, i: Instruction) -> None:
        self.function_of_one(i, "llvm.tanh")

    def function_of_one(self, i: Instruction, name: str) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        self.operands.result(i, kind, self.ir.unary(name, kind, a))

    def op_testp(self, i: Instruction) -> None:
        kind = kind_of(i)
        masks = {"finite": 504, "infinite": 516, "number": 1020, "notanumber": 3, "normal": 264, "subnormal": 144}
        value = self.operands.read(i.operands[1], kind)
        test = ("i32", str(masks[i.modifiers[0]]))
        found = self.ir.call(f"llvm.is.fpclass.{overload(kind.llvm)}", "i1", (kind.llvm, value), test)
        self.operands.write(i.operands[0], _PRED, found)
