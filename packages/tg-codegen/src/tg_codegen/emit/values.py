"""Values: what nodes become, computed on demand and remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import sint, substitute, toposort

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, const
from ..nest.env import Env
from ..nest.nest import Nest, Node, is_elementwise
from ..nest.spec import NodeOp
from .gathers import Gathers
from .index import index_dtype
from .site import Site
from .whole import Whole


class Values:
    """Computes the nodes of one nest."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.symbols, self.known = whole, whole.symbols, whole.known
        nest, target = whole.nest, whole.target
        self.gathers = Gathers(whole)
        self.fused = fusable(nest) if target.fused_multiply_add and not target.strict else frozenset()
        self.ahead = dict(nest.ahead) if target.prefetches else {}
        self._orders: dict[Node, list[Node]] = {}

    def order(self, node: Node) -> list[Node]:
        """The nodes to compute for ``node`` in the same place, operands first: reductions and stages are leaves."""
        found = self._orders.get(node)
        if found is None:
            leaves = self.whole.staged

            def operands(here: Node) -> tuple[Node, ...]:
                return () if here.op is NodeOp.REDUCE or (here is not node and here in leaves) else here.src

            found = self._orders[node] = toposort((node,), operands)
        return found

    def value(self, node: Node, env: Env, site: Site) -> UOp:
        """The value of ``node`` with the dimensions as in ``env``."""
        if node.op is NodeOp.REDUCE or node in self.whole.staged:
            return self.compute(node, env, site, {})
        return self.computed_below(self.order(node), env, site)[node]

    def computed(self, node: Node, site: Site) -> UOp:
        """A node's value, though it is staged."""
        below = self.computed_below(self.order(node)[:-1], site.env, site)
        return self.compute(node, site.env, site, below, fill=True)

    def computed_below(self, order: Sequence[Node], env: Env, site: Site) -> dict[Node, UOp]:
        """The values of nodes, operands first; those that are not known are computed, and then are."""
        known, found = self.known, dict[Node, UOp]()
        for node in order:
            key = known.key(node, env)
            value = known.values.get(key)
            if value is None:
                value = known.values[key] = self.compute(node, env, site, found)
            found[node] = value
        return found

    def compute(self, node: Node, env: Env, site: Site, below: Mapping[Node, UOp], fill: bool = False) -> UOp:
        """One node, from the values of its operands; ``fill`` computes also what is staged."""
        if node in self.whole.staged and not fill:
            return self.whole.stored(self.whole.staged[node], env, site)
        op = node.op
        if op is NodeOp.REDUCE:
            return self.whole.reduced(node, env, site)
        if op is NodeOp.CONST:
            return const(node.arg, node.dtype)
        if op is NodeOp.INDEX:
            expr = env.of(node.arg)
            return self.symbols.build.value(expr, index_dtype(expr)).cast(node.dtype)
        if op is NodeOp.LOAD:
            return self.load(node, env, site)
        if node in self.fused:
            product = next((s for s in node.src if s.op is Ops.MUL and s not in self.whole.staged), None)
            if product is not None:
                other = node.src[1 - node.src.index(product)]
                return fused_multiply_add(*[below[s] for s in (*product.src, other)])
        src = [below[s] for s in node.src]
        if op is NodeOp.GATHER:
            return self.gathers.value(node, src[0], src[1:], env, site)
        lanes = max([s.dtype.count for s in src], default=1)
        if op is NodeOp.SELECT:
            valid = self.symbols.build.truth(env.of(node.arg))
            if valid.is_const:
                return src[0] if valid.arg else const(0, node.dtype)
            lanes = max(lanes, valid.dtype.count)
            return valid.broadcast(lanes).alu(
                Ops.WHERE, src[0].broadcast(lanes), const(0, node.dtype).broadcast(lanes))
        if not is_elementwise(node):
            raise EmitError(f"{node!r} cannot be emitted")
        src = [s if s.dtype.count == lanes else s.broadcast(lanes) for s in src]
        if op is Ops.MULACC and self.whole.target.strict:
            return src[0].alu(Ops.MUL, src[1]).alu(Ops.ADD, src[2])
        return UOp(op, node.dtype if lanes == 1 else node.dtype.vec(lanes), tuple(src))

    def load(self, node: Node, env: Env, site: Site) -> UOp:
        """A LOAD, in a tile where its lanes are far apart."""
        whole = self.whole
        slot, index, valid = node.arg
        roots, pointer = tuple(node.free), whole.params[slot]
        tile = whole.tiles.tile(index, valid, roots, env)
        place, holds = whole.space.access(index, valid, roots, env if tile is None else tile.env)
        if tile is None:
            if node in self.ahead and holds != 0:
                self.prefetch(pointer, place, self.ahead[node], site)
            return whole.access.load(pointer, node.dtype, place, holds)
        if node in self.ahead and not whole.tiles.is_loaded(pointer, node.dtype, place, holds):
            for row in range(self.symbols.lanes[tile.lane]):
                first = substitute(place, {tile.lane: row, tile.copy: 0})
                self.prefetch(pointer, first, self.ahead[node], site)
        return whole.tiles.load(pointer, node.dtype, place, holds, tile)

    def prefetch(self, pointer: UOp, index: sint, distance: int, site: Site) -> None:
        """Tells the cache what comes ``distance`` elements after the first of the lanes."""
        lane = self.symbols.lane_of(index)
        first = index if lane is None else substitute(index, {lane: 0})
        place = self.whole.access.address(first + distance)
        site.region.effects.append(UOp(UOps.PREFETCH, dtypes.void, (pointer, place)))


def fused_multiply_add(x: UOp, y: UOp, other: UOp) -> UOp:
    """``x * y + other``, rounded once."""
    lanes = max(x.dtype.count, y.dtype.count, other.dtype.count)
    return x.broadcast(lanes).alu(Ops.MULACC, y.broadcast(lanes), other.broadcast(lanes))


def fusable(nest: Nest) -> frozenset[Node]:
    """Sums of floats with a product among them, of which nothing but terms of reductions by addition is made.

    By sums and products alone: so they may be rounded once, like the products that a reduction adds up, whose order is
    no promise either. A comparison, say, or a conversion would make a jump of the difference.
    """
    order = nest.nodes()
    others = {store.value for store in nest.stores}
    for user in order:
        adds = user.op is NodeOp.REDUCE and user.arg[0] is Ops.ADD
        if not adds and user.op not in (Ops.ADD, Ops.MUL):
            others.update(user.src)
    for user in reversed(order):  # whose users were looked at before
        if user in others and user.op is not NodeOp.REDUCE:
            others.update(user.src)
    return frozenset(n for n in order if n.op is Ops.ADD and n.dtype in (dtypes.float32, dtypes.float64)
                     and n not in others and any(s.op is Ops.MUL for s in n.src))
