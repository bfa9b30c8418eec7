"""Blocks of one large mapping that is shared with another process, and their allocator."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_left, insort
from collections import deque

from ..device.allocator import BufferOptions
from ..host.libc import libc
from ..host.locks import fork_safe_lock
from .host import ALIGNMENT, HostAllocator, HostMemory

_MADV_REMOVE = 9
_LARGE = 1 << 20


class Arena:
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
        self.memory = memory
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._gaps = [(0, len(memory))]  # offset, size
        self._returned: deque[tuple[int, int]] = deque()
        self._lock = fork_safe_lock()

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Offsets and sizes of what is free, in order; no two of them touch."""
        with self._lock:
            self._sort_in()
            return list(self._gaps)

    def allocate(self, nbytes: int) -> HostMemory:
        """A block, given back when it is forgotten.

        Raises:
          MemoryError: if no gap is large enough.
        """
        size = max(-(-nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        with self._lock:
            self._sort_in()
            for number, (offset, found) in enumerate(self._gaps):
                if found >= size:
                    self._gaps[number : number + 1] = [(offset + size, found - size)] if found > size else []
                    return HostMemory(self.address + offset, nbytes, _Piece(self, offset, size))
        raise MemoryError(f"no {size} bytes in one piece are left of {len(self.memory)} that are shared")

    def give_back(self, offset: int, size: int) -> None:
        """Takes a block back; the garbage collector may come here in the middle of an allocation."""
        if size >= _LARGE:
            page = mmap.PAGESIZE
            first, end = -(-offset // page) * page, (offset + size) // page * page
            libc().madvise(self.address + first, end - first, _MADV_REMOVE)  # a hint: it may fail
        self._returned.append((offset, size))

    def _sort_in(self) -> None:
        """Puts what was taken back among the gaps."""
        while self._returned:
            offset, size = self._returned.popleft()
            at = bisect_left(self._gaps, (offset, 0))
            if at < len(self._gaps) and self._gaps[at][0] == offset + size:
                size += self._gaps.pop(at)[1]
            if at and sum(self._gaps[at - 1]) == offset:
                before = self._gaps.pop(at - 1)
                offset, size = before[0], before[1] + size
            insort(self._gaps, (offset, size))


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
