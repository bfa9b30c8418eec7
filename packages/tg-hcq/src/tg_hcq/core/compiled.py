"""HCQCompiled: a device that is driven through hardware queues."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, Protocol
from weakref import WeakSet

from tg_codegen import Renderer
from tg_lazy import ContextVar
from tg_runtime import BufferXfer, Compiled, CompiledRunner, Compiler, Device, DeviceError, Program
from tg_runtime.host.interrupts import Uninterrupted
from tg_runtime.telemetry.profiler import DeviceClock

from .allocator import HOST_OPTIONS, HCQAllocator
from .buffer import HCQBuffer
from .errors import DeviceFault, DeviceLost, DeviceTimeout
from .fault import ALLOCATIONS, CODE, RINGS, FaultReport, Known
from .kernargs import KernargsRing
from .queue import HWQueue, QueueMemory
from .ring import Ring, tail_of
from .scratch import Scratch
from .signal import HCQSignal
from .system import System, real_system
from .timeline import LIMIT, Timeline

HCQ_TIMEOUT_MS: ContextVar[int] = ContextVar("HCQ_TIMEOUT_MS", 30000)

_SIGNAL_PAGE: Final = 4096


class LoadedCode(Protocol):
    """A program, as far as a fault report asks for it."""

    name: str

    def code(self) -> tuple[int, int]:
        """Where its instructions are: address and size."""

    def __hash__(self) -> int: ...


class HCQCompiled(Compiled):
    """A device with a compute queue, perhaps a copy queue, and one timeline over both.

    A subclass constructs its allocator and its queues, and says what its interfaces tell of a fault
    (:meth:`collect_fault`) and how it is brought back (:meth:`_reset`).

    Attributes:
      system: what it asks of the operating system.
      timeline: the order of everything submitted.
      kernargs: short-lived argument blocks.
      scratch: private memory of kernels.
      queues: what makes a queue of each kind, by name: ``"compute"``, ``"copy"``, and what else a driver has
        (``"copy1"``), each with a ring of its own.
      ticks_per_us: the device's clock rate.
      timeout_ms: how long a signal may stand still before it is given up; the setting ``HCQ_TIMEOUT_MS``.
      error_state: what stopped the device; None while it runs.
      generation: how often the device was reset.
      loaded: the programs that are loaded.
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
        self.loaded: WeakSet[LoadedCode] = WeakSet()
        self.clock, self.clock_known = DeviceClock(), False
        self._signal_pages: list[HCQBuffer] = []
        self._free_slots: deque[HCQBuffer] = deque()
        # slots whose signal is gone, with the last submission that may write to them
        self._used_slots: deque[tuple[tuple[int, int], HCQBuffer]] = deque()
        self.timeline = Timeline(self, timeline_limit)
        allocator.attach(self.timeline, compute_queue, copy_queue, self)
        self.scratch = Scratch(allocator, self.timeline)
        self.queues: dict[str, Callable[[], HWQueue]] = {"compute": compute_queue}
        if copy_queue is not None:
            self.queues["copy"] = copy_queue
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
            error.report = self.completed(FaultReport(self.device, Known("no progress", "signals in memory")))
            self.fail(error)
            raise
        self.check_fault()
        self.raise_error_state()
        self.allocator.reap()

    def joins(self, step: object) -> bool:
        """Copies within the group of devices that reach one another's memory, and kernels of these devices."""
        if isinstance(step, BufferXfer):
            names = [step.dest_device, step.src_device]
        elif isinstance(step, CompiledRunner) and not step.symbolic:
            names = [step.device]
        else:
            return False
        allocators = [Device[name].allocator for name in names]
        return all(isinstance(a, HCQAllocator) and a.peer_group == self.allocator.peer_group for a in allocators)

    # faults

    def fail(self, error: DeviceError) -> None:
        """Marks the device as stopped. The first error is kept."""
        if self.error_state is None:
            self.error_state = error

    def raise_error_state(self) -> None:
        """Raises a copy of what stopped the device, if it is stopped; DeviceError in a process forked since."""
        self.timeline.require()
        if self.error_state is not None:
            error = type(self.error_state)(*self.error_state.args)
            if isinstance(self.error_state, DeviceFault | DeviceTimeout) and isinstance(
                error, DeviceFault | DeviceTimeout
            ):
                error.report = self.error_state.report
            raise error from self.error_state

    def collect_fault(self) -> DeviceFault | None:
        """What the device's interfaces tell of a fault; None if there is none. Asked on every wait, so it is quick.

        The report of the error holds what those interfaces tell and nothing else.
        """
        return None

    def check_fault(self) -> None:
        """Asks for a fault, and marks the device as stopped if there is one."""
        if self.error_state is None and (error := self.collect_fault()) is not None:
            if error.report is not None:
                error.report = self.completed(error.report)
            self.fail(error)

    def completed(self, report: FaultReport) -> FaultReport:
        """A report with what this process knows: the kernel, the nearest allocation, the last packets of each ring."""
        kernel, near = report.kernel, report.near
        if kernel is None and report.pc is not None:
            at = report.pc.value
            for program in self.loaded:
                start, nbytes = program.code()
                if start <= at < start + nbytes:
                    kernel = Known(program.name, CODE)
        if near is None and report.address is not None:
            found = self.allocator.allocations.nearest(report.address.value)
            near = None if found is None else Known(found, ALLOCATIONS)
        tails = tuple(Known(tail_of(ring, self.packet_text), RINGS) for ring in self.rings())
        return replace(report, kernel=kernel, near=near, rings=(*report.rings, *tails))

    def rings(self) -> Sequence[Ring]:
        """The rings that its queues are."""
        return ()

    def packet_text(self, words: Sequence[int]) -> tuple[int, str]:
        """What the packet is that some words of a ring begin with: how many words it has, and how it reads."""
        return 1, f"{words[0]:#010x}"

    def reset(self) -> None:
        """Brings the device back after a fault, or in the middle of its work: what was submitted is dropped.

        Whoever waits for the device gets an error. Memory whose content is lost, because a dropped submission was
        writing it or the device forgot it, raises :class:`~tg_hcq.core.errors.ContentLost` (or, as a tensor's buffer,
        the error of half-written memory) on every use; all other memory is as it was, and new work runs.

        Raises:
          DeviceError: if the process was forked since the device was opened; or it cannot be reset, and stays stopped.
        """
        self.timeline.require()
        # whoever waits gives up, and lets go of the lock
        self.fail(DeviceFault(f"{self.device} is being reset"))
        with Uninterrupted(), self.timeline.lock:
            try:
                kept = self._reset()
            except DeviceError as error:
                self.error_state = error
                raise
            self.allocator.outlive_peers()
            self.timeline.pending.lose(self.allocator, f"{self.device} was reset while it was being written")
            if not kept:
                self.allocator.lose_all(f"{self.device} was reset, and forgot its memory")
            self.generation += 1
            self.timeline.restart()
            self.error_state = None

    def close(self) -> None:
        """Gives the hardware back. A device that holds none does nothing."""

    def _reset(self) -> bool:
        """Stops the hardware and starts it again with empty queues. The timeline's lock is held.

        Returns:
          Whether device memory kept its content, but for what was being written. Host memory always does.

        Raises:
          DeviceError: if the device cannot be brought back; :class:`~tg_hcq.core.errors.DeviceLost` if nothing that
            this process can do will help.
        """
        raise DeviceLost(f"{self.device} cannot be reset: only a new process can go on")

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
        """Passes a little time while a signal is waited for, and asks for a fault."""
        self.check_fault()
        self.pause(waited_ms)

    def pause(self, waited_ms: float) -> None:
        """Passes a little time, until something may have changed; for a driver that has something better to wait on."""
        time.sleep(0 if waited_ms < 1 else 0.0001)

    def read_clock(self) -> int | None:
        """What the device's clock shows now, in nanoseconds; None where only its queues can say."""
        return None

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
