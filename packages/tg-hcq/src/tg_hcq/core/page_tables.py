"""Page tables of a GPU: any number of levels, the largest page that fits, entries by a coder.

What an entry looks like is the hardware's, where tables lie and how they are written is the driver's; which entries a
mapping needs is the same for all of them, and is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Level:
    """A level of tables.

    Attributes:
      shift: the lowest bit of the virtual address that selects an entry.
      bits: how many bits do.
      leaf: whether an entry may map a page, of ``1 << shift`` bytes.
      entry_bytes: how long an entry is.
      align: at which multiples a table lies.
    """

    shift: int
    bits: int
    leaf: bool = False
    entry_bytes: int = 8
    align: int = 4096

    @property
    def page_bytes(self) -> int:
        """How much an entry covers."""
        return 1 << self.shift

    @property
    def table_bytes(self) -> int:
        """How long a table is."""
        return self.entry_bytes << self.bits


class EntryCoder(Protocol):
    """Entries as the hardware reads them; levels count from 0, the root's."""

    def empty(self, level: int) -> int:
        """An entry that maps nothing."""

    def table(self, level: int, address: int) -> int:
        """An entry that leads to the table at a physical address."""

    def page(self, level: int, address: int, flags: int, contiguous: int) -> int:
        """An entry that maps a page.

        Args:
          level: the level of the table that holds the entry.
          address: the physical address.
          flags: the driver's, as given to :meth:`PageTables.map`.
          contiguous: bytes of the largest naturally aligned block, in virtual and physical space, of pages around this
            one that are mapped alike: what AMD calls a fragment.
        """


class TableMemory(Protocol):
    """Memory for tables."""

    def alloc(self, nbytes: int, align: int) -> int:
        """The physical address of memory for a table.

        Raises:
          MemoryError: if there is none.
        """

    def free(self, address: int) -> None:
        """Gives a table's memory back."""

    def write(self, address: int, data: bytes) -> None:
        """Stores entries."""


class BootAllocator:
    """Memory for tables before anything else is set up: a range that only grows, and tables that were given back.

    Args:
      base: the first physical address.
      nbytes: how much there is.

    Example:
      >>> boot = BootAllocator(0x1000, 0x3000)
      >>> first = boot.alloc(0x1000, 0x1000)
      >>> boot.free(first)
      >>> hex(boot.alloc(0x1000, 0x1000))
      '0x1000'
    """

    def __init__(self, base: int, nbytes: int) -> None:
        self.base, self.nbytes, self.used = base, nbytes, 0
        self._sizes: dict[int, tuple[int, int]] = {}
        self._spare: dict[tuple[int, int], list[int]] = {}

    def alloc(self, nbytes: int, align: int) -> int:
        """The address of ``nbytes`` at a multiple of ``align``.

        Raises:
          MemoryError: if the range is used up.
        """
        spare = self._spare.get((nbytes, align))
        if spare:
            address = spare.pop()
        else:
            address = -(-(self.base + self.used) // align) * align
            if address + nbytes > self.base + self.nbytes:
                raise MemoryError(f"a table of {nbytes:#x} bytes: {self.used:#x} of {self.nbytes:#x} bytes are in use")
            self.used = address + nbytes - self.base
        self._sizes[address] = nbytes, align
        return address

    def free(self, address: int) -> None:
        """Keeps a table for the next one of its size.

        Raises:
          KeyError: if no table in use begins there.
        """
        self._spare.setdefault(self._sizes.pop(address), []).append(address)


@dataclass(frozen=True, slots=True)
class Mapping:
    """What an address is mapped to: the whole page, with the flags of the call that mapped it."""

    virtual: int
    physical: int
    nbytes: int
    flags: int


@dataclass(slots=True)
class _Page:
    physical: int
    flags: int
    contiguous: int


@dataclass(slots=True)
class _Table:
    address: int
    entries: dict[int, _Table | _Page] = field(default_factory=dict)


class PageTables:
    """The tables of one address space.

    Args:
      levels: the root's first; each begins where the next one ends, and the last may map pages.
      coder: what entries look like.
      memory: where tables lie.
      invalidate: called with the first address and the number of bytes after entries changed, before tables that
        nothing leads to any more are freed: drops what the hardware remembers of them.

    Attributes:
      root: the physical address of the root table.

    Raises:
      ValueError: if the levels do not fit together.
      MemoryError: if there is no memory for the root.
    """

    def __init__(
        self, levels: tuple[Level, ...], coder: EntryCoder, memory: TableMemory,
        invalidate: Callable[[int, int], object] = lambda address, nbytes: None,
    ) -> None:  # fmt: skip
        if not levels or not levels[-1].leaf:
            raise ValueError("the last level must map pages")
        for upper, lower in pairwise(levels):
            if upper.shift != lower.shift + lower.bits:
                raise ValueError(f"a level that begins at bit {upper.shift} cannot stand over bits {lower.shift} to "
                                 f"{lower.shift + lower.bits - 1}")  # fmt: skip
        self.levels, self._coder, self._memory, self._invalidate = levels, coder, memory, invalidate
        self.page_bytes, self.nbytes = levels[-1].page_bytes, 1 << (levels[0].shift + levels[0].bits)
        self._root = self._new(0)
        self.root = self._root.address

    def map(self, virtual: int, physical: int, nbytes: int, flags: int = 0) -> None:
        """Maps a range, in the largest pages that both addresses and the length allow.

        Raises:
          ValueError: if an address or the length is no multiple of the smallest page, or the range lies outside.
          KeyError: if a part of it is mapped already; then nothing changed.
          MemoryError: if there is no memory for a table; then nothing is mapped.
        """
        self._check(virtual, nbytes)
        if physical < 0 or physical % self.page_bytes:
            raise ValueError(f"the physical address {physical:#x} is no multiple of a page ({self.page_bytes:#x})")
        taken = next(self.mappings(virtual, nbytes), None)
        if taken is not None:
            raise KeyError(f"{taken.virtual:#x} is mapped already, {taken.nbytes:#x} bytes to {taken.physical:#x}")
        try:
            self._fill(0, self._root, 0, virtual, virtual + nbytes, physical - virtual, flags)
        except BaseException:
            self._remove(virtual, nbytes)
            raise
        self._invalidate(virtual, nbytes)

    def unmap(self, virtual: int, nbytes: int) -> None:
        """Takes a range's mapping away; a page that reaches out of it is replaced by smaller ones.

        Raises:
          ValueError: if an address or the length is no multiple of the smallest page, or the range lies outside.
          KeyError: if a part of it is not mapped; then nothing changed.
          MemoryError: if there is no memory for a table of smaller pages; then everything is still mapped.
        """
        self._check(virtual, nbytes)
        at = virtual
        for mapping in self.mappings(virtual, nbytes):
            if mapping.virtual > at:
                break
            at = mapping.virtual + mapping.nbytes
        if at < virtual + nbytes:
            raise KeyError(f"{at:#x} is not mapped")
        for edge in (virtual, virtual + nbytes):
            self._separate(edge)
        self._remove(virtual, nbytes)

    def lookup(self, virtual: int) -> Mapping | None:
        """What an address is mapped to, or None."""
        return next(self.mappings(virtual - virtual % self.page_bytes, self.page_bytes), None)

    def mappings(self, virtual: int, nbytes: int) -> Iterator[Mapping]:
        """The pages that a range touches, in order."""
        return self._walk(0, self._root, 0, virtual, virtual + nbytes)

    def _check(self, virtual: int, nbytes: int) -> None:
        if virtual % self.page_bytes or nbytes % self.page_bytes or nbytes <= 0:
            raise ValueError(f"{nbytes:#x} bytes at {virtual:#x} are not whole pages of {self.page_bytes:#x}")
        if virtual < 0 or virtual + nbytes > self.nbytes:
            raise ValueError(f"{nbytes:#x} bytes at {virtual:#x} reach out of a space of {self.nbytes:#x} bytes")

    def _new(self, level: int) -> _Table:
        shape = self.levels[level]
        table = _Table(self._memory.alloc(shape.table_bytes, shape.align))
        self._write(level, table, 0, [self._coder.empty(level)] * (1 << shape.bits))
        return table

    def _write(self, level: int, table: _Table, index: int, entries: list[int]) -> None:
        nbytes = self.levels[level].entry_bytes
        data = b"".join(entry.to_bytes(nbytes, "little") for entry in entries)
        self._memory.write(table.address + index * nbytes, data)

    def _slots(self, level: int, base: int, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The entries of a table that cover a range: index, first address, and the part of the range in it."""
        size = self.levels[level].page_bytes
        for index in range((start - base) // size, (end - 1 - base) // size + 1):
            at = base + index * size
            yield index, at, max(start, at), min(end, at + size)

    def _walk(self, level: int, table: _Table, base: int, start: int, end: int) -> Iterator[Mapping]:
        for index, at, first, last in self._slots(level, base, start, end):
            entry = table.entries.get(index)
            if isinstance(entry, _Table):
                yield from self._walk(level + 1, entry, at, first, last)
            elif entry is not None:
                yield Mapping(at, entry.physical, self.levels[level].page_bytes, entry.flags)

    def _fill(self, level: int, table: _Table, base: int, start: int, end: int, offset: int, flags: int) -> None:
        shape, run, begin = self.levels[level], list[int](), 0
        for index, at, first, last in self._slots(level, base, start, end):
            entry = table.entries.get(index)
            whole = last - first == shape.page_bytes
            if entry is None and whole and shape.leaf and not (at + offset) % shape.page_bytes:
                table.entries[index] = page = _Page(at + offset, flags, _contiguous(at, offset, start, end, shape))
                begin = begin if run else index
                run.append(self._page(level, page))
                continue
            self._flush(level, table, begin, run)
            if not isinstance(entry, _Table):
                entry = self._new(level + 1)
                # entries first, then the way to them: the hardware never finds a table half written
                table.entries[index] = entry
                self._fill(level + 1, entry, at, first, last, offset, flags)
                self._write(level, table, index, [self._coder.table(level, entry.address)])
            else:
                self._fill(level + 1, entry, at, first, last, offset, flags)
        self._flush(level, table, begin, run)

    def _flush(self, level: int, table: _Table, begin: int, run: list[int]) -> None:
        if run:
            self._write(level, table, begin, run)
            run.clear()

    def _page(self, level: int, page: _Page) -> int:
        return self._coder.page(level, page.physical, page.flags, page.contiguous)

    def _separate(self, edge: int) -> None:
        """Makes a boundary of an address: pages that reach over it become tables of smaller ones, blocks are cut."""
        table, base = self._root, 0
        for level, shape in enumerate(self.levels):
            index = (edge - base) // shape.page_bytes
            at = base + index * shape.page_bytes
            entry = table.entries.get(index)
            if isinstance(entry, _Page):
                self._cut(level, table, base, entry, at, edge)
                if at == edge:
                    return
                entry = self._smaller(level, table, index, entry, at)
            if entry is None:
                return
            table, base = entry, at

    def _cut(self, level: int, table: _Table, base: int, page: _Page, at: int, edge: int) -> None:
        """Makes two blocks of contiguous pages of the one that reaches over an address."""
        size, block = self.levels[level].page_bytes, page.contiguous
        first, offset = at - at % block, page.physical - at
        if edge % block == 0 or block == size:
            return
        inside, entries = at + size if at < edge else at, []  # a page that is to be divided stands alone
        for start in range(first, first + block, size):
            part = (first, at) if start < at else (at, inside) if start < inside else (inside, first + block)
            other = table.entries[(start - base) // size]
            assert isinstance(other, _Page)
            other.contiguous = _contiguous(start, offset, *part, self.levels[level])
            entries.append(self._page(level, other))
        self._write(level, table, (first - base) // size, entries)
        self._invalidate(first, block)

    def _smaller(self, level: int, table: _Table, index: int, page: _Page, at: int) -> _Table:
        """Puts a table of smaller pages in the place of a page."""
        lower, nbytes = self._new(level + 1), self.levels[level].page_bytes
        try:
            self._fill(level + 1, lower, at, at, at + nbytes, page.physical - at, page.flags)
        except BaseException:
            self._drop(lower)
            raise
        table.entries[index] = lower
        self._write(level, table, index, [self._coder.table(level, lower.address)])
        self._invalidate(at, nbytes)
        return lower

    def _drop(self, table: _Table) -> None:
        for entry in table.entries.values():
            if isinstance(entry, _Table):
                self._drop(entry)
        self._memory.free(table.address)

    def _remove(self, virtual: int, nbytes: int) -> None:
        gone: list[_Table] = []
        self._clear(0, self._root, 0, virtual, virtual + nbytes, gone)
        self._invalidate(virtual, nbytes)
        for table in gone:
            self._memory.free(table.address)

    def _clear(self, level: int, table: _Table, base: int, start: int, end: int, gone: list[_Table]) -> None:
        begin, run, empty = 0, list[int](), self._coder.empty(level)
        for index, at, first, last in self._slots(level, base, start, end):
            entry = table.entries.get(index)
            if isinstance(entry, _Table):
                self._clear(level + 1, entry, at, first, last, gone)
                if entry.entries:
                    self._flush(level, table, begin, run)
                    continue
                gone.append(entry)
            if table.entries.pop(index, None) is None:
                self._flush(level, table, begin, run)
                continue
            begin = begin if run else index
            run.append(empty)
        self._flush(level, table, begin, run)


def _contiguous(at: int, offset: int, start: int, end: int, shape: Level) -> int:
    """Bytes of the largest block around a page that is aligned in both spaces and inside the range."""
    nbytes = shape.page_bytes
    while not offset % (2 * nbytes):
        first = at - at % (2 * nbytes)
        if first < start or first + 2 * nbytes > end:
            break
        nbytes *= 2
    return nbytes
