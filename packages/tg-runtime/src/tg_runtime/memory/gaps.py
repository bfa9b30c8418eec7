"""What is free of a range of memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from ..host.locks import fork_safe_lock

Gap = tuple[int, int]
"""Offset and size, in bytes."""


class Gaps:
    """The free parts of a range: the first one that is large enough is taken.

    The garbage collector may give a part back at any moment, even while another one is being taken by the same thread.

    Args:
      size: of the range, in bytes.

    Example:
      >>> memory = Gaps(4096)
      >>> memory.take(128), memory.take(64)
      (0, 128)
      >>> memory.give_back(0, 128)
      >>> memory.gaps
      [(0, 128), (192, 3904)]
    """

    def __init__(self, size: int) -> None:
        self._gaps: list[Gap] = [(0, size)]
        self._returned: deque[Gap] = deque()
        self._lock, self._busy = fork_safe_lock(), False

    @property
    def gaps(self) -> list[Gap]:
        """Offsets and sizes of what is free, in order; no two of them touch."""
        with self._lock:
            self._sort_in()
            return list(self._gaps)

    def take(self, size: int) -> int | None:
        """The offset of so many bytes, which are no longer free; None if no gap is large enough."""
        with self._lock:
            self._sort_in()
            self._busy = True
            try:
                for number, (offset, found) in enumerate(self._gaps):
                    if found >= size:
                        self._gaps[number : number + 1] = [(offset + size, found - size)] if found > size else []
                        return offset
            finally:
                self._busy = False
        return None

    def give_back(self, offset: int, size: int) -> None:
        """Makes a part free that was taken: at once, or where somebody is taking another one, right after that."""
        self._returned.append((offset, size))
        if self._lock.acquire(blocking=False):
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def _sort_in(self) -> None:
        """Puts what was given back among the gaps, unless this thread is at work on them."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._returned:
                part = offset, size = self._returned.popleft()
                at = bisect_left(self._gaps, (offset, 0))
                if at < len(self._gaps) and self._gaps[at][0] == offset + size:
                    size += self._gaps.pop(at)[1]
                if at and sum(self._gaps[at - 1]) == offset:
                    before = self._gaps.pop(at - 1)
                    offset, size = before[0], before[1] + size
                insort(self._gaps, (offset, size))
                self._freed(part, (offset, size))
        finally:
            self._busy = False

    def _freed(self, part: Gap, gap: Gap) -> None:
        """What a kind of memory does when a part of it has become free, which belongs to a gap now."""
