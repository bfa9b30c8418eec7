"""Kernels without reductions on a CPU: lanes where memory is contiguous, and tiles that are transposed in registers."""

from __future__ import annotations

from tg_shape import coefficient, upper

from ...nest.nest import Root
from ...nest.spec import Kind
from ..planner import Planner, power_below
from .streaming import TRANSPOSED_VECTORS, exceeds, walk_across

COPIED_NODES = 24
"""Nodes of a kernel, at the most, for an iteration to process several vectors: the code of each is a copy."""
VECTORS_TOGETHER = 4
"""Vectors that an iteration then processes: enough for loads to overlap, and for counting to cost little."""
LONG_LOOP = 64
"""Vectors of a loop from which on it does not matter that the last iteration processes fewer."""


def elementwise_tile(planner: Planner) -> None:
    """Takes the actions for a nest without reductions: contiguous vectors, a few at a time.

    Args:
      planner: takes the actions; nothing was done to its nest yet.
    """
    best = lanes_along(planner)
    if best is None:
        return
    planner.vectorize(best, Kind.VECTOR)
    apart = [load for load in planner.loads if coefficient(load.arg[1], best.var) not in (0, 1)]
    across = next((r for r in planner.rows if r is not best
                   and any(coefficient(load.arg[1], r.var) == 1 for load in apart)), None)
    if across is not None:
        transposed_tile(planner, best, across)
        planner.do_all(walk_across(planner.nest, best.var, across.var, planner.target))
    elif len(planner.nest.nodes()) <= COPIED_NODES:
        extent = planner.outer(best.var).extent
        whole = (n for n in range(VECTORS_TOGETHER, 1, -1)
                 if isinstance(extent, int) and extent >= 2 * n and extent % n == 0)
        planner.cut(best.var, VECTORS_TOGETHER if upper(extent) >= LONG_LOOP else next(whole, 1), Kind.UPCAST)


def lanes_along(planner: Planner) -> Root | None:
    """The dimension along which most of memory is contiguous, stores first; None where all have one value."""
    best, most = None, 0
    for root in planner.rows:
        if upper(root.extent) < 2:
            continue
        steps = [coefficient(load.arg[1], root.var) for load in planner.loads]
        stores = sum(coefficient(store.index, root.var) == 1 for store in planner.nest.stores)
        found = planner.target.cpu.far_store * stores + steps.count(1) - sum(by not in (0, 1) for by in steps)
        if found > most or best is None:
            best, most = root, found
    return best


def transposed_tile(planner: Planner, lanes: Root, across: Root) -> None:
    """Cuts a tile to be transposed in registers: whole cache lines on both sides, where memory is the limit."""
    nest, target = planner.nest, planner.target
    rows, vectors = planner.width(across), 1
    if any(exceeds(nest, store.slot, target) for store in nest.stores):
        line = target.line_bytes // max(nest.buffers[s.slot].dtype.itemsize for s in nest.stores)
        rows, vectors = max(rows, min(line, power_below(upper(across.extent)))), line // planner.width(lanes)
    planner.cut(across.var, min(rows, TRANSPOSED_VECTORS), Kind.UPCAST)
    if vectors > 1:
        planner.cut(lanes.var, vectors, Kind.UPCAST)
