"""Blocks of one large mapping that is shared with another process, and their allocator."""

from __future__ import annotations

import ctypes
import mmap

from ..device.allocator import BufferOptions
from ..host.libc import libc
from .gaps import Gap, Gaps
from .host import ALIGNMENT, HostAllocator, HostMemory

_MADV_REMOVE = 9
_LARGE = 1 << 20


class Arena(Gaps):
    """Blocks of a mapping: the first gap that is large enough is taken.

    Args:
      memory: the mapping.

    Attributes:
      address: where it begins.

    Example:
      >>> arena = Arena(mmap.mmap(-1, 4096))
      >>> first, second = arena.allocate(100), arena.allocate(10)
      >>> second.address - first.address
      128
      >>> del first, second
      >>> arena.gaps
      [(0, 4096)]
    """

    def __init__(self, memory: mmap.mmap) -> None:
        super().__init__(len(memory))
        self.memory = memory
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def allocate(self, nbytes: int) -> HostMemory:
        """A block, given back when it is forgotten.

        Raises:
          MemoryError: if no gap is large enough.
        """
        size = max(-(-nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        offset = self.take(size)
        if offset is None:
            raise MemoryError(f"no {size} bytes in one piece are left of {len(self.memory)} that are shared")
        return HostMemory(self.address + offset, nbytes, _Piece(self, offset, size))

    def _freed(self, part: Gap, gap: Gap) -> None:
        """Gives the system the pages of a large block back."""
        offset, size = part
        if size >= _LARGE:
            page = mmap.PAGESIZE
            first, end = -(-offset // page) * page, (offset + size) // page * page
            libc().madvise(self.address + first, end - first, _MADV_REMOVE)  # a hint: it may fail


class _Piece:
    """What a block holds on to."""

    def __init__(self, arena: Arena, offset: int, size: int) -> None:
        self.arena, self.offset, self.size = arena, offset, size

    def __del__(self) -> None:
        self.arena.give_back(self.offset, self.size)


class SharedAllocator(HostAllocator):
    """Memory of the host that another process sees as well."""

    def __init__(self, device: str, arena: Arena) -> None:
        super().__init__(device)
        self.arena = arena

    def _alloc(self, nbytes: int, options: BufferOptions) -> HostMemory:
        if options.external_ptr is not None:
            return super()._alloc(nbytes, options)
        return self.arena.allocate(nbytes)
