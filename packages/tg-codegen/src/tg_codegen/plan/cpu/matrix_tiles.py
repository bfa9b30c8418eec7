"""Products by tile registers: matrix instructions of one thread with rows and columns, whose operands are packed.

A tile of results has two registers of rows by two of columns, where there are as many: each operand that is loaded is
multiplied twice. Rows are packed in blocks that the second-level cache holds beside a panel of columns, which all rows
of a block read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tg_shape import coefficient, upper

from ...ir.matrix import MatrixInstruction
from ...machine.target import Target
from ...nest.matrix_products import instruction_for
from ...nest.nest import Axis, Nest, Node, Root
from ...nest.scratch import stages_fit
from ...nest.spec import Kind, NodeOp
from ..actions import LoopAction, Mark, Outermost, Pack, Split, loads_of
from ..planner import Planner

SIDE = 2
"""Registers of a tile of results along a side: with two operands of each they are all eight that AMX has."""
LEAST_TILE_ROWS = 3
"""Registers of rows, at the least, for packing the columns' operand to pay: an estimate, which nothing measures."""


@dataclass(frozen=True, slots=True)
class TiledProduct:
    """A product that an instruction with tile registers does.

    Attributes:
      instruction: which one.
      rows: the dimension of the rows.
      columns: that of the columns.
      terms: that of the reduction.
      first: the load that has the rows.
      second: the load that has the columns.
    """

    instruction: MatrixInstruction
    rows: Root
    columns: Root
    terms: Root
    first: Node
    second: Node


class TilePlanner(Planner):
    """Plans a product by tile registers."""

    def plan(self) -> list[LoopAction]:
        """All actions; none where the kernel is no such product, or is too small for one."""
        for found in products(self.nest, self.target):
            if self.large(found) and not self.ordered(found.terms.var):
                self.tile(found)
                if stages_fit(self.nest, self.target):
                    return self.actions
                return []
        return []

    def large(self, found: TiledProduct) -> bool:
        """Whether a product fills the registers often enough."""
        rows, columns, terms = found.instruction.shape
        least = ((LEAST_TILE_ROWS - 1) * rows + 1, SIDE * columns, terms)
        roots = (found.rows, found.columns, found.terms)
        return all(upper(root.extent) >= few for root, few in zip(roots, least, strict=True))

    def tile(self, found: TiledProduct) -> None:
        """Cuts the loops, and packs both operands."""
        rows, columns, terms = found.instruction.shape
        together = found.instruction.together
        self.cut(found.columns.var, columns, Kind.FRAGMENT_COLUMNS)
        self.cut(found.rows.var, rows, Kind.FRAGMENT_ROWS)
        self.cut(found.terms.var, together, Kind.CONTRACT)
        self.cut(found.terms.var, terms // together, Kind.DEPTH)
        self.cut(found.columns.var, SIDE, Kind.UPCAST)
        self.cut(found.rows.var, SIDE, Kind.UPCAST)
        across, down = self.outer(found.columns.var), self.outer(found.rows.var)
        others = [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root not in (across.root, down.root)]
        length = -(-upper(found.terms.extent) // terms) * terms
        strip = SIDE * rows * length * found.first.dtype.itemsize
        count = upper(down.extent) if down.kind is Kind.LOOP else 1
        panels = upper(across.extent) if across.kind is Kind.LOOP else 1
        most = max(1, min(self.target.panel_bytes, self.target.beside_bytes) // strip)
        shared = self.shared(others, across, down, panels if count <= most else 0, count)
        threads = self.target.threads if shared is down else 1
        blocks = -(-count // (most * threads)) * threads
        around = self.innermost(found.first, others)
        if blocks > 1:
            together, around = -(-count // blocks), down.name
            if together > 1:
                self.do(Split(down.name, together, Kind.LOOP))
        outer = [*others, *([down] if blocks > 1 else []), *([across] if panels > 1 else [])]
        self.do_all(Outermost(axis.name) for axis in reversed(outer))
        for load, at in ((found.first, around), (found.second, self.innermost(found.second, outer))):
            self.do(Pack(loads_of(self.nest).index(load), at))
        if shared is not None:
            self.do(Mark(shared.name, Kind.THREAD))

    def shared(
        self, others: Sequence[Axis], across: Axis, down: Axis, panels: int, count: int
    ) -> Axis | None:
        """The loop that threads share out: of other dimensions, or that over panels or over rows, the longer one."""
        threads = self.target.threads
        if not self.threaded:
            return None
        apart = next((a for a in others if upper(a.extent) >= threads), None)
        if apart is not None:
            return apart
        longest, many = (across, panels) if panels >= count else (down, count)
        return longest if many >= threads else None

    def innermost(self, load: Node, loops: Sequence[Axis]) -> str | None:
        """The innermost of some loops that a load depends on."""
        return next((a.name for a in reversed(loops) if a.root in load.free), None)


def products(nest: Nest, target: Target) -> Iterator[TiledProduct]:
    """The ways in which an instruction with tile registers does the one product of a nest."""
    reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
    tiles = [found for found in target.matrices if found.tiled]
    if not tiles or len(reductions) != 1 or len(reductions[0].arg[1]) != 1:
        return
    node, terms = reductions[0], nest.roots[reductions[0].arg[1][0]]
    results = [nest.roots[root] for root in nest.roots if root in node.free]
    if any(not isinstance(root.extent, int) for root in (*results, terms)):
        return
    if any(store.update is not None or not node.free <= set(store.roots) for store in nest.stores):
        return
    for columns in results:
        if any(coefficient(store.index, columns.var) != 1 for store in nest.stores):
            continue
        for rows in sorted(results, key=lambda root: -upper(root.extent)):
            found = None if rows is columns else instruction_for(node, columns.var, rows.var, tiles)
            if found is not None and found[1].op is found[2].op is NodeOp.LOAD:
                yield TiledProduct(found[0], rows, columns, terms, found[1], found[2])
