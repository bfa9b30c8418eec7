"""How a product of matrices takes its operands, as a number beside the instruction.

Source: AMD, "AMD Instinct CDNA4 Instruction Set Architecture", 7.1.6 "Broadcasting values", table 29.
"""

from __future__ import annotations

from typing import Final

FORMATS: Final = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Of products whose elements the instruction names: by the numbers in CBSZ, of A, and in BLGP, of B."""
LANES: Final = 18
"""Bits for each of A and B: a rotation, a mask and an addend of lanes' numbers, six each."""
NEGATE: Final = 36
"""The first of three bits: of A, of B and of C."""
ABSOLUTE, HIGH, INDEX = 39, 40, 41
"""Bits: C without signs, a result in upper halves; and the first of five, how far up in its register the index lies."""
SCALES = 46
"""The first of two times two bits: which byte of their registers the scales of A and of B are."""
_OF_B: Final = ((0, 63, 0), (0, 31, 0), (0, 31, 32), (16, 63, 0), (0, 15, 0), (0, 15, 16), (0, 15, 32), (0, 15, 48))
"""By BLGP."""


def lanes_of_a(cbsz: int = 0, abid: int = 0) -> int:
    """Whose values a lane takes for A: those of one block of lanes."""
    size = 64 >> cbsz
    return (size - 1) << 6 | size * abid << 12


def lanes_of_b(blgp: int = 0) -> int:
    """Whose values a lane takes for B."""
    rotation, mask, addend = _OF_B[blgp]
    return rotation | mask << 6 | addend << 12


def taken(cbsz: int = 0, abid: int = 0, blgp: int = 0) -> int:
    """Both of them."""
    return lanes_of_a(cbsz, abid) | lanes_of_b(blgp) << LANES
