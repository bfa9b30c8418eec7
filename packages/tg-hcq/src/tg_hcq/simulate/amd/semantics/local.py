"""Accesses of LDS, and lanes that give one another words by way of it.

Addresses are 32 bits and a constant; beyond what the workgroup has is a fault.

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 12 and section 16.15; "CDNA3", 12.13.
"""

from __future__ import annotations

from collections.abc import Callable

from ...engine import (
    I32,
    I64,
    Emitter,
    Half,
    InstructionSet,
    Operation,
    Shape,
    Space,
    Status,
    Type,
    Value,
    state,
    vector,
)
from ..architecture import Architecture
from .atomics import local_atomics
from .waits import Counter


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    read, write = ("load", "store") if arch.generation >= 11 else ("read", "write")

    def put(name: str, shape: Shape) -> None:
        to.memory(f"ds_{name}", shape, _pair if shape.pair else _local, [vector()])

    for nbytes in (4, 8, 12, 16):
        put(f"{read}_b{8 * nbytes}", _shape(Operation.LOAD, nbytes))
        put(f"{write}_b{8 * nbytes}", _shape(Operation.STORE, nbytes))
    for nbytes in (1, 2):
        for signed in (False, True):
            kind = f"{'i' if signed else 'u'}{8 * nbytes}"
            put(f"{read}_{kind}", _shape(Operation.LOAD, nbytes, signed))
            if not arch.has("SRAMECC"):  # else the other half would be lost
                put(f"{read}_{kind}_d16", _shape(Operation.LOAD, nbytes, signed, Half.LOW))
                put(f"{read}_{kind}_d16_hi", _shape(Operation.LOAD, nbytes, signed, Half.HIGH))
        put(f"{write}_b{8 * nbytes}", _shape(Operation.STORE, nbytes))
        put(f"{write}_b{8 * nbytes}_d16_hi", _shape(Operation.STORE, nbytes, half=Half.HIGH))
    for nbytes in (4, 8):
        for stride in (False, True):
            what = ("2addr_stride64" if stride else "2addr") if arch.generation >= 11 else "2st64" if stride else "2"
            joined = "_" if arch.generation >= 11 else ""
            put(f"{read}{joined}{what}_b{8 * nbytes}", _shape(Operation.LOAD, nbytes, pair=True))
            put(f"{write}{joined}{what}_b{8 * nbytes}", _shape(Operation.STORE, nbytes, pair=True))
    for name, atomic in local_atomics(arch).items():
        verb, kind = name.rsplit("_", 1)
        for returns in (False, True):
            put(f"{verb}_rtn_{kind}" if returns else name, Shape(
                Space.SHARED, Operation.ATOMIC, atomic.nbytes, op=atomic.op, counter=Counter.SHARED, scope=None,
                returns=returns, modify=atomic.modify, operands=atomic.operands))  # fmt: skip
    to.control("ds_nop", lambda e: e.go_on())
    if arch.lanes == 32 or arch.generation == 9:
        to.control("ds_permute_b32", _exchange(_given, 2))
        to.control("ds_bpermute_b32", _exchange(_taken, 2))
    to.control("ds_swizzle_b32", _exchange(_swizzled, 1))


def _shape(
    operation: Operation, nbytes: int, signed: bool = False, half: Half = Half.NEITHER, pair: bool = False
) -> Shape:
    return Shape(Space.SHARED, operation, nbytes, signed, counter=Counter.SHARED, scope=None, aligned=False, half=half,
                 pair=pair)  # fmt: skip


def _local(e: Emitter, address: Value) -> Value:
    constant = e.convert("trunc", e.immediate(), I32)
    return e.convert("zext", address + e.value(address.type, constant), I64)


def _pair(e: Emitter, address: Value) -> Value:
    return _local(e, address)


def _exchange(body: Callable[[Emitter, str], None], sources: int) -> Callable[[Emitter], None]:
    """Computes all lanes' words in a row of its own, and writes those of the active ones."""

    def handler(e: Emitter) -> None:
        lanes = I32.of(e.layout.lanes)
        e.check(e.value(I32, state.EXEC), 2)
        for index in range(1, 1 + sources):
            e.check(e.slot(index), 1)
        words = e.emit(I64, f"alloca {lanes}").text
        e.store(e.value(lanes, 0), words)
        body(e, words)
        active = e.convert("trunc", e.field(state.EXEC), Type("i", e.layout.lanes))
        kind = Type("i", 1).of(e.layout.lanes)
        mask = e.emit(kind, f"bitcast {active.type} {active.text} to {kind}")
        target = e.at("%w", e.convert("zext", e.slot(0), I64))
        e.store(e.select(mask, e.load(lanes, words), e.load(lanes, target, 4)), target, 4)
        if not e.hostile:
            e.go_on()
            return
        fields: tuple[Value | int, ...] = (
            int(Operation.EXCHANGE), int(Space.SHARED), 4, 0, e.slot(0), int(Counter.SHARED), 0, 1, -1, 0, 1, 0, 0,
            e.slot(0),
        )  # fmt: skip
        for i, number in enumerate(fields):
            e.store(e.value(I32, number), e.at("%w", state.REQUEST + 4 * i))
        e.stop(Status.ACCESS)

    return handler


def _row(e: Emitter, index: int) -> str:
    return e.at("%w", e.convert("zext", e.slot(index), I64))


def _is_active(e: Emitter, lane: Value) -> Value:
    mask = e.field(state.EXEC)
    return e.compare("ne", (mask >> e.convert("zext", lane, I64)) & 1, 0)


def _named(e: Emitter, addresses: str, lane: int) -> Value:
    """The lane that a lane's address names, of words; bits beyond the lanes do not count."""
    address = e.load(I32, e.at(addresses, 4 * lane)) + e.convert("trunc", e.immediate(), I32)
    return address >> 2 & (e.layout.lanes - 1)


def _word(e: Emitter, row: str, lane: Value) -> Value:
    return e.load(I32, e.at(row, e.convert("zext", lane << 2, I64)))


def _taken(e: Emitter, words: str) -> None:
    """From the lane that the address names; zero of one that is not active."""
    data, addresses = _row(e, 1), _row(e, 2)
    for lane in range(e.layout.lanes):
        source = _named(e, addresses, lane)
        e.store(e.select(_is_active(e, source), _word(e, data, source), 0), e.at(words, 4 * lane))


def _given(e: Emitter, words: str) -> None:
    """To the lane that the address names; the highest of those that name the same one wins."""
    data, addresses = _row(e, 1), _row(e, 2)
    for lane in range(e.layout.lanes):
        target = e.at(words, e.convert("zext", _named(e, addresses, lane) << 2, I64))
        own = e.load(I32, e.at(data, 4 * lane))
        e.store(e.select(_is_active(e, e.value(I32, lane)), own, e.load(I32, target)), target)


def _swizzled(e: Emitter, words: str) -> None:
    """Within four lanes any order, or within 32 the number of the lane by a mask of and, or and xor."""
    data, how = _row(e, 1), e.convert("trunc", e.immediate(), I32)
    quads = e.compare("ne", how & 0x8000, 0)
    for lane in range(e.layout.lanes):
        in_quad = (how >> 2 * (lane & 3) & 3) | (lane & ~3)
        by_masks = ((how & (lane & 31)) | (how >> 5 & 31)) ^ (how >> 10 & 31)
        source = e.select(quads, in_quad, by_masks | (lane & ~31))
        e.store(e.select(_is_active(e, source), _word(e, data, source), 0), e.at(words, 4 * lane))
