"""Conversions as LLVM instructions."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import Ops

from ...ir.uop import UOp
from .text import LLVMText, llvm_literal, llvm_type, overload


class LLVMConversion:
    """The conversions of one function.

    Args:
      text: what has been written of it.
    """

    def __init__(self, text: LLVMText) -> None:
        self._text = text

    def cast(self, value: str, src: DType, dst: DType) -> str:
        """The value in another dtype."""
        if src is dst:
            return value
        from_type, to_type = llvm_type(src), llvm_type(dst)
        if dtypes.is_bool(dst):
            comparison = "fcmp une" if dtypes.is_float(src) else "icmp ne"
            return self._text.emit(f"{comparison} {from_type} {value}, {llvm_literal(dtypes.as_const(0, src), src)}")
        if dtypes.is_float(src):
            if dtypes.is_float(dst):
                return self._cast_float(value, src, dst)
            if src.scalar().bits < 32:
                # LLVM 22 makes -32768 of a float16 NaN where the processor has float16 itself.
                wide = dtypes.float32.vec(src.count)
                return self.cast(self.cast(value, src, wide), wide, dst)
            if src.count > 1:
                return self._saturate(value, src, dst)
            kind = "ui" if dtypes.is_unsigned(dst) else "si"
            return self._text.call(f"llvm.fpto{kind}.sat.{overload(dst)}.{overload(src)}", to_type, (from_type, value))
        unsigned = dtypes.is_unsigned(src) or dtypes.is_bool(src)
        if dtypes.is_float(dst):
            # Exact up to 2**24, and float16 is infinite from 65520 on: going through float32 rounds only once.
            via = dtypes.float32.vec(dst.count) if dst.scalar() is dtypes.float16 else dst
            number = self._text.emit(f"{'ui' if unsigned else 'si'}tofp {from_type} {value} to {llvm_type(via)}")
            return self.cast(number, via, dst)
        if dst.bits == src.bits:
            return value
        instruction = "trunc" if dst.bits < src.bits else "zext" if unsigned else "sext"
        return self._text.emit(f"{instruction} {from_type} {value} to {to_type}")

    def bitcast(self, value: str, src: DType, dst: DType) -> str:
        """The bits of the value as another dtype of the same size."""
        raw = self._text.to_memory(value, src)
        if llvm_type(src, memory=True) != llvm_type(dst, memory=True):
            raw = self._text.emit(f"bitcast {llvm_type(src, memory=True)} {raw} to {llvm_type(dst, memory=True)}")
        return self._text.from_memory(raw, dst)

    def broadcast(self, u: UOp) -> str:
        """A scalar in all lanes; what was widened from 16 bits is widened there, which takes fewer instructions."""
        scalar = u.src[0]
        if scalar.op is Ops.CAST and scalar.dtype is dtypes.float32 and scalar.src[0].dtype is dtypes.float16:
            narrow = dtypes.float16.vec(u.dtype.count)
            return self._cast_float(self._text.splat(self._text.value(scalar.src[0]), narrow), narrow, u.dtype)
        return self._text.splat(self._text.value(scalar), u.dtype)

    def _saturate(self, value: str, src: DType, dst: DType) -> str:
        """Vectors of floats to integers. LLVM has an intrinsic, but makes scalars of it on x86."""
        emit, select = self._text.emit, self._text.select
        kind, low, high = llvm_type(src), int(dtypes.min(dst)), int(dtypes.max(dst))
        # Narrow integers are converted as 32 bits.
        via = dst if dst.bits >= 32 else dtypes.int32.vec(dst.count)
        least = llvm_literal(float(low), src)
        if dst.bits <= dtypes.finfo(src)[1] + 1:  # the greatest value is a float: clamp, and mend NaN
            greatest = llvm_literal(float(high), src)
            value = select(emit(f"fcmp uno {kind} {value}, {value}"), llvm_literal(0.0, src), value, src)
            value = select(emit(f"fcmp ogt {kind} {value}, {least}"), value, least, src)
            value = select(emit(f"fcmp olt {kind} {value}, {greatest}"), value, greatest, src)
            number = self._to_int(value, src, via)
            return self.cast(number, via, dst)
        past = llvm_literal(float(high + 1), src)
        above, below = emit(f"fcmp oge {kind} {value}, {past}"), emit(f"fcmp ole {kind} {value}, {least}")
        flags = llvm_type(dtypes.bool.vec(src.count))
        unfit = emit(f"or {flags} {emit(f'fcmp uno {kind} {value}, {value}')}, {above}")
        unfit = emit(f"or {flags} {unfit}, {below}")
        number = self._to_int(select(unfit, llvm_literal(0.0, src), value, src), src, dst)
        if low:
            number = select(below, llvm_literal(low, dst), number, dst)
        return select(above, llvm_literal(high, dst), number, dst)

    def _to_int(self, value: str, src: DType, dst: DType) -> str:
        sign = "ui" if dtypes.is_unsigned(dst) else "si"
        return self._text.emit(f"fpto{sign} {llvm_type(src)} {value} to {llvm_type(dst)}")

    def _cast_float(self, value: str, src: DType, dst: DType) -> str:
        if dst.bits > src.bits:
            return self._text.emit(f"fpext {llvm_type(src)} {value} to {llvm_type(dst)}")
        if src.scalar() is dtypes.float64 and dst.scalar() is dtypes.float16:
            value, src = self._round_to_odd(value, src.count), dtypes.float32.vec(src.count)
        return self._text.emit(f"fptrunc {llvm_type(src)} {value} to {llvm_type(dst)}")

    def _round_to_odd(self, value: str, count: int) -> str:
        """float64 to float32 such that rounding the result once more, to float16, is as rounding once.

        x86 has no instruction for float64 to float16, and LLVM would call a library.
        """
        emit = self._text.emit
        double, single, word = dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.int32.vec(count)
        d, s, w = llvm_type(double), llvm_type(single), llvm_type(word)
        near = emit(f"fptrunc {d} {value} to {s}")
        back = emit(f"fpext {s} {near} to {d}")
        far, here = (self._text.call(f"llvm.fabs.{overload(double)}", d, (d, x)) for x in (back, value))
        away = emit(f"fcmp ogt {d} {far}, {here}")
        bits = emit(f"bitcast {s} {near} to {w}")
        step = emit(f"sext {llvm_type(dtypes.bool.vec(count))} {away} to {w}")
        toward_zero = emit(f"add {w} {bits}, {step}")
        odd = emit(f"or {w} {toward_zero}, {llvm_literal(1, word)}")
        inexact = emit(f"fcmp one {d} {back}, {value}")
        return emit(f"bitcast {w} {self._text.select(inexact, odd, bits, word)} to {s}")
