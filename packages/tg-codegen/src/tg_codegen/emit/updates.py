"""Updates: elements at computed places are loaded, combined with a value, and stored."""

from __future__ import annotations

from dataclasses import dataclass

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Variable, sint, smin, substitute, upper

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps, const
from ..nest.env import Env
from ..nest.nest import GATHERED, Store, Update
from .index import within
from .site import Site
from .whole import Whole


@dataclass(frozen=True, slots=True)
class UpdatedElements:
    """Elements that are updated together.

    Attributes:
      index: of the first one.
      count: how many, neighbours in memory.
      gate: whether there are such elements.
    """

    index: sint
    count: int
    gate: UOp


class Updates:
    """The updates of one nest."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.symbols = whole, whole.symbols
        self.indirect_ahead = whole.nest.indirect_ahead if whole.target.prefetches else None

    def emit(self, store: Store, alone: sint, env: Env, site: Site) -> None:
        """Updates what one copy of the loops reaches: an element, or a vector's lanes.

        Whatever was written in this region before may have been the same elements, so it comes before they are loaded.

        Args:
          store: the update.
          alone: the condition under which this work-item or thread stores.
          env: the values of its dimensions.
          site: where to.
        """
        update = store.update
        assert update is not None
        region = site.region
        place, inside = self.place(update, env, site)
        index, valid = self.whole.space.access(
            substitute(store.index, {GATHERED: place}), store.valid & alone, store.roots, env)
        value = self.whole.value(store.value, env, site)
        pointer = self.whole.params[store.slot]
        if self.indirect_ahead is not None:
            self.prefetch(pointer, store, update, self.indirect_ahead, env, site)
        for number, here in enumerate(self.elements(index, valid, inside)):
            there = pointer
            if region.effects:
                there = UOp(UOps.AFTER, pointer.dtype, (pointer, region.effects[-1]))
            dtype = store.value.dtype.vec(here.count)
            address, gate = self.whole.access.address(here.index), here.gate.broadcast(here.count)
            part = value.broadcast(here.count) if here.count > 1 or value.dtype.count == 1 else value.gep(number)
            if update.op is not None or update.found is not None:
                old = UOp(UOps.LOAD, dtype, (there, address, gate, const(0, dtype)))
                if update.found is not None:
                    self.keep(pointer, update.found, number, alone, old, store, env, site)
                if update.op is not None:
                    part = old.alu(update.op, part)
            region.effects.append(UOp(UOps.STORE, dtypes.void, (pointer, address, part, gate)))

    def prefetch(
        self, pointer: UOp, store: Store, update: Update, by: tuple[str, int], env: Env, site: Site
    ) -> None:
        """Tells the cache what will be updated so many iterations of a loop later."""
        nest = self.whole.nest
        axis = nest.axis(by[0])
        if axis.root not in update.place.free or not nest.is_known_later(update.place):
            return
        later = smin(env.root[axis.root] + by[1] * axis.stride, nest.roots[axis.root].extent - 1)
        there = env.moved(axis.root, later)
        place, _ = self.place(update, there, site)
        index = substitute(substitute(store.index, {GATHERED: place}), there.root)
        lane = self.symbols.lane_of(index)
        first = self.whole.access.address(index if lane is None else substitute(index, {lane: 0}))
        site.region.effects.append(UOp(UOps.PREFETCH, dtypes.void, (pointer, first)))

    def place(self, update: Update, env: Env, site: Site) -> tuple[Variable, UOp]:
        """A variable that stands for the computed place, and whether there is one."""
        index = self.whole.value(update.place, env, site)
        if index.dtype.count > 1:
            raise EmitError("lanes that update elements which are not known to be neighbours")
        wide = index.cast(dtypes.int64)
        if index.dtype is dtypes.int32 and upper(update.size) < 1 << 31 and isinstance(update.size, int):
            inside = within(index, const(update.size, dtypes.int32))
        else:
            inside = within(wide, self.symbols.build.value(update.size, dtypes.int64))
        variable = Variable(f"place_{next(self.symbols.numbers)}", 0, max(upper(update.size) - 1, 0))
        self.symbols.leaves[variable] = wide
        return variable, inside

    def elements(self, index: sint, valid: sint, inside: UOp) -> list[UpdatedElements]:
        """The elements at ``index``, its lanes together where they are neighbours."""
        lane = self.symbols.lane_of(index, valid)
        if lane is None:
            return [UpdatedElements(index, 1, self.gate(valid, inside))]
        lanes = self.symbols.lanes[lane]
        if self.whole.access.step(index, lane) == 1:
            return [UpdatedElements(substitute(index, {lane: 0}), lanes, self.gate(valid, inside.broadcast(lanes)))]
        each = [(substitute(index, {lane: n}), substitute(valid, {lane: n})) for n in range(lanes)]
        return [UpdatedElements(here, 1, self.gate(holds, inside)) for here, holds in each]

    def gate(self, valid: sint, inside: UOp) -> UOp:
        """Whether elements are updated."""
        if isinstance(valid, int):
            return inside if valid else const(False, dtypes.bool)
        truth = self.symbols.build.truth(valid)
        count = max(truth.dtype.count, inside.dtype.count)
        return truth.broadcast(count).alu(Ops.AND, inside.broadcast(count))

    def keep(
        self, pointer: UOp, kept: tuple[sint, sint], number: int, alone: sint, old: UOp, store: Store, env: Env,
        site: Site,
    ) -> None:  # fmt: skip
        """Stores what was found before an update."""
        index, valid = self.whole.space.access(kept[0], kept[1] & alone, store.roots, env)
        lane = self.symbols.lane_of(index, valid)
        if lane is not None and old.dtype.count == 1:
            index, valid = (substitute(part, {lane: number}) for part in (index, valid))
        if not (isinstance(valid, int) and not valid):
            site.region.effects.extend(self.whole.access.writes(pointer, index, valid, old))
