"""Instructions that compute: integers, floats, bits, comparisons and selections."""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import PTXType, overload, ptx_type
from .syntax import Instruction, Operand, Vector
from .translate import Translation

_PRED = ptx_type("pred")
_U32 = ptx_type("u32")
_ROUNDING = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"})
_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno",
            "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}


def rounding(i: Instruction, default: str = "rn") -> str:
    """The rounding that an instruction states."""
    return next((m for m in i.modifiers if m in _ROUNDING), default)


class Arithmetic(Translation):
    """Translation of instructions whose result depends on nothing but their operands."""

    def kind(self, i: Instruction) -> PTXType:
        """The type that stands last."""
        return ptx_type(i.modifiers[-1])

    def reads(self, i: Instruction, kind: PTXType) -> list[str]:
        """All source operands as values of one type; subnormal floats flushed where the instruction says so."""
        values = [self.read(operand, kind) for operand in i.operands[1:]]
        return [self.flushed(v) for v in values] if "ftz" in i.modifiers and kind.name == "f32" else values

    def result(self, i: Instruction, kind: PTXType, value: str) -> None:
        """Writes the first operand, after what ``.sat`` and ``.ftz`` ask for."""
        if kind.name == "f32" and "ftz" in i.modifiers:
            value = self.flushed(value)
        if kind.is_float and "sat" in i.modifiers:
            value = self.saturated(value, kind)
        if kind.is_float and "relu" in i.modifiers:
            value = self.binary("llvm.maximum", kind, value, self.splat("0.0", kind))
        self.write(i.operands[0], kind, value)

    def saturated(self, value: str, kind: PTXType) -> str:
        """Between 0 and 1; NaN is 0."""
        value = self.binary("llvm.maxnum", kind, value, self.splat("0.0", kind))
        return self.binary("llvm.minnum", kind, value, self.splat("1.0", kind))

    def splat(self, number: str, kind: PTXType) -> str:
        return f"splat (float {number})" if kind.llvm.startswith("<") else number

    def binary(self, name: str, kind: PTXType, a: str, b: str) -> str:
        return self.call(f"{name}.{overload(kind.llvm)}", kind.llvm, (kind.llvm, a), (kind.llvm, b))

    def unary(self, name: str, kind: PTXType, a: str) -> str:
        return self.call(f"{name}.{overload(kind.llvm)}", kind.llvm, (kind.llvm, a))

    # sums and products

    def op_add(self, i: Instruction) -> None:
        self.sum(i, "add")

    def op_sub(self, i: Instruction) -> None:
        self.sum(i, "sub")

    def sum(self, i: Instruction, name: str) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        if kind.is_float:
            self.result(i, kind, self.rounded(i, kind, f"f{name}", a, b))
        elif "cc" in i.modifiers:
            self.carried(i, kind, name, a, b, "0")
        elif "sat" in i.modifiers:
            self.write(i.operands[0], kind, self.binary(f"llvm.s{name}.sat", kind, a, b))
        else:
            self.write(i.operands[0], kind, self.emit(f"{name} {kind.llvm} {a}, {b}"))

    def op_addc(self, i: Instruction) -> None:
        self.sum_with_carry(i, "add")

    def op_subc(self, i: Instruction) -> None:
        self.sum_with_carry(i, "sub")

    def sum_with_carry(self, i: Instruction, name: str) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        carry = self.emit("load i1, ptr %carry")
        self.carried(i, kind, name, a, b, self.emit(f"zext i1 {carry} to i{2 * kind.bits}"))

    def carried(self, i: Instruction, kind: PTXType, name: str, a: str, b: str, carry: str) -> None:
        """A sum in twice the width; its upper half is the carry or borrow."""
        wide = f"i{2 * kind.bits}"
        x, y = (self.emit(f"zext {kind.llvm} {v} to {wide}") for v in (a, b))
        total = self.emit(f"{name} {wide} {self.emit(f'{name} {wide} {x}, {y}')}, {carry}")
        if "cc" in i.modifiers:
            upper = self.emit(f"lshr {wide} {total}, {kind.bits}")
            self.line(f"store i1 {self.emit(f'icmp ne {wide} {upper}, 0')}, ptr %carry")
        self.write(i.operands[0], kind, self.emit(f"trunc {wide} {total} to {kind.llvm}"))

    def rounded(self, i: Instruction, kind: PTXType, name: str, a: str, b: str) -> str:
        """A float operation in the rounding that is stated; a directed one of float by way of double."""
        mode = rounding(i)
        if mode == "rn":
            return self.emit(f"{name} {kind.llvm} {a}, {b}")
        if kind.name != "f32":
            raise self.unsupported(i)
        x, y = (self.emit(f"fpext float {v} to double") for v in (a, b))
        return self.double_to_float(self.emit(f"{name} double {x}, {y}"), mode)

    def op_mul(self, i: Instruction) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        if kind.is_float:
            self.result(i, kind, self.rounded(i, kind, "fmul", a, b))
        else:
            product, wide = self.product(i, kind, a, b)
            self.write(i.operands[0], wide, product)

    def product(self, i: Instruction, kind: PTXType, a: str, b: str) -> tuple[str, PTXType]:
        """The low or high half of an integer product, or all of it."""
        if "lo" in i.modifiers:
            return self.emit(f"mul {kind.llvm} {a}, {b}"), kind
        wide = f"i{2 * kind.bits}"
        grow = "sext" if kind.signed else "zext"
        x, y = (self.emit(f"{grow} {kind.llvm} {v} to {wide}") for v in (a, b))
        whole = self.emit(f"mul {wide} {x}, {y}")
        if "wide" in i.modifiers:
            return whole, ptx_type(f"{kind.kind}{2 * kind.bits}")
        return self.emit(f"trunc {wide} {self.emit(f'lshr {wide} {whole}, {kind.bits}')} to {kind.llvm}"), kind

    def op_mad(self, i: Instruction) -> None:
        kind = self.kind(i)
        if kind.is_float:
            self.op_fma(i)
            return
        a, b = (self.read(operand, kind) for operand in i.operands[1:3])
        product, wide = self.product(i, kind, a, b)
        addend = self.read(i.operands[3], wide)
        if "cc" in i.modifiers:
            self.carried(i, wide, "add", product, addend, "0")
        else:
            self.write(i.operands[0], wide, self.emit(f"add {wide.llvm} {product}, {addend}"))

    def op_madc(self, i: Instruction) -> None:
        kind = self.kind(i)
        a, b, c = self.reads(i, kind)
        product, _ = self.product(i, kind, a, b)
        carry = self.emit(f"zext i1 {self.emit('load i1, ptr %carry')} to i{2 * kind.bits}")
        self.carried(i, kind, "add", product, c, carry)

    def op_mul24(self, i: Instruction) -> None:
        kind = self.kind(i)
        grow = "ashr" if kind.signed else "lshr"
        a, b = (self.emit(f"{grow} i32 {self.emit(f'shl i32 {v}, 8')}, 8") for v in self.reads(i, kind))
        self.write(i.operands[0], kind, self.emit(f"mul i32 {a}, {b}"))

    def op_fma(self, i: Instruction) -> None:
        kind, mode = self.kind(i), rounding(i)
        a, b, c = self.reads(i, kind)
        if kind.bits == 16:  # exact product, and a sum that is rounded to odd before the last rounding
            x, y, z = (self.emit(f"fpext float {v} to double") for v in (a, b, c))
            total = self.call("llvm.fma.f64", "double", ("double", x), ("double", y), ("double", z))
            self.result(i, kind, self.double_to_float(total, "odd"))
            return
        if mode != "rn":
            if kind.name != "f32":
                raise self.unsupported(i)
            x, y, z = (self.emit(f"fpext float {v} to double") for v in (a, b, c))
            total = self.call("llvm.fma.f64", "double", ("double", x), ("double", y), ("double", z))
            self.result(i, kind, self.double_to_float(total, mode))
            return
        values = [(kind.llvm, v) for v in (a, b, c)]
        self.result(i, kind, self.call(f"llvm.fma.{overload(kind.llvm)}", kind.llvm, *values))

    def op_sad(self, i: Instruction) -> None:
        kind = self.kind(i)
        a, b, c = self.reads(i, kind)
        less = self.emit(f"icmp {'s' if kind.signed else 'u'}lt {kind.llvm} {a}, {b}")
        difference = self.emit(f"sub {kind.llvm} {a}, {b}")
        other = self.emit(f"sub {kind.llvm} {b}, {a}")
        size = self.emit(f"select i1 {less}, {kind.llvm} {other}, {kind.llvm} {difference}")
        self.write(i.operands[0], kind, self.emit(f"add {kind.llvm} {size}, {c}"))

    def op_div(self, i: Instruction) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        if kind.is_float:
            self.result(i, kind, self.emit(f"fdiv {kind.llvm} {a}, {b}"))
            return
        self.write(i.operands[0], kind, self.quotient("div", kind, a, b, "-1"))

    def op_rem(self, i: Instruction) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        self.write(i.operands[0], kind, self.quotient("rem", kind, a, b, a))

    def quotient(self, name: str, kind: PTXType, a: str, b: str, of_zero: str) -> str:
        """What the host would trap on gives a number, as on the device."""
        by_zero = unsafe = self.emit(f"icmp eq {kind.llvm} {b}, 0")
        if kind.signed:
            by_minus_one = self.emit(f"icmp eq {kind.llvm} {b}, -1")
            unsafe = self.emit(f"or i1 {by_zero}, {by_minus_one}")
        safe = self.emit(f"select i1 {unsafe}, {kind.llvm} 1, {kind.llvm} {b}")
        found = self.emit(f"{'s' if kind.signed else 'u'}{name} {kind.llvm} {a}, {safe}")
        if kind.signed and name == "div":
            negated = self.emit(f"sub {kind.llvm} 0, {a}")
            found = self.emit(f"select i1 {by_minus_one}, {kind.llvm} {negated}, {kind.llvm} {found}")
        return self.emit(f"select i1 {by_zero}, {kind.llvm} {of_zero}, {kind.llvm} {found}")

    def op_min(self, i: Instruction) -> None:
        self.extreme(i, "min")

    def op_max(self, i: Instruction) -> None:
        self.extreme(i, "max")

    def extreme(self, i: Instruction, name: str) -> None:
        kind = self.kind(i)
        found, *others = self.reads(i, kind)
        for other in others:
            if not kind.is_float:
                found = self.binary(f"llvm.{'s' if kind.signed else 'u'}{name}", kind, found, other)
            else:
                whole = f"llvm.{name}imum" if "NaN" in i.modifiers else f"llvm.{name}num"
                found = self.binary(whole, kind, found, other)
        self.result(i, kind, found)

    def op_abs(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        if kind.is_float:
            self.result(i, kind, self.unary("llvm.fabs", kind, a))
        else:
            found = self.call(f"llvm.abs.{kind.llvm}", kind.llvm, (kind.llvm, a), ("i1", "false"))
            self.write(i.operands[0], kind, found)

    def op_neg(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        self.result(i, kind, self.emit(f"fneg {kind.llvm} {a}" if kind.is_float else f"sub {kind.llvm} 0, {a}"))

    def op_copysign(self, i: Instruction) -> None:
        kind = self.kind(i)
        sign, size = self.reads(i, kind)
        self.write(i.operands[0], kind, self.binary("llvm.copysign", kind, size, sign))

    # functions of one float

    def op_rcp(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        self.result(i, kind, self.emit(f"fdiv {kind.llvm} 1.0, {a}"))

    def op_rsqrt(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        self.result(i, kind, self.emit(f"fdiv {kind.llvm} 1.0, {self.unary('llvm.sqrt', kind, a)}"))

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
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        self.result(i, kind, self.unary(name, kind, a))

    def op_testp(self, i: Instruction) -> None:
        kind = self.kind(i)
        masks = {"finite": 504, "infinite": 516, "number": 1020, "notanumber": 3, "normal": 264, "subnormal": 144}
        value = self.read(i.operands[1], kind)
        test = ("i32", str(masks[i.modifiers[0]]))
        found = self.call(f"llvm.is.fpclass.{overload(kind.llvm)}", "i1", (kind.llvm, value), test)
        self.write(i.operands[0], _PRED, found)

    # bits

    def op_and(self, i: Instruction) -> None:
        self.bitwise(i, "and")

    def op_or(self, i: Instruction) -> None:
        self.bitwise(i, "or")

    def op_xor(self, i: Instruction) -> None:
        self.bitwise(i, "xor")

    def bitwise(self, i: Instruction, name: str) -> None:
        kind = self.kind(i)
        a, b = self.reads(i, kind)
        self.write(i.operands[0], kind, self.emit(f"{name} {kind.llvm} {a}, {b}"))

    def op_not(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        self.write(i.operands[0], kind, self.emit(f"xor {kind.llvm} {a}, {'true' if kind.kind == 'p' else -1}"))

    def op_cnot(self, i: Instruction) -> None:
        kind = self.kind(i)
        (a,) = self.reads(i, kind)
        flag = self.emit(f"icmp eq {kind.llvm} {a}, 0")
        self.write(i.operands[0], kind, self.emit(f"zext i1 {flag} to {kind.llvm}"))

    def op_shl(self, i: Instruction) -> None:
        self.shift(i, "shl")

    def op_shr(self, i: Instruction) -> None:
        self.shift(i, "ashr" if self.kind(i).signed else "lshr")

    def shift(self, i: Instruction, name: str) -> None:
        """Amounts beyond the width shift everything out."""
        kind = self.kind(i)
        value, amount = self.read(i.operands[1], kind), self.read(i.operands[2], _U32)
        limit = kind.bits - 1
        beyond = self.emit(f"icmp ugt i32 {amount}, {limit}")
        amount = self.emit(f"select i1 {beyond}, i32 {limit}, i32 {amount}")
        amount = self.recast(amount, "i32", kind.llvm, False) if kind.bits != 32 else amount
        found = self.emit(f"{name} {kind.llvm} {value}, {amount}")
        if name != "ashr":
            found = self.emit(f"select i1 {beyond}, {kind.llvm} 0, {kind.llvm} {found}")
        self.write(i.operands[0], kind, found)

    def op_shf(self, i: Instruction) -> None:
        low, high, amount = self.reads(i, _U32)
        if "wrap" in i.modifiers:
            amount = self.emit(f"and i32 {amount}, 31")
        else:
            amount = self.call("llvm.umin.i32", "i32", ("i32", amount), ("i32", "32"))
        pair = self.joined(low, high)
        wide = self.emit(f"zext i32 {amount} to i64")
        if i.modifiers[0] == "l":
            pair = self.emit(f"lshr i64 {self.emit(f'shl i64 {pair}, {wide}')}, 32")
        else:
            pair = self.emit(f"lshr i64 {pair}, {wide}")
        self.write(i.operands[0], _U32, self.emit(f"trunc i64 {pair} to i32"))

    def joined(self, low: str, high: str) -> str:
        """Two words as one of 64 bits."""
        low, high = (self.emit(f"zext i32 {v} to i64") for v in (low, high))
        return self.emit(f"or i64 {low}, {self.emit(f'shl i64 {high}, 32')}")

    def op_bfe(self, i: Instruction) -> None:
        """A field of bits; what lies beyond the top repeats the sign."""
        kind = self.kind(i)
        value = self.read(i.operands[1], kind)
        begin, size = (self.emit(f"and i32 {self.read(o, _U32)}, 255") for o in i.operands[2:4])
        wide = "i512"  # wide enough for any begin and size
        grown = self.emit(f"{'sext' if kind.signed else 'zext'} {kind.llvm} {value} to {wide}")
        field = self.emit(f"lshr {wide} {grown}, {self.emit(f'zext i32 {begin} to {wide}')}")
        up = self.emit(f"zext i32 {self.emit(f'sub i32 511, {size}')} to {wide}")
        up = self.emit(f"add {wide} {up}, 1")
        empty = self.emit(f"icmp eq i32 {size}, 0")
        up = self.emit(f"select i1 {empty}, {wide} 0, {wide} {up}")
        field = self.emit(f"{'ashr' if kind.signed else 'lshr'} {wide} {self.emit(f'shl {wide} {field}, {up}')}, {up}")
        found = self.emit(f"trunc {wide} {field} to {kind.llvm}")
        self.write(i.operands[0], kind, self.emit(f"select i1 {empty}, {kind.llvm} 0, {kind.llvm} {found}"))

    def op_bfi(self, i: Instruction) -> None:
        kind = self.kind(i)
        field, into = (self.read(o, kind) for o in i.operands[1:3])
        begin, size = (self.emit(f"and i32 {self.read(o, _U32)}, 255") for o in i.operands[3:5])
        wide = "i512"
        width = self.emit(f"zext i32 {size} to {wide}")
        ones = self.emit(f"sub {wide} {self.emit(f'shl {wide} 1, {width}')}, 1")
        at = self.emit(f"zext i32 {begin} to {wide}")
        mask = self.emit(f"trunc {wide} {self.emit(f'shl {wide} {ones}, {at}')} to {kind.llvm}")
        moved = self.emit(f"shl {wide} {self.emit(f'zext {kind.llvm} {field} to {wide}')}, {at}")
        inside = self.emit(f"and {kind.llvm} {self.emit(f'trunc {wide} {moved} to {kind.llvm}')}, {mask}")
        outside = self.emit(f"and {kind.llvm} {into}, {self.emit(f'xor {kind.llvm} {mask}, -1')}")
        self.write(i.operands[0], kind, self.emit(f"or {kind.llvm} {inside}, {outside}"))

    def op_bfind(self, i: Instruction) -> None:
        kind = self.kind(i)
        value = self.read(i.operands[1], kind)
        if kind.signed:
            sign = self.emit(f"ashr {kind.llvm} {value}, {kind.bits - 1}")
            value = self.emit(f"xor {kind.llvm} {value}, {sign}")
        zeros = self.call(f"llvm.ctlz.{kind.llvm}", kind.llvm, (kind.llvm, value), ("i1", "false"))
        found = zeros if "shiftamt" in i.modifiers else self.emit(f"sub {kind.llvm} {kind.bits - 1}, {zeros}")
        none = self.emit(f"icmp eq {kind.llvm} {value}, 0")
        found = self.emit(f"select i1 {none}, {kind.llvm} -1, {kind.llvm} {found}")
        self.write(i.operands[0], kind, found)

    def op_brev(self, i: Instruction) -> None:
        kind = self.kind(i)
        self.write(i.operands[0], kind, self.unary("llvm.bitreverse", kind, self.read(i.operands[1], kind)))

    def op_clz(self, i: Instruction) -> None:
        kind = self.kind(i)
        value = self.read(i.operands[1], kind)
        found = self.call(f"llvm.ctlz.{kind.llvm}", kind.llvm, (kind.llvm, value), ("i1", "false"))
        self.write(i.operands[0], kind, found)

    def op_popc(self, i: Instruction) -> None:
        kind = self.kind(i)
        found = self.unary("llvm.ctpop", kind, self.read(i.operands[1], kind))
        self.write(i.operands[0], kind, found)

    def op_lop3(self, i: Instruction) -> None:
        """A function of three bits, given by its table."""
        a, b, c, table = (self.read(o, _U32) for o in i.operands[1:5])
        number, found = int(table) & 255, "0"
        negated = [self.emit(f"xor i32 {v}, -1") for v in (a, b, c)]
        for row in range(8):
            if number >> row & 1:
                x, y, z = (v if row >> bit & 1 else n for v, n, bit in zip((a, b, c), negated, (2, 1, 0), strict=True))
                term = self.emit(f"and i32 {self.emit(f'and i32 {x}, {y}')}, {z}")
                found = self.emit(f"or i32 {found}, {term}")
        self.write(i.operands[0], _U32, found)

    def op_prmt(self, i: Instruction) -> None:
        """Four bytes chosen from eight."""
        if len(i.modifiers) > 1:
            raise self.unsupported(i)
        a, b, chosen = self.reads(i, _U32)
        pair = self.joined(a, b)
        found = "0"
        for byte in range(4):
            nibble = self.emit(f"and i32 {self.emit(f'lshr i32 {chosen}, {4 * byte}')}, 15")
            number = self.emit(f"and i32 {nibble}, 7")
            at = self.emit(f"zext i32 {self.emit(f'shl i32 {number}, 3')} to i64")
            picked = self.emit(f"trunc i64 {self.emit(f'lshr i64 {pair}, {at}')} to i8")
            repeats = self.emit(f"icmp ugt i32 {nibble}, 7")
            picked = self.emit(f"select i1 {repeats}, i8 {self.emit(f'ashr i8 {picked}, 7')}, i8 {picked}")
            placed = self.emit(f"shl i32 {self.emit(f'zext i8 {picked} to i32')}, {8 * byte}")
            found = self.emit(f"or i32 {found}, {placed}")
        self.write(i.operands[0], _U32, found)

    def op_dp4a(self, i: Instruction) -> None:
        kinds = [m for m in i.modifiers if m[0] in "su"]
        signed_a, signed_b = (name[0] == "s" for name in kinds[:2])
        a, b, total = self.reads(i, _U32)
        for byte in range(4):
            factors = []
            for value, signed in ((a, signed_a), (b, signed_b)):
                part = self.emit(f"trunc i32 {self.emit(f'lshr i32 {value}, {8 * byte}')} to i8")
                factors.append(self.emit(f"{'sext' if signed else 'zext'} i8 {part} to i32"))
            total = self.emit(f"add i32 {total}, {self.emit(f'mul i32 {factors[0]}, {factors[1]}')}")
        self.write(i.operands[0], _U32, total)

    # comparison and selection

    def comparison(self, name: str, kind: PTXType, a: str, b: str) -> str:
        if kind.is_float:
            return self.emit(f"fcmp {_ORDERED[name]} {kind.llvm} {a}, {b}")
        predicate = _UNSIGNED.get(name) or (name if name in ("eq", "ne") else f"{'s' if kind.signed else 'u'}{name}")
        return self.emit(f"icmp {predicate} {kind.llvm} {a}, {b}")

    def compared(self, i: Instruction, operands: Sequence[Operand], kind: PTXType) -> tuple[str, str]:
        """What a comparison gives, and what it gives where the comparison is the other way round."""
        a, b = (self.read(operand, kind) for operand in operands[:2])
        if "ftz" in i.modifiers and kind.name == "f32":
            a, b = self.flushed(a), self.flushed(b)
        found = self.comparison(i.modifiers[0], kind, a, b)
        other = self.emit(f"xor i1 {found}, true")
        if len(operands) > 2:
            combine = next(m for m in i.modifiers if m in ("and", "or", "xor"))
            flag = self.read(operands[2], _PRED)
            found, other = (self.emit(f"{combine} i1 {v}, {flag}") for v in (found, other))
        return found, other

    def op_setp(self, i: Instruction) -> None:
        kind = self.kind(i)
        combined = any(m in ("and", "or", "xor") for m in i.modifiers)
        results = len(i.operands) - (3 if combined else 2)
        found, other = self.compared(i, i.operands[results:], kind)
        self.write(i.operands[0], _PRED, found)
        if results > 1:
            self.write(i.operands[1], _PRED, other)

    def op_set(self, i: Instruction) -> None:
        into = ptx_type(i.modifiers[-2])
        found, _ = self.compared(i, i.operands[1:], self.kind(i))
        if into.is_float:
            self.write(i.operands[0], into, self.emit(f"uitofp i1 {found} to {into.llvm}"))
        else:
            self.write(i.operands[0], into, self.emit(f"sext i1 {found} to {into.llvm}"))

    def op_selp(self, i: Instruction) -> None:
        kind = self.kind(i).raw
        yes, no = (self.read(operand, kind) for operand in i.operands[1:3])
        flag = self.read(i.operands[3], _PRED)
        self.write(i.operands[0], kind, self.emit(f"select i1 {flag}, {kind.llvm} {yes}, {kind.llvm} {no}"))

    def op_slct(self, i: Instruction) -> None:
        kind, by = ptx_type(i.modifiers[-2]).raw, self.kind(i)
        yes, no = (self.read(operand, kind) for operand in i.operands[1:3])
        zero = "0.0" if by.is_float else "0"
        flag = self.comparison("ge", by, self.read(i.operands[3], by), zero)
        self.write(i.operands[0], kind, self.emit(f"select i1 {flag}, {kind.llvm} {yes}, {kind.llvm} {no}"))

    # moves

    def op_mov(self, i: Instruction) -> None:
        kind = self.kind(i).raw
        target, source = i.operands
        if isinstance(source, Vector):
            self.write(target, kind, self.packed(source, kind))
        elif isinstance(target, Vector):
            whole = self.read(source, ptx_type(f"b{kind.bits}"))
            each = kind.bits // len(target.items)
            for lane, item in enumerate(target.items):
                part = self.emit(f"lshr i{kind.bits} {whole}, {lane * each}")
                self.write(item, ptx_type(f"b{each}"), self.emit(f"trunc i{kind.bits} {part} to i{each}"))
        else:
            self.write(target, kind, self.read(source, kind))

    def packed(self, source: Vector, kind: PTXType) -> str:
        each, word, found = kind.bits // len(source.items), f"i{kind.bits}", "0"
        for lane, item in enumerate(source.items):
            part = self.emit(f"zext i{each} {self.read(item, ptx_type(f'b{each}'))} to {word}")
            found = self.emit(f"or {word} {found}, {self.emit(f'shl {word} {part}, {lane * each}')}")
        return found
