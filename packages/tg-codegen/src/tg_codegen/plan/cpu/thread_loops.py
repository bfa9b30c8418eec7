"""The order of loops around what is packed: only the outermost loop is divided among threads."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import upper

from ...nest.nest import Axis
from ...nest.spec import Kind
from ..actions import Outermost, Split
from ..planner import Planner


def longest_first(planner: Planner, loops: Sequence[Axis]) -> list[Axis]:
    """Some loops in their order, but before the others each that has an iteration for every thread.

    Where none has, the longest is the first.
    """
    threads = planner.target.threads
    longest = max(loops, key=lambda a: min(upper(a.extent), threads), default=None)
    return sorted(loops, key=lambda a: a is not longest and not planner.enough(a))


def panels_for_each_thread(planner: Planner, serial: Sequence[Axis], most: int) -> None:
    """Divides among threads an output loop that shares a panel: each thread then packs one for itself.

    The longest of the loops is cut in a part for each thread, and goes around all others. A loop with fewer iterations
    than there are threads goes around them if it has more than ``most``.

    Args:
      planner: takes the actions.
      serial: the loops that share the panel.
      most: iterations of the loop that is outermost so far.
    """
    rows, threads = {r.var for r in planner.rows}, planner.target.threads
    axis = max((a for a in serial if a.root in rows), key=lambda a: upper(a.extent), default=None)
    if axis is None or not isinstance(axis.extent, int) or axis.extent <= min(most, threads - 1):
        return
    if most >= threads and not planner.enough(axis):
        return
    if axis.extent > threads:
        planner.do(Split(axis.name, -(-axis.extent // threads), Kind.LOOP))
    planner.do(Outermost(axis.name))


def part_for_each_thread(planner: Planner, loops: list[Axis]) -> list[Axis]:
    """Cuts the first of some output loops that is long enough in as many parts as there are threads.

    Returns:
      The loops of one thread.
    """
    threads = planner.target.threads
    for number, axis in enumerate(loops):
        if isinstance(axis.extent, int) and planner.enough(axis):
            if axis.extent == threads:
                return loops[:number] + loops[number + 1 :]
            planner.do(Split(axis.name, -(-axis.extent // threads), Kind.LOOP))
            inner = planner.nest.of_root(axis.root)[1]
            return [inner if a is axis else a for a in loops]
    return loops
