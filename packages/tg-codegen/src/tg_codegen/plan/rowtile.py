"""Rows at once: a reduction along which lanes run has accumulators for several outputs."""

from __future__ import annotations

from math import prod

from tg_lazy import Ops
from tg_shape import Variable, coefficient, upper

from ..machine.target import Target
from ..nest.nest import Kind, Nest, Node, NodeOp, Root, is_alu
from .actions import Convert, LoopAction, Mark, Prefetch, Split, apply, loads_of

ACCUMULATORS = 12
"""Accumulators of every 32 registers that the machine has: the others hold what is multiplied."""
BUSY_OPERATIONS = 4
"""Operations for each term of a reduction, at the least, for rows side by side: with fewer, memory is the limit, and it
is read fastest one row after the other."""
SHORT_ROW_VECTORS = 8
"""Vectors of a row, at the most, for which combining the lanes of its result takes as long as the row itself."""


def rows_at_once(nest: Nest, target: Target, lanes: Variable) -> list[LoopAction]:
    """Gives outputs that share the largest operand, and then rows side by side, accumulators of their own.

    Rows side by side gain where there is much to do for each term, or little for each row: memory alone is read fastest
    from one place. Where the outputs of rows are neighbours, the rows become lanes once they are reduced.

    Args:
      nest: its reductions all run over the same dimensions.
      target: the machine.
      lanes: the reduced dimension that has the lanes.
    """
    reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
    loads = list(dict.fromkeys(n for r in reductions for n in r.toposort() if n.op is NodeOp.LOAD))
    rows = [r for r in nest.roots.values() if not r.reduce and all(r.var in n.free for n in reductions)]
    left = max(1, ACCUMULATORS * target.registers // 32 // len(reductions))
    if not loads or not rows:
        return []
    actions: list[LoopAction] = []
    largest = max(loads, key=lambda load: footprint(nest, load))
    sharing = [r for r in rows if r.var not in largest.free and upper(r.extent) > 1]
    if sharing and left > 1:
        row = max(sharing, key=lambda r: upper(r.extent))
        count = evenly(upper(row.extent), left)
        actions += cut(nest, row, count, Kind.UPCAST)
        left //= count
        rows.remove(row)
    busy = {n for r in reductions for n in r.src[0].toposort() if is_alu(n)}
    width = next(a.extent for a in nest.of_root(lanes) if a.kind is Kind.LANES)
    steps = prod(upper(nest.roots[r].extent) for r in reductions[0].arg[1]) // upper(width)
    much = len(busy) >= BUSY_OPERATIONS * len(reductions)
    alone = all(r.reduce or all(r.var in n.free for n in reductions) for r in nest.roots.values())
    near = [
        r for r in rows if alone and all(r.var in s.roots and coefficient(s.index, r.var) == 1 for s in nest.stores)]
    if not rows or not (much or (near and steps <= SHORT_ROW_VECTORS)):
        return actions
    row = max(near or rows, key=lambda r: upper(r.extent))
    count = min(target.cpu.streams, left, upper(row.extent) // target.threads)
    if count < 2:
        return actions
    count = 1 << (count.bit_length() - 1)
    actions += cut(nest, row, count, Kind.ROWS if row in near else Kind.UPCAST)
    tiled = apply(nest, actions)
    return [*actions, *conversions(tiled, target, row, lanes), *(next_tile(tiled, target, row, lanes) if much else [])]


def conversions(nest: Nest, target: Target, row: Root, lanes: Variable) -> list[LoopAction]:
    """Converts what all lanes share in vectors, where the elements of a tile are neighbours in memory.

    Otherwise each element is converted by itself. In vectors, the results are stored, and read again one by one: that
    costs less from a few elements on.
    """
    outer, costs = nest.of_root(row.var)[0], target.cpu
    found: list[LoopAction] = []
    for number, load in enumerate(loads_of(nest)):
        users = [n for n in nest.nodes() if load in n.src]
        if len(users) != 1 or users[0].op is not Ops.CAST or lanes in load.free:
            continue
        inner = [a for a in nest.axes if a.root in load.free and a is not outer]
        reach = 1
        for axis in sorted(inner, key=lambda a: (coefficient(load.arg[1], a.root) or 0) * a.stride):
            if (coefficient(load.arg[1], axis.root) or 0) * axis.stride != reach:
                break
            reach *= upper(axis.extent)
        else:
            among = all(a.root is row.var or nest.roots[a.root].reduce for a in inner)
            nbytes = reach * users[0].dtype.itemsize
            vectors = -(-nbytes // target.vector_bytes)
            gains = vectors * (costs.conversion + costs.store) < reach * costs.conversion
            by_tile = among and outer.root in load.free and outer.kind is Kind.LOOP
            if gains and by_tile and nbytes <= target.l1_bytes // 4:
                found.append(Convert(number, outer.name))
    return found


def next_tile(nest: Nest, target: Target, row: Root, lanes: Variable) -> list[LoopAction]:
    """Fetches large operands ahead: while a core computes a tile of rows, its hardware prefetchers fall behind."""
    outer = nest.of_root(row.var)[0]
    found: dict[int, LoopAction] = {}
    for number, load in enumerate(loads_of(nest)):
        distance = (coefficient(load.arg[1], row.var) or 0) * outer.stride
        large = footprint(nest, load) > target.l1_bytes and outer.kind is Kind.LOOP
        if target.cpu.tile_ahead_bytes and large and distance > 0 and coefficient(load.arg[1], lanes) == 1:
            tiles = -(-target.cpu.tile_ahead_bytes // (distance * load.dtype.itemsize))
            found.setdefault(load.arg[0], Prefetch(number, distance * tiles))
    return list(found.values())


def footprint(nest: Nest, load: Node) -> int:
    """How many bytes a load reads."""
    return prod(upper(nest.roots[r].extent) for r in load.free) * load.dtype.itemsize


def evenly(extent: int, most: int) -> int:
    """The size, at most ``most``, of parts of ``extent``: the largest with nothing over, or else as many as may be.

    >>> evenly(3, 12), evenly(18, 12), evenly(17, 12)
    (3, 9, 12)
    """
    whole = next((n for n in range(min(most, extent), most // 2, -1) if extent % n == 0), None)
    return whole or min(most, extent)


def cut(nest: Nest, row: Root, count: int, kind: Kind) -> list[LoopAction]:
    """Gives ``count`` iterations of a dimension to ``kind``."""
    axis = nest.of_root(row.var)[0]
    if axis.kind is not Kind.LOOP:
        return []
    return [Mark(axis.name, kind) if axis.extent == count else Split(axis.name, count, kind)]
