"""The hand-coded heuristic for GPUs: work-groups, vectors, register tiles, shared memory, reductions by groups.

Three families of kernels:

* *elementwise*: vectors along the dimension in which memory is contiguous, neighbours in one group; what is read across
  goes through shared memory in squares;
* *products*, where two loads are each used for many outputs: a tile of outputs a group, a smaller one a work-item, and
  the operands of a piece of the reduction in shared memory;
* *reductions*: the items of a group each take a part, as many as it takes to occupy the machine; they are neighbours
  where memory is contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tg_lazy import Ops
from tg_shape import Variable, coefficient, even_part, upper

from ...machine.target import Target
from ...nest.launch_shape import item_shape
from ...nest.layout import MOST_COPIES, planned_layout
from ...nest.matrix_products import instruction_for
from ...nest.nest import Nest, Node, Root
from ...nest.spec import ITEMS, REORDERING, STATED, Kind, NodeOp
from ...nest.texels import writes_images
from ...nest.updates import ordered_roots
from ..actions import LoopAction, Mark, Share, Split, apply, loads_of
from ..planner import Planner, power_below
from ..side_by_side import common_dimensions
from .tiles import item_tile, warp_tile

PRODUCT_DEPTH = 16
"""Iterations of a product's reduction whose operands are in shared memory at once."""
MOST_INNER = 64
"""Iterations of a product's inner reductions, at the most, for its operands to be shared."""
MATRIX_DEPTH = 32
"""As :data:`PRODUCT_DEPTH`, of a product by matrix instructions."""
MOST_WASTE = 1.25
"""Times a dimension that groups of items may go through, at the most, so that there are few of them."""
TREE_SHARE = 1.25
"""Times what items have each, that is shared while it is combined: each level of the tree has an eighth or so more."""
LEAST_PRODUCT = 8
"""Rows, columns and depth below which a product is not tiled."""


class GPUPlanner(Planner):
    """Collects actions for one nest on a GPU."""

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
        self.items = min(target.local_max or 1, target.gpu.group_items)
        self.tiled = False
        self.outputs = {r.var for r in nest.roots.values() if not r.reduce}

    def plan(self) -> list[LoopAction]:
        """All actions for the nest."""
        if writes_images(self.nest):
            self.texels()
            return self.actions
        ordered = ordered_roots(self.nest)
        if any(store.update is not None for store in self.nest.stores):  # items share out what never meets
            self.rows = [root for root in self.rows if root.var not in ordered]
            self.outputs -= ordered
        elif not self.reductions:
            self.elementwise()
        elif not self.product():
            self.reduce()
        self.spread()
        return self.actions

    def texels(self) -> None:
        """A work-item writes a texel of an image, whose channels are its lanes, and reduces alone."""
        loops = [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root in self.outputs]
        for axis in sorted(loops, key=lambda a: -upper(a.extent))[:3]:
            if axis.name == loops[-1].name and upper(axis.extent) > self.target.gpu.texel_items:
                self.do(Split(axis.name, self.target.gpu.texel_items, Kind.LOCAL))
            self.do(Mark(axis.name, Kind.GLOBAL))

    # what is common

    def part(self, root: Variable, factor: int, kind: Kind) -> None:
        """Gives the innermost ``factor`` iterations to ``kind``, or all if there are no more."""
        axis = self.outer(root)
        if factor < 2 or axis.kind not in STATED or upper(axis.extent) < 2:
            return
        if kind in REORDERING and self.ordered(root):
            return
        if isinstance(axis.extent, int) and axis.extent <= factor:
            self.do(Mark(axis.name, kind))
        elif isinstance(axis.extent, int) or kind in ITEMS:
            self.do(Split(axis.name, factor, kind))

    def even(self, root: Variable, most: int) -> int:
        """The greatest power of two, at most ``most``, that divides what is left of a dimension."""
        extent = self.outer(root).extent
        width = max(1, most)
        while width > 1 and (not isinstance(extent, int) or extent % width):
            width //= 2
        return width

    def item_count(self, root: Variable, most: int) -> int:
        """How many work-items, at most ``most``, share what is left of a dimension: a power of two with few idle."""
        extent = upper(self.outer(root).extent)
        best = power_below(max(1, most))
        while best > 1 and (best >= 2 * extent or -(-extent // best) * best > int(extent * MOST_WASTE)):
            best //= 2
        return best

    def left(self) -> int:
        """By how much a group's number of work-items may still be multiplied."""
        return max(1, self.items // prod(int(n) for n in item_shape(self.nest, self.target.warp).sizes))

    def spread(self) -> None:
        """Gives the outputs' loops that are left to work-items, while a group may have more, and to work-groups."""
        divided = any(a.kind is Kind.GROUP for a in self.nest.axes)  # others would do its work once more
        for root in reversed(self.rows if divided else self.rows + self.columns):
            axis = self.outer(root.var)
            if axis.kind is Kind.LOOP and self.left() >= 2 and self.has_dimension() and not self.tiled:
                self.part(root.var, self.item_count(root.var, self.left()), Kind.LOCAL)
        symbolic = 0
        reduced = {r for n in self.reductions for r in n.free}
        for axis in [a for a in self.nest.axes if a.kind is Kind.LOOP and a.root in self.outputs]:
            if any(axis.root not in s.roots for s in self.nest.stores) and len(self.nest.stores) > 1:
                continue  # some stores would be done by one group only, and others wait for nothing
            if self.reductions and axis.root not in reduced and upper(axis.extent) < self.items:
                continue  # the group that has the reduction's result writes all that needs it
            symbolic += not isinstance(axis.extent, int)
            if isinstance(axis.extent, int) or symbolic <= 2:
                self.do(Mark(axis.name, Kind.GLOBAL))

    def has_dimension(self) -> bool:
        """Whether another loop of work-items still has a dimension of the launch, of which there are three."""
        return sum(a.kind in ITEMS for a in self.nest.axes) < 3

    # families

    def elementwise(self) -> None:
        best = self.walked()
        if best is None:
            return
        across = [load for load in self.loads
                  if coefficient(load.arg[1], best.var) not in (0, 1) and self.contiguous_rows(load, best) is not None]
        if across and self.square(best, across[0]):
            return
        common = common_dimensions(self.nest, self.rows, best)
        for root in common:
            self.part(root.var, upper(root.extent), Kind.UPCAST)
        points = max(prod(upper(self.nest.roots[r].extent) for r in store.roots) for store in self.nest.stores)
        if not common and points * max(1, len(self.nest.nodes()) // 4) // self.lanes >= self.target.gpu.lanes:
            width = self.even(best.var, self.lanes)
            if width >= 2 and any(coefficient(n.arg[1], best.var) == 1 for n in self.loads) | any(
                    coefficient(s.index, best.var) == 1 for s in self.nest.stores):
                self.part(best.var, width, Kind.VECTOR)
        self.part(best.var, self.item_count(best.var, self.items), Kind.LOCAL)

    def walked(self) -> Root | None:
        """The dimension along which most of memory is contiguous, stores first."""
        best, score = None, 0
        for root in self.rows:
            if upper(root.extent) >= 2:
                found = self.target.gpu.far_store * sum(coefficient(s.index, root.var) == 1 for s in self.nest.stores)
                found += sum(1 for load in self.loads if coefficient(load.arg[1], root.var) == 1)
                if found > score or best is None:
                    best, score = root, found
        return best

    def contiguous_rows(self, load: Node, best: Root) -> Root | None:
        """The other output dimension along which a load is contiguous."""
        run = self.target.gpu.run
        return next((
            r for r in self.rows
            if r is not best and coefficient(load.arg[1], r.var) == 1 and upper(r.extent) >= run), None)

    def square(self, best: Root, load: Node) -> bool:
        """Transposes squares of a load in shared memory: read along one dimension, written along the other."""
        other = self.contiguous_rows(load, best)
        side = min(self.target.gpu.banks, self.items // 2, power_below(upper(best.extent)))
        fits = side * (side * load.dtype.itemsize + self.target.gpu.pad_bytes) <= self.target.shared_bytes
        if other is None or side < self.target.gpu.run or not fits or best.var not in load.free:
            return False
        if not all(isinstance(r.extent, int) for r in (best, other)):
            return False
        deep = min(side, power_below(upper(other.extent)))
        each = max(1, deep * side // self.items)
        self.part(best.var, side, Kind.LOCAL)
        self.part(other.var, each, Kind.UPCAST)
        self.part(other.var, deep // each, Kind.LOCAL)
        self.do(Share(loads_of(self.nest).index(load), None))
        self.tiled = True
        return True

    def product(self) -> bool:
        """A tiled product, if the kernel is one."""
        if len(self.reductions) != 1 or self.reductions[0].arg[0] is not Ops.ADD or self.columns:
            return False
        node = self.reductions[0]
        body = [n for n in node.toposort() if n.op is NodeOp.LOAD]
        if not all(isinstance(r.extent, int) for r in self.nest.roots.values() if r.var in {*node.arg[1], *node.free}):
            return False
        columns = self.walked()
        if columns is None or any(n.op is NodeOp.GATHER for n in node.toposort()):
            return False
        right = [n for n in body if columns.var in n.free]
        choices = [r for r in self.rows if r is not columns and right and all(r.var not in n.free for n in right)]
        if not choices:
            return False
        rows = max(choices, key=lambda r: upper(r.extent))
        left = [n for n in body if rows.var in n.free]
        depth = prod(upper(self.nest.roots[r].extent) for r in node.arg[1])
        if not left or min(upper(rows.extent), upper(columns.extent), depth) < LEAST_PRODUCT:
            return False
        if self.by_warps(rows, columns, left, right):
            return True
        # vectors want neighbours in memory, in the result as well
        lanes = self.even(columns.var, self.lanes) if any(
            coefficient(s.index, columns.var) == 1 for s in self.nest.stores) else 1
        others = prod(upper(r.extent) for r in self.rows if r is not rows and r is not columns)
        tile = item_tile(upper(rows.extent), upper(columns.extent), others, lanes, self.items, self.target)
        self.part(columns.var, lanes, Kind.VECTOR)
        self.part(columns.var, tile.columns, Kind.LOCAL)
        self.part(columns.var, tile.wide // lanes, Kind.UPCAST)
        self.part(rows.var, tile.each, Kind.UPCAST)
        self.part(rows.var, tile.rows, Kind.LOCAL)
        self.tiled = True
        self.stage([*left, *(n for n in right if n not in left)], node)
        self.unroll_small(tile.each * tile.wide)
        return True

    def by_warps(self, rows: Root, columns: Root, left: list[Node], right: list[Node]) -> bool:
        """A product by matrix instructions, if the machine has one for it."""
        node = self.reductions[0]
        matched = instruction_for(node, columns.var, rows.var, self.target.matrices)
        depth = max((self.nest.roots[r] for r in node.arg[1]), key=lambda r: upper(r.extent))
        while matched is not None and upper(depth.extent) < matched[0].shape[2]:  # there may be a flatter one
            rest = self.target.matrices[self.target.matrices.index(matched[0]) + 1 :]
            matched = instruction_for(node, columns.var, rows.var, rest)
        if matched is None or not self.target.shared_bytes or self.ordered(depth.var):
            return False
        m, n, k = matched[0].shape
        if upper(rows.extent) < m or upper(columns.extent) < n:
            return False
        others = prod(upper(r.extent) for r in self.rows if r is not rows and r is not columns)
        tile = warp_tile(upper(rows.extent), upper(columns.extent), others, m, n, self.items, self.target)
        self.part(columns.var, n, Kind.FRAGMENT_COLUMNS)
        self.part(columns.var, tile.wide, Kind.UPCAST)
        self.part(columns.var, tile.columns, Kind.LOCAL)
        self.part(rows.var, m, Kind.FRAGMENT_ROWS)
        self.part(rows.var, tile.each, Kind.UPCAST)
        self.part(rows.var, tile.rows, Kind.LOCAL)
        self.part(depth.var, k, Kind.CONTRACT)
        self.tiled = True
        self.stage([*left, *(load for load in right if load not in left)], node, max(1, MATRIX_DEPTH // k))
        return True

    def stage(self, loads: Sequence[Node], node: Node, deep: int = PRODUCT_DEPTH) -> None:
        """Cuts the reduction, and shares the operands of each piece as far as they fit: ``deep`` iterations at most."""
        if not any(a.kind is Kind.LOCAL for a in self.nest.axes):
            return
        serial = [a for a in self.nest.axes if a.root in node.arg[1] and a.kind is Kind.REDUCE]
        inner = prod(upper(a.extent) for a in serial[1:])
        if inner > MOST_INNER:
            return
        extent = upper(serial[0].extent) if serial else 1
        length = max(1, min(extent, deep // inner if inner <= deep else 1))
        while True:
            even = even_part(extent, length) or length
            walk = None if even == extent else serial[0]
            where = walk.name if walk is not None else None
            cut: list[LoopAction] = [Split(walk.name, even, Kind.REDUCE)] if walk is not None and even > 1 else []
            kept = [n for n in loads if self.worth_sharing(n, walk.root if walk is not None else None)]
            if self.fits(apply(self.nest, cut), kept, where):
                break
            if length == 1:
                return
            length //= 2
        self.do_all(cut)
        self.do_all(Share(loads_of(self.nest).index(load), where) for load in kept)

    def worth_sharing(self, load: Node, walk: Variable | None) -> bool:
        """Whether items read the same elements of a load, which is not shared yet, in each iteration of ``walk``."""
        reused = any(a.kind is Kind.LOCAL and a.root not in load.free for a in self.nest.axes)
        return reused and (walk is None or walk in load.free) and all(s.node is not load for s in self.nest.stages)

    def fits(self, nest: Nest, loads: Sequence[Node], where: str | None) -> bool:
        """Whether a group can share loads in the loop ``where`` (``None``: at the top), and its items copy them."""
        count, nbytes = prod(int(n) for n in item_shape(nest, self.target.warp).sizes), 0
        for load in loads:
            found = planned_layout(nest, self.target, load, where)
            nbytes += found.size * load.dtype.itemsize
            if found.vectors > count * MOST_COPIES:
                return False
        return nbytes <= self.target.shared_bytes

    def reduce(self) -> None:
        """Reductions, each divided among the items of a group where that pays."""
        gpu, warp, groups = self.target.gpu, self.target.warp, dict[tuple[Variable, ...], list[Node]]()
        for node in self.reductions:
            groups.setdefault(node.arg[1], []).append(node)
        results = prod(upper(r.extent) for r in self.rows)
        coalesced = self.along_rows()
        depth = max(prod(upper(self.nest.roots[r].extent) for r in roots) for roots in groups)
        most = self.items if coalesced is None else self.items // warp
        wanted, terms = gpu.resident // max(results, 1), depth // gpu.item_terms
        width = min(most, power_below(max(1, wanted)), power_below(max(1, terms)))
        if coalesced is None and depth >= gpu.item_terms * warp:
            width = min(max(width, warp), self.items)
        elif coalesced is not None and results >= gpu.lone_results:
            width = 1
        if not self.target.shared_bytes:  # there is nowhere to put the parts together
            width = 1
        elif width > 1:
            together = int(sum(n.dtype.itemsize for n in self.reductions) * TREE_SHARE)
            self.items = min(self.items, power_below(max(1, self.target.shared_bytes // together)))
            width = min(width, self.items)
        loads = {roots: [n for node in nodes for n in node.toposort() if n.op is NodeOp.LOAD]
                 for roots, nodes in groups.items()}
        deepest = max(groups, key=lambda roots: prod(upper(self.nest.roots[r].extent) for r in roots))
        width = min(width, power_below(upper(self.divided(deepest, loads[deepest], width)[0].extent)))
        for roots, inner in loads.items():
            self.divide(roots, inner, width)
        if coalesced is not None:
            most = min(self.left(), warp if width > 1 else gpu.group_items)
            self.part(coalesced.var, self.item_count(coalesced.var, most), Kind.LOCAL)
        elif width > 1:
            for root in self.columns[-1:]:
                lanes = self.even(root.var, self.lanes)
                if lanes >= 2 and upper(root.extent) >= lanes * width and self.contiguous(root):
                    self.part(root.var, lanes, Kind.VECTOR)
                axis = self.outer(root.var)
                if upper(axis.extent) > width:
                    self.part(root.var, width, Kind.LOCAL)
        self.unroll_small(4)

    def contiguous(self, root: Root) -> bool:
        """Whether all stores are contiguous along a dimension."""
        return all(coefficient(s.index, root.var) in (0, 1) for s in self.nest.stores)

    def along_rows(self) -> Root | None:
        """The dimension of the results along which the largest load is contiguous; None if it is so along another."""
        body = [n for r in self.reductions for n in r.toposort() if n.op is NodeOp.LOAD]
        if not body:
            return None
        largest = max(body, key=self.elements)
        roots = self.nest.roots.values()
        run = self.target.gpu.run
        along = [r for r in roots if upper(r.extent) >= run and coefficient(largest.arg[1], r.var) == 1]
        return None if any(r.reduce for r in along) else next((r for r in along if r in self.rows), None)

    def elements(self, load: Node) -> int:
        """How many elements a load reads in all."""
        return prod(upper(self.nest.roots[r].extent) for r in load.free)

    def divided(self, roots: tuple[Variable, ...], loads: Sequence[Node], width: int) -> tuple[Root, bool]:
        """The dimension of a reduction that is divided among ``width`` items, and whether memory is contiguous there.

        It is the longest of those, if it is long enough for the items or a warp of them, and else the longest of all.
        """
        choices = [self.nest.roots[r] for r in roots]
        largest = max(loads, key=self.elements, default=None)
        near = [r for r in choices if largest is not None and coefficient(largest.arg[1], r.var) == 1
                and upper(r.extent) >= min(width, self.target.warp)]
        return max(near or choices, key=lambda r: upper(r.extent)), bool(near)

    def divide(self, roots: tuple[Variable, ...], loads: Sequence[Node], width: int) -> None:
        """Divides a reduction among ``width`` items."""
        root, near = self.divided(roots, loads, width)
        if near and isinstance(root.extent, int) and root.extent >= self.target.gpu.item_terms * max(width, 1):
            lanes = self.even(root.var, self.lanes)
            alone = not any(set(n.free) & {root.var} for n in self.reductions)
            if lanes >= 2 and alone and not any(a.kind is Kind.LANES for a in self.nest.axes if a.root in roots):
                self.part(root.var, lanes, Kind.LANES)
        if width > 1:
            extent = self.outer(root.var).extent
            if isinstance(extent, int) and extent < width:
                return
            self.part(root.var, width, Kind.GROUP)
