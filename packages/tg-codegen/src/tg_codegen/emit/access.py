"""Memory access: index expressions become loads and stores, of vectors where lanes are neighbours in memory."""

from __future__ import annotations

from collections.abc import Iterator

from tg_dtype import DType, dtypes
from tg_shape import Variable, sint, substitute

from ..ir.errors import EmitError
from ..ir.uop import STREAM, UOp, UOps, const, shuffle, vectorize
from ..machine.memory import STRIDES
from .index import index_dtype, lane_step
from .symbols import Symbols
from .vectors import concatenated

WIDE = 64
"""Lanes of the widest vector register: bytes of AVX-512. Accesses of more lanes are made of runs that it holds."""


class Access:
    """Builds addresses, loads and stores.

    Attributes:
      streams: the buffers that are written past the caches.
    """

    def __init__(self, symbols: Symbols, streams: frozenset[UOp]) -> None:
        self.symbols, self.streams = symbols, streams

    def step(self, index: sint, lane: Variable) -> int | None:
        """By how much ``index`` grows from lane to lane; None if unevenly."""
        return lane_step(index, lane, self.symbols.lanes[lane])

    def address(self, index: sint) -> UOp:
        """An element index as a UOp."""
        wide = self.symbols.index is dtypes.int64
        return self.symbols.build.value(index, dtypes.int64 if wide else index_dtype(index))

    def load(self, pointer: UOp, dtype: DType, index: sint, valid: sint) -> UOp:
        """The element at ``index``, or all lanes of it; 0 where not valid."""
        if isinstance(valid, int) and not valid:
            return const(0, dtype)
        lane = self.symbols.lane_of(index, valid)
        if lane is None:
            return self.read(pointer, dtype, index, valid)
        lanes = self.symbols.lanes[lane]
        step = self.step(index, lane)
        if step == 1:
            return self.read(pointer, dtype.vec(lanes), substitute(index, {lane: 0}), valid)
        if step == 0 and isinstance(valid, int):
            return self.read(pointer, dtype, index, valid)
        if step == -1:
            turned = substitute(valid, {lane: lanes - 1 - lane})
            whole = self.read(pointer, dtype.vec(lanes), substitute(index, {lane: lanes - 1}), turned)
            return whole.gep(*reversed(range(lanes)))
        if step is not None and 1 < step <= STRIDES and lanes >= 4 and self.symbols.lane_of(valid) is None:
            return self.spread(pointer, dtype, substitute(index, {lane: 0}), valid, step, lanes)
        run = self.run(lane, index)
        if run > 1:
            parts = self.runs(lane, run, index, valid)
            return concatenated([self.load(pointer, dtype, at, holds).broadcast(run) for at, holds in parts])
        return self.assemble(pointer, dtype, [
            (substitute(index, {lane: n}), substitute(valid, {lane: n})) for n in range(lanes)])

    def run(self, lane: Variable, index: sint) -> int:
        """The longest runs of many lanes, as those of rows, along which an index grows evenly; 1 if there are none."""
        lanes = self.symbols.lanes[lane]
        runs = (lanes >> n for n in range(1, lanes.bit_length() - 1) if lanes > WIDE)
        return next((
            run for run in runs if lanes % run == 0
            and all(self.step(at, self.part(run)) in (0, 1) for at, in self.runs(lane, run, index))), 1)

    def part(self, run: int) -> Variable:
        """The variable that stands for the lanes of a run."""
        return self.symbols.several("run", run)

    def runs(self, lane: Variable, run: int, *exprs: sint) -> Iterator[tuple[sint, ...]]:
        """Expressions over the lanes of each run."""
        for first in range(0, self.symbols.lanes[lane], run):
            yield tuple(substitute(expr, {lane: self.part(run) + first}) for expr in exprs)

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
        """One LOAD, or zeros where the access is known to be invalid."""
        if isinstance(valid, int):
            if not valid:
                return const(0, dtype)
            return UOp(UOps.LOAD, dtype, (pointer, self.address(index)))
        gate = self.symbols.build.truth(valid).broadcast(dtype.count)
        return UOp(UOps.LOAD, dtype, (pointer, self.address(index), gate, const(0, dtype)))

    def writes(self, pointer: UOp, index: sint, valid: sint, value: UOp) -> Iterator[UOp]:
        """The STOREs of ``value``, one if its lanes are consecutive in memory."""
        lane = self.symbols.lane_of(index, valid)
        if lane is None:
            if value.dtype.count > 1:
                raise EmitError("a vector value for a scalar store")
            yield self.write(pointer, index, valid, value)
            return
        lanes = self.symbols.lanes[lane]
        value = value.broadcast(lanes)
        if self.step(index, lane) == 1:
            yield self.write(pointer, substitute(index, {lane: 0}), valid, value)
            return
        run = self.run(lane, index)
        if run > 1:
            for number, (at, holds) in enumerate(self.runs(lane, run, index, valid)):
                if not (isinstance(holds, int) and not holds):
                    yield from self.writes(pointer, at, holds, value.gep(*range(number * run, (number + 1) * run)))
            return
        for number in range(lanes):
            here = substitute(valid, {lane: number})
            if not (isinstance(here, int) and not here):
                yield self.write(pointer, substitute(index, {lane: number}), here, value.gep(number))

    def write(self, pointer: UOp, index: sint, valid: sint, value: UOp) -> UOp:
        """One STORE."""
        gate = () if isinstance(valid, int) else (self.symbols.build.truth(valid),)
        past = pointer in self.streams and value.dtype.count > 1 and not gate
        return UOp(UOps.STORE, dtypes.void, (pointer, self.address(index), value, *gate), STREAM if past else None)
