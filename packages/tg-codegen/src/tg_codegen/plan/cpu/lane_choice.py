"""Which dimension of a kernel with reductions has the lanes: that which takes the fewest instructions for a term."""

from __future__ import annotations

from math import prod

from tg_shape import coefficient, upper

from ...machine.memory import STRIDES
from ...nest.nest import Node, Root
from ..planner import Planner, masked
from .plan_cost import ALIKE_LANES

SHUFFLED = 4
"""Most vectors that are loaded together and then shuffled into those of every second or every fourth element."""
OFTEN_READ = 16
"""An element that at least this many outputs read is packed, where it can be."""
TILED_READS = 0.3
"""Loads of a register-tiled product as a share of an untiled one's: a 14x2 tile loads 0.32 values a multiply-add."""


class LaneChoice:
    """Compares the dimensions of a planner's nest, before there is a tile."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.nest, self.costs = planner.nest, planner.target.cpu

    def best(self, body: list[Node]) -> tuple[Root | None, list[Root]]:
        """The dimension whose iterations become lanes, None if none gains; and others that seem about as good.

        Dimensions are compared by the instructions, beside arithmetic, that a term of the reduction takes.

        Args:
          body: what the reductions read.
        """
        found = {root: self.cost(root, body) for root in self.candidates()}
        best: Root | None = None
        least = float(max(len(body), 1))  # each operand is read by itself
        for root, cost in found.items():
            if cost < least - 1e-9:
                best, least = root, cost
        products = not self.planner.columns and all(self.planner.reuse(load) > 1 for load in body)
        if best is None or best.reduce or not products:
            return best, []
        return best, [root for root, cost in found.items() if root is not best and cost < ALIKE_LANES * least]

    def candidates(self) -> list[Root]:
        """The dimensions that can have lanes, those of the outputs first, the innermost before others.

        Without vectors an output dimension may still be the second one of a tile.
        """
        planner = self.planner
        outputs = [r for r in reversed(planner.rows) if planner.width(r) >= 2 or planner.lanes == 1]
        reduced = [r for r in self.nest.roots.values() if r.reduce and planner.width(r) >= 2]
        return [*outputs, *(r for r in reduced if not planner.ordered(r.var))]

    def cost(self, root: Root, body: list[Node]) -> float:
        """Instructions, beside arithmetic, that a term of the reduction takes where a dimension has the lanes."""
        costs, planner = self.costs, self.planner
        cost = sum(self.read_cost(load, root) for load in body)
        if root.reduce:
            combined = costs.merged_lanes * costs.units if self.merged() else costs.combined_lanes
            cost += combined / upper(root.extent)
            return cost
        if any(all(other.var not in n.free for n in body if root.var in n.free)
               for other in planner.rows if other is not root and upper(other.extent) >= 4):
            cost *= TILED_READS  # a register tile reads each operand once for several results
        cost += self.without(root)
        if any(coefficient(s.index, root.var) != 1 for s in self.nest.stores):
            cost += costs.lane / prod(upper(r.extent) for r in self.nest.roots.values() if r.reduce)
        return cost

    def read_cost(self, load: Node, lanes: Root) -> float:
        """Instructions with which a term of a reduction reads an operand where a dimension has the lanes."""
        costs, planner, by = self.costs, self.planner, coefficient(load.arg[1], lanes.var)
        factor = costs.masked if masked(load, lanes.var) else 1.0
        if planner.lanes == 1:
            return 1.0
        if by in (0, 1, -1):
            vector = factor
        elif self.within(load, by, lanes):
            vector = costs.gap_read
        elif not lanes.reduce and planner.reuse(load) >= OFTEN_READ:
            vector = costs.packed_read * factor
        elif by is not None and 1 < by <= STRIDES:
            vector = factor * costs.strided_read(by)
        elif not lanes.reduce and planner.along(load) is not None:
            vector = costs.transposed_read
        else:
            return costs.lane
        width, extent = planner.width(lanes), upper(lanes.extent)
        waste = -(-extent // width) * width / extent
        return vector * waste / width

    def merged(self) -> bool:
        """Whether the lanes of several rows' results may be combined together: the rows then become the lanes."""
        planner = self.planner
        return not planner.columns and any(
            upper(row.extent) >= 2 * planner.target.threads and all(row.var in n.free for n in planner.reductions)
            and all(coefficient(store.index, row.var) == 1 for store in self.nest.stores) for row in planner.rows)

    def without(self, root: Root) -> float:
        """The work of the largest reduction that would have no lanes along ``root``, relative to the largest of all."""
        reductions = self.planner.reductions
        work = {n: prod(upper(self.nest.roots[r].extent) for r in {*n.free, *n.arg[1]}) for n in reductions}
        alone = [work[n] for n in reductions if root.var not in n.free]
        return max(alone, default=0) / max(*work.values(), 1)

    def within(self, load: Node, by: int | None, lanes: Root) -> bool:
        """Whether a short reduced dimension reads the elements between those of a load whose lanes are ``by`` apart."""
        return lanes.reduce and by is not None and any(
            r.reduce and r is not lanes and r.extent == by <= SHUFFLED and coefficient(load.arg[1], r.var) == 1
            for r in self.nest.roots.values())
