"""The text of a literal, the 32-bit constant that follows an instruction."""

from __future__ import annotations

import struct

FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
SINGLES = {struct.unpack("<I", struct.pack("<f", x))[0]: str(x) for x in FLOATS} | {0x3E22F983: "0.15915494"}
HALVES = {struct.unpack("<H", struct.pack("<e", x))[0]: str(x) for x in FLOATS} | {0x3118: "0.15915494"}
BRAINS = {bits >> 16: text for bits, text in SINGLES.items()}
DOUBLES = {struct.unpack("<Q", struct.pack("<d", x))[0] >> 32: str(x) for x in FLOATS}


def literal_text(value: int, of_type: str, generation: int) -> str:
    """A literal as LLVM prints it: ``lit(...)`` where the plain number would mean an inline constant.

    Args:
      value: its 32 bits.
      of_type: the operand's, as in the tables.
      generation: of the processor.

    >>> literal_text(0x12345678, "REG_IMM_INT32", 11), literal_text(64, "REG_IMM_FP32", 11)
    ('0x12345678', 'lit(0x40)')
    """
    kind = of_type.removeprefix("REG_IMM_").removeprefix("REG_INLINE_C_")
    word, half = value - (value >> 31 << 32), (value & 0xFFFF) - ((value & 0x8000) << 1)
    if kind == "FP64":
        return "0" if value == 0 else DOUBLES.get(value, f"{value:#x}")
    if kind == "INT64":
        return _text(value, value <= 64)
    if kind in ("FP16", "BF16"):
        inline = -16 <= half <= 64 or half & 0xFFFF in (HALVES if kind == "FP16" else BRAINS)
        return _text(value, inline, None if kind == "BF16" else value & 0xFFFF)
    small = -16 <= word <= 64
    if kind == "INT16":
        return _text(value, small or value in SINGLES, value & 0xFFFF)
    if kind == "V2FP16_SPLAT" and generation >= 11:
        low, high = value & 0xFFFF, value >> 16
        return _text(value, small or (low == high and (low <= 64 or low in HALVES)))
    inline_values = {"V2FP16": HALVES, "V2FP16_SPLAT": HALVES, "V2BF16": BRAINS}.get(kind, SINGLES)
    return _text(value, small or value in inline_values)


def immediate_text(value: int) -> str:
    """An immediate of an instruction without a notation of its own.

    >>> immediate_text(64), immediate_text(65)
    ('64', '0x41')
    """
    word = value - (value >> 31 << 32)
    return str(word) if -16 <= word <= 64 else SINGLES.get(value, f"{value:#x}")


def _text(value: int, inline: bool, shown: int | None = None) -> str:
    return f"lit({value:#x})" if inline else f"{value if shown is None else shown:#x}"
