"""What is bound by memory: the order in which a tile walks, what is fetched ahead, what is written past the caches."""

from __future__ import annotations

from contextlib import suppress
from math import gcd, prod

from tg_shape import Variable, coefficient, step, upper

from ...machine.target import Target
from ...nest.nest import Nest, Node
from ...nest.spec import SERIAL, SERIAL_OUTPUT, Kind, NodeOp
from ..actions import (
    ActionError,
    LoopAction,
    Mark,
    Outermost,
    Prefetch,
    PrefetchIndirect,
    Split,
    SplitReduction,
    Stream,
    loads_of,
    reductions_of,
)
from .ahead import LEAST_ROW_LINES, fetched_ahead

LEAST_WALK = 4
"""Tiles in one walk across a transposed operand, at the least, however few lines the cache holds of it.

Shorter walks begin more often than they gain.
"""
VECTORS_BESIDE = 4
"""Consecutive vectors of a row that one iteration of a loop without reductions processes: unrolling, on any machine."""
BLOCK_TILES = 8
"""Tiles along each side of a block of a transposition that goes past the caches: the order of a walk.

Its lines are few beside any cache; it was found by the bench's `transpose` rows.
"""
TILES_AHEAD = 2
"""Tiles of a block's row that are fetched ahead: one is read meanwhile, one is on its way."""
TRANSPOSED_VECTORS = 16
"""Vectors of a tile that is transposed in registers, at the most: more are more code, whatever the registers hold."""
SUMMED_ROWS = 4
"""Rows that are added to partial results at a time, and vectors of each: 4 by 4, so that each partial result is
loaded and stored once for four terms."""


def lines_held(jump: int, target: Target) -> int:
    """How many lines ``jump`` bytes apart the second-level cache holds: few, where they fall on few of its sets."""
    return target.l2_bytes // max(gcd(jump, target.l2_bytes // target.l2_ways), target.line_bytes)


def walk_across(nest: Nest, lanes: Variable, copies: Variable, target: Target) -> list[LoopAction]:
    """Orders the loops around a tile that is transposed: it walks across the operand.

    The lines of one walk are wanted again by the next one, for the tiles beside. So a walk is no longer than the cache
    holds lines of it, which are few where they fall on few of its sets. Where the result goes past the caches, square
    blocks of tiles come one after the other, as rows are read: a few lines of memory's pages follow one another on
    either side, and those of the next tiles are fetched ahead.

    Args:
      nest: its lanes and copies are cut already.
      lanes: the dimension of the lanes.
      copies: the dimension of the vectors of a tile.
      target: the machine.
    """
    walk, beside = nest.of_root(lanes)[0], nest.of_root(copies)[0]
    if walk.kind is not Kind.LOOP or not isinstance(walk.extent, int):
        return []
    if any(exceeds(nest, store.slot, target) for store in nest.stores):
        return in_squares(nest, walk.name, beside.name, lanes, copies, target)
    jumps = [step(n.arg[1], lanes) * n.dtype.itemsize for n in loads_of(nest)]
    walked = sum(coefficient(n.arg[1], lanes) not in (0, 1) for n in loads_of(nest))  # which share lines and pages
    most = max(1, target.cpu.tlb_pages // (walk.stride * max(walked, 1)))
    held = lines_held(max(jumps), target) // (walk.stride * walked) if any(jumps) else most
    length = min(most, max(held, LEAST_WALK))
    return [Split(walk.name, length, Kind.LOOP), Outermost(walk.name)] if walk.extent > length else []


def in_squares(
    nest: Nest, walk: str, beside: str, lanes: Variable, copies: Variable, target: Target
) -> list[LoopAction]:
    """Goes through square blocks of tiles, along rows first, and fetches the next tiles of each row ahead."""
    actions: list[LoopAction] = []
    order: list[str] = []
    for name, root in ((walk, lanes), (beside, copies)):
        axis = nest.axis(name)
        order.append(name)
        if axis.kind is Kind.LOOP and upper(axis.extent) > BLOCK_TILES:
            actions.append(Split(name, BLOCK_TILES, Kind.LOOP))
            nest = actions[-1].apply(nest)
            order.append(nest.of_root(root)[1].name)
    outer = [name for name in order if name in (walk, beside)]
    inner = [name for name in order if name not in outer]
    actions += [Outermost(name) for name in reversed([*outer, *inner]) if nest.axis(name).kind is Kind.LOOP]
    for number, load in enumerate(loads_of(nest)):
        across = coefficient(load.arg[1], copies) == 1 and coefficient(load.arg[1], lanes) not in (0, 1)
        if target.cpu.tile_ahead_bytes and across and not nest.buffers[load.arg[0]].internal:
            actions.append(Prefetch(number, TILES_AHEAD * upper(nest.of_root(copies)[-1].extent)))
    return actions


def sums_by_rows(nest: Nest, lanes: Variable, target: Target) -> list[LoopAction]:
    """Reduces columns row by row, in the order in which they lie in memory.

    A column that is walked down by itself takes a line from here and a line from there, on few sets of the cache, and
    what the machine fetches beside is in vain. Few columns are in registers together; of more, partial results are kept
    in scratch, a few rows being added at a time.

    Args:
      nest: its lanes are cut already.
      lanes: the dimension of the lanes.
      target: the machine.

    Returns:
      actions; none where the reduction reads something again and again, or finds it in the cache.
    """
    reductions, across = reductions_of(nest), nest.of_root(lanes)[0]
    if len(reductions) != 1 or len(reductions[0].arg[1]) != 1 or across.kind is not Kind.LOOP:
        return []
    node, root = reductions[0], reductions[0].arg[1][0]
    walk, vectors = nest.of_root(root)[0], across.extent
    walked = [n for n in node.toposort() if n.op is NodeOp.LOAD and lanes in n.free]
    if walk.kind is not Kind.REDUCE or not isinstance(vectors, int) or not isinstance(walk.extent, int):
        return []
    if vectors <= SUMMED_ROWS or walk.extent < 4 * SUMMED_ROWS:
        return []
    if not walked or any(n.free < node.free | {root} for n in walked):
        return []
    for load in walked:
        jump = step(load.arg[1], root) * load.dtype.itemsize
        far = upper(nest.buffers[load.arg[0]].size) * load.dtype.itemsize > target.l2_bytes
        masked = not isinstance(load.arg[2], int)
        if coefficient(load.arg[1], lanes) != 1 or jump < target.line_bytes or not far or masked:
            return []
    if 2 * vectors <= target.registers:
        return [Mark(across.name, Kind.UPCAST)]
    actions: list[LoopAction] = [
        Split(across.name, SUMMED_ROWS, Kind.UPCAST), Split(walk.name, SUMMED_ROWS, Kind.UNROLL)]
    around = [a for a in nest.axes if a.kind is Kind.LOOP and a.root in node.free and a is not across]
    count = -(-vectors // SUMMED_ROWS)
    most = max(1, min(target.resident_bytes, target.partial_bytes) // (SUMMED_ROWS * target.vector_bytes))
    if not any(upper(a.extent) >= target.threads for a in around):
        most = min(most, -(-count // target.threads))
    if most < count:
        if most > 1:
            actions.append(Split(across.name, most, Kind.LOOP))
        around.append(across)
    actions += [Outermost(a.name) for a in reversed(around)]
    return [*actions, SplitReduction(0, around[-1].name if around else None)]


def prefetches(nest: Nest, target: Target) -> list[LoopAction]:
    """Fetches the next row while one is walked again."""
    row = next((a for a in nest.axes if a.kind in SERIAL_OUTPUT), None)
    if row is None or nest.stages or not isinstance(row.extent, int):
        return []
    loads = loads_of(nest)
    found = fetched_ahead([nest], row.root, row.extent * row.stride, row.stride, target)
    return [Prefetch(loads.index(load), distance) for _, load, distance in found]


def runs_ahead(nest: Nest, target: Target) -> list[LoopAction]:
    """Fetches what comes some pages later in a run of memory that is reduced, each element being read once.

    Hardware prefetchers stop at the end of a page: where each begins, it would be waited for. Where as
    much is written as is read, that is waited for instead.
    """
    if not target.cpu.run_ahead_bytes or nest.stages or nest.ahead or not reductions_of(nest):
        return []
    found: dict[int, LoopAction] = {}
    for number, load in enumerate(loads_of(nest)):
        slot, _, valid = load.arg
        nbytes = prod(upper(nest.roots[r].extent) for r in load.free) * load.dtype.itemsize
        if isinstance(valid, int) and not nest.buffers[slot].internal and walked_once(nest, load):
            if nbytes > target.resident_bytes:  # it was evicted since another kernel wrote it
                found.setdefault(slot, Prefetch(number, target.cpu.run_ahead_bytes // load.dtype.itemsize))
    return list(found.values())


def walked_once(nest: Nest, load: Node) -> bool:
    """Whether a load reads one run of memory with vectors, each iteration of its loops going on where one ended."""
    walks = [a for a in nest.axes if a.kind in SERIAL and upper(a.extent) > 1]
    if not walks or any(a.root not in load.free for a in walks):
        return False  # what is not in its index is in registers
    run, vectors = 1, False
    steps = [(by * a.stride, a) for a in nest.axes if a not in walks and (by := coefficient(load.arg[1], a.root))]
    for jump, axis in sorted(steps, key=lambda found: found[0]):
        if jump > run and axis.kind in (Kind.ROWS, Kind.UPCAST):
            return False  # several runs side by side, which prefetchers follow: the next of them begins elsewhere
        if jump == run:
            run *= upper(axis.extent)
            vectors |= axis.kind in (Kind.VECTOR, Kind.LANES, Kind.CONTRACT)
    by = coefficient(load.arg[1], walks[-1].root)
    return vectors and by is not None and by * walks[-1].stride == run


def prefetches_indirect(nest: Nest, target: Target) -> list[LoopAction]:
    """Fetches the next rows of a table: they lie where indices say, which no hardware prefetcher predicts."""
    row = next((a for a in nest.axes if a.kind in SERIAL_OUTPUT), None)
    lanes = next((a for a in nest.axes if a.kind is Kind.VECTOR), None)
    if row is None or lanes is None or row.root is lanes.root or not target.cpu.row_ahead_bytes:
        return []
    for node in nest.nodes():
        if node.op is not NodeOp.GATHER or not {row.root, lanes.root} <= node.free:
            continue
        chosen = any(n.op is NodeOp.LOAD and row.root in n.free for n in node.toposort())
        nbytes = upper(nest.roots[lanes.root].extent) * node.dtype.itemsize
        far = upper(nest.buffers[node.arg[0]].size) * node.dtype.itemsize > target.l2_bytes
        if chosen and far and nbytes >= LEAST_ROW_LINES * target.line_bytes:
            rows = -(-target.cpu.row_ahead_bytes // (nbytes * row.stride))
            return [PrefetchIndirect(row.name, min(target.cpu.misses, rows))]
    return []


def exceeds(nest: Nest, slot: int, target: Target) -> bool:
    """Whether an output is evicted from the last cache, by all that the kernel moves, before anybody reads it."""
    nbytes = [0 if b.internal else upper(b.size) * b.dtype.itemsize for b in nest.buffers]
    return 0 < target.last_bytes <= min(2 * nbytes[slot], 2 * sum(nbytes) // 3)


def streams(nest: Nest, target: Target) -> list[LoopAction]:
    """Writes past the caches what would be evicted before anybody reads it.

    Only whole cache lines, one after the other: a part of a line would be read, and written, in memory.
    """
    actions: list[LoopAction] = []
    for store in nest.stores:
        near = [a for a in nest.axes if a.kind in (Kind.VECTOR, Kind.UPCAST) and coefficient(store.index, a.root) == 1]
        run = prod(upper(a.extent) for a in near) * nest.buffers[store.slot].dtype.itemsize
        vectors = any(a.kind is Kind.VECTOR for a in near)
        if vectors and run >= target.line_bytes and exceeds(nest, store.slot, target):
            action = Stream(store.slot)
            with suppress(ActionError):
                action.apply(nest)
                actions.append(action)
    return actions
