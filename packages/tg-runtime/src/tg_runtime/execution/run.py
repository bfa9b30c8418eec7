"""Schedule items run in order: each lowered, executed, committed and dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tg_lazy import ANOMALY, Ops, ScheduleItem
from tg_lazy.graph.origin import Origin
from tg_shape import Variable

from ..anomaly.mode import watched
from ..device.registry import Device
from ..host.interrupts import Uninterrupted
from ..kernels.compile_ahead import compile_ahead, settle
from ..memory.buffer import buffer_of
from ..steps.runner import Vars
from .capture import current, note_memory
from .item import ExecItem
from .loop import sources_inside
from .lower import lowered, tell_origin


def _name_unbound(exec_item: ExecItem, var_vals: Vars) -> None:
    ast = getattr(exec_item.prg, "ast", None)
    unbound = sorted(var.name for var in ast.variables() - var_vals.keys()) if ast is not None else []
    if unbound:
        raise ValueError(
            f"the variable {unbound[0]} is bound to no value, which {exec_item.prg.name} needs: "
            f"use {unbound[0]}.bind(value), not the variable itself"
        ) from None


def _execute(exec_item: ExecItem, var_vals: Vars, do_update_stats: bool = True) -> None:
    into = current.into
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
    run_items(deque(items), dict(var_vals or {}), do_update_stats)


def run_items(pending: deque[ScheduleItem], values: dict[Variable, int], do_update_stats: bool = True) -> None:
    """Runs items and drops each as it is done, so that memory between two kernels is free once the second has run."""
    if len(pending) > 1:
        kernels = ((Device[item.bufs[0].device], item.ast) for item in pending if item.ast.op is Ops.SINK)
        compile_ahead(kernels, shared=current.into is None, inside=sources_inside(pending))
    else:
        settle()
    while pending:
        if _assigns(pending[0]):
            _overwrite(pending, values, do_update_stats)
            continue
        item = pending.popleft()
        try:
            exec_item = lowered(item, shared=current.into is None)
            if exec_item.prg.in_place:  # memory that nobody will want any more, but for a second run
                with Uninterrupted():
                    _done(item, exec_item, values, do_update_stats)
            else:
                _done(item, exec_item, values, do_update_stats)
        except Exception as error:
            tell_origin(error, item)
            raise
        del item, exec_item


def _done(item: ScheduleItem, exec_item: ExecItem, values: Vars, do_update_stats: bool) -> None:
    if current.into is not None:
        note_memory(item)
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
            steps.append((item, lowered(item, shared=current.into is None)))
        except Exception as error:
            tell_origin(error, item)
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
                tell_origin(error, item)
                raise
            now.clear()
            del item, exec_item
