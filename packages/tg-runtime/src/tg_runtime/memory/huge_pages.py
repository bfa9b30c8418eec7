"""Huge pages for blocks that are smaller than one: they share mappings that the system backs with huge pages.

A processor remembers where some thousand pages lie. With pages of 4 KiB that is some MiB; a program that goes through
more has each page looked up in tables that lie in memory themselves, in a virtual machine in those of its host, too. A
weight of a model is often smaller than a huge page, and what ``malloc`` maps for it has small ones.

Source: Linux, Documentation/admin-guide/mm/transhuge.rst.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from pathlib import Path

from ..host.libc import libc
from ..host.locks import fork_safe_lock
from .gaps import Gap, Gaps

HUGE_BYTES = 2 << 20
"""A huge page of x86-64, and of AArch64 with pages of 4 KiB."""
LEAST_BYTES = 64 << 10
"""Smaller blocks stay with ``malloc``, which takes no page for each."""
REGION_BYTES = 16 * HUGE_BYTES
"""Address space of a mapping; pages of it that nobody has touched take no memory."""

_MADV_DONTNEED, _MADV_HUGEPAGE = 4, 14
_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")


def ask_for_huge_pages(address: int, nbytes: int) -> None:
    """Asks the system for huge pages in a range that begins with one; it may refuse."""
    libc().madvise(address, nbytes // HUGE_BYTES * HUGE_BYTES, _MADV_HUGEPAGE)


class Region(Gaps):
    """A mapping that the system backs with huge pages.

    Attributes:
      address: where it begins, a multiple of a huge page.

    Raises:
      OSError: if the system refuses the mapping.

    Example:
      >>> region = Region()
      >>> address = region.allocate(100_000)
      >>> (address - region.address) % mmap.PAGESIZE
      0
      >>> region.free(address, 100_000)
      >>> region.gaps == [(0, REGION_BYTES)]
      True
    """

    def __init__(self) -> None:
        super().__init__(REGION_BYTES)
        self._memory = mmap.mmap(-1, REGION_BYTES + HUGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-first // HUGE_BYTES) * HUGE_BYTES
        ask_for_huge_pages(self.address, REGION_BYTES)

    def allocate(self, nbytes: int) -> int | None:
        """The address of so many bytes; None if there is no room."""
        offset = self.take(_in_pages(nbytes))
        return None if offset is None else self.address + offset

    def free(self, address: int, nbytes: int) -> None:
        """Takes back what :meth:`allocate` gave."""
        self.give_back(address - self.address, _in_pages(nbytes))

    def _freed(self, part: Gap, gap: Gap) -> None:
        """Gives the system the huge pages of ``part`` back that lie in a gap as a whole."""
        first = max(part[0] // HUGE_BYTES * HUGE_BYTES, -(-gap[0] // HUGE_BYTES) * HUGE_BYTES)
        end = min(-(-sum(part) // HUGE_BYTES) * HUGE_BYTES, sum(gap) // HUGE_BYTES * HUGE_BYTES)
        if first < end:
            libc().madvise(self.address + first, end - first, _MADV_DONTNEED)


def _in_pages(nbytes: int) -> int:
    """Whole pages: blocks begin alike in them, as those that ``malloc`` maps do."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


class HugePages:
    """Blocks of regions, of which there are as many as were ever needed at a time."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._lock = fork_safe_lock()

    def allocate(self, nbytes: int) -> tuple[int, Region] | None:
        """The address of so many bytes and the region that they belong to, which frees them.

        Args:
          nbytes: no more than a region has.

        Returns:
          None if the system has no memory for another region.
        """
        with self._lock:
            for number, region in enumerate(self._regions):
                address = region.allocate(nbytes)
                if address is not None:
                    self._regions.insert(0, self._regions.pop(number))  # where there was room, more may be
                    return address, region
            try:
                region = Region()
            except (OSError, ValueError, OverflowError):
                return None
            address = region.allocate(nbytes)
            assert address is not None
            self._regions.insert(0, region)  # from now on finalizers take of it, too
            return address, region


@functools.cache
def huge_pages() -> HugePages | None:
    """This process's; None where the system has none of two MiB for who asks for them."""
    try:
        size = int((_SETTINGS / "hpage_pmd_size").read_text())
        offered = "[never]" not in (_SETTINGS / "enabled").read_text()
    except (OSError, ValueError):
        return None
    return HugePages() if offered and size == HUGE_BYTES else None
