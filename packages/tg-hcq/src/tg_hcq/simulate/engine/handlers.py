"""Handlers from semantics: what one instruction does in a lane, written once, becomes native code for a wave.

An author writes a function of a :class:`~tg_hcq.simulate.engine.ir.Builder` and typed values, which are strips of lanes
in a vector handler and single values in a scalar one; the template around it reads operands, obeys the execution mask
and writes results. Operands stand in a record in the order results, sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from . import state
from .emitter import STRIP, Emitter, Operand, Where
from .ir import I1, I32, I64, Type, Value

Semantics: TypeAlias = Callable[..., "Value | tuple[Value, ...]"]


class Rows:
    """Operands of a vector handler: offsets are read before the loop over strips, lanes in it."""

    def __init__(self, e: Emitter, operands: Sequence[Operand], first: int) -> None:
        self.e, self.operands = e, operands
        self.offsets = [e.slot(first + i) for i in range(len(operands))]

    def prepare(self) -> None:
        """What is the same in all strips."""
        e = self.e
        self.scalars: list[Value | None] = []
        self.is_row: list[Value | None] = []
        for i, operand in enumerate(self.operands):
            words = max(operand.type.bits // 32, 1) if operand.where is not Where.MASK else e.layout.lanes // 32
            e.check(self.offsets[i], words)
            one: Value | None = None
            row: Value | None = None
            if operand.where is Where.MASK:
                one = e.load(Type("i", e.layout.lanes), e.scalar_address(self.offsets[i]), 4)
            elif operand.where is not Where.VECTOR:
                wide = operand.type if operand.type.bits >= 32 else I32
                one = e.load(wide, e.scalar_address(self.offsets[i]), 4)
            if operand.where is Where.ANY:
                row = e.compare("sge", self.offsets[i], e.layout.rows)
                self.offsets[i] = e.select(row, self.offsets[i], e.layout.rows)
            self.scalars.append(one)
            self.is_row.append(row)

    def strip(self, index: int, lane: Value) -> Value:
        """The lanes of an operand in the strip that begins at ``lane``."""
        e, operand = self.e, self.operands[index]
        one = self.scalars[index]
        if operand.where is Where.MASK:
            assert one is not None
            return active_bits(e, one, lane)
        wide = operand.type.of(STRIP) if operand.type.bits >= 32 else I32.of(STRIP)
        found: Value | None = None
        if operand.where is not Where.SCALAR:
            low = e.load(I32.of(STRIP), e.at("%w", _place(e, self.offsets[index], lane)), 4)
            found = low
            if wide.bits == 64:
                high = e.load(I32.of(STRIP), e.at("%w", _place(e, self.offsets[index] + e.layout.row_bytes, lane)), 4)
                found = e.convert("zext", low, I64) | (e.convert("zext", high, I64) << 32)
            if found.type != wide:
                found = e.bits(found, wide)
        if one is not None:
            splat = e.value(wide, one)
            row = self.is_row[index]
            found = splat if found is None or row is None else e.select(row, found, splat)
        assert found is not None
        if operand.type.bits < 32:
            found = e.convert("trunc", found, Type("i", operand.type.bits))
            found = e.bits(found, operand.type) if operand.type.kind == "f" else found
        return found


def _place(e: Emitter, offset: Value, lane: Value) -> Value:
    return e.convert("zext", offset, I64) + (lane << 2)


def active_bits(e: Emitter, mask: Value, lane: Value) -> Value:
    """A mask's bits for the strip that begins at ``lane``."""
    shifted = e.binary("lshr", mask, e.convert("trunc", lane, mask.type) if mask.type.bits < 64 else lane)
    few = e.convert("trunc", shifted, Type("i", STRIP))
    return e.emit(I1.of(STRIP), f"bitcast {few.type} {few.text} to <{STRIP} x i1>")


def as_tuple(found: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return found if isinstance(found, tuple) else (found,)


def symbol(name: str) -> str:
    """The name of a handler's function."""
    return "op." + "".join(c if c.isalnum() or c in "_." else f"${ord(c):x}" for c in name)


class Handler:
    """One entry of the table: emits its function.

    Attributes:
      name: unique in its instruction set.
      results: what it writes.
      sources: what it reads.
    """

    def __init__(self, name: str, results: Sequence[Operand] = (), sources: Sequence[Operand] = ()) -> None:
        self.name, self.results, self.sources = name, tuple(results), tuple(sources)
        if len(self.results) + len(self.sources) > state.MOST_OPERANDS:
            raise ValueError(f"{name}: a record holds {state.MOST_OPERANDS} operands")

    def emit(self, e: Emitter) -> None:
        """Writes the body."""
        raise NotImplementedError


class ComputingHandler(Handler):
    """Computes results from sources alone."""

    def __init__(
        self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]
    ) -> None:
        super().__init__(name, results, sources)
        self.semantics = semantics


class VectorHandler(ComputingHandler):
    """The same in every active lane; lanes know nothing of one another."""

    def emit(self, e: Emitter) -> None:
        """Writes a loop over strips of lanes."""
        outputs = [e.slot(i) for i in range(len(self.results))]
        rows = Rows(e, self.sources, len(self.results))
        rows.prepare()
        exec_mask = e.exec()
        e.do("br label %before")
        e.label("before")
        e.do("br label %strip")
        e.label("strip")
        lane = e.emit(I64, "phi i64 [ 0, %before ], [ %after, %strip ]")
        masks = {
            i: e.emit(I64, f"phi i64 [ 0, %before ], [ %mask{i}, %strip ]")
            for i, result in enumerate(self.results)
            if result.where is Where.MASK
        }
        active = active_bits(e, exec_mask, lane)
        e.lane = lane
        found = as_tuple(self.semantics(e, *(rows.strip(i, lane) for i in range(len(self.sources)))))
        for i, (result, value) in enumerate(zip(self.results, found, strict=True)):
            if result.where is Where.MASK:
                few = e.emit(Type("i", STRIP), f"bitcast <{STRIP} x i1> {(value & active).text} to i{STRIP}")
                shifted = e.convert("zext", few, I64) << lane
                e.do(f"%mask{i} = or i64 {masks[i].text}, {shifted.text}")
            else:
                _write_row(e, outputs[i], lane, active, value, result.keeps)
        e.do(f"%after = add i64 {lane.text}, {STRIP}")
        e.do(f"%more = icmp ult i64 %after, {e.layout.lanes}")
        e.do("br i1 %more, label %strip, label %done")
        e.label("done")
        for i in masks:
            whole = Value(e, I64, f"%mask{i}")
            e.store(e.convert("trunc", whole, Type("i", e.layout.lanes)),
                    e.at("%w", e.convert("zext", outputs[i], I64)), 4)  # fmt: skip
        e.go_on()


def _write_row(e: Emitter, offset: Value, lane: Value, active: Value, value: Value, keeps: bool) -> None:
    whole = e.bits(value, value.type.integer) if value.type.kind == "f" else value
    parts = [whole]
    if whole.type.bits == 64:
        parts = [e.convert("trunc", whole, I32), e.convert("trunc", whole >> 32, I32)]
    for part_index, part in enumerate(parts):
        address = e.at("%w", _place(e, offset + part_index * e.layout.row_bytes, lane))
        old = e.load(I32.of(STRIP), address, 4)
        new = e.convert("zext", part, I32)
        if keeps:
            new = new | (old & -(1 << part.type.bits))
        e.store(e.select(active, new, old), address, 4)


class ScalarHandler(ComputingHandler):
    """Once for the wave, whatever the mask is."""

    def emit(self, e: Emitter) -> None:
        """Writes straight code."""
        first = len(self.results)
        found = as_tuple(self.semantics(e, *(e.read(first + i, s.type) for i, s in enumerate(self.sources))))
        for i, value in enumerate(found):
            e.write(i, value)
        e.go_on()


class ControlHandler(Handler):
    """Anything else: the author ends the function by :meth:`Emitter.go_on`, ``jump`` or ``stop``."""

    def __init__(self, name: str, body: Callable[[Emitter], None]) -> None:
        super().__init__(name)
        self.body = body

    def emit(self, e: Emitter) -> None:
        """Writes what the author does."""
        self.body(e)
