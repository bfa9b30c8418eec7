"""Rows at once: a reduction along which lanes run has accumulators for several outputs."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tg_lazy import Ops
from tg_shape import Variable, coefficient, even_part, sint, upper

from ...machine.target import Target
from ...nest.nest import Nest, Node, Root, is_elementwise
from ...nest.spec import Kind, NodeOp
from ..actions import Convert, LoopAction, Mark, Prefetch, Split, apply, loads_of
from ..planner import power_below
from .plan_cost import ROWS_GAIN

ROW_ACCUMULATORS = 4
"""Most accumulators of a single row: enough that its additions do not wait for one another."""
ROW_OPERANDS = 2
"""Registers for what rows side by side do not share: one row's operand is multiplied, the next one's is read."""
HALF = 0.5
"""Assumed share of a sum's terms that need an operand whose mask depends on reduced dimensions alone."""


def rows_at_once(nest: Nest, target: Target, lanes: Variable) -> list[LoopAction]:
    """Gives outputs that share the largest operand, and then rows side by side, accumulators of their own.

    Rows side by side read once what they have in common, and do not wait for one another's sums; but some machines read
    memory fastest one row after the other (:class:`RowCost`). Where the outputs of rows are neighbours, the rows become
    lanes once they are reduced.

    Args:
      nest: its reductions all run over the same dimensions.
      target: the machine.
      lanes: the reduced dimension that has the lanes.
    """
    reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
    loads = list(dict.fromkeys(n for r in reductions for n in r.toposort() if n.op is NodeOp.LOAD))
    rows = [r for r in nest.roots.values() if not r.reduce and all(r.var in n.free for n in reductions)]
    left = max(1, int(target.cpu.accumulator_share * target.registers) // len(reductions))
    outputs = 1
    if not loads or not rows:
        return []
    actions: list[LoopAction] = []
    largest = max(loads, key=lambda load: footprint(nest, load))
    sharing = [r for r in rows if r.var not in largest.free and upper(r.extent) > 1]
    if sharing and left > 1:
        row = max(sharing, key=lambda r: upper(r.extent))
        outputs = evenly(upper(row.extent), left)
        actions += split_row(nest, row, outputs, Kind.UPCAST)
        rows.remove(row)
    alone = all(r.reduce or all(r.var in n.free for n in reductions) for r in nest.roots.values())
    near = [
        r for r in rows if alone and all(r.var in s.roots and coefficient(s.index, r.var) == 1 for s in nest.stores)]
    if not rows:
        return actions
    row = max(near or rows, key=lambda r: upper(r.extent))
    if outputs > 1:  # one operand of a row is for all of them, so that few registers hold operands
        left = (target.registers - ROW_OPERANDS - outputs) // (outputs * len(reductions))
    count = min(target.cpu.streams, left, upper(row.extent) // target.threads)
    if count < 2:
        return actions
    count = 1 << (count.bit_length() - 1)
    cost = RowCost(apply(nest, actions), target, reductions, row, lanes, bool(near))
    if cost.cycles(count) > ROWS_GAIN * cost.cycles(1):
        return actions
    actions += split_row(nest, row, count, Kind.ROWS if row in near else Kind.UPCAST)
    tiled = apply(nest, actions)
    actions += conversions(tiled, target, row, lanes)
    if cost.long and outputs == 1 and not cost.followed(count):
        actions += fetch_next_tile(tiled, target, row, lanes)
    return actions


class RowCost:
    """What a vector of terms costs, of rows one by one and side by side: by work, by memory and by latency.

    Attributes:
      work: cycles of its instructions.
      shared: cycles of those that serve several rows side by side: for what the rows have in common, which comes from
        the second-level cache where a row is more than the first one holds, and conversions of what is the same in all
        lanes.
      memory: cycles of reading what is the row's own, from the cache that holds it.
      fills: cycles in which the first-level cache gets what the rows have in common from the second one, which it does
        not do while it gets lines of the row's own.
      beside: cycles by which that takes longer where rows are read side by side; less than 0 where it takes less long,
        which of short rows it does not.
      waits: cycles of the additions to one accumulator after the other, in a row alone.
      long: whether a row is so long that the next one does not begin before its sums are there.
      combine: cycles of combining the lanes of a row's result, of a row alone and of rows that become lanes.
    """

    def __init__(
        self, nest: Nest, target: Target, reductions: list[Node], row: Root, lanes: Variable, become_lanes: bool
    ) -> None:
        costs = target.cpu
        width = next(upper(a.extent) for a in nest.of_root(lanes) if a.kind is Kind.LANES)
        reduced = set(reductions[0].arg[1])
        points = prod(upper(nest.roots[root].extent) for root in {*reductions[0].free, *reduced})
        tile = {a.root: upper(a.extent) for a in nest.axes if a.kind is Kind.UPCAST}
        vectors = points / width / prod(tile.values())
        self.work = self.shared = self.fills = 0.0
        wanted: dict[Node, float] = {}
        own: dict[tuple[int, sint], int] = {}
        every = dict.fromkeys(n for r in reductions for n in r.src[0].toposort())
        again = costs.load if row_bytes(nest, every, row, lanes) <= target.l1_bytes else costs.far_load
        for node in (n for n in every if lanes in n.free):
            if node.op is NodeOp.LOAD:
                slot, index, valid = node.arg
                wanted[node] = 1.0 if isinstance(valid, int) or not valid.variables() <= reduced else HALF
                if row.var in node.free:
                    extents = (upper(nest.roots[v].extent) for v in reached(index) & nest.roots.keys())
                    own[slot, index] = prod(extents) * node.dtype.itemsize
            else:
                wanted[node] = max((wanted[s] for s in node.src if s in wanted), default=1.0)
                if node.op is Ops.WHERE and wanted[node] < 1:
                    wanted[node] = 1.0
                    continue  # which of the two it is is known where the dimension is unrolled
                if not is_elementwise(node) or node.op is Ops.CAST:
                    continue  # a conversion is a part of the load
            copies = prod(n for root, n in tile.items() if root in node.free)
            common = row.var not in node.free
            read = again if common else costs.load
            cycles = wanted[node] * copies * (read if node.op is NodeOp.LOAD else 1 / costs.units)
            self.work += cycles
            self.shared += cycles if common else 0.0
            self.fills += cycles if common and node.op is NodeOp.LOAD and again == costs.far_load else 0.0
        lines = {nbytes: nbytes / target.line_bytes / vectors for nbytes in own.values()}
        self.memory = sum(lines[n] * costs.line(n, target.l2_bytes, target.last_bytes) for n in own.values())
        for load in (n.src[0] for n in every if n.op is Ops.CAST and lanes not in n.free):
            if load.op is NodeOp.LOAD and row.var in load.free and load.free & reduced:  # see `conversions`
                elements = footprint(nest, load) / load.dtype.itemsize / vectors
                self.work += elements * (costs.conversion + costs.insertion)
                self.shared += elements * (costs.conversion + costs.insertion)
        steps = max(1, prod(upper(nest.roots[root].extent) for root in reduced) // width)
        serial = prod(upper(a.extent) for a in nest.axes if a.root == lanes and a.kind is Kind.REDUCE)
        self.long = steps > costs.in_flight  # of short ones the next begins meanwhile
        beside = costs.beside_line if self.long else max(0.0, costs.beside_line)
        self.beside = beside * sum(lines[n] for n in own.values())
        self.waits = costs.latency / min(ROW_ACCUMULATORS, power_below(serial)) if self.long else 0.0
        self.combine = (costs.combined_lanes / steps, (
            costs.merged_lanes if become_lanes else costs.combined_lanes) / steps)

    def cycles(self, count: int) -> float:
        """Cycles of a vector of terms, where ``count`` rows are side by side."""
        reads = self.memory + self.fills / count
        return max(self.working(count), reads, self.waits / count) + (self.beside if count > 1 else 0.0)

    def working(self, count: int) -> float:
        """Cycles of a vector's instructions, where ``count`` rows are side by side."""
        return self.work - self.shared * (1 - 1 / count) + self.combine[count > 1]

    def followed(self, count: int) -> bool:
        """Whether hardware prefetchers keep up with ``count`` rows: memory is all that they are waited for."""
        return self.beside < 0 and self.memory > self.working(count)


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
            if gains and by_tile and nbytes <= target.l1_resident_bytes:
                found.append(Convert(number, outer.name))
    return found


def fetch_next_tile(nest: Nest, target: Target, row: Root, lanes: Variable) -> list[LoopAction]:
    """Fetches large operands ahead: while a core computes a tile of rows, its hardware prefetchers fall behind.

    That is the next tile, or of one that the first-level cache does not hold what comes next in its rows. Prefetchers
    keep up where an operand serves several outputs, as it is wanted later, and as :meth:`RowCost.followed` tells.
    """
    outer = nest.of_root(row.var)[0]
    found: dict[int, LoopAction] = {}
    for number, load in enumerate(loads_of(nest)):
        distance = (coefficient(load.arg[1], row.var) or 0) * outer.stride
        large = footprint(nest, load) > target.l1_bytes and outer.kind is Kind.LOOP
        if target.cpu.tile_ahead_bytes and large and distance > 0 and coefficient(load.arg[1], lanes) == 1:
            tiles = -(-target.cpu.tile_ahead_bytes // (distance * load.dtype.itemsize))
            ahead = distance * tiles
            if ahead * load.dtype.itemsize > target.l1_bytes:
                ahead = target.cpu.tile_ahead_bytes // load.dtype.itemsize
            found.setdefault(load.arg[0], Prefetch(number, ahead))
    return list(found.values())


def row_bytes(nest: Nest, nodes: Iterable[Node], row: Root, lanes: Variable) -> int:
    """Bytes that vectors of one row read: its own, and what it has in common with the next one."""
    loads = [n for n in nodes if n.op is NodeOp.LOAD and lanes in n.free]
    return sum(footprint(nest, n) // (upper(row.extent) if row.var in n.free else 1) for n in loads)


def reached(index: sint) -> frozenset[Variable]:
    """The dimensions on which a place in memory depends."""
    return frozenset() if isinstance(index, int) else frozenset(index.variables())


def footprint(nest: Nest, load: Node) -> int:
    """How many bytes a load reads."""
    return prod(upper(nest.roots[r].extent) for r in load.free) * load.dtype.itemsize


def evenly(extent: int, most: int) -> int:
    """The size, at most ``most``, of parts of ``extent``: the largest with nothing over, or else as many as may be.

    >>> evenly(3, 12), evenly(18, 12), evenly(17, 12)
    (3, 9, 12)
    """
    return even_part(extent, most) or min(most, extent)


def split_row(nest: Nest, row: Root, count: int, kind: Kind) -> list[LoopAction]:
    """Gives ``count`` iterations of a dimension to ``kind``."""
    axis = nest.of_root(row.var)[0]
    if axis.kind is not Kind.LOOP:
        return []
    return [Mark(axis.name, kind) if axis.extent == count else Split(axis.name, count, kind)]
