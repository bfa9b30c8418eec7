"""Elementwise ops in a dialect of C.

Integer arithmetic on data is done unsigned, since it wraps and C's does not. Address arithmetic stays signed: it cannot
overflow, and compilers make good use of that.
"""

from __future__ import annotations

from collections.abc import Callable

from tg_dtype import DType, dtypes
from tg_lazy import COMPARISONS, INTEGER_DIVISIONS, Ops

from ...ir.uop import UOp
from ..spelling import BINARY, WRAPPING, bare, on_bools, short, signed, unsigned
from .conversion import CStyleConversion
from .dialect import Builtin
from .terms import CStyleTerms


class CStyleArithmetic:
    """The elementwise ops of one kernel.

    Args:
      terms: its words.
      conversion: its casts.
      fused: whether a * b + c is one instruction.
    """

    def __init__(self, terms: CStyleTerms, conversion: CStyleConversion, fused: bool) -> None:
        self._terms, self._conversion, self._fused = terms, conversion, fused
        self._dialect = terms.dialect
        self._operators = terms.dialect.vectors.operators

    def alu(self, u: UOp) -> str:
        """The expression of an elementwise node.

        Raises:
          ValueError: if the language has no form for the op.
        """
        op, dtype = u.op, u.src[-1].dtype
        assert isinstance(op, Ops)
        values = [self._terms.value(operand) for operand in u.src]
        if op is Ops.CAST:
            return self._conversion.cast(values[0], dtype, u.dtype)
        if op is Ops.BITCAST:
            return self._conversion.bitcast(values[0], dtype, u.dtype)
        if op is Ops.WHERE and u.src[0].dtype.count == 1:
            return self._terms.narrow(f"({values[0]} ? {values[1]} : {values[2]})", dtype)
        facts = self._terms.facts
        guarded = op in INTEGER_DIVISIONS and not facts.divides_safely(u.src[1])
        exact = u in facts.address
        found = (self._vector if dtype.count > 1 else self._scalar)(op, dtype, values, exact, guarded)
        if found is None:
            raise ValueError(
                f"{self._dialect.language}: {op.name} of {dtype.name} has no form; it must be decomposed")
        return found

    # ``dtype`` is that of the last operand, ``exact`` tells that integers do not overflow, and ``guarded`` that a
    # divisor may be 0 or -1. None says that there is no form.

    def _scalar(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if op in self._dialect.exact_operands and dtype.bits < 32 and not dtypes.is_bool(dtype):
            v = [x if x.isidentifier() else self._terms.narrow(x, dtype) for x in v]
        return self._by_operators(op, dtype, v, exact, guarded)

    def _vector(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        operators, masks = self._operators, self._dialect.vectors.masks
        alone = dtypes.is_bool(dtype) and not masks
        if operators is None or alone or operators.lane_by_lane(op, dtype, guarded):
            return self._lane_by_lane(op, dtype, v, exact, guarded)
        byte = dtypes.int8.vec(dtype.count)
        if op is Ops.WHERE:
            select, mask = operators.select(self._terms, dtype), v[0]
            if masks and not operators.byte_masks:
                mask = self._conversion.convert(mask, byte, signed(dtype))
            return select(bare(mask), bare(v[1]), bare(v[2]))
        if dtypes.is_bool(dtype):
            return self._mask_logic(op, dtype, v)
        if op in COMPARISONS:
            test = f"({v[0]} {BINARY[op]} {v[1]})"
            return self._conversion.convert(test, signed(dtype), byte) if masks else test
        return self._by_operators(op, dtype, v, exact, guarded)

    def _lane_by_lane(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        terms, flags = self._terms, dtypes.bool.vec(dtype.count)
        names = [terms.atom(text, flags if op is Ops.WHERE and i == 0 else dtype) for i, text in enumerate(v)]
        lanes = []
        for i in range(dtype.count):
            parts = [terms.lane(name, i) for name in names]
            if op is Ops.WHERE:
                lanes.append(f"({parts[0]} ? {parts[1]} : {parts[2]})")
                continue
            one = self._by_operators(op, dtype.scalar(), parts, exact, guarded)
            if one is None:
                return None
            lanes.append(one)
        return terms.vector(lanes, flags if op in COMPARISONS else dtype)

    def _by_operators(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtypes.is_bool(dtype):
            return on_bools(op, v)
        if op in COMPARISONS:
            return f"({v[0]} {BINARY[op]} {v[1]})"
        builtin = self._builtin(op, dtype)
        if builtin is not None:
            return builtin(self._terms, dtype, v)
        if op is Ops.MAX:
            return f"{self._maximum(dtype)}({bare(v[0])}, {bare(v[1])})"
        if dtypes.is_float(dtype):
            return self._float(op, dtype, v)
        return self._integer(op, dtype, v, exact, guarded)

    def _builtin(self, op: Ops, dtype: DType) -> Builtin | None:
        if op is Ops.MULACC and not self._fused:
            return None
        if dtype.count == 1 or self._operators is None:
            return self._dialect.builtins.get((op, dtype))
        return self._operators.builtins.get((op, dtype.scalar()))

    def _mask_logic(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        """Ops on vectors of bools whose lanes are 0 or -1."""
        match op:
            case Ops.NOT:
                return f"(~{v[0]})"
            case Ops.CMPLT:
                return f"(~{v[0]} & {v[1]})"
            case Ops.CMPEQ:
                return f"(~({v[0]} ^ {v[1]}))"
            case Ops.MOD:
                return self._terms.literal(False, dtype)
        return on_bools(op, v)

    # numbers

    def _float(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        narrow = self._terms.narrow
        if op in BINARY:
            return narrow(f"({v[0]} {BINARY[op]} {v[1]})", dtype)
        match op:
            case Ops.NEG:
                return f"(-{v[0]})"
            case Ops.RECIP:
                scalar = self._operators is None or self._operators.takes_scalars
                return narrow(f"({self._terms.literal(1.0, dtype.scalar() if scalar else dtype)} / {v[0]})", dtype)
            case Ops.MULACC:
                return narrow(f"({v[0]} * {v[1]} + {v[2]})", dtype)
        return None

    def _integer(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        narrow = self._terms.narrow
        if op in WRAPPING:
            return self._wrapping(BINARY[op], dtype, v[0], v[1], exact)
        if op in BINARY:
            return narrow(f"({v[0]} {BINARY[op]} {v[1]})", dtype)
        match op:
            case Ops.NEG:
                return self._negated(dtype, v[0], exact)
            case Ops.NOT:
                return narrow(f"(~{v[0]})", dtype)
            case Ops.MULACC:
                product = self._wrapping("*", dtype, v[0], v[1], exact)
                return self._wrapping("+", dtype, product, v[2], exact)
            case Ops.IDIV | Ops.MOD if not guarded:
                return narrow(f"({v[0]} {'/' if op is Ops.IDIV else '%'} {v[1]})", dtype)
            case Ops.IDIV | Ops.MOD:
                return f"{self._division(op, dtype)}({bare(v[0])}, {bare(v[1])})"
        return None

    def _wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        """CStyleArithmetic modulo 2**bits, or plain where it is known not to overflow."""
        kind = self._terms.type
        if dtype.count > 1:
            if dtypes.is_unsigned(dtype):
                return f"({a} {operator} {b})"
            assert self._operators is not None
            cast, word = self._operators.reinterpret, kind(unsigned(dtype))
            return cast(kind(dtype), f"({cast(word, a)} {operator} {cast(word, b)})")
        if exact or (dtypes.is_unsigned(dtype) and dtype.bits >= 32):
            return self._terms.narrow(f"({a} {operator} {b})", dtype)
        word = kind(dtypes.uint64 if dtype.bits == 64 else dtypes.uint32)
        return f"({kind(dtype)})(({word}){a} {operator} ({word}){b})"

    def _negated(self, dtype: DType, x: str, exact: bool) -> str:
        kind = self._terms.type
        if dtype.count > 1:
            assert self._operators is not None
            cast, word = self._operators.reinterpret, unsigned(dtype)
            minus = "-" if self._operators.negates_unsigned else f"{self._operators.number(self._terms, 0, word)} - "
            return cast(kind(dtype), f"({minus}{cast(kind(word), x)})")
        if exact or (dtypes.is_unsigned(dtype) and dtype.bits >= 32):
            return self._terms.narrow(f"(-{x})", dtype)
        return f"({kind(dtype)})-({kind(dtypes.uint64 if dtype.bits == 64 else dtypes.uint32)}){x}"

    # helper functions of numbers that need an operand twice

    def _choosing(self, dtype: DType) -> Callable[[str, str, str], str]:
        """What makes ``test ? a : b`` of a comparison of vectors of ``dtype``, and two of them."""
        operators = self._operators
        assert operators is not None
        select = operators.select(self._terms, dtype)
        if not operators.byte_masks:
            return select
        byte = dtypes.int8.vec(dtype.count)
        return lambda test, a, b: select(self._conversion.convert(test, signed(dtype), byte), a, b)

    def _maximum(self, dtype: DType) -> str:
        if dtype.count == 1:
            nan = "a != a ? a : " if dtypes.is_float(dtype) else ""
            body = f"{nan}a > b ? a : b"
        else:
            choose = self._choosing(dtype)
            body = choose("a > b", "a", "b")
            body = choose("a != a", "a", body) if dtypes.is_float(dtype) else body
        return self._terms.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], f"return {body};")

    def _division(self, op: Ops, dtype: DType) -> str:
        """A helper: what is divided by 0 is 0, by -1 it wraps."""
        body = (self._divided_lanes if dtype.count > 1 else self._divided)(op, dtype)
        name = f"{'mod' if op is Ops.MOD else 'div'}_{short(dtype)}"
        return self._terms.function(name, dtype, [(dtype, "a"), (dtype, "b")], f"return {body};")

    def _divided(self, op: Ops, dtype: DType) -> str:
        if op is Ops.MOD:
            unit = "" if dtypes.is_unsigned(dtype) else " || b == -1"
            return f"b == 0{unit} ? 0 : a % b"
        unit = "" if dtypes.is_unsigned(dtype) else f"b == -1 ? {self._negated(dtype, 'a', False)} : "
        return f"b == 0 ? 0 : {unit}a / b"

    def _divided_lanes(self, op: Ops, dtype: DType) -> str:
        operators, terms, unit = self._operators, self._terms, not dtypes.is_unsigned(dtype)
        assert operators is not None
        choose, one, zero = self._choosing(dtype), terms.literal(1, dtype), terms.literal(0, dtype)
        by_zero = f"b == {operators.number(terms, 0, dtype)}"
        by_unit = f"b == {operators.number(terms, -1, dtype)}" if unit else ""
        safe = choose(f"({by_zero}) | ({by_unit})" if unit else by_zero, one, "b")
        if op is Ops.MOD:
            return f"a % {safe}"
        quotient = f"a / {safe}"
        if unit:
            quotient = choose(by_unit, self._negated(dtype, "a", False), quotient)
        return choose(by_zero, zero, quotient)
