"""Timeline: the one order in which everything submitted to a device happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tg_runtime import DeviceError
from tg_runtime.host.interrupts import Uninterrupted
from tg_runtime.host.locks import fork_safe_lock
from tg_shape import Variable

from .buffer import HCQBuffer
from .pending import Pending
from .queue import HWQueue, QueueDevice
from .replay import Counter

Q = TypeVar("Q", bound=HWQueue)

LIMIT = 2**31 - 1  # hardware that compares 32 bits compares them signed

SIGNAL = Variable("timeline_signal", 0, 2**64 - 1)
VALUE = Variable("timeline_value", 1, LIMIT)


class Timeline:
    """A signal that counts submissions. Each waits for the one before it and sets the next value.

    Values stay below ``limit``: beyond it the device is waited for, and counting begins again on a second signal, so
    that a wait for an old value still passes.

    What was opened before a fork is the parent's: in the child everything raises, before it takes a lock.

    Attributes:
      signal: the signal now in use.
      limit: the greatest value.
      lock: held while a submission is put together. Reentrant.
      epoch: how often counting began again.
      pending: what the submissions write that are not done.
    """

    def __init__(self, device: QueueDevice, limit: int = LIMIT) -> None:
        if not 1 <= limit <= LIMIT:
            raise ValueError(f"timeline of {device.device}: the limit {limit} is not in 1 to {LIMIT}")
        self._device = device
        self.signal, self._other = device.new_signal(), device.new_signal()
        self.limit = limit
        # where native code finds them: the signal's address, and the value of the last submission
        self._where, self._last = Counter(), Counter()
        self._look()
        self.lock = fork_safe_lock()
        self.epoch = 0
        self.pending = Pending(self.reached)
        self._system = device.system
        self._process = self._system.process_id

    @property
    def value(self) -> int:
        """What the next submission will set the signal to."""
        return self._last.value + 1

    @property
    def ours(self) -> bool:
        """Whether this process opened the device, and may so touch what the device reads."""
        return self._process == self._system.process_id

    def require(self) -> None:
        """Does nothing in the process that opened the device.

        Raises:
          DeviceError: if the process was forked since.
        """
        if not self.ours:
            raise DeviceError(
                f"{self._device.device} was opened before this process was forked, and is lost in the child; "
                "open it in the child first, or start processes by spawning"
            )

    @contextmanager
    def submission(self, queue: Q) -> Iterator[Q]:
        """Submits what the block appends to ``queue``, after everything that was submitted before.

        An exception in the block submits nothing.

        Raises:
          DeviceFault: if the device is stopped.
          DeviceError: if the process was forked since it was opened; likewise wherever something is waited for.
        """
        self.require()
        # no signal between the lock, or the doorbell, and what is noted of it
        with Uninterrupted(), self.lock:
            self._device.raise_error_state()
            self.make_room()
            queue.wait(self.signal, self.value - 1).memory_barrier()
            yield queue
            if queue.writes:
                self.pending.add((self.epoch, self.value), queue.writes)
            queue.signal(self.signal, self.value).count(VALUE, self._last, 1).submit(self._device)

    @contextmanager
    def recording(self, queue: Q) -> Iterator[Q]:
        """Makes ``queue`` one that ``replay`` can submit: the block's commands, between a symbolic wait and signal."""
        queue.count(SIGNAL, self._where, 0).count(VALUE, self._last, 1)
        queue.wait(SIGNAL, VALUE - 1).memory_barrier()
        yield queue
        queue.signal(SIGNAL, VALUE)

    def follow(self, queue: HWQueue, signal: Variable, last: Variable) -> None:
        """Has a recorded queue, of this device or another, wait for what was submitted before.

        Args:
          queue: the queue.
          signal: a variable for the signal's address; each submission finds its value.
          last: a variable for the value that is waited for; each submission is given it.
        """
        queue.count(signal, self._where, 0).wait(signal, last)

    def replay(
        self, queue: HWQueue, var_vals: Mapping[Variable, int] | None = None, writes: Sequence[HCQBuffer] = ()
    ) -> None:
        """Submits a recorded queue, after everything that was submitted before.

        Args:
          queue: the queue.
          var_vals: the values of its variables.
          writes: the buffers it writes whose addresses are among the values.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds; nothing has been sent then.
          DeviceFault: if the device is stopped.
        """
        # What is noted of a submission is noted by the call that rings the doorbell: a signal comes before or after it.
        with self.lock:
            self.make_room()
            if writes or queue.writes:
                self.pending.add((self.epoch, self.value), [*queue.writes, *writes])
            queue.submit(self._device, var_vals)

    def point(self) -> tuple[int, int]:
        """Everything submitted so far, for ``reached`` and ``wait``."""
        with self.lock:
            return self.epoch, self.value - 1

    def latest(self) -> tuple[int, int]:
        """As ``point``, without waiting for the lock: a submission that is being put together counts as submitted."""
        with Uninterrupted():
            if not self.lock.acquire(blocking=False):
                return self.epoch, self.value
            try:
                return self.epoch, self.value - 1
            finally:
                self.lock.release()

    def here(self) -> Callable[[], bool]:
        """A function that says whether everything submitted by now is done."""
        point = self.latest()
        return lambda: self.reached(point)

    def reached(self, point: tuple[int, int]) -> bool:
        """Whether everything up to a point is done."""
        epoch, value = point
        return epoch < self.epoch or self.signal.value >= value

    def wait(self, point: tuple[int, int], timeout_ms: int | None = None) -> None:
        """Returns once everything up to a point is done.

        Raises:
          DeviceTimeout: if the device makes no progress for ``timeout_ms``.
          DeviceFault: if the device is stopped.
        """
        self.require()
        with self.lock:
            epoch, signal = self.epoch, self.signal
        if point[0] == epoch:
            signal.wait(point[1], timeout_ms)

    def synchronize(self, timeout_ms: int | None = None) -> None:
        """Returns once everything submitted so far is done.

        Raises:
          DeviceTimeout: if the device makes no progress for ``timeout_ms``.
          DeviceFault: if the device is stopped.
        """
        self.wait(self.point(), timeout_ms)

    def restart(self) -> None:
        """Forgets what was submitted. For a device that was reset."""
        with Uninterrupted(), self.lock:
            self.signal.value = self.value - 1  # other devices that wait for what was dropped go on
            self.epoch += 1
            self.signal, self._other = self._other, self.signal
            self.signal.value = self._last.value = 0
            self._look()

    def _look(self) -> None:
        address = self.signal.address
        assert isinstance(address, int)
        self._where.value = address

    def make_room(self) -> None:
        """Begins to count again where the next value would be beyond the limit; waits for the device then."""
        if self.value > self.limit:
            self.signal.wait(self.value - 1)
            self.restart()
