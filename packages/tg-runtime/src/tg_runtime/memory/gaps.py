"""What is free of a range of memory."""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections import deque

from ..host.locks import fork_safe_lock

Gap = tuple[int, int]
"""Offset and size, in bytes."""


class Gaps:
    """The free parts of a range: the first one that is large enough is taken.

    The garbage collector may run finalizers at any moment, even while the same thread is at work on the gaps, and they
    may give parts back and take others. So nobody keeps the place of a gap in the list: who wants one removes it by
    what it is, or somebody else was first; and a gap is in the list only when all that is to happen to it has.

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
        self._lock, self._busy = fork_safe_lock(), 0  # the process whose thread is at work; a child's parent is not

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
            before, self._busy = self._busy, os.getpid()
            try:
                while (gap := next((gap for gap in self._gaps if gap[1] >= size), None)) is not None:
                    if self._remove(gap):
                        if gap[1] > size:
                            insort(self._gaps, (gap[0] + size, gap[1] - size))
                        return gap[0]
            finally:
                self._busy = before
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
        if self._busy == os.getpid():
            return
        self._busy = os.getpid()
        try:
            while self._returned:
                gap = part = self._returned.popleft()
                while (beside := self._beside(gap)) is not None:
                    if self._remove(beside):
                        gap = min(gap[0], beside[0]), gap[1] + beside[1]
                try:
                    self._freed(part, gap)
                finally:
                    insort(self._gaps, gap)
        finally:
            self._busy = 0

    def _beside(self, part: Gap) -> Gap | None:
        """A gap that touches a part."""
        at = bisect_left(self._gaps, part)
        for gap in self._gaps[max(at - 1, 0) : at + 1]:
            if sum(gap) == part[0] or gap[0] == sum(part):
                return gap
        return None

    def _remove(self, gap: Gap) -> bool:
        """Takes a gap off the list; False if a finalizer took of it since it was looked at."""
        try:
            self._gaps.remove(gap)
        except ValueError:
            return False
        return True

    def _freed(self, part: Gap, gap: Gap) -> None:
        """What a kind of memory does when a part of it has become free, and will belong to a gap, which nobody has."""
