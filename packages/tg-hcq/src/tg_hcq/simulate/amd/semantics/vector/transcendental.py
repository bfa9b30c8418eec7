"""Reciprocals, roots, powers, logarithms and angles: nearest to the true value, or near it.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.8 "VOP1 Instructions": the notes on accuracy, on subnormals, which
those of 32 bits flush whatever the mode is, and on special values. Sines and cosines take turns. Of scalars (``v_s_``):
"RDNA4 Instruction Set Architecture", 7.6 "Pseudo-scalar Transcendental"; 16 bits leave zeros in the upper half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ....engine import F16, F32, F64, I32, I64, Emitter, Type, Value, scalar
from ....engine.handlers import Semantics
from ...modifiers import Kind
from .alu import Lanes
from .bounds import BEYOND, Bound, bound, somewhere
from .numbers import DOUBLE, SINGLE, is_nan, magnitude, pattern, power_of_two, raw, widened

Function = Callable[[Emitter, Value], Value]


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    for name, of in (
        ("rcp", _reciprocal), ("rsq", _reciprocal_root), ("sqrt", _root), ("exp", _power), ("log", _logarithm),
        ("sin", _sine), ("cos", _cosine),
    ):  # fmt: skip
        for kind, type_of in ((Kind.F16, F16), (Kind.F32, F32), (Kind.F64, F64)):
            if kind is Kind.F64 and name not in ("rcp", "rsq", "sqrt"):
                continue
            semantics = _function(name, of, type_of, bound(name, f"f{type_of.bits}", to.arch))
            to.op(f"v_{name}_f{type_of.bits}", semantics, [kind], [kind], fixed=True)
            if kind is Kind.F32 and name == "rcp":
                to.op("v_rcp_iflag_f32", semantics, [kind], [kind], fixed=True)
            if kind is not Kind.F64 and name not in ("sin", "cos") and f"v_s_{name}_f{type_of.bits}" in to.there:
                for signs in range(4):
                    to.to.scalar(f"v_s_{name}_f{type_of.bits}.{signs}", _signed(semantics, signs),
                                 [scalar(type_of)], [scalar(type_of)])  # fmt: skip


def _signed(of: Semantics, signs: int) -> Semantics:
    """Of an argument that is negated (1), whose sign was taken away before (2)."""

    def semantics(e: Emitter, x: Value) -> Value | tuple[Value, ...]:
        bits, sign = raw(e, x), -1 << x.type.bits - 1
        bits = bits & ~sign if signs & 2 else bits
        return of(e, e.bits(bits ^ sign if signs & 1 else bits, x.type))

    return semantics


def flushed(e: Emitter, x: Value) -> Value:
    """A subnormal of 32 bits as zero."""
    tiny = e.compare("olt", magnitude(e, x), 2.0**-126)
    return e.select(tiny, e.bits(raw(e, x) & SINGLE.sign, x.type), x)


def _function(name: str, of: Function, to: Type, most: Bound) -> Semantics:
    def semantics(e: Emitter, x: Value) -> Value:
        wide = widened(e, flushed(e, x) if to == F32 else x, F64)
        found = somewhere(e, name, wide, of(e, wide), to, most)
        return flushed(e, found) if to == F32 else found

    return semantics


def _reciprocal(e: Emitter, x: Value) -> Value:
    return e.binary("fdiv", e.constant(x.type, 1.0), x)


def _root(e: Emitter, x: Value) -> Value:
    return e.intrinsic("sqrt", x)


def _reciprocal_root(e: Emitter, x: Value) -> Value:
    return _reciprocal(e, _root(e, x))


def polynomial(e: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial by Horner's rule; the coefficient of the highest power is the first."""
    found = e.constant(x.type, coefficients[0])
    for coefficient in coefficients[1:]:
        found = e.intrinsic("fma", found, x, e.constant(x.type, coefficient))
    return found


def _power(e: Emitter, x: Value) -> Value:
    """Two to the ``x``: of the nearest integer exactly, of the rest by its series."""
    inside = e.select(e.compare("ogt", x, 200.0), e.constant(x.type, 200.0), x)
    inside = e.select(e.compare("olt", inside, -200.0), e.constant(x.type, -200.0), inside)
    inside = e.select(is_nan(e, x), e.constant(x.type, 0.0), inside)
    whole = e.intrinsic("roundeven", inside)
    series = [math.log(2) ** n / math.factorial(n) for n in range(13, -1, -1)]
    found = polynomial(e, inside - whole, series) * power_of_two(e, e.convert("fptosi", whole, I32), F64)
    return e.select(is_nan(e, x), x, found)


def _logarithm(e: Emitter, x: Value) -> Value:
    """To base two: the exponent, and twice the series of the inverse hyperbolic tangent of what is left."""
    bits = raw(e, x)
    exponent = e.convert("trunc", bits >> DOUBLE.fraction & 0x7FF, I32) - DOUBLE.bias
    rest = e.bits(bits & (1 << DOUBLE.fraction) - 1 | DOUBLE.bias << DOUBLE.fraction, F64)
    large = e.compare("ogt", rest, math.sqrt(2))
    rest = e.select(large, rest * 0.5, rest)
    exponent = exponent + e.convert("zext", large, I32)
    ratio = e.binary("fdiv", rest - 1.0, rest + 1.0)
    series = [2 / math.log(2) / n for n in range(21, 0, -2)]
    found = polynomial(e, ratio * ratio, series) * ratio + e.convert("sitofp", exponent, F64)
    infinity = pattern(e, x.type, DOUBLE.infinity)
    found = e.select(e.compare("oeq", x, infinity), x, found)
    found = e.select(e.compare("oeq", x, 0.0), pattern(e, x.type, DOUBLE.infinity | 1 << 63), found)
    negative = e.compare("olt", x, 0.0)
    return e.select(negative | is_nan(e, x), pattern(e, x.type, DOUBLE.nan), found)


def _turned(e: Emitter, x: Value, first: int) -> Value:
    """The sine of a number of turns, after quarter turns more."""
    inside = e.select(e.compare("olt", magnitude(e, x), 2.0**40), x, e.constant(x.type, 0.0))
    quarters = e.intrinsic("roundeven", inside * 4.0)
    angle = (inside - quarters * 0.25) * (2 * math.pi)
    square = angle * angle
    sine = polynomial(e, square, [(-1) ** n / math.factorial(2 * n + 1) for n in range(8, -1, -1)]) * angle
    cosine = polynomial(e, square, [(-1) ** n / math.factorial(2 * n) for n in range(8, -1, -1)])
    number = e.convert("fptosi", quarters, I64) + first
    found = e.select(e.compare("eq", number & 1, 0), sine, cosine)
    found = e.select(e.compare("eq", number & 2, 0), found, e.binary("fsub", e.constant(x.type, -0.0), found))
    wrong = ~e.compare("olt", magnitude(e, x), pattern(e, x.type, DOUBLE.infinity))
    return e.select(wrong, pattern(e, x.type, DOUBLE.nan), found)


def _sine(e: Emitter, x: Value) -> Value:
    """Zeros have the sign of the argument (IEEE 754-2019, 9.2, ``sinPi``; of -0, 16.8, V_SIN_F32)."""
    found = _turned(e, x, 0)
    zero = e.intrinsic("copysign", e.constant(x.type, 0.0), x)
    return _within(e, x, e.select(e.compare("oeq", found, 0.0), zero, found), 0.0)


def _cosine(e: Emitter, x: Value) -> Value:
    """Zeros are positive (16.8, V_COS_F32: of a quarter turn)."""
    return _within(e, x, _turned(e, x, 1) + 0.0, 1.0)


def _within(e: Emitter, x: Value, found: Value, beyond: float) -> Value:
    """Beyond so many turns the result is that of none (16.8, V_SIN_F32, V_COS_F32)."""
    far = e.compare("ogt", magnitude(e, x), BEYOND)
    far = far & e.compare("olt", magnitude(e, x), pattern(e, x.type, DOUBLE.infinity))
    return e.select(far, e.constant(x.type, beyond), found)
