"""A loader of ELF64 relocatable objects: sections laid out, symbols resolved, relocations applied. x86-64 and AArch64.

Sources: System V ABI, chapter 4 (object files); AMD64 psABI, section 4.4 (relocations); ELF for the Arm 64-bit
architecture (AAELF64), section 5.7 (relocations).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from .errors import DeviceError

EM_X86_64, EM_AARCH64 = 62, 183
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL = 2, 4, 8, 9
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_ABS, _SHN_COMMON = 0xFFF1, 0xFFF2
PAGE = 4096


class ELFError(DeviceError):
    """An object file is damaged, or holds something that this loader does not know."""


class Section(NamedTuple):
    """A section header, with its name looked up."""

    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int


class Symbol(NamedTuple):
    """A symbol: ``section`` is an index, 0 if undefined; ``value`` an offset in it."""

    name: str
    section: int
    value: int
    size: int
    weak: bool


class Relocation(NamedTuple):
    """A place to patch: ``offset`` in section ``section``."""

    section: int
    offset: int
    type: int
    symbol: int
    addend: int


class ELFObject:
    """A parsed relocatable object.

    Raises:
      ELFError: the bytes are no ELF64 little-endian relocatable object, or point outside themselves.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
            raise ELFError(f"not an ELF64 little-endian object: {len(data)} bytes that begin with {data[:8].hex()}")
        kind, self.machine = struct.unpack_from("<HH", data, 16)
        if kind != 1:
            raise ELFError(f"an ELF file of type {kind}; a relocatable object (1) is wanted")
        (table,) = struct.unpack_from("<Q", data, 40)
        entsize, count, names = struct.unpack_from("<HHH", data, 58)
        if entsize != 64 or table + 64 * count > len(data) or names >= count:
            raise ELFError(f"the section table ({count} x {entsize} bytes at {table}) lies outside the file")
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
        for row in raw:
            if row[1] != _SHT_NOBITS and row[4] + row[5] > len(data):
                raise ELFError(f"a section of {row[5]} bytes at {row[4]} lies outside the file of {len(data)} bytes")
        base = raw[names][4]
        self.sections = [
            Section(self._text(base + n), t, flags, offset, size, link, info, align or 1, entry)
            for n, t, flags, _, offset, size, link, info, align, entry in raw
        ]
        self.symbols: list[Symbol] = []
        self.relocations: list[Relocation] = []
        for section in self.sections:
            if section.type == _SHT_SYMTAB:
                self._read_symbols(section)
        for section in self.sections:
            if section.type == _SHT_RELA:
                self._read_relocations(section)
            elif section.type == _SHT_REL and section.size:
                raise ELFError(f"relocations without addends ({section.name}) are not used on these machines")

    def _text(self, at: int) -> str:
        end = self.data.find(b"\0", at)
        if end < 0:
            raise ELFError(f"a name at {at} does not end")
        return self.data[at:end].decode("utf-8", "replace")

    def _section(self, index: int) -> Section:
        if index >= len(self.sections):
            raise ELFError(f"section {index} of {len(self.sections)}")
        return self.sections[index]

    def _read_symbols(self, section: Section) -> None:
        names = self._section(section.link).offset
        for at in range(section.offset, section.offset + section.size - 23, 24):
            name, info, _, home, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            if home < 0xFF00 and home >= len(self.sections):
                raise ELFError(f"a symbol in section {home} of {len(self.sections)}")
            self.symbols.append(Symbol(self._text(names + name), home, value, size, info >> 4 == 2))

    def _read_relocations(self, section: Section) -> None:
        target = self._section(section.info)
        if not target.flags & _SHF_ALLOC:
            return
        for at in range(section.offset, section.offset + section.size - 23, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.data, at)
            if info >> 32 >= len(self.symbols) or offset + 4 > target.size:
                raise ELFError(f"a relocation at {offset} of {target.name} points outside")
            self.relocations.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend))


class Layout:
    """Where the sections of an object lie relative to the start of one block of memory.

    First code and constants with the call stubs and the address table, then, from a page on, what may be written.

    Attributes:
      obj: the object.
      nbytes: bytes of memory wanted.
      writable: where the writable part begins; a multiple of the page.
    """

    def __init__(self, obj: ELFObject) -> None:
        self.obj = obj
        self.places: dict[int, int] = {}
        self.commons: dict[int, int] = {}
        at = 0
        for writable in (False, True):
            if writable:
                # every external symbol may need a stub and a table entry
                self.stubs = at = _up(at, 16)
                self.externals = sorted({r.symbol for r in obj.relocations if obj.symbols[r.symbol].section == 0})
                self.table = at = at + 16 * len(self.externals)
                self.entries = sorted({r.symbol for r in obj.relocations if r.type in _TABLE_TYPES[obj.machine]})
                at += 8 * len(self.entries)
                self.writable = at = _up(at, PAGE)
            for index, section in enumerate(obj.sections):
                if section.flags & _SHF_ALLOC and bool(section.flags & _SHF_WRITE) is writable:
                    if section.align > PAGE or section.align & (section.align - 1):
                        raise ELFError(f"section {section.name} wants alignment {section.align}")
                    self.places[index] = at = _up(at, section.align)
                    at += section.size
        for number, symbol in enumerate(obj.symbols):
            if symbol.section == _SHN_COMMON:
                self.commons[number] = at = _up(at, max(symbol.value, 1))
                at += symbol.size
        self.nbytes = _up(max(at, 1), PAGE)

    def image(self, base: int, resolve: Callable[[str], int | None]) -> bytes:
        """The bytes for memory at address ``base``.

        Args:
          base: address of the block, a multiple of the page.
          resolve: the address of an external symbol, None if there is none.

        Raises:
          ELFError: a symbol is undefined, or a relocation is unknown or cannot reach.
        """
        obj = self.obj
        out = bytearray(self.nbytes)
        for index, place in self.places.items():
            section = obj.sections[index]
            if section.type != _SHT_NOBITS:
                out[place : place + section.size] = obj.data[section.offset : section.offset + section.size]
        addresses: dict[int, int] = {}

        def address(number: int) -> int:
            if number not in addresses:
                addresses[number] = self._address(number, base, resolve)
            return addresses[number]

        for slot, number in enumerate(self.externals):
            _write_stub(out, self.stubs + 16 * slot, address(number), obj.machine)
        for slot, number in enumerate(self.entries):
            struct.pack_into("<Q", out, self.table + 8 * slot, address(number))
        stubs = {number: base + self.stubs + 16 * slot for slot, number in enumerate(self.externals)}
        table = {number: base + self.table + 8 * slot for slot, number in enumerate(self.entries)}
        apply = _apply_x86_64 if obj.machine == EM_X86_64 else _apply_aarch64
        for r in obj.relocations:
            if r.section in self.places:
                at = self.places[r.section] + r.offset
                value = address(r.symbol)
                apply(out, at, base + at, r, value, stubs.get(r.symbol, value), table.get(r.symbol, 0),
                      obj.symbols[r.symbol].name)  # fmt: skip
        return bytes(out)

    def _address(self, number: int, base: int, resolve: Callable[[str], int | None]) -> int:
        symbol = self.obj.symbols[number]
        if symbol.section == _SHN_ABS:
            return symbol.value
        if symbol.section == _SHN_COMMON:
            return base + self.commons[number]
        if symbol.section:
            if symbol.section not in self.places:
                raise ELFError(f"symbol {symbol.name} lies in a section that is not loaded")
            return base + self.places[symbol.section] + symbol.value
        if not symbol.name:
            return 0
        found = resolve(symbol.name)
        if found is None and not symbol.weak:
            raise ELFError(f"undefined symbol {symbol.name}")
        return found or 0

    def functions(self, base: int) -> dict[str, int]:
        """The addresses of the named symbols that the object defines."""
        return {
            s.name: base + self.places[s.section] + s.value
            for s in self.obj.symbols
            if s.name and s.section in self.places
        }


def _up(n: int, align: int) -> int:
    return (n + align - 1) // align * align


# relocations that want the address of a table entry which holds the symbol's address
_TABLE_TYPES: dict[int, frozenset[int]] = {EM_X86_64: frozenset({9, 41, 42}), EM_AARCH64: frozenset({311, 312})}


def _write_stub(out: bytearray, at: int, target: int, machine: int) -> None:
    """A jump to any 64-bit address, in 16 bytes."""
    if machine == EM_X86_64:
        struct.pack_into("<HIQ", out, at, 0x25FF, 0, target)  # jmp *0(%rip)
    else:
        struct.pack_into("<IIQ", out, at, 0x58000050, 0xD61F0200, target)  # ldr x16, .+8; br x16


def _put32(out: bytearray, at: int, value: int, signed: bool, name: str) -> None:
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    if not low <= value <= high:
        raise ELFError(f"the relocation of {name or 'a section'} cannot reach {value:#x} with 32 bits")
    struct.pack_into("<I", out, at, value & 0xFFFFFFFF)


def _apply_x86_64(
    out: bytearray, at: int, place: int, r: Relocation, symbol: int, stub: int, entry: int, name: str
) -> None:
    match r.type:
        case 0:  # NONE
            pass
        case 1:  # 64
            _put64(out, at, symbol + r.addend)
        case 2:  # PC32
            _put32(out, at, symbol + r.addend - place, True, name)
        case 4:  # PLT32: a stub serves where the function itself is out of reach
            near = symbol if abs(symbol + r.addend - place) < 1 << 31 else stub
            _put32(out, at, near + r.addend - place, True, name)
        case 9 | 41 | 42:  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
            _put32(out, at, entry + r.addend - place, True, name)
        case 10:  # 32
            _put32(out, at, symbol + r.addend, False, name)
        case 11:  # 32S
            _put32(out, at, symbol + r.addend, True, name)
        case 24:  # PC64
            _put64(out, at, symbol + r.addend - place)
        case _:
            raise ELFError(f"x86-64 relocation {r.type} of {name or 'a section'} is not known")


def _put64(out: bytearray, at: int, value: int) -> None:
    if at + 8 > len(out):
        raise ELFError(f"a relocation of 8 bytes at {at} points outside")
    struct.pack_into("<Q", out, at, value & 0xFFFFFFFFFFFFFFFF)


# AArch64 load and store of 1 << n bytes with an immediate scaled by that size
_SCALED = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}


def _apply_aarch64(
    out: bytearray, at: int, place: int, r: Relocation, symbol: int, stub: int, entry: int, name: str
) -> None:
    value = symbol + r.addend
    word: int = struct.unpack_from("<I", out, at)[0]
    match r.type:
        case 0 | 256:  # NONE
            return
        case 257:  # ABS64
            _put64(out, at, value)
            return
        case 260:  # PREL64
            _put64(out, at, value - place)
            return
        case 258:  # ABS32
            _put32(out, at, value, False, name)
            return
        case 261:  # PREL32
            _put32(out, at, value - place, True, name)
            return
        case 282 | 283:  # JUMP26, CALL26
            distance = value - place
            if not -(1 << 27) <= distance < 1 << 27:
                distance = stub + r.addend - place
            _reach(distance, 28, name)
            word = word & 0xFC000000 | distance >> 2 & 0x03FFFFFF
        case 275 | 276 | 311:  # ADR_PREL_PG_HI21 (checked or not), ADR_GOT_PAGE
            target = entry + r.addend if r.type == 311 else value
            pages = (target >> 12) - (place >> 12)
            _reach(pages, 21, name)
            word = word & 0x9F00001F | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        case 277:  # ADD_ABS_LO12_NC
            word = word & ~(0xFFF << 10) | (value & 0xFFF) << 10
        case 312:  # LD64_GOT_LO12_NC
            word = word & ~(0xFFF << 10) | ((entry + r.addend & 0xFFF) >> 3) << 10
        case 278 | 284 | 285 | 286 | 299:  # LDST8/16/32/64/128_ABS_LO12_NC
            word = word & ~(0xFFF << 10) | ((value & 0xFFF) >> _SCALED[r.type]) << 10
        case _:
            raise ELFError(f"AArch64 relocation {r.type} of {name or 'a section'} is not known")
    struct.pack_into("<I", out, at, word)


def _reach(distance: int, bits: int, name: str) -> None:
    if not -(1 << (bits - 1)) <= distance < 1 << (bits - 1):
        raise ELFError(f"the relocation of {name or 'a section'} cannot reach {distance:#x} with {bits} bits")


def parse(data: bytes) -> Layout:
    """An object, laid out for loading.

    Raises:
      ELFError: it is damaged, or not for a machine that this loader knows.
    """
    try:
        obj = ELFObject(data)
        if obj.machine not in _TABLE_TYPES:
            raise ELFError(f"an object for machine {obj.machine}; x86-64 (62) and AArch64 (183) can be loaded")
        return Layout(obj)
    except struct.error as error:
        raise ELFError(f"the object is truncated: {error}") from None
