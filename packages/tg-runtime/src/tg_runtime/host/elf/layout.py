"""Where an object's parts lie in memory, and what the bytes there are: symbols resolved, relocations applied."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from .aarch64 import AARCH64
from .file import (
    ET_DYN,
    ET_EXEC,
    ET_REL,
    PF_W,
    PF_X,
    SHF_ALLOC,
    SHF_WRITE,
    SHN_ABS,
    SHN_COMMON,
    SHT_NOBITS,
    STT_GNU_IFUNC,
    STT_TLS,
    ELFFile,
    Relocation,
    Symbol,
)  # fmt: skip
from .relocation import ELFError, Machine, Patch, Refusal
from .riscv import RISCV
from .x86_64 import X86_64

PAGE: Final = 4096
PROCESSORS: Final = {machine.number: machine for machine in (X86_64, AARCH64, RISCV)}
MOST_BYTES: Final = 1 << 30
"""More memory than any program wants: a size beyond it is damage."""
MOST_ALIGNMENT: Final = 1 << 21
"""A huge page."""


class Region(NamedTuple):
    """Whole pages of the memory, from ``start`` to ``end``, and whether they are written to or executed."""

    start: int
    end: int
    writable: bool
    executable: bool


class Layout:
    """Where an object's parts lie relative to the start of one block of memory.

    Of a relocatable object, first code and constants with the call stubs and the address table, then, from a page on,
    what may be written. A shared object's segments lie as its linker placed them.

    Attributes:
      file: the object.
      machine: its processor.
      nbytes: bytes of memory wanted.
      alignment: of that memory: a power of two, at least a page.
      places: where each section that is loaded lies, by its number.
      regions: the memory's pages, in order.

    Raises:
      ELFError: if the object wants more memory than ``most`` bytes, or its parts overlap.
    """

    def __init__(self, file: ELFFile, machine: Machine, most: int = MOST_BYTES) -> None:
        self.file, self.machine, self._most = file, machine, most
        self.places: dict[int, int] = {}
        self.regions: list[Region] = []
        self._commons: dict[int, int] = {}
        self._stubs = self._table = self._origin = 0
        self._externals: list[int] = []
        self._entries: list[int] = []
        self.alignment = PAGE
        if file.kind == ET_DYN:
            self._lay_segments()
        elif file.kind == ET_EXEC and not machine.executables:
            raise ELFError("an executable (type 2) runs at its own addresses; a relocatable or shared object is wanted")
        elif file.kind == ET_REL and machine.executables:
            raise ELFError(f"a relocatable object (type 1) for {machine.name} must be linked before it is loaded")
        else:
            self._lay_sections()

    def _lay_sections(self) -> None:
        file, machine = self.file, self.machine
        used = {r.symbol for r in file.relocations if r.symbol >= 0}
        at = start = 0
        for writable in (False, True):
            if writable:
                if machine.put_stub is not None:  # every external symbol may need a stub
                    self._externals = sorted(number for number in used if file.symbols[number].section == 0)
                self._stubs = at = _up(at, 16)
                self._table = at = _up(at + machine.stub_bytes * len(self._externals), 8)
                self._entries = sorted({r.symbol for r in file.relocations if r.type in machine.tables})
                at = self._page(at + 8 * len(self._entries))
                if at:
                    self.regions.append(Region(0, at, False, True))
                start = at
            for index, section in enumerate(file.sections):
                wanted = section.flags & SHF_ALLOC and machine.placed(section.name)
                if wanted and bool(section.flags & SHF_WRITE) is writable:
                    self._align(section.align, f"section {section.name}")
                    self.places[index] = at = self._within(_up(at, section.align), section.name)
                    at = self._within(at + section.size, section.name)
        for number, symbol in enumerate(file.symbols):
            if symbol.section == SHN_COMMON:
                self._align(max(symbol.value, 1), f"symbol {symbol.name}")
                self._commons[number] = at = self._within(_up(at, max(symbol.value, 1)), symbol.name)
                at = self._within(at + symbol.size, symbol.name)
        self.nbytes = self._page(max(at, 1))
        if self.nbytes > start:
            self.regions.append(Region(start, self.nbytes, True, False))

        loaded = sorted((s.offset, s.size, s.name) for s in map(file.sections.__getitem__, self.places)
                        if s.type != SHT_NOBITS and s.size)  # fmt: skip
        for (first, nbytes, name), (second, _, other) in pairwise(loaded):
            if first + nbytes > second:
                raise ELFError(f"sections {name} and {other} overlap at byte {second:#x} of the file")

    def _lay_segments(self) -> None:
        segments = sorted(self.file.segments, key=lambda segment: segment.address)
        if not segments:
            raise ELFError("a shared object without segments: there is nothing to load")
        for segment in segments:
            self._align(segment.align, f"the segment at {segment.address:#x}")
        self._origin = segments[0].address // self.alignment * self.alignment
        end, ends = 0, 0
        for segment in segments:
            start = segment.address - self._origin
            if start < end:
                raise ELFError(f"segments overlap at {segment.address:#x}")
            end = self._within(start + segment.size, f"the segment at {segment.address:#x}")
            first = start // PAGE * PAGE
            writable, executable = bool(segment.flags & PF_W), bool(segment.flags & PF_X)
            if first < ends:  # pages that two segments share may be used as either
                last = self.regions.pop()
                first, writable, executable = last.start, writable or last.writable, executable or last.executable
            ends = self._page(end)
            self.regions.append(Region(first, ends, writable, executable))
        self.nbytes = self._page(max(end, 1))
        for index, section in enumerate(self.file.sections):
            if not section.flags & SHF_ALLOC or not section.size:
                continue
            place = section.address - self._origin
            inside = any(s.address <= section.address and section.address + section.size <= s.address + s.size
                         for s in segments)  # fmt: skip
            if inside:
                self.places[index] = place
            elif section.type != SHT_NOBITS:  # thread-local zeros lie in no segment
                raise ELFError(f"section {section.name} at {section.address:#x} lies outside the segments")

    def _align(self, alignment: int, what: str) -> None:
        if alignment > MOST_ALIGNMENT or alignment & (alignment - 1):
            raise ELFError(f"{what} wants alignment {alignment:#x}: no power of two up to {MOST_ALIGNMENT:#x}")
        self.alignment = max(self.alignment, alignment)

    def _within(self, at: int, what: str) -> int:
        if at > self._most:
            raise ELFError(f"{what} ends {at:#x} bytes into memory; {self._most:#x} are the most")
        return at

    def _page(self, at: int) -> int:
        return _up(at, PAGE)

    def image(self, base: int, resolve: Callable[[str], int | None] = lambda name: None) -> bytes:
        """The bytes for memory at address ``base``.

        Args:
          base: address of the block, a multiple of the alignment.
          resolve: the address of an external symbol, None if there is none.

        Raises:
          ELFError: if a symbol is undefined, a relocation is unknown or cannot reach, or the block is misaligned.
        """
        if base % self.alignment:
            raise ELFError(f"the memory at {base:#x} is misaligned: the object wants {self.alignment:#x}")
        out = bytearray(self.nbytes)
        if self.file.kind == ET_DYN:
            for segment in self.file.segments:
                place = segment.address - self._origin
                out[place : place + segment.file_size] = self.file.data[segment.offset :][: segment.file_size]
        else:
            for index, place in self.places.items():
                section = self.file.sections[index]
                if section.type != SHT_NOBITS:
                    out[place : place + section.size] = self.file.data[section.offset :][: section.size]
        self._apply(out, self._patches(out, base, resolve))
        return bytes(out)

    def _patches(
        self, out: bytearray, base: int, resolve: Callable[[str], int | None]
    ) -> list[tuple[Relocation, Patch]]:
        addresses: dict[int, int] = {-1: 0}

        def address(r: Relocation) -> int:
            if r.symbol not in addresses:
                addresses[r.symbol] = self._address(r, base, resolve)
            return addresses[r.symbol]

        machine = self.machine
        stubs = {n: base + self._stubs + machine.stub_bytes * slot for slot, n in enumerate(self._externals)}
        table = {n: base + self._table + 8 * slot for slot, n in enumerate(self._entries)}
        found = []
        for r in self.file.relocations:
            if r.section not in self.places:
                continue
            known = machine.types.get(r.type)
            if known is None:
                raise ELFError(f"{self._what(r)}: it is not known")
            if r.offset + known[1] > self.file.sections[r.section].size:
                raise ELFError(f"{self._what(r)}: its {known[1]} bytes point outside the section")
            at, addend = self.places[r.section] + r.offset, r.addend
            if addend is None:
                if machine.implicit is None:
                    raise ELFError(f"{self._what(r)}: relocations without addends are not used on this machine")
                addend = machine.implicit(out, at, r.type)
            value = address(r)
            found.append((r, Patch(
                at, base + at, r.type, value, addend, stubs.get(r.symbol, value), table.get(r.symbol, 0),
                base - self._origin, self._symbol(r))))  # fmt: skip
        for n, stub in stubs.items():
            assert machine.put_stub is not None
            machine.put_stub(out, stub - base, addresses.get(n, 0))
        for n, entry in table.items():
            struct.pack_into("<Q", out, entry - base, addresses.get(n, 0) & 0xFFFFFFFFFFFFFFFF)
        return found

    def _apply(self, out: bytearray, patches: list[tuple[Relocation, Patch]]) -> None:
        machine = self.machine
        known = {} if machine.pairs is None else machine.pairs([patch for _, patch in patches])
        for r, patch in patches:
            try:
                machine.apply(out, patch, known)
            except Refusal as why:
                raise ELFError(f"{self._what(r)}: {why}") from None

    def _symbol(self, r: Relocation) -> str:
        if r.symbol < 0:
            return "no symbol"
        symbol = self.file.symbols[r.symbol]
        if symbol.name or symbol.section >= len(self.file.sections):
            return symbol.name or "a symbol without a name"
        return f"section {self.file.sections[symbol.section].name}"

    def _what(self, r: Relocation) -> str:
        """A relocation, for a message: type, symbol, section and offset."""
        name, _ = self.machine.types.get(r.type, ("type", 0))
        section = self.file.sections[r.section].name
        return f"the {self.machine.name} relocation {name} ({r.type}) of {self._symbol(r)} at {section}+{r.offset:#x}"

    def _address(self, r: Relocation, base: int, resolve: Callable[[str], int | None]) -> int:
        symbol = self.file.symbols[r.symbol]
        if symbol.type in (STT_TLS, STT_GNU_IFUNC):
            kind = "thread-local" if symbol.type == STT_TLS else "chosen when the program starts"
            raise ELFError(f"{self._what(r)}: the symbol is {kind}, which is not known")
        if symbol.section == SHN_ABS:
            return symbol.value
        if symbol.section == SHN_COMMON and r.symbol in self._commons:
            return base + self._commons[r.symbol]
        if symbol.section:
            if symbol.section not in self.places and self.file.kind != ET_DYN:
                raise ELFError(f"{self._what(r)}: the symbol lies in a section that is not loaded")
            return base + self._offset(symbol)
        if not symbol.name:
            return 0
        found = resolve(symbol.name)
        if found is None and not symbol.weak:
            raise ELFError(f"undefined symbol {symbol.name}, wanted by {self._what(r)}")
        return found or 0

    def _offset(self, symbol: Symbol) -> int:
        if self.file.kind == ET_DYN:
            return symbol.value - self._origin
        return self.places[symbol.section] + symbol.value

    @property
    def writable(self) -> int:
        """Where what may be written begins: the pages before it are code and constants only."""
        return next((region.start for region in self.regions if region.writable), self.nbytes)

    def offsets(self) -> Mapping[str, tuple[int, int]]:
        """Where the named symbols that the object defines lie in the block, and their sizes."""
        return {s.name: (self._offset(s), s.size) for s in self.file.symbols if s.name and s.section in self.places}

    def functions(self, base: int) -> dict[str, int]:
        """The addresses of the named symbols that the object defines."""
        return {name: base + offset for name, (offset, _) in self.offsets().items()}


def _up(n: int, align: int) -> int:
    return (n + align - 1) // align * align


def parse(data: bytes, machines: Mapping[int, Machine] = PROCESSORS, most: int = MOST_BYTES) -> Layout:
    """An object, laid out for loading.

    Args:
      data: the file.
      machines: the processors that may be, by their numbers.
      most: more bytes of memory than this are refused.

    Raises:
      ELFError: if it is damaged, or not for one of these machines.
    """
    try:
        file = ELFFile(data)
    except struct.error as error:
        raise ELFError(f"the object is truncated: {error}") from None
    machine = machines.get(file.machine)
    if machine is None:
        known = ", ".join(f"{each.name} ({number})" for number, each in machines.items()) or "nothing"
        raise ELFError(f"an object for machine {file.machine}; {known} can be loaded")
    return Layout(file, machine, most)
