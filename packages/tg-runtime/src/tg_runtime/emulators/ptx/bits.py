"""Bits: logic, shifts, fields, counts, permutations of bytes."""

from __future__ import annotations

from .errors import unsupported
from .kinds import kind_of, ptx_type
from .syntax import Instruction
from .whole import Whole

_U32 = ptx_type("u32")



class Bits:
    """Translates what works on bits."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands = whole, whole.ir, whole.operands

    def op_and(self, i: Instruction) -> None:
        self.bitwise(i, "and")

    def op_or(self, i: Instruction) -> None:
        self.bitwise(i, "or")

    def op_xor(self, i: Instruction) -> None:
        self.bitwise(i, "xor")

    def bitwise(self, i: Instruction, name: str) -> None:
        kind = kind_of(i)
        a, b = self.operands.reads(i, kind)
        self.operands.write(i.operands[0], kind, self.ir.emit(f"{name} {kind.llvm} {a}, {b}"))

    def op_not(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        ones = "true" if kind.kind == "p" else -1
        self.operands.write(i.operands[0], kind, self.ir.emit(f"xor {kind.llvm} {a}, {ones}"))

    def op_cnot(self, i: Instruction) -> None:
        kind = kind_of(i)
        (a,) = self.operands.reads(i, kind)
        flag = self.ir.emit(f"icmp eq {kind.llvm} {a}, 0")
        self.operands.write(i.operands[0], kind, self.ir.emit(f"zext i1 {flag} to {kind.llvm}"))

    def op_shl(self, i: Instruction) -> None:
        self.shift(i, "shl")

    def op_shr(self, i: Instruction) -> None:
        self.shift(i, "ashr" if kind_of(i).signed else "lshr")

    def shift(self, i: Instruction, name: str) -> None:
        """Amounts beyond the width shift everything out."""
        kind = kind_of(i)
        value, amount = self.operands.read(i.operands[1], kind), self.operands.read(i.operands[2], _U32)
        limit = kind.bits - 1
        beyond = self.ir.emit(f"icmp ugt i32 {amount}, {limit}")
        amount = self.ir.emit(f"select i1 {beyond}, i32 {limit}, i32 {amount}")
        amount = self.ir.recast(amount, "i32", kind.llvm, False) if kind.bits != 32 else amount
        found = self.ir.emit(f"{name} {kind.llvm} {value}, {amount}")
        if name != "ashr":
            found = self.ir.emit(f"select i1 {beyond}, {kind.llvm} 0, {kind.llvm} {found}")
        self.operands.write(i.operands[0], kind, found)

    def op_shf(self, i: Instruction) -> None:
        low, high, amount = self.operands.reads(i, _U32)
        if "wrap" in i.modifiers:
            amount = self.ir.emit(f"and i32 {amount}, 31")
        else:
            amount = self.ir.call("llvm.umin.i32", "i32", ("i32", amount), ("i32", "32"))
        pair = self.ir.joined(low, high)
        wide = self.ir.emit(f"zext i32 {amount} to i64")
        if i.modifiers[0] == "l":
            pair = self.ir.emit(f"lshr i64 {self.ir.emit(f'shl i64 {pair}, {wide}')}, 32")
        else:
            pair = self.ir.emit(f"lshr i64 {pair}, {wide}")
        self.operands.write(i.operands[0], _U32, self.ir.emit(f"trunc i64 {pair} to i32"))

    def op_bfe(self, i: Instruction) -> None:
        """A field of bits; what lies beyond the top repeats the sign."""
        kind = kind_of(i)
        value = self.operands.read(i.operands[1], kind)
        begin, size = (self.ir.emit(f"and i32 {self.operands.read(o, _U32)}, 255") for o in i.operands[2:4])
        wide = "i512"  # wide enough for any begin and size
        grown = self.ir.emit(f"{'sext' if kind.signed else 'zext'} {kind.llvm} {value} to {wide}")
        field = self.ir.emit(f"lshr {wide} {grown}, {self.ir.emit(f'zext i32 {begin} to {wide}')}")
        up = self.ir.emit(f"zext i32 {self.ir.emit(f'sub i32 511, {size}')} to {wide}")
        up = self.ir.emit(f"add {wide} {up}, 1")
        empty = self.ir.emit(f"icmp eq i32 {size}, 0")
        up = self.ir.emit(f"select i1 {empty}, {wide} 0, {wide} {up}")
        field = self.ir.emit(f"shl {wide} {field}, {up}")
        field = self.ir.emit(f"{'ashr' if kind.signed else 'lshr'} {wide} {field}, {up}")
        found = self.ir.emit(f"trunc {wide} {field} to {kind.llvm}")
        self.operands.write(i.operands[0], kind, self.ir.emit(f"select i1 {empty}, {kind.llvm} 0, {kind.llvm} {found}"))

    def op_bfi(self, i: Instruction) -> None:
        kind = kind_of(i)
        field, into = (self.operands.read(o, kind) for o in i.operands[1:3])
        begin, size = (self.ir.emit(f"and i32 {self.operands.read(o, _U32)}, 255") for o in i.operands[3:5])
        wide = "i512"
        width = self.ir.emit(f"zext i32 {size} to {wide}")
        ones = self.ir.emit(f"sub {wide} {self.ir.emit(f'shl {wide} 1, {width}')}, 1")
        at = self.ir.emit(f"zext i32 {begin} to {wide}")
        mask = self.ir.emit(f"trunc {wide} {self.ir.emit(f'shl {wide} {ones}, {at}')} to {kind.llvm}")
        moved = self.ir.emit(f"shl {wide} {self.ir.emit(f'zext {kind.llvm} {field} to {wide}')}, {at}")
        inside = self.ir.emit(f"and {kind.llvm} {self.ir.emit(f'trunc {wide} {moved} to {kind.llvm}')}, {mask}")
        outside = self.ir.emit(f"and {kind.llvm} {into}, {self.ir.emit(f'xor {kind.llvm} {mask}, -1')}")
        self.operands.write(i.operands[0], kind, self.ir.emit(f"or {kind.llvm} {inside}, {outside}"))

    def op_bfind(self, i: Instruction) -> None:
        kind = kind_of(i)
        value = self.operands.read(i.operands[1], kind)
        if kind.signed:
            sign = self.ir.emit(f"ashr {kind.llvm} {value}, {kind.bits - 1}")
            value = self.ir.emit(f"xor {kind.llvm} {value}, {sign}")
        zeros = self.ir.call(f"llvm.ctlz.{kind.llvm}", kind.llvm, (kind.llvm, value), ("i1", "false"))
        found = zeros if "shiftamt" in i.modifiers else self.ir.emit(f"sub {kind.llvm} {kind.bits - 1}, {zeros}")
        none = self.ir.emit(f"icmp eq {kind.llvm} {value}, 0")
        found = self.ir.emit(f"select i1 {none}, {kind.llvm} -1, {kind.llvm} {found}")
        self.operands.write(i.operands[0], kind, found)

    def op_brev(self, i: Instruction) -> None:
        kind = kind_of(i)
        value = self.operands.read(i.operands[1], kind)
        self.operands.write(i.operands[0], kind, self.ir.unary("llvm.bitreverse", kind, value))

    def op_clz(self, i: Instruction) -> None:
        kind = kind_of(i)
        value = self.operands.read(i.operands[1], kind)
        found = self.ir.call(f"llvm.ctlz.{kind.llvm}", kind.llvm, (kind.llvm, value), ("i1", "false"))
        self.operands.write(i.operands[0], kind, found)

    def op_popc(self, i: Instruction) -> None:
        kind = kind_of(i)
        found = self.ir.unary("llvm.ctpop", kind, self.operands.read(i.operands[1], kind))
        self.operands.write(i.operands[0], kind, found)

    def op_lop3(self, i: Instruction) -> None:
        """A function of three bits, given by its table."""
        a, b, c, table = (self.operands.read(o, _U32) for o in i.operands[1:5])
        number, found = int(table) & 255, "0"
        negated = [self.ir.emit(f"xor i32 {v}, -1") for v in (a, b, c)]
        for row in range(8):
            if number >> row & 1:
                x, y, z = (v if row >> bit & 1 else n for v, n, bit in zip((a, b, c), negated, (2, 1, 0), strict=True))
                term = self.ir.emit(f"and i32 {self.ir.emit(f'and i32 {x}, {y}')}, {z}")
                found = self.ir.emit(f"or i32 {found}, {term}")
        self.operands.write(i.operands[0], _U32, found)

    def op_prmt(self, i: Instruction) -> None:
        """Four bytes chosen from eight."""
        if len(i.modifiers) > 1:
            raise unsupported(self.whole.function, i)
        a, b, chosen = self.operands.reads(i, _U32)
        pair = self.ir.joined(a, b)
        found = "0"
        for byte in range(4):
            nibble = self.ir.emit(f"and i32 {self.ir.emit(f'lshr i32 {chosen}, {4 * byte}')}, 15")
            number = self.ir.emit(f"and i32 {nibble}, 7")
            at = self.ir.emit(f"zext i32 {self.ir.emit(f'shl i32 {number}, 3')} to i64")
            picked = self.ir.emit(f"trunc i64 {self.ir.emit(f'lshr i64 {pair}, {at}')} to i8")
            repeats = self.ir.emit(f"icmp ugt i32 {nibble}, 7")
            picked = self.ir.emit(f"select i1 {repeats}, i8 {self.ir.emit(f'ashr i8 {picked}, 7')}, i8 {picked}")
            placed = self.ir.emit(f"shl i32 {self.ir.emit(f'zext i8 {picked} to i32')}, {8 * byte}")
            found = self.ir.emit(f"or i32 {found}, {placed}")
        self.operands.write(i.operands[0], _U32, found)
