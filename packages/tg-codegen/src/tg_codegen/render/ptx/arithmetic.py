"""Elementwise ops as PTX instructions, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import DType, dtypes
from tg_lazy import CONVERSIONS, INTEGER_DIVISIONS, Ops

from ...ir.facts import KernelFacts
from ...ir.uop import UOp
from .conversion import PTXConversion
from .text import PTXText, bf16, bits_suffix, f32, f64, register_class, suffix
from .values import PTXValues

_FLOAT_COMPARISON = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "neu"}
_INT_COMPARISON = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
_BITWISE = {Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor"}
_FLOAT_BINARY = {Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul"}
_LOGIC = {
    Ops.ADD: "or", Ops.MAX: "or", Ops.OR: "or", Ops.MUL: "and", Ops.AND: "and", Ops.IDIV: "and", Ops.SUB: "xor",
    Ops.XOR: "xor", Ops.CMPNE: "xor",
}  # fmt: skip


class PTXArithmetic:
    """The elementwise ops of one kernel.

    Args:
      text: what has been written of it.
      values: what stands for its nodes.
      conversion: its casts.
      facts: what is known of it.
      sm: compute capability as one number, 80 for 8.0.
      fused: whether MULACC is one instruction.
    """

    def __init__(
        self, text: PTXText, values: PTXValues, conversion: PTXConversion, facts: KernelFacts, sm: int, fused: bool
    ) -> None:
        self._text, self._values, self._conversion, self._facts = text, values, conversion, facts
        self._sm, self._fused = sm, fused

    def alu(self, u: UOp) -> list[str]:
        """The lanes of an elementwise node.

        Raises:
          ValueError: if there is no instruction for the op.
        """
        op, dtype = u.op, u.src[-1].dtype.scalar()
        assert isinstance(op, Ops)
        values = [self._values.value(operand) for operand in u.src]
        if op in CONVERSIONS:
            convert = self._conversion.cast if op is Ops.CAST else self._conversion.bitcast
            return [convert(lane, dtype, u.dtype.scalar()) for lane in values[0]]
        guarded = op in INTEGER_DIVISIONS and not self._facts.divides_safely(u.src[1])
        exact, count, lanes = u in self._facts.address, u.src[-1].dtype.count, []
        for i in range(count):
            operands = [v[i if len(v) > 1 else 0] for v in values]
            found = self._scalar(op, dtype, operands, exact, guarded)
            if found is None:
                raise ValueError(f"PTX: {op.name} of {dtype.name} has no form; it must be decomposed")
            lanes.append(found)
        return lanes

    def _scalar(self, op: Ops, dtype: DType, v: Sequence[str], exact: bool, guarded: bool) -> str | None:
        """An op other than casts; None if there is no form. ``dtype`` is that of the last operand."""
        if op is Ops.WHERE:
            return self._text.select(v[0], v[1], v[2], dtype)
        if dtypes.is_bool(dtype):
            return self._logic(op, v)
        if dtypes.is_float(dtype):
            return self._float_op(op, dtype, v)
        return self._int_op(op, dtype, v, exact, guarded)

    def _logic(self, op: Ops, v: Sequence[str]) -> str | None:
        if op in _LOGIC:
            return self._text.emit(f"{_LOGIC[op]}.pred", "p", v[0], v[1])
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return self._text.emit("not.pred", "p", v[0])
            case Ops.CMPLT:
                return self._text.emit("and.pred", "p", self._text.emit("not.pred", "p", v[0]), v[1])
            case Ops.CMPEQ:
                return self._text.emit("not.pred", "p", self._text.emit("xor.pred", "p", v[0], v[1]))
            case Ops.MOD:
                return self._text.literal(False, dtypes.bool)
            case Ops.MULACC:
                return self._text.emit("or.pred", "p", self._text.emit("and.pred", "p", v[0], v[1]), v[2])
        return None

    # floats

    def _float_op(self, op: Ops, dtype: DType, v: Sequence[str]) -> str | None:
        kind, name = register_class(dtype), suffix(dtype)
        if op in _FLOAT_COMPARISON:
            return self._text.emit(f"setp.{_FLOAT_COMPARISON[op]}.{name}", "p", v[0], v[1])
        if op in _FLOAT_BINARY:
            # with a stated rounding it is never contracted
            return self._text.emit(f"{_FLOAT_BINARY[op]}.rn.{name}", kind, v[0], v[1])
        match op:
            case Ops.NEG:
                return self._text.emit(f"neg.{name}", kind, v[0])
            case Ops.MAX:
                return self._maximum(dtype, v)
            case Ops.MULACC if self._fused:
                return self._text.emit(f"fma.rn.{name}", kind, *v)
            case Ops.MULACC:
                product = self._text.emit(f"mul.rn.{name}", kind, v[0], v[1])
                return self._text.emit(f"add.rn.{name}", kind, product, v[2])
            case Ops.TRUNC if dtype is bf16:
                return self._through_f32(op, dtype, v)
            case Ops.TRUNC:
                return self._text.emit(f"cvt.rzi.{name}.{name}", kind, self._text.in_register(v[0], dtype))
        if dtype.bits == 16:  # float32 holds enough digits for a second rounding to change nothing
            return self._through_f32(op, dtype, v)
        match op:
            case Ops.FDIV:
                return self._text.emit(f"div.rn.{name}", kind, v[0], v[1])
            case Ops.RECIP:
                return self._text.emit(f"rcp.rn.{name}", kind, v[0])
            case Ops.SQRT:
                return self._text.emit(f"sqrt.rn.{name}", kind, v[0])
            case Ops.EXP2 if dtype is f32:
                return self._text.emit("ex2.approx.f32", kind, v[0])
            case Ops.LOG2 if dtype is f32:
                return self._text.emit("lg2.approx.f32", kind, v[0])
        return None

    def _through_f32(self, op: Ops, dtype: DType, v: Sequence[str]) -> str | None:
        found = self._float_op(op, f32, [self._conversion.cast(x, dtype, f32) for x in v])
        return None if found is None else self._conversion.cast(found, f32, dtype)

    def _maximum(self, dtype: DType, v: Sequence[str]) -> str:
        """The greater; NaN if either is."""
        kind, name = register_class(dtype), suffix(dtype)
        if dtype is not f64 and self._sm >= 80:
            return self._text.emit(f"max.NaN.{name}", kind, v[0], v[1])
        if dtype.bits == 16:
            single = self._maximum(f32, [self._conversion.cast(x, dtype, f32) for x in v])
            return self._conversion.cast(single, f32, dtype)
        greater = self._text.emit(f"max.{name}", kind, v[0], v[1])
        unordered = self._text.emit(f"setp.nan.{name}", "p", v[0], v[1])
        return self._text.select(unordered, self._text.literal(float("nan"), dtype), greater, dtype)

    # integers

    def _int_op(self, op: Ops, dtype: DType, v: Sequence[str], exact: bool, guarded: bool) -> str | None:
        kind, name, bits = register_class(dtype), suffix(dtype), bits_suffix(dtype)
        if op in _INT_COMPARISON:
            return self._text.emit(f"setp.{_INT_COMPARISON[op]}.{name}", "p", v[0], v[1])
        if op in _BITWISE:
            return self._text.emit(f"{_BITWISE[op]}.{bits}", kind, v[0], v[1])
        match op:
            case Ops.ADD | Ops.SUB:
                found = self._text.emit(f"{op.name.lower()}.{name}", kind, v[0], v[1])
            case Ops.MUL:
                found = self._text.emit(f"mul.lo.{name}", kind, v[0], v[1])
            case Ops.MULACC:
                found = self._text.emit(f"mad.lo.{name}", kind, *v)
            case Ops.NEG:
                found = self._text.emit(f"neg.s{64 if dtype.bits == 64 else 32}", kind, v[0])
            case Ops.NOT:
                found = self._text.emit(f"not.{bits}", kind, v[0])
            case Ops.MAX:
                return self._text.emit(f"max.{name}", kind, v[0], v[1])
            case Ops.SHL:
                found = self._text.emit(f"shl.{bits}", kind, v[0], self._shift_amount(v[1], dtype))
            case Ops.SHR:
                return self._text.emit(f"shr.{name}", kind, v[0], self._shift_amount(v[1], dtype))
            case Ops.IDIV | Ops.MOD:
                found = self._divide(op, dtype, v[0], v[1], guarded)
            case _:
                return None
        return found if exact else self._text.normal(found, dtype)

    def _shift_amount(self, amount: str, dtype: DType) -> str:
        return self._text.emit("cvt.u32.u64", "r", amount) if dtype.bits == 64 and amount.startswith("%") else amount

    def _divide(self, op: Ops, dtype: DType, a: str, b: str, guarded: bool) -> str:
        kind, name = register_class(dtype), suffix(dtype)
        instruction = f"{'div' if op is Ops.IDIV else 'rem'}.{name}"
        if not guarded:
            return self._text.emit(instruction, kind, a, b)
        # Neither division by 0 nor the least integer by -1 is defined: divide by 1, and choose the result after.
        by_zero = unsafe = self._text.emit(f"setp.eq.{name}", "p", b, "0")
        signed = not dtypes.is_unsigned(dtype)
        if signed:
            by_minus_one = self._text.emit(f"setp.eq.{name}", "p", b, "-1")
            unsafe = self._text.emit("or.pred", "p", by_zero, by_minus_one)
        result = self._text.emit(instruction, kind, a, self._text.select(unsafe, "1", b, dtype))
        if op is Ops.MOD:
            return result  # a % 1 is 0, which is the answer in both cases
        if signed:
            result = self._text.select(by_minus_one, self._text.emit(f"neg.{name}", kind, a), result, dtype)
        return self._text.select(by_zero, "0", result, dtype)
