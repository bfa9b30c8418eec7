"""What handlers are written with: operands, and a builder of a handler's function that knows records and states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from . import state
from .ir import I1, I32, I64, Builder, Type, Value
from .state import FaultKind, Layout, Status

STRIP = 16  # lanes that are computed at once: two of the widest registers for 64-bit values
_GOLDEN, _STREAM = 0x9E3779B97F4A7C15 - (1 << 64), 0xD1342543DE82EF95 - (1 << 64)  # odd, which reach all numbers


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
    keeps: bool = False
    """Of a row that is written with fewer than 32 bits a lane: whether the upper bits stay."""


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

    Attributes:
      lane: in semantics of lanes, the first one of the strip.
    """

    def __init__(self, layout: Layout, hostile: bool) -> None:
        super().__init__()
        self.layout, self.hostile = layout, hostile
        self._checks = 0
        self.lane = self.value(I64, 0)

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

    def check(self, offset: Value, words: int | Value) -> None:
        """In hostile mode, a fault if the register was loaded and not waited for."""
        if self.hostile:
            self._checks += 1
            count = self.value(I32, words).text
            waits = self.emit(I1, f"call i1 @pending(ptr %w, i32 {offset.text}, i32 {count})")
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

    def lane_numbers(self) -> Value:
        """The numbers of the lanes of the strip that is computed."""
        kind = I64.of(STRIP)
        numbers = ", ".join(f"i64 {lane}" for lane in range(STRIP))
        return self.value(kind, self.lane) + Value(self, kind, f"<{numbers}>")

    def drawn(self, lanes: int = 0) -> Value:
        """In hostile mode, 64 random bits, or as many of each of ``STRIP`` lanes; others each time it is executed.

        Source: G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
        """
        now = self.field(state.DRAWN)
        self.set_field(state.DRAWN, now + _GOLDEN)
        bits = self.value(I64.of(lanes), now)
        if lanes:
            numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
            bits = bits ^ Value(self, bits.type, f"<{numbers}>") * _STREAM
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ bits >> shift) * (factor - (1 << 64))
        return bits ^ bits >> 31

    def following(self) -> Value:
        """The address of the next instruction."""
        distance = self.convert("sext", self.load(I32, self.at("%r", state.NEXT)), I64)
        here = self.emit(I64, "ptrtoint ptr %r to i64") + distance - self.field(state.RECORDS)
        slot = self.binary("udiv", here, state.RECORD_BYTES)
        return (slot << self.field(state.CODE_SHIFT)) + self.field(state.CODE_BASE)

    def fault(self, kind: FaultKind) -> None:
        """Ends the handler: the wave cannot go on."""
        self.do(f"call void @fault(ptr %w, ptr %r, i32 {int(kind)})")
        self.do("ret ptr null")

    def barrier(self, signal: bool = True, wait: bool = True) -> None:
        """Ends the handler: says that the wave has come to the barrier, waits for the others, or both."""
        if signal:
            self.set_field(state.SIGNALS, self.field(state.SIGNALS, I32) + 1)
        if wait:
            self.set_field(state.WAITS, self.field(state.WAITS, I32) + 1)
            self.stop(Status.BARRIER)
        else:
            self.go_on()

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
        """The function of a handler."""
        return self.function(f"ptr @{name}(ptr %w, ptr %r)")

    def function(self, signature: str) -> str:
        """The text with a head of its own."""
        end = []
        if self._checks:
            kind = int(FaultKind.PENDING)
            end = ["poisoned:", f"  call void @fault(ptr %w, ptr %r, i32 {kind})", "  ret ptr null"]
        body = "\n".join([*self.lines, *end])
        return f"define {signature} nounwind {{\nentry:\n{body}\n}}\n"
