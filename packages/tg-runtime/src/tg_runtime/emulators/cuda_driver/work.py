"""What the mock of the CUDA driver does, and when: streams, events, launches and graphs.

Work is queued, and done when somebody waits for it: as late as may be, and on no other stream than is waited for. Who
asks whether it is done has one piece of it done, and is told that more is left. What
was not made to wait for something else is so done before it, and a copy or a kernel that should have waited shows.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...headers.cuda import api, bindings
from ..ptx.machine import Kernel

THREADS, SHARED_BYTES, BLOCK_LIMITS = 1024, 48 << 10, (1024, 1024, 64)
GRID_LIMITS = (2**31 - 1, 65535, 65535)
MOST_QUEUED = 256
# most shared memory of a block, by capability; elsewhere it is 99 KiB
MOST_SHARED = {75: 64 << 10, 80: 163 << 10, 87: 163 << 10, 90: 227 << 10, 100: 227 << 10, 103: 227 << 10}


class Failure(Exception):
    """A call fails with a status."""

    def __init__(self, code: int) -> None:
        super().__init__(bindings.ERRORS.get(code, str(code)))
        self.code = code


class Stream:
    """Work in order.

    Attributes:
      device: whose it is.
      queued: how much was ever queued.
      done: how much of it is done.
    """

    def __init__(self, device: int) -> None:
        self.device = device
        self.queued = self.done = 0
        self._work: deque[Callable[[], None] | Moment] = deque()

    def add(self, work: Callable[[], None] | Moment) -> None:
        """Queues work, or the wait for another stream to reach a moment.

        Where there is too much, some of it is done: a driver's queue is not endless either.
        """
        self._work.append(work)
        self.queued += 1
        if len(self._work) > MOST_QUEUED:
            self.run(self.queued - MOST_QUEUED // 2)

    def run(self, until: int | None = None) -> None:
        """Does what is queued, up to a count."""
        until = self.queued if until is None else until
        while self.done < until:
            self._next()

    def step(self, until: int | None = None) -> None:
        """Does one piece of that. Fails if more is left."""
        until = self.queued if until is None else until
        if self.done < until:
            self._next()
        if self.done < until:
            raise Failure(api.NOT_READY)

    def _next(self) -> None:
        work = self._work[0]
        if isinstance(work, Moment) and work.stream.done < work.place:
            work.stream._next()
            return
        self._work.popleft()
        self.done += 1
        if not isinstance(work, Moment):
            work()


@dataclass
class Moment:
    """A place in a stream, and the time when it was reached."""

    stream: Stream
    place: int
    seconds: float | None = None


class Event:
    """What was recorded last."""

    moment: Moment | None = None

    def record(self, stream: Stream) -> None:
        """Takes the stream's present end."""
        moment = self.moment = Moment(stream, stream.queued + 1)

        def note() -> None:
            moment.seconds = time.perf_counter()

        stream.add(note)

    def wait(self) -> None:
        """Does all that comes before it."""
        if self.moment is not None:
            self.moment.stream.run(self.moment.place)

    def step(self) -> None:
        """Does one piece of that. Fails if more is left."""
        if self.moment is not None:
            self.moment.stream.step(self.moment.place)

    @property
    def seconds(self) -> float:
        """When it was reached."""
        if self.moment is None:
            raise Failure(api.INVALID_HANDLE)
        if self.moment.seconds is None:
            raise Failure(api.NOT_READY)
        return self.moment.seconds


class Function:
    """A kernel as a module gave it.

    Attributes:
      kernel: the kernel.
      dynamic_bytes: how much memory a launch may ask for beside what the kernel declares.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.dynamic_bytes = max(0, SHARED_BYTES - kernel.shared_bytes)

    @property
    def max_threads(self) -> int:
        """Most threads of a block."""
        x, y, z = self.kernel.max_threads or (THREADS, 1, 1)
        return min(THREADS, x * y * z)


class Graph:
    """Launches by the handles of their nodes, and for each node those that it follows."""

    def __init__(self) -> None:
        self.launches: dict[int, Launch] = {}
        self.before: dict[int, set[int]] = {}


class Executable:
    """A graph as it was when it was instantiated."""

    def __init__(self, graph: Graph) -> None:
        self.launches = dict(graph.launches)
        self.before = dict(graph.before)

    def order(self) -> list[Launch]:
        """The launches in an order that the edges allow, those that were added last as early as may be."""
        found: dict[int, Launch] = {}
        while len(found) < len(self.launches):
            ready = (n for n in reversed(self.launches) if n not in found and self.before[n] <= found.keys())
            node = next(ready)
            found[node] = self.launches[node]
        return list(found.values())


class Launch:
    """A kernel with all that it takes to run it.

    Attributes:
      pointers: what the kernel gets as addresses.
    """

    def __init__(
        self, function: Function, grid: tuple[Any, ...], block: tuple[Any, ...], shared_bytes: int, params: Any
    ) -> None:
        self.function, self.shared_bytes = function, shared_bytes
        self.params, self.pointers = read(function.kernel, params)
        self.grid: tuple[int, int, int] = (grid[0], grid[1], grid[2])
        self.block: tuple[int, int, int] = (block[0], block[1], block[2])
        self.check()

    def check(self) -> None:
        """Fails where a device would refuse."""
        threads = self.block[0] * self.block[1] * self.block[2]
        sizes = zip((*self.grid, *self.block), (*GRID_LIMITS, *BLOCK_LIMITS), strict=True)
        fits = all(0 < size <= limit for size, limit in sizes) and threads <= self.function.max_threads
        if not fits or self.shared_bytes > self.function.dynamic_bytes:
            raise Failure(api.INVALID_VALUE)

    def run(self) -> None:
        """Runs the kernel."""
        self.function.kernel.launch(self.params, self.grid, self.block, self.shared_bytes)


def read(kernel: Kernel, params: Any) -> tuple[bytes, list[int]]:
    """The arguments that an array of pointers points to: as they lie in memory, and the addresses among them."""
    found = bytearray(kernel.params_bytes)
    pointers = []
    if kernel.params and not params:
        raise Failure(api.INVALID_VALUE)
    for number, variable in enumerate(kernel.params):
        place = params[number]
        if not place:
            raise Failure(api.INVALID_VALUE)
        data = ctypes.string_at(place, variable.nbytes)
        begin = kernel.offsets[variable.name]
        found[begin : begin + variable.nbytes] = data
        if variable.nbytes == 8:
            pointers.append(int.from_bytes(data, "little"))
    return bytes(found), pointers
