"""ExecItem: a step that is ready to run."""

from __future__ import annotations

from collections.abc import Sequence

from tg_lazy import DEBUG
from tg_lazy.ast.reach import check_reach
from tg_shape import sym_eval

from ..memory.buffer import Buffer
from ..steps.runner import Runner, Vars
from ..telemetry.counters import GlobalCounters, update_stats
from ..telemetry.profiler import PROFILE, Launch, Value


class ExecItem:
    """A step that is ready to run: a runner and its buffers.

    Attributes:
      prg: the runner.
      bufs: buffers in the runner's order; None where a captured graph puts one in later.
    """

    __slots__ = ("_origin", "bufs", "prg")

    def __init__(self, prg: Runner, bufs: Sequence[Buffer | None], origin: object = "") -> None:
        self.prg, self.bufs, self._origin = prg, list(bufs), origin

    @property
    def told_origin(self) -> object:
        """What :attr:`origin` prints."""
        return self._origin

    def on(self, bufs: Sequence[Buffer | None]) -> ExecItem:
        """The same step on other buffers."""
        return ExecItem(self.prg, bufs, self._origin)

    @property
    def origin(self) -> str:
        """The line of the user's program that it stems from, as ``file:line``; empty if nobody knows."""
        return str(self._origin)

    def profile_args(self, var_vals: Vars) -> dict[str, Value]:
        """What a trace shows with it."""
        out: dict[str, Value] = {}
        for name, amount in (("flops", self.prg.op_estimate), ("bytes", self.prg.mem_estimate)):
            out[name] = amount if isinstance(amount, int) else sym_eval(amount, dict(var_vals))
        if self._origin:
            out["line"] = str(self._origin)
        return out

    def _profiled(self, bufs: list[Buffer], var_vals: Vars, wait: bool) -> float | None:
        prg = self.prg
        with Launch(prg.name, prg.device, self.profile_args(var_vals), prg.queue) as launch:
            seconds = prg(bufs, var_vals, wait or not prg.self_timed)
            launch.seconds = seconds if prg.on_device else None
        return seconds

    def run(
        self, var_vals: Vars | None = None, wait: bool = False, jit: bool = False, do_update_stats: bool = True
    ) -> float | None:
        """Runs the step.

        Args:
          var_vals: the values of the variables.
          wait: wait until it is done, and return how long it took.
          jit: the step is replayed from a captured graph.
          do_update_stats: count it in :class:`GlobalCounters`.

        Returns:
          Seconds, where it was waited for.

        Raises:
          RuntimeError: if a buffer is still None.
          IndexError: if the values of the variables lead out of a buffer.
        """
        if None in self.bufs:
            raise RuntimeError(f"{self.prg!r}: buffer {self.bufs.index(None)} was not put in")
        ready: list[Buffer] = self.bufs  # type: ignore[assignment]
        values = var_vals if var_vals is not None else {}
        prg = self.prg
        if prg.doubts:
            check_reach(f"{prg.name} on {prg.device}", prg.doubts, values)
        debug = DEBUG.value
        waits = wait or debug >= 2
        seconds = self._profiled(ready, values, waits) if PROFILE.value else prg(ready, values, waits)
        if do_update_stats and debug < 2:
            prg.count(values)
            if seconds is not None:
                GlobalCounters.time_sum_s += seconds
        elif do_update_stats:
            update_stats(
                prg.name, prg.op_estimate, prg.mem_estimate, values, seconds, len(ready), jit, prg.num_kernels, None,
                prg.device, prg.first_run,
            )  # fmt: skip
        prg.first_run = False
        return seconds

    def __repr__(self) -> str:
        return f"ExecItem({self.prg!r}, {self.bufs!r})"
