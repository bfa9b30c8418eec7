"""KernargsRing: short-lived argument blocks, taken in turn from one piece of memory."""

from __future__ import annotations

from tg_runtime import DeviceError

from .buffer import HCQBuffer
from .timeline import Timeline


class KernargsRing:
    """A bump allocator that wraps around.

    The memory is cut into segments. Leaving a segment notes what was submitted by then, and it is entered again only
    when the device has come so far: a block is never overwritten while a launch may read it. A block is for one
    submission, put together under the timeline's lock.

    Attributes:
      alignment: the least of a block, in bytes.
    """

    alignment = 64

    def __init__(self, memory: HCQBuffer, timeline: Timeline, segments: int = 4) -> None:
        self._memory, self._timeline = memory, timeline
        self._segment_nbytes = memory.nbytes // segments // self.alignment * self.alignment
        self._left = [(-1, 0)] * segments
        self._segment = self._at = 0

    @property
    def memory(self) -> HCQBuffer:
        """All of it."""
        return self._memory

    def alloc(self, nbytes: int, alignment: int = 64) -> HCQBuffer:
        """A block of ``nbytes`` bytes at a multiple of ``alignment``, which is at most a page.

        Raises:
          DeviceError: if it is larger than a segment.
          DeviceTimeout: if the ring is full and the device makes no progress.
        """
        return self._memory.offset(self.place(nbytes, alignment), nbytes)

    def place(self, nbytes: int, alignment: int = 64) -> int:
        """As ``alloc``: where in the memory the block begins, in bytes."""
        size = -(-max(nbytes, 1) // self.alignment) * self.alignment
        if size + alignment - self.alignment > self._segment_nbytes:
            raise DeviceError(f"kernel arguments of {nbytes} bytes; at most {self._segment_nbytes} are possible")
        with self._timeline.lock:
            base = self._segment * self._segment_nbytes
            self._at = -(-(base + self._at) // alignment) * alignment - base
            if self._at + size > self._segment_nbytes:
                following = (self._segment + 1) % len(self._left)
                self._timeline.wait(self._left[following])
                self._left[self._segment] = self._timeline.point()
                self._segment = following
                self._at = -(following * self._segment_nbytes) % alignment
            start = self._segment * self._segment_nbytes + self._at
            self._at += size
            return start
