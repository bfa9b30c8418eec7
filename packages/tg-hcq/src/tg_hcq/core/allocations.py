"""Allocations: who asked for which memory, who gave it back, and which lies nearest to an address."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Final

from tg_lazy.graph.origin import caller
from tg_runtime import BufferOptions

from .buffer import HCQBuffer
from .fault import Near

_REMEMBERED: Final = 1024
"""Freed allocations that are remembered."""


@dataclass(slots=True)
class Allocation:
    """A piece of memory that was handed out.

    Attributes:
      address: its first byte.
      nbytes: its size.
      options: those it was asked for with, without the owner, whom what is remembered does not keep alive.
      opaque: the memory, while somebody holds it.
      allocated: file and line of the user's program, and the thread.
      freed: the same, once it is.
    """

    address: int
    nbytes: int
    options: BufferOptions
    opaque: weakref.ref[HCQBuffer]
    allocated: tuple[tuple[str, int], int]
    freed: tuple[tuple[str, int], int] | None = None


class Allocations:
    """What one allocator handed out. Noting takes no lock, for the collector frees memory at any moment."""

    def __init__(self) -> None:
        self._live: dict[int, Allocation] = {}
        self._freed: deque[Allocation] = deque(maxlen=_REMEMBERED)

    def taken(self, opaque: HCQBuffer, nbytes: int, options: BufferOptions) -> None:
        """Notes that memory was handed out."""
        address = opaque.address
        if isinstance(address, int):
            who = caller(), threading.get_ident()
            self._live[address] = Allocation(address, nbytes, options._replace(owner=None), weakref.ref(opaque), who)

    def given(self, address: int) -> None:
        """Notes that the memory at an address was given back."""
        found = self._live.pop(address, None)
        if found is not None:
            found.freed = caller(), threading.get_ident()
            self._freed.append(found)

    def live(self) -> list[Allocation]:
        """What is in use."""
        return list(self._live.values())

    def nearest(self, address: int) -> Near | None:
        """The allocation that holds an address, or else the nearest one; of several, one in use, then the last freed.

        None if there never was any.
        """
        found = [(abs(_distance(a, address)), age, a) for age, a in enumerate([*self.live(), *reversed(self._freed)])]
        if not found:
            return None
        _, _, best = min(found, key=lambda item: item[:2])
        threads = {thread.ident: thread.name for thread in threading.enumerate()}

        def who(what: tuple[tuple[str, int], int] | None) -> str:
            if what is None:
                return ""
            (file, line), thread = what
            return f"{file}:{line} on {threads.get(thread, f'thread {thread}')}"

        return Near(best.address, best.nbytes, _distance(best, address), who(best.allocated), who(best.freed))


def _distance(allocation: Allocation, address: int) -> int:
    """0 inside; negative before it; from its end on, how far after it, and at least 1."""
    if address < allocation.address:
        return address - allocation.address
    return max(address - (allocation.address + allocation.nbytes) + 1, 0)
