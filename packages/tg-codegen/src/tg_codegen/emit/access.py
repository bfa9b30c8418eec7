"""Memory access: index expressions become loads and stores, of vectors where lanes are neighbours in memory."""

from __future__ import annotations

from collections.abc import Iterator

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, coefficient, sint

from ..ir.errors import EmitError
from ..ir.uop import STREAM, UOp, UOps, const, shuffle, vectorize
from ..machine.memory import STRIDES
from ..machine.target import Target
from ..nest.nest import PLACE
from .index import IndexBuilder, index_dtype, ramp


def splat(x: UOp, lanes: int) -> UOp:
    """``x`` with ``lanes`` lanes."""
    return x.broadcast(lanes)


class Access:
    """Builds addresses, loads and stores.

    Attributes:
      index: dtype of loop counters.
      leaves: the UOp of each open variable.
      lanes: variables that stand for all lanes of a vector at once, with the number of lanes.
      streams: the buffers that are written past the caches.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.index = dtypes.int64 if target.kind == "cpu" else dtypes.int32
        self.leaves: dict[Expr, UOp] = {}
        self.build = IndexBuilder(self.leaves)
        self.lanes: dict[Variable, int] = {}
        self.streams: frozenset[UOp] = frozenset()

    @staticmethod
    def at(expr: sint, swap: dict[Expr, sint]) -> sint:
        """``expr`` with variables replaced."""
        return expr if isinstance(expr, int) else expr.substitute(swap)

    def several(self, name: str, count: int) -> Variable:
        """A variable that stands for ``count`` values at once, of what ``name`` says: lanes, copies, elements."""
        variable = Variable(f"{name}{count}", 0, count - 1)
        if variable not in self.lanes:
            self.lanes[variable] = count
            self.leaves[variable] = ramp(count, self.index)
        return variable

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

    def address(self, index: sint) -> UOp:
        """An element index as a UOp."""
        return self.build.value(index, dtypes.int64 if self.index is dtypes.int64 else index_dtype(index))

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
        if step is not None and 1 < step <= STRIDES and lanes >= 4 and self.lane_of(valid) is None:
            return self.spread(pointer, dtype, self.at(index, {lane: 0}), valid, step, lanes)
        return self.assemble(pointer, dtype, [
            (self.at(index, {lane: n}), self.at(valid, {lane: n})) for n in range(lanes)])

    def spread(self, pointer: UOp, dtype: DType, index: sint, valid: sint, step: int, lanes: int) -> UOp:
        """Elements ``step`` apart: taken out of the vectors in which they lie, nothing beyond the last being read."""
        offsets = [step * element for element in range(lanes)]
        found: UOp | None = None
        for number in range(step):
            start = min(number * lanes, offsets[-1] + 1 - lanes)
            here = [min(offset // lanes, step - 1) == number for offset in offsets]
            vector = self.read(pointer, dtype.vec(lanes), index + start, valid)
            if found is None:
                found = vector.gep(*(offset if h else 0 for offset, h in zip(offsets, here, strict=True)))
            else:
                found = shuffle(found, vector, *(
                    lanes + offset - start if h else element
                    for element, (offset, h) in enumerate(zip(offsets, here, strict=True))))
        assert found is not None
        return found

    def assemble(self, pointer: UOp, dtype: DType, places: list[tuple[sint, sint]]) -> UOp:
        """A vector from scattered elements, neighbours in memory being read together."""
        lanes: list[UOp] = []
        while len(lanes) < len(places):
            start = len(lanes)
            index, valid = places[start]
            run = 1
            for near, wanted in places[start + 1 :]:
                if near - index != run or wanted is not valid:
                    break
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
        """One LOAD; none of what is certainly not there."""
        if isinstance(valid, int):
            if not valid:
                return const(0, dtype)
            return UOp(UOps.LOAD, dtype, (pointer, self.address(index)))
        gate = splat(self.build.truth(valid), dtype.count)
        return UOp(UOps.LOAD, dtype, (pointer, self.address(index), gate, const(0, dtype)))

    def gather(
        self, pointer: UOp, dtype: DType, index: UOp, place: sint, size: sint, together: bool,
        wanted: UOp | None = None,
    ) -> UOp:
        """Elements at computed indices, 0 unless ``0 <= index < size``.

        Args:
          pointer: the buffer.
          dtype: its elements' dtype.
          index: the indices, one a lane.
          place: the address of an index, in terms of ``PLACE``.
          size: how many there are.
          together: whether the lanes are known to be neighbours.
          wanted: whether they are wanted at all; they are 0 where not.
        """
        lanes = index.dtype.count if wanted is None else max(index.dtype.count, wanted.dtype.count)
        index = splat(index, lanes)
        wide = index.cast(dtypes.int64)
        if index.dtype.scalar() is dtypes.int32 and isinstance(size, int) and size < 1 << 31:
            inside = within(index, const(size, dtypes.int32))
        else:
            inside = within(wide, self.build.value(size, dtypes.int64))
        if wanted is not None:
            inside = inside.alu(Ops.AND, splat(wanted, lanes))
        if lanes == 1 or (together and place is PLACE):
            return self.gather_one(pointer, dtype, place, wide.gep(0) if lanes > 1 else wide, inside, lanes)
        return vectorize(*(
            self.gather_one(pointer, dtype, place, wide.gep(n), inside.gep(n), 1) for n in range(lanes)))

    def gather_one(self, pointer: UOp, dtype: DType, place: sint, index: UOp, inside: UOp, lanes: int) -> UOp:
        """``lanes`` consecutive elements from a computed index."""
        address = index
        if place is not PLACE:
            address = IndexBuilder({**self.leaves, PLACE: index}).value(place, dtypes.int64)
        wide = dtype if lanes == 1 else dtype.vec(lanes)
        return UOp(UOps.LOAD, wide, (pointer, address, inside, const(0, wide)))

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
        past = pointer in self.streams and value.dtype.count > 1 and not gate
        return UOp(UOps.STORE, dtypes.void, (pointer, self.address(index), value, *gate), STREAM if past else None)


def within(index: UOp, size: UOp) -> UOp:
    """Whether 0 <= index < size, lane by lane."""
    lanes = index.dtype.count
    low = splat(const(-1, index.dtype.scalar()), lanes).alu(Ops.CMPLT, index)
    return low.alu(Ops.AND, index.alu(Ops.CMPLT, splat(size, lanes)))
