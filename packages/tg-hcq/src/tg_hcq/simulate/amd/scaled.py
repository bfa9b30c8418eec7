"""Conversions with a scale, by their names, and the immediate of their records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "v_cvt_scalef32_"
_NAME: Final = re.compile(PREFIX + r"(?:(pk|pk32|2xpk16)_)?([bf]+p?\d+)_([bf]+p?\d+)")
_COUNTS: Final = {None: 1, "pk": 2, "pk32": 32, "2xpk16": 32}
BITS: Final = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
"""Of a number of each format."""
SOURCE, RESULT, SIGNS = 0, 8, 16
"""Positions in the record's immediate: how far up in its register the source lies, and the result; the signs of two
sources, two bits each."""


@dataclass(frozen=True, slots=True)
class Form:
    """What such an instruction converts.

    Attributes:
      count: how many numbers.
      result: their format, as ``fp8``.
      source: the format they had.
      alternate: whether every other one is the second source's.
    """

    count: int
    result: str
    source: str
    alternate: bool

    @property
    def widens(self) -> bool:
        """Whether numbers are multiplied by the scale; else they are divided."""
        return BITS[self.result] > BITS[self.source]

    @property
    def wide(self) -> bool:
        """Whether operands are rows of registers."""
        return self.count > 2

    @property
    def result_words(self) -> int:
        """Registers of the result."""
        return -(-self.count * BITS[self.result] // 32)

    @property
    def source_words(self) -> int:
        """Registers of a source."""
        return -(-self.count * BITS[self.source] // (64 if self.alternate else 32))


def form(name: str) -> Form | None:
    """The form of an instruction that is executed, by its name.

    >>> form("v_cvt_scalef32_pk_fp4_f32")
    Form(count=2, result='fp4', source='f32', alternate=True)
    >>> form("v_cvt_scalef32_sr_fp8_f32") is None
    True
    """
    parsed = _NAME.fullmatch(name)
    if parsed is None:
        return None
    count, result, source = _COUNTS[parsed[1]], parsed[2], parsed[3]
    return Form(count, result, source, source == "f32" and count > 1)
