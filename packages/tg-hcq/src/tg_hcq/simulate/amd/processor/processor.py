"""The processors of one card for one process: they share addresses, and each queue has a thread."""

from __future__ import annotations

from collections.abc import Callable

from ...engine import AddressSpace
from ..clock import clock
from .aql import AqlQueue
from .bus import Bus, HostPath
from .dispatch import Dispatcher, MachineMaker
from .faults import Interrupt
from .pm4 import ComputeQueue
from .queue import Queue, QueueKind, Ring
from .sdma import CopyQueue


class Processor:
    """Makes queues.

    Args:
      arch: the instruction set.
      machines: makes what executes waves.
      interrupt: takes what the kernel is told; called by the threads of queues.
      dies: how many execute a queue of AQL packets together; one of PM4 packets is executed by one.
      host: the host's way to the memory of cards.

    Attributes:
      space: what addresses mean.
    """

    def __init__(
        self, arch: str, machines: MachineMaker, interrupt: Callable[[Interrupt], None], dies: int = 1,
        host: HostPath | None = None,
    ) -> None:  # fmt: skip
        self._machines, self._interrupt, self.space, self._dies = machines, interrupt, AddressSpace(), dies
        self._host = host
        self.major = int(arch.removeprefix("gfx")[:-2])
        self._packed = self.major >= 11 or arch in ("gfx90a", "gfx942", "gfx950")

    def clock(self) -> int:
        """The counter."""
        return clock()

    def start(self, kind: QueueKind, ring: Ring) -> Queue:
        """A queue, which is watched from now on."""
        queue: Queue
        if kind is QueueKind.SDMA:
            queue = CopyQueue(ring, Bus(self.space, self._host), self.major, self.clock, self._interrupt)
        else:
            dispatcher = Dispatcher(self.major, self._packed, self.space, self._machines)
            common = ring, Bus(self.space, self._host), self.major, dispatcher, self.clock, self._interrupt
            queue = AqlQueue(*common, self._dies) if kind is QueueKind.AQL else ComputeQueue(*common)
        queue.start()
        return queue

    def close(self) -> None:
        """Nothing is left to do: queues are stopped one by one."""
