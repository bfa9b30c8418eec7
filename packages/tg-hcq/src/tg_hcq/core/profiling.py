"""Times of work in hardware queues, for the profiler: timestamps around it, and how the device's clock relates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter_ns
from typing import Protocol

from tg_runtime import DeviceError
from tg_runtime.telemetry.profiler import PROFILE, DeviceClock, Launch, Value, launch

from .queue import HWQueue
from .signal import HCQSignal

_SAMPLES = 4


class ProfiledDevice(Protocol):
    """What is asked of a device."""

    device: str
    clock: DeviceClock
    clock_known: bool

    def new_signal(self, value: int = 0) -> HCQSignal:
        """A signal."""

    def submission(self) -> AbstractContextManager[HWQueue]:
        """A queue that is submitted at the end of the block."""

    def synchronize(self) -> None:
        """Waits for everything submitted."""

    def read_clock(self) -> int | None:
        """What the device's clock shows now, in nanoseconds; None where only its queues can say."""


def calibrate(device: ProfiledDevice) -> None:
    """Reads the device's clock a few times between two readings of the host's: by itself, or else by a queue."""
    for _ in range(_SAMPLES):
        before = perf_counter_ns()
        shown = device.read_clock()
        if shown is None:
            break
        device.clock.sample(before, shown, perf_counter_ns())
    else:
        device.clock_known = True
        return
    signal = device.new_signal()
    for _ in range(_SAMPLES):
        device.synchronize()
        before = perf_counter_ns()
        with device.submission() as queue:
            queue.timestamp(signal)
        device.synchronize()
        device.clock.sample(before, nanoseconds(signal), perf_counter_ns())
    device.clock_known = True


def nanoseconds(signal: HCQSignal) -> int:
    """The timestamp of a signal."""
    return round(signal.timestamp * 1000)


def _nothing(queue: HWQueue) -> None:
    """What ends a span that is not recorded."""


@contextmanager
def timed(
    device: ProfiledDevice | None,
    queue: HWQueue,
    track: str,
    name: str | None = None,
    args: Mapping[str, Value] | None = None,
) -> Iterator[None]:
    """What the block appends to ``queue`` becomes a span of the device, while a profile is recorded.

    Args:
      device: whose queue it is; nothing is recorded if None.
      queue: the queue, not submitted yet.
      track: name of the queue in the trace.
      name: what to call it; the name of the step that is being executed if None.
      args: what to show with it; that of the step if None.
    """
    end = begin(device, queue, track, name, args)
    yield
    end(queue)


def begin(
    device: ProfiledDevice | None,
    queue: HWQueue,
    track: str,
    name: str | None = None,
    args: Mapping[str, Value] | None = None,
) -> Callable[[HWQueue], None]:
    """As :func:`timed`, where begin and end are in different submissions: call what it returns with the last queue."""
    if not PROFILE.value or device is None:
        return _nothing
    told = launch() or Launch(name or track, device.device, {})
    start, stop = device.new_signal(), device.new_signal()
    queue.timestamp(start)

    def resolve() -> None:
        device.synchronize()
        if not nanoseconds(stop):
            raise DeviceError(f"{device.device}: {told.name} was not submitted, or the device was reset since")
        if not device.clock_known:
            calibrate(device)
        told.on_device(track, nanoseconds(start), nanoseconds(stop), device.clock, name, args)

    def end(queue: HWQueue) -> None:
        queue.timestamp(stop)
        told.later(resolve)

    return end
