"""What a plan costs: about how many cycles its reductions take, told from its loops before anything is emitted.

It compares plans of one kernel that differ in which dimension has the lanes: what tile that leaves room for, whether
what the lanes read is packed, and whether all threads have as much to do; and outputs that are written in one loop with
those that are written part by part. Of caches it knows no more than :mod:`tg_codegen.search.cycles`, which counts
instructions once they are there, but for what is read in place in jumps.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from operator import mul
from typing import Literal

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, coefficient, linear_terms, upper

from ...machine.memory import PAGE_BYTES, STRIDES
from ...machine.target import Target
from ...nest.nest import Axis, Nest, Node, Stage, is_elementwise
from ...nest.spec import LANE, READS, SERIAL_OUTPUT, UNROLLED, Kind, NodeOp
from ...nest.trim import conditions, congruence, needed
from ...nest.windows import held, windowed
from ..actions import reductions_of
from ..planner import busiest, masked, power_below

Condition = tuple[list[int], int, Literal["less", "equal"] | int]
"""A condition on some dimensions: their factors, and what their sum is less than, equal to or congruent to."""
ALIKE_LANES = 1.5
"""Times the fewest instructions of any dimension: of those with fewer than so many, each is planned and compared by
cycles. A count of instructions knows neither tiles nor what can be packed."""
LANES_GAIN = 0.85
"""Part of the first plan's cycles, below which lanes along another dimension are chosen: the estimate may err."""
EVEN_GAIN = 0.9
"""The same for a plan that divides its work more evenly among threads, and is otherwise alike."""
ROWS_GAIN = 0.85
"""The same for rows side by side rather than one by one, which take more code and registers."""
COUNTED = 1024
"""Places of a window over a padded dimension, at the most, of which it is counted how many are inside.

It bounds the time that planning takes; beyond it no place is taken to be outside.
"""


def plan_cycles(nest: Nest, target: Target) -> float:
    """About how many cycles the reductions of a plan take, of the thread that has most to do."""
    packs = [stage for stage in nest.stages if stage.node.op is NodeOp.LOAD
             or (stage.node.op is Ops.CAST and stage.node.src[0].op is NodeOp.LOAD)]
    return sum(_terms(nest, node, target) for node in reductions_of(nest)) + sum(
        _copied(nest, stage, target) for stage in packs) + _turned(nest, target)


def walk_cycles(nest: Nest, around: frozenset[Variable], target: Target) -> float:
    """About how many cycles an output without reductions takes for each iteration of the dimensions ``around``.

    Its lanes lie along the dimension in which it is contiguous, and its operands are near.
    """
    costs, store = target.cpu, nest.stores[0]
    inner = [root for root in store.roots if root not in around]
    points = prod(upper(nest.roots[root].extent) for root in inner)
    along = next((root for root in inner if coefficient(store.index, root) == 1), None)
    run = 1 if along is None else upper(nest.roots[along].extent)
    nodes = nest.nodes()
    loads = [n for n in nodes if n.op in READS]
    itemsize = max(n.dtype.itemsize for n in (store.value, *loads))
    width = max(1, min(target.vector_bytes // itemsize, power_below(run)))
    masks = sum(not isinstance(n.arg[2], int) for n in loads)
    apart = 0 if along is None or width == 1 else sum(
        n.op is NodeOp.LOAD and coefficient(n.arg[1], along) not in (0, 1, -1) for n in loads)
    near = len(loads) - apart
    work = sum(map(is_elementwise, nodes)) / costs.units + apart * width * costs.scattered
    whole = work + max(0, near - masks) * costs.load + min(near, masks) * costs.masked_load + costs.store
    partial = work + near * costs.masked_load + costs.masked_store  # the last vector of a run that does not fill it
    return points / run * (run // width * whole + (partial if run % width else 0.0) + costs.iteration)


def _terms(nest: Nest, node: Node, target: Target) -> float:
    """Cycles of the terms of one reduction."""
    roots = {*node.free, *node.arg[1]}
    axes = [a for a in nest.axes if a.root in roots]
    lanes = _lanes(nest, node)
    own = lanes is not None and lanes.kind is Kind.LANES  # rows beside one another then have an accumulator each
    tile = [a for a in axes if a.kind in UNROLLED or (own and a.kind is Kind.ROWS)]
    copies = prod(upper(a.extent) for a in tile)
    costs = target.cpu
    takes = copies * costs.load
    ready = {source for stage in nest.stages if stage.node.op is Ops.CAST for source in stage.node.src}
    for load in (n for n in node.toposort() if n.op is NodeOp.LOAD):
        converted = dtypes.is_float(load.dtype) and load.dtype.itemsize < dtypes.float32.itemsize and load not in ready
        takes += (_price(nest, load, node, lanes, target) + converted * costs.conversion) * _distinct(nest, load, tile)
        takes += _late(nest, load, node, tile if lanes is None else [*tile, lanes], target)
    if axes[-1].kind is Kind.REDUCE:
        takes += costs.iteration
    takes = max(takes, costs.latency * prod(upper(a.extent) for a in tile if a.kind is Kind.UNROLL))
    points = float(prod(upper(nest.roots[root].extent) for root in roots))
    if lanes is not None:
        extent, width = upper(nest.roots[lanes.root].extent), upper(lanes.extent)
        points *= -(-extent // width) / extent
    takes = takes * points / copies * _wanted(nest, node, lanes)
    if own:
        takes += _combined(tile, target) * prod(upper(nest.roots[root].extent) for root in node.free)
    return takes * _share(axes, target)


def _combined(tile: list[Axis], target: Target) -> float:
    """Cycles in which the lanes of a reduction become one result: all of those that it has accumulators for."""
    costs = target.cpu
    merged = any(a.kind is Kind.ROWS for a in tile)
    spread = prod(upper(a.extent) for a in tile if a.kind is Kind.SPREAD)
    return (costs.merged_lanes if merged else costs.combined_lanes) + (spread - 1) / costs.units


def _wanted(nest: Nest, node: Node, lanes: Axis | None) -> float:
    """The share of a sum's terms that padding does not make 0; of an operand that is packed, none are left out.

    A loop is trimmed where bounds are linear or congruences; other conditions are known where it is unrolled.
    """
    packed = {stage.node for stage in nest.stages}
    masks = {mask for load in node.toposort() if load.op is NodeOp.LOAD and load not in packed
             for mask in conditions(load.arg[2])}
    groups: dict[tuple[Variable, ...], list[Condition]] = {}
    for mask in masks & needed(node):
        roots, bound = _trimmed(nest, mask, lanes) or ((), None)
        if bound is not None:
            groups.setdefault(roots, []).append(bound)
    share = 1.0
    for roots, bounds in groups.items():
        extents = [upper(nest.roots[root].extent) for root in roots]
        if prod(extents) <= COUNTED:
            share *= sum(all(_holds(bound, place) for bound in bounds)
                         for place in product(*map(range, extents))) / prod(extents)
    return share


def _trimmed(nest: Nest, mask: Expr, lanes: Axis | None) -> tuple[tuple[Variable, ...], Condition] | None:
    """The dimensions and the linear form of a condition to which loops are trimmed; None where it is tested inside."""
    if mask.op not in ("lt", "eq") or not isinstance(mask.args[1], int) or not isinstance(mask.args[0], Expr):
        return None
    multiple = congruence(mask)
    terms, constant = linear_terms(mask.args[0] if multiple is None else multiple[0])
    roots = tuple(sorted({root for root, _ in terms if root in nest.roots}, key=Expr.render))
    unrolled = all(a.kind in UNROLLED for root in roots for a in nest.of_root(root))
    if len(roots) != len(terms) or (lanes is not None and lanes.root in roots) or not (unrolled or mask.op == "lt"):
        return None
    factors = dict(terms)
    by = [factors[root] for root in roots]
    if multiple is not None:
        return roots, (by, -constant, multiple[1])
    return roots, (by, mask.args[1] - constant, "equal" if mask.op == "eq" else "less")


def _holds(bound: Condition, place: tuple[int, ...]) -> bool:
    """Whether a condition holds at a place."""
    factors, room, how = bound
    at: int = sum(map(mul, factors, place))
    if isinstance(how, int):
        return (at - room) % how == 0
    return at == room if how == "equal" else at < room


def _distinct(nest: Nest, load: Node, tile: list[Axis]) -> int:
    """How many different values of a load the copies of a tile read: overlapping windows share some."""
    axes = [a for a in tile if a.root in load.free]
    return min(prod(upper(a.extent) for a in axes), held(axes, windowed(load, nest)))


def _turned(nest: Nest, target: Target) -> float:
    """Cycles of storing results whose lanes are not neighbours in memory: they are transposed, or stored one by one."""
    takes = 0.0
    for store in nest.stores:
        lanes = next((a for a in nest.axes if a.kind is Kind.VECTOR and a.root in store.roots), None)
        if lanes is None or coefficient(store.index, lanes.root) == 1:
            continue
        points = prod(upper(nest.roots[root].extent) for root in store.roots)
        rows = any(a.kind is Kind.UPCAST and coefficient(store.index, a.root) == 1 for a in nest.axes)
        takes += points * (target.cpu.packed_transposed if rows else target.cpu.scattered) * _share(
            [a for a in nest.axes if a.root in store.roots], target)
    return takes


def _late(nest: Nest, load: Node, node: Node, tile: list[Axis], target: Target) -> float:
    """Cycles in which a tile waits for an operand that is read in place, where no hardware prefetcher follows.

    That is so where a dimension of the reduction jumps far. In each step of it the tile, and the dimensions of the
    reduction that do not jump, read some lines. Those of a small operand come from the second-level cache, in time.
    """
    costs, itemsize = target.cpu, load.dtype.itemsize
    steps = {root: coefficient(load.arg[1], root) for root in load.free}
    if any(stage.node is load or load in stage.node.src for stage in nest.stages) or None in steps.values():
        return 0.0
    jumps = {root: abs(step) * itemsize for root, step in steps.items() if step}
    reduced = [root for root in node.arg[1] if root in jumps]
    near = [root for root in reduced if jumps[root] < costs.scattered_bytes]
    if len(near) == len(reduced):
        return 0.0
    walked = [(jumps[a.root] * a.stride, upper(a.extent)) for a in tile if a.root in jumps and a.root not in reduced]
    walked += [(jumps[root], upper(nest.roots[root].extent)) for root in near]
    terms = prod(upper(nest.roots[root].extent) for root in near)
    together = prod(upper(a.extent) for a in tile if a.root in reduced)
    whole = _lines([(jump, upper(nest.roots[root].extent)) for root, jump in jumps.items()], itemsize, target)
    if whole * target.line_bytes <= target.beside_bytes:
        return 0.0
    pages = prod(upper(nest.roots[root].extent) for root in reduced if jumps[root] >= PAGE_BYTES)
    late = costs.scattered + (costs.late_page if pages > costs.near_pages else 0.0)
    return _lines(walked, itemsize, target) * together / terms * late


def _lines(walked: Iterable[tuple[int, int]], itemsize: int, target: Target) -> float:
    """About how many lines hold what loops reach, each of which takes a step in bytes so many times."""
    run, runs = itemsize, 1
    for jump, count in sorted(walked):
        if jump <= max(run, target.line_bytes):
            run += jump * (count - 1)
        else:
            runs *= count
    return runs * (1 + (run - itemsize) / target.line_bytes)


def _lanes(nest: Nest, node: Node) -> Axis | None:
    """The loop that has the lanes of a reduction: one of its own before one that it has in common with its outputs."""
    found = [a for a in nest.axes if a.kind in LANE and a.root in {*node.free, *node.arg[1]}]
    return next((a for a in found if a.kind is Kind.LANES), found[0] if found else None)


def _share(axes: list[Axis], target: Target) -> float:
    """What part of some loops one thread does at the most."""
    divided = next((upper(a.extent) for a in axes if a.kind is Kind.THREAD), 1)
    return busiest(divided, target.threads)


def _price(nest: Nest, load: Node, node: Node, lanes: Axis | None, target: Target) -> float:
    """Cycles in which a reduction reads a vector of an operand, or an element that all lanes share."""
    if any(stage.node is load or (stage.node.op is Ops.CAST and load in stage.node.src) for stage in nest.stages):
        return target.cpu.load
    masks = set(conditions(load.arg[2]))
    whole = masks <= needed(node) and all(_trimmed(nest, mask, lanes) for mask in masks)
    read = target.cpu.load if whole else target.cpu.masked_load
    if lanes is None or lanes.root not in load.free:
        return read
    by = coefficient(load.arg[1], lanes.root)
    if by in (1, -1):
        return read
    if by is not None and 1 < by <= STRIDES:
        return target.cpu.strided_read(by)
    beside = [upper(a.extent) for a in nest.axes if a.kind in UNROLLED and coefficient(load.arg[1], a.root) == 1]
    return target.cpu.scattered * upper(lanes.extent) / min(power_below(max(beside, default=1)), upper(lanes.extent))


def _copied(nest: Nest, stage: Stage, target: Target) -> float:
    """Cycles of copying what is packed, as often as it is."""
    load, names = stage.node if stage.node.op is NodeOp.LOAD else stage.node.src[0], [a.name for a in nest.axes]
    within = next((s.axis for s in nest.stages if s.node.op is NodeOp.REDUCE), stage.axis)
    around = [a for a in nest.axes if a.kind in SERIAL_OUTPUT
              and within is not None and names.index(a.name) <= names.index(within)]
    around += [a for a in nest.axes if a.name == stage.axis and a not in around]
    local = [a for a in nest.axes if a.root in load.free and a not in around]
    if any(not isinstance(a.extent, int) for a in local):
        return 0.0
    lanes = next((a for a in local if a.kind in LANE), None)
    elements = held(local, windowed(load, nest)) * prod(upper(a.extent) for a in around) * _share(around, target)
    costs = target.cpu
    if lanes is None:
        return elements * costs.packed
    by, width = coefficient(load.arg[1], lanes.root), upper(lanes.extent)
    if by == 1 or (by is not None and 1 < by <= STRIDES and not masked(load, lanes.root)):
        return elements * (costs.packed + costs.strided_read(by) - 1) / width
    steps = {a.name: coefficient(load.arg[1], a.root) for a in local}
    if any(steps[a.name] == 1 and upper(a.extent) >= width for a in local):
        return elements * costs.packed_transposed
    beside = any(step is not None and 0 < step * load.dtype.itemsize < target.line_bytes for step in steps.values())
    return elements * (costs.packed if beside else costs.scattered)
