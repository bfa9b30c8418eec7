"""A wave's registers, and where in its state an operand of an instruction lies."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from ..engine import Layout, Undecodable
from ..engine.state import EXEC, MOST_OPERANDS, OPERANDS
from .architecture import Architecture

SCALARS: Final[Mapping[str, int]] = {"s": 128, "null": 2, "scc": 1, "m0": 1, "mode": 1}
VECTORS: Final = 256
VCC: Final = 106
_LITERAL: Final = 1 << 31
_FLOATS: Final = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)


class Places:
    """Offsets of one instruction's operands; constants take the record's operand slots from the last on.

    Args:
      layout: of the wave's state.
      literal: the constant that follows the instruction, if any.
      arch: whose numbers of registers are meant.
    """

    def __init__(self, layout: Layout, literal: int | None, arch: Architecture) -> None:
        self._layout, self._literal, self._arch = layout, literal, arch
        self._constants: list[int] = []

    def vector(self, number: int) -> int:
        """A row of lanes."""
        return self._layout.vector(number)

    def result(self, number: int) -> int:
        """A scalar register that is written."""
        return self._layout.scalar("null") if number == self._arch.null else self._register(number)

    def scalar(self, number: int, kind: str, bits: int) -> int:
        """A scalar register or a constant, by the number that the instruction has.

        Args:
          number: as the manual's table of scalar operands has it.
          kind: ``i`` or ``f``.
          bits: of the operand, 32 or 64.

        Raises:
          Undecodable: if it is not known.
        """
        if number == self._arch.null:
            return self._constant(0, bits)
        if 128 <= number <= 208:
            return self._constant(number - 128 if number <= 192 else 192 - number, bits)
        if 240 <= number <= 247 and bits == 32:
            return self._constant(struct.unpack("<i", struct.pack("<f", _FLOATS[number - 240]))[0], bits)
        if number == 255 and self._literal is not None and (bits == 32 or kind == "i"):
            value = self._literal
            if bits == 64 and value >> 31:
                raise Undecodable("whether a literal of 32 bits is extended with its sign is not executed yet")
            return self._constant(value - (value >> 31 << 32), bits)
        return self._register(number)

    def _register(self, number: int) -> int:
        if number < 124:
            return self._layout.scalar("s", number)
        if number in (126, 127):
            return EXEC + 4 * (number - 126)
        if number == self._arch.m0:
            return self._layout.scalar("m0")
        raise Undecodable(f"the scalar operand {number} is not executed yet")

    def _constant(self, value: int, bits: int) -> int:
        words = [value] if bits <= 32 else [value, value >> 31]
        self._constants[:0] = words
        return OPERANDS + 4 * (MOST_OPERANDS - len(self._constants)) - _LITERAL

    def record(self, operands: list[int]) -> tuple[int, ...]:
        """The operands' offsets with the constants behind them.

        Raises:
          Undecodable: if they are too many.
        """
        room = MOST_OPERANDS - len(operands) - len(self._constants)
        if room < 0:
            raise Undecodable("more constants than a record holds")
        return (*operands, *[0] * room, *self._constants) if self._constants else tuple(operands)
