"""Emission: a loop nest becomes structured UOps.

Output loops are opened one inside the other; in the innermost, every store asks for its value. Values are computed on
demand and remembered under the index expressions that they depend on. A reduction, when first asked for, puts its loops
into the innermost block that its own free roots need, which may lie outside of the loop that asks: so a row's maximum
is computed once, before the loop over the row. All register copies of a reduction (its tile) share one loop, and so do
reductions that run over the same roots.

A loop whose last iteration is partial is emitted twice: the full iterations, in which bounds prove every guard true, and
the last one, where guards are constants or masks over lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from math import prod

from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import Ops, identity
from tg_shape import Expr, Variable, coefficient, sint

from .index import IndexBuilder, index_dtype, ramp
from .nest import LANE, PLACE, UNROLLED, Axis, Kind, Nest, Node, NodeOp, Stage, Store, is_alu
from .scope import Block, Context, Env
from .target import Target
from .uop import UOp, UOps, const, vectorize

CORE = "core_id"
MAX_SCRATCH_BYTES = 1 << 20


class EmitError(ValueError):
    """A nest cannot be emitted; the message names the loop or node."""


@dataclass(frozen=True, slots=True)
class Span:
    """One emitted copy of a loop: ``count`` iterations from 0, or, where ``count`` is None, the single value ``at``."""

    count: sint | None
    at: sint
    exact: bool | None
    condition: sint = 1
    last: bool = False


def below(a: sint, b: sint) -> sint:
    """``a < b`` as a symbolic truth value."""
    difference = a - b
    return int(difference < 0) if isinstance(difference, int) else difference.lt(0)


def splat(x: UOp, lanes: int) -> UOp:
    """``x`` with ``lanes`` lanes."""
    return x.broadcast(lanes)


class Emitter:
    """Emits one nest for one target."""

    def __init__(self, nest: Nest, target: Target) -> None:
        self.nest, self.target = nest, target
        self.index = dtypes.int64 if target.kind == "cpu" else dtypes.int32
        self.leaves: dict[Expr, UOp] = {}
        self.build = IndexBuilder(self.leaves)
        self.lanes: dict[Variable, int] = {}
        self.owner: dict[Variable, Block] = {}
        self.memo: dict[tuple[object, ...], UOp] = {}
        self.numbers = count()
        self.orders: dict[Node, list[Node]] = {}
        self.free: dict[Node, tuple[Variable, ...]] = {}
        self.staged: dict[Node, Stage] = {s.node: s for s in nest.stages}
        self.fills: dict[tuple[object, ...], tuple[UOp, dict[str, int]]] = {}
        self.group: dict[str, Variable] = {}
        self.params = [
            UOp(UOps.PARAM, b.dtype.ptr(b.size), (), slot) for slot, b in enumerate(nest.buffers)
        ]
        self.reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
        self.by_root = {root: nest.of_root(root) for root in nest.roots}
        self.top = Block()

    # the kernel

    def kernel(self) -> UOp:
        """The structured form of the whole kernel."""
        for variable in sorted(self.kernel_variables(), key=lambda v: v.name):
            self.leaves[variable] = UOp(UOps.VAR, dtypes.int32, (), variable)
        exact = frozenset(root for root in self.nest.roots if self.divides(root))
        context = Context(self.top, Env(dict.fromkeys(self.nest.roots, 0), {}, exact))
        env = context.env
        specials: dict[str, int] = {"gidx": 0, "lidx": 0}
        parallel: list[Axis] = []
        for axis in self.nest.axes:
            if axis.kind in (Kind.GLOBAL, Kind.LOCAL):
                parallel.append(axis)
                env = env.open(axis.name, axis.root, axis.stride, self.parallel(axis, specials))
        for axis in self.nest.axes:
            if axis.kind is Kind.GROUP:
                parallel.append(axis)
                self.group[axis.name] = self.parallel(axis, specials)
        context = Context(self.top, env)
        serial = [a for a in self.nest.axes if a.kind in (Kind.LOOP, Kind.THREAD)]
        self.outputs(list(self.nest.stores), serial, context, parallel)
        return UOp(UOps.SINK, dtypes.void, tuple(self.top.effects))

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

    def parallel(self, axis: Axis, specials: dict[str, int]) -> Variable:
        """The next free work-group or work-item index, for ``axis``."""
        prefix = "gidx" if axis.kind is Kind.GLOBAL else "lidx"
        number = specials[prefix]
        specials[prefix] += 1
        return self.special(f"{prefix}{number}", axis.extent)

    def special(self, name: str, extent: sint) -> Variable:
        """A parallel index, as a variable."""
        bound = extent if isinstance(extent, int) else extent.vmax
        variable = Variable(name, 0, max(bound - 1, 0))
        self.leaves[variable] = UOp(UOps.SPECIAL, dtypes.int32, (), (name, extent))
        self.owner[variable] = self.top
        return variable

    def divides(self, root: Variable) -> bool:
        """Whether the loops of a root cover its extent with nothing over."""
        axes = self.by_root[root]
        if not axes:
            return True
        if len(axes) == 1 and axes[0].stride == 1:
            return True
        whole = axes[0].extent * axes[0].stride
        return isinstance(whole, int) and whole == self.nest.roots[root].extent

    # loops

    def spans(self, axis: Axis, env: Env) -> list[Span]:
        """The copies in which a loop is emitted."""
        if axis.root in env.exact:
            return [Span(axis.extent, 0, None)]
        base = env.root[axis.root]
        if not isinstance(base, int):
            return [Span(axis.extent, 0, False)]
        left = self.nest.roots[axis.root].extent - base
        full = left // axis.stride
        rest = left - full * axis.stride
        spans = []
        if not (isinstance(full, int) and full == 0):
            spans.append(Span(full, 0, True))
        if not (isinstance(rest, int) and rest == 0):
            spans.append(Span(None, full, False, 1 if isinstance(rest, int) else self.positive(rest), last=True))
        return spans

    @staticmethod
    def positive(expr: Expr) -> sint:
        """``expr > 0`` as a symbolic truth value."""
        return below(0, expr)

    def run(self, axis: Axis, span: Span, context: Context, body: Callable[[Context], None]) -> None:
        """Emits one copy of a loop whose effects ``body`` fills in."""
        threaded = axis.kind is Kind.THREAD
        if span.count is None or span.count == 1:
            value = span.at if span.count is None else 0
            env = context.env.open(axis.name, axis.root, axis.stride, value, span.exact)
            condition = self.build.truth(span.condition)
            if threaded:
                last = self.build.value(self.core(), dtypes.int32).alu(Ops.CMPEQ, const(self.target.threads - 1, dtypes.int32))
                condition = last if condition.is_const else condition.alu(Ops.AND, last)
            if condition.is_const:
                body(Context(context.block, env, axis.name, context))
                return
            block = Block(context.block)
            body(Context(block, env, axis.name, context))
            context.block.effects.append(UOp(UOps.IF, dtypes.void, (condition, *block.effects)))
            return
        block = Block(context.block)
        variable = self.counter(axis, span.count, block)
        body(Context(block, context.env.open(axis.name, axis.root, axis.stride, variable, span.exact), axis.name, context))
        if block.effects:
            context.block.effects.append(UOp(UOps.LOOP, dtypes.void, (self.leaves[variable], *block.effects)))

    def core(self) -> Variable:
        """The CPU thread's number."""
        return self.special(CORE, self.target.threads)

    def counter(self, axis: Axis, extent: sint, block: Block) -> Variable:
        """A loop counter with its RANGE, divided among threads where the axis says so."""
        bound = extent if isinstance(extent, int) else extent.vmax
        name = f"{axis.name}_{next(self.numbers)}"
        variable = Variable(name, 0, max(bound - 1, 0))
        start: sint = 0
        end = extent
        if axis.kind is Kind.THREAD:
            core, threads = self.core(), self.target.threads
            start, end = core * extent // threads, (core + 1) * extent // threads
        ends = (self.build.value(start, self.index), self.build.value(end, self.index))
        self.leaves[variable] = UOp(UOps.RANGE, self.index, ends, name)
        self.owner[variable] = block
        return variable

    def outputs(self, stores: list[Store], axes: Sequence[Axis], context: Context, parallel: Sequence[Axis]) -> None:
        """Opens the output loops around the stores that need them."""
        if not axes:
            for store in stores:
                self.store(store, context, parallel)
            return
        axis, rest = axes[0], axes[1:]
        inside = [s for s in stores if axis.root in s.roots]
        outside = [s for s in stores if axis.root not in s.roots]
        for span in self.spans(axis, context.env) if inside else ():
            self.run(axis, span, context, lambda inner: self.outputs(inside, rest, inner, parallel))
        if outside:
            idle = [*parallel, axis] if axis.kind is Kind.THREAD else parallel
            self.outputs(outside, rest, context, idle)

    def replicas(self, env: Env, roots: Sequence[Variable]) -> Iterator[Env]:
        """``env`` with every unrolled loop of ``roots`` at each of its values, and vector loops at all lanes."""
        axes = [a for root in roots for a in self.by_root[root] if a.kind in UNROLLED and a.name not in env.axis]
        vectors = [a for root in roots for a in self.by_root[root] if a.kind in LANE and a.name not in env.axis]
        for values in product(*(range(self.fixed(a)) for a in axes)):
            here = env
            for axis, value in zip(axes, values, strict=True):
                here = here.open(axis.name, axis.root, axis.stride, value)
            for axis in vectors:
                here = here.open(axis.name, axis.root, axis.stride, self.lane(axis))
            if not any(self.beyond(here, root) for root in roots):
                yield here

    @staticmethod
    def fixed(axis: Axis) -> int:
        """The extent of an unrolled loop, which is a number."""
        if not isinstance(axis.extent, int):
            raise EmitError(f"the loop {axis.name} of symbolic extent {axis.extent} cannot be unrolled")
        return axis.extent

    def lane(self, axis: Axis) -> Variable:
        """A vector loop's counter: a variable that stands for all lanes at once."""
        lanes = self.fixed(axis)
        variable = Variable(f"{axis.name}_lane", 0, lanes - 1)
        if variable not in self.lanes:
            self.lanes[variable] = lanes
            self.leaves[variable] = ramp(lanes, self.index)
        return variable

    def beyond(self, env: Env, root: Variable) -> bool:
        """Whether a root's value is certainly outside its extent."""
        guard = self.guard(env, (root,))
        return isinstance(guard, int) and not guard

    def guard(self, env: Env, roots: Sequence[Variable]) -> sint:
        """Whether the values of ``roots`` lie inside their extents."""
        result: sint = 1
        for root in roots:
            if root not in env.exact:
                value, extent = env.root[root], self.nest.roots[root].extent
                inside = below(value, extent)
                result = result & inside
        return result

    # stores

    def store(self, store: Store, context: Context, parallel: Sequence[Axis]) -> None:
        """All register copies of one store."""
        idle: sint = 1
        for axis in parallel:
            if axis.root not in store.roots:
                idle = idle & self.counter_of(axis, context.env).eq(0)
        for env in self.replicas(context.env, store.roots):
            value = self.value(store.value, env, context)
            swap = env.root
            index = self.at(store.index, swap)
            valid = self.at(store.valid, swap) & self.guard(env, store.roots) & idle
            if isinstance(valid, int) and not valid:
                continue
            context.block.effects.extend(self.writes(self.params[store.slot], index, valid, value))

    def counter_of(self, axis: Axis, env: Env) -> Expr:
        """The number of the thread, work-group or work-item that ``axis`` runs across."""
        if axis.kind is Kind.THREAD:
            return self.core()
        counter = self.group[axis.name] if axis.kind is Kind.GROUP else env.axis[axis.name]
        assert isinstance(counter, Expr)
        return counter

    def writes(self, pointer: UOp, index: sint, valid: sint, value: UOp) -> Iterator[UOp]:
        """The STOREs of ``value``, one if its lanes are consecutive in memory."""
        lane = self.lane_of(index, valid)
        if lane is None:
            if value.dtype.count > 1:
                raise EmitError("a vector value for a scalar store")
            yield self.write(pointer, index, valid, value)
            return
        lanes = self.lanes[lane]
        value = splat(value, lanes)
        if self.step(index, lane, lanes) == 1:
            yield self.write(pointer, self.at(index, {lane: 0}), valid, value)
            return
        for number in range(lanes):
            here = self.at(valid, {lane: number})
            if not (isinstance(here, int) and not here):
                yield self.write(pointer, self.at(index, {lane: number}), here, value.gep(number))

    def write(self, pointer: UOp, index: sint, valid: sint, value: UOp) -> UOp:
        """One STORE."""
        gate = () if isinstance(valid, int) else (self.build.truth(valid),)
        return UOp(UOps.STORE, dtypes.void, (pointer, self.address(index), value, *gate))

    def address(self, index: sint) -> UOp:
        """An element index as a UOp."""
        return self.build.value(index, dtypes.int64 if self.index is dtypes.int64 else index_dtype(index))

    # values

    @staticmethod
    def at(expr: sint, swap: dict[Expr, sint]) -> sint:
        """``expr`` with variables replaced."""
        return expr if isinstance(expr, int) else expr.substitute(swap)

    def lane_of(self, *exprs: sint) -> Variable | None:
        """The lane variable on which expressions depend."""
        found = {v for e in exprs if isinstance(e, Expr) for v in e.variables() if v in self.lanes}
        if len(found) > 1:
            raise EmitError(f"a value depends on two vector loops: {', '.join(v.name for v in found)}")
        return next(iter(found), None)

    def step(self, index: sint, lane: Variable, lanes: int) -> int | None:
        """By how much ``index`` grows from lane to lane; None if unevenly."""
        if isinstance(index, int):
            return 0
        step = coefficient(index, lane)
        if step is not None:
            return step
        first = self.at(index, {lane: 0})
        difference = self.at(index, {lane: 1}) - first
        if not isinstance(difference, int):
            return None
        even = all(self.at(index, {lane: n}) - first == difference * n for n in range(2, lanes))
        return difference if even else None

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

    def key(self, node: Node, env: Env) -> tuple[object, ...]:
        """Under what a value is remembered: the node and all that it depends on here."""
        free = self.free.get(node)
        if free is None:
            free = self.free[node] = tuple(sorted(node.free, key=lambda v: v.name))
        return (node, *(env.root[root] for root in free))

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
            swap = env.root
            slot, index, valid = node.arg
            valid = self.at(valid, swap) & self.guard(env, tuple(node.free))
            return self.load(self.params[slot], node.dtype, self.at(index, swap), valid)
        src = [self.memo[self.key(s, env)] for s in node.src]
        if op is NodeOp.GATHER:
            return self.gather(node, src[0], env)
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

    # loads

    def load(self, pointer: UOp, dtype: DType, index: sint, valid: sint) -> UOp:
        """The element at ``index``, or all lanes of it; 0 where not valid."""
        if isinstance(valid, int) and not valid:
            return const(0, dtype)
        lane = self.lane_of(index, valid)
        if lane is None:
            return self.read(pointer, dtype, index, valid)
        lanes = self.lanes[lane]
        step = self.step(index, lane, lanes)
        if step == 1:
            return self.read(pointer, dtype.vec(lanes), self.at(index, {lane: 0}), valid)
        if step == 0 and isinstance(valid, int):
            return self.read(pointer, dtype, index, valid)
        if step == -1 and isinstance(valid, int):
            whole = self.read(pointer, dtype.vec(lanes), self.at(index, {lane: lanes - 1}), valid)
            return whole.gep(*reversed(range(lanes)))
        return self.assemble(pointer, dtype, [
            (self.at(index, {lane: n}), self.at(valid, {lane: n})) for n in range(lanes)])

    def assemble(self, pointer: UOp, dtype: DType, places: list[tuple[sint, sint]]) -> UOp:
        """A vector from scattered elements, neighbours in memory being read together."""
        lanes: list[UOp] = []
        while len(lanes) < len(places):
            start = len(lanes)
            index, valid = places[start]
            run = 1
            while start + run < len(places) and places[start + run][0] - index == run and places[start + run][1] is valid:
                run += 1
            while run & (run - 1):
                run &= run - 1
            if isinstance(valid, int) and not valid:
                lanes.append(const(0, dtype))
            elif run == 1:
                lanes.append(self.read(pointer, dtype, index, valid))
            else:
                part = self.read(pointer, dtype.vec(run), index, valid)
                lanes.extend(part.gep(n) for n in range(run))
        return vectorize(*lanes)

    def read(self, pointer: UOp, dtype: DType, index: sint, valid: sint) -> UOp:
        """One LOAD."""
        if isinstance(valid, int):
            return UOp(UOps.LOAD, dtype, (pointer, self.address(index)))
        gate = splat(self.build.truth(valid), dtype.count)
        return UOp(UOps.LOAD, dtype, (pointer, self.address(index), gate, const(0, dtype)))

    def gather(self, node: Node, index: UOp, env: Env) -> UOp:
        """Elements at computed indices, read together where lanes are known to be neighbours."""
        slot, place, size = node.arg
        wide = index.cast(dtypes.int64)
        inside = elementwise_range(wide, self.build.value(size, dtypes.int64))
        pointer = self.params[slot]
        lanes = index.dtype.count
        if lanes == 1:
            return self.gather_one(pointer, node.dtype, place, wide, inside, 1)
        lane = self.lane_of(*(env.root[root] for root in node.free))
        if lane is not None and place == PLACE and self.walk(node.src[0], env, lane) == 1:
            return self.gather_one(pointer, node.dtype, place, wide.gep(0), inside, lanes)
        return vectorize(*(
            self.gather_one(pointer, node.dtype, place, wide.gep(n), inside.gep(n), 1) for n in range(lanes)))

    def gather_one(self, pointer: UOp, dtype: DType, place: sint, index: UOp, inside: UOp, lanes: int) -> UOp:
        """``lanes`` consecutive elements from a computed index."""
        address = index
        if place is not PLACE:
            address = IndexBuilder({**self.leaves, PLACE: index}).value(place, dtypes.int64)
        wide = dtype if lanes == 1 else dtype.vec(lanes)
        return UOp(UOps.LOAD, wide, (pointer, address, inside, const(0, wide)))

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

    # reductions

    def home(self, node: Node, env: Env) -> Block:
        """The innermost block that opens something on which ``node`` depends."""
        home = self.top
        for root in node.free:
            value = env.root[root]
            for variable in value.variables() if isinstance(value, Expr) else ():
                block = self.owner.get(variable)
                if block is not None and block.depth > home.depth:
                    home = block
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
        home = self.home(node, outer)
        roots = node.arg[1]
        members = [
            n for n in self.reductions
            if n is node or (n.arg[1] == roots and n.level == node.level and n not in self.staged
                             and self.is_open(n, outer) and self.home(n, outer) is home)
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

    # stages

    def read_stage(self, stage: Stage, env: Env, context: Context) -> UOp:
        """An element of a staged node; the stage is filled first if this is the first use inside its loop."""
        where = context.at(stage.axis)
        key = (stage.node, where.block, where.env.axis.get(stage.axis or ""))
        known = self.fills.get(key)
        if known is None:
            known = self.fills[key] = self.fill(stage, where)
        pointer, strides = known
        index: sint = 0
        for name, stride in strides.items():
            index = index + env.axis[name] * stride
        return self.load(pointer, stage.node.dtype, index, 1)

    def fill(self, stage: Stage, where: Context) -> tuple[UOp, dict[str, int]]:
        """Emits the loops that fill a stage. Returns the filled scratch and the stride of each loop in it."""
        node = stage.node
        inner = [a for a in self.nest.axes if a.root in node.free and a.name not in where.env.axis]
        inner.sort(key=lambda a: (a.kind in LANE, a.kind in UNROLLED and a.kind is Kind.UPCAST))
        strides: dict[str, int] = {}
        size = 1
        for axis in reversed(inner):
            strides[axis.name] = size
            size *= self.fixed(axis)
        if size * node.dtype.itemsize > MAX_SCRATCH_BYTES:
            raise EmitError(f"a stage of {size} x {node.dtype.name} is larger than {MAX_SCRATCH_BYTES} bytes")
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.REG), (), (f"stage{next(self.numbers)}", size))

        def level(axes: Sequence[Axis], context: Context) -> None:
            if not axes:
                index: sint = 0
                for name, stride in strides.items():
                    index = index + context.env.axis[name] * stride
                for here in self.order(node)[:-1]:
                    key = self.key(here, context.env)
                    if key not in self.memo:
                        self.memo[key] = self.compute(here, context.env, context)
                value = self.compute(node, context.env, context, fill=True)
                context.block.effects.extend(self.writes(scratch, index, 1, value))
                return
            axis, rest = axes[0], axes[1:]
            if axis.kind in LANE:
                env = context.env.open(axis.name, axis.root, axis.stride, self.lane(axis))
                level(rest, Context(context.block, env, axis.name, context))
            elif axis.kind is Kind.UPCAST:
                for number in range(self.fixed(axis)):
                    env = context.env.open(axis.name, axis.root, axis.stride, number)
                    level(rest, Context(context.block, env, axis.name, context))
            else:
                plain = Axis(axis.name, axis.root, axis.stride, axis.extent, Kind.LOOP)
                self.run(plain, Span(axis.extent, 0, None), context, lambda inner: level(rest, inner))

        before = len(where.block.effects)
        level(inner, where)
        effects = tuple(where.block.effects[before:])
        return UOp(UOps.AFTER, scratch.dtype, (scratch, *effects)), strides


def elementwise_range(index: UOp, size: UOp) -> UOp:
    """Whether 0 <= index < size, lane by lane."""
    lanes = index.dtype.count
    low = splat(const(-1, index.dtype.scalar()), lanes).alu(Ops.CMPLT, index)
    return low.alu(Ops.AND, index.alu(Ops.CMPLT, splat(size, lanes)))


@dataclass(frozen=True, slots=True)
class Slot:
    """One accumulator: which reduction, at which values of its free roots, in which spread copy."""

    node: Node
    env: Env
    spread: tuple[tuple[str, int], ...]


class Reduction:
    """Emits the loops of reductions that run over the same roots in the same block."""

    def __init__(
        self, emitter: Emitter, wanted: list[tuple[Node, Env]], roots: tuple[Variable, ...], outer: Env, context: Context
    ) -> None:
        self.emitter, self.roots, self.context = emitter, roots, context
        axes = [a for a in emitter.nest.axes if a.root in roots]
        self.serial = [a for a in axes if a.kind is Kind.REDUCE]
        self.unrolled = [a for a in axes if a.kind is Kind.UNROLL]
        self.spread = [a for a in axes if a.kind is Kind.SPREAD]
        self.vectors = [a for a in axes if a.kind is Kind.LANES]
        self.group = [a for a in axes if a.kind is Kind.GROUP]
        env = Env({**outer.root, **dict.fromkeys(roots, 0)}, outer.axis, outer.exact)
        for axis in self.group:
            env = env.open(axis.name, axis.root, axis.stride, emitter.group[axis.name])
        self.env = env
        copies = list(product(*(range(emitter.fixed(a)) for a in self.spread)))
        self.slots = [
            Slot(node, here, tuple((a.name, v) for a, v in zip(self.spread, values, strict=True)))
            for node, here in wanted for values in copies
        ]

    def has_lane(self, slot: Slot) -> bool:
        """Whether the reduction's results are themselves lanes of a vector."""
        return self.emitter.lane_of(*(slot.env.root[root] for root in slot.node.free)) is not None

    def emit(self) -> None:
        """Emits the loops and remembers every result."""
        initial = [self.initial(slot) for slot in self.slots]
        context = Context(self.context.block, self.env, None, self.context)
        final = self.loops(self.serial, context, initial)
        results: dict[tuple[object, ...], tuple[Slot, list[UOp]]] = {}
        for slot, value in zip(self.slots, final, strict=True):
            results.setdefault(self.emitter.key(slot.node, slot.env), (slot, []))[1].append(value)
        for key, (slot, parts) in results.items():
            total = combine(slot.node.arg[0], parts)
            if self.vectors and not self.has_lane(slot):
                total = horizontal(slot.node.arg[0], total)
            if self.group:
                total = self.across_group(slot.node, total)
            self.emitter.memo[key] = total

    def initial(self, slot: Slot) -> UOp:
        """The identity, with the accumulator's lanes."""
        dtype = slot.node.dtype
        lane = self.emitter.lane_of(*(slot.env.root[root] for root in slot.node.free))
        if lane is not None:
            lanes = self.emitter.lanes[lane]
        else:
            lanes = self.emitter.fixed(self.vectors[0]) if self.vectors else 1
        return const(identity(slot.node.arg[0], dtype), dtype if lanes == 1 else dtype.vec(lanes))

    def loops(self, axes: Sequence[Axis], context: Context, carried: list[UOp]) -> list[UOp]:
        """Runs the serial loops around the body; ``carried`` are the accumulators' values before, the result after."""
        if not axes:
            return [self.body(slot, value, context) for slot, value in zip(self.slots, carried, strict=True)]
        emitter = self.emitter
        axis, rest = axes[0], axes[1:]
        for span in emitter.spans(axis, context.env):
            if span.count is None and not isinstance(span.condition, int):
                # a symbolic remainder: the guards of the body decide
                env = context.env.open(axis.name, axis.root, axis.stride, span.at, False)
                carried = self.loops(rest, Context(context.block, env, axis.name, context), carried)
                continue
            if span.count is None or span.count == 1:
                value = span.at if span.count is None else 0
                env = context.env.open(axis.name, axis.root, axis.stride, value, span.exact)
                carried = self.loops(rest, Context(context.block, env, axis.name, context), carried)
                continue
            block = Block(context.block)
            variable = emitter.counter(axis, span.count, block)
            outer = tuple(
                emitter.leaves[v] for v in self.open_counters(context) if emitter.leaves[v].op is UOps.RANGE)
            accumulators = [
                UOp(UOps.ACC, value.dtype, (value, *outer), next(emitter.numbers)) for value in carried]
            env = context.env.open(axis.name, axis.root, axis.stride, variable, span.exact)
            after = self.loops(rest, Context(block, env, axis.name, context), accumulators)
            block.effects.extend(
                UOp(UOps.ASSIGN, dtypes.void, pair) for pair in zip(accumulators, after, strict=True))
            loop = UOp(UOps.LOOP, dtypes.void, (emitter.leaves[variable], *block.effects))
            context.block.effects.append(loop)
            carried = [UOp(UOps.READ, acc.dtype, (acc, loop)) for acc in accumulators]
        return carried

    def open_counters(self, context: Context) -> list[Variable]:
        """Counters of the loops around the block that is being filled."""
        blocks = set()
        block: Block | None = context.block
        while block is not None:
            blocks.add(block)
            block = block.parent
        return [v for v, owner in self.emitter.owner.items() if owner in blocks and v in self.emitter.leaves]

    def body(self, slot: Slot, total: UOp, context: Context) -> UOp:
        """An accumulator after the innermost iteration."""
        emitter, node = self.emitter, slot.node
        lane = not self.has_lane(slot)
        spread = dict(slot.spread)
        base = context.env
        for name, value in slot.env.axis.items():
            if name not in base.axis:
                axis = emitter.nest.axis(name)
                base = base.open(name, axis.root, axis.stride, value)
        for axis in self.spread:
            base = base.open(axis.name, axis.root, axis.stride, spread[axis.name])
        if lane:
            for axis in self.vectors:
                base = base.open(axis.name, axis.root, axis.stride, emitter.lane(axis))
        unrolled = self.unrolled if lane else [*self.unrolled, *self.vectors]
        for values in product(*(range(emitter.fixed(a)) for a in unrolled)):
            env = base
            for axis, value in zip(unrolled, values, strict=True):
                env = env.open(axis.name, axis.root, axis.stride, value)
            guard = emitter.guard(env, self.roots)
            if isinstance(guard, int) and not guard:
                continue
            term = splat(emitter.value(node.src[0], env, context), total.dtype.count)
            if not isinstance(guard, int):
                neutral = const(identity(node.arg[0], node.dtype), term.dtype)
                term = splat(emitter.build.truth(guard), total.dtype.count).alu(Ops.WHERE, term, neutral)
            total = total.alu(node.arg[0], term)
        return total

    def across_group(self, node: Node, partial: UOp) -> UOp:
        """Combines the partial results of a work-group's items through shared memory; every item has the result."""
        emitter, block = self.emitter, self.context.block
        width = prod(emitter.fixed(axis) for axis in self.group)
        item: sint = 0
        for axis in self.group:
            item = item * emitter.fixed(axis) + self.env.axis[axis.name]
        row: sint = 0
        rows = 1
        for axis in emitter.nest.axes:
            if axis.kind is Kind.LOCAL:
                row = row * emitter.fixed(axis) + self.env.axis[axis.name]
                rows *= emitter.fixed(axis)
        lanes = partial.dtype.count
        name, size = f"group{next(emitter.numbers)}", rows * width * lanes
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.LOCAL), (), (name, size))
        place = (row * width + item) * lanes
        block.effects.append(UOp(UOps.STORE, dtypes.void, (scratch, emitter.address(place), partial)))
        barrier = UOp(UOps.BARRIER, dtypes.void, (), next(emitter.numbers))
        block.effects.append(barrier)
        ready = UOp(UOps.AFTER, scratch.dtype, (scratch, barrier))
        first = row * width * lanes
        parts = [
            UOp(UOps.LOAD, partial.dtype, (ready, emitter.address(first + number * lanes))) for number in range(width)]
        total = combine(node.arg[0], parts)
        if block is not emitter.top:  # the next iteration writes here again
            block.effects.append(UOp(UOps.BARRIER, dtypes.void, (total,), next(emitter.numbers)))
        return total


def combine(op: Ops, parts: list[UOp]) -> UOp:
    """A balanced tree of ``op`` over ``parts``."""
    while len(parts) > 1:
        pairs = [parts[n].alu(op, parts[n + 1]) for n in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) & ~1 :]
    return parts[0]


def horizontal(op: Ops, vector: UOp) -> UOp:
    """The lanes of a vector combined, halves first."""
    while vector.dtype.count > 1:
        lanes = vector.dtype.count
        if lanes % 2:
            return combine(op, [vector.gep(n) for n in range(lanes)])
        half = lanes // 2
        vector = vector.gep(*range(half)).alu(op, vector.gep(*range(half, lanes)))
    return vector


def emit(nest: Nest, target: Target) -> UOp:
    """The structured UOps of a loop nest.

    Raises:
      EmitError: the loops do not fit together (two vector loops in one value, a symbolic loop unrolled …).
    """
    return Emitter(nest, target).kernel()
