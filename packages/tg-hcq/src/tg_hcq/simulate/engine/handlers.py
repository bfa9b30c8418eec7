"""Handlers from semantics: what one instruction does in a lane, written once, becomes native code for a wave.

An author writes a function of a :class:`Builder` and typed values, which are strips of lanes in a vector handler and
single values in a scalar one; the template around it reads operands, obeys the execution mask and writes results.
Operands stand in a record in the order results, sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from . import state
from .ir import I1, I32, I64, Builder, Type, Value
from .state import Layout, Operation, Scope, Space, Status

STRIP = 16  # lanes that are computed at once: two of the widest registers for 64-bit values


class Where(Enum):
    """What an operand may be."""

    VECTOR = "vector"
    """A row of lanes."""
    SCALAR = "scalar"
    """A scalar register, or the record's immediate."""
    ANY = "any"
    """Either of them; a scalar is the same in all lanes."""
    MASK = "mask"
    """A scalar register with a bit a lane. As a result it has 0 where a lane is not active."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: where it may be, and its type."""

    where: Where
    type: Type = I32


Semantics: TypeAlias = Callable[..., "Value | tuple[Value, ...]"]


def vector(kind: Type = I32) -> Operand:
    """A row of lanes."""
    return Operand(Where.VECTOR, kind)


def scalar(kind: Type = I32) -> Operand:
    """A scalar register or a literal."""
    return Operand(Where.SCALAR, kind)


def either(kind: Type = I32) -> Operand:
    """A row of lanes, a scalar register or a literal."""
    return Operand(Where.ANY, kind)


MASK = Operand(Where.MASK, I1)


class Emitter(Builder):
    """A handler's function: arguments ``%w``, the wave's state, and ``%r``, the record; gives the next record or null.

    Args:
      layout: where registers are.
      hostile: whether registers with loads that were not waited for are looked for, and accesses are asked for.
    """

    def __init__(self, layout: Layout, hostile: bool) -> None:
        super().__init__()
        self.layout, self.hostile = layout, hostile
        self._checks = 0

    def slot(self, index: int) -> Value:
        """The operand in the record, an offset."""
        return self.load(I32, self.at("%r", state.OPERANDS + 4 * index))

    def immediate(self) -> Value:
        """The record's immediate."""
        return self.load(I64, self.at("%r", state.IMMEDIATE))

    def field(self, offset: int, kind: Type = I64) -> Value:
        """A field of the engine's part of the state."""
        return self.load(kind, self.at("%w", offset))

    def set_field(self, offset: int, value: Value) -> None:
        """Changes such a field."""
        self.store(value, self.at("%w", offset))

    def exec(self) -> Value:
        """The execution mask, a bit a lane."""
        self.check(self.value(I32, state.EXEC), 2)
        return self.field(state.EXEC)

    def constant(self, kind: Type, number: float) -> Value:
        """A constant."""
        return self.value(kind, number)

    def check(self, offset: Value, words: int) -> None:
        """In hostile mode, a fault if the register was loaded and not waited for."""
        if self.hostile:
            self._checks += 1
            waits = self.emit(I1, f"call i1 @pending(ptr %w, i32 {offset.text}, i32 {words})")
            self.do(f"br i1 {waits.text}, label %poisoned, label %ready{self._checks}")
            self.label(f"ready{self._checks}")

    def scalar_address(self, offset: Value) -> str:
        """Where a scalar register or a literal lies."""
        literal = self.compare("slt", offset, 0)
        inside = self.convert("zext", offset & 0x7FFFFFFF, I64)
        base = self.emit(I64, f"select i1 {literal.text}, ptr %r, ptr %w").text
        return self.at(base, inside)

    def read(self, index: int, kind: Type = I32) -> Value:
        """A scalar operand."""
        offset = self.slot(index)
        self.check(offset, max(kind.bits // 32, 1))
        found = self.load(kind if kind.bits >= 32 else Type("i", 32), self.scalar_address(offset), 4)
        return found if kind.bits >= 32 else self._narrow(found, kind)

    def write(self, index: int, value: Value) -> None:
        """Changes a scalar register."""
        if value.type.bits < 32:
            value = self._widen(value)
        self.store(value, self.at("%w", self.convert("zext", self.slot(index), I64)), 4)

    def go_on(self) -> None:
        """Ends the handler: the next record."""
        distance = self.convert("sext", self.load(I32, self.at("%r", state.NEXT)), I64)
        self.do(f"ret ptr {self.at('%r', distance)}")

    def jump(self, pc: Value) -> None:
        """Ends the handler: the instruction at an address."""
        self.do(f"ret ptr {self.emit(I64, f'call ptr @jump(ptr %w, i64 {pc.text})').text}")

    def stop(self, status: Status, again: bool = False) -> None:
        """Ends the handler and native code: at the next record, or ``again`` at this one, the wave goes on later."""
        self.do(f"store i32 {int(status)}, ptr {self.at('%w', state.STATUS)}")
        if again:
            resume = "%r"
        else:
            distance = self.convert("sext", self.load(I32, self.at("%r", state.NEXT)), I64)
            resume = self.at("%r", distance)
        self.do(f"store ptr {resume}, ptr {self.at('%w', state.RESUME)}")
        self.do("ret ptr null")

    def _narrow(self, value: Value, kind: Type) -> Value:
        small = self.convert("trunc", value, Type("i", kind.bits))
        return self.bits(small, kind) if kind.kind == "f" else small

    def _widen(self, value: Value) -> Value:
        if value.type.kind == "f":
            value = self.bits(value, Type("i", value.type.bits))
        return self.convert("zext", value, I32)

    def text(self, name: str) -> str:
        """The function."""
        end = []
        if self._checks:
            kind = int(state.FaultKind.PENDING)
            end = ["poisoned:", f"  call void @fault(ptr %w, ptr %r, i32 {kind})", "  ret ptr null"]
        body = "\n".join([*self.lines, *end])
        return f"define ptr @{name}(ptr %w, ptr %r) nounwind {{\nentry:\n{body}\n}}\n"


class _Rows:
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
            return _bits(e, one, lane)
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


def _bits(e: Emitter, mask: Value, lane: Value) -> Value:
    """A mask's bits for the strip that begins at ``lane``."""
    shifted = e.binary("lshr", mask, e.convert("trunc", lane, mask.type) if mask.type.bits < 64 else lane)
    few = e.convert("trunc", shifted, Type("i", STRIP))
    return e.emit(I1.of(STRIP), f"bitcast {few.type} {few.text} to <{STRIP} x i1>")


def _tuple(found: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return found if isinstance(found, tuple) else (found,)


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


class VectorHandler(Handler):
    """The same in every active lane; lanes know nothing of one another."""

    def __init__(
        self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]
    ) -> None:
        super().__init__(name, results, sources)
        self.semantics = semantics

    def emit(self, e: Emitter) -> None:
        """Writes a loop over strips of lanes."""
        outputs = [e.slot(i) for i in range(len(self.results))]
        rows = _Rows(e, self.sources, len(self.results))
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
        active = _bits(e, exec_mask, lane)
        found = _tuple(self.semantics(e, *(rows.strip(i, lane) for i in range(len(self.sources)))))
        for i, (result, value) in enumerate(zip(self.results, found, strict=True)):
            if result.where is Where.MASK:
                few = e.emit(Type("i", STRIP), f"bitcast <{STRIP} x i1> {(value & active).text} to i{STRIP}")
                shifted = e.convert("zext", few, I64) << lane
                e.do(f"%mask{i} = or i64 {masks[i].text}, {shifted.text}")
            else:
                _write_row(e, outputs[i], lane, active, value)
        e.do(f"%after = add i64 {lane.text}, {STRIP}")
        e.do(f"%more = icmp ult i64 %after, {e.layout.lanes}")
        e.do("br i1 %more, label %strip, label %done")
        e.label("done")
        for i in masks:
            whole = Value(e, I64, f"%mask{i}")
            e.store(e.convert("trunc", whole, Type("i", e.layout.lanes)),
                    e.at("%w", e.convert("zext", outputs[i], I64)), 4)  # fmt: skip
        e.go_on()


def _write_row(e: Emitter, offset: Value, lane: Value, active: Value, value: Value) -> None:
    whole = e.bits(value, value.type.integer) if value.type.kind == "f" else value
    parts = [whole]
    if whole.type.bits == 64:
        parts = [e.convert("trunc", whole, I32), e.convert("trunc", whole >> 32, I32)]
    for part_index, part in enumerate(parts):
        address = e.at("%w", _place(e, offset + part_index * e.layout.row_bytes, lane))
        old = e.load(I32.of(STRIP), address, 4)
        e.store(e.select(active, e.convert("zext", part, I32), old), address, 4)


class ScalarHandler(Handler):
    """Once for the wave, whatever the mask is."""

    def __init__(
        self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]
    ) -> None:
        super().__init__(name, results, sources)
        self.semantics = semantics

    def emit(self, e: Emitter) -> None:
        """Writes straight code."""
        first = len(self.results)
        found = _tuple(self.semantics(e, *(e.read(first + i, s.type) for i, s in enumerate(self.sources))))
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


@dataclass(frozen=True, slots=True)
class Shape:
    """What a memory instruction moves.

    Attributes:
      space: which memory.
      operation: load, store or atomic.
      nbytes: a lane: 1, 2, 4, 8, 12, 16; a scalar load's multiple of 4 up to 64.
      signed: whether 1 or 2 bytes are sign-extended.
      op: LLVM's name of an atomic operation, or ``cmpxchg``.
      counter: which counter the instruction set waits on until the result is there.
      scope: who sees it at once; atomics are seen by all waves at least.
      aligned: whether an address must be a multiple of the size (of 4, if it is larger); atomics always are.
    """

    space: Space
    operation: Operation
    nbytes: int
    signed: bool = False
    op: str = ""
    counter: int = 0
    scope: Scope = Scope.UNIT
    aligned: bool = True

    @property
    def rows(self) -> int:
        """Registers of 32 bits a lane."""
        return max(self.nbytes // 4, 1)

    @property
    def alignment(self) -> int:
        """At which multiples an address must be."""
        if self.operation is Operation.ATOMIC:
            return self.nbytes
        return min(self.nbytes, 4) if self.aligned else 1


class MemoryHandler(Handler):
    """An access of every active lane; operand 0 is the row that is loaded or stored.

    All lanes are checked before any is done, so a fault leaves everything as it was. An atomic writes what was there
    before to operand 0 and takes its data from operand 1; ``cmpxchg`` takes the new value, then what is expected.

    Args:
      name: unique in its instruction set.
      shape: what is moved.
      address: semantics of the address, a 64-bit value a lane, from the sources.
      sources: of the address.
    """

    def __init__(self, name: str, shape: Shape, address: Semantics, sources: Sequence[Operand]) -> None:
        data = [vector(I64 if shape.nbytes == 8 else I32)] * (2 if shape.operation is Operation.ATOMIC else 1)
        super().__init__(name, data, sources)
        self.shape, self.address = shape, address

    def emit(self, e: Emitter) -> None:
        """Writes addresses, the check and the transfer."""
        shape, first = self.shape, len(self.results)
        register = e.slot(0)
        data = e.slot(first - 1)
        e.check(e.value(I32, state.EXEC), 2)
        if shape.operation is not Operation.LOAD:
            e.check(data, shape.rows * (2 if shape.op == "cmpxchg" else 1))
        rows = _Rows(e, self.sources, first)
        rows.prepare()
        e.do("br label %before")
        e.label("before")
        e.do("br label %strip")
        e.label("strip")
        lane = e.emit(I64, "phi i64 [ 0, %before ], [ %after, %strip ]")
        found = _tuple(self.address(e, *(rows.strip(i, lane) for i in range(len(self.sources)))))
        e.store(found[0], e.at("%w", (lane << 3) + state.LANE_ADDRESSES), 8)
        e.do(f"%after = add i64 {lane.text}, {STRIP}")
        e.do(f"%more = icmp ult i64 %after, {e.layout.lanes}")
        e.do("br i1 %more, label %strip, label %done")
        e.label("done")
        grant = _request(e, shape, data if shape.operation is Operation.STORE else register)
        access = state.Access.WRITE if shape.operation is Operation.STORE else state.Access.READ
        if shape.operation is Operation.ATOMIC:
            access |= state.Access.WRITE
        resolve = f"@resolve_{shape.space.name.lower()}"
        mode = e.emit(I32, f"call i32 {resolve}(ptr %w, ptr %r, i64 {shape.nbytes}, i32 {int(access)}, "
                           f"i64 {shape.alignment - 1})")  # fmt: skip
        e.do(f"%fine = icmp ne i32 {mode.text}, 0")
        e.do("br i1 %fine, label %transfer, label %refused")
        e.label("refused")
        e.do("ret ptr null")
        e.label("transfer")
        _only_checked(e, grant)
        row = e.at("%w", e.convert("zext", register, I64))
        if shape.operation is Operation.ATOMIC:
            source = e.at("%w", e.convert("zext", data, I64))
            e.do(f"call void @{atomic_name(shape)}(ptr %w, ptr {row}, ptr {source})")
        elif shape.nbytes < 4:
            kind = "store" if shape.operation is Operation.STORE else "load_signed" if shape.signed else "load"
            e.do(f"call void @{kind}_{shape.nbytes}(ptr %w, ptr {row})")
        else:
            kind = "store" if shape.operation is Operation.STORE else "load"
            e.do(f"call void @{kind}_rows(ptr %w, ptr {row}, i64 {shape.rows}, i32 {mode.text})")
        e.go_on()


def atomic_name(shape: Shape) -> str:
    """The native function of an atomic operation."""
    return f"atomic_{shape.op}_{shape.nbytes}"


def _request(e: Emitter, shape: Shape, register: Value) -> Value | None:
    """In hostile mode: asks for an access that was not granted yet, and is done again when it is."""
    if not e.hostile:
        return None
    grant = e.field(state.GRANT)
    granted = e.compare("ne", grant, 0)
    e.do(f"br i1 {granted.text}, label %granted, label %ask")
    e.label("ask")
    fields: tuple[Value | int, ...] = (
        shape.operation, shape.space, shape.nbytes, shape.signed, register, shape.counter, shape.scope, shape.rows,
    )  # fmt: skip
    for i, number in enumerate(fields):
        e.store(e.value(I32, number if isinstance(number, Value) else int(number)), e.at("%w", state.REQUEST + 4 * i))
    e.stop(Status.ACCESS, again=True)
    e.label("granted")
    e.store(e.value(I64, 0), e.at("%w", state.GRANT))
    return grant


def _only_checked(e: Emitter, grant: Value | None) -> None:
    """Ends the handler where nothing but the check was granted."""
    if grant is None:
        return
    check_only = e.compare("eq", grant, state.CHECK_ONLY)
    e.do(f"br i1 {check_only.text}, label %checked, label %move")
    e.label("checked")
    e.go_on()
    e.label("move")


class ScalarLoadHandler(Handler):
    """Loads words into scalar registers from one address, whatever the mask is.

    Args:
      name: unique in its instruction set.
      shape: of scalar loads, in global memory.
      address: semantics of the address, a single 64-bit value, from the sources.
      sources: of the address.
    """

    def __init__(self, name: str, shape: Shape, address: Semantics, sources: Sequence[Operand]) -> None:
        super().__init__(name, [scalar()], sources)
        self.shape, self.address = shape, address

    def emit(self, e: Emitter) -> None:
        """Writes the address, the check and the transfer."""
        shape = self.shape
        register = e.slot(0)
        found = _tuple(self.address(e, *(e.read(1 + i, s.type) for i, s in enumerate(self.sources))))
        e.store(found[0], e.at("%w", state.LANE_ADDRESSES))
        grant = _request(e, shape, register)
        host = e.emit(I64, f"call i64 @resolve_one(ptr %w, ptr %r, i64 {shape.nbytes}, i64 {shape.alignment - 1})")
        e.do(f"%fine = icmp ne i64 {host.text}, 0")
        e.do("br i1 %fine, label %transfer, label %refused")
        e.label("refused")
        e.do("ret ptr null")
        e.label("transfer")
        _only_checked(e, grant)
        source = e.emit(I64, f"inttoptr i64 {host.text} to ptr").text
        words = e.load(I32.of(shape.nbytes // 4), source, 4)
        e.store(words, e.at("%w", e.convert("zext", register, I64)), 4)
        e.go_on()


class InstructionSet:
    """The handlers of an instruction set, by name.

    Args:
      name: of the instruction set, for messages.
      scalars: names of scalar registers, and the 32-bit words of each.
      vectors: how many vector registers there are.
    """

    def __init__(self, name: str, scalars: dict[str, int], vectors: int) -> None:
        self.name, self.scalars, self.vectors = name, scalars, vectors
        self.handlers: dict[str, Handler] = {}

    def layout(self, lanes: int) -> Layout:
        """Where registers lie in waves of so many lanes."""
        return Layout(self.scalars, self.vectors, lanes)

    def add(self, handler: Handler) -> None:
        """Takes a handler.

        Raises:
          ValueError: if one has its name.
        """
        if handler.name in self.handlers:
            raise ValueError(f"{self.name} has two handlers {handler.name}")
        self.handlers[handler.name] = handler

    def vector(self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]) -> None:
        """Adds an instruction that does the same in every active lane."""
        self.add(VectorHandler(name, semantics, results, sources))

    def scalar(self, name: str, semantics: Semantics, results: Sequence[Operand], sources: Sequence[Operand]) -> None:
        """Adds an instruction that is done once for the wave."""
        self.add(ScalarHandler(name, semantics, results, sources))

    def control(self, name: str, body: Callable[[Emitter], None]) -> None:
        """Adds an instruction whose author writes the whole handler."""
        self.add(ControlHandler(name, body))

    def memory(self, name: str, shape: Shape, address: Semantics, sources: Sequence[Operand]) -> None:
        """Adds a load, a store or an atomic; see :class:`MemoryHandler` and :class:`ScalarLoadHandler`."""
        kind = ScalarLoadHandler if shape.operation is Operation.SCALAR_LOAD else MemoryHandler
        self.add(kind(name, shape, address, sources))
