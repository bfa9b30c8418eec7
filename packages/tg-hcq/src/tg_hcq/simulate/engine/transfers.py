"""Handlers of accesses: loads, stores and atomics of lanes, and scalar loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import state
from .emitter import Emitter, Operand, scalar, vector
from .handlers import STRIP, Handler, Rows, Semantics, as_tuple
from .ir import I32, I64, Value
from .state import Operation, Scope, Space, Status


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
        rows = Rows(e, self.sources, first)
        rows.prepare()
        e.do("br label %before")
        e.label("before")
        e.do("br label %strip")
        e.label("strip")
        lane = e.emit(I64, "phi i64 [ 0, %before ], [ %after, %strip ]")
        found = as_tuple(self.address(e, *(rows.strip(i, lane) for i in range(len(self.sources)))))
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
        found = as_tuple(self.address(e, *(e.read(1 + i, s.type) for i, s in enumerate(self.sources))))
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
