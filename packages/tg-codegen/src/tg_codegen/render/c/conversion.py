"""Casts and bitcasts in a dialect of C: of scalars, and of vectors by the language's own forms or lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from tg_dtype import DType, dtypes

from ..spelling import bare, short, signed, stored, unsigned
from .terms import CStyleTerms


class CStyleConversion:
    """The conversions of one kernel.

    Args:
      terms: its words.
    """

    def __init__(self, terms: CStyleTerms) -> None:
        self._terms = terms
        self._dialect = terms.dialect
        self._operators = terms.dialect.vectors.operators

    def cast(self, x: str, src: DType, dst: DType) -> str:
        """The value in another dtype."""
        if src is dst:
            return x
        found = self._dialect.cast(self._terms, x, src, dst)
        if found is not None:
            return found
        if src.count == 1:
            return self._cast_scalar(x, src, dst)
        operators = self._operators
        if operators is None or operators.cast_lane_by_lane(src, dst):
            return self._each(self._cast_scalar, x, src, dst)
        if dtypes.is_bool(dst):
            test = f"({x} != {operators.number(self._terms, 0, src)})"
            return self.convert(test, signed(src), dtypes.int8.vec(src.count)) if self._dialect.vectors.masks else test
        if dtypes.is_bool(src) and self._dialect.vectors.masks:
            byte = dtypes.int8.vec(src.count)
            return self.convert(f"({x} & {operators.number(self._terms, 1, byte)})", byte, dst)
        return self.convert(x, src, dst)

    def convert(self, x: str, src: DType, dst: DType) -> str:
        """The vector of numbers in another dtype, by the language's own form."""
        assert self._operators is not None
        return x if src is dst else self._operators.convert(self._terms.type(dst), x)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        """The bits of the value as another dtype of the same size."""
        if src is dst:
            return x
        if src.count > 1 and self._operators is None:
            return self._each(self._bitcast_scalar, x, src, dst)
        return self._bitcast_scalar(x, src, dst)

    def _each(self, one: Callable[[str, DType, DType], str], x: str, src: DType, dst: DType) -> str:
        """A conversion, lane by lane."""
        terms = self._terms
        name = terms.atom(x, src)
        return terms.vector(
            [one(terms.lane(name, i), src.scalar(), dst.scalar()) for i in range(src.count)], dst)

    def _cast_scalar(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            return f"({x} != {self._terms.literal(dtypes.as_const(0, src), src)})"
        if dtypes.is_float(src) and dtypes.is_int(dst):
            return f"{self._saturating(src, dst)}({bare(x)})"
        return f"({self._terms.type(dst)}){x}"

    def _saturating(self, src: DType, dst: DType) -> str:
        """A helper: float to integer toward zero; NaN is 0 and what does not fit is the nearest that does."""
        terms = self._terms
        wide = dtypes.float32 if src.bits < 32 else src
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        least, past = terms.literal(float(low), wide), terms.literal(float(high + 1), wide)
        body = (
            f"return x != x ? 0 : x <= {least} ? {terms.literal(low, dst)} : "
            f"x >= {past} ? {terms.literal(high, dst)} : ({terms.type(dst)})x;"
        )
        return terms.function(f"{short(src)}_to_{short(dst)}", dst, [(wide, "x")], body)

    def _bitcast_scalar(self, x: str, src: DType, dst: DType) -> str:
        if dtypes.is_bool(src) or dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        terms, dialect = self._terms, self._dialect
        if src.count > 1:
            assert self._operators is not None
            return self._operators.reinterpret(terms.type(dst), x)
        if dialect.reinterpret is not None:
            return dialect.reinterpret(terms.type(dst), x)
        if dtypes.is_int(src) and dtypes.is_int(dst):
            return f"({terms.type(dst)}){x}"
        body = dialect.pun(terms.type(src), terms.type(dst))
        return f"{terms.function(f'{short(src)}_as_{short(dst)}', dst, [(src, 'x')], body)}({bare(x)})"

    # bools in memory

    def from_memory(self, text: str, dtype: DType) -> str:
        """The register form of what was read from memory."""
        if not dtypes.is_bool(dtype):
            return text
        if dtype.count == 1:
            return f"({text} != 0)"
        terms, operators = self._terms, self._operators
        if operators is not None:
            return f"({text} != {operators.false_byte or operators.number(terms, 0, stored(dtype))})"
        raw = terms.variable("raw", stored(dtype), text)
        return terms.vector([f"{terms.lane(raw, i)} != 0" for i in range(dtype.count)], dtype)

    def to_memory(self, text: str, dtype: DType) -> str:
        """The memory form of a register."""
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return text
        terms, byte = self._terms, signed(dtype)
        if self._dialect.vectors.masks:
            return self.bitcast(f"({text} & {terms.literal(1, byte)})", byte, unsigned(byte))
        if self._operators is not None:
            return self.convert(text, dtype, stored(dtype))
        flags = terms.atom(text, dtype)
        return terms.vector([terms.lane(flags, i) for i in range(dtype.count)], stored(dtype))
