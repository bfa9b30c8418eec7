"""Arithmetic as LLVM instructions: elementwise ops, conversions, matrix instructions."""

from __future__ import annotations

from collections.abc import Callable

from tg_dtype import DType, dtypes
from tg_lazy import Ops

from ..ir.facts import KernelFacts
from ..ir.uop import UOp
from .llvm_text import LLVMText, literal, llvm_type, overload

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
    "vpdpwssd": ("llvm.x86.avx512.vpdpwssd.512", "<32 x i16>"),
}
_SCALES = {
    (dtypes.float32, 16): "llvm.x86.avx512.mask.scalef.ps.512",
    (dtypes.float64, 8): "llvm.x86.avx512.mask.scalef.pd.512",
}
_NO_WRAP = frozenset({"add", "sub", "mul", "shl"})


class LLVMArithmetic(LLVMText):
    """Elementwise work of one function.

    Args:
      facts: what is known of the kernel's values.
    """

    def __init__(self, facts: KernelFacts) -> None:
        super().__init__()
        self.facts = facts

    def scale(self, u: UOp) -> str:
        """A multiplication by a power of two, which AVX-512 takes as a float."""
        kind, lanes = llvm_type(u.dtype), u.dtype.count
        direct = _SCALES.get((u.dtype.scalar(), lanes))
        if direct is not None:
            mask = "i16" if lanes == 16 else "i8"
            self.declarations[f"declare {kind} @{direct}({kind}, {kind}, {kind}, {mask}, i32)"] = None
            operands = f"{self.typed(u.src[0])}, {self.typed(u.src[1])}, {kind} zeroinitializer, {mask} -1, i32 4"
            return self.emit(f"call {kind} @{direct}({operands})")
        whole = dtypes.int32.vec(lanes)
        power = self.emit(f"fptosi {self.typed(u.src[1])} to {llvm_type(whole)}")
        name = f"llvm.ldexp.{overload(u.dtype)}.{overload(whole)}"
        self.declarations[f"declare {kind} @{name}({kind}, {llvm_type(whole)})"] = None
        return self.emit(f"call {kind} @{name}({self.typed(u.src[0])}, {llvm_type(whole)} {power})")

    def matrix(self, u: UOp) -> str:
        """A dot product: its first operand is one lane's worth, for all lanes."""
        intrinsic, kind = MATRICES[u.arg.name]
        acc, lanes = llvm_type(u.dtype), u.dtype.count
        lane = f"i{u.dtype.scalar().bits}"
        one = self.emit(f"bitcast {self.typed(u.src[1])} to {lane}")
        every = self.emit(f"insertelement <{lanes} x {lane}> poison, {lane} {one}, i32 0")
        words = f"<{lanes} x {lane}>"
        every = self.emit(f"shufflevector {words} {every}, {words} poison, <{lanes} x i32> zeroinitializer")
        a = self.emit(f"bitcast {words} {every} to {kind}")
        b = self.value(u.src[2])
        if kind != llvm_type(u.src[2].dtype):
            b = self.emit(f"bitcast {self.typed(u.src[2])} to {kind}")
        if u.arg.name.endswith(".turned"):
            a, b = b, a
        self.declarations[f"declare {acc} @{intrinsic}({acc}, {kind}, {kind})"] = None
        return self.emit(f"call {acc} @{intrinsic}({acc} {self.value(u.src[0])}, {kind} {a}, {kind} {b})")

    def alu(self, u: UOp) -> str:
        op, dtype = u.op, u.src[-1].dtype
        if op in (Ops.CAST, Ops.BITCAST):
            convert: Callable[[str, DType, DType], str] = self.cast if op is Ops.CAST else self.bitcast
            return convert(self.value(u.src[0]), u.src[0].dtype, u.dtype)
        values = [self.value(operand) for operand in u.src]
        if op is Ops.WHERE:
            return self.select(values[0], values[1], values[2], dtype, llvm_type(u.src[0].dtype))
        if dtypes.is_float(dtype):
            found = self.float_alu(op, dtype, values)
        elif dtypes.is_bool(dtype):
            found = self.bool_alu(op, dtype, values)
        else:
            found = self.int_alu(u, dtype, values)
        if found is None:
            raise ValueError(f"LLVM: {u.op.name} of {dtype.name} has no instruction; it must be decomposed")
        return found

    def select(self, condition: str, yes: str, no: str, dtype: DType, condition_type: str = "") -> str:
        kind = llvm_type(dtype)
        mask = condition_type or llvm_type(dtypes.bool.vec(dtype.count))
        return self.emit(f"select {mask} {condition}, {kind} {yes}, {kind} {no}")

    def float_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind, name = llvm_type(dtype), overload(dtype)
        if op in _FLOAT_ARITHMETIC:
            return self.emit(f"{_FLOAT_ARITHMETIC[op]} {kind} {v[0]}, {v[1]}")
        if op in _FLOAT_COMPARISON:
            return self.emit(f"fcmp {_FLOAT_COMPARISON[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return self.emit(f"fneg {kind} {v[0]}")
            case Ops.RECIP:
                return self.emit(f"fdiv {kind} {literal(1.0, dtype)}, {v[0]}")
            case Ops.SQRT:
                return self.call(f"llvm.sqrt.{name}", kind, (kind, v[0]))
            case Ops.TRUNC:
                return self.call(f"llvm.trunc.{name}", kind, (kind, v[0]))
            case Ops.MULACC:
                return self.call(f"llvm.fmuladd.{name}", kind, *((kind, x) for x in v))
            case Ops.MAX:
                # On x86 this is max, compare, blend: max gives its second operand when either is NaN, so only a NaN in
                # the first needs mending. Without nsz the zeros would be ordered too, at twice the price; two nested
                # selects come out one instruction longer, because LLVM merges their conditions.
                return self.call(f"llvm.maximum.{name}", kind, *((kind, x) for x in v), flags="nsz ")
        return None

    def bool_alu(self, op: object, dtype: DType, v: list[str]) -> str | None:
        kind = llvm_type(dtype)
        if op in _BOOL_ARITHMETIC:
            return self.emit(f"{_BOOL_ARITHMETIC[op]} {kind} {v[0]}, {v[1]}")
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return self.emit(f"xor {kind} {v[0]}, {literal(True, dtype)}")
            case Ops.CMPEQ:
                return self.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self.emit(f"icmp ult {kind} {v[0]}, {v[1]}")
            case Ops.MOD:
                return literal(False, dtype)
            case Ops.MULACC:
                return self.emit(f"or {kind} {self.emit(f'and {kind} {v[0]}, {v[1]}')}, {v[2]}")
        return None

    def int_alu(self, u: UOp, dtype: DType, v: list[str]) -> str | None:
        kind, sign = llvm_type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        exact = u in self.facts.address
        if u.op in _INT_ARITHMETIC:
            return self.int_binary(_INT_ARITHMETIC[u.op], kind, v[0], v[1], exact)
        match u.op:
            case Ops.NEG:
                return self.int_binary("sub", kind, literal(0, dtype), v[0], exact)
            case Ops.NOT:
                return self.emit(f"xor {kind} {v[0]}, {literal(-1, dtype)}")
            case Ops.MULACC:
                return self.int_binary("add", kind, self.int_binary("mul", kind, v[0], v[1], exact), v[2], exact)
            case Ops.MAX:
                return self.call(f"llvm.{sign}max.{overload(dtype)}", kind, (kind, v[0]), (kind, v[1]))
            case Ops.SHR:
                return self.emit(f"{'l' if sign == 'u' else 'a'}shr {kind} {v[0]}, {v[1]}")
            case Ops.CMPLT:
                return self.emit(f"icmp {sign}lt {kind} {v[0]}, {v[1]}")
            case Ops.CMPEQ:
                return self.emit(f"icmp eq {kind} {v[0]}, {v[1]}")
            case Ops.CMPNE:
                return self.emit(f"icmp ne {kind} {v[0]}, {v[1]}")
            case Ops.IDIV | Ops.MOD:
                return self.divide(u.op, dtype, v[0], v[1], guarded=not self.facts.divides_safely(u.src[1]))
        return None

    def int_binary(self, instruction: str, kind: str, a: str, b: str, exact: bool) -> str:
        flags = " nsw" if exact and instruction in _NO_WRAP else ""
        return self.emit(f"{instruction}{flags} {kind} {a}, {b}")

    def divide(self, op: Ops, dtype: DType, a: str, b: str, guarded: bool) -> str:
        kind, sign = llvm_type(dtype), "u" if dtypes.is_unsigned(dtype) else "s"
        instruction = f"{sign}{'div' if op is Ops.IDIV else 'rem'}"
        if not guarded:
            return self.emit(f"{instruction} {kind} {a}, {b}")
        # Dividing by 0 and the least integer by -1 both trap on x86: divide by 1 instead and choose the result after.
        zero, one, minus_one = (literal(n, dtype) for n in (0, 1, -1))
        by_zero = unsafe = self.emit(f"icmp eq {kind} {b}, {zero}")
        if sign == "s":
            by_minus_one = self.emit(f"icmp eq {kind} {b}, {minus_one}")
            unsafe = self.emit(f"or {llvm_type(dtypes.bool.vec(dtype.count))} {by_zero}, {by_minus_one}")
        result = self.emit(f"{instruction} {kind} {a}, {self.select(unsafe, one, b, dtype)}")
        if op is Ops.MOD:
            return result  # a % 1 is 0, which is the answer in both cases
        if sign == "s":
            result = self.select(by_minus_one, self.emit(f"sub {kind} {zero}, {a}"), result, dtype)
        return self.select(by_zero, zero, result, dtype)

    def bitcast(self, value: str, src: DType, dst: DType) -> str:
        raw = self.to_memory(value, src)
        if llvm_type(src, memory=True) != llvm_type(dst, memory=True):
            raw = self.emit(f"bitcast {llvm_type(src, memory=True)} {raw} to {llvm_type(dst, memory=True)}")
        return self.from_memory(raw, dst)

    def broadcast(self, u: UOp) -> str:
        """A scalar in all lanes; what was widened from 16 bits is widened there, which takes fewer instructions."""
        scalar = u.src[0]
        if scalar.op is Ops.CAST and scalar.dtype is dtypes.float32 and scalar.src[0].dtype is dtypes.float16:
            narrow = dtypes.float16.vec(u.dtype.count)
            return self.cast_float(self.splat(self.value(scalar.src[0]), narrow), narrow, u.dtype)
        return self.splat(self.value(scalar), u.dtype)

    def cast(self, value: str, src: DType, dst: DType) -> str:
        if src is dst:
            return value
        from_type, to_type = llvm_type(src), llvm_type(dst)
        if dtypes.is_bool(dst):
            comparison = "fcmp une" if dtypes.is_float(src) else "icmp ne"
            return self.emit(f"{comparison} {from_type} {value}, {literal(dtypes.as_const(0, src), src)}")
        if dtypes.is_float(src):
            if dtypes.is_float(dst):
                return self.cast_float(value, src, dst)
            if src.count > 1:
                return self.saturate(value, src, dst)
            kind = "ui" if dtypes.is_unsigned(dst) else "si"
            return self.call(f"llvm.fpto{kind}.sat.{overload(dst)}.{overload(src)}", to_type, (from_type, value))
        unsigned = dtypes.is_unsigned(src) or dtypes.is_bool(src)
        if dtypes.is_float(dst):
            # Exact up to 2**24, and float16 is infinite from 65520 on: going through float32 rounds only once.
            via = dtypes.float32.vec(dst.count) if dst.scalar() is dtypes.float16 else dst
            number = self.emit(f"{'ui' if unsigned else 'si'}tofp {from_type} {value} to {llvm_type(via)}")
            return self.cast(number, via, dst)
        if dst.bits == src.bits:
            return value
        instruction = "trunc" if dst.bits < src.bits else "zext" if unsigned else "sext"
        return self.emit(f"{instruction} {from_type} {value} to {to_type}")

    def saturate(self, value: str, src: DType, dst: DType) -> str:
        """Vectors of floats to integers. LLVM has an intrinsic, but makes scalars of it on x86."""
        if src.bits < 32:
            value, src = self.cast(value, src, dtypes.float32.vec(src.count)), dtypes.float32.vec(src.count)
        kind, low, high = llvm_type(src), int(dtypes.min(dst)), int(dtypes.max(dst))
        # Narrow integers are converted as 32 bits.
        via = dst if dst.bits >= 32 else dtypes.int32.vec(dst.count)
        least = literal(float(low), src)
        if dst.bits <= dtypes.finfo(src)[1] + 1:  # the greatest value is a float: clamp, and mend NaN
            greatest = literal(float(high), src)
            value = self.select(self.emit(f"fcmp uno {kind} {value}, {value}"), literal(0.0, src), value, src)
            value = self.select(self.emit(f"fcmp ogt {kind} {value}, {least}"), value, least, src)
            value = self.select(self.emit(f"fcmp olt {kind} {value}, {greatest}"), value, greatest, src)
            number = self.to_int(value, src, via)
            return self.cast(number, via, dst)
        past = literal(float(high + 1), src)
        above, below = self.emit(f"fcmp oge {kind} {value}, {past}"), self.emit(f"fcmp ole {kind} {value}, {least}")
        flags = llvm_type(dtypes.bool.vec(src.count))
        unfit = self.emit(f"or {flags} {self.emit(f'fcmp uno {kind} {value}, {value}')}, {above}")
        unfit = self.emit(f"or {flags} {unfit}, {below}")
        number = self.to_int(self.select(unfit, literal(0.0, src), value, src), src, dst)
        if low:
            number = self.select(below, literal(low, dst), number, dst)
        return self.select(above, literal(high, dst), number, dst)

    def to_int(self, value: str, src: DType, dst: DType) -> str:
        sign = "ui" if dtypes.is_unsigned(dst) else "si"
        return self.emit(f"fpto{sign} {llvm_type(src)} {value} to {llvm_type(dst)}")

    def cast_float(self, value: str, src: DType, dst: DType) -> str:
        if dst.bits > src.bits:
            return self.emit(f"fpext {llvm_type(src)} {value} to {llvm_type(dst)}")
        if src.scalar() is dtypes.float64 and dst.scalar() is dtypes.float16:
            value, src = self.round_to_odd(value, src.count), dtypes.float32.vec(src.count)
        return self.emit(f"fptrunc {llvm_type(src)} {value} to {llvm_type(dst)}")

    def round_to_odd(self, value: str, count: int) -> str:
        """float64 to float32 such that rounding the result once more, to float16, is as rounding once.

        x86 has no instruction for float64 to float16, and LLVM would call a library.
        """
        double, single, word = dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.int32.vec(count)
        d, s, w = llvm_type(double), llvm_type(single), llvm_type(word)
        near = self.emit(f"fptrunc {d} {value} to {s}")
        back = self.emit(f"fpext {s} {near} to {d}")
        fabs = f"llvm.fabs.{overload(double)}"
        away = self.emit(f"fcmp ogt {d} {self.call(fabs, d, (d, back))}, {self.call(fabs, d, (d, value))}")
        bits = self.emit(f"bitcast {s} {near} to {w}")
        step = self.emit(f"sext {llvm_type(dtypes.bool.vec(count))} {away} to {w}")
        toward_zero = self.emit(f"add {w} {bits}, {step}")
        odd = self.emit(f"or {w} {toward_zero}, {literal(1, word)}")
        inexact = self.emit(f"fcmp one {d} {back}, {value}")
        return self.emit(f"bitcast {w} {self.select(inexact, odd, bits, word)} to {s}")
