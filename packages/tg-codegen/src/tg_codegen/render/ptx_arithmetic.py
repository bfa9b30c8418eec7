"""PTX arithmetic: registers, literals, and the instructions of each scalar op and conversion.

How values are kept:

* A bool is a predicate register.
* Integers of 8, 16 and 32 bits are in 32-bit registers. A narrow one is always in its range, sign- or zero-extended:
  whatever may leave the range is followed by a ``cvt`` that brings it back.
* float16 and bfloat16 are in 16-bit registers.

Source: NVIDIA, *Parallel Thread Execution ISA*, chapters "Instruction Set" and "Directives".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import ConstType, DType, dtypes, to_bits
from tg_lazy import Ops

f16, bf16, f32, f64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64

_FLOAT_SUFFIX = {f16: "f16", bf16: "bf16", f32: "f32", f64: "f64"}
_FLOAT_CLASS = {f16: "h", bf16: "h", f32: "f", f64: "d"}
_REGISTER_TYPE = {"p": "pred", "h": "b16", "r": "b32", "rd": "b64", "f": "f32", "d": "f64"}
_FLOAT_COMPARISON = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "neu"}
_INT_COMPARISON = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
_BITWISE = {Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
_FLOAT_BINARY = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul"}
_LOGIC = {
    Ops.ADD: "or", Ops.MAX: "or", Ops.OR: "or", Ops.MUL: "and", Ops.AND: "and", Ops.IDIV: "and", Ops.SUB: "xor",
    Ops.XOR: "xor", Ops.CMPNE: "xor",
}  # fmt: skip


def register_class(dtype: DType) -> str:
    """The letter of the registers that hold a scalar."""
    if dtypes.is_bool(dtype):
        return "p"
    if dtypes.is_float(dtype):
        found = _FLOAT_CLASS.get(dtype)
        if found is None:
            raise ValueError(f"PTX: {dtype.name} has no arithmetic here; it must be legalised")
        return found
    return "rd" if dtype.bits == 64 else "r"


def suffix(dtype: DType) -> str:
    """The type of an instruction that computes with a scalar in its register."""
    if dtypes.is_float(dtype):
        return _FLOAT_SUFFIX[dtype]
    return f"{'u' if dtypes.is_unsigned(dtype) else 's'}{64 if dtype.bits == 64 else 32}"


def bits_suffix(dtype: DType) -> str:
    """The untyped suffix for a scalar's register."""
    return {"h": "b16", "r": "b32", "rd": "b64", "f": "f32", "d": "f64"}[register_class(dtype)]


def memory_suffix(dtype: DType) -> str:
    """The type under which a scalar lies in memory."""
    if dtypes.is_bool(dtype):
        return "u8"
    if dtypes.is_float(dtype):
        return "b16" if dtype.bits == 16 else suffix(dtype)
    return f"b{dtype.bits}" if dtype.bits >= 32 else f"{'u' if dtypes.is_unsigned(dtype) else 's'}{dtype.bits}"


class PTXArithmetic:
    """The text of a kernel's body as it grows, and the instructions of scalar ops.

    Args:
      sm: compute capability as one number, 80 for 8.0.
      fused: whether MULACC is one instruction.
    """

    language: ClassVar[str] = "PTX"

    def __init__(self, sm: int, fused: bool) -> None:
        self.sm, self.fused = sm, fused
        self.body: list[str] = []
        self.counts: dict[str, int] = dict.fromkeys(_REGISTER_TYPE, 0)

    # writing

    def line(self, text: str) -> None:
        self.body.append(f"  {text};")

    def register(self, kind: str) -> str:
        """A new register of a class."""
        self.counts[kind] += 1
        return f"%{kind}{self.counts[kind]}"

    def emit(self, instruction: str, kind: str, *operands: str) -> str:
        """An instruction with a new register as its destination."""
        found = self.register(kind)
        self.line(f"{instruction} {', '.join((found, *operands))}")
        return found

    def declarations(self) -> list[str]:
        """The registers in use."""
        return [f"  .reg .{_REGISTER_TYPE[kind]} %{kind}<{n + 1}>;" for kind, n in self.counts.items() if n]

    def move(self, value: str, dtype: DType) -> str:
        """The value in a register of its own."""
        kind = register_class(dtype)
        return self.emit("mov.pred" if kind == "p" else f"mov.{bits_suffix(dtype)}", kind, value)

    def in_register(self, value: str, dtype: DType) -> str:
        """The value itself if it is in a register, else in one of its own."""
        return value if value.startswith("%") else self.move(value, dtype)

    # literals

    def literal(self, value: ConstType, dtype: DType) -> str:
        """A constant as an operand; what has no immediate form is put in a register."""
        if dtypes.is_bool(dtype):
            return self.emit("mov.pred", "p", "1" if value else "0")
        if dtype is f32:
            return f"0f{to_bits(value, f32):08X}"
        if dtype is f64:
            return f"0d{to_bits(value, f64):016X}"
        if dtypes.is_float(dtype):
            return self.emit("mov.b16", register_class(dtype), f"0x{to_bits(value, dtype):04X}")
        number, bits = int(value), 64 if dtype.bits == 64 else 32
        if number >= 1 << (bits - 1):
            number -= 1 << bits
        return hex(1 << (bits - 1)) if number == -(1 << (bits - 1)) else str(number)

    # elementwise

    def scalar(self, op: Ops, dtype: DType, v: Sequence[str], exact: bool, guarded: bool) -> str | None:
        """An op other than casts; None if there is no form. ``dtype`` is that of the last operand."""
        if op is Ops.WHERE:
            return self.select(v[0], v[1], v[2], dtype)
        if dtypes.is_bool(dtype):
            return self.logic(op, v)
        if dtypes.is_float(dtype):
            return self.float_op(op, dtype, v)
        return self.int_op(op, dtype, v, exact, guarded)

    def select(self, condition: str, yes: str, no: str, dtype: DType) -> str:
        if dtypes.is_bool(dtype):
            chosen = self.emit("and.pred", "p", condition, yes)
            other = self.emit("and.pred", "p", self.emit("not.pred", "p", condition), no)
            return self.emit("or.pred", "p", chosen, other)
        return self.emit(f"selp.{bits_suffix(dtype)}", register_class(dtype), yes, no, condition)

    def logic(self, op: Ops, v: Sequence[str]) -> str | None:
        if op in _LOGIC:
            return self.emit(f"{_LOGIC[op]}.pred", "p", v[0], v[1])
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return self.emit("not.pred", "p", v[0])
            case Ops.CMPLT:
                return self.emit("and.pred", "p", self.emit("not.pred", "p", v[0]), v[1])
            case Ops.CMPEQ:
                return self.emit("not.pred", "p", self.emit("xor.pred", "p", v[0], v[1]))
            case Ops.MOD:
                return self.literal(False, dtypes.bool)
            case Ops.MULACC:
                return self.emit("or.pred", "p", self.emit("and.pred", "p", v[0], v[1]), v[2])
        return None

    # floats

    def float_op(self, op: Ops, dtype: DType, v: Sequence[str]) -> str | None:
        kind, name = register_class(dtype), suffix(dtype)
        if op in _FLOAT_COMPARISON:
            return self.emit(f"setp.{_FLOAT_COMPARISON[op]}.{name}", "p", v[0], v[1])
        if op in _FLOAT_BINARY:
            # with a stated rounding it is never contracted
            return self.emit(f"{_FLOAT_BINARY[op]}.rn.{name}", kind, v[0], v[1])
        match op:
            case Ops.NEG:
                return self.emit(f"neg.{name}", kind, v[0])
            case Ops.MAX:
                return self.maximum(dtype, v)
            case Ops.MULACC if self.fused:
                return self.emit(f"fma.rn.{name}", kind, *v)
            case Ops.MULACC:
                product = self.emit(f"mul.rn.{name}", kind, v[0], v[1])
                return self.emit(f"add.rn.{name}", kind, product, v[2])
            case Ops.TRUNC if dtype is bf16:
                return self.through_f32(op, dtype, v)
            case Ops.TRUNC:
                return self.emit(f"cvt.rzi.{name}.{name}", kind, self.in_register(v[0], dtype))
        if dtype.bits == 16:  # float32 holds enough digits for a second rounding to change nothing
            return self.through_f32(op, dtype, v)
        match op:
            case Ops.FDIV:
                return self.emit(f"div.rn.{name}", kind, v[0], v[1])
            case Ops.RECIP:
                return self.emit(f"rcp.rn.{name}", kind, v[0])
            case Ops.SQRT:
                return self.emit(f"sqrt.rn.{name}", kind, v[0])
            case Ops.EXP2 if dtype is f32:
                return self.emit("ex2.approx.f32", kind, v[0])
            case Ops.LOG2 if dtype is f32:
                return self.emit("lg2.approx.f32", kind, v[0])
        return None

    def through_f32(self, op: Ops, dtype: DType, v: Sequence[str]) -> str | None:
        found = self.float_op(op, f32, [self.cast(x, dtype, f32) for x in v])
        return None if found is None else self.cast(found, f32, dtype)

    def maximum(self, dtype: DType, v: Sequence[str]) -> str:
        """The greater; NaN if either is."""
        kind, name = register_class(dtype), suffix(dtype)
        if dtype is not f64 and self.sm >= 80:
            return self.emit(f"max.NaN.{name}", kind, v[0], v[1])
        if dtype.bits == 16:
            single = self.maximum(f32, [self.cast(x, dtype, f32) for x in v])
            return self.cast(single, f32, dtype)
        greater = self.emit(f"max.{name}", kind, v[0], v[1])
        unordered = self.emit(f"setp.nan.{name}", "p", v[0], v[1])
        return self.select(unordered, self.literal(float("nan"), dtype), greater, dtype)

    # integers

    def int_op(self, op: Ops, dtype: DType, v: Sequence[str], exact: bool, guarded: bool) -> str | None:
        kind, name, bits = register_class(dtype), suffix(dtype), bits_suffix(dtype)
        if op in _INT_COMPARISON:
            return self.emit(f"setp.{_INT_COMPARISON[op]}.{name}", "p", v[0], v[1])
        if op in _BITWISE:
            return self.emit(f"{_BITWISE[op]}.{bits}", kind, v[0], v[1])
        match op:
            case Ops.ADD | Ops.SUB:
                found = self.emit(f"{op.name.lower()}.{name}", kind, v[0], v[1])
            case Ops.MUL:
                found = self.emit(f"mul.lo.{name}", kind, v[0], v[1])
            case Ops.MULACC:
                found = self.emit(f"mad.lo.{name}", kind, *v)
            case Ops.NEG:
                found = self.emit(f"neg.s{64 if dtype.bits == 64 else 32}", kind, v[0])
            case Ops.NOT:
                found = self.emit(f"not.{bits}", kind, v[0])
            case Ops.MAX:
                return self.emit(f"max.{name}", kind, v[0], v[1])
            case Ops.SHL:
                found = self.emit(f"shl.{bits}", kind, v[0], self.shift_amount(v[1], dtype))
            case Ops.SHR:
                return self.emit(f"shr.{name}", kind, v[0], self.shift_amount(v[1], dtype))
            case Ops.IDIV | Ops.MOD:
                found = self.divide(op, dtype, v[0], v[1], guarded)
            case _:
                return None
        return found if exact else self.normal(found, dtype)

    def shift_amount(self, amount: str, dtype: DType) -> str:
        return self.emit("cvt.u32.u64", "r", amount) if dtype.bits == 64 and amount.startswith("%") else amount

    def normal(self, value: str, dtype: DType) -> str:
        """A result in a 32-bit register brought back into the range of a narrow dtype."""
        if dtype.bits >= 32:
            return value
        sign = "u" if dtypes.is_unsigned(dtype) else "s"
        return self.emit(f"cvt.{sign}32.{sign}{dtype.bits}", "r", value)

    def divide(self, op: Ops, dtype: DType, a: str, b: str, guarded: bool) -> str:
        kind, name = register_class(dtype), suffix(dtype)
        instruction = f"{'div' if op is Ops.IDIV else 'rem'}.{name}"
        if not guarded:
            return self.emit(instruction, kind, a, b)
        # Neither division by 0 nor the least integer by -1 is defined: divide by 1, and choose the result after.
        by_zero = unsafe = self.emit(f"setp.eq.{name}", "p", b, "0")
        signed = not dtypes.is_unsigned(dtype)
        if signed:
            by_minus_one = self.emit(f"setp.eq.{name}", "p", b, "-1")
            unsafe = self.emit("or.pred", "p", by_zero, by_minus_one)
        result = self.emit(instruction, kind, a, self.select(unsafe, "1", b, dtype))
        if op is Ops.MOD:
            return result  # a % 1 is 0, which is the answer in both cases
        if signed:
            result = self.select(by_minus_one, self.emit(f"neg.{name}", kind, a), result, dtype)
        return self.select(by_zero, "0", result, dtype)

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        """A scalar converted by value."""
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            zero = self.literal(dtypes.as_const(0, src), src)
            return self.emit(f"setp.{'neu' if dtypes.is_float(src) else 'ne'}.{suffix(src)}", "p", x, zero)
        if dtypes.is_bool(src):
            one, zero = (self.literal(dtypes.as_const(n, dst), dst) for n in (1, 0))
            return self.select(x, one, zero, dst)
        x = self.in_register(x, src)
        if dtypes.is_float(src):
            return self.cast_float(x, src, dst) if dtypes.is_float(dst) else self.to_int(x, src, dst)
        if dst is bf16:
            return self.narrow(x, src)
        if dtypes.is_float(dst):
            return self.emit(f"cvt.rn.{suffix(dst)}.{suffix(src)}", register_class(dst), x)
        if src.bits == 64 and dst.bits < 64:
            return self.normal(self.emit("cvt.u32.u64", "r", x), dst)
        if dst.bits == 64:
            return x if src.bits == 64 else self.emit(f"cvt.{suffix(dst)}.{suffix(src)}", "rd", x)
        # What a register holds is in the range of src already.
        return x if dst.bits > src.bits else self.normal(x, dst)

    def cast_float(self, x: str, src: DType, dst: DType) -> str:
        if src is bf16:
            single = self.emit("cvt.f32.bf16", "f", x)
            return self.cast(single, f32, dst)
        if dst is bf16:
            if src is f16:
                x, src = self.cast(x, f16, f32), f32
            return self.emit("cvt.rn.bf16.f32", "h", x) if src is f32 else self.narrow(x, src)
        rounding = ".rn" if dst.bits < src.bits else ""
        return self.emit(f"cvt{rounding}.{suffix(dst)}.{suffix(src)}", register_class(dst), x)

    def narrow(self, x: str, src: DType) -> str:
        """To bfloat16 by way of float32 rounded to odd, so that the second rounding is as good as one."""
        kind, name = register_class(src), suffix(src)
        single = self.emit(f"cvt.rz.f32.{name}", "f", x)
        back = self.emit(f"cvt{'' if src is f64 else '.rzi'}.{name}.f32", kind, single)
        inexact = self.emit(f"setp.ne.{name}", "p", back, x)
        word = self.emit("mov.b32", "r", single)
        odd = self.select(inexact, self.emit("or.b32", "r", word, "1"), word, dtypes.int32)
        return self.emit("cvt.rn.bf16.f32", "h", self.emit("mov.b32", "f", odd))

    def to_int(self, x: str, src: DType, dst: DType) -> str:
        """Toward zero; what does not fit becomes the nearest that does, and NaN 0."""
        if src is bf16:
            x, src = self.cast(x, bf16, f32), f32
        name, kind = suffix(dst), register_class(dst)
        number = self.emit(f"cvt.rzi.{name}.{suffix(src)}", kind, x)
        if src is f64 or dst.bits == 64:  # there a NaN gives the least integer
            ordered = self.emit(f"setp.eq.{suffix(src)}", "p", x, x)
            number = self.select(ordered, number, "0", dst)
        if dst.bits >= 32:
            return number
        number = self.emit(f"min.{name}", kind, number, str(int(dtypes.max(dst))))
        low = int(dtypes.min(dst))
        return self.emit(f"max.{name}", kind, number, str(low)) if low else number

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        """A scalar's bits taken as another dtype of its size."""
        if src is dst:
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        from_kind, to_kind = register_class(src), register_class(dst)
        x = self.in_register(x, src)
        if from_kind == to_kind:
            return x if from_kind != "r" else self.normal(x, dst)
        if to_kind == "h":
            return self.emit("cvt.u16.u32", "h", x)
        if from_kind == "h":
            sign = "u" if dtypes.is_unsigned(dst) else "s"
            return self.emit(f"cvt.{sign}32.{sign}16", "r", x)
        return self.emit(f"mov.b{dst.bits}", to_kind, x)
