"""Execution: schedule items to ExecItems, ExecItems to work done, and the realisation of graphs."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from weakref import ref

from tg_lazy import ANOMALY, DEBUG, LazyBuffer, Ops, ScheduleItem, Storage, schedule
from tg_lazy.ast.reach import check_reach
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.graph.origin import Origin
from tg_lazy.scheduler.schedule import recognise
from tg_shape import Variable, sym_eval

from ..anomaly.mode import watched
from ..device.registry import Device
from ..host.interrupts import Uninterrupted
from ..kernels.compile_ahead import prefetch
from ..kernels.programs import get_runner
from ..kernels.runner import BufferCopy, BufferXfer, CustomOp, EmptyOp, Runner, Vars, ViewOp
from ..memory.buffer import Buffer, buffer_of
from ..telemetry.counters import GlobalCounters, human, update_stats
from ..telemetry.profiler import PROFILE, Launch, Value, span
from .bound_schedule import plan_of


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
          RuntimeError: a buffer is still None.
          IndexError: the values of the variables lead out of a buffer.
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


class _Capturing(threading.local):
    into: list[ExecItem] | None = None
    look: Callable[[Sequence[LazyBuffer]], None] | None = None
    ended: list[Buffer] | None = None
    watched: dict[int, ref[Storage]] | None = None


_capturing = _Capturing()


@contextmanager
def capture(
    into: list[ExecItem],
    ended: list[Buffer] | None = None,
    look: Callable[[Sequence[LazyBuffer]], None] | None = None,
) -> Iterator[list[ExecItem]]:
    """Appends every ExecItem that this thread executes inside the block to ``into``; they are executed too.

    Args:
      into: takes the ExecItems.
      ended: takes the buffers that got their memory inside the block and whose Storage was gone before its end, so that
        nothing but the ExecItems can use them. Their memory is given back at once.
      look: called with the outputs of each realisation before it is scheduled. What it realises itself is executed
        and not captured.

    Raises:
      RuntimeError: a capture is going on in this thread already.
    """
    if _capturing.into is not None:
        raise RuntimeError("a capture is going on already in this thread: captures do not nest")
    _capturing.into, _capturing.ended, _capturing.watched, _capturing.look = into, ended, {}, look
    try:
        yield into
    finally:
        _capturing.into = _capturing.ended = _capturing.watched = _capturing.look = None


@contextmanager
def uncaptured() -> Iterator[None]:
    """What this thread executes inside the block is not captured, though a capture is going on around it."""
    state = _capturing.into, _capturing.ended, _capturing.watched, _capturing.look
    _capturing.into = _capturing.ended = _capturing.watched = _capturing.look = None
    try:
        yield
    finally:
        _capturing.into, _capturing.ended, _capturing.watched, _capturing.look = state


def _looked(outputs: Sequence[LazyBuffer]) -> None:
    """Lets whoever captures look at what is about to be realised."""
    look = _capturing.look
    if look is not None:
        with uncaptured():
            look(outputs)


def _watch(item: ScheduleItem) -> None:
    """Gives memory that the step is the first to use back when its Storage is gone, while a capture wants to know."""
    ended, watched = _capturing.ended, _capturing.watched
    if ended is None or watched is None:
        return
    for storage in item.bufs:
        buffer = buffer_of(storage)
        if storage.uid not in watched and not buffer.is_allocated and buffer.base is buffer:
            watched[storage.uid] = ref(storage, partial(_end, buffer, ended))


def _end(buffer: Buffer, ended: list[Buffer], gone: ref[Storage]) -> None:
    if buffer.base is buffer:  # and did not become a view
        buffer.deallocate()
        ended.append(buffer)


def capturing() -> bool:
    """Whether this thread's executions are being captured."""
    return _capturing.into is not None


def lower(item: ScheduleItem) -> ExecItem:
    """The ExecItem of a schedule item: compiles its kernel if this process has not yet.

    Raises:
      CompileError: the kernel does not compile; the message names the file that keeps its source, and a note the
        line of the user's program that it stems from.
    """
    try:
        return _lowered(item)
    except Exception as error:
        _tell_origin(error, item)
        raise


def _tell_origin(error: Exception, item: ScheduleItem) -> None:
    if item.origin:
        error.add_note(f"in the step {item!r}, which stems from {item.origin}")


def _lowered(item: ScheduleItem) -> ExecItem:
    if not PROFILE.value:
        return _lower_item(item)
    with span("lower", line=str(item.origin)):
        return _lower_item(item)


def _lower_item(item: ScheduleItem) -> ExecItem:
    ast, origin = item.ast, item.origin
    bufs = [buffer_of(storage) for storage in item.bufs]
    device = bufs[0].device
    if ast.op is Ops.SINK:
        return ExecItem(get_runner(Device[device], ast), bufs, origin)
    if ast.op is Ops.COPY:
        return ExecItem(_copy_runner(bufs[0], bufs[1]), bufs, origin)
    if ast.op is Ops.BUFFER_VIEW:
        return ExecItem(ViewOp(ast.arg, device), bufs, origin)
    if ast.op is Ops.EMPTY:
        return ExecItem(EmptyOp(device), bufs, origin)
    if ast.op is Ops.CUSTOM:
        return ExecItem(CustomOp(ast.arg, device), bufs, origin)
    raise ValueError(f"a schedule item ends in SINK, COPY, BUFFER_VIEW, EMPTY or CUSTOM, not {ast.op.name}")


def _copy_runner(dest: Buffer, src: Buffer) -> BufferCopy:
    same_kind = dest.device.partition(":")[0] == src.device.partition(":")[0]
    return (BufferXfer if same_kind else BufferCopy)(src.nbytes, dest.device, src.device)


def lower_schedule(items: Iterable[ScheduleItem]) -> Iterator[ExecItem]:
    """Lowers schedule items one by one, as they are asked for."""
    for item in items:
        yield lower(item)


def _name_unbound(exec_item: ExecItem, var_vals: Vars) -> None:
    ast = getattr(exec_item.prg, "ast", None)
    unbound = sorted(var.name for var in ast.variables() - var_vals.keys()) if ast is not None else []
    if unbound:
        raise ValueError(
            f"the variable {unbound[0]} is bound to no value, which {exec_item.prg.name} needs: "
            f"use {unbound[0]}.bind(value), not the variable itself"
        ) from None


def _execute(exec_item: ExecItem, var_vals: Vars, do_update_stats: bool = True) -> None:
    into = _capturing.into
    try:
        exec_item.run(var_vals, do_update_stats=do_update_stats)
    except KeyError:
        _name_unbound(exec_item, var_vals)
        raise
    if into is not None:
        into.append(exec_item)


def run_schedule(
    items: Iterable[ScheduleItem], var_vals: Vars | None = None, do_update_stats: bool = True
) -> None:
    """Lowers, runs and commits schedule items in order.

    What was run before an exception stays done; the rest can be scheduled again.
    """
    _run(deque(items), dict(var_vals or {}), do_update_stats)


def _run(pending: deque[ScheduleItem], values: dict[Variable, int], do_update_stats: bool = True) -> None:
    """Runs items and drops each as it is done, so that memory between two kernels is free once the second has run."""
    if len(pending) > 1:
        prefetch((Device[item.bufs[0].device], item.ast) for item in pending if item.ast.op is Ops.SINK)
    while pending:
        if _assigns(pending[0]):
            _overwrite(pending, values, do_update_stats)
            continue
        item = pending.popleft()
        try:
            exec_item = _lowered(item)
            if exec_item.prg.in_place:  # memory that nobody will want any more, but for a second run
                with Uninterrupted():
                    _done(item, exec_item, values, do_update_stats)
            else:
                _done(item, exec_item, values, do_update_stats)
        except Exception as error:
            _tell_origin(error, item)
            raise
        del item, exec_item


def _done(item: ScheduleItem, exec_item: ExecItem, values: Vars, do_update_stats: bool) -> None:
    if _capturing.into is not None:
        _watch(item)
    watch = watched(exec_item.prg, exec_item.bufs, values, item.origin) if ANOMALY.value else None
    _execute(exec_item, values, do_update_stats)
    item.commit()
    if watch is not None:
        watch.check()


def _assigns(item: ScheduleItem) -> bool:
    return any(node.op is Ops.ASSIGN for node, _ in item.commits)


def _overwrite(pending: deque[ScheduleItem], values: Vars, do_update_stats: bool) -> None:
    """Runs the items up to the last that overwrites memory as one step, which no signal cuts in two.

    Their kernels are made before the first of them runs: that takes longest, and an error in it changes nothing.
    """
    count = max(n for n, item in enumerate(pending) if _assigns(item)) + 1
    steps: deque[tuple[ScheduleItem, ExecItem]] = deque()
    for _ in range(count):
        item = pending[len(steps)]
        try:
            steps.append((item, _lowered(item)))
        except Exception as error:
            _tell_origin(error, item)
            raise
    now: list[ScheduleItem] = []

    def abandon() -> None:
        for item in now:
            for node, storage in item.commits:
                if node.op is Ops.ASSIGN:
                    buffer_of(storage).spoil(f"the assignment to it at {Origin(node.origin)} was interrupted twice")
            item.commit()  # so that nobody tries it again on that memory

    with Uninterrupted(abandon):
        while steps:
            item, exec_item = steps.popleft()
            pending.popleft()
            now[:] = [item]
            try:
                _done(item, exec_item, values, do_update_stats)
            except Exception as error:
                _tell_origin(error, item)
                raise
            now.clear()
            del item, exec_item


def _lock_for_fork() -> None:
    _realizing.acquire()
    graph_lock.acquire()


def _unlock_after_fork() -> None:
    graph_lock.release()
    _realizing.release()


_realizing = threading.RLock()
if hasattr(os, "register_at_fork"):
    # not in the middle of a realisation: the compiler's own locks would stay taken in the child for ever
    os.register_at_fork(
        before=_lock_for_fork, after_in_parent=_unlock_after_fork, after_in_child=_unlock_after_fork
    )


def realize(outputs: Sequence[LazyBuffer]) -> None:
    """Computes graphs: schedules, lowers, runs and commits. One thread at a time; others wait.

    After an exception in the middle, what was computed stays, and ``outputs`` can be realised again.

    Raises:
      AnomalyError: with ``ANOMALY``, a kernel wrote a NaN that an operation made. What it wrote stays, too.
    """
    if _capturing.into is None and not DEBUG.value and not PROFILE.value and not ANOMALY.value:
        with _realizing:
            known = recognise(outputs)
            if known is not None:
                if not known:
                    return
                template, nodes, items = known
                del known  # nothing may hold nodes that are done
                plan = plan_of(template) if items is None else None
                if plan is not None:
                    plan.run(nodes)
                    return
                pending = deque(template.items(nodes) if items is None else items)
                nodes.clear()
                del items
                _run(pending, {})
                return
    with _realizing, span("realize"):
        _looked(outputs)
        with span("schedule"):
            items, var_vals = schedule(outputs)
        if not items:
            return
        if DEBUG.value >= 3:
            for item in items:
                print(f"{item!r}")
        before = GlobalCounters.kernel_count, GlobalCounters.compile_count, GlobalCounters.compile_time_s
        pending = deque(items)
        del items
        _run(pending, var_vals)
        if DEBUG.value == 1:
            kernels, compiled = GlobalCounters.kernel_count - before[0], GlobalCounters.compile_count - before[1]
            spent = GlobalCounters.compile_time_s - before[2]
            used, peak = (human(n, "B", 1024) for n in (GlobalCounters.mem_used, GlobalCounters.mem_peak))
            print(f"realized {kernels} steps, {compiled} new ({spent * 1e3:.1f} ms to make); {used} held, most {peak}")
