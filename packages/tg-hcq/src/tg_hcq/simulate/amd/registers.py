"""A wave's registers, and where in its state an operand of an instruction lies."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from ..engine import Layout, Undecodable
from ..engine.state import EXEC, MOST_OPERANDS, OPERANDS
from .architecture import Architecture

SCALARS: Final[Mapping[str, int]] = {"s": 128, "null": 2, "scc": 1, "m0": 1, "mode": 1, "flat_scratch": 2}
_VECTORS, _TEMPORARIES = 256, 11
VCC, EXEC_MASK = 106, 126
"""Numbers of scalar operands that instructions read or write without naming them."""
SHARED_APERTURE, PRIVATE_APERTURE = 1 << 16, 2 << 16
"""The upper halves of generic addresses in LDS and in scratch (``MAKE_LDS_APP_BASE_V9``, ``MAKE_SCRATCH_APP_BASE_V9``
in the kernel's ``kfd_flat_memory.c``)."""
FLOATS: Final = 0xF0
"""The lower half of MODE: FP_ROUND says nearest even, FP_DENORM that subnormals are allowed (RDNA 3, 3.4.1)."""
OF_NUMBERS: Final = 0x300
"""In MODE, DX10_CLAMP and IEEE, which handlers obey; above them stand FP16_OVFL, exceptions, and others."""
FLAT_SCRATCH: Final = (20, 21)
"""Numbers of the halves of a register of the hardware: on gfx10.3, where private memory begins."""
SOURCE, RESULT = 1, 8
"""What of a move an index counts: bits of S_SET_GPR_IDX_ON (CDNA 3, 12.1)."""
INDEXED: Final = {
    SOURCE: "s_set_gpr_idx_on", RESULT: "s_set_gpr_idx_on.result", SOURCE | RESULT: "s_set_gpr_idx_on.both",
}  # fmt: skip
"""Handlers of a move between S_SET_GPR_IDX_ON and S_SET_GPR_IDX_OFF; behind its operands stands the index."""
APERTURES: Final = {235: SHARED_APERTURE, 237: PRIVATE_APERTURE}
"""Of ``src_shared_base`` and ``src_private_base``, whose lower halves are zero."""
_LITERAL: Final = 1 << 31
_FLOATS: Final = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532)
"""Constants from 240 on; the last is 1 / (2 pi)."""
_PATTERNS: Final = {16: "<e", 32: "<f", 64: "<d"}


def temporaries(arch: Architecture) -> int:
    """The first of the rows that no instruction names, where handlers keep what they have not done with."""
    return _VECTORS + arch.accumulators


def vectors(arch: Architecture) -> int:
    """How many rows a wave has; accumulation registers follow the vector registers."""
    return temporaries(arch) + _TEMPORARIES


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

    def result(self, number: int, bits: int = 32) -> int:
        """A scalar register that is written.

        Raises:
          Undecodable: if there is none of that number and size.
        """
        return self._layout.scalar("null") if number == self._arch.null else self._register(number, bits)

    def scalar(self, number: int, kind: str, bits: int, zero_extended: bool = False) -> int:
        """A scalar register or a constant, by the number that the instruction has.

        Args:
          number: as the manual's table of scalar operands has it.
          kind: ``i`` or ``f``.
          bits: of the operand, 32 or 64.
          zero_extended: whether zeros stand above a literal of 32 bits, as LLVM takes for granted of ``s_mov_b64``
            (``SIInstrInfo::expandPostRAPseudo``, ``S_MOV_B64_IMM_PSEUDO``).

        Raises:
          Undecodable: if it is not known.
        """
        if number == self._arch.null:
            return self._constant(0, bits)
        if 128 <= number <= 208:
            return self._constant(number - 128 if number <= 192 else 192 - number, bits)
        if 240 <= number <= 248 and bits in _PATTERNS:
            data = struct.pack(_PATTERNS[bits], _FLOATS[number - 240])
            return self._words(*struct.unpack(f"<{max(bits // 32, 1)}{'I' if bits >= 32 else 'H'}", data))
        if number == 255 and self._literal is not None and (bits <= 32 or kind == "i"):
            value = self._literal
            if bits == 64 and zero_extended:
                return self._words(value, 0)
            if bits == 64 and value >> 31:
                raise Undecodable("whether a literal of 32 bits is extended with its sign is not executed yet")
            return self._constant(value - (value >> 31 << 32), bits)
        if number == 255 and self._literal is not None and kind == "f":
            return self._words(0, self._literal)
        if number in APERTURES and bits == 64:
            return self._words(0, APERTURES[number])
        return self._register(number, bits)

    def literal(self, value: int) -> int:
        """A constant of 32 bits that is part of the instruction."""
        return self._words(value)

    def _register(self, number: int, bits: int) -> int:
        if number < 124:
            return self._layout.scalar("s", number)
        if number in (126, 127):
            if 32 * (number - 126) + bits > self._layout.lanes:
                raise Undecodable("a wave of 32 lanes has no upper half of exec")
            return EXEC + 4 * (number - 126)
        if number == self._arch.m0:
            if bits > 32:
                raise Undecodable("m0 has 32 bits")
            return self._layout.scalar("m0")
        if number == 253:
            return self._layout.scalar("scc")
        raise Undecodable(f"the scalar operand {number} is not executed yet")

    def _constant(self, value: int, bits: int) -> int:
        return self._words(value) if bits <= 32 else self._words(value, value >> 31)

    def _words(self, *words: int) -> int:
        self._constants[:0] = [word - (word >> 31 << 32) if word >= 0 else word for word in words]
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
