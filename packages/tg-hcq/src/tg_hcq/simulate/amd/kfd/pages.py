"""Memory that the kernel interface hands out: sparse files of which pages are taken, mapped and given back."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from ...engine import Memory
from .cards import PAGE

_PUNCH_HOLE: Final = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE (linux/falloc.h)
_DONTFORK: Final = 10  # MADV_DONTFORK (asm-generic/mman-common.h)


class Pool:
    """Pages of one memory.

    Args:
      nbytes: how much there is.

    Attributes:
      memory: all of it, as the GPU sees it.
      used: bytes that are taken.

    Example:
      >>> pool = Pool(1 << 20)
      >>> first, second = pool.take(5000), pool.take(4096)
      >>> pool.give(first, 5000)
      >>> pool.take(4096) == first, pool.used
      (True, 8192)
    """

    def __init__(self, nbytes: int) -> None:
        self.memory, self.used = Memory(nbytes), 0
        self._free = [(0, self.memory.nbytes)]

    def take(self, nbytes: int) -> int:
        """Zeroed pages in a row; the offset of the first.

        Raises:
          OSError: if there are not so many (ENOMEM).
        """
        size = -(-nbytes // PAGE) * PAGE
        for index, (start, end) in enumerate(self._free):
            if end - start >= size:
                self._free[index : index + 1] = [(start + size, end)] if end - start > size else []
                self.used += size
                return start
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    def give(self, offset: int, nbytes: int) -> None:
        """Gives pages back; whoever has them mapped finds zeros."""
        size = -(-nbytes // PAGE) * PAGE
        self.clear(offset, size)
        self.used -= size
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self._free, (offset, offset + size)]):
            if merged and merged[-1][1] == start:
                merged[-1] = merged[-1][0], end
            else:
                merged.append((start, end))
        self._free = merged

    def clear(self, offset: int, nbytes: int) -> None:
        """Makes whole pages zeros, which take no memory."""
        ctypes.CDLL(None).fallocate(
            self.memory.fd, _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(nbytes)
        )

    def map(self, address: int, nbytes: int, prot: int, flags: int, offset: int, *, inherit: bool = True) -> int:
        """Maps pages into the process; a child that is forked does not get them without ``inherit``."""
        found = self.memory.map(address, nbytes, prot, flags, offset)
        if not inherit:
            ctypes.CDLL(None).madvise(ctypes.c_void_p(found), ctypes.c_size_t(nbytes), _DONTFORK)
        return found

    def close(self) -> None:
        """Closes the descriptor; what is mapped stays."""
        self.memory.close()
