"""QueuePool: memory for the words of queues, used again, for packet queues need some for every submission."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tg_runtime import BufferOptions

from ...core.buffer import HCQBuffer
from ...core.queue import QueueMemory

_LEAST = 4096


class QueuePool(QueueMemory):
    """Memory of the host's, in pieces whose sizes are powers of two.

    Args:
      alloc: takes memory from the system.
    """

    def __init__(self, alloc: Callable[[int, BufferOptions], HCQBuffer]) -> None:
        self._alloc = alloc
        self._free: dict[int, deque[HCQBuffer]] = {}
        self._retired: deque[tuple[Callable[[], bool], HCQBuffer]] = deque()

    def alloc(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        """A piece that nobody uses, or a new one.

        Raises:
          OutOfMemory: if there is no memory.
        """
        self._reap()
        size = max(_LEAST, 1 << (nbytes - 1).bit_length())
        try:
            return self._free.setdefault(size, deque()).popleft()
        except IndexError:
            return self._alloc(size, options)

    def retire(self, opaque: HCQBuffer, options: BufferOptions, done: Callable[[], bool]) -> None:
        """Takes a piece back once ``done()``. The collector may call it at any moment."""
        self._retired.append((done, opaque))

    def _reap(self) -> None:
        for _ in range(len(self._retired)):
            try:
                done, opaque = self._retired.popleft()
            except IndexError:  # another thread was faster
                return
            if done():
                self._free.setdefault(opaque.nbytes, deque()).append(opaque)
            else:
                self._retired.append((done, opaque))
