"""Kernels without reductions on a CPU: lanes where memory is contiguous, and tiles that are transposed in registers."""

from __future__ import annotations

from tg_lazy import TRANSCENDENTAL
from tg_shape import coefficient, upper

from ...nest.nest import Node, Root, is_elementwise
from ...nest.spec import Kind, NodeOp
from ..planner import Planner, power_below
from ..side_by_side import common_dimensions
from .row_tiles import evenly
from .streaming import TRANSPOSED_VECTORS, exceeds, walk_across

COPIED_NODES = 24
"""Nodes of a kernel, at the most, for an iteration to process several vectors: the code of each is a copy."""
VECTORS_TOGETHER = 4
"""Vectors that an iteration then processes: enough for loads to overlap, and for counting to cost little."""
SHARED_GAIN = 1.1
"""Times that a kernel takes less where copies share what is the same for all of them, from which on it has copies."""
SHARED_LEAST = 16
"""Instructions for a vector of what is the same, loads apart, for that: fewer are hidden by what memory takes. Where
there are gathers, what is the same leads to their places, whose lanes are taken apart once, too."""
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
                   and any(coefficient(load.arg[1], r.var) in (1, -1) for load in apart)), None)
    common = common_dimensions(planner.nest, planner.rows, best, lambda node: computing(node, planner))
    if common:
        for root in common:
            planner.cut(root.var, upper(root.extent), Kind.UPCAST)
    elif across is not None:
        transposed_tile(planner, best, across)
        planner.do_all(walk_across(planner.nest, best.var, across.var, planner.target))
    elif (same := sharing(planner, best)) is not None:
        planner.cut(same.var, evenly(upper(same.extent), VECTORS_TOGETHER), Kind.UPCAST)
    elif len(planner.nest.nodes()) <= COPIED_NODES:
        extent = planner.outer(best.var).extent
        whole = (n for n in range(VECTORS_TOGETHER, 1, -1)
                 if isinstance(extent, int) and extent >= 2 * n and extent % n == 0)
        planner.cut(best.var, VECTORS_TOGETHER if upper(extent) >= LONG_LOOP else next(whole, 1), Kind.UPCAST)


def sharing(planner: Planner, lanes: Root) -> Root | None:
    """The dimension along which so much of what each lane computes is the same that neighbours are to share it.

    So it is with channels of which the same places are read, at computed indices, and with the same weights.
    """
    best, most = None, SHARED_GAIN
    nodes = [(node, instructions(node, planner)) for node in planner.nest.nodes()]
    total = sum(count for _, count in nodes) + len(planner.nest.stores)
    gathers = any(node.op is NodeOp.GATHER for node, _ in nodes)
    for root in planner.rows:
        if root is lanes or not isinstance(root.extent, int):
            continue
        found = [(node, count) for node, count in nodes if lanes.var in node.free and root.var not in node.free]
        same, loads = sum(count for _, count in found), sum(node.op is NodeOp.LOAD for node, _ in found)
        if same - loads < SHARED_LEAST and not gathers:
            continue
        gain = total / (total - same + same / evenly(root.extent, VECTORS_TOGETHER))
        if gain > most:
            best, most = root, gain
    return best


def instructions(node: Node, planner: Planner) -> float:
    """About how many instructions a vector of a node's values takes."""
    costs = planner.target.cpu
    if node.op is NodeOp.GATHER:
        return costs.lane * planner.lanes
    if node.op in TRANSCENDENTAL:
        return costs.function * costs.units
    return 1 if is_elementwise(node) or node.op is NodeOp.LOAD else 0


def computing(node: Node, planner: Planner) -> float:
    """The same of what is computed: what is read is near."""
    return 0.0 if node.op is NodeOp.LOAD else instructions(node, planner)


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
