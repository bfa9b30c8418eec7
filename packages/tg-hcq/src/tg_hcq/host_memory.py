"""The address space of the host-thread devices: which ranges they may touch."""

from __future__ import annotations

import bisect
import mmap
import threading

from .fileio import MMIO


class HostMemory:
    """Ranges of this process that are mapped to a device: a software page table that knows valid from invalid.

    Example:
        >>> memory = HostMemory()
        >>> view = memory.allocate(100)
        >>> memory.holds(view.address, 100), memory.holds(view.address, 5000)
        (True, False)
    """

    def __init__(self) -> None:
        # reentrant: the collector may free a buffer while this thread is mapping one
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._uses: list[int] = []

    def allocate(self, nbytes: int) -> MMIO:
        """Zeroed, page-aligned memory, mapped to the device and kept by the view.

        Raises:
            MemoryError: if the system has none.
        """
        size = -(-max(nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            pages = mmap.mmap(-1, size)
        except (OSError, OverflowError) as error:
            raise MemoryError(str(error)) from None
        view = MMIO.of(memoryview(pages))
        self.map(view.address, size)
        return view

    def map(self, address: int, nbytes: int) -> None:
        """Lets the device touch a range. The same range may be mapped more than once."""
        with self._lock:
            at = bisect.bisect_left(self._starts, address)
            if at < len(self._starts) and self._starts[at] == address and self._ends[at] == address + nbytes:
                self._uses[at] += 1
                return
            self._starts.insert(at, address)
            self._ends.insert(at, address + nbytes)
            self._uses.insert(at, 1)

    def unmap(self, address: int, nbytes: int) -> None:
        """Takes back one mapping of exactly this range.

        Raises:
            ValueError: if there is none.
        """
        with self._lock:
            at = bisect.bisect_left(self._starts, address)
            while at < len(self._starts) and self._starts[at] == address:
                if self._ends[at] == address + nbytes:
                    self._uses[at] -= 1
                    if not self._uses[at]:
                        del self._starts[at], self._ends[at], self._uses[at]
                    return
                at += 1
        raise ValueError(f"{nbytes} bytes at {address:#x} are not mapped")

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether one mapped range holds all of these bytes."""
        with self._lock:
            at = bisect.bisect_right(self._starts, address) - 1
            # Ranges of callers may nest, so a wider one can begin before the nearest.
            while at >= 0:
                if address + nbytes <= self._ends[at]:
                    return True
                at -= 1
            return False
