"""Host memory: aligned blocks, with huge pages for the large ones, and their allocator."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from gc import is_finalized
from typing import Any

from tg_lazy import ContextVar

from ..device.allocator import DEFAULT_OPTIONS, Allocator, BufferOptions, LRUAllocator
from ..host.libc import libc
from .huge_pages import HUGE_BYTES, LEAST_BYTES, Region, ask_for_huge_pages, huge_pages
from .mapped import MappedMemory

# a debugging aid: a kernel that reads or writes outside of a buffer is stopped by the processor
GUARD: ContextVar[int] = ContextVar("CPU_GUARD", 0)

ALIGNMENT = 64
_GONE = "freed, or handed to another object"
_KEPT = "in an allocator's cache"


class HostMemory(MappedMemory):
    """A block of this process's memory.

    Attributes:
      address: where it begins.
      nbytes: its size.
      owner: what keeps the memory alive; the block frees it itself if this is None.
      region: the huge pages that it is a part of, which then take it back; None: ``malloc`` gave it.
    """

    __slots__ = ("owner", "region")

    def __init__(self, address: int, nbytes: int, owner: object | None, region: Region | None = None) -> None:
        self.address, self.nbytes, self.region, self.owner = address, nbytes, region, owner
        self._exports = ()

    @classmethod
    def allocate(cls, nbytes: int) -> HostMemory:
        """``nbytes`` bytes, aligned to a cache line.

        Raises:
          MemoryError: if the system has no such block.
        """
        large = nbytes >= 2 * HUGE_BYTES
        if LEAST_BYTES <= nbytes and not large and (pages := huge_pages()) is not None:
            place = pages.allocate(nbytes)
            if place is not None:
                return cls(place[0], nbytes, None, place[1])
        found = ctypes.c_void_p()
        if libc().posix_memalign(ctypes.byref(found), HUGE_BYTES if large else ALIGNMENT, max(nbytes, 1)) != 0:
            raise MemoryError(f"the system refuses {nbytes} bytes")
        assert found.value is not None
        if large:
            ask_for_huge_pages(found.value, nbytes)
        return cls(found.value, nbytes, None)

    @classmethod
    def guarded(cls, nbytes: int) -> HostMemory:
        """``nbytes`` bytes with a page that nobody may touch right behind them (``CPU_GUARD=1``) or before (``2``).

        To the byte: what lies behind a page's end is aligned as its size is, hence to its elements.

        Raises:
          MemoryError: if the system has no such block.
        """
        page = mmap.PAGESIZE
        whole = (nbytes + page - 1) // page * page
        try:
            block = mmap.mmap(-1, whole + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, ValueError, OverflowError) as error:
            raise MemoryError(str(error)) from None
        first = ctypes.addressof(ctypes.c_char.from_buffer(block)) + page
        libc().mprotect(first - page, page, 0)
        libc().mprotect(first + whole, page, 0)
        return cls(first if GUARD.value == 2 else first + whole - nbytes, nbytes, block)

    @property
    def block(self) -> HostMemory:
        """The whole block that it belongs to."""
        return self.owner if isinstance(self.owner, HostMemory) else self

    def __del__(
        self, libc: Callable[[], ctypes.CDLL] = libc, finalizing: Callable[[], bool] = sys.is_finalizing
    ) -> None:
        # bound as a default because the module's names are gone when the interpreter ends
        try:
            mine = self.owner is None
        except AttributeError:  # a signal ended its making
            return
        if mine:
            self.owner = _GONE
            if self.region is None:
                libc().free(self.address)
            elif not finalizing():
                self.region.free(self.address, self.nbytes)

    def __repr__(self) -> str:
        return f"<HostMemory {self.nbytes} bytes at {self.address:#x}>"


def physical_memory() -> int | None:
    """Bytes of memory that this process may use: the machine's, or the limit of its control group if that is less."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        pass
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                found.append(int(file.read()))
        except (OSError, ValueError):
            continue
    return min(found, default=None)


class HostAllocator(LRUAllocator[HostMemory]):
    """Memory of the host."""

    supports_offset = True
    arenas = True

    def __init__(self, device: str = "CPU") -> None:
        limit = physical_memory()
        super().__init__(device, limit, limit // 4 if limit else 1 << 62)

    def _alloc(self, nbytes: int, options: BufferOptions) -> HostMemory:
        if options.external_ptr is not None:
            return HostMemory(options.external_ptr, nbytes, options)
        return HostMemory.allocate(nbytes)

    def alloc(self, nbytes: int, options: BufferOptions = DEFAULT_OPTIONS) -> HostMemory:
        """A block from the cache or a new one; a guarded one is always new.

        Raises:
          ValueError: if ``nbytes`` is negative.
          OutOfMemory: if there is not so much, even with the cache emptied.
        """
        if not GUARD.value or options.external_ptr is not None or nbytes < 0:
            return LRUAllocator.alloc(self, nbytes, options)
        try:
            block = HostMemory.guarded(nbytes)
        except MemoryError as error:
            raise self._out_of_memory(nbytes, str(error)) from None
        self.account(self._round(nbytes), 1)  # as it will be freed, whatever the setting is then
        return block

    @property
    def shares_blocks(self) -> bool:
        """Not where buffers are guarded: parts of one block have each other for neighbours."""
        return self.arenas and not GUARD.value

    def recycle(self, opaque: HostMemory) -> HostMemory | None:
        """The block, unless its memory is not its own, or a view of it is in other hands."""
        if opaque.owner is not None or (opaque._exports and opaque.exported):
            return None
        if is_finalized(opaque):  # by the collector, which does so once: the memory wants another object
            opaque.owner = _GONE
            opaque = HostMemory(opaque.address, opaque.nbytes, None, opaque.region)
        opaque.owner = _KEPT
        return opaque

    def revive(self, opaque: HostMemory) -> HostMemory:
        """The block, which frees its memory itself again."""
        if is_finalized(opaque):
            return HostMemory(opaque.address, opaque.nbytes, None, opaque.region)
        opaque.owner = None
        return opaque

    def _free(self, opaque: HostMemory, options: BufferOptions) -> None:
        if opaque.owner is _KEPT:
            self.revive(opaque)  # and lets go of it

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not finalizing():  # everything goes then, and the modules' names with it
            self.free_cache()  # what it keeps does not free itself

    def make_room(self) -> None:
        """Empties the cache: to fill a block with zeros again takes a thousandth of the time that a kernel takes."""
        self.free_cache()

    def copyin(self, dest: HostMemory, src: memoryview) -> None:
        """Copies host memory."""
        dest.view(src.nbytes)[:] = src

    def copyout(self, dest: memoryview, src: HostMemory) -> None:
        """Copies host memory."""
        dest[:] = src.view(dest.nbytes)

    def transfer(self, dest: HostMemory, src: HostMemory, nbytes: int, source: Allocator[Any]) -> bool:
        """Copies between two CPU devices."""
        if not isinstance(source, HostAllocator):
            return False
        ctypes.memmove(dest.address, src.address, nbytes)
        return True

    def as_buffer(self, opaque: HostMemory, nbytes: int) -> memoryview:
        """The memory itself."""
        return opaque.view(nbytes)

    def export(self, opaque: HostMemory, nbytes: int) -> memoryview:
        """The memory itself, kept from others while the view lives."""
        return opaque.export(nbytes)

    def offset(self, opaque: HostMemory, nbytes: int, byte_offset: int) -> HostMemory:
        """A part of the block, which it keeps alive."""
        return HostMemory(opaque.address + byte_offset, nbytes, opaque.block)
