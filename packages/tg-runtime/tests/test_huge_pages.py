"""Blocks that share huge pages: apart from one another, and given back to the system when nobody has them."""

from __future__ import annotations

import ctypes
import gc
import itertools
import mmap
import random
import sys
from collections.abc import Callable
from itertools import accumulate, pairwise
from types import FrameType
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_runtime import Buffer, Device
from tg_runtime.memory import gaps
from tg_runtime.memory.host import HostAllocator, HostMemory
from tg_runtime.memory.huge_pages import HUGE_BYTES, LEAST_BYTES, REGION_BYTES, HugePages, Region, huge_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="huge pages are asked for by Linux's madvise")
PAGE = mmap.PAGESIZE


def in_pages(nbytes: int) -> int:
    return -(-nbytes // PAGE) * PAGE


def holds(address: int, nbytes: int, byte: int) -> bool:
    """Whether all bytes of a block are the same one."""
    return ctypes.string_at(address, nbytes) == bytes([byte]) * nbytes


@pytest.mark.parametrize("seed", range(5))
def test_blocks_keep_what_is_in_them(seed: int) -> None:
    """Whatever is freed beside them; blocks and gaps are the whole region at any time, and gaps that touch are one."""
    draw, region = random.Random(seed), Region()
    blocks: list[tuple[int, int, int]] = []
    for byte in range(1, 120):
        for _ in range(draw.choice((0, 0, 1, 2, 5))):
            if blocks:
                address, nbytes, held = blocks.pop(draw.randrange(len(blocks)))
                assert holds(address, nbytes, held)
                region.free(address, nbytes)
        nbytes = draw.choice((draw.randrange(LEAST_BYTES, 2 * HUGE_BYTES), draw.randrange(LEAST_BYTES, 300_000), 131))
        found = region.allocate(nbytes)
        if found is not None:
            assert found % PAGE == 0
            ctypes.memset(found, byte, nbytes)
            blocks.append((found, nbytes, byte))
        assert all(one[0] + one[1] < other[0] for one, other in pairwise(region.gaps))
        parts = sorted([*region.gaps, *((address - region.address, in_pages(n)) for address, n, _ in blocks)])
        assert [start for start, _ in parts] == [*accumulate((size for _, size in parts[:-1]), initial=0)]
        assert sum(parts[-1]) == REGION_BYTES
    assert all(holds(*block) for block in blocks)
    for address, nbytes, _ in blocks:
        region.free(address, nbytes)
    assert region.gaps == [(0, REGION_BYTES)]


def test_the_system_gets_pages_back_that_nobody_has() -> None:
    """A huge page that several blocks shared goes with the last of them: when it is read again, there are zeros."""
    region, size = Region(), HUGE_BYTES // 2 + 3 * PAGE
    blocks = [region.allocate(size) for _ in range(4)]
    assert [address is not None and address - region.address for address in blocks] == [n * size for n in range(4)]
    ctypes.memset(region.address, 7, 4 * size)
    region.free(region.address + size, size)  # on the second page, where the third block begins
    assert holds(region.address, HUGE_BYTES, 7)
    region.free(region.address, size)
    assert holds(region.address, HUGE_BYTES, 0) and holds(region.address + 2 * size, 2 * size, 7)
    region.free(region.address + 3 * size, size)
    assert holds(region.address + 2 * size, size, 7)
    region.free(region.address + 2 * size, size)
    assert holds(region.address, 4 * size, 0)


def test_there_are_as_many_regions_as_it_takes() -> None:
    pages, size = HugePages(), HUGE_BYTES + PAGE
    found = [pages.allocate(size) for _ in range(40)]
    regions = {id(place[1]): place[1] for place in found if place is not None}
    each = REGION_BYTES // size
    assert None not in found and len(regions) == -(-40 // each)
    for place in found:
        assert place is not None
        place[1].free(place[0], size)
    assert all(region.gaps == [(0, REGION_BYTES)] for region in regions.values())
    again = pages.allocate(size)
    assert again is not None and id(again[1]) in regions, "one that is there"


def test_host_memory_is_part_of_a_region_until_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    if huge_pages() is None:
        pytest.skip("the system has no huge pages of 2 MiB")
    pages = HugePages()
    monkeypatch.setattr("tg_runtime.memory.host.huge_pages", lambda: pages)
    allocator = HostAllocator("CPU")
    sizes = [LEAST_BYTES - 64, LEAST_BYTES, 300_032, 2 * HUGE_BYTES - 64, 2 * HUGE_BYTES]
    blocks = [allocator.alloc(size) for size in sizes]
    assert [block.region is not None for block in blocks] == [False, True, True, True, False]
    (region,) = {block.region for block in blocks if block.region is not None}
    places = {block.address: block.nbytes for block in blocks if block.region is region}
    assert sum(size for _, size in region.gaps) == REGION_BYTES - sum(map(in_pages, places.values()))
    while blocks:  # kept by the allocator, and handed out again
        block = blocks.pop()
        allocator.free(block, block.nbytes)
    again = allocator.alloc(300_032)
    assert again.address in places and again.region is region
    del block
    allocator.free_cache()
    assert sum(size for _, size in region.gaps) == REGION_BYTES - in_pages(300_032)
    del again
    assert region.gaps == [(0, REGION_BYTES)]


def test_the_collector_frees_a_block_and_its_buffer_in_any_order() -> None:
    """A block that it finalised comes back as another object, whose memory is still the region's."""
    if huge_pages() is None:
        pytest.skip("the system has no huge pages of 2 MiB")
    allocator = Device["CPU"].allocator
    allocator.free_cache()  # type: ignore[attr-defined]
    cycle: list[object] = [Buffer("CPU", 333_333, dtypes.uint8).allocate()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    again = allocator.alloc(333_333)
    assert again.region is not None and not gc.is_finalized(again)
    allocator.free(again, 333_333)


def test_malloc_takes_over_where_no_mapping_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no more memory")

    pages = HugePages()
    monkeypatch.setattr("tg_runtime.memory.host.huge_pages", lambda: pages)
    monkeypatch.setattr(mmap, "mmap", refused)
    block = HostMemory.allocate(300_032)
    assert block.region is None and block.address % 64 == 0
    ctypes.memset(block.address, 1, block.nbytes)


class InTheMiddle:
    """Runs something before a given line of the module of gaps, as the collector may run a finalizer there."""

    def __init__(self, line: int, run: Callable[[], None]) -> None:
        self.lines, self.line, self.run = 0, line, run

    def __call__(self, frame: FrameType, event: str, arg: object) -> InTheMiddle | None:
        if frame.f_code.co_filename != gaps.__file__:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.line:
                self.run()
        return self

    def during(self, work: Callable[[], None]) -> bool:
        """Whether the work had so many lines."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            work()
        finally:
            sys.settrace(before)
        return self.lines >= self.line


@pytest.mark.parametrize("work", ["take", "give back"])
def test_finalizers_take_and_give_back_in_the_middle(work: str) -> None:
    """At every line: blocks do not overlap, what a finalizer wrote stays, and nothing is lost."""
    size = HUGE_BYTES
    for line in itertools.count(1):
        region = Region()
        blocks = [region.allocate(size) for _ in range(5)]
        held = dict.fromkeys([place for place in blocks if place is not None], 0)
        for place in (blocks[1], blocks[3]):
            assert place is not None and held.pop(place) == 0
            region.free(place, size)

        def take(byte: int, region: Region = region, held: dict[int, int] = held) -> None:
            place = region.allocate(size)
            assert place is not None and place not in held
            held[place] = byte
            ctypes.memset(place, byte, size)

        def give_back(number: int, region: Region = region, held: dict[int, int] = held) -> None:
            place = region.address + number * size
            del held[place]
            region.free(place, size)

        def finalizer(take: Callable[[int], None] = take, give_back: Callable[[int], None] = give_back) -> None:
            take(7)
            give_back(4)
            take(8)

        def worked(take: Callable[[int], None] = take, give_back: Callable[[int], None] = give_back) -> None:
            take(9) if work == "take" else give_back(2)

        if not InTheMiddle(line, finalizer).during(worked):
            break
        assert all(holds(place, size, byte) for place, byte in held.items())
        parts = sorted([*region.gaps, *((place - region.address, size) for place in held)])
        assert [start for start, _ in parts] == [*accumulate((part for _, part in parts[:-1]), initial=0)]
        assert sum(parts[-1]) == REGION_BYTES
        assert all(sum(one) < other[0] for one, other in pairwise(region.gaps))
    assert line > 10
