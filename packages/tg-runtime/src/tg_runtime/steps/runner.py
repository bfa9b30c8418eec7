"""Runner: what executes one step of a schedule."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from tg_lazy.ast.reach import Doubt
from tg_shape import Variable, sint, sym_eval

from ..memory.buffer import Buffer
from ..telemetry.counters import GlobalCounters

Vars = Mapping[Variable, int]


class _Listening(threading.local):
    told: Callable[[Runner, Sequence[Buffer]], None] | None = None


listening = _Listening()
"""Who is told of the runners that this thread executes by :meth:`Runner.exec`; a capture is."""


class Runner(ABC):
    """Executes one step on buffers.

    Attributes:
      name: what to call it in print.
      device: canonical name of the device that it runs on.
      op_estimate: arithmetic operations, symbolic where shapes are.
      mem_estimate: bytes moved, symbolic where shapes are.
      in_place: whether running it twice differs from running it once.
      first_run: whether it has not run yet.
      num_kernels: how many kernels a run stands for.
      self_timed: whether a run tells the profiler its times on the device itself; others are waited for.
      on_device: whether a run is work of the device, and not only of the host.
      queue: what a trace calls the track of its runs.
      doubts: views that some values of the variables lead out of their buffers.
      outs: the buffers that it writes and does not read, by position, where it reads all others; None where nobody
        knows.
    """

    in_place = False
    self_timed = False
    on_device = True
    queue = "kernels"
    num_kernels = 1
    doubts: tuple[Doubt, ...] = ()
    outs: tuple[int, ...] | None = None

    def __init__(self, name: str, device: str, op_estimate: sint = 0, mem_estimate: sint = 0) -> None:
        self.name, self.device = name, device
        self.op_estimate, self.mem_estimate = op_estimate, mem_estimate
        self.first_run = True

    @abstractmethod
    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Runs the step; with ``wait``, returns the seconds it took once it is done."""

    def count(self, var_vals: Vars) -> None:
        """Adds a launch that was not waited for to :data:`GlobalCounters`."""
        ops, mem = self.op_estimate, self.mem_estimate
        GlobalCounters.kernel_count += self.num_kernels
        GlobalCounters.global_ops += ops if isinstance(ops, int) else sym_eval(ops, dict(var_vals))
        GlobalCounters.global_mem += mem if isinstance(mem, int) else sym_eval(mem, dict(var_vals))

    def exec(self, bufs: Sequence[Buffer], var_vals: Vars | None = None) -> float | None:
        """Runs the step on buffers, waits for it and returns the seconds it took; a capture records it."""
        for buffer in bufs:
            buffer.ensure_allocated()
        seconds = self(bufs, var_vals or {}, wait=True)
        if listening.told is not None:
            listening.told(self, bufs)
        return seconds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} on {self.device}>"
