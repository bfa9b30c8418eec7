"""Ring: the memory through which words reach a hardware queue, its pointers and its doorbell."""

from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tg_runtime.host.interrupts import Uninterrupted

from .errors import DeviceFault, DeviceTimeout
from .fault import RingTail
from .fileio import MMIO
from .system import System

_ROOM_S: Final = 0.0002
_RECENT: Final = 8
_PACKETS: Final = 12


def _nothing() -> None:
    """No device to ask."""


class Ring:
    """Words in a circle, which the host writes and a command processor reads.

    The pointers count entries since the beginning, or wrap with the ring; the host owns the write pointer and the
    processor the read pointer. A submission puts its words in the ring, then stores the write pointer, then the
    doorbell, with a fence before each: whoever sees one sees what was stored before. Nobody is called.

    Attributes:
      name: for messages.
      words: the circle, as 32-bit words.
      read: the read pointer; its first unit.
      write: the write pointer.
      doorbell: what tells the processor to look.
      entry_words: words of an entry, which is what the pointers count: 1 for packets of any length, 2 for pairs of
        words, 16 for packets of 64 bytes.
      scale: what the pointers grow by for each entry (4 for one word where they count bytes).
      wraps: whether the pointers begin again at 0 with the ring. One entry then stays free, for a full ring would look
        like an empty one.
      read_wraps: whether the read pointer alone does.
      filler: the word that fills the end of the ring where a submission may not be cut in two there; None where it may.
      token: what is stored to the doorbell; None for the write pointer.
      behind: by how much the doorbell is told less than the write pointer: 1 where it is the last entry that counts.
      invalid: the first word of an entry that holds no packet. The processor looks at this word, not at pointers only,
        to tell whether an entry is there: it is stored last, in one store, after all words behind the first ones. None
        where entries have no such header.
      flush: one 64-bit word: the address of a 32-bit register that 0 is stored to before words are put in, which has
        what the host stored to the device's memory arrive there; 0 where nothing of the host's is on such a way.
      lock: held while words are put in.
      counts: how many words each of the last submissions had.
    """

    def __init__(
        self, name: str, words: MMIO, read: MMIO, write: MMIO, doorbell: MMIO, system: System, *, entry_words: int = 1,
        scale: int = 1, wraps: bool = False, read_wraps: bool = False, filler: int | None = None,
        token: int | None = None, invalid: int | None = None, behind: int = 0,
        flush: array[int] | None = None, check: Callable[[], None] = _nothing,
    ) -> None:  # fmt: skip
        """A ring over memory that is there; its pointers are as they are.

        Args:
          name: for messages.
          words: the circle.
          read: the read pointer.
          write: the write pointer.
          doorbell: the doorbell.
          system: for fences.
          entry_words: words of an entry.
          scale: what the pointers grow by for each entry.
          wraps: whether the pointers wrap with the ring.
          read_wraps: whether the read pointer does, while the write pointer counts on.
          filler: the word that fills the end of the ring.
          token: what is stored to the doorbell, if not the write pointer.
          invalid: the first word of an entry that holds no packet, where entries have a header.
          behind: what the doorbell is told less than the write pointer.
          flush: the word that holds a register's address, which rings may share; one of its own if None.
          check: raises what stopped the device; asked while the ring is full.

        Raises:
          ValueError: if the words are not 32 bits wide, or are not whole entries; or there are both filler and headers.
        """
        if words.fmt != "I" or len(words) == 0 or len(words) % entry_words:
            raise ValueError(f"{name}: a ring of {words!r} does not hold whole entries of {entry_words} words")
        if filler is not None and invalid is not None:
            raise ValueError(f"{name}: entries with a header are not filled up by single words")
        self.name, self.words, self.read, self.write, self.doorbell = name, words, read, write, doorbell
        self.entry_words, self.scale, self.wraps, self.read_wraps = entry_words, scale, wraps, wraps or read_wraps
        self.filler, self.token, self.invalid = filler, token, invalid
        self.behind = behind
        self.flush = array("Q", [0]) if flush is None else flush
        self._empty()
        self.lock = threading.Lock()
        self._check, self._system = check, system
        self.counts: deque[int] = deque(maxlen=_RECENT)
        self._restarts = 0

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self.words) // self.entry_words

    def used(self) -> int:
        """Entries that were put in and not read yet."""
        distance = (self.write[0] - self.read[0]) // self.scale
        return distance % self.entries if self.read_wraps else distance

    def room(self) -> int:
        """Entries that can be put in now."""
        return self.entries - self.used() - (1 if self.read_wraps else 0)

    def place(self) -> int:
        """The index of the word that is written next."""
        return self.write[0] // self.scale % self.entries * self.entry_words

    def submit(self, words: array[int], timeout_ms: int) -> None:
        """Puts words in and rings the doorbell; waits while the ring is too full.

        Args:
          words: whole entries.
          timeout_ms: give up when the processor has not moved the read pointer for so long.

        Raises:
          ValueError: if they are not whole entries, or more than the ring holds.
          DeviceTimeout: if the ring does not empty; nothing was put in.
          DeviceError: if ``check`` finds the device stopped meanwhile.
        """
        self.check_size(len(words))
        while True:
            with self.lock:
                start = self.reserve(len(words))
                if start is not None:
                    self.put(start, words)
                    return
            self.wait(len(words), timeout_ms)

    def check_size(self, count: int) -> None:
        """Does nothing if ``count`` words can ever be put in.

        Raises:
          ValueError: if they are not whole entries, or more than the ring holds.
        """
        if count % self.entry_words:
            raise ValueError(f"{self.name}: {count} words are not whole entries of {self.entry_words}")
        if count // self.entry_words > self.entries - (1 if self.read_wraps else 0):
            raise ValueError(
                f"{self.name}: {count} words do not fit in a ring of {len(self.words)}; bind the queue first"
            )

    def reserve(self, count: int) -> int | None:
        """Where ``count`` words go now; None while there is too little room. For who holds the lock.

        The end of the ring is filled up where they may not be cut in two there, as soon as there is room for that.
        """
        start = self.place()
        left = len(self.words) - start
        if self.filler is not None and count > left:
            # the processor reads the filler by itself; both at once could be more than the ring holds
            if self.room() < left // self.entry_words:
                return None
            self.words.write(start, array("I", [self.filler]) * left)
            self._publish(left // self.entry_words)
            start = 0
        return start if self.room() >= count // self.entry_words else None

    def put(self, start: int, words: array[int]) -> None:
        """Puts words where ``reserve`` said and rings the doorbell. For who still holds the lock."""
        if self.flush[0]:
            self._system.store_fence()
            MMIO(self.flush[0], 4, "I")[0] = 0
            self._system.store_fence()
        if self.invalid is not None:
            self._put_packets(start, words)
        else:
            first = min(len(words), len(self.words) - start)
            self.words.write(start, words[:first])
            if first < len(words):
                self.words.write(0, words[first:])
        self._publish(len(words) // self.entry_words)
        self.counts.append(len(words))

    def _put_packets(self, start: int, words: array[int]) -> None:
        step, size = self.entry_words, len(self.words)
        for at in range(0, len(words), step):
            self.words.write((start + at) % size + 1, words[at + 1 : at + step])
        self._system.store_fence()
        for at in range(0, len(words), step):
            self.words[(start + at) % size] = words[at]

    def _empty(self) -> None:
        """Has no entry hold a packet."""
        if self.invalid is not None:
            for at in range(0, len(self.words), self.entry_words):
                self.words[at] = self.invalid

    def wait(self, count: int, timeout_ms: int) -> None:
        """Returns once there is room for ``count`` words, or for what is to be filled up before them.

        Raises:
          DeviceTimeout: if the processor does not move the read pointer for ``timeout_ms``.
          DeviceError: if ``check`` finds the device stopped meanwhile.
        """
        left = len(self.words) - self.place()
        needed = min(count, left) if self.filler is not None else count
        self._wait_for_room(needed // self.entry_words, timeout_ms)

    def restart(self) -> None:
        """Empties the ring, for a device that was reset."""
        with self.lock:
            self.read[0] = self.write[0] = 0
            if not self.behind:
                self.doorbell[0] = 0
            self._empty()
            self.counts.clear()
            self._restarts += 1

    def recent(self) -> list[list[int]]:
        """The words of the last submissions that are still whole, the oldest first."""
        size, end, left = len(self.words), self.place(), len(self.words)
        whole: list[list[int]] = []
        for count in reversed(self.counts):
            left -= count
            cut = self.filler is not None and count > end > 0  # what is before it is not known: the end was filled up
            if left < 0 or cut:
                break
            start = (end - count) % size
            whole.append([self.words[(start + i) % size] for i in range(count)])
            end = start
        return whole[::-1]

    def tail(self, count: int) -> list[tuple[int, int]]:
        """The last words put in, at most ``count`` of them: (index in the ring, word), the oldest first."""
        size = len(self.words)
        at = self.write[0] // self.scale * self.entry_words
        count = min(count, size if self.wraps else min(at, size))
        places = [(at - count + i) % size for i in range(count)]
        return [(place, self.words[place]) for place in places]

    def _publish(self, count: int) -> None:
        position = self.write[0] + count * self.scale
        if self.wraps:
            position %= self.entries * self.scale
        # no signal between the pointer and the doorbell: words that nobody is told of would run with the next ones
        with Uninterrupted():
            self._system.store_fence()
            self.write[0] = position
            self._system.store_fence()
            self.doorbell[0] = position - self.behind if self.token is None else self.token

    def _wait_for_room(self, count: int, timeout_ms: int) -> None:
        if self.room() >= count:
            return
        seen, moved, restarts = self.read[0], time.monotonic(), self._restarts
        while self.room() < count:
            self._check()
            if self.read[0] != seen:
                seen, moved = self.read[0], time.monotonic()
            elif (time.monotonic() - moved) * 1000 >= timeout_ms:
                raise DeviceTimeout(
                    f"{self.name}: the ring of {len(self.words)} words has been full for {timeout_ms} ms"
                )
            time.sleep(_ROOM_S)
        if self._restarts != restarts:
            raise DeviceFault(f"{self.name}: the device was reset while the ring was full")

    def __repr__(self) -> str:
        return f"<Ring {self.name}: {self.used()} of {self.entries} entries used>"


def tail_of(ring: Ring, text: Callable[[Sequence[int]], tuple[int, str]]) -> RingTail:
    """The last packets of a ring; ``text`` says how many words a packet has and how it reads."""
    packets: list[str] = []
    for words in ring.recent():
        at = 0
        while at < len(words):
            count, told = text(words[at:])
            packets.append(told)
            at += max(count, 1)
    return RingTail(ring.name, ring.read[0], ring.write[0], tuple(packets[-_PACKETS:]))
