"""Loops of updates on a CPU: what may meet in one element is done in its order by one thread, the rest is divided."""

from __future__ import annotations

from tg_shape import coefficient, upper

from ...machine.target import Target
from ...nest.nest import Axis, Nest
from ...nest.spec import Kind
from ...nest.updates import ordered_roots
from ..actions import LoopAction, Mark, Outermost, PrefetchIndirect, Split
from ..planner import Planner


class UpdatePlanner(Planner):
    """Plans the update of a kernel for a CPU."""

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
        self.store, = nest.stores
        ordered = ordered_roots(nest)
        self.separate = [root for root in self.rows if root.var in self.store.roots and root.var not in ordered]

    @property
    def least_share(self) -> int:
        """Bytes that each thread writes, at the least, for threads not to wait for one another's lines."""
        return self.target.cpu.lines_apart * self.target.line_bytes

    def plan(self) -> list[LoopAction]:
        """Lanes and copies where elements are neighbours; threads for a dimension whose iterations never meet."""
        assert self.store.update is not None
        place = self.store.update.place
        for root in self.separate:
            if coefficient(self.store.index, root.var) == 1 and root.var not in place.free:
                self.vectorize(root, Kind.VECTOR)
                extent = self.outer(root.var).extent
                most = self.target.cpu.updated_vectors
                whole = (n for n in range(most, 1, -1) if isinstance(extent, int) and extent % n == 0)
                self.cut(root.var, next(whole, 1), Kind.UPCAST)
        self.rows_at_once()
        if self.threaded:
            loops = [a for a in self.nest.axes if a.kind is Kind.LOOP and self.divides(a)]
            if not loops and self.store.update.distinct:
                loops = [a for a in self.nest.axes if a.kind is Kind.LOOP and self.scatters(a)]
            if loops:
                self.divide(max(loops, key=lambda a: upper(a.extent)))
        loops = [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root in place.free]
        table = self.nest.buffers[self.store.slot]
        if loops and self.target.prefetches and table.size * table.dtype.itemsize > self.target.l2_bytes:
            self.do(PrefetchIndirect(loops[-1].name, self.target.cpu.misses))
        return self.actions

    def rows_at_once(self) -> None:
        """Updates several rows in one iteration where each update of a row waits for the row's previous one."""
        loops, separate, update = self.nest.axes, {root.var for root in self.separate}, self.store.update
        if len(loops) < 2 or any(a.kind is not Kind.LOOP for a in loops) or update is None or update.distinct:
            return
        *_, rows, walk = loops
        if rows.root in separate and walk.root not in separate:
            many = min(self.target.cpu.updated_vectors, upper(rows.extent) // self.target.threads)
            self.cut(rows.root, many, Kind.UPCAST)

    def divide(self, axis: Axis) -> None:
        """Gives each thread one part of a loop, whose iterations stay in their place: a thread reads an index once."""
        part = -(-upper(axis.extent) // self.target.threads)
        if part > 1 and isinstance(axis.extent, int) and axis.extent % part == 0:
            self.do(Split(axis.name, part, Kind.LOOP))
        self.do(Outermost(axis.name))
        self.do(Mark(axis.name, Kind.THREAD))

    def divides(self, axis: Axis) -> bool:
        """Whether threads may divide a loop: no two iterations meet in an element, and the parts lie well apart."""
        if all(axis.root is not root.var for root in self.separate) or upper(axis.extent) < self.target.threads:
            return False
        jump = axis.step(self.store.index) * self.store.value.dtype.itemsize
        share = jump * (upper(axis.extent) // self.target.threads)
        return share >= self.least_share

    def scatters(self, axis: Axis) -> bool:
        """Whether threads may divide a loop over values for distinct elements: each reads enough lines of its own."""
        share = upper(axis.extent) // self.target.threads * self.store.value.dtype.itemsize
        return axis.root in {root.var for root in self.separate} and share >= self.least_share
