"""How the toy's instructions lie in memory.

A word: the handler's number (12 bits, in the order of their names), how many operands (4 bits), whether a 64-bit
immediate follows (1 bit), seven zeros, ``0xA5``. Then operands of 16 bits, filled up to whole words, and the
immediate. An operand: its kind (upper 4 bits) and number.
"""

from __future__ import annotations

import struct

from ..engine import LITERAL, Instruction, Layout, Undecodable
from ..engine.code import Decoder
from ..engine.state import EXEC
from .instructions import TOY

MAGIC = 0xA5
NAMES = sorted(TOY.handlers)
NUMBERS = {name: number for number, name in enumerate(NAMES)}
KINDS = ("v", "s", "m", "scc", "exec", "literal")


def encode(name: str, operands: list[tuple[str, int]], immediate: int | None) -> bytes:
    """An instruction's bytes; operands are a kind and a number."""
    word = NUMBERS[name] | len(operands) << 12 | (immediate is not None) << 16 | MAGIC << 24
    slots = [KINDS.index(kind) << 12 | number for kind, number in operands]
    slots += [0] * (len(slots) & 1)
    out = struct.pack(f"<I{len(slots)}H", word, *slots)
    return out if immediate is None else out + (immediate % (1 << 64)).to_bytes(8, "little")


def decoder(lanes: int) -> Decoder:
    """The decoder for waves of so many lanes."""
    layout = TOY.layout(lanes)

    def decode(pc: int, data: bytes) -> Instruction:
        word = int.from_bytes(data[:4], "little")
        number, count, with_immediate = word & 0xFFF, word >> 12 & 15, word >> 16 & 1
        if word >> 24 != MAGIC or word >> 17 & 0x7F or number >= len(NAMES):
            raise Undecodable(f"{word:#010x} is no instruction")
        nbytes = 4 + 4 * ((count + 1) // 2) + 8 * with_immediate
        if nbytes > len(data):
            raise Undecodable(f"an instruction of {nbytes} bytes reaches out of the mapping")
        immediate = int.from_bytes(data[nbytes - 8 : nbytes], "little") if with_immediate else 0
        operands, words = [], []
        for slot in struct.unpack_from(f"<{count}H", data, 4):
            kind, index = slot >> 12, slot & 0xFFF
            if kind >= len(KINDS):
                raise Undecodable(f"operand {slot:#06x} is none")
            try:
                operands.append(_place(layout, KINDS[kind], index))
            except IndexError as error:
                raise Undecodable(str(error)) from None
            words.append(KINDS[kind] if kind > 2 else f"{KINDS[kind]}{index}")
        text = f"{NAMES[number]} {', '.join(words)}{f' #{immediate:#x}' if with_immediate else ''}"
        return Instruction(NAMES[number], tuple(operands), nbytes, immediate, text.replace("  ", " ").strip())

    return decode


def _place(layout: Layout, kind: str, index: int) -> int:
    if kind == "v":
        return layout.vector(index)
    if kind == "literal":
        return LITERAL
    if kind == "exec":
        return EXEC
    return layout.scalar("m", 2 * index) if kind == "m" else layout.scalar(kind, index)
