"""Handlers of accesses: loads, stores and atomics of lanes, and scalar loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from . import state
from .emitter import STRIP, Emitter, Operand, scalar, vector
from .handlers import Handler, Rows, Semantics, active_bits, as_tuple
from .ir import I32, I64, Builder, Type, Value
from .state import FaultKind, Half, Operation, Scope, Space, Status

Modify: TypeAlias = Callable[[Builder, Value, Value, Value], Value]
"""What an atomic stores, of what was there, its data, and its second data or the first again."""


_LEFT_OUT = ("outside", "unknown")
"""Masks of lanes, by the names of their values."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a memory instruction moves.

    Attributes:
      space: which memory.
      operation: load, store or atomic.
      nbytes: a lane: 1, 2, 4, 8, 12, 16; a scalar load's multiple of 4 up to 64, or 1 or 2.
      signed: whether 1 or 2 bytes are sign-extended.
      op: LLVM's name of an atomic operation, or ``cmpxchg``, or that of ``modify``.
      counter: which counter the instruction set waits on until the result is there.
      scope: who sees it at once; atomics are seen by all waves at least. None if the record says so, in the operand
        behind the sources, a :class:`Scope` as an offset.
      aligned: whether an address must be a multiple of the size (of 4, if it is larger); atomics always are.
      also: another counter that counts it, too; -1 for none.
      half: of 1 or 2 bytes, in which half of a register they are; the other half stays as it is.
      returns: whether an atomic has a result.
      modify: what an atomic stores, of what was there and of its data; instead of LLVM's operation.
      operands: rows of data that an atomic has, each an operand: with two, ``cmpxchg`` has what is expected in the
        second one, else right behind what is new.
      pair: whether a lane moves so much twice: rows follow one another, stores have two operands of data, and the
        distance between the addresses is the upper half of the record's immediate.
      bounded: whether lanes, or a scalar load, may lie outside of what is accessed: they store nothing and load zeros.
        Semantics give the address, whether it lies outside, and whether what becomes of it is not known, which is a
        fault.
      slot: of a load to shared memory, how far apart the lanes' words lie there, a multiple of 4; 0 of one to
        registers. Behind the sources of the address is a scalar one, where lane 0's words lie, to which the record's
        immediate is added. Operand 0 is a row of the handler's own.
    """

    space: Space
    operation: Operation
    nbytes: int
    signed: bool = False
    op: str = ""
    counter: int = 0
    scope: Scope | None = Scope.UNIT
    aligned: bool = True
    also: int = -1
    half: Half = Half.NEITHER
    returns: bool = True
    modify: Modify | None = None
    operands: int = 1
    pair: bool = False
    bounded: bool = False
    slot: int = 0

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

    @property
    def data(self) -> int:
        """Operands before the sources of the address."""
        if self.operation is Operation.ATOMIC:
            return self.operands + self.returns
        return 2 if self.pair and self.operation is Operation.STORE else 1


class MemoryHandler(Handler):
    """An access of every active lane; operand 0 is the row that is loaded or stored.

    All lanes are checked before any is done, so a fault leaves everything as it was. An atomic writes what was there
    before to operand 0, if it returns that, and takes its data from the next one; ``cmpxchg`` takes the new value, then
    what is expected.

    Args:
      name: unique in its instruction set.
      shape: what is moved.
      address: semantics of the address, a 64-bit value a lane, from the sources.
      sources: of the address.
    """

    def __init__(self, name: str, shape: Shape, address: Semantics, sources: Sequence[Operand]) -> None:
        super().__init__(name, [vector(I64 if shape.nbytes == 8 else I32)] * shape.data, sources)
        self.shape, self.address = shape, address

    def emit(self, e: Emitter) -> None:
        """Writes addresses, the check and the transfer."""
        shape, first = self.shape, len(self.results)
        slots = [e.slot(i) for i in range(first)]
        executing = e.exec()
        atomic = shape.operation is Operation.ATOMIC
        data = slots[1:] if atomic and shape.returns else [] if shape.operation is Operation.LOAD else slots
        for slot in data:
            e.check(slot, shape.rows * (2 if shape.op == "cmpxchg" and shape.operands == 1 else 1))
        if shape.slot:
            self.base = e.read(first + len(self.sources) - 1) + e.convert("trunc", e.immediate(), I32)
            self._resolve_slots(e, "slots")
        rows = Rows(e, self.sources, first)
        rows.prepare()
        e.do("br label %before")
        e.label("before")
        e.do("br label %strip")
        e.label("strip")
        lane = e.emit(I64, "phi i64 [ 0, %before ], [ %after, %strip ]")
        masks = [e.emit(I64, f"phi i64 [ 0, %before ], [ %{name}, %strip ]") for name in _LEFT_OUT[: 2 * shape.bounded]]
        e.lane = lane
        sources = range(len(self.sources) - bool(shape.slot))
        found = as_tuple(self.address(e, *(rows.strip(i, lane) for i in sources)))
        e.store(found[0], e.at("%w", (lane << 3) + state.LANE_ADDRESSES), 8)
        for name, so_far, lanes in zip(_LEFT_OUT, masks, found[1:], strict=False):
            active = lanes & active_bits(e, executing, lane)
            few = e.emit(Type("i", STRIP), f"bitcast {active.type} {active.text} to i{STRIP}")
            e.do(f"%{name} = or i64 {so_far.text}, {(e.convert('zext', few, I64) << lane).text}")
        e.do(f"%after = add i64 {lane.text}, {STRIP}")
        e.do(f"%more = icmp ult i64 %after, {e.layout.lanes}")
        e.do("br i1 %more, label %strip, label %done")
        e.label("done")
        scope = e.slot(first + len(self.sources)) if shape.scope is None else e.value(I32, int(shape.scope))
        if shape.bounded:
            self._inside(e, slots, scope, executing)
            return
        grant = self._ask(e, slots, scope)
        if shape.pair:
            self._resolve(e, "second", step=1)
            self._resolve(e, "first", step=-1)
        else:
            self._resolve(e, "first")
        _only_checked(e, grant)
        places = [e.at("%w", e.convert("zext", slot, I64)) for slot in slots]
        if not shape.pair:
            self._transfer(e, places)
            self._to_slots(e, slots[0])
            e.go_on()
            return
        self._transfer(e, places[:1])
        self._resolve(e, "again", step=1)
        behind = e.at(places[0], shape.rows * e.layout.row_bytes)
        self._transfer(e, places[1:] if shape.operation is Operation.STORE else [behind], "again")
        _move_addresses(e, -1)
        e.go_on()

    def _inside(self, e: Emitter, slots: list[Value], scope: Value, executing: Value) -> None:
        """The access of those lanes that lie inside, for which the mask is narrowed meanwhile."""
        outside, unknown = (Value(e, I64, f"%{name}") for name in _LEFT_OUT)
        known = e.compare("eq", unknown, 0)
        e.do(f"br i1 {known.text}, label %known, label %unclear")
        e.label("unclear")
        e.fault(FaultKind.BUFFER)
        e.label("known")
        grant = self._ask(e, slots, scope, outside)
        e.set_field(state.EXEC, executing & ~outside)
        self._resolve(e, "first", executing=executing)
        _only_checked(e, grant, executing)
        self._transfer(e, [e.at("%w", e.convert("zext", slot, I64)) for slot in slots])
        e.set_field(state.EXEC, executing)
        if self.shape.operation is not Operation.STORE and self.shape.returns:
            somewhere = e.compare("ne", outside, 0)
            e.do(f"br i1 {somewhere.text}, label %zeros, label %leave")
            e.label("zeros")
            self._zeros(e, slots[0], outside)
            e.do("br label %leave")
            e.label("leave")
        self._to_slots(e, slots[0])
        e.go_on()

    def _ask(self, e: Emitter, slots: list[Value], scope: Value, outside: Value | None = None) -> Value | None:
        shape = self.shape
        if shape.slot:
            return _request(e, shape, [slots[0], e.value(I32, shape.slot)], scope, outside, self.base)
        distance: Value | int = e.convert("trunc", e.immediate() >> 32, I32) if shape.pair else 0
        return _request(e, shape, slots, scope, outside, distance)

    def _resolve_slots(self, e: Emitter, name: str) -> None:
        """Checks where in shared memory lanes store, and makes those their addresses."""
        kind = I32.of(e.layout.lanes)
        e.declarations[f"declare {kind} @llvm.stepvector.{kind.mangled}()"] = None
        lanes = e.emit(kind, f"call {kind} @llvm.stepvector.{kind.mangled}()")
        whole = e.convert("zext", lanes * self.shape.slot + e.value(kind, self.base), I64)
        e.store(whole, e.at("%w", state.LANE_ADDRESSES), 8)
        e.do(f"%mode.{name} = call i32 @resolve_shared(ptr %w, ptr %r, i64 {4 * self.shape.rows}, "
             f"i32 {int(state.Access.WRITE)}, i64 3)")  # fmt: skip
        e.do(f"%fine.{name} = icmp ne i32 %mode.{name}, 0")
        e.do(f"br i1 %fine.{name}, label %resolved.{name}, label %refused.{name}")
        e.label(f"refused.{name}")
        e.do("ret ptr null")
        e.label(f"resolved.{name}")

    def _to_slots(self, e: Emitter, row: Value) -> None:
        """Stores to shared memory what was loaded."""
        if not self.shape.slot:
            return
        self._resolve_slots(e, "again")
        place = e.at("%w", e.convert("zext", row, I64))
        e.do(f"call void @store_rows(ptr %w, ptr {place}, i64 {self.shape.rows}, i32 %mode.again)")

    def _zeros(self, e: Emitter, slot: Value, outside: Value) -> None:
        """What lanes outside load."""
        kept = {Half.NEITHER: 0, Half.LOW: -(1 << 16), Half.HIGH: 0xFFFF}[self.shape.half]
        for word in range(self.shape.rows):
            for lane in range(0, e.layout.lanes, STRIP):
                address = e.at("%w", e.convert("zext", slot, I64) + (word * e.layout.row_bytes + 4 * lane))
                old = e.load(I32.of(STRIP), address, 4)
                e.store(e.select(active_bits(e, outside, e.value(I64, lane)), old & kept, old), address, 4)

    def _resolve(self, e: Emitter, name: str, step: int = 0, executing: Value | None = None) -> None:
        """Moves the addresses by the distance of a pair, or back, and checks them."""
        shape = self.shape
        if step:
            _move_addresses(e, step)
        access = state.Access.WRITE if shape.operation is Operation.STORE else state.Access.READ
        if shape.operation is Operation.ATOMIC:
            access |= state.Access.WRITE
        mode = f"call i32 @resolve_{shape.space.name.lower()}(ptr %w, ptr %r, i64 {shape.nbytes}, i32 {int(access)}, "
        e.do(f"%mode.{name} = {mode}i64 {shape.alignment - 1})")
        e.do(f"%fine.{name} = icmp ne i32 %mode.{name}, 0")
        e.do(f"br i1 %fine.{name}, label %resolved.{name}, label %refused.{name}")
        e.label(f"refused.{name}")
        if executing is not None:
            e.set_field(state.EXEC, executing)
        e.do("ret ptr null")
        e.label(f"resolved.{name}")

    def _transfer(self, e: Emitter, places: list[str], name: str = "first") -> None:
        shape = self.shape
        verb = "store" if shape.operation is Operation.STORE else "load"
        if shape.operation is Operation.ATOMIC:
            if shape.op == "cmpxchg" and shape.operands == 1:
                places = [*places, e.at(places[-1], shape.rows * e.layout.row_bytes)]
            arguments = "".join(f", ptr {place}" for place in places)
            e.do(f"call void @{atomic_name(shape)}(ptr %w{arguments})")
        elif shape.nbytes < 4:
            half = "" if shape.half is Half.NEITHER else f"_{shape.half.name.lower()}"
            kind = f"{verb}{half}{'_signed' if shape.signed else ''}"
            e.do(f"call void @{kind}_{shape.nbytes}(ptr %w, ptr {places[0]})")
        else:
            e.do(f"call void @{verb}_rows(ptr %w, ptr {places[0]}, i64 {shape.rows}, i32 %mode.{name})")


def _move_addresses(e: Emitter, sign: int) -> None:
    """Adds the distance of a pair to the lanes' addresses, or takes it away."""
    whole = I64.of(e.layout.lanes)
    at = e.at("%w", state.LANE_ADDRESSES)
    distance = e.binary("ashr", e.immediate(), 32)
    e.store(e.binary("add" if sign > 0 else "sub", e.load(whole, at, 8), e.value(whole, distance)), at, 8)


def atomic_name(shape: Shape) -> str:
    """The native function of an atomic operation."""
    return f"atomic_{shape.op}_{shape.nbytes}{'' if shape.returns else '_silent'}"


def _request(
    e: Emitter, shape: Shape, slots: list[Value], scope: Value, outside: Value | None = None,
    distance: Value | int = 0,
) -> Value | None:  # fmt: skip
    """In hostile mode: asks for an access that was not granted yet, and is done again when it is."""
    if not e.hostile:
        return None
    grant = e.field(state.GRANT)
    granted = e.compare("ne", grant, 0)
    e.do(f"br i1 {granted.text}, label %granted, label %ask")
    e.label("ask")
    operation = Operation.TO_SHARED if shape.slot else shape.operation
    fields: tuple[Value | int, ...] = (
        operation, shape.space, shape.nbytes, shape.signed, slots[0], shape.counter, scope,
        shape.rows * (2 if shape.pair else 1), shape.also, shape.half, shape.returns, shape.pair, distance, slots[-1],
    )  # fmt: skip
    for i, number in enumerate(fields):
        e.store(e.value(I32, number if isinstance(number, Value) else int(number)), e.at("%w", state.REQUEST + 4 * i))
    if outside is not None:
        e.set_field(state.OUTSIDE, outside)
    e.stop(Status.ACCESS, again=True)
    e.label("granted")
    e.store(e.value(I64, 0), e.at("%w", state.GRANT))
    return grant


def _only_checked(e: Emitter, grant: Value | None, executing: Value | None = None) -> None:
    """Ends the handler where nothing but the check was granted."""
    if grant is None:
        return
    check_only = e.compare("eq", grant, state.CHECK_ONLY)
    e.do(f"br i1 {check_only.text}, label %checked, label %move")
    e.label("checked")
    if executing is not None:
        e.set_field(state.EXEC, executing)
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
        found = as_tuple(self.address(e, *(e.read(1 + i, s.type) for i, s in enumerate(self.sources))))
        e.store(found[0], e.at("%w", state.LANE_ADDRESSES))
        scope = e.slot(1 + len(self.sources)) if shape.scope is None else e.value(I32, int(shape.scope))
        if shape.bounded:
            outside, unknown = found[1:]
            e.do(f"br i1 {unknown.text}, label %unclear, label %known")
            e.label("unclear")
            e.fault(FaultKind.BUFFER)
            e.label("known")
            grant = _request(e, shape, [register], scope, e.convert("zext", outside, I64))
            self._outside(e, register, outside)
        else:
            grant = _request(e, shape, [register], scope)
        host = e.emit(I64, f"call i64 @resolve_one(ptr %w, ptr %r, i64 {shape.nbytes}, i64 {shape.alignment - 1})")
        e.do(f"%fine = icmp ne i64 {host.text}, 0")
        e.do("br i1 %fine, label %transfer, label %refused")
        e.label("refused")
        e.do("ret ptr null")
        e.label("transfer")
        _only_checked(e, grant)
        source = e.emit(I64, f"inttoptr i64 {host.text} to ptr").text
        target = e.at("%w", e.convert("zext", register, I64))
        if shape.nbytes < 4:
            narrow = e.load(Type("i", 8 * shape.nbytes), source, 1)
            e.store(e.convert("sext" if shape.signed else "zext", narrow, I32), target, 4)
        else:
            e.store(e.load(I32.of(shape.nbytes // 4), source, 4), target, 4)
        e.go_on()

    def _outside(self, e: Emitter, register: Value, outside: Value) -> None:
        """Ends the handler where nothing is accessed; in hostile mode zeros come as what is loaded does."""
        e.do(f"br i1 {outside.text}, label %zeros, label %inside")
        e.label("zeros")
        if not e.hostile:
            words = I32.of(self.shape.rows) if self.shape.rows > 1 else I32
            e.store(e.value(words, 0), e.at("%w", e.convert("zext", register, I64)), 4)
        e.go_on()
        e.label("inside")
