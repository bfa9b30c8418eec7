"""Relocations of AArch64. Source: ELF for the Arm 64-bit architecture (AAELF64), section 5.7."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from .relocation import Machine, Patch, aligned, put32, put64, reach

# loads and stores of 1 << n bytes, with an immediate scaled by that size
_SCALED: Final = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
_TYPES: Final = {
    0: ("R_AARCH64_NONE", 0), 256: ("R_AARCH64_NONE", 0), 257: ("R_AARCH64_ABS64", 8), 258: ("R_AARCH64_ABS32", 4),
    260: ("R_AARCH64_PREL64", 8), 261: ("R_AARCH64_PREL32", 4), 275: ("R_AARCH64_ADR_PREL_PG_HI21", 4),
    276: ("R_AARCH64_ADR_PREL_PG_HI21_NC", 4), 277: ("R_AARCH64_ADD_ABS_LO12_NC", 4),
    278: ("R_AARCH64_LDST8_ABS_LO12_NC", 4), 282: ("R_AARCH64_JUMP26", 4), 283: ("R_AARCH64_CALL26", 4),
    284: ("R_AARCH64_LDST16_ABS_LO12_NC", 4), 285: ("R_AARCH64_LDST32_ABS_LO12_NC", 4),
    286: ("R_AARCH64_LDST64_ABS_LO12_NC", 4), 299: ("R_AARCH64_LDST128_ABS_LO12_NC", 4),
    311: ("R_AARCH64_ADR_GOT_PAGE", 4), 312: ("R_AARCH64_LD64_GOT_LO12_NC", 4),
    1025: ("R_AARCH64_GLOB_DAT", 8), 1026: ("R_AARCH64_JUMP_SLOT", 8), 1027: ("R_AARCH64_RELATIVE", 8),
}  # fmt: skip


def _apply(out: bytearray, p: Patch, _: Mapping[int, int]) -> None:
    value = p.value
    match p.type:
        case 0 | 256:  # NONE
            return
        case 257 | 1025 | 1026:  # ABS64, GLOB_DAT, JUMP_SLOT
            return put64(out, p, value)
        case 1027:  # RELATIVE
            return put64(out, p, p.bias + p.addend)
        case 260:  # PREL64
            return put64(out, p, value - p.place)
        case 258:  # ABS32
            return put32(out, p, value, False)
        case 261:  # PREL32
            return put32(out, p, value - p.place, True)
    word: int = struct.unpack_from("<I", out, p.at)[0]
    match p.type:
        case 282 | 283:  # JUMP26, CALL26
            distance = value - p.place
            if not -(1 << 27) <= distance < 1 << 27:
                distance = p.stub + p.addend - p.place
            reach(distance, 28, 4)
            word = word & 0xFC000000 | distance >> 2 & 0x03FFFFFF
        case 275 | 276 | 311:  # ADR_PREL_PG_HI21 (checked or not), ADR_GOT_PAGE
            target = p.entry + p.addend if p.type == 311 else value
            pages = (target >> 12) - (p.place >> 12)
            if p.type != 276:
                reach(pages, 21)
            word = word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        case 277:  # ADD_ABS_LO12_NC
            word = word & ~(0xFFF << 10) | (value & 0xFFF) << 10
        case 312:  # LD64_GOT_LO12_NC
            aligned(p.entry + p.addend, 8)
            word = word & ~(0xFFF << 10) | ((p.entry + p.addend & 0xFFF) >> 3) << 10
        case _:  # LDST8/16/32/64/128_ABS_LO12_NC
            aligned(value, 1 << _SCALED[p.type])
            word = word & ~(0xFFF << 10) | ((value & 0xFFF) >> _SCALED[p.type]) << 10
    struct.pack_into("<I", out, p.at, word)


def _put_stub(out: bytearray, at: int, target: int) -> None:
    struct.pack_into("<IIQ", out, at, 0x58000050, 0xD61F0200, target)  # ldr x16, .+8; br x16


AARCH64: Final = Machine(
    "AArch64", 183, _TYPES, _apply, tables=frozenset({311, 312}), stub_bytes=16, put_stub=_put_stub
)  # fmt: skip
