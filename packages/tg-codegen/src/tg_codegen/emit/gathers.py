"""Gathers: loads at indices that are computed, in vectors where those of the lanes are neighbours."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import sint, smin

from ..ir.uop import UOp, UOps, const, vectorize
from ..nest.env import Env
from ..nest.nest import GATHERED, Node
from .index import IndexBuilder, within
from .lane_steps import step_of
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
        return self.load(pointer, node.dtype, index, wanted, place, size, together)

    def prefetch(self, pointer: UOp, source: Node, by: tuple[str, int], env: Env, site: Site) -> None:
        """Tells the cache what a gather will read at the indices ``source``, so many iterations of a loop later."""
        nest = self.whole.nest
        if not nest.is_known_later(source):
            return
        axis = nest.axis(by[0])
        later = smin(env.root[axis.root] + by[1] * axis.stride, nest.roots[axis.root].extent - 1)
        index = self.whole.value(source, Env({**env.root, axis.root: later}, env.axis, env.exact), site)
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
        return vectorize(*(
            self.read(pointer, dtype, place, wide.gep(n), inside.gep(n), 1) for n in range(lanes)))

    def read(self, pointer: UOp, dtype: DType, place: sint, index: UOp, inside: UOp, lanes: int) -> UOp:
        """``lanes`` consecutive elements from a computed index."""
        address = index
        if place is not GATHERED:
            address = IndexBuilder({**self.whole.symbols.leaves, GATHERED: index}).value(place, dtypes.int64)
        wide = dtype if lanes == 1 else dtype.vec(lanes)
        return UOp(UOps.LOAD, wide, (pointer, address, inside, const(0, wide)))
