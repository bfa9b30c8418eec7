"""What happened when: spans of the host and of every device's queues, on one clock, as a Chrome or Perfetto trace.

``PROFILE=1`` records from the first step on and writes a file when the process ends; :func:`profile` does so for a
block. The clock is ``time.perf_counter_ns``. A device with a clock of its own maps it by a :class:`DeviceClock`; what a
queue knows only later is asked for when the trace is written, so that recording makes nobody wait. While ``PROFILE`` is
0, all that is left of this on the way of a launch is the look at ``PROFILE.value``.

The label of a device's process says by how much its spans may be displaced against the host's.

The format is Google's "Trace Event Format": complete events (``ph`` = ``X``), one process for the host and one for each
device, one thread for each thread and each queue.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter_ns
from types import TracebackType
from typing import TypeAlias

from tg_lazy import Context, ContextVar

PROFILE: ContextVar[int] = ContextVar("PROFILE", 0)
PROFILE_FILE: ContextVar[str] = ContextVar("PROFILE_FILE", "")

Value: TypeAlias = str | int | float
HOST = "host"
_MOST_PENDING = 1024


class DeviceClock:
    """How a device's clock relates to the host's, narrowed by every moment at which both are known.

    Attributes:
      low: least that the host's clock may be ahead, in nanoseconds; None if nothing is known.
      high: most.

    Example:
      >>> clock = DeviceClock()
      >>> clock.sample(1000, 40, 1010)  # what the device calls 40 lies between 1000 and 1010 on the host
      >>> clock.host(50), clock.error_ns
      (1015, 5)
    """

    def __init__(self) -> None:
        self.low: int | None = None
        self.high: int | None = None

    def sample(self, before_ns: int | None, device_ns: int, after_ns: int | None) -> None:
        """The device's moment lies between two of the host's; None for a bound that is not known.

        A sample that contradicts those before it says that one clock ran faster since: it replaces them.
        """
        low = None if before_ns is None else before_ns - device_ns
        high = None if after_ns is None else after_ns - device_ns
        if (low is not None and self.high is not None and low > self.high) or (
            high is not None and self.low is not None and high < self.low
        ):
            self.low = self.high = None
        if low is not None:
            self.low = low if self.low is None else max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)

    @property
    def error_ns(self) -> int | None:
        """By how much :meth:`host` may be wrong, in nanoseconds; None while a bound is not known."""
        return None if self.low is None or self.high is None else -(-(self.high - self.low) // 2)

    def host(self, device_ns: int) -> int:
        """The host's time of a moment of the device."""
        if self.low is None or self.high is None:
            return device_ns + (self.low or self.high or 0)
        return device_ns + (self.low + self.high) // 2


class Event:
    """A span on a track.

    Attributes:
      process: ``host`` or a device's name.
      thread: the thread's or queue's name.
      name: what ran.
      category: kind of work.
      start: nanoseconds of ``clock``, or of the host where there is none.
      end: likewise.
      args: what else to show.
      clock: of the device.
    """

    __slots__ = ("args", "category", "clock", "end", "name", "process", "start", "thread")

    def __init__(
        self, process: str, thread: str, name: str, category: str, start: int, end: int, args: Mapping[str, Value],
        clock: DeviceClock | None = None,
    ) -> None:  # fmt: skip
        self.process, self.thread, self.name, self.category = process, thread, name, category
        self.start, self.end, self.args, self.clock = start, end, args, clock

    def times(self) -> tuple[int, int]:
        """Start and end on the host's clock, in nanoseconds."""
        if self.clock is None:
            return self.start, self.end
        start = self.clock.host(self.start)
        return start, start + self.end - self.start


class Recorder:
    """The spans of one trace.

    Attributes:
      events: those known so far.
      origin_ns: the moment that the trace calls 0.
      lost: spans whose device could not tell their times any more.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.origin_ns = perf_counter_ns()
        self.lost = 0
        self._pending: list[Callable[[], None]] = []
        self._devices: set[str] = set()

    def later(self, device: str, resolve: Callable[[], None]) -> None:
        """Keeps ``resolve``, which adds events once the device knows their times; it may wait for the device."""
        if device not in self._devices:
            self._devices.add(device)
            if _written_at_exit:
                _write_at_exit()  # registered again, so that it runs before devices that were opened since are closed
        if len(self._pending) >= _MOST_PENDING:
            self.flush()
        self._pending.append(resolve)

    def flush(self) -> None:
        """Asks devices for what they know by now."""
        pending, self._pending = self._pending, []
        for resolve in pending:
            try:
                resolve()
            except Exception:  # a device that stopped: the trace shows what came before
                self.lost += 1

    def trace(self) -> dict[str, object]:
        """The trace as Perfetto and ``chrome://tracing`` read it, before it is made JSON."""
        self.flush()
        processes: dict[str, int] = {HOST: 1}
        threads: dict[tuple[str, str], int] = {}
        rows: list[dict[str, object]] = []
        timed = [(event, *event.times()) for event in list(self.events)]
        for event, start, end in sorted(timed, key=lambda row: (row[1], -row[2])):
            pid = processes.setdefault(event.process, len(processes) + 1)
            tid = threads.setdefault((event.process, event.thread), len(threads) + 1)
            rows.append(
                {
                    "ph": "X", "name": event.name, "cat": event.category, "pid": pid, "tid": tid,
                    "ts": _microseconds(start - self.origin_ns), "dur": _microseconds(end - start),
                    "args": _rates(event.args, end - start),
                }
            )  # fmt: skip
        names: list[dict[str, object]] = []
        errors = {event.process: event.clock.error_ns for event, *_ in timed if event.clock is not None}
        for name, pid in processes.items():
            names.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
            if (error := errors.get(name)) is not None:
                label = f"clock within {_microseconds(error)} us of the host's"
                names.append({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}})
        for (process, name), tid in threads.items():
            names.append(
                {"ph": "M", "name": "thread_name", "pid": processes[process], "tid": tid, "args": {"name": name}}
            )
        return {"traceEvents": names + rows, "displayTimeUnit": "ns", "otherData": {"lost": self.lost}}

    def write(self, path: str) -> None:
        """Writes the trace as JSON.

        Raises:
          OSError: if the file cannot be written.
        """
        from json import dumps

        text = dumps(self.trace())
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _microseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1000, 3)


def _rates(args: Mapping[str, Value], nanoseconds: int) -> dict[str, Value]:
    out = dict(args)
    for amount, rate in (("flops", "GFLOP/s"), ("bytes", "GB/s")):
        value = out.get(amount)
        if isinstance(value, int) and value and nanoseconds > 0:
            out[rate] = round(value / nanoseconds, 3)
    return out


_recorder = Recorder()
_written_at_exit = False
_forked = False


def recorder() -> Recorder:
    """Where spans go now."""
    if not _written_at_exit and _recorder is _whole:
        _write_at_exit()
    return _recorder


_whole = _recorder


def _write_at_exit() -> None:
    global _written_at_exit
    _written_at_exit = True
    atexit.unregister(_write)
    atexit.register(_write)


def _write() -> None:
    path = trace_path() or _new_file()
    _whole.write(path)
    print(f"profile of {len(_whole.events)} spans: {path} (open it in https://ui.perfetto.dev)")


def trace_path() -> str:
    """Where ``PROFILE=1`` writes: ``PROFILE_FILE``; empty for a new file in the folder for temporary files."""
    chosen = PROFILE_FILE.value
    if not chosen or not _forked:
        return chosen
    stem, suffix = os.path.splitext(chosen)
    return f"{stem}-{os.getpid()}{suffix}"


def _new_file() -> str:
    """A new file in the folder for temporary files: others write there, and could have put a link under any name."""
    from tempfile import mkstemp

    handle, path = mkstemp(".json", f"tinytg-profile-{os.getpid()}-")
    os.close(handle)
    return path


def _after_fork() -> None:
    global _recorder, _whole, _written_at_exit, _forked
    _recorder = _whole = Recorder()
    _written_at_exit, _forked = False, True
    atexit.unregister(_write)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def profile(path: str | os.PathLike[str]) -> Iterator[Recorder]:
    """Records what happens in the block, in all threads, and writes it to ``path`` at the end. Blocks do not nest.

    Raises:
      RuntimeError: if a block like this one is being recorded.
      OSError: if the file cannot be written.

    Example:
      >>> import json, os, tempfile
      >>> from tg_dtype import dtypes
      >>> from tg_runtime import Buffer, profile
      >>> path = os.path.join(tempfile.gettempdir(), f"profile-{os.getpid()}.json")
      >>> with profile(path):
      ...     b = Buffer("NUMPY", 4, dtypes.uint8).copyin(memoryview(b"abcd"))
      >>> with open(path) as file:
      ...     [e["name"] for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
      ['copyin']
      >>> os.unlink(path)
    """
    global _recorder
    if _recorder is not _whole:
        raise RuntimeError("profile: another block is being recorded")
    mine = _recorder = Recorder()
    try:
        with Context(PROFILE=1):
            yield mine
    finally:
        _recorder = _whole
        mine.write(os.fspath(path))


class Span:
    """A piece of the host's work, on the track of the thread that did it."""

    __slots__ = ("args", "category", "name", "start")

    def __init__(self, name: str, category: str, args: Mapping[str, Value]) -> None:
        self.name, self.category, self.args = name, category, args
        self.start = 0

    def __enter__(self) -> Span:
        self.start = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        args = self.args if error is None else {**self.args, "error": f"{type(error).__name__}: {error}"}
        add_host_span(self.name, self.category, self.start, perf_counter_ns(), args)


class _Nothing:
    __slots__ = ()

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NOTHING = _Nothing()


def span(name: str, category: str = HOST, **args: Value) -> Span | _Nothing:
    """A ``with`` block that is a span of the host, while a profile is recorded.

    >>> with span("read the batch", rows=32):
    ...     pass
    """
    return Span(name, category, args) if PROFILE.value else _NOTHING


def add_host_span(name: str, category: str, start_ns: int, end_ns: int, args: Mapping[str, Value]) -> None:
    """Adds a span to the track of this thread."""
    recorder().events.append(Event(HOST, threading.current_thread().name, name, category, start_ns, end_ns, args))


class _Current(threading.local):
    launch: Launch | None = None


_current = _Current()


class Launch:
    """A step that this thread is having a device execute, while a profile is recorded.

    Whoever knows the times of the device's work calls :meth:`on_device`. If nobody does, the step is taken to end
    when the call returns, and to have begun as many seconds earlier as the call returned.

    Attributes:
      name: what runs.
      device: where.
      args: what to show with it: ``flops``, ``bytes``, ``line``.
      queue: track on which it is shown if nobody calls :meth:`on_device`.
      seconds: what the call returned; None where nothing ran on the device.
    """

    def __init__(self, name: str, device: str, args: Mapping[str, Value], queue: str = "kernels") -> None:
        self.name, self.device, self.args, self.queue = name, device, args, queue
        self.seconds: float | None = None
        self._recorder = recorder()
        self._start = 0
        self._told = False
        self._outer: Launch | None = None

    def on_device(
        self,
        queue: str,
        start: int,
        end: int,
        clock: DeviceClock | None = None,
        name: str | None = None,
        args: Mapping[str, Value] | None = None,
    ) -> None:
        """Adds a span of the device: the step's, or, with ``name`` and ``args``, of a part of it.

        Args:
          queue: name of the queue.
          start: nanoseconds of ``clock``, or of ``time.perf_counter_ns`` if there is none.
          end: likewise.
          clock: of the device.
          name: instead of the step's.
          args: instead of the step's.
        """
        self._told = True
        shown = self.args if args is None else args
        self._recorder.events.append(Event(self.device, queue, name or self.name, "device", start, end, shown, clock))

    def later(self, resolve: Callable[[], None]) -> None:
        """As :meth:`Recorder.later`, for a function that will call :meth:`on_device`."""
        self._told = True
        self._recorder.later(self.device, resolve)

    def __enter__(self) -> Launch:
        self._outer, _current.launch = _current.launch, self
        self._start = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end = perf_counter_ns()
        _current.launch = self._outer
        if not self._told and self.seconds is not None and error is None:
            self.on_device(self.queue, max(end - int(self.seconds * 1e9), self._start), end)
        add_host_span(f"launch {self.name}", "launch", self._start, end, {"device": self.device})


def launch() -> Launch | None:
    """The step that this thread is having executed; None outside of one. Ask only while ``PROFILE.value``."""
    return _current.launch
