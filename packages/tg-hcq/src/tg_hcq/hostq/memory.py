"""The address space of the host-thread devices: which ranges they may touch, how, and which frames are behind them."""

from __future__ import annotations

import bisect
import os
import threading
from enum import IntFlag
from typing import Final

from tg_runtime.host.interrupts import Uninterrupted

from ..core.fileio import MMIO
from ..core.system import System, real_system
from ..core.tlsf import TLSF


class Access(IntFlag):
    """What may be done with memory."""

    READ = 1
    WRITE = 2
    EXECUTE = 4


_BOTH: Final = Access.READ | Access.WRITE
_BANK: Final = 1 << 46
"""Bytes of physical addresses in each of the two banks: more than any machine has memory."""
_PIECES: Final = 8


class HostMemory:
    """Ranges of this process that are mapped to a device: a software page table that knows valid from invalid.

    Memory that was allocated here stays until it is unmapped, as on a device, whoever drops the buffer. It has physical
    addresses of its own, in two banks: memory that need not be contiguous is spread over both.

    Example:
      >>> memory = HostMemory()
      >>> address = memory.allocate(10000).address
      >>> memory.view(address, 10000)
      <MMIO 10000 bytes at ... as B>
      >>> memory.view(address, 50000) is None, len(memory.frames(address))
      (True, 3)
    """

    def __init__(self) -> None:
        # reentrant: the collector may free a buffer while this thread is mapping one
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):  # a child, which may open a device of its own, finds the table whole
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
            )
        # Start, end, access and owner, sorted by start. One list, changed by one call: a signal's handler that raises
        # comes before it or after it. The search compares with (start,), so owners are never compared.
        self._ranges: list[tuple[int, int, Access, object]] = []
        self._page = real_system().page_nbytes
        self._banks = [TLSF(bank * _BANK, _BANK, self._page) for bank in range(2)]
        self._frames: dict[int, list[tuple[int, int]]] = {}

    def allocate(
        self, nbytes: int, system: System | None = None, access: Access = _BOTH, contiguous: bool = False
    ) -> MMIO:
        """Zeroed, page-aligned memory of a system (the real one if None), mapped to the device.

        Args:
          nbytes: how much.
          system: whose memory.
          access: what the device may do with it.
          contiguous: it is one range of physical addresses.

        Raises:
          MemoryError: if the system has none.
        """
        view = (system or real_system()).allocate(nbytes)
        with Uninterrupted(), self._lock:
            self._frames[view.address] = self._take(view.nbytes, contiguous)
            self.map(view.address, view.nbytes, view, access)
        return view

    def _take(self, nbytes: int, contiguous: bool) -> list[tuple[int, int]]:
        pages = nbytes // self._page
        pieces = 1 if contiguous else min(_PIECES, pages)
        sizes = [(pages * (i + 1) // pieces - pages * i // pieces) * self._page for i in range(pieces)]
        return [(self._banks[i % 2].alloc(size), size) for i, size in enumerate(sizes)]

    def frames(self, address: int) -> list[tuple[int, int]]:
        """The physical ranges (start, bytes) of what was allocated at an address, in the order of its addresses.

        Raises:
          KeyError: if nothing was.
        """
        return self._frames[address]

    def map(self, address: int, nbytes: int, owner: object = None, access: Access = _BOTH) -> None:
        """Lets the device touch a range; ``owner`` is kept until it is unmapped. Ranges may repeat and nest."""
        with self._lock:
            at = bisect.bisect_left(self._ranges, (address,))
            self._ranges.insert(at, (address, address + nbytes, access, owner))

    def unmap(self, address: int, nbytes: int) -> None:
        """Takes back one mapping of exactly this range.

        Raises:
          ValueError: if there is none.
        """
        with Uninterrupted(), self._lock:
            at = bisect.bisect_left(self._ranges, (address,))
            while at < len(self._ranges) and self._ranges[at][0] == address:
                if self._ranges[at][1] == address + nbytes:
                    for start, _ in self._frames.pop(address, ()):
                        self._banks[start // _BANK].free(start)
                    del self._ranges[at]
                    return
                at += 1
        raise ValueError(f"{nbytes} bytes at {address:#x} are not mapped")

    def view(self, address: int, nbytes: int, access: Access = Access.READ) -> MMIO | None:
        """These bytes, which the view keeps alive; None unless one range holds them all and allows the access."""
        with self._lock:
            at = bisect.bisect_left(self._ranges, (address + 1,)) - 1
            # ranges of callers may nest, so a wider one can begin before the nearest
            while at >= 0:
                _, end, allowed, owner = self._ranges[at]
                if address + nbytes <= end and allowed & access == access:
                    return MMIO(address, nbytes, "B", owner)
                at -= 1
            return None
