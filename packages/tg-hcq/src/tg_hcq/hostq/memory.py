"""The address space of the host-thread devices: which ranges they may touch."""

from __future__ import annotations

import bisect
import os
import threading

from ..core.fileio import MMIO
from ..core.system import System, real_system


class HostMemory:
    """Ranges of this process that are mapped to a device: a software page table that knows valid from invalid.

    Memory that was allocated here stays until it is unmapped, as on a device, whoever drops the buffer.

    Example:
      >>> memory = HostMemory()
      >>> address = memory.allocate(100).address
      >>> memory.view(address, 100)
      <MMIO 100 bytes at ... as B>
      >>> memory.view(address, 5000) is None
      True
    """

    def __init__(self) -> None:
        # reentrant: the collector may free a buffer while this thread is mapping one
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):  # a child, which may open a device of its own, finds the table whole
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
            )
        # Start, end and owner, sorted by start. One list, changed by one call: a signal's handler that raises comes
        # before it or after it. The search compares with (start,), so owners are never compared.
        self._ranges: list[tuple[int, int, object]] = []

    def allocate(self, nbytes: int, system: System | None = None) -> MMIO:
        """Zeroed, page-aligned memory of a system (the real one if None), mapped to the device.

        Raises:
          MemoryError: if the system has none.
        """
        view = (system or real_system()).allocate(nbytes)
        self.map(view.address, view.nbytes, view)
        return view

    def map(self, address: int, nbytes: int, owner: object = None) -> None:
        """Lets the device touch a range; ``owner`` is kept until it is unmapped. Ranges may repeat and nest."""
        with self._lock:
            at = bisect.bisect_left(self._ranges, (address,))
            self._ranges.insert(at, (address, address + nbytes, owner))

    def unmap(self, address: int, nbytes: int) -> None:
        """Takes back one mapping of exactly this range.

        Raises:
          ValueError: if there is none.
        """
        with self._lock:
            at = bisect.bisect_left(self._ranges, (address,))
            while at < len(self._ranges) and self._ranges[at][0] == address:
                if self._ranges[at][1] == address + nbytes:
                    del self._ranges[at]
                    return
                at += 1
        raise ValueError(f"{nbytes} bytes at {address:#x} are not mapped")

    def view(self, address: int, nbytes: int) -> MMIO | None:
        """These bytes, which the view keeps alive; None unless one mapped range holds them all."""
        with self._lock:
            at = bisect.bisect_left(self._ranges, (address + 1,)) - 1
            # ranges of callers may nest, so a wider one can begin before the nearest
            while at >= 0:
                _, end, owner = self._ranges[at]
                if address + nbytes <= end:
                    return MMIO(address, nbytes, "B", owner)
                at -= 1
            return None
