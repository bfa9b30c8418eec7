"""Conversions of scalars as PTX instructions."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from .text import PTXText, bf16, f16, f32, f64, register_class, suffix


class PTXConversion:
    """The conversions of one kernel.

    Args:
      text: what has been written of it.
    """

    def __init__(self, text: PTXText) -> None:
        self._text = text

    def cast(self, x: str, src: DType, dst: DType) -> str:
        """A scalar converted by value."""
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            zero = self._text.literal(dtypes.as_const(0, src), src)
            return self._text.emit(f"setp.{'neu' if dtypes.is_float(src) else 'ne'}.{suffix(src)}", "p", x, zero)
        if dtypes.is_bool(src):
            one, zero = (self._text.literal(dtypes.as_const(n, dst), dst) for n in (1, 0))
            return self._text.select(x, one, zero, dst)
        x = self._text.in_register(x, src)
        if dtypes.is_float(src):
            return self._cast_float(x, src, dst) if dtypes.is_float(dst) else self._to_int(x, src, dst)
        if dst is bf16:
            return self._narrow(x, src)
        if dtypes.is_float(dst):
            return self._text.emit(f"cvt.rn.{suffix(dst)}.{suffix(src)}", register_class(dst), x)
        if src.bits == 64 and dst.bits < 64:
            return self._text.normal(self._text.emit("cvt.u32.u64", "r", x), dst)
        if dst.bits == 64:
            return x if src.bits == 64 else self._text.emit(f"cvt.{suffix(dst)}.{suffix(src)}", "rd", x)
        # What a register holds is in the range of src already.
        return x if dst.bits > src.bits else self._text.normal(x, dst)

    def _cast_float(self, x: str, src: DType, dst: DType) -> str:
        if src is bf16:
            single = self._text.emit("cvt.f32.bf16", "f", x)
            return self.cast(single, f32, dst)
        if dst is bf16:
            if src is f16:
                x, src = self.cast(x, f16, f32), f32
            return self._text.emit("cvt.rn.bf16.f32", "h", x) if src is f32 else self._narrow(x, src)
        rounding = ".rn" if dst.bits < src.bits else ""
        return self._text.emit(f"cvt{rounding}.{suffix(dst)}.{suffix(src)}", register_class(dst), x)

    def _narrow(self, x: str, src: DType) -> str:
        """To bfloat16 by way of float32 rounded to odd, so that the second rounding is as good as one."""
        kind, name = register_class(src), suffix(src)
        single = self._text.emit(f"cvt.rz.f32.{name}", "f", x)
        back = self._text.emit(f"cvt{'' if src is f64 else '.rzi'}.{name}.f32", kind, single)
        inexact = self._text.emit(f"setp.ne.{name}", "p", back, x)
        word = self._text.emit("mov.b32", "r", single)
        odd = self._text.select(inexact, self._text.emit("or.b32", "r", word, "1"), word, dtypes.int32)
        return self._text.emit("cvt.rn.bf16.f32", "h", self._text.emit("mov.b32", "f", odd))

    def _to_int(self, x: str, src: DType, dst: DType) -> str:
        """Toward zero; what does not fit becomes the nearest that does, and NaN 0."""
        if src is bf16:
            x, src = self.cast(x, bf16, f32), f32
        name, kind = suffix(dst), register_class(dst)
        number = self._text.emit(f"cvt.rzi.{name}.{suffix(src)}", kind, x)
        if src is f64 or dst.bits == 64:  # there a NaN gives the least integer
            ordered = self._text.emit(f"setp.eq.{suffix(src)}", "p", x, x)
            number = self._text.select(ordered, number, "0", dst)
        if dst.bits >= 32:
            return number
        number = self._text.emit(f"min.{name}", kind, number, str(int(dtypes.max(dst))))
        low = int(dtypes.min(dst))
        return self._text.emit(f"max.{name}", kind, number, str(low)) if low else number

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        """A scalar's bits taken as another dtype of its size."""
        if src is dst:
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        from_kind, to_kind = register_class(src), register_class(dst)
        x = self._text.in_register(x, src)
        if from_kind == to_kind:
            return x if from_kind != "r" else self._text.normal(x, dst)
        if to_kind == "h":
            return self._text.emit("cvt.u16.u32", "h", x)
        if from_kind == "h":
            sign = "u" if dtypes.is_unsigned(dst) else "s"
            return self._text.emit(f"cvt.{sign}32.{sign}16", "r", x)
        return self._text.emit(f"mov.b{dst.bits}", to_kind, x)
