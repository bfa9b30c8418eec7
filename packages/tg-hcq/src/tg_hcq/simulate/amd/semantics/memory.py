"""Accesses of lanes: global memory, generic addresses, scratch.

An address is a base and an offset of 32 bits, each of which the instruction has in vector or scalar registers or not at
all, and a constant. Behind the operands of the address stands who sees the access (``engine.Scope``).

Sources: AMD, "RDNA3 Instruction Set Architecture", chapter 11; "CDNA3", chapter 9; LLVM, "User Guide for AMDGPU
Backend", "Memory Model".
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

from ...engine import (
    I32,
    I64,
    Emitter,
    Half,
    InstructionSet,
    Operation,
    Shape,
    Space,
    Value,
    either,
    scalar,
)
from ..architecture import Architecture
from .atomics import memory_atomics
from .waits import Counter


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name, make in moves(arch):
        to.memory(f"global_{name}", make(Space.GLOBAL), _based, [either(I64), either()])
        to.memory(f"flat_{name}", make(Space.GENERIC), _based, [either(I64), either()])
        to.memory(f"scratch_{name}", make(Space.SCRATCH), _private, [either(), scalar()])
    if arch.generation == 9:
        for name, make in to_shared(arch):
            there = name.replace("load_", "load_lds_")
            to.memory(f"global_{there}", make(Space.GLOBAL), _based, [either(I64), either(), scalar()])
            to.memory(f"scratch_{there}", make(Space.SCRATCH), _private, [either(), scalar(), scalar()])
    for name, atomic in memory_atomics(arch).items():
        for space, prefix in ((Space.GLOBAL, "global"), (Space.GENERIC, "flat")):
            for returns in (False, True):
                counter, also = counters(arch, space, store=not returns)
                shape = Shape(
                    space, Operation.ATOMIC, atomic.nbytes, op=atomic.op, counter=counter, also=also, scope=None,
                    returns=returns, modify=atomic.modify, operands=atomic.operands,
                )  # fmt: skip
                to.memory(f"{prefix}_atomic_{name}{'.rtn' if returns else ''}", shape, _based, [either(I64), either()])


def to_shared(arch: Architecture) -> Iterator[tuple[str, Callable[[Space], Shape]]]:
    """Loads to LDS. Words of the lanes lie beside one another, three of gfx950 in the room of four; less is extended.

    The first lies where M0 and the instruction say, whose constant counts in both memories.

    Sources: AMD, "AMD Instinct CDNA4 Instruction Set Architecture", 9.1.9 "Memory Buffer Load to LDS"; LLVM,
    "User Guide for AMDGPU Backend", ``llvm.amdgcn.global.load.lds``, and ``SITargetLowering::getTgtMemIntrinsic`` (a
    word is stored).
    """
    sizes = (1, 2, 4, 12, 16) if arch.has("GFX950Insts") else (1, 2, 4)
    for name, make in moves(arch):
        shape = make(Space.GLOBAL)
        if shape.operation is Operation.LOAD and shape.nbytes in sizes and shape.half is Half.NEITHER:
            yield name, functools.partial(_to_slots, make)


def _to_slots(make: Callable[[Space], Shape], space: Space) -> Shape:
    shape = make(space)
    return dataclasses.replace(shape, slot=4 if shape.nbytes <= 4 else 16)


def counters(arch: Architecture, space: Space, store: bool) -> tuple[int, int]:
    """What counts an access, and what else does: generic ones may be of LDS as well."""
    counter = Counter.STORE if store and arch.generation >= 10 else Counter.LOAD
    return counter, Counter.SHARED if space is Space.GENERIC else -1


def halves(arch: Architecture) -> tuple[Half, ...]:
    """The halves of a register that can be loaded: with error correction of registers, the other one is lost."""
    return () if arch.has("SRAMECC") else (Half.LOW, Half.HIGH)


def moves(arch: Architecture) -> Iterator[tuple[str, Callable[[Space], Shape]]]:
    """Loads and stores by what follows the name of the memory."""
    newer = arch.generation >= 11
    words = {4: "b32", 8: "b64", 12: "b96", 16: "b128"} if newer else {
        4: "dword", 8: "dwordx2", 12: "dwordx3", 16: "dwordx4"}  # fmt: skip
    for nbytes, name in words.items():
        yield f"load_{name}", _shape(arch, Operation.LOAD, nbytes)
        yield f"store_{name}", _shape(arch, Operation.STORE, nbytes)
    for nbytes, older in ((1, "byte"), (2, "short")):
        bits = 8 * nbytes
        for signed in (False, True):
            name = f"{'i' if signed else 'u'}{bits}" if newer else f"{'s' if signed else 'u'}{older}"
            yield f"load_{name}", _shape(arch, Operation.LOAD, nbytes, signed)
            if nbytes == 1 or not signed:
                for half in halves(arch):
                    yield _half_name(name, half, newer), _shape(arch, Operation.LOAD, nbytes, signed, half)
        yield f"store_{f'b{bits}' if newer else older}", _shape(arch, Operation.STORE, nbytes)
        high = f"store_d16_hi_b{bits}" if newer else f"store_{older}_d16_hi"
        yield high, _shape(arch, Operation.STORE, nbytes, half=Half.HIGH)


def _half_name(name: str, half: Half, newer: bool) -> str:
    high = "_hi" if half is Half.HIGH else ""
    if newer:
        return f"load_d16{high}_{'b16' if name == 'u16' else name}"
    return f"load_{'short' if name == 'ushort' else name}_d16{high}"


def _shape(
    arch: Architecture, operation: Operation, nbytes: int, signed: bool = False, half: Half = Half.NEITHER
) -> Callable[[Space], Shape]:
    def made(space: Space) -> Shape:
        counter, also = counters(arch, space, operation is Operation.STORE)
        return Shape(space, operation, nbytes, signed, counter=counter, also=also, scope=None, aligned=False, half=half)

    return made


def _based(e: Emitter, base: Value, offset: Value) -> Value:
    return base + e.convert("zext", offset, I64) + e.immediate()


def _private(e: Emitter, lane: Value, wave: Value) -> Value:
    """Of 32 bits, so that what is negative lies outside."""
    constant = e.convert("trunc", e.immediate(), I32)
    return e.convert("zext", lane + e.value(lane.type, wave) + e.value(lane.type, constant), I64)
