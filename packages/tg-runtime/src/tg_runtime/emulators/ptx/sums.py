"""Sums and products of integers and floats, with carries, directed roundings and dot products."""

from __future__ import annotations

from .errors import unsupported
from .kinds import PTXType, kind_of, overload, ptx_type, rounding
from .syntax import Instruction
from .whole import Whole

_U32 = ptx_type("u32")



class Sums:
    """Translates additions, multiplications, and what does both."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands = whole, whole.ir, whole.operands

    def op_add(self, i: Instruction) -> None:
        self.sum(i, "add")

    def op_sub(self, i: Instruction) -> None:
        self.sum(i, "sub")

    def sum(self, i: Instruction, name: str) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        if kind.is_float:
            self.operands.result(i, kind, self.rounded(i, kind, f"f{name}", a, b))
        elif "cc" in i.modifiers:
            self.carried(i, kind, name, a, b, "0")
        elif "sat" in i.modifiers:
            self.operands.write(i.operands[0], kind, self.ir.binary(f"llvm.s{name}.sat", kind, a, b))
        else:
            self.operands.write(i.operands[0], kind, self.ir.emit(f"{name} {kind.llvm} {a}, {b}"))

    def op_addc(self, i: Instruction) -> None:
        self.sum_with_carry(i, "add")

    def op_subc(self, i: Instruction) -> None:
        self.sum_with_carry(i, "sub")

    def sum_with_carry(self, i: Instruction, name: str) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        carry = self.ir.emit("load i1, ptr %carry")
        self.carried(i, kind, name, a, b, self.ir.emit(f"zext i1 {carry} to i{2 * kind.bits}"))

    def carried(self, i: Instruction, kind: PTXType, name: str, a: str, b: str, carry: str) -> None:
        """A sum in twice the width; its upper half is the carry or borrow."""
        wide = f"i{2 * kind.bits}"
        x, y = (self.ir.emit(f"zext {kind.llvm} {v} to {wide}") for v in (a, b))
        total = self.ir.emit(f"{name} {wide} {self.ir.emit(f'{name} {wide} {x}, {y}')}, {carry}")
        if "cc" in i.modifiers:
            upper = self.ir.emit(f"lshr {wide} {total}, {kind.bits}")
            self.ir.line(f"store i1 {self.ir.emit(f'icmp ne {wide} {upper}, 0')}, ptr %carry")
        self.operands.write(i.operands[0], kind, self.ir.emit(f"trunc {wide} {total} to {kind.llvm}"))

    def rounded(self, i: Instruction, kind: PTXType, name: str, a: str, b: str) -> str:
        """A float operation in the rounding that is stated; a directed one of float by way of double."""
        mode = rounding(i)
        if mode == "rn":
            return self.ir.emit(f"{name} {kind.llvm} {a}, {b}")
        if kind.name != "f32":
            raise unsupported(self.whole.function, i)
        x, y = (self.ir.emit(f"fpext float {v} to double") for v in (a, b))
        return self.ir.double_to_float(self.ir.emit(f"{name} double {x}, {y}"), mode)

    def op_mul(self, i: Instruction) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        if kind.is_float:
            self.operands.result(i, kind, self.rounded(i, kind, "fmul", a, b))
        else:
            product, wide = self.product(i, kind, a, b)
            self.operands.write(i.operands[0], wide, product)

    def product(self, i: Instruction, kind: PTXType, a: str, b: str) -> tuple[str, PTXType]:
        """The low or high half of an integer product, or all of it."""
        if "lo" in i.modifiers:
            return self.ir.emit(f"mul {kind.llvm} {a}, {b}"), kind
        wide = f"i{2 * kind.bits}"
        grow = "sext" if kind.signed else "zext"
        x, y = (self.ir.emit(f"{grow} {kind.llvm} {v} to {wide}") for v in (a, b))
        whole = self.ir.emit(f"mul {wide} {x}, {y}")
        if "wide" in i.modifiers:
            return whole, ptx_type(f"{kind.kind}{2 * kind.bits}")
        return self.ir.emit(f"trunc {wide} {self.ir.emit(f'lshr {wide} {whole}, {kind.bits}')} to {kind.llvm}"), kind

    def op_mad(self, i: Instruction) -> None:
        kind = kind_of(i)
        if kind.is_float:
            self.op_fma(i)
            return
        a, b = (self.operands.read(operand, kind) for operand in i.operands[1:3])
        product, wide = self.product(i, kind, a, b)
        addend = self.operands.read(i.operands[3], wide)
        if "cc" in i.modifiers:
            self.carried(i, wide, "add", product, addend, "0")
        else:
            self.operands.write(i.operands[0], wide, self.ir.emit(f"add {wide.llvm} {product}, {addend}"))

    def op_madc(self, i: Instruction) -> None:
        kind = kind_of(i)
        a, b, c = self.operands.reads(i, kind)
        product, _ = self.product(i, kind, a, b)
        carry = self.ir.emit(f"zext i1 {self.ir.emit('load i1, ptr %carry')} to i{2 * kind.bits}")
        self.carried(i, kind, "add", product, c, carry)

    def op_mul24(self, i: Instruction) -> None:
        kind = kind_of(i)
        grow = "ashr" if kind.signed else "lshr"
        a, b = (self.ir.emit(f"{grow} i32 {self.ir.emit(f'shl i32 {v}, 8')}, 8") for v in self.operands.reads(i, kind))
        self.operands.write(i.operands[0], kind, self.ir.emit(f"mul i32 {a}, {b}"))

    def op_fma(self, i: Instruction) -> None:
        kind, mode = kind_of(i), rounding(i)
        a, b, c = self.operands.reads(i, kind)
        if kind.bits == 16:  # exact product, and a sum that is rounded to odd before the last rounding
            x, y, z = (self.ir.emit(f"fpext float {v} to double") for v in (a, b, c))
            total = self.ir.call("llvm.fma.f64", "double", ("double", x), ("double", y), ("double", z))
            self.operands.result(i, kind, self.ir.double_to_float(total, "odd"))
            return
        if mode != "rn":
            if kind.name != "f32":
                raise unsupported(self.whole.function, i)
            x, y, z = (self.ir.emit(f"fpext float {v} to double") for v in (a, b, c))
            total = self.ir.call("llvm.fma.f64", "double", ("double", x), ("double", y), ("double", z))
            self.operands.result(i, kind, self.ir.double_to_float(total, mode))
            return
        values = [(kind.llvm, v) for v in (a, b, c)]
        self.operands.result(i, kind, self.ir.call(f"llvm.fma.{overload(kind.llvm)}", kind.llvm, *values))

    def op_sad(self, i: Instruction) -> None:
        kind = kind_of(i)
        a, b, c = self.operands.reads(i, kind)
        less = self.ir.emit(f"icmp {'s' if kind.signed else 'u'}lt {kind.llvm} {a}, {b}")
        difference = self.ir.emit(f"sub {kind.llvm} {a}, {b}")
        other = self.ir.emit(f"sub {kind.llvm} {b}, {a}")
        size = self.ir.emit(f"select i1 {less}, {kind.llvm} {other}, {kind.llvm} {difference}")
        self.operands.write(i.operands[0], kind, self.ir.emit(f"add {kind.llvm} {size}, {c}"))

    def op_dp4a(self, i: Instruction) -> None:
        kinds = [m for m in i.modifiers if m[0] in "su"]
        signed_a, signed_b = (name[0] == "s" for name in kinds[:2])
        a, b, total = self.operands.reads(i, _U32)
        for byte in range(4):
            factors = []
            for value, signed in ((a, signed_a), (b, signed_b)):
                part = self.ir.emit(f"trunc i32 {self.ir.emit(f'lshr i32 {value}, {8 * byte}')} to i8")
                factors.append(self.ir.emit(f"{'sext' if signed else 'zext'} i8 {part} to i32"))
            total = self.ir.emit(f"add i32 {total}, {self.ir.emit(f'mul i32 {factors[0]}, {factors[1]}')}")
        self.operands.write(i.operands[0], _U32, total)
