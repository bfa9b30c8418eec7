"""What waits for what: the stream on which kernels run, and the one of copies to and from the host.

A copy waits for the kernels that used its memory before, and no others; a kernel for the copies to the memory that it
uses. So a batch can be copied in while the one before is computed. Kernels are counted as they are queued, and each
block of memory notes the number of the last that used it. An event is recorded whenever something is copied: it stands
for all kernels before it, and a later copy waits for the earliest event that covers what used its memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from ...headers.cuda.api import Driver

MOST_MARKS = 16


class Block(Protocol):
    """What a block of memory notes.

    Attributes:
      used: number of the last kernel that used it.
      arrived: the event behind the last copy to it; 0 if there was none.
      arriving: whether kernels do not wait for that event yet.
      shared: whether kernels may have used the memory as another block.
    """

    used: int
    arrived: int
    arriving: bool
    shared: bool


class Kernels(Protocol):
    """What is needed of a context: the stream of kernels, and its events."""

    driver: Driver
    stream: int

    def event(self) -> int:
        """A new event."""

    def record(self, event: int, stream: int = 0) -> None:
        """Marks what is on a stream."""


class Order:
    """The two streams of a context.

    Attributes:
      copies: ``CUstream`` of copies to and from the host.
      launched: how many kernels were queued.
      waits: how often one stream was made to wait for the other; for tests.
    """

    def __init__(self, context: Kernels, copies: int) -> None:
        self.context, self.copies = context, copies
        self.launched = self.waits = 0
        self._lock = threading.Lock()
        self._marks: list[tuple[int, int]] = []  # number of the last kernel before it, event
        self._covered = 0  # copies already wait for kernels up to this number
        self._spare: list[int] = []

    def before_kernel(self, blocks: Iterable[Block]) -> None:
        """Kernels that are queued from now on wait for the copies to these blocks."""
        for block in blocks:
            if block.arriving:
                driver = self.context.driver
                block.arriving = False
                code = driver.cuStreamWaitEvent(self.context.stream, block.arrived, 0)
                driver.check(code, "waiting for a copy")
                self.waits += 1

    def after_kernel(self, blocks: Iterable[Block]) -> None:
        """Notes that a kernel which uses these blocks was queued."""
        with self._lock:
            self.launched += 1
            for block in blocks:
                block.used = self.launched

    def before_copy(self, block: Block) -> None:
        """Copies that are queued from now on wait for the kernels that use the block."""
        context = self.context
        with self._lock:
            if self.launched > max(self._covered, self._marks[-1][0] if self._marks else 0):
                event = self._spare.pop() if self._spare else context.event()
                context.record(event)
                self._marks.append((self.launched, event))
            used = self.launched if block.shared else block.used
            if used > self._covered:
                number, event = next(mark for mark in self._marks if mark[0] >= used)
                code = context.driver.cuStreamWaitEvent(self.copies, event, 0)
                context.driver.check(code, "waiting for kernels")
                self._covered = number
                self.waits += 1
            while self._marks and (self._marks[0][0] <= self._covered or len(self._marks) > MOST_MARKS):
                self._spare.append(self._marks.pop(0)[1])

    def after_copy_in(self, block: Block) -> None:
        """Notes that a copy to a block was queued."""
        context = self.context
        if not block.arrived:
            block.arrived = context.event()
        context.record(block.arrived, self.copies)
        block.arriving = True

    def forget(self, block: Block) -> None:
        """Releases the driver's events of a freed block."""
        if block.arrived:
            self.context.driver.cuEventDestroy_v2(block.arrived)
        block.arrived, block.arriving = 0, False
