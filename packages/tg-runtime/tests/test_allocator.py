"""Allocators: accounts, the cache, and what is said when memory ends."""

from __future__ import annotations

import gc
import mmap
import random
from collections.abc import Iterator
from itertools import accumulate, pairwise

import pytest

from tg_dtype import dtypes
from tg_lazy import Context
from tg_runtime import Buffer, BufferOptions, Device, GlobalCounters, LRUAllocator, OutOfMemory
from tg_runtime.memory.arena import Arena, _Piece
from tg_runtime.memory.host import HostAllocator, HostMemory


class Block:
    """Memory that a test allocator gives."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Small(LRUAllocator[Block]):
    """A device with 1000 bytes that says no by itself."""

    granularity = 1

    def __init__(self) -> None:
        super().__init__("SMALL")
        self.given, self.freed = 0, 0

    def _alloc(self, nbytes: int, options: BufferOptions) -> Block:
        if self.given + nbytes > 1000:
            raise MemoryError("the device is full")
        self.given += nbytes
        return Block(nbytes)

    def _free(self, opaque: Block, options: BufferOptions) -> None:
        self.given -= opaque.nbytes
        self.freed += 1

    def copyin(self, dest: Block, src: memoryview) -> None:
        pass

    def copyout(self, dest: memoryview, src: Block) -> None:
        pass


@pytest.fixture
def small() -> Iterator[Small]:
    before = GlobalCounters.mem_used
    yield Small()
    GlobalCounters.mem_used = before


def test_freed_blocks_are_used_again(small: Small) -> None:
    a = small.alloc(100)
    small.free(a, 100)
    assert (small.used, small.cached, small.freed) == (0, 100, 0)
    assert small.alloc(100) is a
    assert (small.used, small.cached) == (100, 0)
    assert small.alloc(100) is not a
    assert small.alloc(50) is not a


def test_memory_error_empties_the_cache_and_tries_again(small: Small) -> None:
    small.free(small.alloc(600), 600)
    assert small.alloc(700).nbytes == 700
    assert (small.freed, small.cached, small.given) == (1, 0, 700)


def test_what_only_cycles_hold_is_collected(small: Small) -> None:
    class Holder:
        def __init__(self) -> None:
            self.me, self.block = self, small.alloc(600)

        def __del__(self) -> None:
            small.free(self.block, 600)

    gc.disable()
    try:
        Holder()
        assert small.alloc(700).nbytes == 700
    finally:
        gc.enable()


def test_out_of_memory_says_what_was_asked_and_held(small: Small) -> None:
    small.alloc(300)
    small.free(small.alloc(500), 500)
    with pytest.raises(OutOfMemory) as caught:
        small.alloc(800)
    text = str(caught.value)
    assert "SMALL: out of memory: 800 B asked (800 bytes), 300 B held by 1 buffers, 0 B in the cache" in text
    assert "the device is full" in text
    assert isinstance(caught.value, MemoryError)
    assert small.used == 300


def test_free_cache(small: Small) -> None:
    for size in (10, 20, 20):
        small.free(small.alloc(size), size)
    assert small.cached == 30
    small.free_cache()
    assert (small.cached, small.given, small.freed) == (0, 0, 2)


def test_cache_limit(small: Small) -> None:
    small.cache_limit = 100
    small.free(small.alloc(60), 60)
    small.free(small.alloc(70), 70)
    assert (small.cached, small.given) == (0, 0)


def test_lru_off_and_nolru(small: Small) -> None:
    with Context(LRU=0):
        small.free(small.alloc(10), 10)
    options = BufferOptions(nolru=True)
    small.free(small.alloc(10, options), 10, options)
    assert (small.cached, small.freed) == (0, 2)


@pytest.mark.usefixtures("collected")
def test_mem_used_counts_what_buffers_hold(small: Small) -> None:
    before = GlobalCounters.mem_used
    a = small.alloc(128)
    assert GlobalCounters.mem_used == before + 128
    small.free(a, 128)
    assert GlobalCounters.mem_used == before


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_negative_and_huge(device: str) -> None:
    with pytest.raises(ValueError, match="cannot have -1 elements"):
        Buffer(device, -1, dtypes.float32)
    allocator = Device[device].allocator
    with pytest.raises(ValueError, match="cannot allocate -4 bytes"):
        allocator.alloc(-4)
    used = allocator.used
    for size in (2**70, 2**60):
        with pytest.raises(OutOfMemory, match=f"{device}: out of memory: .* asked"):
            Buffer(device, size, dtypes.float32).allocate()
    assert allocator.used == used


def test_host_limit_names_the_largest_holders() -> None:
    allocator = HostAllocator("CPU")
    allocator.limit = 8 << 20
    big = Buffer("CPU", 1 << 20, dtypes.float32)
    block = allocator.alloc(big.nbytes)
    allocator.note_holder(big, big.nbytes)
    with pytest.raises(OutOfMemory) as caught:
        allocator.alloc(5 << 20)
    text = str(caught.value)
    assert "5.00 MiB asked" in text
    assert "4.00 MiB held by 1 buffers, 0 B in the cache" in text
    assert text.splitlines()[1].strip().startswith("4.00 MiB  <Buffer CPU 1048576 x float32")
    assert "the limit is 8.00 MiB" in text
    allocator.free(block, big.nbytes)
    allocator.alloc(5 << 20)  # the cached 4 MiB had to go
    assert allocator.cached == 0


def test_host_memory_is_aligned() -> None:
    for size in (1, 100, 5000, 9 << 20):
        assert HostMemory.allocate(size).address % 64 == 0


def test_exported_memory_is_not_given_to_others() -> None:
    allocator = Device["CPU"].allocator
    buffer = Buffer("CPU", 1000, dtypes.uint8).copyin(memoryview(bytes(range(250)) * 4))
    view = buffer.as_buffer()
    part = buffer.view(10, dtypes.uint8, 100).as_buffer()
    address = buffer.opaque.address
    del buffer
    other = allocator.alloc(1000)
    assert other.address != address
    assert bytes(view) == bytes(range(250)) * 4
    assert bytes(part) == bytes(range(100, 110))
    allocator.free(other, 1000)


def test_export_of_a_part_keeps_the_whole() -> None:
    buffer = Buffer("CPU", 777, dtypes.uint8).copyin(memoryview(bytes(777)))
    part = buffer.view(7, dtypes.uint8, 70).as_buffer()
    del buffer
    Buffer("CPU", 777, dtypes.uint8).copyin(memoryview(b"\xff" * 777))
    assert bytes(part) == bytes(7)


def test_garbage_cycle_does_not_free_cached_memory() -> None:
    Device["CPU"].allocator.free_cache()  # type: ignore[attr-defined]
    cycle: list[object] = [Buffer("CPU", 4567, dtypes.uint8).allocate()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    again = Device["CPU"].allocator.alloc(4567)
    # a block whose finalizer ran in the cycle must not come back: its memory would be the system's already
    assert not gc.is_finalized(again)
    assert again.owner is None
    Device["CPU"].allocator.free(again, 4567)


def test_guarded_memory_stops_an_overrun() -> None:
    import subprocess
    import sys

    code = (
        "import ctypes, sys; from tg_runtime.memory.host import HostMemory\n"
        "block = HostMemory.guarded(4096)\n"
        "ctypes.memset(block.address, 1, 4096); print('inside', flush=True)\n"
        "ctypes.memset(block.address, 1, 4097); print('outside')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "inside\n"
    assert done.returncode < 0


def place(block: HostMemory, arena: Arena) -> tuple[int, int]:
    """Where a block of an arena begins, and how much of the arena is taken for it."""
    assert isinstance(block.owner, _Piece)
    assert block.address == arena.address + block.owner.offset
    assert block.nbytes <= block.owner.size
    return block.owner.offset, block.owner.size


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_an_arena_never_overlap(seed: int) -> None:
    """Blocks and gaps are the whole mapping at any time; gaps that touch are one."""
    drawn, whole = random.Random(seed), 1 << 12
    arena = Arena(mmap.mmap(-1, whole))
    blocks: list[HostMemory] = []
    for _ in range(200):
        if blocks and drawn.random() < 0.5:
            del blocks[drawn.randrange(len(blocks))]
        else:
            try:
                blocks.append(arena.allocate(drawn.randrange(400)))
            except MemoryError:
                blocks.clear()
        assert all(one[0] + one[1] < other[0] for one, other in pairwise(arena.gaps))
        parts = sorted([*arena.gaps, *(place(block, arena) for block in blocks)])
        assert [start for start, _ in parts] == [*accumulate((size for _, size in parts[:-1]), initial=0)]
        assert sum(parts[-1]) == whole
    blocks.clear()
    assert arena.gaps == [(0, whole)]


def test_the_collector_comes_in_the_middle_of_an_allocation() -> None:
    """What it frees there neither overlaps with the block that is taken nor is lost."""
    arena = Arena(mmap.mmap(-1, 1 << 12))
    first, second, third = (arena.allocate(256) for _ in range(3))
    freed: list[HostMemory] = [first, third]
    del first, third

    class Sizes(list[tuple[int, int]]):
        def remove(self, value: tuple[int, int]) -> None:
            freed.clear()
            super().remove(value)

    arena._gaps = Sizes(arena._gaps)
    block = arena.allocate(64)
    assert not freed
    assert block.address == arena.address + 3 * 256
    assert arena.gaps == [(0, 256), (512, 256), (832, (1 << 12) - 832)]
    del block, second
    assert arena.gaps == [(0, 1 << 12)]


def test_external_memory() -> None:
    import ctypes

    for device in ("CPU", "NUMPY"):
        array = (ctypes.c_int32 * 4)(1, 2, 3, 4)
        options = BufferOptions(external_ptr=ctypes.addressof(array))
        buffer = Buffer(device, 4, dtypes.int32, options=options).allocate()
        assert buffer.as_buffer().cast("i").tolist() == [1, 2, 3, 4]
        buffer.copyin(memoryview(bytes(16)))
        assert list(array) == [0] * 4
