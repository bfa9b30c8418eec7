"""Values kept for a row: what several loops over a row compute alike is computed by the first of them only.

A softmax wants the exponential of each element twice: for the sum of the row, and for the result. Loops of their own
compute it in each of them, from the element, which is near by then. Where that costs more than a store and a load, the
value goes to an *internal* buffer, of which :mod:`tg_codegen.plan.row_blocks` keeps a row at a time in fast memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tg_lazy import ALU, BufferArg
from tg_lazy.cost import FLOPS
from tg_shape import Expr, Variable, coefficient, sint, toposort

from ..machine.target import Target
from ..nest.nest import PLACE, Nest, Node, NodeOp, NodeTable, Store

DEAR = 10.0  # operations that cost more than a store and a load in the first-level cache
LEAST = 64  # elements of a row


class Keeping:
    """Looks for what an output and a reduction compute alike."""

    def __init__(self, nest: Nest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.numbers = count()
        self.names: dict[tuple[object, ...], int] = {}

    def signatures(self, value: Node, walk: Variable) -> dict[Node, int]:
        """A number for each node under ``value``, the same for nodes that differ only in what ``walk`` is called."""
        swap: dict[Expr, sint] = {walk: PLACE}
        found: dict[Node, int] = {}
        for node in self.within(value, walk):
            if walk not in node.free:
                key: tuple[object, ...] = (node,)
            else:
                arg = node.arg
                if node.op is NodeOp.LOAD:
                    arg = (arg[0], at(arg[1], swap), at(arg[2], swap))
                elif node.op in (NodeOp.INDEX, NodeOp.SELECT):
                    arg = at(arg, swap)
                key = (node.op, node.dtype, arg, *(found[s] for s in node.src))
            number = self.names.get(key)
            if number is None:
                number = self.names[key] = next(self.numbers)
            found[node] = number
        return found

    @staticmethod
    def within(value: Node, walk: Variable) -> list[Node]:
        """The nodes that a loop over ``walk`` computes for ``value``, operands first, and what it finds there."""
        return toposort([value], lambda node: node.src if walk in node.free else ())

    def cost(self, node: Node, walk: Variable) -> float:
        """Operations for one element; infinite where something in it may not be computed elsewhere."""
        mine = [n for n in self.within(node, walk) if walk in n.free]
        if any(n.op in (NodeOp.REDUCE, NodeOp.GATHER) for n in mine):
            return 0.0
        return sum(FLOPS[n.op] for n in mine if n.op in ALU)

    def found(self, store: Store) -> tuple[Variable, Node, dict[Variable, Node]] | None:
        """The dimension that an output walks, the dearest value to keep, and the same value in reductions, by root."""
        nest = self.nest
        for walk in store.roots:
            extent = nest.roots[walk].extent
            if coefficient_of(store.index, walk) != 1 or not isinstance(extent, int) or extent < LEAST:
                continue
            mine = self.signatures(store.value, walk)
            alike: dict[int, dict[Variable, Node]] = {}
            for node in nest.nodes():
                if node.op is not NodeOp.REDUCE or len(node.arg[1]) != 1:
                    continue
                root = node.arg[1][0]
                if nest.roots[root].extent == extent and node.free <= set(store.roots) - {walk}:
                    for inner, number in self.signatures(node.src[0], root).items():
                        if root in inner.free:
                            alike.setdefault(number, {}).setdefault(root, inner)
            shared = [n for n, number in mine.items() if number in alike and walk in n.free]
            best = max(shared, key=lambda n: self.cost(n, walk), default=None)
            if best is None or self.cost(best, walk) < DEAR or best.dtype.itemsize < 4:
                continue
            if 4 * extent * best.dtype.itemsize <= self.target.l2_bytes:
                return walk, best, alike[mine[best]]
        return None


def at(expr: sint, swap: dict[Expr, sint]) -> sint:
    """``expr`` with variables replaced."""
    return expr if isinstance(expr, int) else expr.substitute(swap)


def coefficient_of(index: sint, root: Variable) -> int | None:
    """By how much an index grows with ``root``; None if unevenly."""
    return 0 if isinstance(index, int) else coefficient(index, root)


def keep_rows(nest: Nest, target: Target) -> Nest:
    """The nest with an internal buffer for what an output and a reduction along its rows compute alike; or as it is.

    Only kernels of one output for CPUs, whose rows are known in number and fit into fast memory.
    """
    if target.kind != "cpu" or len(nest.stores) != 1 or any(b.internal for b in nest.buffers):
        return nest
    store = nest.stores[0]
    found = Keeping(nest, target).found(store) if isinstance(store.valid, int) else None
    if found is None:
        return nest
    walk, kept, alike = found
    outer = [root for root in store.roots if root is not walk]
    extents = [nest.roots[root].extent for root in (*outer, walk)]
    sizes = [extent for extent in extents if isinstance(extent, int)]
    if not outer or len(sizes) < len(extents) or any(root not in kept.free for root in outer):
        return nest
    slot, size = len(nest.buffers), 1
    place: sint = 0
    for root, extent in zip(reversed((*outer, walk)), reversed(sizes), strict=True):
        place, size = place + root * size, size * extent
    table = NodeTable()
    table.roots = dict(nest.roots)
    held = {kept: place}
    for root, node in alike.items():
        held[node] = at(place, {walk: root})
    new: dict[Node, Node] = {}
    for node in store.value.toposort():
        if node in held:
            new[node] = table.make(NodeOp.LOAD, node.dtype, (), (slot, held[node], 1))
        else:
            new[node] = table.make(node.op, node.dtype, tuple(new[s] for s in node.src), node.arg)
    first = Store(slot, place, 1, kept, store.roots)
    buffers = (*nest.buffers, BufferArg(kept.dtype, size, internal=True))
    return replace(nest, stores=(first, replace(store, value=new[store.value])), buffers=buffers)
