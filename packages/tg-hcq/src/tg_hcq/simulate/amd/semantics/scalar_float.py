"""Floats of scalars, which gfx11.5 brought: rounded to nearest even, subnormals kept. Upper halves of 16 bits are zero.

Source: AMD, "RDNA4 Instruction Set Architecture", sections 16.1 to 16.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...engine import F16, F32, F64, I16, I32, Emitter, InstructionSet, Type, Value, scalar
from ...engine.handlers import Semantics
from ..architecture import Architecture

_TESTS: Final = {
    "lt": "olt", "eq": "oeq", "le": "ole", "gt": "ogt", "lg": "one", "ge": "oge", "o": "ord", "u": "uno", "nge": "ult",
    "nlg": "ueq", "ngt": "ule", "nle": "ugt", "neq": "une", "nlt": "uge",
}  # fmt: skip
_ROUNDED: Final = {"ceil": "ceil", "floor": "floor", "trunc": "trunc", "rndne": "roundeven"}


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""

    def put(name: str, semantics: Semantics, result: Type, sources: list[Type]) -> None:
        to.scalar(name, semantics, [scalar(result)], [scalar(kind) for kind in sources])

    for kind in (F32, F16):
        suffix = f"f{kind.bits}"
        for op in ("add", "sub", "mul"):
            put(f"s_{op}_{suffix}", lambda e, x, y, op=op: e.binary(f"f{op}", x, y), kind, [kind, kind])
        for name, how in _TESTS.items():
            put(f"s_cmp_{name}_{suffix}", _test(how), I32, [kind, kind])
        for name, intrinsic in _ROUNDED.items():
            put(f"s_{name}_{suffix}", lambda e, x, of=intrinsic: e.intrinsic(of, x), kind, [kind])
        for name, how in (("min", "olt"), ("max", "ogt")):
            put(f"s_{name}_num_{suffix}", _number(how), kind, [kind, kind])
            put(f"s_{name}imum_{suffix}", _extreme(how), kind, [kind, kind])
        put(f"s_fmac_{suffix}", lambda e, z, x, y: _fused(e, x, y, z), kind, [kind] * 3)
    put("s_fmaak_f32", _fused, F32, [F32] * 3)
    put("s_fmamk_f32", lambda e, x, k, z: _fused(e, x, k, z), F32, [F32] * 3)
    put("s_cvt_f32_i32", lambda e, x: e.convert("sitofp", x, F32), F32, [I32])
    put("s_cvt_f32_u32", lambda e, x: e.convert("uitofp", x, F32), F32, [I32])
    put("s_cvt_i32_f32", lambda e, x: e.intrinsic("fptosi.sat.i32", x, result=I32), I32, [F32])
    put("s_cvt_u32_f32", lambda e, x: e.intrinsic("fptoui.sat.i32", x, result=I32), I32, [F32])
    put("s_cvt_f32_f16", lambda e, x: e.convert("fpext", x, F32), F32, [F16])
    put("s_cvt_hi_f32_f16", _upper, F32, [I32])
    put("s_cvt_f16_f32", lambda e, x: e.convert("fptrunc", x, F16), F16, [F32])
    put("s_cvt_pk_rtz_f16_f32", _packed, I32, [F32, F32])


def _test(how: str) -> Callable[[Emitter, Value, Value], Value]:
    return lambda e, x, y: e.convert("zext", e.compare(how, x, y), I32)


def _fused(e: Emitter, x: Value, y: Value, z: Value) -> Value:
    """Rounded once: in double precision nothing of a product of 16-bit floats is lost that could decide a tie."""
    if x.type.bits == 32:
        return e.intrinsic("fma", x, y, z)
    wide = e.intrinsic("fma", *(e.convert("fpext", value, F64) for value in (x, y, z)))
    return e.convert("fptrunc", wide, F16)


def _before(e: Emitter, how: str, x: Value, y: Value) -> Value:
    """Whether the first one is taken of two numbers: -0 is less than +0."""
    sign = e.bits(x, x.type.integer) >> (x.type.bits - 1)
    wanted = 1 if how == "olt" else 0
    return e.compare(how, x, y) | (e.compare("oeq", x, y) & e.compare("eq", sign, wanted))


def _number(how: str) -> Callable[[Emitter, Value, Value], Value]:
    """The other one if one is NaN."""

    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        found = e.select(_before(e, how, x, y), x, y)
        return e.select(e.compare("uno", y, y), x, found)

    return semantics


def _extreme(how: str) -> Callable[[Emitter, Value, Value], Value]:
    """NaN if one is."""

    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        found = e.select(_before(e, how, x, y), x, y)
        return e.select(e.compare("uno", x, y), e.binary("fadd", x, y), found)

    return semantics


def _upper(e: Emitter, x: Value) -> Value:
    return e.convert("fpext", e.bits(e.convert("trunc", x >> 16, I16), F16), F32)


def _towards_zero(e: Emitter, x: Value) -> Value:
    """The nearest one, or the one before it if that is larger; 16 bits in 32."""
    near = e.convert("fptrunc", x, F16)
    beyond = e.compare("ogt", e.intrinsic("fabs", e.convert("fpext", near, F32)), e.intrinsic("fabs", x))
    return e.convert("zext", e.bits(near, I16), I32) - e.convert("zext", beyond, I32)


def _packed(e: Emitter, x: Value, y: Value) -> Value:
    return _towards_zero(e, x) | (_towards_zero(e, y) << 16)
