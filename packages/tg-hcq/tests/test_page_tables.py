"""Page tables against a dictionary of pages, as a walker reads them that knows nothing of who wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_hcq.core.page_tables import BootAllocator, Level, PageTables

PAGE = 16
FOUR = (Level(13, 3), Level(10, 3, leaf=True), Level(7, 3, leaf=True, align=64), Level(4, 3, leaf=True, align=64))
SHAPES = {
    "four levels": FOUR,
    "uneven": (Level(12, 4, leaf=True, entry_bytes=16, align=256), Level(4, 8, leaf=True, align=64)),
    "one": (Level(4, 8, leaf=True),),
}
VALID, LEAF = 1, 2


class Coder:
    """Entries with a level in them, so that a walker notices one that lies in the wrong table."""

    def empty(self, level: int) -> int:
        return level << 4

    def table(self, level: int, address: int) -> int:
        return address << 16 | level << 4 | VALID

    def page(self, level: int, address: int, flags: int, contiguous: int) -> int:
        return address << 16 | contiguous.bit_length() - 1 << 11 | flags << 8 | level << 4 | LEAF | VALID


class Memory(BootAllocator):
    """Memory for tables that notices a store outside the tables in use, and a table that is freed too early."""

    def __init__(self, limit: int = 1 << 20) -> None:
        super().__init__(64, limit)
        self.data = bytearray(limit + 64)
        self.tables: dict[int, int] = {}
        self.cached: set[int] = set()  # tables that the hardware may still remember

    def alloc(self, nbytes: int, align: int) -> int:
        address = super().alloc(nbytes, align)
        self.data[address : address + nbytes] = b"\xff" * nbytes
        self.tables[address] = nbytes
        return address

    def free(self, address: int) -> None:
        assert address not in self.cached, "a table is freed that the hardware may still walk"
        super().free(address)
        del self.tables[address]

    def write(self, address: int, data: bytes) -> None:
        assert any(at <= address and address + len(data) <= at + size for at, size in self.tables.items())
        self.cached |= self.tables.keys()
        self.data[address : address + len(data)] = data

    def invalidate(self, address: int, nbytes: int) -> None:
        self.cached.clear()


def walk(levels: tuple[Level, ...], memory: Memory, root: int) -> dict[int, tuple[int, int, int, int]]:
    """The smallest pages that the bytes in memory map: physical address, flags, size of the page, contiguous."""
    pages = {}

    def visit(level: int, table: int, base: int) -> None:
        shape = levels[level]
        assert table in memory.tables and table % shape.align == 0
        for index in range(1 << shape.bits):
            at = table + index * shape.entry_bytes
            entry = int.from_bytes(memory.data[at : at + shape.entry_bytes], "little")
            assert entry >> 4 & 15 == level
            virtual = base + (index << shape.shift)
            if entry & VALID and entry & LEAF:
                assert shape.leaf
                for offset in range(0, 1 << shape.shift, PAGE):
                    around = 1 << (entry >> 11 & 31)
                    pages[virtual + offset] = (entry >> 16) + offset, entry >> 8 & 7, 1 << shape.shift, around
            elif entry & VALID:
                visit(level + 1, entry >> 16, virtual)

    visit(0, root, 0)
    return pages


steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 1 << 12), st.integers(1, 600), st.integers(0, 1 << 12), st.integers(0, 7)),
    min_size=1, max_size=40,
)  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([1, 8, 64]))
def test_against_a_dictionary_of_pages(name: str, program: list[tuple[bool, int, int, int, int]], unit: int) -> None:
    levels, memory = SHAPES[name], Memory()
    tables = PageTables(levels, Coder(), memory, memory.invalidate)
    memory.cached.clear()  # nobody walks them yet
    expected: dict[int, tuple[int, int]] = {}
    for insert, virtual, count, physical, flags in program:
        virtual, physical = virtual % (tables.nbytes // PAGE) * PAGE, physical * PAGE * unit
        virtual -= virtual % (PAGE * unit)
        nbytes = min(count * PAGE, tables.nbytes - virtual)
        wanted = range(virtual, virtual + nbytes, PAGE)
        if insert:
            if any(page in expected for page in wanted):
                with pytest.raises(KeyError, match="mapped already"):
                    tables.map(virtual, physical, nbytes, flags)
            else:
                tables.map(virtual, physical, nbytes, flags)
                expected |= {page: (physical + page - virtual, flags) for page in wanted}
        elif all(page in expected for page in wanted):
            tables.unmap(virtual, nbytes)
            for page in wanted:
                del expected[page]
        else:
            with pytest.raises(KeyError, match="not mapped"):
                tables.unmap(virtual, nbytes)
        assert not memory.cached, "the hardware was not told"
        found = walk(levels, memory, tables.root)
        assert {page: row[:2] for page, row in found.items()} == expected
        for page, (at, _, size, around) in found.items():
            mapping = tables.lookup(page)
            assert mapping is not None and mapping.nbytes == size
            assert mapping.physical + page - mapping.virtual == at
            first = page - page % around
            assert all(found[i][0] - i == at - page for i in range(first, first + around, PAGE))
    for page in list(expected):
        tables.unmap(page, PAGE)
    assert set(memory.tables) == {tables.root}, "tables are kept that lead nowhere"


def test_the_largest_page_that_fits() -> None:
    memory = Memory()
    tables = PageTables(FOUR, Coder(), memory, memory.invalidate)
    tables.map(0x380, 0x4380, 0x1000, 5)  # from 0x380 to 0x1380: one page of 1024 bytes beside smaller ones
    sizes = [(mapping.virtual, mapping.nbytes) for mapping in tables.mappings(0, tables.nbytes)]
    assert sizes == [(0x380, 0x80), (0x400, 0x400), (0x800, 0x400), (0xC00, 0x400), (0x1000, 0x80), (0x1080, 0x80),
                     (0x1100, 0x80), (0x1180, 0x80), (0x1200, 0x80), (0x1280, 0x80), (0x1300, 0x80)]  # fmt: skip
    found = walk(FOUR, memory, tables.root)
    assert found[0x800][3] == 0x800 and found[0x400][3] == 0x400 and found[0x1200][3] == 0x100
    tables.unmap(0x820, 0x10)  # in the midst of a large page
    assert tables.lookup(0x820) is None and tables.lookup(0x830) is not None
    small = tables.lookup(0x810)
    assert small is not None and (small.physical, small.nbytes, small.flags) == (0x4810, 0x10, 5)


@pytest.mark.parametrize("limit", range(0x40, 0x1000, 0x40))
def test_without_memory_nothing_changes(limit: int) -> None:
    memory = Memory(limit)
    try:
        tables = PageTables(FOUR, Coder(), memory, memory.invalidate)
    except MemoryError:
        return
    try:
        tables.map(0x400, 0x400, 0x400, 1)
    except MemoryError:
        assert walk(FOUR, memory, tables.root) == {} and set(memory.tables) == {tables.root}
        return
    before = {page: row[:2] for page, row in walk(FOUR, memory, tables.root).items()}
    for insert in (True, False):
        try:
            if insert:
                tables.map(0x2010, 0x30, 0x300)
            else:
                tables.unmap(0x410, 0x3D0)
        except MemoryError:
            assert {page: row[:2] for page, row in walk(FOUR, memory, tables.root).items()} == before
        else:
            before = {page: row[:2] for page, row in walk(FOUR, memory, tables.root).items()}


def test_what_is_refused() -> None:
    memory = Memory()
    with pytest.raises(ValueError, match="last level"):
        PageTables((Level(13, 3, leaf=True), Level(10, 3)), Coder(), memory)
    with pytest.raises(ValueError, match="cannot stand over"):
        PageTables((Level(14, 3), Level(10, 3, leaf=True)), Coder(), memory)
    tables = PageTables(FOUR, Coder(), memory)
    for virtual, physical, nbytes in ((8, 0, 16), (0, 8, 16), (0, 0, 8), (0, 0, 0), (0, -16, 16)):
        with pytest.raises(ValueError, match=r"whole pages|no multiple"):
            tables.map(virtual, physical, nbytes)
    with pytest.raises(ValueError, match="reach out"):
        tables.map(tables.nbytes - 16, 0, 32)
    with pytest.raises(ValueError, match="reach out"):
        tables.unmap(tables.nbytes, 16)
