"""Relocations of the processors whose objects are loaded: x86-64, AArch64, RISC-V.

Sources: AMD64 psABI, section 4.4; ELF for the Arm 64-bit architecture (AAELF64), section 5.7; RISC-V ELF psABI,
section "Relocations" (objects made without linker relaxation).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import DeviceError

EM_X86_64, EM_AARCH64, EM_RISCV = 62, 183, 243
STUB_BYTES = 24  # of the longest jump to any address

# relocations for the address of a table entry that holds the symbol's address
_TABLE_TYPES = {EM_X86_64: frozenset({9, 41, 42}), EM_AARCH64: frozenset({311, 312}), EM_RISCV: frozenset({20})}


class ELFError(DeviceError):
    """An object file is damaged, or holds something that the loader does not know."""


class Patch(NamedTuple):
    """A relocation with everything that it refers to placed in memory.

    Attributes:
      at: where it is in the image.
      place: the address of that.
      type: the processor's number of it.
      symbol: address of the symbol.
      addend: what is added to it.
      stub: address of a jump to the symbol, or the symbol itself.
      entry: address of the table entry that holds the symbol's address; 0 if there is none.
      name: what to call the symbol in a message.
    """

    at: int
    place: int
    type: int
    symbol: int
    addend: int
    stub: int
    entry: int
    name: str

    @property
    def value(self) -> int:
        """The symbol's address with the addend."""
        return self.symbol + self.addend


def table_types(machine: int) -> frozenset[int]:
    """The types of a machine that want a table entry."""
    return _TABLE_TYPES.get(machine, frozenset())


def put_stub(out: bytearray, at: int, target: int, machine: int) -> None:
    """A jump to any 64-bit address, in ``STUB_BYTES`` bytes."""
    if machine == EM_X86_64:
        struct.pack_into("<HIQ", out, at, 0x25FF, 0, target)  # jmp *0(%rip)
    elif machine == EM_AARCH64:
        struct.pack_into("<IIQ", out, at, 0x58000050, 0xD61F0200, target)  # ldr x16, .+8; br x16
    else:
        # auipc t3, 0; ld t3, 16(t3); jr t3; nop
        struct.pack_into("<IIIIQ", out, at, 0xE17, 0x010E3E03, 0x000E0067, 0x13, target)


def distances(patches: Iterable[Patch], machine: int) -> dict[int, int]:
    """How far it is to what the upper halves of RISC-V's pairs name, by the halves' addresses: the lower name those."""
    if machine != EM_RISCV:
        return {}
    return {p.place: (p.entry + p.addend if p.type == 20 else p.value) - p.place for p in patches if p.type in (20, 23)}


def apply(out: bytearray, patch: Patch, machine: int, known: Mapping[int, int]) -> None:
    """Patches the image.

    Args:
      out: the image.
      patch: where and with what.
      machine: the processor.
      known: what :func:`distances` found.

    Raises:
      ELFError: if the type is unknown, or cannot reach.
    """
    if machine == EM_X86_64:
        _apply_x86_64(out, patch)
    elif machine == EM_AARCH64:
        _apply_aarch64(out, patch)
    else:
        _apply_riscv(out, patch, known)


def _put32(out: bytearray, p: Patch, value: int, signed: bool) -> None:
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    if not low <= value <= high:
        raise ELFError(f"the relocation of {p.name} cannot reach {value:#x} with 32 bits")
    struct.pack_into("<I", out, p.at, value & 0xFFFFFFFF)


def _put64(out: bytearray, p: Patch, value: int) -> None:
    if p.at + 8 > len(out):
        raise ELFError(f"a relocation of 8 bytes at {p.at} points outside")
    struct.pack_into("<Q", out, p.at, value & 0xFFFFFFFFFFFFFFFF)


def _reach(distance: int, bits: int, name: str) -> None:
    if not -(1 << (bits - 1)) <= distance < 1 << (bits - 1):
        raise ELFError(f"the relocation of {name} cannot reach {distance:#x} with {bits} bits")


def _apply_x86_64(out: bytearray, p: Patch) -> None:
    match p.type:
        case 0:  # NONE
            pass
        case 1:  # 64
            _put64(out, p, p.value)
        case 2:  # PC32
            _put32(out, p, p.value - p.place, True)
        case 4:  # PLT32: a stub serves where the function itself is out of reach
            near = p.symbol if abs(p.value - p.place) < 1 << 31 else p.stub
            _put32(out, p, near + p.addend - p.place, True)
        case 9 | 41 | 42:  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
            _put32(out, p, p.entry + p.addend - p.place, True)
        case 10:  # 32
            _put32(out, p, p.value, False)
        case 11:  # 32S
            _put32(out, p, p.value, True)
        case 24:  # PC64
            _put64(out, p, p.value - p.place)
        case _:
            raise ELFError(f"x86-64 relocation {p.type} of {p.name} is not known")


# AArch64 load and store of 1 << n bytes with an immediate scaled by that size
_SCALED = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}


def _apply_aarch64(out: bytearray, p: Patch) -> None:
    value = p.value
    word: int = struct.unpack_from("<I", out, p.at)[0]
    match p.type:
        case 0 | 256:  # NONE
            return
        case 257:  # ABS64
            _put64(out, p, value)
            return
        case 260:  # PREL64
            _put64(out, p, value - p.place)
            return
        case 258:  # ABS32
            _put32(out, p, value, False)
            return
        case 261:  # PREL32
            _put32(out, p, value - p.place, True)
            return
        case 282 | 283:  # JUMP26, CALL26
            distance = value - p.place
            if not -(1 << 27) <= distance < 1 << 27:
                distance = p.stub + p.addend - p.place
            _reach(distance, 28, p.name)
            word = word & 0xFC000000 | distance >> 2 & 0x03FFFFFF
        case 275 | 276 | 311:  # ADR_PREL_PG_HI21 (checked or not), ADR_GOT_PAGE
            target = p.entry + p.addend if p.type == 311 else value
            pages = (target >> 12) - (p.place >> 12)
            _reach(pages, 21, p.name)
            word = word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        case 277:  # ADD_ABS_LO12_NC
            word = word & ~(0xFFF << 10) | (value & 0xFFF) << 10
        case 312:  # LD64_GOT_LO12_NC
            word = word & ~(0xFFF << 10) | ((p.entry + p.addend & 0xFFF) >> 3) << 10
        case 278 | 284 | 285 | 286 | 299:  # LDST8/16/32/64/128_ABS_LO12_NC
            word = word & ~(0xFFF << 10) | ((value & 0xFFF) >> _SCALED[p.type]) << 10
        case _:
            raise ELFError(f"AArch64 relocation {p.type} of {p.name} is not known")
    struct.pack_into("<I", out, p.at, word)


# differences of labels: how many bits of the place are replaced, and by what sign the value counts (0: it is set)
_DIFFERENCES = {
    33: (8, 1), 34: (16, 1), 35: (32, 1), 36: (64, 1), 37: (8, -1), 38: (16, -1), 39: (32, -1), 40: (64, -1),
    52: (6, -1), 53: (6, 0), 54: (8, 0), 55: (16, 0), 56: (32, 0),
}  # fmt: skip


def _apply_riscv(out: bytearray, p: Patch, known: Mapping[int, int]) -> None:
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
        case 0 | 51:  # NONE, RELAX
            pass
        case 1:  # 32
            _put32(out, p, p.value, False)
        case 2:  # 64
            _put64(out, p, p.value)
        case 57:  # 32_PCREL
            _put32(out, p, p.value - p.place, True)
        case 16:  # BRANCH
            d = p.value - p.place
            _reach(d, 13, p.name)
            bits = (d >> 12 & 1) << 31 | (d >> 5 & 63) << 25 | (d >> 1 & 15) << 8 | (d >> 11 & 1) << 7
            _or32(out, p.at, 0x1FFF07F, bits)
        case 17:  # JAL
            d = p.value - p.place
            _reach(d, 21, p.name)
            bits = (d >> 20 & 1) << 31 | (d >> 1 & 0x3FF) << 21 | (d >> 11 & 1) << 20 | (d >> 12 & 0xFF) << 12
            _or32(out, p.at, 0xFFF, bits)
        case 44:  # RVC_BRANCH
            d = p.value - p.place
            _reach(d, 9, p.name)
            bits = (d >> 8 & 1) << 12 | (d >> 3 & 3) << 10 | (d >> 6 & 3) << 5 | (d >> 1 & 3) << 3 | (d >> 5 & 1) << 2
            _or16(out, p.at, 0xE383, bits)
        case 45:  # RVC_JUMP
            d = p.value - p.place
            _reach(d, 12, p.name)
            bits = (d >> 11 & 1) << 12 | (d >> 4 & 1) << 11 | (d >> 8 & 3) << 9 | (d >> 10 & 1) << 8
            bits |= (d >> 6 & 1) << 7 | (d >> 7 & 1) << 6 | (d >> 1 & 7) << 3 | (d >> 5 & 1) << 2
            _or16(out, p.at, 0xE003, bits)
        case 18 | 19:  # CALL, CALL_PLT: auipc and jalr
            d = p.value - p.place
            if not -(1 << 31) <= d + 0x800 < 1 << 31:
                d = p.stub + p.addend - p.place
            _upper(out, p, p.at, d)
            _or32(out, p.at + 4, 0xFFFFF, (d & 0xFFF) << 20)
        case 20:  # GOT_HI20
            _upper(out, p, p.at, p.entry + p.addend - p.place)
        case 23:  # PCREL_HI20
            _upper(out, p, p.at, p.value - p.place)
        case 26:  # HI20
            _upper(out, p, p.at, p.value)
        case 24 | 27:  # PCREL_LO12_I, LO12_I
            _or32(out, p.at, 0xFFFFF, (_low(p, known) & 0xFFF) << 20)
        case 25 | 28:  # PCREL_LO12_S, LO12_S
            low = _low(p, known)
            _or32(out, p.at, 0x1FFF07F, (low >> 5 & 0x7F) << 25 | (low & 31) << 7)
        case _:
            raise ELFError(f"RISC-V relocation {p.type} of {p.name} is not known")


def _low(p: Patch, known: Mapping[int, int]) -> int:
    """What the lower half of a pair adds to the upper one."""
    if p.type in (27, 28):
        return p.value
    if p.symbol not in known:
        raise ELFError(f"RISC-V relocation {p.type} names {p.name}, where no upper half is")
    return known[p.symbol]


def _upper(out: bytearray, p: Patch, at: int, value: int) -> None:
    """The upper 20 bits, rounded so that a signed lower half completes them."""
    _reach(value + 0x800, 32, p.name)
    _or32(out, at, 0xFFF, (value + 0x800 & 0xFFFFFFFF) >> 12 << 12)


def _or32(out: bytearray, at: int, keep: int, bits: int) -> None:
    word: int = struct.unpack_from("<I", out, at)[0]
    struct.pack_into("<I", out, at, word & keep | bits)


def _or16(out: bytearray, at: int, keep: int, bits: int) -> None:
    word: int = struct.unpack_from("<H", out, at)[0]
    struct.pack_into("<H", out, at, word & keep | bits)
