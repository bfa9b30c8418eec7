"""Emission: a loop nest becomes structured UOps.

Output loops are opened one inside the other; in the innermost, every store asks for its value. Values are computed on
demand and remembered under the index expressions that they depend on. A reduction, when first asked for, puts its loops
into the innermost block that its own free roots need, which may lie outside of the loop that asks: so a row's maximum
is computed once, before the loop over the row. All register copies of a reduction (its tile) share one loop, and so do
reductions that run over the same roots.

A loop whose last iteration is partial is emitted twice: the full iterations, in which bounds prove every guard true,
and the last one, where guards are constants or masks over lanes.
"""
from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, coefficient, sint, smin

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.env import Env
from ..nest.launch_shape import groups, items
from ..nest.nest import FRAGMENT, LANE, PARALLEL, PLACE, UNROLLED, Axis, Kind, Nest, Node, NodeOp, Store, is_alu
from .access import splat
from .group_stages import Sharing
from .index import index_dtype
from .reduction import Reduction, fusable
from .scope import Block, Context
from .tiles import Tile


class Emitter(Sharing):
    """Emits one nest for one target."""

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
        self.orders: dict[Node, list[Node]] = {}
        self.reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
        self.fused = fusable(nest) if target.fused_multiply_add and not target.strict else frozenset()
        self.streams = frozenset(self.params[slot] for slot in nest.streams)
        self.tells = target.kind == "cpu"  # GPUs hide the way to memory by other work, and not all have the instruction
        self.ahead = dict(nest.ahead) if self.tells else {}

    def kernel(self) -> UOp:
        """The structured form of the whole kernel."""
        for variable in sorted(self.kernel_variables(), key=lambda v: v.name):
            self.leaves[variable] = UOp(UOps.VAR, dtypes.int32, (), variable)
        exact = frozenset(root for root in self.nest.roots if self.divides(root))
        context = Context(self.top, Env(dict.fromkeys(self.nest.roots, 0), {}, exact))
        env = context.env
        parallel = [a for a in self.nest.axes if a.kind in PARALLEL]
        foreign = PARALLEL if self.target.kind == "cpu" else {Kind.THREAD}
        if any(a.kind in foreign for a in self.nest.axes):
            axis = next(a for a in self.nest.axes if a.kind in foreign)
            raise EmitError(f"{axis.name} is {axis.kind.name}, of which a {self.target.kind.upper()} has none")
        counters = self.counters()
        self.warp = next((counters[a.name] for a in self.nest.axes if a.kind in FRAGMENT), 0)
        for axis in parallel:
            if axis.kind is Kind.GROUP:
                self.group[axis.name] = counters[axis.name]
            else:
                env = env.open(axis.name, axis.root, axis.stride, counters[axis.name])
        context = Context(self.top, env)
        serial = [a for a in self.nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
        self.outputs(list(self.nest.stores), [*serial, *self.idle_copies()], context, parallel)
        return UOp(UOps.SINK, dtypes.void, tuple(self.top.effects))

    def idle_copies(self) -> list[Axis]:
        """Unrolled loops of the outputs that nothing is won by: they are loops around the stores.

        Copies keep accumulators in registers, or are neighbours in memory. Where all accumulators are in scratch when
        the outputs are written, other copies would only make the code long, and long code is slow to compile.
        """
        if not self.reductions or any(node not in self.staged for node in self.reductions):
            return []
        near = {root for store in self.nest.stores for root in store.roots if coefficient(store.index, root) == 1}
        copies = [a for a in self.nest.axes if a.kind is Kind.UPCAST and a.root not in near]
        return [Axis(a.name, a.root, a.stride, a.extent, Kind.LOOP) for a in copies]

    def kernel_variables(self) -> frozenset[Variable]:
        """Variables that are arguments of the kernel."""
        found: set[Variable] = set()

        def look(expr: sint) -> None:
            if isinstance(expr, Expr):
                found.update(v for v in expr.variables() if v not in self.nest.roots and v is not PLACE)

        for root in self.nest.roots.values():
            look(root.extent)
        for store in self.nest.stores:
            look(store.index)
            look(store.valid)
        for node in self.nest.nodes():
            parts = node.arg if node.op in (NodeOp.LOAD, NodeOp.GATHER) else (node.arg,)
            for part in parts:
                if node.op is not NodeOp.CONST and isinstance(part, Expr):
                    look(part)
        return frozenset(found)

    def counters(self) -> dict[str, sint]:
        """The counters of the loops that run across work-groups and work-items."""
        found: dict[str, sint] = {}
        try:
            layouts = {"gidx": groups(self.nest, self.target.global_max), "lidx": items(self.nest)}
        except ValueError as error:
            raise EmitError(str(error)) from None
        for prefix, layout in layouts.items():
            indices = [self.special(f"{prefix}{number}", size) for number, size in enumerate(layout.sizes)]
            for slot in layout.slots:
                found.update((axis.name, layout.counter(axis, indices)) for axis in slot)
            if prefix == "lidx":
                self.items = [(index, int(size)) for index, size in zip(indices, layout.sizes, strict=True)]
        return found

    def outputs(self, stores: list[Store], axes: Sequence[Axis], context: Context, parallel: Sequence[Axis]) -> None:
        """Opens the output loops around the stores that need them."""
        if not axes:
            alike: dict[tuple[Variable, ...], list[Store]] = {}
            for store in stores:
                alike.setdefault(store.roots, []).append(store)
            for group in alike.values():
                self.store(group, context, parallel)
            return
        axis, rest = axes[0], axes[1:]
        inside = [s for s in stores if axis.root in s.roots]
        outside = [s for s in stores if axis.root not in s.roots]
        for span in self.spans(axis, context.env) if inside else ():
            self.run(axis, span, context, lambda inner: self.outputs(inside, rest, inner, parallel))
        if outside:
            idle = [*parallel, axis] if axis.kind is Kind.THREAD else parallel
            self.outputs(outside, rest, context, idle)

    def store(self, stores: list[Store], context: Context, parallel: Sequence[Axis]) -> None:
        """All register copies of stores over the same roots.

        What one copy computes is stored before the next one is begun: few values are in registers at a time.
        """
        roots = stores[0].roots
        busy = {self.counter_of(axis, context.env) for axis in parallel if axis.root in roots}
        idle: sint = 1
        for axis in parallel:
            counter = self.counter_of(axis, context.env)
            if isinstance(counter, Expr) and counter not in busy:
                idle = idle & counter.eq(0)
        tiles: dict[tuple[int, sint, sint], tuple[Tile, dict[int, UOp]]] = {}
        for env in self.replicas(context.env, roots):
            for store in stores:
                pointer = self.params[store.slot]
                tile = self.tile(store.index, roots, env, stored=True)
                index, valid = self.place(store.index, store.valid & idle, roots, env if tile is None else tile.env)
                if isinstance(valid, int) and not valid:
                    continue
                value = self.value(store.value, env, context)
                if tile is None:
                    context.block.effects.extend(self.writes(pointer, index, valid, value))
                else:
                    tiles.setdefault((store.slot, index, valid), (tile, {}))[1][tile.number] = value
        for (slot, index, valid), (tile, values) in tiles.items():
            context.block.effects.extend(self.write_tile(self.params[slot], index, valid, values, tile))

    def order(self, node: Node) -> list[Node]:
        """The nodes to compute for ``node`` in the same place, operands first: reductions and stages are leaves."""
        found = self.orders.get(node)
        if found is None:
            seen: dict[Node, None] = {}
            stack: list[tuple[Node, bool]] = [(node, False)]
            while stack:
                here, done = stack.pop()
                if done:
                    seen[here] = None
                elif here not in seen:
                    stack.append((here, True))
                    if here.op is not NodeOp.REDUCE and (here is node or here not in self.staged):
                        stack.extend((child, False) for child in reversed(here.src) if child not in seen)
            found = self.orders[node] = list(seen)
        return found

    def value(self, node: Node, env: Env, context: Context) -> UOp:
        """The value of ``node`` with roots as in ``env``; reductions put their loops where they belong."""
        if node.op is NodeOp.REDUCE or node in self.staged:
            return self.compute(node, env, context)
        for here in self.order(node):
            key = self.key(here, env)
            if key not in self.memo:
                self.memo[key] = self.compute(here, env, context)
        return self.memo[self.key(node, env)]

    def compute(self, node: Node, env: Env, context: Context, fill: bool = False) -> UOp:
        """One node, its operands being in the memo."""
        if node in self.staged and not fill:
            return self.read_stage(self.staged[node], env, context)
        op = node.op
        if op is NodeOp.REDUCE:
            return self.reduction(node, env, context)
        if op is NodeOp.CONST:
            return const(node.arg, node.dtype)
        if op is NodeOp.INDEX:
            expr = self.at(node.arg, env.root)
            return self.build.value(expr, index_dtype(expr)).cast(node.dtype)
        if op is NodeOp.LOAD:
            slot, index, valid = node.arg
            roots = tuple(node.free)
            tile = self.tile(index, roots, env)
            at = self.place(index, valid, roots, env if tile is None else tile.env)
            if tile is None:
                if node in self.ahead and at[1] != 0:
                    self.prefetch(self.params[slot], at[0], self.ahead[node], context)
                return self.load(self.params[slot], node.dtype, *at)
            if node in self.ahead and not self.is_loaded(self.params[slot], node.dtype, *at):
                for row in range(self.lanes[tile.lane]):
                    first = self.at(at[0], {tile.lane: row, tile.copy: 0})
                    self.prefetch(self.params[slot], first, self.ahead[node], context)
            return self.load_tile(self.params[slot], node.dtype, *at, tile)
        if node in self.fused:
            product = next((s for s in node.src if s.op is Ops.MUL and s not in self.staged), None)
            if product is not None:
                other = node.src[1 - node.src.index(product)]
                return multiply_add(*(self.memo[self.key(s, env)] for s in (*product.src, other)))
        src = [self.memo[self.key(s, env)] for s in node.src]
        if op is NodeOp.GATHER:
            return self.gather_node(node, src[0], env, context)
        lanes = max((s.dtype.count for s in src), default=1)
        if op is NodeOp.SELECT:
            valid = self.build.truth(self.at(node.arg, env.root))
            if valid.is_const:
                return src[0] if valid.arg else const(0, node.dtype)
            lanes = max(lanes, valid.dtype.count)
            return splat(valid, lanes).alu(Ops.WHERE, splat(src[0], lanes), splat(const(0, node.dtype), lanes))
        if not is_alu(node):
            raise EmitError(f"{node!r} cannot be emitted")
        dtype = node.dtype if lanes == 1 else node.dtype.vec(lanes)
        return UOp(op, dtype, tuple(splat(s, lanes) for s in src))

    def prefetch(self, pointer: UOp, index: sint, distance: int, context: Context) -> None:
        """Tells the cache what comes ``distance`` elements after the first of the lanes."""
        lane = self.lane_of(index)
        first = index if lane is None else self.at(index, {lane: 0})
        context.block.effects.append(UOp(UOps.PREFETCH, dtypes.void, (pointer, self.address(first + distance))))

    def gather_node(self, node: Node, index: UOp, env: Env, context: Context) -> UOp:
        """A GATHER, its index being there."""
        slot, place, size = node.arg
        source, wanted = node.src[0], None
        if source.op is Ops.WHERE and source.src[2].op is NodeOp.CONST and source.src[2].arg < 0:
            # an index that is put outside where it is not wanted: what it would be tells whether lanes are neighbours
            wanted = self.memo[self.key(source.src[0], env)]
            source = source.src[1]
            index = self.memo[self.key(source, env)]
        lane = self.lane_of(*(env.root[root] for root in node.free))
        together = lane is not None and index.dtype.count > 1 and self.walk(source, env, lane) == 1
        if together and place is PLACE and self.nest.foreseen is not None and self.tells:
            self.foresee(self.params[slot], source, env, context)
        return self.gather(self.params[slot], node.dtype, index, place, size, together, wanted)

    def foresee(self, pointer: UOp, source: Node, env: Env, context: Context) -> None:
        """Tells the cache what a gather will read at the indices ``source`` in a later iteration."""
        assert self.nest.foreseen is not None
        axis, distance = self.nest.axis(self.nest.foreseen[0]), self.nest.foreseen[1]
        last = self.nest.roots[axis.root].extent - 1
        later = smin(env.root[axis.root] + distance * axis.stride, last)
        index = self.value(source, Env({**env.root, axis.root: later}, env.axis, env.exact), context)
        place = UOp(UOps.PREFETCH, dtypes.void, (pointer, index.gep(0).cast(dtypes.int64)))
        context.block.effects.append(place)

    def walk(self, node: Node, env: Env, lane: Variable) -> int | None:
        """By how much an integer node grows from lane to lane; None if that is not known."""
        steps: dict[Node, int | None] = {}
        for here in self.order(node):
            src = [steps[s] for s in here.src] if here.op is not NodeOp.REDUCE else []
            lane_free = all(
                isinstance(env.root[r], int) or lane not in env.root[r].variables() for r in here.free)  # type: ignore[union-attr]
            step: int | None = None
            if lane_free:
                step = 0
            elif here.op is NodeOp.INDEX:
                step = self.step(self.at(here.arg, env.root), lane, self.lanes[lane])
            elif here.op is Ops.CAST and dtypes.is_int(here.dtype) and dtypes.is_int(here.src[0].dtype):
                step = src[0]
            elif here.op in (Ops.ADD, Ops.SUB) and src[0] is not None and src[1] is not None:
                step = src[0] + src[1] if here.op is Ops.ADD else src[0] - src[1]
            elif here.op is Ops.MUL:
                for one, other in ((0, 1), (1, 0)):
                    if here.src[one].op is NodeOp.CONST and src[other] is not None:
                        step = int(here.src[one].arg) * src[other]  # type: ignore[operator]
            steps[here] = step
        return steps[node]

    def home(self, node: Node, env: Env, context: Context) -> Block:
        """The innermost block that opens something on which ``node`` depends.

        A partial last iteration that runs on a condition has a block, too, though its loop has a number for a counter.
        """
        home = self.top
        for root in node.free:
            value = env.root[root]
            for variable in value.variables() if isinstance(value, Expr) else ():
                block = self.owner.get(variable)
                if block is not None and block.depth > home.depth:
                    home = block
        here = context
        while here.parent is not None and here.block.depth > home.depth:
            opened = self.named.get(here.opened or "")
            if here.block is not here.parent.block and opened is not None and opened.root in node.free:
                return here.block
            here = here.parent
        return home

    def context_of(self, block: Block, context: Context) -> Context:
        """The innermost enclosing context that fills ``block``."""
        while context.parent is not None and context.block is not block:
            context = context.parent
        return context

    def reduction(self, node: Node, env: Env, context: Context) -> UOp:
        """A reduction's value; when first asked for, its loops are emitted, with those of its companions."""
        key = self.key(node, env)
        if key in self.memo:
            return self.memo[key]
        base = {name: value for name, value in env.axis.items() if self.nest.axis(name).kind not in (UNROLLED | LANE)}
        outer = Env(dict.fromkeys(env.root, 0), {}, env.exact)
        for name, value in base.items():
            axis = self.nest.axis(name)
            outer = outer.open(name, axis.root, axis.stride, value)
        home = self.home(node, outer, context)
        roots = node.arg[1]
        members = [
            n for n in self.reductions
            if n is node or (n.arg[1] == roots and n.level == node.level and n not in self.staged
                             and self.is_open(n, outer) and self.home(n, outer, context) is home)
        ]
        place = Context(home, outer, None, self.context_of(home, context))
        slots = [(n, here) for n in members for here in self.replicas(outer, sorted(n.free, key=lambda v: v.name))]
        if not any(self.key(n, here) == key for n, here in slots):
            slots = [(node, env)]  # asked for outside of the register tile
        Reduction(self, slots, roots, outer, place).emit()
        return self.memo[key]

    def is_open(self, node: Node, env: Env) -> bool:
        """Whether every serial loop on which ``node`` depends is open in ``env``."""
        return all(
            a.name in env.axis or a.kind in (UNROLLED | LANE) for root in node.free for a in self.by_root[root]
        )


def multiply_add(x: UOp, y: UOp, other: UOp) -> UOp:
    """``x * y + other``, rounded once."""
    lanes = max(x.dtype.count, y.dtype.count, other.dtype.count)
    return splat(x, lanes).alu(Ops.MULACC, splat(y, lanes), splat(other, lanes))


def emit(nest: Nest, target: Target) -> UOp:
    """The structured UOps of a loop nest.

    Raises:
      EmitError: the loops do not fit together (two vector loops in one value, a symbolic loop unrolled …).
    """
    return Emitter(nest, target).kernel()
