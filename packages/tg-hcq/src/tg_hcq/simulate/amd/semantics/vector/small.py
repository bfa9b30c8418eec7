"""Floats of 8 bits and of 32, each from the other: those of OCP, and those of gfx942, whose zero has no sign; of 6 and
4 bits from 32.

Sources: OCP, "8-bit Floating Point Specification"; AMD, "AMD Instinct CDNA4 Instruction Set Architecture", table 30;
P. Micikevicius and others, "8-bit Numerical Formats for Deep Neural Networks" (the other bias: LLVM's
``Float8E4M3FNUZ`` and ``Float8E5M2FNUZ``); OCP, "Microscaling Formats (MX) Specification" 1.0 (of 6 and 4 bits).
"""

from __future__ import annotations

from typing import Final

from ....engine import F16, F32, I16, I32, Emitter, Value

FORMATS: Final = {
    "fp8": (8, 3, 7), "bf8": (8, 2, 15), "fp8z": (8, 3, 8), "bf8z": (8, 2, 16), "fp6": (6, 3, 1), "bf6": (6, 2, 3),
    "fp4": (4, 1, 1),
}  # fmt: skip
"""Bits of the number and of its fraction, and the bias; ``z``: zero has no sign."""
_ENDS: Final = {
    "fp8": (0x7E, 0x7F, 0x7F), "bf8": (0x7B, 0x7C, 0x7F), "fp8z": (0x7F, 0x80, 0x80), "bf8z": (0x7F, 0x80, 0x80),
}  # fmt: skip
"""The largest number, what lies beyond, and what is no number; all are numbers of the other formats."""


def of_byte(e: Emitter, byte: Value, of: str) -> Value:
    """The number.

    Args:
      e: the function.
      byte: integers of 8 bits.
      of: ``fp8`` or ``bf8``, with ``z`` if zero has no sign.
    """
    wide = e.convert("zext", byte, I16)
    nan = e.bits(e.value(I32.of(byte.type.lanes), 0x7FC00000), F32)
    four, signless = of.startswith("fp8"), of.endswith("z")
    if not four and not signless:
        return e.convert("fpext", e.bits(wide << 8, F16), F32)
    size = wide & 0x7F
    if four:
        number = e.convert("fpext", e.bits(size << 7, F16), F32) * (128.0 if signless else 256.0)
    else:
        exponent, fraction = (e.convert("zext", part, I32) for part in (size >> 2, size & 3))
        normal = e.bits((exponent + 111) << 23 | fraction << 21, F32)  # the bias is 16
        tiny = e.convert("uitofp", fraction, F32) * 2.0**-17
        number = e.select(e.compare("eq", exponent, 0), tiny, normal)
    sign = e.convert("zext", wide & 0x80, I32) << 24
    number = e.bits(e.bits(number, I32) | sign, F32)
    return e.select(e.compare("eq", wide, 0x80) if signless else e.compare("eq", size, 0x7F), nan, number)


def to_small(e: Emitter, x: Value, of: str) -> Value:
    """The nearest one's bits, in integers of 16 bits; beyond the largest lies infinity, or what is no number.

    Of formats that have neither, it is the largest one, and what is no number has no nearest one.

    It adds a number to small ones under whose fraction the rest is rounded away, as the host does to nearest even.

    Args:
      e: the function.
      x: floats of 32 bits.
      of: one of ``FORMATS``.
    """
    width, fraction, bias = FORMATS[of]
    signless = of.endswith("z")
    bits = e.bits(x, I32)
    size = bits & 0x7FFFFFFF
    lost = 23 - fraction
    rounded = size + (size >> lost & 1) + ((1 << lost - 1) - 1)
    normal = (rounded >> lost) - ((127 - bias) << fraction)
    unit = 24 - bias - fraction  # a power of two, whose last bit of fraction is the smallest number
    tiny = e.bits(e.bits(size, F32) + 2.0**unit, I32) - (127 + unit << 23)
    code = e.select(e.compare("ult", size, (128 - bias) << 23), tiny, normal)
    ones = (1 << width - 1) - 1
    last, over, nan = _ENDS.get(of, (ones, ones, ones))
    code = e.select(e.compare("ugt", code, last), e.value(code.type, over), code)
    code = e.select(e.compare("uge", size, 0x7F800000), e.value(code.type, over), code)
    code = e.select(e.compare("ugt", size, 0x7F800000), e.value(code.type, nan), code)
    sign = bits >> 32 - width & 1 << width - 1
    code = e.select(e.compare("eq", code, 0), code, code | sign) if signless else code | sign
    return e.convert("trunc", code, I16)
