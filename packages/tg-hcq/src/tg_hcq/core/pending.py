"""Pending: which buffers the submissions write that the device has not finished."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from .buffer import HCQBuffer

Point = tuple[int, int]


class Loser(Protocol):
    """The owner of memory."""

    def lose(self, opaques: Sequence[HCQBuffer], why: str) -> None:
        """Marks memory as worth nothing."""


class Pending:
    """A log of what submissions write, shortened as they are done.

    After a reset, what the others were writing is neither the old content nor the new one.
    """

    def __init__(self, reached: Callable[[Point], bool]) -> None:
        self._reached = reached
        self._log: deque[tuple[Point, tuple[HCQBuffer, ...], Loser | None]] = deque()

    def add(self, point: Point, written: Iterable[HCQBuffer], owner: Loser | None = None) -> None:
        """Notes what the submission at a point writes. Called under the timeline's lock, in order.

        Args:
          point: the submission.
          written: the buffers.
          owner: whose they are; None if they are the device's own.
        """
        log = self._log
        while log and self._reached(log[0][0]):
            log.popleft()
        log.append((point, tuple(written), owner))

    def lose(self, mine: Loser, why: str) -> None:
        """Has the owners mark what submissions were writing that are not done; the log is empty then."""
        log, self._log = self._log, deque()
        for point, written, owner in log:
            if not self._reached(point):
                (owner or mine).lose(written, why)
