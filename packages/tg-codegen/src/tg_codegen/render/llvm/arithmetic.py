"""Arithmetic as LLVM instructions: elementwise ops, matrix instructions."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import CONVERSIONS, LINEAR, Ops

from ...ir.facts import KernelFacts
from ...ir.matrix import AVX2_DOTS, AVX512_VNNI_PAIRED, PAIRED
from ...ir.uop import UOp
from .conversion import LLVMConversion
from .text import LLVMText, llvm_literal, llvm_type, overload

_FLOAT_ARITHMETIC = {Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv"}
_FLOAT_COMPARISON = {Ops.CMPLT: "olt", Ops.CMPEQ: "oeq", Ops.CMPNE: "une"}
_INT_ARITHMETIC = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.SHL: "shl",
}  # fmt: skip
_BOOL_ARITHMETIC = {
    Ops.ADD: "or", Ops.SUB: "xor", Ops.MUL: "and", Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.MAX: "or",
    Ops.IDIV: "and", Ops.CMPNE: "xor",
}  # fmt: skip
MATRICES = {
    "vdpbf16ps": ("llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>"),
    "vpdpbusd": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpbusd.turned": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpbusd.signed": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpbusd.unsigned": ("llvm.x86.avx512.vpdpbusd.512", "<64 x i8>"),
    "vpdpwssd": ("llvm.x86.avx512.vpdpwssd.512", "<32 x i16>"),
}
MATRICES |= {found.name: MATRICES[found.name.removeprefix(PAIRED)] for found in AVX512_VNNI_PAIRED}
MATRICES |= {found.name: ("llvm.x86.avx2.pmadd.wd", "<16 x i16>") for found in AVX2_DOTS}
TOP_BITS = -0x7F7F7F80
"""The top bit of each byte of a lane: flipped, it adds 128 to a byte, or takes 128 from it."""
_SCALES = {
    (dtypes.float32, 16): "llvm.x86.avx512.mask.scalef.ps.512",
    (dtypes.float64, 8): "llvm.x86.avx512.mask.scalef.pd.512",
}
_NO_WRAP = frozenset(instruction for op, instruction in _INT_ARITHMETIC.items() if op in LINEAR)


def splat(lanes: int, lane: str) -> str:
    """The vector whose lanes all are :data:`TOP_BITS`."""
    return f"<{', '.join([f'{lane} {TOP_BITS}'] * lanes)}>"


class LLVMArithmetic:
    """Elementwise work of one function.

    Args:
      text: what has been written of it.
      facts: what is known of the kernel's values.
      conversion: its casts.
    """

    def __init__(self, text: LLVMText, facts: KernelFacts, conversion: LLVMConversion) -> None:
        self._text, self._facts, self._conversion = text, facts, conversion

    def scale(self, u: UOp) -> str:
        """A multiplication by a power of two, which AVX-512 takes as a float."""
        kind, lanes = llvm_type(u.dtype), u.dtype.count
        direct = _SCALES.get((u.dtype.scalar(), lanes))
        if direct is not None:
            mask = "i16" if lanes == 16 else "i8"
            self._text.declarations[f"declare {kind} @{direct}({kind}, {kind}, {kind}, {mask}, i32)"] = None
            operands = ", ".join(self._text.typed(operand) for operand in u.src[:2])
            return self._text.emit(f"call {kind} @{direct}({operands}, {kind} zeroinitializer, {mask} -1, i32 4)")
        whole = dtypes.int32.vec(lanes)
        power = self._text.emit(f"fptosi {self._text.typed(u.src[1])} to {llvm_type(whole)}")
        name = f"llvm.ldexp.{overload(u.dtype)}.{overload(whole)}"
        self._text.declarations[f"declare {kind} @{name}({kind}, {llvm_type(whole)})"] = None
        return self._text.emit(f"call {kind} @{name}({self._text.typed(u.src[0])}, {llvm_type(whole)} {power})")

    def matrix(self, u: UOp) -> str:
        """A dot product: its first operand is one lane's worth, for all lanes, or, paired, has as many as the second.

        The instruction for bytes takes unsigned ones times signed ones. Where both have a sign, a + 128 is a byte
        without one, and 128 times the sum of b is subtracted; where neither has, b - 128 is a byte with one. What is
        subtracted depends on one operand alone: it is computed once for all rows, or for all columns, of a tile.
        """
        if u.arg in AVX2_DOTS:
            return self._pairs(u)
        intrinsic, kind = MATRICES[u.arg.name]
        acc, lanes = llvm_type(u.dtype), u.dtype.count
        lane = f"i{u.dtype.scalar().bits}"
        words = f"<{lanes} x {lane}>"
        if u.arg.paired:
            every = self._text.emit(f"bitcast {self._text.typed(u.src[1])} to {words}")
            if u.arg.name.endswith(".signed"):
                every = self._text.emit(f"xor {words} {every}, {splat(lanes, lane)}")
        else:
            one = self._text.emit(f"bitcast {self._text.typed(u.src[1])} to {lane}")
            if u.arg.name.endswith(".signed"):
                one = self._text.emit(f"xor {lane} {one}, {TOP_BITS}")
            every = self._text.emit(f"insertelement {words} poison, {lane} {one}, i32 0")
            every = self._text.emit(f"shufflevector {words} {every}, {words} poison, <{lanes} x i32> zeroinitializer")
        a = self._text.emit(f"bitcast {words} {every} to {kind}")
        b = self._text.value(u.src[2])
        if kind != llvm_type(u.src[2].dtype):
            b = self._text.emit(f"bitcast {self._text.typed(u.src[2])} to {kind}")
        if u.arg.name.endswith(".turned"):
            a, b = b, a
        self._text.declarations[f"declare {acc} @{intrinsic}({acc}, {kind}, {kind})"] = None
        rest: tuple[str, str] | None = None
        if u.arg.name.endswith("signed"):
            top = self._text.emit(f"bitcast {words} {splat(lanes, lane)} to {kind}")
            rest = (top, b)
            if u.arg.name.endswith(".unsigned"):
                b, rest = self._text.emit(f"xor {kind} {b}, {top}"), (a, top)
        total = self._text.emit(f"call {acc} @{intrinsic}({acc} {self._text.value(u.src[0])}, {kind} {a}, {kind} {b})")
        if rest is None:
            return total
        more = self._text.emit(f"call {acc} @{intrinsic}({acc} zeroinitializer, {kind} {rest[0]}, {kind} {rest[1]})")
        return self._text.emit(f"sub {acc} {total}, {more}")

    def _pairs(self, u: UOp) -> str:
        """A dot product of pairs of 16-bit integers, whose sum is added to the accumulator by another instruction."""
        intrinsic, kind = MATRICES[u.arg.name]
        acc, lanes = llvm_type(u.dtype), u.dtype.count
        first, second = (
            self._conversion.cast(self._text.value(s), s.dtype, dtypes.int16.vec(s.dtype.count)) for s in u.src[1:])
        if not u.arg.paired:
            pair = self._text.emit(f"bitcast <2 x i16> {first} to i32")
            every = self._text.emit(f"insertelement {acc} poison, i32 {pair}, i32 0")
            every = self._text.emit(f"shufflevector {acc} {every}, {acc} poison, <{lanes} x i32> zeroinitializer")
            first = self._text.emit(f"bitcast {acc} {every} to {kind}")
        self._text.declarations[f"declare {acc} @{intrinsic}({kind}, {kind})"] = None
        products = self._text.emit(f"call {acc} @{intrinsic}({kind} {first}, {kind} {second})")
        return self._text.emit(f"add {acc} {self._text.value(u.src[0])}, {products}")

    def alu(self, u: UOp) -> str:
        """An elementwise node.

        Raises:
          ValueError: if there is no instruction for the op.
        """
        op, dtype = u.op, u.src[-1].dtype
        if op in CONVERSIONS:
            convert = self._conversion.cast if op is Ops.CAST else self._conversion.bitcast
            return convert(self._text.value(u.src[0]), u.src[0].dtype, u.dtype)
        values = [self._text.value(operand) for operand in u.src]
        if op is Ops.WHERE:
            return self._text.select(values[0], values[1], values[2], dtype, llvm_type(u.src[0].dtype))
        if dtypes.is_float(dtype):
            found = self._float_alu(op, dtype, values)
        elif dtypes.is_bool(dtype):
            found = self._bool_alu(op, dtype, values)
        else:
            found = self._int_alu(u, dtype, values)
        if found is None:
            raise ValueError(f"LLVM: {u.op.name} of {dtype.name} has no instruction; it must be decomposed")
        return found

    def _float_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind, name = llvm_type(dtype), overload(dtype)
        if op in _FLOAT_ARITHMETIC:
            return self._text.emit(f"{_FLOAT_ARITHMETIC[op]} {kind} {v[0]}, {v[1]}")
        if op in _FLOAT_COMPARISON:
            return self._text.emit(f"fcmp {_FLOAT_COMPARISON[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return self._text.emit(f"fneg {kind} {v[0]}")
            case Ops.RECIP:
                return self._text.emit(f"fdiv {kind} {llvm_literal(1.0, dtype)}, {v[0]}")
            case Ops.SQRT:
                return self._text.call(f"llvm.sqrt.{name}", kind, (kind, v[0]))
            case Ops.TRUNC:
                return self._text.call(f"llvm.trunc.{name}", kind, (kind, v[0]))
            case Ops.EXP2:
                return self._text.call(f"llvm.exp2.{name}", kind, (kind, v[0]))
            case Ops.MULACC:
                return self._text.call(f"llvm.fmuladd.{name}", kind, *((kind, x) for x in v))
            case Ops.MAX:
                # On x86 this is max, compare, blend: max gives its second operand when either is NaN, so only a NaN in
                # the first needs mending. Without nsz the zeros would be ordered too, at twice the price; two nested
                # selects come out one instruction longer, because LLVM merges their conditions.
                return self._text.call(f"llvm.maximum.{name}", kind, *((kind, x) for x in v), flags="nsz ")
        return None

    def _bool_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind = llvm_type(dtype)
        if op in _BOOL_ARITHMETIC:
            return self._text.emit(f"{_BOOL_ARITHMETIC[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return self._text.emit(f"xor {kind} {v[0]}, {llvm_literal(True, dtype)}")
            case Ops.CMPEQ:
                return self._text.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self._text.emit(f"icmp ult {kind} {v[0]}, {v[1]}")
            case Ops.MOD:
                return llvm_literal(False, dtype)
            case Ops.MULACC:
                return self._text.emit(f"or {kind} {self._text.emit(f'and {kind} {v[0]}, {v[1]}')}, {v[2]}")
        return None

    def _int_alu(self, u: UOp, dtype: DType, v: list[str]) -> str | None:
        kind, sign = llvm_type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        exact = u in self._facts.address
        if u.op in _INT_ARITHMETIC:
            return self._int_binary(_INT_ARITHMETIC[u.op], kind, v[0], v[1], exact)
        match u.op:
            case Ops.NEG:
                return self._int_binary("sub", kind, llvm_literal(0, dtype), v[0], exact)
            case Ops.NOT:
                return self._text.emit(f"xor {kind} {v[0]}, {llvm_literal(-1, dtype)}")
            case Ops.MULACC:
                return self._int_binary("add", kind, self._int_binary("mul", kind, v[0], v[1], exact), v[2], exact)
            case Ops.MAX:
                return self._text.call(f"llvm.{sign}max.{overload(dtype)}", kind, (kind, v[0]), (kind, v[1]))
            case Ops.SHR:
                return self._text.emit(f"{'l' if sign == 'u' else 'a'}shr {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self._text.emit(f"icmp {sign}lt {kind} {v[0]}, {v[1]}")
            case Ops.CMPEQ:
                return self._text.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPNE:
                return self._text.emit(f"icmp ne {kind} {v[0]}, {v[1]}")
            case Ops.IDIV | Ops.MOD:
                return self._divide(u.op, dtype, v[0], v[1], guarded=not self._facts.divides_safely(u.src[1]))
        return None

    def _int_binary(self, instruction: str, kind: str, a: str, b: str, exact: bool) -> str:
        flags = " nsw" if exact and instruction in _NO_WRAP else ""
        return self._text.emit(f"{instruction}{flags} {kind} {a}, {b}")

    def _divide(self, op: Ops, dtype: DType, a: str, b: str, guarded: bool) -> str:
        kind, sign = llvm_type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        instruction = f"{sign}{'div' if op is Ops.IDIV else 'rem'}"
        if not guarded:
            return self._text.emit(f"{instruction} {kind} {a}, {b}")
        # Dividing by 0 and the least integer by -1 both trap on x86: divide by 1 instead and choose the result after.
        zero, one, minus_one = (llvm_literal(n, dtype) for n in (0, 1, -1))
        by_zero = unsafe = self._text.emit(f"icmp eq {kind} {b}, {zero}")
        if sign == "s":
            by_minus_one = self._text.emit(f"icmp eq {kind} {b}, {minus_one}")
            unsafe = self._text.emit(f"or {llvm_type(dtypes.bool.vec(dtype.count))} {by_zero}, {by_minus_one}")
        result = self._text.emit(f"{instruction} {kind} {a}, {self._text.select(unsafe, one, b, dtype)}")
        if op is Ops.MOD:
            return result  # a % 1 is 0, which is the answer in both cases
        if sign == "s":
            result = self._text.select(by_minus_one, self._text.emit(f"sub {kind} {zero}, {a}"), result, dtype)
        return self._text.select(by_zero, zero, result, dtype)
