"""Loads and stores: scalar ones, and those of lanes in global memory."""

from __future__ import annotations

from ...engine import I64, Emitter, InstructionSet, Operation, Shape, Space, Value, scalar, vector
from ..architecture import Architecture

LOADED, SCALAR_LOADED = range(2)
"""Counters of what is not waited for yet."""


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject; ``.saddr`` has the base in scalar registers and an unsigned offset a lane."""
    for bits in (32, 64, 128, 256, 512):
        shape = Shape(Space.GLOBAL, Operation.SCALAR_LOAD, bits // 8, counter=SCALAR_LOADED)
        to.memory(f"s_load_b{bits}", shape, _scalar, [scalar(I64), scalar()])
    for verb, operation in (("load", Operation.LOAD), ("store", Operation.STORE)):
        for bits in (32, 64, 96, 128):
            shape = Shape(Space.GLOBAL, operation, bits // 8, counter=LOADED)
            to.memory(f"global_{verb}_b{bits}", shape, _lanes, [vector(I64)])
            to.memory(f"global_{verb}_b{bits}.saddr", shape, _based, [vector(), scalar(I64)])


def _scalar(e: Emitter, base: Value, offset: Value) -> Value:
    """Both are cut to a multiple of 4."""
    return (base & -4) + (e.convert("zext", offset, I64) + e.immediate() & -4)


def _lanes(e: Emitter, address: Value) -> Value:
    return address + e.immediate()


def _based(e: Emitter, offset: Value, base: Value) -> Value:
    return base + e.convert("zext", offset, I64) + e.immediate()
