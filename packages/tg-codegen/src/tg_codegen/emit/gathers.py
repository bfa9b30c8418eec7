"""Gathers: loads at indices that are computed, in vectors where those of the lanes are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, bounds_of, sint, smin, substitute, topological

from ..ir.uop import UOp, UOps, const, vectorize
from ..nest.env import Env
from ..nest.nest import GATHERED, Node
from .index import IndexBuilder, lane_step, ramp, within
from .lane_steps import step_of
from .place_sums import PlaceSum, limits_of, place_sum
from .site import Site
from .whole import Whole


class Gathers:
    """Emits the gathers of one nest."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.indirect_ahead = whole.nest.indirect_ahead if whole.target.prefetches else None

    def value(self, node: Node, index: UOp, wanted: list[UOp], env: Env, site: Site) -> UOp:
        """A GATHER, whose index was computed, as were the conditions under which it is ``wanted``."""
        slot, place, size = node.arg
        symbols, pointer = self.whole.symbols, self.whole.params[slot]
        lane = symbols.lane_of(*(env.root[root] for root in node.free))
        together = (
            lane is not None and index.dtype.count > 1 and step_of(node.src[0], env, lane, symbols.lanes[lane]) == 1)
        if together and place is GATHERED and self.indirect_ahead is not None:
            self.prefetch(pointer, node.src[0], self.indirect_ahead, env, site)
        lanes = max(index.dtype.count, *(condition.dtype.count for condition in wanted), 1)
        if lane is not None and lanes > 1 and not together and self.whole.target.reads_unasked:
            near = self.near(node, wanted, env, site, lane)
            if near is not None:
                assert isinstance(size, int)
                return self.apart(pointer, node.dtype, *near, place, size, wanted)
        return self.load(pointer, node.dtype, index, wanted, place, size, together)

    def near(
        self, node: Node, wanted: list[UOp], env: Env, site: Site, lane: Variable
    ) -> tuple[UOp, UOp] | None:
        """Places that are inside of the buffer whether a gather's element is wanted or not, and its own where it is.

        Returns:
          what lanes have of their own, and what all have in common, to be added; None if conditions do not tell that.
        """
        size, limits = node.arg[2], limits_of(node.src[1:])
        found = place_sum(node.src[0], limits)
        if found is None or not isinstance(size, int):
            return None
        number = env.of(found.number)
        lanes = self.whole.symbols.lanes[lane]
        step = lane_step(number, lane, lanes)
        if step is None:
            return None
        common, own = substitute(number, {lane: 0}), PlaceSum(0, found.terms).bounds(limits)
        own = own[0] + min(0, step * (lanes - 1)), own[1] + max(0, step * (lanes - 1))
        first, last = bounds_of(common)
        if not 0 <= first + own[0] <= last + own[1] < size:
            return None
        dtype = dtypes.int32 if fits_int32(*own) else dtypes.int64
        total = ramp(lanes, dtype).alu(Ops.MUL, const(step, dtype).broadcast(lanes))
        for term, factor in found.terms:
            value = self.whole.value(term, env, site).broadcast(lanes)
            told = joined([wanted[n].broadcast(lanes) for n in sorted(limits[term].told_by)])
            value = told.alu(Ops.WHERE, value, const(limits[term].low, value.dtype)).cast(dtype)
            total = total.alu(Ops.ADD, value.alu(Ops.MUL, const(factor, dtype).broadcast(lanes)))
        return total, self.whole.symbols.build.value(common, dtypes.int64)

    def apart(
        self, pointer: UOp, dtype: DType, own: UOp, common: UOp, place: sint, size: int, wanted: Sequence[UOp]
    ) -> UOp:
        """Elements that lie apart, one a lane, of which each is read; 0 unless all conditions hold.

        Args:
          pointer: the buffer.
          dtype: its elements' dtype.
          own: what each lane has of its index for itself.
          common: what is added to that in all lanes.
          place: the address of an index, in terms of ``GATHERED``.
          size: how many indices there are.
          wanted: the conditions.
        """
        lanes = own.dtype.count
        inside = Variable(GATHERED.name, 0, size - 1)
        if place is not GATHERED and own.dtype.scalar() is dtypes.int32 and in_32_bits(
                address := substitute(place, {GATHERED: inside})):
            # What leads from an index to an address is computed for all lanes together, but for a constant that is
            # added: neighbours in memory have the rest in common.
            start = substitute(address, {inside: 0})
            start = start if isinstance(start, int) and in_32_bits(address - start) else 0
            indices = own.alu(Ops.ADD, common.cast(dtypes.int32).broadcast(lanes))
            leaves = {**self.whole.symbols.leaves, inside: indices}
            own = IndexBuilder(leaves).value(address - start, dtypes.int32).broadcast(lanes)
            common, place = const(start, dtypes.int64), GATHERED
        found = vectorize(*(
            self.read(pointer, dtype, place, own.gep(n).cast(dtypes.int64).alu(Ops.ADD, common), None, 1)
            for n in range(lanes)))
        if not wanted:
            return found
        holds = joined([condition.broadcast(lanes) for condition in wanted])
        return holds.alu(Ops.WHERE, found, const(0, found.dtype))

    def prefetch(self, pointer: UOp, source: Node, by: tuple[str, int], env: Env, site: Site) -> None:
        """Tells the cache what a gather will read at the indices ``source``, so many iterations of a loop later."""
        nest = self.whole.nest
        if not nest.is_known_later(source):
            return
        axis = nest.axis(by[0])
        later = smin(env.root[axis.root] + by[1] * axis.stride, nest.roots[axis.root].extent - 1)
        index = self.whole.value(source, env.moved(axis.root, later), site)
        site.region.effects.append(
            UOp(UOps.PREFETCH, dtypes.void, (pointer, index.gep(0).cast(dtypes.int64))))

    def load(
        self, pointer: UOp, dtype: DType, index: UOp, wanted: list[UOp], place: sint, size: sint, together: bool
    ) -> UOp:
        """Elements at computed indices, 0 unless ``0 <= index < size``.

        Args:
          pointer: the buffer.
          dtype: its elements' dtype.
          index: the indices, one a lane.
          wanted: conditions without any of which an element is 0.
          place: the address of an index, in terms of ``GATHERED``.
          size: how many there are.
          together: whether the lanes are known to be neighbours.
        """
        lanes = max(index.dtype.count, *(condition.dtype.count for condition in wanted), 1)
        index = index.broadcast(lanes)
        wide = index.cast(dtypes.int64)
        if index.dtype.scalar() is dtypes.int32 and isinstance(size, int) and size < 1 << 31:
            inside = within(index, const(size, dtypes.int32))
        else:
            inside = within(wide, self.whole.symbols.build.value(size, dtypes.int64))
        for condition in wanted:
            inside = inside.alu(Ops.AND, condition.broadcast(lanes))
        if lanes == 1 or (together and place is GATHERED):
            return self.read(pointer, dtype, place, wide.gep(0) if lanes > 1 else wide, inside, lanes)
        if not self.whole.target.reads_unasked or not isinstance(size, int) or size < 1:
            return vectorize(*(
                self.read(pointer, dtype, place, wide.gep(n), inside.gep(n), 1) for n in range(lanes)))
        # Where there is an element, it is read in place of those outside: a branch for each lane takes longer.
        near = inside.alu(Ops.WHERE, index, const(0, index.dtype))
        return self.apart(pointer, dtype, near, const(0, dtypes.int64), place, size, [inside])

    def read(self, pointer: UOp, dtype: DType, place: sint, index: UOp, inside: UOp | None, lanes: int) -> UOp:
        """``lanes`` consecutive elements from a computed index; 0 unless ``inside``, if that is to be asked."""
        address = index
        if place is not GATHERED:
            address = IndexBuilder({**self.whole.symbols.leaves, GATHERED: index}).value(place, dtypes.int64)
        wide = dtype if lanes == 1 else dtype.vec(lanes)
        gate = () if inside is None else (inside, const(0, wide))
        return UOp(UOps.LOAD, wide, (pointer, address, *gate))


def joined(conditions: Sequence[UOp]) -> UOp:
    """Whether all of some conditions hold."""
    return reduce(lambda a, b: a.alu(Ops.AND, b), conditions)


def in_32_bits(expr: sint) -> bool:
    """Whether an index, and all that it is computed from, is in 32 bits."""
    parts = topological(expr) if isinstance(expr, Expr) else ()
    numbers = [expr, *parts, *(arg for part in parts if not isinstance(part, Variable) for arg in part.args)]
    return all(fits_int32(*bounds_of(number)) for number in numbers)


def fits_int32(low: int, high: int) -> bool:
    """Whether all numbers between two are in 32 bits."""
    return dtypes.min(dtypes.int32) <= low <= high <= dtypes.max(dtypes.int32)
