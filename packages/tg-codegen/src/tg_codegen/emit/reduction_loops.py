"""The loops of a reduction: accumulators, what updates them, and how partial results are put together.

A long sum of floats is added up in blocks, each from 0 on: an accumulator that has grown loses of every small term what
is below half a unit in its last place. The error then grows with the length of a block and with the number of blocks,
not with that of all terms (Higham, "The accuracy of floating point summation", 1993), and the total is touched so
seldom that it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops, identity
from tg_shape import Variable, ceildiv, even_part, sint, smin, upper

from ..ir.errors import EmitError
from ..ir.scalar import constant_lanes
from ..ir.uop import UOp, UOps, const
from ..nest.env import Env
from ..nest.nest import Axis, Node, is_float_reduce
from ..nest.spec import ITEMS, Kind
from ..nest.trim import bounding, masks_of, needed, trimmed
from .combine import combine, gathered, tree
from .contraction import contraction
from .index import below
from .known import Key
from .site import Site
from .space import fixed
from .spans import Span
from .whole import Whole

LONG_SUM = 4096
"""Terms from which on a sum is added up in blocks: so many equal ones are off by 4 in 100,000 in float32."""
SUM_BLOCK = 512
"""Terms of a block of a long sum, and blocks of a larger one: enough to hide the load and store of the total."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One accumulator: which reduction, at which values of its free roots, in which spread copy.

    Attributes:
      node: the reduction.
      env: the values, a single one for each lane of a loop of kind ROWS.
      spread: the copy.
      key: under what the result is remembered; that of one lane is a lane of it.
      lane: which lane, where the result has several accumulators' lanes.
    """

    node: Node
    env: Env
    spread: tuple[tuple[str, int], ...]
    key: Key
    lane: int


class ReductionLoops:
    """Emits the loops of reductions that run over the same roots in the same region."""

    def __init__(
        self, whole: Whole, wanted: list[tuple[Node, Env]], roots: tuple[Variable, ...], outer: Env, site: Site
    ) -> None:
        self.whole, self.roots, self.site = whole, roots, site
        axes = [a for a in whole.nest.axes if a.root in roots and a.name not in outer.axis]
        self.serial = [a for a in axes if a.kind is Kind.REDUCE]
        self.unrolled = [a for a in axes if a.kind is Kind.UNROLL]
        self.spread = [a for a in axes if a.kind is Kind.SPREAD]
        self.vectors = [a for a in axes if a.kind is Kind.LANES]
        self.group = [a for a in axes if a.kind is Kind.GROUP]
        self.contract = next((a for a in axes if a.kind is Kind.CONTRACT), None)
        self.depth = [a for a in axes if a.kind is Kind.DEPTH]
        if self.depth and (self.vectors or [a.root for a in self.depth] != [self.contract and self.contract.root]):
            raise EmitError(f"{self.depth[0].name}: there is no loop of kind CONTRACT whose terms it repeats")
        env = outer
        for axis in self.group:
            env = env.open(axis.name, axis.root, axis.stride, whole.launch.counters[axis.name])
        self.env = env
        nodes = {node for node, _ in wanted}
        self.rounds = not whole.target.strict and any(is_float_reduce(node) for node in nodes)
        found = bounding(whole.nest, next(iter(nodes))) if len(nodes) == 1 else {}
        self.masks = {axis: masks_of(axis, found) for axis in self.serial if axis in found.values()}
        self.needed = {node: needed(node) for node in nodes}
        copies = list(product(*(range(fixed(a)) for a in self.spread)))
        self.accumulators = [
            Accumulator(node, here, tuple((a.name, v) for a, v in zip(self.spread, values, strict=True)), key, lane)
            for node, wide in wanted for key in (whole.known.key(node, wide),)
            for lane, here in enumerate(self.rows(node, wide)) for values in copies
        ]

    def rows(self, node: Node, env: Env) -> list[Env]:
        """``env`` with every lane of a loop of kind ROWS by itself, where the reduction has lanes of its own."""
        lane = self.whole.symbols.lane_of(*(env.root[root] for root in node.free))
        if lane is None or not self.vectors or not any(
                axis.kind is Kind.ROWS and env.axis.get(axis.name) is lane for axis in self.whole.nest.axes):
            return [env]
        return [env.at(lane, number) for number in range(self.whole.symbols.lanes[lane])]

    def has_lane(self, acc: Accumulator) -> bool:
        """Whether the reduction's results are themselves lanes of a vector."""
        return self.whole.symbols.lane_of(*(acc.env.root[root] for root in acc.node.free)) is not None

    def emit(self) -> None:
        """Emits the loops, and records each reduction's result."""
        known = self.whole.known
        final = self.run([self.initial(acc) for acc in self.accumulators])
        results: dict[Key, tuple[Accumulator, dict[int, list[UOp]]]] = {}
        for acc, value in zip(self.accumulators, final, strict=True):
            results.setdefault(acc.key, (acc, {}))[1].setdefault(acc.lane, []).append(value)
        for key, (acc, lanes) in results.items():
            totals = [combine(acc.node.arg[0], parts) for parts in lanes.values()]
            total = totals[0]
            if self.vectors and not self.has_lane(acc):
                total = gathered(acc.node.arg[0], totals)
            if self.group:
                total = self.across_group(acc.node, total)
            known.values[key] = total
            known.reduced.setdefault(self.site.region, set()).add(acc.node)

    def run(self, initial: list[UOp]) -> list[UOp]:
        """Emits the loops; ``initial`` are the accumulators' values before, the result those after."""
        return self.loops(self.serial, Site(self.site.region, self.env, None, self.site), initial)

    def initial(self, acc: Accumulator) -> UOp:
        """The identity, with the accumulator's lanes."""
        dtype = acc.node.dtype
        lane = self.whole.symbols.lane_of(*(acc.env.root[root] for root in acc.node.free))
        if lane is not None:
            lanes = self.whole.symbols.lanes[lane]
        else:
            lanes = fixed(self.vectors[0]) if self.vectors else 1
        return const(identity(acc.node.arg[0], dtype), dtype if lanes == 1 else dtype.vec(lanes))

    def loops(self, axes: Sequence[Axis], site: Site, carried: list[UOp]) -> list[UOp]:
        """Runs the serial loops around the body; ``carried`` are the accumulators' values before, the result after."""
        if not axes:
            return [self.body(acc, value, site) for acc, value in zip(self.accumulators, carried, strict=True)]
        axis, rest = axes[0], axes[1:]
        for span in self.spans(axis, site.env):
            if isinstance(span.count, int) and span.count == 1:
                # where the span has a condition, the guards of the body decide
                env = site.env.open(axis.name, axis.root, axis.stride, span.at, span.exact)
                carried = self.loops(rest, Site(site.region, env, axis.name, site), carried)
            else:
                carried = self.iterations(axis, rest, span, site, carried)
        return carried

    def iterations(
        self, axis: Axis, rest: Sequence[Axis], span: Span, site: Site, carried: list[UOp]
    ) -> list[UOp]:
        """Runs one copy of a serial loop; in blocks where a sum is long, each of which is added up by itself."""
        whole = self.whole
        count = upper(span.count)
        size = block_length(count, self.terms_of(rest)) if self.rounds else count
        steps = span.count if size in (1, count) else ceildiv(span.count, size)
        region = whole.known.enter(site.region)
        variable = whole.loops.counter(axis, steps, region)
        outer = tuple(whole.symbols.leaves[v] for v in whole.symbols.counters_around(site.region))
        registers = [UOp(UOps.ACC, value.dtype, (value, *outer), next(whole.symbols.numbers)) for value in carried]
        inner = registers if size == count else [self.initial(acc) for acc in self.accumulators]
        if size in (1, count):
            env = site.env.open(axis.name, axis.root, axis.stride, variable * span.step + span.at, span.exact)
            whole.space.implied.update(env.of(mask) for mask in self.masks.get(axis, ()))
            if axis in self.masks:  # it runs over some of its iterations
                whole.space.implied.add(below(env.axis[axis.name], axis.extent))
            after = self.loops(rest, Site(region, env, axis.name, site), inner)
        else:
            first = variable * size
            part = replace(span, at=first * span.step + span.at, count=smin(size, span.count - first))
            after = self.iterations(axis, rest, part, Site(region, site.env, None, site), inner)
        if size != count:
            after = [
                total.alu(acc.node.arg[0], value)
                for acc, total, value in zip(self.accumulators, registers, after, strict=True)]
        whole.known.leave(region)
        region.effects.extend(UOp(UOps.ASSIGN, dtypes.void, pair) for pair in zip(registers, after, strict=True))
        loop = UOp(UOps.LOOP, dtypes.void, (whole.symbols.leaves[variable], *region.effects))
        site.region.effects.append(loop)
        return [UOp(UOps.READ, register.dtype, (register, loop)) for register in registers]

    def terms_of(self, axes: Sequence[Axis]) -> int:
        """How many terms one accumulator adds up in an iteration around some serial loops."""
        return prod(upper(axis.extent) for axis in (*axes, *self.unrolled, *self.depth))

    def spans(self, axis: Axis, env: Env) -> list[Span]:
        """The copies in which a serial loop is emitted; one loop, where masks trim it."""
        masks = self.masks.get(axis)
        if not masks or any(a.name not in env.axis for mask in masks for root in mask.variables()
                            if root is not axis.root for a in self.whole.space.by_root.get(root, ())):
            self.masks.pop(axis, None)
            return self.whole.spans.of(axis, env)
        left = trimmed(axis, masks, env)
        return [Span(left.first, left.count, None, step=left.step)]

    def body(self, acc: Accumulator, total: UOp, site: Site) -> UOp:
        """An accumulator after the innermost iteration."""
        whole = self.whole
        spread = dict(acc.spread)
        base = site.env
        for name, value in acc.env.axis.items():
            if name not in base.axis:
                axis = whole.nest.axis(name)
                base = base.open(name, axis.root, axis.stride, value)
        for axis in self.spread:
            base = base.open(axis.name, axis.root, axis.stride, spread[axis.name])
        wide = self.has_lane(acc)  # then the lanes of the reduction are terms, one by one
        if not wide:
            for axis in self.vectors:
                base = base.open(axis.name, axis.root, axis.stride, whole.loops.lane(axis))
        if self.contract is not None and not (wide and self.vectors):
            return self.contracted(acc, total, base, site)
        inner = [] if self.contract is None else [self.contract]
        unrolled = [*self.unrolled, *self.vectors, *inner] if wide else self.unrolled
        return self.terms(acc, total, base, unrolled, site)

    def contracted(self, acc: Accumulator, total: UOp, base: Env, site: Site) -> UOp:
        """An accumulator after the products that one instruction adds, for each unrolled iteration."""
        assert self.contract is not None
        for values in product(*(range(fixed(a)) for a in self.unrolled)):
            env = base
            for axis, value in zip(self.unrolled, values, strict=True):
                env = env.open(axis.name, axis.root, axis.stride, value)
            found = contraction(self.whole, acc.node, self.contract, env, self.roots, site)
            if found is None and self.depth:
                raise EmitError(f"{self.depth[0].name}: no matrix instruction of this target has rows and such a depth")
            if found is None:
                total = self.terms(acc, total, env, [self.contract], site)
            else:
                total = UOp(UOps.MATRIX, total.dtype, (total, found.a, found.b), found.instruction)
        return total

    def terms(self, acc: Accumulator, total: UOp, base: Env, unrolled: Sequence[Axis], site: Site) -> UOp:
        """An accumulator after the terms of unrolled loops, one by one."""
        whole, node = self.whole, acc.node
        for values in product(*(range(fixed(a)) for a in unrolled)):
            env = base
            for axis, value in zip(unrolled, values, strict=True):
                env = env.open(axis.name, axis.root, axis.stride, value)
            guard = whole.space.guard(env, self.roots)
            if isinstance(guard, int) and not guard:
                continue
            if any(env.of(condition) == 0 for condition in self.needed[node]):
                continue
            term = known_choice(whole.value(node.src[0], env, site)).broadcast(total.dtype.count)
            if term.is_const and term.arg == identity(node.arg[0], node.dtype):
                continue  # so that results with the same terms before it are the same value
            if not isinstance(guard, int):
                neutral = const(identity(node.arg[0], node.dtype), term.dtype)
                term = whole.symbols.build.truth(guard).broadcast(total.dtype.count).alu(Ops.WHERE, term, neutral)
            total = self.accumulated(node.arg[0], total, term)
        return total

    def accumulated(self, op: Ops, total: UOp, term: UOp) -> UOp:
        """An accumulator after one more term; a product is added with one rounding, where that is an instruction.

        But for what :func:`~tg_codegen.emit.values.fusable` names, nowhere else is a multiplication fused with an
        addition: which ones are neighbours depends on what the scheduler puts into one kernel, and a value that two
        kernels compute must be the same in both.
        """
        target = self.whole.target
        if (op is Ops.ADD and term.op is Ops.MUL and dtypes.is_float(term.dtype)
                and target.fused_multiply_add and not target.strict):
            return term.src[0].alu(Ops.MULACC, term.src[1], total)
        return total.alu(op, term)

    def across_group(self, node: Node, partial: UOp) -> UOp:
        """Combines the partial results of a work-group's items through shared memory; every item has the result."""
        whole, region = self.whole, self.site.region
        width = prod(fixed(axis) for axis in self.group)
        item: sint = 0
        for axis in self.group:
            item = item * fixed(axis) + self.env.axis[axis.name]
        row: sint = 0
        rows = 1
        taken = {whole.launch.counters[axis.name] for axis in self.group}
        for axis in whole.nest.axes:  # items that have results of their own, or the same once more
            if axis.kind in ITEMS and (counter := whole.loops.parallel_counter(axis)) not in taken:
                taken.add(counter)
                row = row * fixed(axis) + counter
                rows *= fixed(axis)
        lanes = partial.dtype.count
        levels = tree(width)
        name, size = f"group{next(whole.symbols.numbers)}", rows * lanes * sum(levels)
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.LOCAL), (), (name, size))
        begin, total, at = 0, partial, item
        for number, (count, fewer) in enumerate(zip(levels, [*levels[1:], 1], strict=True)):
            gate = () if number == 0 else (whole.symbols.build.truth(below(item, count)),)
            place = (begin + row * count + at) * lanes
            region.effects.append(UOp(UOps.STORE, dtypes.void, (scratch, whole.access.address(place), total, *gate)))
            barrier = UOp(UOps.BARRIER, dtypes.void, (), next(whole.symbols.numbers))
            region.effects.append(barrier)
            ready = UOp(UOps.AFTER, scratch.dtype, (scratch, barrier))
            at = item % fewer  # neighbours read neighbours
            total = combine(node.arg[0], [
                UOp(UOps.LOAD, partial.dtype, (ready, whole.access.address((begin + row * count + at + part) * lanes)))
                for part in range(0, count, fewer)])
            begin += rows * count
        if region is not whole.top:  # the next iteration writes here again
            region.effects.append(UOp(UOps.BARRIER, dtypes.void, (), next(whole.symbols.numbers)))
        return total


def known_choice(value: UOp) -> UOp:
    """The operand that a WHERE selects, if its condition depends on counters alone whose values are known here."""
    lanes = constant_lanes(value.src[0]) if value.op is Ops.WHERE else None
    if lanes is None or len(set(lanes)) > 1:
        return value
    return value.src[1] if lanes[0] else value.src[2]


def block_length(count: int, terms: int) -> int:
    """How many of a serial loop's iterations are added up by themselves: all of them where the sum is not long.

    Args:
      count: the loop's iterations.
      terms: that one accumulator adds up in each.

    >>> [block_length(count, terms) for count, terms in ((1024, 1), (78125, 1), (10**7, 1), (512, 9), (82, 1026))]
    [1024, 512, 250000, 32, 1]
    """
    if count * terms <= LONG_SUM:
        return count
    size = max(1, SUM_BLOCK // terms)
    while count > size * SUM_BLOCK:
        size *= SUM_BLOCK
    return even_part(count, size) or size
