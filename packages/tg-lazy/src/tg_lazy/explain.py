"""A schedule as text: what each step does, what it fuses, and why its outputs are in memory."""

from __future__ import annotations

from collections.abc import Sequence

from .graph.lazybuffer import LazyBuffer
from .scheduler.item import ScheduleItem, describe
from .scheduler.schedule import schedule


def explain(what: Sequence[ScheduleItem] | Sequence[LazyBuffer]) -> str:
    """Describes a schedule, or the schedule that some nodes would have; nothing is executed.

    Example:
      >>> from tg_dtype import dtypes
      >>> from tg_lazy import LazyBuffer, Ops, Storage
      >>> x = LazyBuffer.from_storage(Storage("CPU", 32, dtypes.float32), (4, 8))
      >>> print(explain([x.alu(Ops.MUL, x).reduce(Ops.ADD, (1,))]))  # doctest: +ELLIPSIS
      0  float32[4, 1] = MUL REDUCE, 2 nodes in one kernel
           buffers #...
           in memory because: output
    """
    items: list[ScheduleItem] = []
    nodes: list[LazyBuffer] = []
    for one in what:
        if isinstance(one, LazyBuffer):
            nodes.append(one)
        else:
            items.append(one)
    if nodes:
        items += schedule(nodes)[0]
    lines = []
    for number, item in enumerate(items):
        fused = f", {item.fused} nodes in one kernel" if item.fused > 1 else ""
        lines.append(f"{number}  {describe(item.ast)}{fused}")
        lines.append(f"     buffers {' '.join(f'#{b.uid}:{b.nbytes}B' for b in item.bufs)}  made at {item.origin}")
        lines.append(f"     in memory because: {item.reason}")
    return "\n".join(lines)
