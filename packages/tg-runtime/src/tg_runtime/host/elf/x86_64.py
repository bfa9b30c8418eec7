"""Relocations of x86-64. Source: AMD64 psABI, section 4.4."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from .relocation import Machine, Patch, put32, put64

_TYPES: Final = {
    0: ("R_X86_64_NONE", 0), 1: ("R_X86_64_64", 8), 2: ("R_X86_64_PC32", 4), 4: ("R_X86_64_PLT32", 4),
    6: ("R_X86_64_GLOB_DAT", 8), 7: ("R_X86_64_JUMP_SLOT", 8), 8: ("R_X86_64_RELATIVE", 8),
    9: ("R_X86_64_GOTPCREL", 4), 10: ("R_X86_64_32", 4), 11: ("R_X86_64_32S", 4), 24: ("R_X86_64_PC64", 8),
    41: ("R_X86_64_GOTPCRELX", 4), 42: ("R_X86_64_REX_GOTPCRELX", 4),
}  # fmt: skip


def _apply(out: bytearray, p: Patch, _: Mapping[int, int]) -> None:
    match p.type:
        case 1:  # 64
            put64(out, p, p.value)
        case 2:  # PC32
            put32(out, p, p.value - p.place, True)
        case 4:  # PLT32: a stub serves where the function itself is out of reach
            near = p.symbol if abs(p.value - p.place) < 1 << 31 else p.stub
            put32(out, p, near + p.addend - p.place, True)
        case 6 | 7:  # GLOB_DAT, JUMP_SLOT
            put64(out, p, p.symbol)
        case 8:  # RELATIVE
            put64(out, p, p.bias + p.addend)
        case 9 | 41 | 42:  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
            put32(out, p, p.entry + p.addend - p.place, True)
        case 10:  # 32
            put32(out, p, p.value, False)
        case 11:  # 32S
            put32(out, p, p.value, True)
        case 24:  # PC64
            put64(out, p, p.value - p.place)


def _put_stub(out: bytearray, at: int, target: int) -> None:
    struct.pack_into("<HIQ", out, at, 0x25FF, 0, target)  # jmp *0(%rip)


X86_64: Final = Machine(
    "x86-64", 62, _TYPES, _apply, tables=frozenset({9, 41, 42}), stub_bytes=16, put_stub=_put_stub
)  # fmt: skip
