"""The processors of one card for one process: they share addresses, and each queue has a thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...engine import AddressSpace
from .bus import Bus
from .dispatch import Dispatcher, MachineMaker
from .faults import Interrupt
from .pm4 import ComputeQueue
from .queue import Queue, QueueKind, Ring
from .sdma import CopyQueue

CLOCK_HZ = 100_000_000
"""Of the counter that timestamps are of (``gpu_counter_freq`` in AMDGPU_INFO)."""


class Processor:
    """Makes queues.

    Args:
      arch: the instruction set.
      machines: makes what executes waves.
      interrupt: takes what the kernel is told; called by the threads of queues.

    Attributes:
      space: what addresses mean.
    """

    def __init__(self, arch: str, machines: MachineMaker, interrupt: Callable[[Interrupt], None]) -> None:
        self._machines, self._interrupt, self.space = machines, interrupt, AddressSpace()
        self.major = int(arch.removeprefix("gfx")[:-2])
        self._packed = self.major >= 11 or arch in ("gfx90a", "gfx942", "gfx950")

    def clock(self) -> int:
        """The counter."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) * (CLOCK_HZ // 1_000_000) // 1000

    def start(self, kind: QueueKind, ring: Ring) -> Queue:
        """A queue, which is watched from now on.

        Raises:
          NotImplementedError: if queues of this kind are not played.
        """
        queue: Queue
        if kind is QueueKind.SDMA:
            queue = CopyQueue(ring, Bus(self.space), self.major, self.clock, self._interrupt)
        elif kind is QueueKind.PM4:
            dispatcher = Dispatcher(self.major, self._packed, self.space, self._machines)
            queue = ComputeQueue(ring, Bus(self.space), self.major, dispatcher, self.clock, self._interrupt)
        else:
            raise NotImplementedError(f"queues of {kind.value} packets are not played")
        queue.start()
        return queue

    def close(self) -> None:
        """Nothing is left to do: queues are stopped one by one."""
