"""Elements of 4 and 6 bits, and scales of 32 elements of the inner dimension each, as V_MFMA_*_F8F6F4 of gfx950 have.

A scale is an exponent of 8 bits; the largest one makes what is no number of its elements. It is the scale of 32
elements that follow one another in the inner dimension, wherever they lie: those of 8 bits lie in two runs of a lane.

Sources: OCP, "Microscaling Formats (MX) Specification" 1.0 (the formats); AMD, "Matrix Core Programming on AMD CDNA3
and CDNA4 architecture" (ROCm blogs), 5.4 and 5.5 (where elements of 8 and of 4 bits lie; those of 6 are taken to lie as
those of 4); of which elements a lane's scale is, vLLM's kernels for MXFP8 on a MI355 (``MiniMax-M3``, the first stage
of its experts).
"""

from __future__ import annotations

from typing import Final

from ....engine import F32, I32, I64, Emitter, Value
from .small import FORMATS

BLOCK: Final = 32
SMALL: Final = frozenset({"fp6", "bf6", "fp4"})


def run(of: str) -> int:
    """How many elements of a lane follow one another in the inner dimension."""
    return 16 if of in ("fp8", "bf8") else BLOCK


def tiny(e: Emitter, raw: Value, of: str) -> Value:
    """A number in the low bits of a register; all of them are numbers."""
    bits, fraction, bias = FORMATS[of]
    size = (raw & (1 << bits - 1) - 1) << 23 - fraction
    number = e.bits(size, F32) * 2.0 ** (127 - bias)  # a subnormal one is a subnormal float
    return e.bits(e.bits(number, I32) | (raw >> bits - 1 & 1) << 31, F32)


def power(e: Emitter, exponent: Value) -> Value:
    """Two to exponents of 8 bits, whose bias is 127; the largest one is no number."""
    bits = e.select(e.compare("eq", exponent, 0), e.value(exponent.type, 1 << 22), exponent << 23)
    return e.bits(e.select(e.compare("eq", exponent, 255), e.value(exponent.type, 0x7FC00000), bits), F32)


def multiplied(e: Emitter, numbers: Value, exponent: Value) -> tuple[Value, Value]:
    """Numbers times two to an exponent, and which of them normal floats cannot hold."""
    found = numbers * power(e, exponent)
    before, after = (e.bits(value, I32) & 0x7FFFFFFF for value in (numbers, found))
    finite = e.compare("ult", before - 1, 0x7F7FFFFF) & e.compare("ult", exponent, 255)
    return found, finite & ~e.compare("ult", after - 0x00800000, 0x7F000000)


def scale(e: Emitter, address: str, row: Value, shift: Value, size: int) -> Value:
    """Multiplies a row of an operand by the scales of its block; what a float cannot hold of it.

    Args:
      e: the function.
      address: of the row, floats.
      row: integers that hold the scales, a byte each.
      shift: how far up in them.
      size: how many floats.
    """
    exponent = row >> e.value(row.type, shift) & 0xFF
    new, beyond = multiplied(e, e.load(F32.of(size), address, 4), exponent)
    e.store(new, address, 4)
    lost = e.convert("zext", beyond, I32)
    name = f"llvm.vector.reduce.or.{lost.type.mangled}"
    e.declarations[f"declare i32 @{name}({lost.type})"] = None
    return e.emit(I32, f"call i32 @{name}({lost.type} {lost.text})")


def blocks(inner: int) -> int:
    """How many scales a row has."""
    return inner // BLOCK


def place(e: Emitter, base: Value, block: Value, size: int) -> str:
    """The address of the scales of a block: those of each row in a lane, behind those of the block before."""
    return e.at("%w", e.convert("zext", base, I64) + block * (4 * size))
