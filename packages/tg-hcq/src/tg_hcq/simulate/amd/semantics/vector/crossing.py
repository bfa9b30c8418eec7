"""Lanes that are read or written by number, and rows of lanes that change places.

Source: AMD, "RDNA3 Instruction Set Architecture", 16.8 (V_READFIRSTLANE_B32, V_PERMLANE64_B32) and 16.10
(V_READLANE_B32, V_WRITELANE_B32, V_PERMLANE16_B32, V_PERMLANEX16_B32); of gfx950: "AMD Instinct MI350 Instruction Set
Architecture", 12.8 (V_PERMLANE16_SWAP_B32, V_PERMLANE32_SWAP_B32).
"""

from __future__ import annotations

from collections.abc import Callable

from ....engine import I32, I64, Emitter, FaultKind, Value
from ....engine.state import EXEC
from ...modifiers import BOUND_CONTROL, FETCH_INACTIVE
from .alu import Lanes


def add(to: Lanes) -> None:
    """Adds the handlers of this subject; operands are the result, the row, and further scalars."""
    for name, body in (
        ("v_readfirstlane_b32", _read_first), ("v_readlane_b32", _read), ("v_writelane_b32", _write),
        ("v_permlane16_b32", _permute(False)), ("v_permlanex16_b32", _permute(True)), ("v_permlane64_b32", _exchange),
        ("v_permlane16_swap_b32", _swap(16)), ("v_permlane32_swap_b32", _swap(32)),
    ):  # fmt: skip
        if name in to.there:
            to.to.control(name, body)
    to.to.control("v_nop", lambda e: e.go_on())


def _lane_address(e: Emitter, row: Value, lane: Value) -> str:
    return e.at("%w", e.convert("zext", row, I64) + (lane << 2))


def _checked_row(e: Emitter, index: int) -> Value:
    row = e.slot(index)
    e.check(row, 1)
    return row


def _read_first(e: Emitter) -> None:
    row, mask = _checked_row(e, 1), e.exec()
    if e.layout.lanes == 32:
        mask = mask & 0xFFFFFFFF
    first = e.select(e.compare("eq", mask, 0), e.value(I64, 0), e.intrinsic("cttz", mask, False))
    e.write(0, e.load(I32, _lane_address(e, row, first), 4))
    e.go_on()


def _number(e: Emitter, index: int) -> Value:
    return e.convert("zext", e.read(index) & e.layout.lanes - 1, I64)


def _read(e: Emitter) -> None:
    """Whatever the mask is."""
    row, lane = _checked_row(e, 1), _number(e, 2)
    e.write(0, e.load(I32, _lane_address(e, row, lane), 4))
    e.go_on()


def _write(e: Emitter) -> None:
    value, lane = e.read(1), _number(e, 2)
    e.store(value, _lane_address(e, e.slot(0), lane), 4)
    e.go_on()


def _whole(e: Emitter, row: Value) -> Value:
    return e.load(I32.of(e.layout.lanes), e.at("%w", e.convert("zext", row, I64)), 4)


def _loop(e: Emitter, body: Callable[[Value], None]) -> None:
    """Over all lanes."""
    e.do("br label %before")
    e.label("before")
    e.do("br label %lane")
    e.label("lane")
    lane = e.emit(I64, "phi i64 [ 0, %before ], [ %next, %lane.end ]")
    body(lane)
    e.do("br label %lane.end")
    e.label("lane.end")
    e.do(f"%next = add i64 {lane.text}, 1")
    e.do(f"%more = icmp ult i64 %next, {e.layout.lanes}")
    e.do("br i1 %more, label %lane, label %done")
    e.label("done")
    e.go_on()


def _permute(crosses: bool) -> Callable[[Emitter], None]:
    """Sixteen selections of four bits; the immediate says whether inactive lanes are read, and what stands for them."""

    def body(e: Emitter) -> None:
        row, low, high = _checked_row(e, 1), e.read(2), e.read(3)
        selections = e.convert("zext", low, I64) | (e.convert("zext", high, I64) << 32)
        active, target, how = e.exec(), e.slot(0), e.immediate()
        e.do(f"%copy = alloca [{e.layout.lanes} x i32], align 64")
        e.store(_whole(e, row), "%copy", 4)
        any_lane = e.compare("ne", how & FETCH_INACTIVE, 0)
        zeros = e.compare("ne", how & BOUND_CONTROL, 0)

        def one(lane: Value) -> None:
            inside = e.binary("lshr", selections, (lane & 15) << 2) & 15
            source = (lane & -16 ^ (16 if crosses else 0)) | inside
            readable = e.compare("ne", e.binary("lshr", active, source) & 1, 0) | any_lane
            written = e.compare("ne", e.binary("lshr", active, lane) & 1, 0) & (readable | zeros)
            address = _lane_address(e, target, lane)
            found = e.select(readable, e.load(I32, e.at("%copy", source << 2), 4), 0)
            e.store(e.select(written, found, e.load(I32, address, 4)), address, 4)

        _loop(e, one)

    return body


def _exchange(e: Emitter) -> None:
    """The halves of a wave of 64; nothing happens in one of 32."""
    if e.layout.lanes == 32:
        e.go_on()
        return
    row, active, target = _checked_row(e, 1), e.exec(), e.slot(0)
    e.do(f"%copy = alloca [{e.layout.lanes} x i32], align 64")
    e.store(_whole(e, row), "%copy", 4)

    def one(lane: Value) -> None:
        address = _lane_address(e, target, lane)
        found = e.load(I32, e.at("%copy", (lane ^ 32) << 2), 4)
        writes = e.compare("ne", e.binary("lshr", active, lane) & 1, 0)
        e.store(e.select(writes, found, e.load(I32, address, 4)), address, 4)

    _loop(e, one)


def _swap(distance: int) -> Callable[[Emitter], None]:
    """Lanes of the second register that begin a group go to the first one's that end it, and back."""

    def body(e: Emitter) -> None:
        first, second = _checked_row(e, 0), _checked_row(e, 1)
        all_lanes = e.compare("eq", e.field(EXEC), -1)
        e.do(f"br i1 {all_lanes.text}, label %go, label %partly")
        e.label("partly")
        e.fault(FaultKind.UNDECODABLE)
        e.label("go")
        order = list(range(2 * e.layout.lanes))
        count = e.layout.lanes
        for lane in range(count):
            if lane & distance:
                order[lane], order[count + lane - distance] = count + lane - distance, lane
        kind = I32.of(count)
        a, b = _whole(e, first), _whole(e, second)
        for row, indices in ((first, order[:count]), (second, order[count:])):
            mask = ", ".join(f"i32 {i}" for i in indices)
            mixed = e.emit(kind, f"shufflevector {kind} {a.text}, {kind} {b.text}, <{count} x i32> <{mask}>")
            e.store(mixed, e.at("%w", e.convert("zext", row, I64)), 4)
        e.go_on()

    return body

