"""What the host sees of a card's memory: pages that the host data path keeps apart until it is flushed.

Between the processor and the card's memory stands the HDP, which holds the host's stores back; a store to the register
that KFD shows as ``KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL`` sends them on (``amdgpu_device_flush_hdp``). So the host's pages
are others than the card's, and both keep what was last the same in them: what differs from that on the one side was
stored by that side.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Final

from ...engine import Memory
from .cards import PAGE
from .pages import Pool

UNTOUCHED: Final = 0xFFFFFFFF
"""What the register holds until the host stores to it."""

_equal = ctypes.CDLL(None).memcmp
_equal.argtypes, _equal.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int


class Window:
    """The host's way to the memory of one card.

    Args:
      card: the card's memory.
      flush: the page whose first word is the register.

    Attributes:
      host: the pages that the host maps instead, at the same places.

    Example:
      >>> card, flush = Pool(1 << 16), Pool(4096)
      >>> window = Window(card.memory, flush)
      >>> window.open(4096, 4096)
      >>> window.host.memory.view[4096 + 5] = 7
      >>> window.take(), card.memory.view[4096 + 5]
      (None, 0)
      >>> flush.memory.view[0] = 0
      >>> window.take(), card.memory.view[4096 + 5]
      (None, 7)
    """

    def __init__(self, card: Memory, flush: Pool) -> None:
        self._card, self._register = card, flush.memory.view[:4].cast("I")
        self.host = Pool(card.nbytes)
        self._known: dict[int, bytearray] = {}
        self._lock = threading.Lock()
        self._register[0] = UNTOUCHED

    def open(self, place: int, nbytes: int) -> None:
        """Shows a part of the card's memory, which was just taken: zeros."""
        with self._lock:
            self._known[place] = bytearray(-(-nbytes // PAGE) * PAGE)

    def shut(self, place: int) -> None:
        """The part is given back."""
        with self._lock:
            known = self._known.pop(place, None)
        if known is not None:
            self.host.clear(place, len(known))

    def take(self) -> None:
        """If the host stored to the register, sends its stores on to the card."""
        if self._register[0] != UNTOUCHED:
            self._register[0] = UNTOUCHED  # first: a store that comes meanwhile is for the next time
            self._move(self.host.memory, self._card, always=True)

    def show(self) -> None:
        """Has the host see what the card stored, but where it stored itself and did not flush yet."""
        if self._known:
            self._move(self._card, self.host.memory, always=False)

    def _move(self, source: Memory, target: Memory, *, always: bool) -> None:
        """Has what one side stored be on both, whether the other one stored something there or not."""
        with self._lock:
            for place, known in self._known.items():
                whole = (ctypes.c_char * len(known)).from_buffer(known)
                start = ctypes.addressof(whole)
                for page in range(0, len(known), PAGE):
                    if _equal(source.address + place + page, start + page, PAGE):
                        part = slice(place + page, place + page + PAGE)
                        _merge(source.view[part], target.view[part], memoryview(known)[page : page + PAGE], always)
                del whole

    def close(self) -> None:
        """Lets go of its pages."""
        self._known.clear()
        self._register.release()
        self.host.close()


def _merge(source: memoryview, target: memoryview, known: memoryview, always: bool) -> None:
    for offset, byte in enumerate(bytes(source)):
        if byte != known[offset] and (always or target[offset] == known[offset]):
            target[offset] = known[offset] = byte


class Windows:
    """Those of all cards: whoever executes packets sees what the host sent on, and what a card stored is shown.

    Args:
      windows: of the cards.
    """

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = windows

    def take(self) -> None:
        """Sends on what the host stored, where it flushed."""
        for window in self._windows:
            window.take()

    def show(self) -> None:
        """Has the host see what cards stored."""
        for window in self._windows:
            window.show()
