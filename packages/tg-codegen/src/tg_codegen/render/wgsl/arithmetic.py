"""Elementwise ops in WGSL."""

from __future__ import annotations

import re

from tg_dtype import DType, dtypes
from tg_lazy import COMPARISONS, INTEGER_DIVISIONS, ON_INTEGERS, SHIFTS, Ops

from ...ir.uop import UOp
from ..spelling import BINARY, bare, on_bools, short
from .conversion import WGSLConversion
from .terms import WGSLTerms

_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}
_OPERATORS = ON_INTEGERS.intersection(BINARY) - COMPARISONS - SHIFTS
"""Operators of integers that take two of one type and give one of it."""
# Of (2**r - 1) / r on [-1/2, 1/2], after the leading one: see rules.transcendental.
_EXP2 = (
    0.001339890018551765, 0.009618437609176802, 0.05550332409654291, 0.24022647910283068, 0.6931472028809557,
)  # fmt: skip
_LITERAL = re.compile(r"\(?-?[0-9][0-9a-fA-Fxp.+-]*[iufh]?\)?|true|false|i32\(-2147483648\)|vec2<u32>\([0-9u, ]*\)")


class WGSLArithmetic:
    """The elementwise ops of one kernel.

    Args:
      terms: its words.
      conversion: its casts.
      fused: whether a * b + c is one instruction.
    """

    def __init__(self, terms: WGSLTerms, conversion: WGSLConversion, fused: bool) -> None:
        self._terms, self._conversion, self._fused = terms, conversion, fused

    def alu(self, u: UOp) -> str:
        """The expression of an elementwise node.

        Raises:
          ValueError: if the language has no form for the op.
        """
        op, dtype = u.op, u.src[-1].dtype
        assert isinstance(op, Ops)
        values = [self._terms.value(operand) for operand in u.src]
        if all(_LITERAL.fullmatch(v) for v in values) and op is not Ops.CAST:
            # Arithmetic on constants is done by the compiler, which rejects what overflows.
            values[0] = self._terms.variable("c", u.src[0].dtype, values[0])
        if op is Ops.CAST:
            return self._conversion.cast(values[0], dtype, u.dtype)
        if op is Ops.BITCAST:
            return self._conversion.bitcast(values[0], dtype, u.dtype)
        if op is Ops.WHERE:
            return f"select({bare(values[2])}, {bare(values[1])}, {bare(values[0])})"
        guarded = op in INTEGER_DIVISIONS and not self._terms.facts.divides_safely(u.src[1])
        found = self._elementwise(op, dtype, values, guarded)
        if found is None:
            raise ValueError(f"WGSL: {op.name} of {dtype.name} has no form; it must be decomposed")
        return found

    # ``dtype`` is that of the last operand, and ``guarded`` tells that a divisor may be 0 or -1.

    def _elementwise(self, op: Ops, dtype: DType, v: list[str], guarded: bool) -> str | None:
        if dtype.itemsize == 8:
            return self._wide(op, dtype, v)
        if dtypes.is_bool(dtype):
            return on_bools(op, v, xor="!=", false="false")
        if dtypes.is_float(dtype):
            return self._float(op, dtype, v)
        return self._integer(op, dtype, v, guarded)

    def _float(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        if op in (Ops.CMPEQ, Ops.CMPNE) and v[0] == v[1]:
            return f"{'!' if op is Ops.CMPEQ else ''}{self._terms.is_nan(dtype)}({bare(v[0])})"
        match op:
            case Ops.CMPNE:
                return f"(!({v[0]} == {v[1]}))"  # != of a NaN is false
            case Ops.MAX:
                body = f"return select(select(b, a, a > b), a, {self._terms.is_nan(dtype)}(a));"
                name = self._terms.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)
                return f"{name}({bare(v[0])}, {bare(v[1])})"
            case Ops.NEG:
                return f"(-{v[0]})"
            case Ops.RECIP:
                return f"({self._terms.literal(1.0, dtype)} / {v[0]})"
            case Ops.MULACC if self._fused:
                return f"fma({', '.join(map(bare, v))})"
            case Ops.MULACC:
                return f"({v[0]} * {v[1]} + {v[2]})"
            case Ops.EXP2 if dtype is dtypes.float32:
                return f"{self._exp2()}({bare(v[0])})"
        if op in BINARY:
            return f"({v[0]} {BINARY[op]} {v[1]})"
        return f"{_FUNCTIONS[op]}({bare(v[0])})" if op in _FUNCTIONS else None

    def _exp2(self) -> str:
        single, series = dtypes.float32, "0.00015353339956612232f"
        for c in _EXP2:
            series = f"fma({series}, r, {c!r}f)"
        # The scale in two factors: what is subnormal is rounded once.
        body = (
            f"if ({self._terms.is_nan(single)}(x)) {{ return x; }} let y = clamp(x, -151.0f, 129.0f); "
            f"let n = round(y); let r = y - n; let k = i32(n) >> 1u; let m = fma(r, {series}, 1.0f); "
            "return m * bitcast<f32>((k + 127i) << 23u) * bitcast<f32>((i32(n) - k + 127i) << 23u);"
        )
        return self._terms.function("exp2", single, [(single, "x")], body)

    def _integer(self, op: Ops, dtype: DType, v: list[str], guarded: bool) -> str | None:
        narrow = self._terms.narrow
        if op in COMPARISONS:
            return f"({v[0]} {BINARY[op]} {v[1]})"
        if op in _OPERATORS:
            return narrow(f"({v[0]} {BINARY[op]} {v[1]})", dtype)
        match op:
            case Ops.SHL | Ops.SHR:
                return narrow(f"({v[0]} {BINARY[op]} {_amount(v[1], dtype)})", dtype)
            case Ops.MAX:
                return f"max({bare(v[0])}, {bare(v[1])})"
            case Ops.NEG:
                return narrow(f"(0u - {v[0]})" if dtypes.is_unsigned(dtype) else f"(-{v[0]})", dtype)
            case Ops.NOT:
                return narrow(f"(~{v[0]})", dtype)
            case Ops.MULACC:
                return narrow(f"({narrow(f'({v[0]} * {v[1]})', dtype)} + {v[2]})", dtype)
            case Ops.IDIV | Ops.MOD if not guarded:
                return narrow(f"({v[0]} {'/' if op is Ops.IDIV else '%'} {v[1]})", dtype)
            case Ops.IDIV | Ops.MOD:
                return f"{self._division(op, dtype)}({bare(v[0])}, {bare(v[1])})"
        return None

    def _division(self, op: Ops, dtype: DType) -> str:
        terms, (operator, name) = self._terms, ("%", "mod") if op is Ops.MOD else ("/", "div")
        # Division by zero and that of the least by -1 give something, which is not what we want of the first.
        zero = terms.literal(0, dtype)
        body = f"return select({terms.narrow(f'(a {operator} b)', dtype)}, {zero}, b == {zero});"
        return terms.function(f"{name}_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)

    def _wide(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        """Ops on 64-bit integers."""
        wide, kind = self._terms.wide, "u64" if dtypes.is_unsigned(dtype) else "i64"
        a_b = ", ".join(map(bare, v[:2]))
        match op:
            case Ops.ADD | Ops.SUB | Ops.MUL:
                return f"{wide(f'{op.name.lower()}64')}({a_b})"
            case Ops.AND | Ops.OR | Ops.XOR:
                return f"({v[0]} {BINARY[op]} {v[1]})"
            case Ops.NOT:
                return f"(~{v[0]})"
            case Ops.NEG:
                return f"{wide('sub64')}(vec2<u32>(0u, 0u), {bare(v[0])})"
            case Ops.SHL:
                return f"{wide('shl64')}({bare(v[0])}, {v[1]}.x)"
            case Ops.SHR:
                return f"{wide(f'shr_{kind}')}({bare(v[0])}, {v[1]}.x)"
            case Ops.CMPLT:
                return f"{wide(f'lt_{kind}')}({a_b})"
            case Ops.CMPEQ:
                return f"all({v[0]} == {v[1]})"
            case Ops.CMPNE:
                return f"any({v[0]} != {v[1]})"
            case Ops.MAX | Ops.MOD:
                return f"{wide(f'{op.name.lower()}_{kind}')}({a_b})"
            case Ops.IDIV:
                return f"{wide(f'div_{kind}')}({a_b})"
            case Ops.MULACC:
                product = f"{wide('mul64')}({a_b})"
                return f"{wide('add64')}({product}, {bare(v[2])})"
        return None


def _amount(text: str, dtype: DType) -> str:
    """How far to shift, as a u32."""
    if dtypes.is_unsigned(dtype):
        return text
    return f"{text[:-1]}u" if re.fullmatch(r"\d+i", text) else f"u32({bare(text)})"
