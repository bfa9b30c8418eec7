"""Scalar loads, hints to load early, and the scalar cache.

Loads from a buffer look at three things of its descriptor: where it begins, how far apart records lie, and how many
there are; of no distance, how many bytes. What lies outside is zero. A load that is partly outside is a fault.

Source: AMD, "RDNA3 Instruction Set Architecture", chapter 8; "RDNA4", the same.
"""

from __future__ import annotations

import dataclasses

from ...engine import I64, Emitter, InstructionSet, Operation, Scope, Shape, Space, Value, scalar
from ...engine.handlers import Semantics
from ..architecture import Architecture
from .waits import Counter

_WORDS = {32: "dword", 64: "dwordx2", 96: "dwordx3", 128: "dwordx4", 256: "dwordx8", 512: "dwordx16"}
"""As gfx9 and gfx10 call so many bits."""
_BASE, _STRIDE = (1 << 48) - 1, 0x3FFF
"""Of a descriptor's first two words; the two bits above the stride say that words lie in other places."""
PREFETCHES = ("s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel")


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for bits, older in _WORDS.items():
        shape = Shape(Space.GLOBAL, Operation.SCALAR_LOAD, bits // 8, counter=Counter.SCALAR, scope=Scope.UNIT)
        name = f"b{bits}" if arch.generation >= 11 else older
        to.memory(f"s_load_{name}", shape, _words, [scalar(I64), scalar()])
        _of_buffer(to, f"s_buffer_load_{name}", shape)
    for bits in (8, 16):
        for signed in (False, True):
            shape = Shape(Space.GLOBAL, Operation.SCALAR_LOAD, bits // 8, signed, counter=Counter.SCALAR)
            name = f"{'i' if signed else 'u'}{bits}"
            to.memory(f"s_load_{name}", shape, _bytes, [scalar(I64), scalar()])
            _of_buffer(to, f"s_buffer_load_{name}", shape)
    for name in PREFETCHES:
        to.control(name, lambda e: e.go_on())


def _of_buffer(to: InstructionSet, name: str, shape: Shape) -> None:
    bounded = dataclasses.replace(shape, bounded=True)
    to.memory(name, bounded, _inside(shape.nbytes), [scalar(I64), scalar(), scalar()])


def _inside(nbytes: int) -> Semantics:
    """The address, whether it lies outside, and whether what becomes of it is not known."""
    whole = -4 if nbytes >= 4 else -1

    def semantics(e: Emitter, base: Value, records: Value, offset: Value) -> tuple[Value, Value, Value]:
        place = e.convert("zext", offset, I64) + e.immediate() & whole
        stride, count = base >> 48 & _STRIDE, e.convert("zext", records, I64)
        size = e.select(e.compare("eq", stride, 0), count, count * stride)
        outside = e.compare("uge", place, size)
        partly = e.compare("ugt", place + nbytes, size) & ~outside
        swizzled = e.compare("ne", base >> 62, 0)
        return (base & _BASE & whole) + place, outside, partly | swizzled

    return semantics


def _words(e: Emitter, base: Value, offset: Value) -> Value:
    """Base and offset are cut to a multiple of 4."""
    return (base & -4) + (e.convert("zext", offset, I64) + e.immediate() & -4)


def _bytes(e: Emitter, base: Value, offset: Value) -> Value:
    return base + e.convert("zext", offset, I64) + e.immediate()
