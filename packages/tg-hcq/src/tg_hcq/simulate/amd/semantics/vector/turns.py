"""Segments of 2 / pi, with which sines of large arguments are reduced.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.10 (V_TRIG_PREOP_F64); the digits are those of the constant, by
J. Machin's formula.
"""

from __future__ import annotations

import functools

from ....engine import F64, I32, I64, Emitter, Value
from ....engine.emitter import STRIP
from ...modifiers import Kind
from .alu import Lanes

BITS = 1201
"""Of 2 / pi, behind the point; all that follow are taken for zeros."""
SEGMENT = 53
_FAR, _FURTHEST, _SCALED = 1077, 1968, 128
"""Exponents from which arguments skip more digits, and from which results are scaled, by so many powers of two."""
_LEAST = -1074
_WORDS = 86


@functools.cache
def digits() -> int:
    """The first bits of 2 / pi as a number."""
    one = 1 << BITS + 64

    def arctangent(inverse: int) -> int:
        term, total, n = one // inverse, 0, 0
        while term:
            total += (term if n % 2 == 0 else -term) // (2 * n + 1)
            term, n = term // (inverse * inverse), n + 1
        return total

    quarter = 4 * arctangent(5) - arctangent(239)  # pi / 4
    return (one * one // (2 * quarter)) >> 64


def add(to: Lanes) -> None:
    """Adds the handler."""
    to.op("v_trig_preop_f64", _segment, [Kind.F64], [Kind.F64, Kind.B32], fixed=True)


def _segment(e: Emitter, x: Value, number: Value) -> Value:
    """Towards zero, where the result is subnormal."""
    exponent = e.convert("trunc", e.bits(x, I64) >> 52 & 0x7FF, I32)
    beyond = e.select(e.compare("ugt", exponent, _FAR), exponent - _FAR, 0)
    shift = (number & 31) * SEGMENT + beyond
    scale = e.select(e.compare("uge", exponent, _FURTHEST), e.value(shift.type, _SCALED), 0) - shift - SEGMENT
    found = _looked_up(e, shift)
    lost = e.select(e.compare("slt", scale, _LEAST), e.value(scale.type, _LEAST) - scale, 0)
    gone = e.compare("ugt", lost, 63)
    kept = e.select(gone, e.value(found.type, 0), found >> e.convert("zext", e.select(gone, lost & 0, lost), I64))
    scale = e.select(e.compare("slt", scale, _LEAST), e.value(scale.type, _LEAST), scale)
    half = e.binary("ashr", scale, 1)
    return e.convert("uitofp", kept, F64) * _power(e, half) * _power(e, scale - half)


def _power(e: Emitter, exponent: Value) -> Value:
    """Of two, a normal number."""
    return e.bits(e.convert("sext", exponent + 1023, I64) << 52, F64)


def _looked_up(e: Emitter, shift: Value) -> Value:
    """The bits behind so many of the first ones."""
    words = [digits() << (32 * _WORDS - BITS) >> 32 * (_WORDS - 1 - i) & 0xFFFFFFFF for i in range(_WORDS)]
    e.do(f"%digits = alloca [{_WORDS} x i32], align 4")
    constant = ", ".join(f"i32 {word - (word >> 31 << 32)}" for word in words)
    e.do(f"store [{_WORDS} x i32] [{constant}], ptr %digits, align 4")
    found = e.value(I64.of(STRIP), 0)
    for lane in range(STRIP):
        at = e.emit(I32, f"extractelement {shift.type} {shift.text}, i32 {lane}")
        first = e.convert("zext", at >> 5 << 2, I64)
        high, middle, low = (e.convert("zext", e.load(I32, e.at("%digits", first + 4 * i), 4), I64) for i in range(3))
        inside = e.convert("zext", at & 31, I64)
        upper = high << 32 | middle
        whole = (upper << inside) | (low << inside) >> 32
        element = whole >> 64 - SEGMENT
        found = e.emit(found.type, f"insertelement {found.type} {found.text}, i64 {element.text}, i32 {lane}")
    return found
