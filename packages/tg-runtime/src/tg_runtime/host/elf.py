"""A loader of ELF64 relocatable objects: sections laid out, symbols resolved, relocations applied.

Source: System V ABI, chapter 4 (object files). What is particular to a processor is in
:mod:`tg_runtime.host.relocation`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from .relocation import (
    EM_AARCH64,
    EM_RISCV,
    EM_X86_64,
    STUB_BYTES,
    ELFError,
    Patch,
    apply,
    distances,
    put_stub,
    table_types,
)  # fmt: skip

__all__ = [
    "EM_AARCH64", "EM_RISCV", "EM_X86_64", "PAGE", "ELFError", "ELFObject", "Layout", "Relocation", "Section", "Symbol",
    "parse",
]  # fmt: skip
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL = 2, 4, 8, 9
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_ABS, _SHN_COMMON = 0xFFF1, 0xFFF2
PAGE = 4096


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
      ELFError: if the bytes are no ELF64 little-endian relocatable object, or point outside themselves.
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
                self.table = at = _up(at + STUB_BYTES * len(self.externals), 8)
                self.entries = sorted({r.symbol for r in obj.relocations if r.type in table_types(obj.machine)})
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
          ELFError: if a symbol is undefined, or a relocation is unknown or cannot reach.
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
            put_stub(out, self.stubs + STUB_BYTES * slot, address(number), obj.machine)
        for slot, number in enumerate(self.entries):
            struct.pack_into("<Q", out, self.table + 8 * slot, address(number))
        stubs = {number: base + self.stubs + STUB_BYTES * slot for slot, number in enumerate(self.externals)}
        table = {number: base + self.table + 8 * slot for slot, number in enumerate(self.entries)}
        patches = []
        for r in obj.relocations:
            if r.section in self.places:
                at, value = self.places[r.section] + r.offset, address(r.symbol)
                name = obj.symbols[r.symbol].name or "a section"
                patches.append(Patch(
                    at, base + at, r.type, value, r.addend, stubs.get(r.symbol, value), table.get(r.symbol, 0), name))
        known = distances(patches, obj.machine)
        for patch in patches:
            apply(out, patch, obj.machine, known)
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


def parse(data: bytes) -> Layout:
    """An object, laid out for loading.

    Raises:
      ELFError: if it is damaged, or not for a machine that this loader knows.
    """
    try:
        obj = ELFObject(data)
        if obj.machine not in (EM_X86_64, EM_AARCH64, EM_RISCV):
            raise ELFError(
                f"an object for machine {obj.machine}; x86-64 (62), AArch64 (183) and RISC-V (243) can be loaded"
            )
        return Layout(obj)
    except struct.error as error:
        raise ELFError(f"the object is truncated: {error}") from None
