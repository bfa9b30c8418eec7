"""Scalar loads, hints to load early, and the scalar cache.

Source: AMD, "RDNA3 Instruction Set Architecture", chapter 8; "RDNA4", the same.
"""

from __future__ import annotations

from ...engine import I64, Emitter, InstructionSet, Operation, Scope, Shape, Space, Value, scalar
from ..architecture import Architecture
from .waits import Counter

_WORDS = {32: "dword", 64: "dwordx2", 96: "dwordx3", 128: "dwordx4", 256: "dwordx8", 512: "dwordx16"}
"""As gfx9 and gfx10 call so many bits."""
PREFETCHES = ("s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel")


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for bits, older in _WORDS.items():
        shape = Shape(Space.GLOBAL, Operation.SCALAR_LOAD, bits // 8, counter=Counter.SCALAR, scope=Scope.UNIT)
        name = f"b{bits}" if arch.generation >= 11 else older
        to.memory(f"s_load_{name}", shape, _words, [scalar(I64), scalar()])
    for bits in (8, 16):
        for signed in (False, True):
            shape = Shape(Space.GLOBAL, Operation.SCALAR_LOAD, bits // 8, signed, counter=Counter.SCALAR)
            to.memory(f"s_load_{'i' if signed else 'u'}{bits}", shape, _bytes, [scalar(I64), scalar()])
    for name in PREFETCHES:
        to.control(name, lambda e: e.go_on())


def _words(e: Emitter, base: Value, offset: Value) -> Value:
    """Base and offset are cut to a multiple of 4."""
    return (base & -4) + (e.convert("zext", offset, I64) + e.immediate() & -4)


def _bytes(e: Emitter, base: Value, offset: Value) -> Value:
    return base + e.convert("zext", offset, I64) + e.immediate()
