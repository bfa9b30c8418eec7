"""Floats of lanes: sums, products, minima and maxima, parts of numbers.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.7 to 16.10; "RDNA4 Instruction Set Architecture", chapter 16 (the
instructions of ``_num_``, minimum and maximum); of V_FRACT's bound: LLVM, ``AMDGPUCodeGenPrepare`` (``matchFractPat``).
"""

from __future__ import annotations

from collections.abc import Callable

from ....engine import F32, F64, I16, I32, Emitter, Value
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes
from .integers import middle, operator
from .numbers import (
    DOUBLE,
    FORMATS,
    HALF,
    SINGLE,
    Format,
    fused,
    is_nan,
    magnitude,
    narrowed,
    pattern,
    raw,
    scaled,
    widened,
)

Binary = Callable[[Emitter, Value, Value], Value]


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for of in FORMATS:
        _arithmetic(to, of)
        _ordered(to, of)
        _parts(to, of)
        _rounded(to, of)
    for name, kind in (("f32", Kind.F32), ("f16", Kind.F16)):
        # the constant is the second source of one and the third of the other
        to.op(f"v_fmaak_{name} v_fmamk_{name}", fused, [kind], [kind] * 3)
    to.op("v_mul_legacy_f32 v_mul_dx9_zero_f32", _product_without_nan, [Kind.F32], [Kind.F32] * 2)
    to.op("v_fma_legacy_f32 v_fma_dx9_zero_f32 v_fmac_legacy_f32 v_fmac_dx9_zero_f32", _fused_without_nan,
          [Kind.F32], [Kind.F32] * 3)  # fmt: skip


def _arithmetic(to: Lanes, of: Format) -> None:
    kind, name = of.kind, of.suffix
    for op in ("add", "sub", "mul"):
        to.op(f"v_{op}_{name}", operator(f"f{op}"), [kind], [kind] * 2)
    to.op(f"v_subrev_{name}", lambda e, x, y: y - x, [kind], [kind] * 2)
    keeps = True if of is HALF else None
    to.op(f"v_fma_{name}", fused, [kind], [kind] * 3, keeps=keeps)
    to.op(f"v_fmac_{name}", fused, [kind], [kind] * 3)
    counts = Kind.B16 if of is HALF else Kind.B32
    to.op(f"v_ldexp_{name}", scaled, [kind], [kind, counts])


def _product_without_nan(e: Emitter, x: Value, y: Value) -> Value:
    """Zero times anything is zero."""
    zero = e.compare("oeq", x, 0.0) | e.compare("oeq", y, 0.0)
    return e.select(zero, e.constant(x.type, 0.0), x * y)


def _fused_without_nan(e: Emitter, x: Value, y: Value, z: Value) -> Value:
    zero = e.compare("oeq", x, 0.0) | e.compare("oeq", y, 0.0)
    return e.select(zero, z, fused(e, x, y, z))


def quieted(e: Emitter, x: Value, of: Format) -> Value:
    """A signalling NaN as a quiet one."""
    return e.select(is_nan(e, x), e.bits(raw(e, x) | 1 << of.fraction - 1, x.type), x)


def extreme(of: Format, most: bool, number: bool) -> Binary:
    """The larger or smaller one, where the zeros differ.

    Args:
      of: the format.
      most: whether the larger one is meant.
      number: whether a NaN loses against a number; else it wins.
    """

    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        # with the same sign bit the comparison of zeros by their bits is that of numbers
        first = e.compare("ogt" if most else "olt", x, y)
        zeros = e.compare("oeq", magnitude(e, x), 0.0) & e.compare("oeq", magnitude(e, y), 0.0)
        sign = e.compare("slt", raw(e, y if most else x), 0)
        found = e.select(first | (zeros & sign), x, y)
        if number:
            found = e.select(is_nan(e, y), quieted(e, x, of), found)
            return e.select(is_nan(e, x), e.select(is_nan(e, y), quieted(e, y, of), y), found)
        found = e.select(is_nan(e, y), quieted(e, y, of), found)
        return e.select(is_nan(e, x), quieted(e, x, of), found)

    return semantics


def extreme_by_mode(of: Format, most: bool) -> Binary:
    """As before RDNA 4: with IEEE in MODE a signalling NaN wins, else a NaN loses."""
    plain = extreme(of, most, True)

    def semantics(e: Emitter, x: Value, y: Value) -> Value:
        found = plain(e, x, y)
        ieee = e.compare("ne", e.field(e.layout.scalar("mode"), I32) & 0x200, 0)
        for value in (y, x):
            bits = raw(e, value)
            signals = is_nan(e, value) & e.compare("eq", bits & 1 << of.fraction - 1, 0)
            wins = signals & e.value(signals.type, ieee)
            found = e.select(wins, quieted(e, value, of), found)
        return found

    return semantics


def _ordered(to: Lanes, of: Format) -> None:
    kind, name = of.kind, of.suffix
    keeps = True if of is HALF else None
    by_mode = extreme_by_mode(of, False), extreme_by_mode(of, True)
    numbers = extreme(of, False, True), extreme(of, True, True)
    both = extreme(of, False, False), extreme(of, True, False)
    for suffix, (least, most) in (("", by_mode), ("_num", numbers)):
        to.op(f"v_min{suffix}_{name}", least, [kind], [kind] * 2)
        to.op(f"v_max{suffix}_{name}", most, [kind], [kind] * 2)
        for form, inner, outer in (
            ("min3", least, least), ("max3", most, most), ("maxmin", most, least), ("minmax", least, most),
        ):  # fmt: skip
            to.op(f"v_{form}{suffix}_{name}", _chained(inner, outer), [kind], [kind] * 3, keeps=keeps)
        to.op(f"v_med3{suffix}_{name}", _middle(least, most), [kind], [kind] * 3, keeps=keeps)
    least, most = both
    to.op(f"v_minimum_{name}", least, [kind], [kind] * 2)
    to.op(f"v_maximum_{name}", most, [kind], [kind] * 2)
    for form, inner, outer in (
        ("minimum3", least, least), ("maximum3", most, most), ("maximumminimum", most, least),
        ("minimummaximum", least, most),
    ):  # fmt: skip
        to.op(f"v_{form}_{name}", _chained(inner, outer), [kind], [kind] * 3, keeps=keeps)


def _chained(inner: Binary, outer: Binary) -> Semantics:
    return lambda e, x, y, z: outer(e, inner(e, x, y), z)


def _middle(least: Binary, most: Binary) -> Semantics:
    """Of three of which one is a NaN, the least."""
    ordered = middle(least, most)

    def semantics(e: Emitter, x: Value, y: Value, z: Value) -> Value:
        nan = is_nan(e, x) | is_nan(e, y) | is_nan(e, z)
        found = ordered(e, x, y, z)
        assert isinstance(found, Value)
        return e.select(nan, least(e, least(e, x, y), z), found)

    return semantics


def _rounded(to: Lanes, of: Format) -> None:
    kind, name = of.kind, of.suffix
    for op, intrinsic in (("trunc", "trunc"), ("ceil", "ceil"), ("floor", "floor"), ("rndne", "roundeven")):
        to.op(f"v_{op}_{name}", _through_single(intrinsic), [kind], [kind], fixed=True)

    def fraction(e: Emitter, x: Value) -> Value:
        """Below one, even where the difference is rounded to it."""
        wide = widened(e, x, F32) if of is HALF else x
        rest = narrowed(e, wide - e.intrinsic("floor", wide), x.type)
        one = of.bias << of.fraction
        # by bits: LLVM compares what is not rounded yet
        return e.select(e.compare("eq", raw(e, rest), one), pattern(e, x.type, one - 1), rest)

    to.op(f"v_fract_{name}", fraction, [kind], [kind])


def _through_single(intrinsic: str) -> Semantics:
    def semantics(e: Emitter, x: Value) -> Value:
        if x.type.bits != 16:
            return e.intrinsic(intrinsic, x)
        return narrowed(e, e.intrinsic(intrinsic, widened(e, x, F32)), x.type)

    return semantics


def _parts(to: Lanes, of: Format) -> None:
    kind, name = of.kind, of.suffix

    def normal(e: Emitter, x: Value) -> tuple[Value, Value]:
        """The number in a wider format, or of 64 bits scaled, with the power of two by which it was."""
        if of is not DOUBLE:
            return widened(e, x, F32 if of is HALF else F64), e.value(I32.of(x.type.lanes), 0)
        tiny = e.compare("olt", magnitude(e, x), 2.0**-1022)
        power = e.select(tiny, e.value(I32.of(x.type.lanes), 128), 0)
        return e.select(tiny, x * 2.0**128, x), power

    wide = {HALF: SINGLE, SINGLE: DOUBLE, DOUBLE: DOUBLE}[of]

    def special(e: Emitter, x: Value) -> Value:
        """Zero, infinity or NaN."""
        size = raw(e, magnitude(e, x))
        return e.compare("eq", size, 0) | e.compare("uge", size, of.infinity)

    def exponent(e: Emitter, x: Value) -> Value:
        number, power = normal(e, x)
        biased = raw(e, magnitude(e, number)) >> wide.fraction
        found = (biased if biased.type.bits == 32 else e.convert("trunc", biased, I32)) - (wide.bias - 1) - power
        found = e.select(special(e, x), e.value(found.type, 0), found)
        return e.convert("trunc", found, I16) if of is HALF else found

    def mantissa(e: Emitter, x: Value) -> Value:
        """Its magnitude is at least a half and below one."""
        number, _ = normal(e, x)
        bits = raw(e, number) & (wide.sign | (1 << wide.fraction) - 1) | (wide.bias - 1) << wide.fraction
        found = narrowed(e, e.bits(bits, number.type), x.type)
        return e.select(special(e, x), quieted(e, x, of), found)

    counts = Kind.B16 if of is HALF else Kind.B32
    to.op(f"v_frexp_exp_i{16 if of is HALF else 32}_{name}", exponent, [counts], [kind], fixed=True)
    to.op(f"v_frexp_mant_{name}", mantissa, [kind], [kind], fixed=True)
