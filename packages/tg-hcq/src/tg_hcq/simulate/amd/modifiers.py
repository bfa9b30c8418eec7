"""Kinds of operands of lanes, and the words of a record that say how an instruction modifies them.

Sources: AMD, "RDNA3 Instruction Set Architecture", 7.2 "VALU Operands" (neg, abs, OMOD, clamp, OPSEL), 7.7 "DPP";
"AMD Instinct MI300 Instruction Set Architecture", 12.10 "SDWA and DPP".
"""

from __future__ import annotations

from enum import IntEnum

from ..engine import F16, F32, F64, I1, I16, I32, I64, Type


class Kind(IntEnum):
    """What an operand of lanes is."""

    B32 = 0
    B64 = 1
    F32 = 2
    F64 = 3
    B16 = 4
    F16 = 5
    MASK = 6
    PACKED = 7
    """Two integers of 16 bits."""
    PACKED_F16 = 8
    PACKED_F32 = 9
    """Two floats in two registers."""
    MIXED = 10
    """A float of 32 bits, or one of 16 that the instruction selects and that is converted."""
    BF16 = 11

    @property
    def type(self) -> Type:
        """As semantics see it."""
        return _TYPES[self]

    @property
    def is_half(self) -> bool:
        """Whether it is one half of a register."""
        return self in (Kind.B16, Kind.F16, Kind.BF16)

    @property
    def is_packed(self) -> bool:
        """Whether there are two of it in a register or pair of registers."""
        return self in (Kind.PACKED, Kind.PACKED_F16, Kind.PACKED_F32)

    @property
    def is_float(self) -> bool:
        """Whether its sign can be changed."""
        return self in (Kind.F16, Kind.F32, Kind.F64, Kind.BF16, Kind.MIXED, Kind.PACKED_F16, Kind.PACKED_F32)


_TYPES = {
    Kind.B32: I32, Kind.B64: I64, Kind.F32: F32, Kind.F64: F64, Kind.B16: I16, Kind.F16: F16, Kind.MASK: I1,
    Kind.PACKED: I32, Kind.PACKED_F16: I32, Kind.PACKED_F32: I64, Kind.MIXED: F32, Kind.BF16: I16,
}  # fmt: skip

# operands of a record that hold modifiers; all are zero in an instruction without any
SOURCES, RESULT, PERMUTATION, PERMUTED = 12, 13, 14, 15
MODIFIED = 1 << 31  # in SOURCES: there is a modifier in one of the words

# in SOURCES, a byte for each source; of packed ones NEGATE and ABSOLUTE negate the low and the high half
NEGATE, ABSOLUTE, SELECT, SELECT_OTHER = 1, 2, 4, 8
"""``SELECT``: the high half (of packed ones: as the low one); ``SELECT_OTHER``: of packed ones the low half as the high
one, of mixed ones a float of 16 bits."""
PART, PART_SIGNED = 4, 1 << 7  # position of SDWA's selection plus one (byte 0 to 3, word 0 and 1), 0 for all

# in RESULT
OMOD, CLAMP, HIGH, INTO, UNUSED = 0, 1 << 2, 1 << 3, 4, 7
"""Positions of OMOD (2 bits), of the part plus one that is written (3 bits) and of what becomes of the rest (2)."""

# in PERMUTATION, beside dpp_ctrl or the eight selections in the low bits
BOUND_CONTROL, FETCH_INACTIVE, OF_EIGHT, OF_ROW = 1 << 26, 1 << 27, 1 << 28, 1 << 29
# in PERMUTED: the bank mask, the row mask in the four bits above it
