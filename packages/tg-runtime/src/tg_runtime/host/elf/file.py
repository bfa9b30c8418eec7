"""ELF64 files as they are written: sections, segments, symbols and relocations, every number in them checked.

Source: System V ABI, chapters 4 (object files) and 5 (program loading).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from .relocation import ELFError

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
SHT_NOBITS: Final = 8
SHF_WRITE, SHF_ALLOC = 1, 2
SHN_ABS, SHN_COMMON = 0xFFF1, 0xFFF2
STT_TLS, STT_GNU_IFUNC = 6, 10
PF_X, PF_W = 1, 2
_SHT_SYMTAB, _SHT_RELA, _SHT_NOTE, _SHT_REL, _SHT_DYNSYM, _SHT_RELR = 2, 4, 7, 9, 11, 19
_PT_LOAD, _SHN_LORESERVE, _STB_WEAK = 1, 0xFF00, 2
_KINDS: Final = {ET_REL: "a relocatable object", ET_EXEC: "an executable", ET_DYN: "a shared object"}
_SYMBOL_BYTES: Final = 24


class Section(NamedTuple):
    """A section header, with its name looked up; ``address`` is 0 in a relocatable object."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class Segment(NamedTuple):
    """A part of the file that is loaded to an address; what ``size`` has more than ``file_size`` is zero."""

    flags: int
    offset: int
    address: int
    file_size: int
    size: int
    align: int


class Symbol(NamedTuple):
    """A symbol: ``section`` is an index, 0 if undefined; ``value`` an offset in it, in a shared object an address."""

    name: str
    section: int
    value: int
    size: int
    weak: bool
    type: int


class Relocation(NamedTuple):
    """A place to patch.

    Attributes:
      section: the section that it is in.
      offset: where: in that section.
      type: the processor's number.
      symbol: the symbol's number; -1 for none.
      addend: what is added; None if it stands in the place.
    """

    section: int
    offset: int
    type: int
    symbol: int
    addend: int | None


class Note(NamedTuple):
    """An entry of a note section: who writes it, what it is, and its content."""

    owner: str
    type: int
    data: bytes


class ELFFile:
    """A parsed file of any processor.

    Attributes:
      data: the bytes.
      kind: relocatable (1), executable (2) or shared (3).
      machine: ``e_machine``.
      flags: ``e_flags``.
      sections: in order; the first one is none.
      segments: those that are loaded.
      symbols: of all tables, one after the other.
      relocations: of the sections that are loaded.

    Raises:
      ELFError: if the bytes are no ELF64 little-endian file of these kinds, or point outside themselves.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
            raise ELFError(f"not an ELF64 little-endian object: {len(data)} bytes that begin with {data[:8].hex()}")
        self.kind, self.machine, _, _, programs, table, self.flags = struct.unpack_from("<HHIQQQI", data, 16)
        if self.kind not in _KINDS:
            raise ELFError(f"an ELF file of type {self.kind}; relocatable (1) and shared (3) objects can be loaded")
        program_size, program_count, entsize, count, names = struct.unpack_from("<HHHHH", data, 54)
        if entsize != 64 or table + 64 * count > len(data) or names >= count:
            raise ELFError(f"the section table ({count} x {entsize} bytes at {table}) lies outside the file")
        if program_count and (program_size != 56 or programs + 56 * program_count > len(data)):
            raise ELFError(f"the segment table ({program_count} x {program_size} bytes at {programs}) lies outside")
        self.sections = self._read_sections(table, count, names)
        self.segments = self._read_segments(programs, program_count)
        self.symbols: list[Symbol] = []
        self.relocations: list[Relocation] = []
        first: dict[int, int] = {}  # where each table's symbols begin
        tables = [s for s in self.sections if s.type in (_SHT_SYMTAB, _SHT_DYNSYM, _SHT_RELA, _SHT_REL)]
        if sum(section.size for section in tables) > len(data):
            raise ELFError("tables of symbols and relocations lie one over the other")
        for index, section in enumerate(self.sections):
            if section.type in (_SHT_SYMTAB, _SHT_DYNSYM):
                first[index] = len(self.symbols)
                self._read_symbols(section)
        for section in self.sections:
            if section.type in (_SHT_RELA, _SHT_REL):
                self._read_relocations(section, first)
            elif section.type == _SHT_RELR and section.size:
                raise ELFError(f"packed relocations ({section.name}) are not known; link without them")

    def _read_sections(self, table: int, count: int, names: int) -> list[Section]:
        raw = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + 64 * i) for i in range(count)]
        base, size = raw[names][4:6]
        found = []
        for number, (name, kind, flags, address, offset, nbytes, link, info, align, _) in enumerate(raw):
            section = Section(
                self._text(base + name, base + size), kind, flags, address, offset, nbytes, link, info, align or 1
            )
            if kind != SHT_NOBITS and number and offset + nbytes > len(self.data):
                raise ELFError(
                    f"section {section.name} ({nbytes} bytes at {offset}) lies outside the file of "
                    f"{len(self.data)} bytes"
                )
            found.append(section)
        return found

    def _read_segments(self, table: int, count: int) -> list[Segment]:
        found = []
        for number in range(count):
            kind, flags, offset, address, _, file_size, size, align = struct.unpack_from(
                "<IIQQQQQQ", self.data, table + 56 * number
            )
            if kind != _PT_LOAD:
                continue
            if offset + file_size > len(self.data) or file_size > size:
                raise ELFError(f"segment {number} ({file_size} of {size} bytes at {offset}) lies outside the file")
            align = align or 1
            if align & (align - 1) or (address - offset) % align:
                raise ELFError(f"segment {number} at {address:#x} is misaligned: its alignment is {align:#x}")
            found.append(Segment(flags, offset, address, file_size, size, align))
        return found

    def _text(self, at: int, end: int) -> str:
        stop = self.data.find(b"\0", at, min(end, len(self.data)))
        if stop < 0:
            raise ELFError(f"a name at {at} does not end in its table")
        return self.data[at:stop].decode("utf-8", "replace")

    def _section(self, index: int, what: str) -> Section:
        if index >= len(self.sections):
            raise ELFError(f"{what} names section {index} of {len(self.sections)}")
        return self.sections[index]

    def _read_symbols(self, section: Section) -> None:
        names = self._section(section.link, section.name)
        for at in range(section.offset, section.offset + section.size - _SYMBOL_BYTES + 1, _SYMBOL_BYTES):
            name, info, _, home, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            text = self._text(names.offset + name, names.offset + names.size)
            if home < _SHN_LORESERVE and home >= len(self.sections):
                raise ELFError(f"symbol {text} names section {home} of {len(self.sections)}")
            self.symbols.append(Symbol(text, home, value, size, info >> 4 == _STB_WEAK, info & 15))

    def _read_relocations(self, section: Section, first: dict[int, int]) -> None:
        explicit = section.type == _SHT_RELA
        whole = self.kind == ET_DYN
        if not whole and not self._section(section.info, section.name).flags & SHF_ALLOC:
            return
        if whole and not section.flags & SHF_ALLOC:
            return  # a linker's own, kept for others
        size = 24 if explicit else 16
        symbols = first.get(section.link)
        for at in range(section.offset, section.offset + section.size - size + 1, size):
            offset, info = struct.unpack_from("<QQ", self.data, at)
            number, kind = info >> 32, info & 0xFFFFFFFF
            addend = struct.unpack_from("<q", self.data, at + 16)[0] if explicit else None
            home = self._holding(offset, section) if whole else section.info
            target = self.sections[home]
            offset -= target.address if whole else 0
            where = f"the relocation of type {kind} at {target.name}+{offset:#x}"
            if offset >= max(target.size, 1):
                raise ELFError(f"{where} points outside: the section has {target.size} bytes")
            if number == 0:
                symbol = -1
            elif symbols is None or symbols + number >= len(self.symbols):
                raise ELFError(f"{where} names symbol {number}, which is not there")
            else:
                symbol = symbols + number
            self.relocations.append(Relocation(home, offset, kind, symbol, addend))

    def _holding(self, address: int, table: Section) -> int:
        for index, section in enumerate(self.sections):
            if section.flags & SHF_ALLOC and section.address <= address < section.address + section.size:
                return index
        raise ELFError(f"a relocation of {table.name} points outside: no section holds {address:#x}")

    def section(self, name: str) -> bytes:
        """The bytes of a section as they are in the file.

        Raises:
          ELFError: if there is none of the name, or it has no bytes in the file.
        """
        for section in self.sections:
            if section.name == name and section.type != SHT_NOBITS:
                return self.data[section.offset : section.offset + section.size]
        raise ELFError(f"there is no section {name}; there are {', '.join(s.name for s in self.sections if s.name)}")

    def notes(self) -> list[Note]:
        """The entries of all note sections.

        Raises:
          ELFError: if one is cut off.
        """
        found = []
        for section in self.sections:
            if section.type != _SHT_NOTE:
                continue
            data, at = self.data[section.offset : section.offset + section.size], 0
            while at + 12 <= len(data):
                owner_size, size, kind = struct.unpack_from("<III", data, at)
                start = at + 12 + -(-owner_size // 4) * 4
                at = start + -(-size // 4) * 4
                if start + size > len(data):
                    raise ELFError(f"a note of {size} bytes in {section.name} is cut off")
                owner = data[start - -(-owner_size // 4) * 4 :][:owner_size].rstrip(b"\0").decode("utf-8", "replace")
                found.append(Note(owner, kind, data[start : start + size]))
        return found
