"""Relocations of RISC-V, in objects made without linker relaxation. Source: RISC-V ELF psABI, section "Relocations"."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from .relocation import Machine, Patch, Refusal, put32, put64, reach

_TYPES: Final = {
    0: ("R_RISCV_NONE", 0), 1: ("R_RISCV_32", 4), 2: ("R_RISCV_64", 8), 3: ("R_RISCV_RELATIVE", 8),
    5: ("R_RISCV_JUMP_SLOT", 8), 16: ("R_RISCV_BRANCH", 4), 17: ("R_RISCV_JAL", 4), 18: ("R_RISCV_CALL", 8),
    19: ("R_RISCV_CALL_PLT", 8), 20: ("R_RISCV_GOT_HI20", 4), 23: ("R_RISCV_PCREL_HI20", 4),
    24: ("R_RISCV_PCREL_LO12_I", 4), 25: ("R_RISCV_PCREL_LO12_S", 4), 26: ("R_RISCV_HI20", 4),
    27: ("R_RISCV_LO12_I", 4), 28: ("R_RISCV_LO12_S", 4), 33: ("R_RISCV_ADD8", 1), 34: ("R_RISCV_ADD16", 2),
    35: ("R_RISCV_ADD32", 4), 36: ("R_RISCV_ADD64", 8), 37: ("R_RISCV_SUB8", 1), 38: ("R_RISCV_SUB16", 2),
    39: ("R_RISCV_SUB32", 4), 40: ("R_RISCV_SUB64", 8), 44: ("R_RISCV_RVC_BRANCH", 2), 45: ("R_RISCV_RVC_JUMP", 2),
    51: ("R_RISCV_RELAX", 0), 52: ("R_RISCV_SUB6", 1), 53: ("R_RISCV_SET6", 1), 54: ("R_RISCV_SET8", 1),
    55: ("R_RISCV_SET16", 2), 56: ("R_RISCV_SET32", 4), 57: ("R_RISCV_32_PCREL", 4),
}  # fmt: skip
# differences of labels: how many bits of the place are replaced, and by what sign the value counts (0: it is set)
_DIFFERENCES = {
    33: (8, 1), 34: (16, 1), 35: (32, 1), 36: (64, 1), 37: (8, -1), 38: (16, -1), 39: (32, -1), 40: (64, -1),
    52: (6, -1), 53: (6, 0), 54: (8, 0), 55: (16, 0), 56: (32, 0),
}  # fmt: skip


def _apply(out: bytearray, p: Patch, known: Mapping[int, int]) -> None:
    if p.type in _DIFFERENCES:
        bits, sign = _DIFFERENCES[p.type]
        size = (bits + 7) // 8
        old = int.from_bytes(out[p.at : p.at + size], "little")
        mask = (1 << bits) - 1
        new = p.value if sign == 0 else (old & mask) + sign * p.value
        new = old & ~mask | new & mask
        out[p.at : p.at + size] = new.to_bytes(size, "little")
        return
    match p.type:
        case 1:  # 32
            put32(out, p, p.value, False)
        case 2 | 5:  # 64, JUMP_SLOT
            put64(out, p, p.value)
        case 3:  # RELATIVE
            put64(out, p, p.bias + p.addend)
        case 57:  # 32_PCREL
            put32(out, p, p.value - p.place, True)
        case 16:  # BRANCH
            d = p.value - p.place
            reach(d, 13, 2)
            bits = (d >> 12 & 1) << 31 | (d >> 5 & 63) << 25 | (d >> 1 & 15) << 8 | (d >> 11 & 1) << 7
            _or32(out, p.at, 0x1FFF07F, bits)
        case 17:  # JAL
            d = p.value - p.place
            reach(d, 21, 2)
            bits = (d >> 20 & 1) << 31 | (d >> 1 & 0x3FF) << 21 | (d >> 11 & 1) << 20 | (d >> 12 & 0xFF) << 12
            _or32(out, p.at, 0xFFF, bits)
        case 44:  # RVC_BRANCH
            d = p.value - p.place
            reach(d, 9, 2)
            bits = (d >> 8 & 1) << 12 | (d >> 3 & 3) << 10 | (d >> 6 & 3) << 5 | (d >> 1 & 3) << 3 | (d >> 5 & 1) << 2
            _or16(out, p.at, 0xE383, bits)
        case 45:  # RVC_JUMP
            d = p.value - p.place
            reach(d, 12, 2)
            bits = (d >> 11 & 1) << 12 | (d >> 4 & 1) << 11 | (d >> 8 & 3) << 9 | (d >> 10 & 1) << 8
            bits |= (d >> 6 & 1) << 7 | (d >> 7 & 1) << 6 | (d >> 1 & 7) << 3 | (d >> 5 & 1) << 2
            _or16(out, p.at, 0xE003, bits)
        case 18 | 19:  # CALL, CALL_PLT: auipc and jalr
            d = p.value - p.place
            if not -(1 << 31) <= d + 0x800 < 1 << 31:
                d = p.stub + p.addend - p.place
            _upper(out, p.at, d)
            _or32(out, p.at + 4, 0xFFFFF, (d & 0xFFF) << 20)
        case 20:  # GOT_HI20
            _upper(out, p.at, p.entry + p.addend - p.place)
        case 23:  # PCREL_HI20
            _upper(out, p.at, p.value - p.place)
        case 26:  # HI20
            _upper(out, p.at, p.value)
        case 24 | 27:  # PCREL_LO12_I, LO12_I
            _or32(out, p.at, 0xFFFFF, (_low(p, known) & 0xFFF) << 20)
        case 25 | 28:  # PCREL_LO12_S, LO12_S
            low = _low(p, known)
            _or32(out, p.at, 0x1FFF07F, (low >> 5 & 0x7F) << 25 | (low & 31) << 7)


def _low(p: Patch, known: Mapping[int, int]) -> int:
    """What the lower half of a pair adds to the upper one."""
    if p.type in (27, 28):
        return p.value
    if p.symbol not in known:
        raise Refusal("there is no upper half at the symbol")
    return known[p.symbol]


def _upper(out: bytearray, at: int, value: int) -> None:
    """The upper 20 bits, rounded so that a signed lower half completes them."""
    reach(value + 0x800, 32)
    _or32(out, at, 0xFFF, (value + 0x800 & 0xFFFFFFFF) >> 12 << 12)


def _or32(out: bytearray, at: int, keep: int, bits: int) -> None:
    word: int = struct.unpack_from("<I", out, at)[0]
    struct.pack_into("<I", out, at, word & keep | bits)


def _or16(out: bytearray, at: int, keep: int, bits: int) -> None:
    word: int = struct.unpack_from("<H", out, at)[0]
    struct.pack_into("<H", out, at, word & keep | bits)


def _pairs(patches: Sequence[Patch]) -> dict[int, int]:
    """How far it is to what the upper halves name, by the halves' addresses: the lower halves name those."""
    return {p.place: (p.entry + p.addend if p.type == 20 else p.value) - p.place for p in patches if p.type in (20, 23)}


def _put_stub(out: bytearray, at: int, target: int) -> None:
    # auipc t3, 0; ld t3, 16(t3); jr t3; nop
    struct.pack_into("<IIIIQ", out, at, 0xE17, 0x010E3E03, 0x000E0067, 0x13, target)


RISCV: Final = Machine(
    "RISC-V", 243, _TYPES, _apply, tables=frozenset({20}), stub_bytes=24, put_stub=_put_stub, pairs=_pairs
)  # fmt: skip
