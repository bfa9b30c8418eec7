"""Floats of 8 bits as floats of 32: those of OCP, and those of gfx942, whose zero has no sign.

Sources: OCP, "8-bit Floating Point Specification"; AMD, "AMD Instinct CDNA4 Instruction Set Architecture", table 30;
P. Micikevicius and others, "8-bit Numerical Formats for Deep Neural Networks" (the other bias: LLVM's
``Float8E4M3FNUZ`` and ``Float8E5M2FNUZ``).
"""

from __future__ import annotations

from ....engine import F16, F32, I16, I32, Emitter, Value


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
