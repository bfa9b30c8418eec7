"""Realisation: graphs scheduled, bound to programs or lowered, and run. One way down, with nothing called back."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence

from tg_lazy import ANOMALY, DEBUG, LazyBuffer, schedule
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.scheduler.schedule import recognise

from ..device.registry import Device
from ..telemetry.counters import GlobalCounters, human
from ..telemetry.profiler import PROFILE, span
from .bound_schedule import bound_schedule
from .capture import current, show
from .run import run_items


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
      AnomalyError: if with ``ANOMALY``, a kernel wrote a NaN that an operation made. What it wrote stays, too.
    """
    with _realizing:
        for output in outputs:
            Device[output.device]  # open: schedules are made under its limits
        if current.into is not None or DEBUG.value or PROFILE.value or ANOMALY.value:
            _realize_observed(outputs)
            return
        known = recognise(outputs)
        if known is None:  # a graph of a kind that is not remembered
            items, values = schedule(outputs)
            pending = deque(items)
            del items
            run_items(pending, values)
            return
        if not known:
            return
        template, nodes, made = known
        del known  # nothing may hold nodes that are done
        bound = bound_schedule(template) if made is None else None
        if bound is not None:
            bound.run(nodes)
            return
        pending = deque(template.items(nodes) if made is None else made)
        nodes.clear()
        del made
        run_items(pending, {})


def _realize_observed(outputs: Sequence[LazyBuffer]) -> None:
    """The same for whoever records, prints, profiles or looks for anomalies: every step is an item of its own."""
    with span("realize"):
        show(outputs)
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
        run_items(pending, var_vals)
        if DEBUG.value == 1:
            kernels, compiled = GlobalCounters.kernel_count - before[0], GlobalCounters.compile_count - before[1]
            spent = GlobalCounters.compile_time_s - before[2]
            used, peak = (human(n, "B", 1024) for n in (GlobalCounters.mem_used, GlobalCounters.mem_peak))
            print(f"realized {kernels} steps, {compiled} new ({spent * 1e3:.1f} ms to make); {used} held, most {peak}")
