"""HCQCompiled: a device that is driven through hardware queues."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from tg_codegen import Renderer
from tg_lazy import ContextVar
from tg_runtime import Compiled, Compiler, DeviceError, Program
from tg_runtime.telemetry.profiler import DeviceClock

from .allocator import HOST_OPTIONS, HCQAllocator
from .buffer import HCQBuffer
from .errors import DeviceTimeout
from .kernargs import KernargsRing
from .queue import HWQueue, QueueMemory
from .signal import HCQSignal
from .system import System, real_system
from .timeline import LIMIT, Timeline

HCQ_TIMEOUT_MS: ContextVar[int] = ContextVar("HCQ_TIMEOUT_MS", 30000)

_SIGNAL_PAGE: Final = 4096


class HCQCompiled(Compiled):
    """A device with a compute queue, perhaps a copy queue, and one timeline over both.

    A subclass constructs its allocator and its queues, and calls :meth:`fail` when the hardware reports a fault.

    Attributes:
      system: what it asks of the operating system.
      timeline: the order of everything submitted.
      kernargs: short-lived argument blocks.
      ticks_per_us: the device's clock rate.
      timeout_ms: how long a signal may stand still before it is given up; the setting ``HCQ_TIMEOUT_MS``.
      error_state: what stopped the device; None while it runs.
      generation: how often the device was reset.
      clock: the device's clock as profiles know it.
      clock_known: whether it was compared with the host's.
    """

    self_timed = True
    allocator: HCQAllocator

    def __init__(
        self,
        device: str,
        allocator: HCQAllocator,
        renderer: Renderer | None,
        compiler: Compiler | None,
        runtime: Callable[..., Program] | None,
        *,
        compute_queue: Callable[[], HWQueue],
        copy_queue: Callable[[], HWQueue] | None = None,
        ticks_per_us: float = 1000.0,
        kernargs_nbytes: int = 1 << 20,
        timeline_limit: int = LIMIT,
        graph: Callable[..., object] | None = None,
        system: System | None = None,
    ) -> None:
        """Sets the device up; its queues must be able to run by the first submission."""
        super().__init__(device, allocator, renderer, compiler, runtime, graph)
        self.system = system or real_system()
        self.compute_queue, self.copy_queue = compute_queue, copy_queue
        self.ticks_per_us = ticks_per_us
        self.timeout_ms = HCQ_TIMEOUT_MS.value
        self.error_state: DeviceError | None = None
        self.generation = 0
        self.clock, self.clock_known = DeviceClock(), False
        self._signal_pages: list[HCQBuffer] = []
        self._free_slots: deque[HCQBuffer] = deque()
        # slots whose signal is gone, with the last submission that may write to them
        self._used_slots: deque[tuple[tuple[int, int], HCQBuffer]] = deque()
        self.timeline = Timeline(self, timeline_limit)
        allocator.attach(self.timeline, compute_queue, copy_queue, self)
        self.kernargs = KernargsRing(allocator.alloc(kernargs_nbytes, HOST_OPTIONS), self.timeline)

    # work

    def submission(self) -> AbstractContextManager[HWQueue]:
        """A compute queue, submitted at the end of the block, in the order of the timeline."""
        return self.timeline.submission(self.compute_queue())

    def synchronize(self) -> None:
        """Waits until everything that was submitted is done.

        Raises:
          DeviceFault: if the device stopped on a command. It stays stopped, and every later call raises again.
          DeviceTimeout: if it makes no progress for ``timeout_ms``; it counts as stopped from then on.
        """
        self.raise_error_state()
        try:
            self.timeline.synchronize()
        except DeviceTimeout as error:
            self.fail(error)
            raise
        self.raise_error_state()
        self.allocator.reap()

    # faults

    def fail(self, error: DeviceError) -> None:
        """Marks the device as stopped. The first error is kept."""
        if self.error_state is None:
            self.error_state = error

    def raise_error_state(self) -> None:
        """Raises a copy of what stopped the device, if it is stopped; DeviceError in a process forked since."""
        self.timeline.require()
        if self.error_state is not None:
            raise type(self.error_state)(*self.error_state.args) from self.error_state

    # signals

    def new_signal(self, value: int = 0) -> HCQSignal:
        """A signal in this device's memory."""
        if not self._free_slots:
            self._reclaim_slots()
        try:
            slot = self._free_slots.popleft()
        except IndexError:
            slot = self._add_signal_page()
        return HCQSignal(slot, self, value)

    def release_signal(self, slot: HCQBuffer) -> None:
        """Takes a signal's slot back, to be used again once the device is past everything submitted by now."""
        # Called by the collector at any moment: it must take no lock that the interrupted thread could hold half-way.
        timeline = self.__dict__.get("timeline")
        if timeline is not None:
            self._used_slots.append((timeline.latest(), slot))

    def sleep(self, waited_ms: float) -> None:
        """Passes a little time while a signal is waited for."""
        time.sleep(0 if waited_ms < 1 else 0.0001)

    @property
    def queue_memory(self) -> QueueMemory:
        """Memory for bound queues."""
        return self.allocator

    def _reclaim_slots(self) -> None:
        while self._used_slots:
            try:
                point, slot = self._used_slots.popleft()
            except IndexError:  # another thread was faster
                return
            if not self.timeline.reached(point):
                self._used_slots.appendleft((point, slot))
                return
            self._free_slots.append(slot)

    def _add_signal_page(self) -> HCQBuffer:
        page = self.allocator.alloc(_SIGNAL_PAGE, HOST_OPTIONS)
        self._signal_pages.append(page)
        slots = [page.offset(start, HCQSignal.SIZE) for start in range(0, _SIGNAL_PAGE, HCQSignal.SIZE)]
        self._free_slots.extend(slots[1:])
        return slots[0]
