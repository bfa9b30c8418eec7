"""Conversions between the formats of lanes.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.8 "VOP1 Instructions" and 16.10 "VOP3 Instructions".
"""

from __future__ import annotations

from ....engine import F16, F32, I8, I16, I32, I64, Emitter, Type, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes
from .integers import joined, low_bits
from .numbers import magnitude, narrowed, raw, towards_zero, widened
from .small import of_byte, to_small


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for result, source in (
        (Kind.F16, Kind.F32), (Kind.F32, Kind.F16), (Kind.F32, Kind.F64), (Kind.F64, Kind.F32),
    ):  # fmt: skip
        name = f"v_cvt_f{result.type.bits}_f{source.type.bits}"
        to.op(name, _float_to_float(result.type), [result], [source])
    for kind in (Kind.F32, Kind.F64):
        for sign in "iu":
            name = f"f{kind.type.bits}"
            to.op(f"v_cvt_{name}_{sign}32", _to_float(sign, kind.type), [kind], [Kind.B32])
            to.op(f"v_cvt_{sign}32_{name}", _to_integer(sign, I32), [Kind.B32], [kind], fixed=True)
    for sign in "iu":
        to.op(f"v_cvt_f16_{sign}16", _to_float(sign, F16), [Kind.F16], [Kind.B16])
        to.op(f"v_cvt_{sign}16_f16", _to_integer(sign, I16), [Kind.B16], [Kind.F16], fixed=True)
        to.op(f"v_cvt_pk_{sign}16_f32", _packed_integers(sign), [Kind.B32], [Kind.F32, Kind.F32], fixed=True)
    to.op("v_cvt_flr_i32_f32 v_cvt_floor_i32_f32",
          lambda e, x: _integer(e, "i", e.intrinsic("floor", x), I32), [Kind.B32], [Kind.F32], fixed=True)  # fmt: skip
    to.op("v_cvt_rpi_i32_f32 v_cvt_nearest_i32_f32",
          lambda e, x: _integer(e, "i", e.intrinsic("floor", x + 0.5), I32), [Kind.B32], [Kind.F32])  # fmt: skip
    for byte in range(4):
        to.op(f"v_cvt_f32_ubyte{byte}", _of_byte(byte), [Kind.F32], [Kind.B32], fixed=True)
    to.op("v_cvt_off_f32_i4", _offset, [Kind.F32], [Kind.B32], fixed=True)
    to.op("v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32", _packed_towards_zero, [Kind.B32], [Kind.F32, Kind.F32],
          fixed=True)  # fmt: skip
    to.op("v_cvt_pk_f16_f32", lambda e, x, y: joined(e, narrowed(e, x, F16), narrowed(e, y, F16)),
          [Kind.PACKED_F16], [Kind.F32, Kind.F32])  # fmt: skip
    to.op("v_cvt_f32_bf16", lambda e, x: e.bits(e.convert("zext", x, I32) << 16, F32), [Kind.F32], [Kind.BF16],
          fixed=True)  # fmt: skip
    to.op("v_cvt_pk_bf16_f32", lambda e, x, y: joined(e, brain(e, x), brain(e, y)), [Kind.B32],
          [Kind.F32, Kind.F32], fixed=True)  # fmt: skip
    _of_eight_bits(to)


def _of_eight_bits(to: Lanes) -> None:
    """Stochastic ones are not among them: which bits of the random number they take is not known."""
    bias = "" if to.arch.generation == 12 or to.arch.has("GFX950Insts") else "z"
    for name in ("fp8", "bf8"):
        of = f"{name}{bias}"
        to.op(f"v_cvt_f32_{name}", lambda e, x, of=of: of_byte(e, e.convert("trunc", x, I8), of),
              [Kind.F32], [Kind.B32], fixed=True)  # fmt: skip
        to.op(f"v_cvt_pk_f32_{name}", _pair_of_bytes(of), [Kind.PACKED_F32], [Kind.B16], fixed=True)
        to.op(f"v_cvt_pk_{name}_f32", lambda e, x, y, of=of: to_small(e, x, of) | to_small(e, y, of) << 8,
              [Kind.B16], [Kind.F32, Kind.F32], keeps=True, fixed=True)  # fmt: skip


def _pair_of_bytes(of: str) -> Semantics:
    def semantics(e: Emitter, x: Value) -> Value:
        low, high = (e.bits(of_byte(e, e.convert("trunc", x >> at, I8), of), I32) for at in (0, 8))
        return e.convert("zext", low, I64) | e.convert("zext", high, I64) << 32

    return semantics


def _float_to_float(result: Type) -> Semantics:
    return lambda e, x: narrowed(e, x, result) if x.type.bits > result.bits else widened(e, x, result)


def _to_float(sign: str, result: Type) -> Semantics:
    def semantics(e: Emitter, x: Value) -> Value:
        wide = F32 if result.bits == 16 else result
        found = e.convert("sitofp" if sign == "i" else "uitofp", x, wide)
        # what the host adds up is -0 where it rounds down
        found = magnitude(e, found) if sign == "u" else found
        return narrowed(e, found, result)

    return semantics


def _integer(e: Emitter, sign: str, x: Value, result: Type) -> Value:
    kind = result.of(x.type.lanes)
    return e.intrinsic(f"fpto{'s' if sign == 'i' else 'u'}i.sat.{kind.mangled}", x, result=kind)


def _to_integer(sign: str, result: Type) -> Semantics:
    """Towards zero, and to the bounds what lies beyond them; NaN is 0."""
    return lambda e, x: _integer(e, sign, widened(e, x, F32) if x.type.bits == 16 else x, result)


def _packed_integers(sign: str) -> Semantics:
    return lambda e, x, y: joined(e, _integer(e, sign, x, I16), _integer(e, sign, y, I16))


def _of_byte(byte: int) -> Semantics:
    return lambda e, x: e.convert("sitofp", x >> 8 * byte & 0xFF, F32)


def _offset(e: Emitter, x: Value) -> Value:
    """Four signed bits as sixteenths."""
    return e.convert("sitofp", low_bits(e, x, 4, signed=True), F32) * 0.0625


def _packed_towards_zero(e: Emitter, x: Value, y: Value) -> Value:
    return joined(e, towards_zero(e, x, F16), towards_zero(e, y, F16))


def brain(e: Emitter, x: Value) -> Value:
    """The upper half of a float of 32 bits, rounded to nearest even; a NaN stays one."""
    bits = raw(e, x)
    rounded = bits + 0x7FFF + (bits >> 16 & 1)
    nan = e.compare("uno", x, x)
    return e.convert("trunc", e.select(nan, bits | 0x400000, rounded) >> 16, I16)
