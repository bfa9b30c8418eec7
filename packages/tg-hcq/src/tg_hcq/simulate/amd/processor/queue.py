"""A queue: a thread that watches a doorbell and executes what lies between the read and the write pointer."""

from __future__ import annotations

import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ....core.fileio import MMIO
from ....core.watch import Until, watch
from .bus import Bus
from .faults import Interrupt, MemoryFault, PacketFault


class QueueKind(Enum):
    """What its packets are."""

    PM4 = "PM4"
    SDMA = "SDMA"
    AQL = "AQL"


@dataclass(frozen=True)
class Ring:
    """What the kernel told the hardware of a queue (its MQD).

    Attributes:
      name: for faults.
      address: of the ring.
      nbytes: of it.
      read_pointer: the address that the hardware reports to.
      write_pointer: the address that the host stores to before it rings.
      doorbell: which is rung.
    """

    name: str
    address: int
    nbytes: int
    read_pointer: int
    write_pointer: int
    doorbell: MMIO


class Stopped(Exception):
    """The queue was destroyed or evicted while a packet waited."""


class Queue(ABC):
    """A queue that is mapped to the hardware.

    Args:
      ring: of the queue.
      bus: the way to memory.
      unit: bytes that a pointer counts.
      interrupt: takes what the kernel is told.
    """

    pointer_nbytes = 8
    """Of the read pointer, as it is reported."""
    idle = 0
    """What the doorbell holds before it is rung."""

    def __init__(self, ring: Ring, bus: Bus, unit: int, interrupt: Callable[[Interrupt], None]) -> None:
        self.ring, self.bus, self.unit, self.interrupt = ring, bus, unit, interrupt
        self.read = 0
        self._stop = MMIO.of(bytearray(8), "Q")
        self._paused, self._evicted = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=ring.name, daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        self.bus.store(self.ring.read_pointer, 0, "the read pointer", self.pointer_nbytes)
        self.ring.doorbell[0] = self.idle
        self._thread.start()

    def stop(self) -> None:
        """Ends it; nothing of it runs when this returns."""
        self._stop[0] = 1
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join()

    def evict(self) -> None:
        """Takes it from the hardware for good: it executes no further packet."""
        self._evicted = True
        self._stop[0] = 1

    def pause(self, paused: bool) -> None:
        """Takes it from the hardware, or gives it back."""
        (self._paused.set if paused else self._paused.clear)()

    def wait(self, ready: Callable[[], bool], word: MMIO | None = None) -> None:
        """Waits until a condition holds.

        Raises:
          Stopped: if the queue is destroyed or evicted meanwhile.
        """
        nothing = MMIO.of(bytearray(8), "Q")
        self.bus.take()
        while not ready():
            if self._stop[0]:
                raise Stopped
            watch(nothing, Until.DIFFERENT, 0, self._stop, most_ns=200_000)
            self.bus.take()
        self.bus.take()

    def words(self, start: int, count: int) -> list[int]:
        """Words of the ring from a position on, which is counted in bytes since the beginning."""
        first = start % self.ring.nbytes
        head = min(4 * count, self.ring.nbytes - first)
        data = self.bus.read(self.ring.address + first, head, "the ring")
        data += self.bus.read(self.ring.address, 4 * count - head, "the ring") if 4 * count > head else b""
        return list(struct.unpack(f"<{count}I", data))

    def report(self) -> None:
        """Stores the read pointer."""
        self.bus.store(self.ring.read_pointer, self.read, "the read pointer", self.pointer_nbytes)

    @abstractmethod
    def execute(self, write: int) -> None:
        """Executes packets from ``read`` to a write pointer, and moves ``read``."""

    def _run(self) -> None:
        seen = self.idle
        while not self._stop[0]:
            if not watch(self.ring.doorbell, Until.DIFFERENT, seen, self._stop):
                return
            if self._paused.is_set():
                threading.Event().wait(0.001)
                continue
            seen = self.ring.doorbell[0]
            try:
                self.bus.take()
                self._to(seen)
                self.bus.show()
            except Stopped:
                return
            except PacketFault as error:
                self._fail(Interrupt(f"{self.ring.name}, {self.place()}: {error}; the queue hangs"))
                return
            except MemoryFault as error:
                self._fail(Interrupt(f"{self.ring.name}, {self.place()}: {error}", refusal=error.refusal))
                return
            except Exception as error:  # a mistake of this program's must not look like a GPU that is busy
                self._fail(Interrupt(f"{self.ring.name}, {self.place()}: {type(error).__name__}: {error}"))
                raise

    def _fail(self, what: Interrupt) -> None:
        self._evicted = True
        self.interrupt(what)

    def place(self) -> str:
        """Where it is, for faults."""
        return f"offset {self.read * self.unit % self.ring.nbytes:#x}"

    def _to(self, write: int) -> None:
        stored = self.bus.word(self.ring.write_pointer, "the write pointer", 8)
        if stored < write:
            raise PacketFault(f"the doorbell says {write:#x}, and the write pointer in memory is {stored:#x}")
        if write < self.read or (write - self.read) * self.unit > self.ring.nbytes:
            raise PacketFault(f"write pointer {write:#x} from {self.read:#x} on: the ring is {self.ring.nbytes} bytes")
        self.execute(write)
        self.report()
