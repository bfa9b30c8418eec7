"""Numbers of 8, 6 and 4 bits, exactly, and what conversions of them do in a lane.

Sources: OCP, "8-bit Floating Point Specification" and "Microscaling Formats (MX) Specification" 1.0; AMD, "AMD Instinct
CDNA4 Instruction Set Architecture", 7.3 and V_CVT_SCALEF32_*.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

from ...engine.testing import HALF, SINGLE
from .rules import Rule, rule

_NUMBERS = {
    "fp8": (8, 4, 7), "bf8": (8, 5, 15), "fp8z": (8, 4, 8), "bf8z": (8, 5, 16), "fp6": (6, 2, 1), "bf6": (6, 3, 3),
    "fp4": (4, 2, 1),
}  # fmt: skip
"""Bits of the number and of its exponent, and the bias."""


def of_bytes(signless: bool) -> Iterator[Rule]:
    """Conversions of 8 bits, which differ between architectures."""
    for name in ("fp8", "bf8"):
        kind = f"{name}{'z' if signless else ''}"
        yield rule(f"v_cvt_f32_{name}", ["f32"], ["b32"], lambda env, x, k=kind: single_of(x & 255, k))
        yield rule(f"v_cvt_pk_f32_{name}", ["pf32"], ["b16"],
                   lambda env, x, k=kind: single_of(x & 255, k) | single_of(x >> 8, k) << 32)  # fmt: skip
        yield rule(f"v_cvt_pk_{name}_f32", ["b16"], ["f32", "f32"],
                   lambda env, x, y, k=kind: of_single(x, k) | of_single(y, k) << 8)  # fmt: skip


def small_value(code: int, kind: str) -> Fraction | str:
    """A number of few bits, or what else it is."""
    bits, exponents, bias = _NUMBERS[kind]
    fraction, sign = bits - 1 - exponents, -1 if code >> bits - 1 else 1
    biased, rest = code >> fraction & (1 << exponents) - 1, code & (1 << fraction) - 1
    if kind[-1] == "z":
        if code == 0x80:
            return "nan"
    elif kind == "bf8" and biased == 31:
        return "nan" if rest else "infinity" if sign > 0 else "-infinity"
    elif kind == "fp8" and code & 0x7F == 0x7F:
        return "nan"
    size = Fraction(rest + (1 << fraction if biased else 0)) * Fraction(2) ** (max(biased, 1) - bias - fraction)
    return sign * size


def single_of(code: int, kind: str) -> int:
    """As float32."""
    found = small_value(code, kind)
    if isinstance(found, Fraction):
        return SINGLE.round(found, code >> _NUMBERS[kind][0] - 1 << 31)
    return {"nan": SINGLE.nan, "infinity": SINGLE.infinity, "-infinity": SINGLE.infinity | SINGLE.sign}[found]


@functools.cache
def _sizes(kind: str) -> list[tuple[Fraction, int]]:
    found = ((small_value(code, kind), code) for code in range(1 << _NUMBERS[kind][0] - 1))
    return sorted((number, code) for number, code in found if isinstance(number, Fraction))


def _ends(kind: str) -> tuple[int, int]:
    """What lies beyond the largest number, and what is no number, without signs."""
    return {"fp8": (0x7F, 0x7F), "bf8": (0x7C, 0x7F), "fp8z": (0x80, 0x80), "bf8z": (0x80, 0x80)}.get(
        kind, (_sizes(kind)[-1][1],) * 2)  # fmt: skip


def nearest(size: Fraction, minus: bool, kind: str) -> int:
    """The nearest number, of two the one that is even, by looking at all (CDNA 4, 7.3, with FP16_OVFL 0)."""
    sizes = _sizes(kind)
    last, step = sizes[-1][0], sizes[-1][0] - sizes[-2][0]
    if size > last + step / 2 or (size == last + step / 2 and sizes[-1][1] & 1):
        found = _ends(kind)[0]
    else:
        _, _, found = min((abs(size - n), code & 1, code) for n, code in sizes)
    if kind[-1] == "z" and found in (0, 0x80):
        return found
    return found | minus << _NUMBERS[kind][0] - 1


def of_single(x: int, kind: str, power: int = 0) -> int:
    """The nearest number to a float32 times two to a power."""
    minus = bool(x >> 31)
    if SINGLE.is_nan(x) or SINGLE.is_infinite(x):
        found = _ends(kind)[SINGLE.is_nan(x)]
        return found if kind[-1] == "z" else found | minus << _NUMBERS[kind][0] - 1
    return nearest(SINGLE.value(x & 0x7FFFFFFF) * Fraction(2) ** power, minus, kind)


def scaled(bits: int, source: str, result: str, scale: int) -> int | None:
    """What V_CVT_SCALEF32_* makes of a number, or None where no document says it.

    Args:
      bits: of the number.
      source: its format: ``f32``, ``f16``, ``bf16``, or a small one.
      result: the format that is wanted.
      scale: float32, of which the exponent counts.
    """
    power = (scale >> 23 & 0xFF) - 127
    if source in _NUMBERS:
        x = single_of(bits, source)
        if SINGLE.is_nan(x) or power == 128:
            x = SINGLE.nan
        elif not SINGLE.is_infinite(x) and x & 0x7FFFFFFF:
            number = SINGLE.value(x) * Fraction(2) ** power
            if not Fraction(2) ** -126 <= abs(number) < Fraction(2) ** 128:
                return None
            x = SINGLE.round(number)
        return x >> 16 if result == "bf16" else SINGLE.convert(x, HALF) if result == "f16" else x
    x = bits if source == "f32" else bits << 16 if source == "bf16" else HALF.convert(bits, SINGLE)
    if power == 128:
        x = SINGLE.nan
    if not result.endswith("8") and (SINGLE.is_nan(x) or SINGLE.is_infinite(x)):
        return None
    return of_single(x, result, -power)
