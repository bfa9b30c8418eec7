"""Casts and bits of values in WGSL."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ..spelling import bare, short
from .terms import WGSLTerms


class WGSLConversion:
    """The conversions of one kernel.

    Args:
      terms: its words.
      cast_half: whether ``bitcast`` takes ``vec2<f16>``.
    """

    def __init__(self, terms: WGSLTerms, cast_half: bool) -> None:
        self._terms, self._cast_half = terms, cast_half

    def cast(self, x: str, src: DType, dst: DType) -> str:
        """The value in another dtype."""
        terms = self._terms
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            if src.itemsize == 8:
                return f"any({x} != vec2<u32>(0u, 0u))"
            zero = terms.literal(dtypes.as_const(0, src), src)
            return f"(!({x} == {zero}))" if dtypes.is_float(src) else f"({x} != {zero})"
        if dtypes.is_bool(src):
            zero, one = (terms.literal(dtypes.as_const(n, dst), dst) for n in (0, 1))
            return f"select({zero}, {one}, {bare(x)})"
        if dtypes.is_float(src):
            return self._from_float(x, src, dst)
        if src.itemsize == 8:
            return self._from_wide(x, src, dst)
        if dtypes.is_float(dst):
            return f"{terms.type(dst)}({bare(x)})"
        if dst.itemsize == 8:
            return f"vec2<u32>({bare(x)}, 0u)" if dtypes.is_unsigned(src) else f"{terms.wide('i32_to_i64')}({bare(x)})"
        same = dtypes.is_unsigned(src) == dtypes.is_unsigned(dst)
        text = x if same else f"bitcast<{terms.type(dst)}>({bare(x)})"
        return text if same and src.bits <= dst.bits else terms.narrow(text, dst)

    def _from_float(self, x: str, src: DType, dst: DType) -> str:
        if dtypes.is_float(dst):
            return f"{self._terms.type(dst)}({bare(x)})"
        wide = x if src is dtypes.float32 else f"f32({bare(x)})"
        if dst.itemsize == 8:
            return f"{self._terms.wide('f32_to_u64' if dtypes.is_unsigned(dst) else 'f32_to_i64')}({bare(wide)})"
        return f"{self._saturating(dst)}({bare(wide)})"

    def _from_wide(self, x: str, src: DType, dst: DType) -> str:
        if dst.itemsize == 8:
            return x
        if dtypes.is_float(dst):
            # What single precision rounds is beyond the range of a half.
            single = f"{self._terms.wide('u64_to_f32' if dtypes.is_unsigned(src) else 'i64_to_f32')}({bare(x)})"
            return single if dst is dtypes.float32 else f"f16({single})"
        low = f"{x}.x"
        return self._terms.narrow(low if dtypes.is_unsigned(dst) else f"bitcast<i32>({low})", dst)

    def _saturating(self, dst: DType) -> str:
        """A helper: float32 to integer toward zero; NaN is 0 and what does not fit is the nearest that does."""
        terms, src = self._terms, dtypes.float32
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        least, past = terms.literal(float(low), src), terms.literal(float(high + 1), src)
        body = (
            f"if ({terms.is_nan(src)}(x)) {{ return {terms.literal(0, dst)}; }} "
            f"if (x <= {least}) {{ return {terms.literal(low, dst)}; }} "
            f"if (x >= {past}) {{ return {terms.literal(high, dst)}; }} return {terms.type(dst)}(x);"
        )
        return terms.function(f"{short(src)}_to_{short(dst)}", dst, [(src, "x")], body)

    # bits

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        """The bits of the value as another dtype of the same size."""
        if src is dst or (src.itemsize == 8 and dst.itemsize == 8):
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst) or (dtypes.is_int(src) and dtypes.is_int(dst)):
            return self.cast(x, src, dst)
        if src.itemsize == 4:
            return f"bitcast<{self._terms.type(dst)}>({bare(x)})"
        if dst is dtypes.float16:
            return self._half_of(bare(x) if dtypes.is_unsigned(src) else f"bitcast<u32>({bare(x)})")
        bits = f"({self.to_bits(x, src)} & 65535u)"
        return bits if dtypes.is_unsigned(dst) else f"extractBits(bitcast<i32>{bits}, 0u, 16u)"

    def from_bits(self, raw: str, dtype: DType) -> str:
        """A value of up to 32 bits of which the bits are a u32."""
        kind = self._terms.type(dtype)
        if dtype is dtypes.float32 or dtype is dtypes.int32:
            return f"bitcast<{kind}>({raw})"
        return self._half_of(raw) if dtype is dtypes.float16 else raw

    def to_bits(self, text: str, dtype: DType) -> str:
        """The bits of a value of up to 32 bits as a u32; above those of the dtype they may be anything."""
        if dtypes.is_bool(dtype):
            return f"select(0u, 1u, {bare(text)})"
        if dtype is dtypes.float16:
            self._terms.used.add(dtype)
            if not self._cast_half:
                return f"pack2x16float(vec2<f32>(f32({bare(text)}), 0.0f))"
            return f"bitcast<u32>(vec2<f16>({bare(text)}, 0.0h))"
        return text if dtypes.is_unsigned(dtype) else f"bitcast<u32>({bare(text)})"

    def _half_of(self, raw: str) -> str:
        """The float16 of which the bits are the low ones of a u32."""
        return f"bitcast<vec2<f16>>({raw}).x" if self._cast_half else f"f16(unpack2x16float({raw}).x)"
