"""Accesses of lanes by a buffer's descriptor: where it begins, how large it is, and what becomes of lanes outside.

Offsets are that of the lane, of the wave and of the instruction, and the stride for each that the lane's index counts.
Lanes outside load zeros, to LDS as well, and store nothing. What a descriptor says besides is a fault, but that of
scratch on gfx10, in which words of the lanes lie beside one another; so is a lane that is partly outside, where words
are looked at one by one, or manuals do not say.

Sources: AMD, "RDNA 2 Instruction Set Architecture", 8.1.5; "RDNA3", 9.4 and table 43; "RDNA4", 9.4; "AMD Instinct MI300
Instruction Set Architecture", 9.1.5 (descriptors, addresses, range checking); the kernel's ``gc_*_sh_mask.h`` and
LLVM, "User Guide for AMDGPU Backend", "Relaxed Buffer OOB Mode" (offsets do not wrap); ``ROCm/rocm-systems``, pull
request 10928 (zeros in LDS, as a gfx950 was seen to store).
"""

from __future__ import annotations

import dataclasses
from typing import Final

from ...engine import I64, Emitter, InstructionSet, Operation, Shape, Space, Type, Value, either, scalar
from ...engine.handlers import Semantics
from ..architecture import Architecture
from .atomics import memory_atomics
from .memory import counters, moves, to_shared

_BASE: Final = (1 << 48) - 1
_STRIDE: Final = 0x3FFF
"""At bit 48; the two bits above say that words are swizzled."""
_SELECTIONS: Final = 0xFFF
"""Of the last word, DST_SEL: of formats, which are not executed."""
_ADDS_LANE: Final = 1 << 23
_SCRATCH: Final = _ADDS_LANE | 3 << 21 | 3 << 30
"""Of the last word: ADD_TID_ENABLE, INDEX_STRIDE, TYPE."""
_FORMAT: Final = {9: 0xF << 15, 10: 0x7F << 12, 11: 0x3F << 12, 12: 0x3F << 12}
"""Where zero is a buffer that is not there: DATA_FORMAT, FORMAT."""
_NUMBER_FORMAT, _LEVEL, _CHECK = 0x7 << 12, 1 << 24, 28
"""NUM_FORMAT of gfx9; RESOURCE_LEVEL, which newer ones ignore; where OOB_SELECT lies, of which gfx9 has none."""
_STRUCTURED, _INDEXED, _UNCHECKED, _RAW = range(4)
"""OOB_SELECT."""


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject; behind data stand the lane's offset and index, the descriptor, the wave's."""
    sources = [either(), either(), scalar(I64), scalar(), scalar(), scalar()]
    for name, make in moves(arch):
        shape = dataclasses.replace(make(Space.GLOBAL), bounded=True)
        to.memory(f"buffer_{name}", shape, _place(arch, shape), sources)
    for name, make in to_shared(arch) if arch.generation <= 10 else ():
        shape = dataclasses.replace(make(Space.GLOBAL), bounded=True)
        to.memory(f"buffer_{name}.lds", shape, _place(arch, shape), [*sources, scalar()])
    for name, atomic in memory_atomics(arch).items():
        for returns in (False, True):
            counter, also = counters(arch, Space.GLOBAL, store=not returns)
            shape = Shape(
                Space.GLOBAL, Operation.ATOMIC, atomic.nbytes, op=atomic.op, counter=counter, also=also, scope=None,
                returns=returns, modify=atomic.modify, operands=atomic.operands, bounded=True,
            )  # fmt: skip
            to.memory(f"buffer_atomic_{name}{'.rtn' if returns else ''}", shape, _place(arch, shape), sources)


def _place(arch: Architecture, shape: Shape) -> Semantics:
    """The address, whether it lies outside, and whether that is not known."""

    def semantics(e: Emitter, lane: Value, index: Value, base: Value, *rest: Value) -> tuple[Value, Value, Value]:
        records, layout, wave = (e.convert("zext", value, I64) for value in rest)
        flags = Type("i", 1, lane.type.lanes)
        offset = e.convert("zext", lane, I64) + e.value(I64.of(lane.type.lanes), e.immediate())
        number, stride = e.convert("zext", index, I64), base >> 48 & _STRIDE
        inner = offset + number * stride
        first = (base & _BASE) + wave
        # of a buffer without structure, what the wave skips is taken from the end
        room = e.intrinsic("usub.sat", records, wave)
        unclear = e.value(flags, 0)
        if arch.generation == 9:
            outside = e.compare("uge", inner, room)
            ends = e.compare("ugt", inner + shape.nbytes, room)
            unclear = ends & ~outside
        else:
            outside, unclear = _raw(e, shape, inner, room)
            check = layout >> _CHECK & 3
            beyond = e.compare("uge", number, records)
            structured = beyond | e.compare("ugt", offset + shape.nbytes, stride)
            raw = e.compare("eq", check, _RAW)
            outside = _chosen(e, check, {_STRUCTURED: structured, _INDEXED: beyond,
                                         _UNCHECKED: e.compare("eq", records, 0)}, outside)  # fmt: skip
            unclear = unclear & raw
        fine = _known(e, arch, base, layout)
        address, unclear = first + inner, unclear | ~fine
        if arch.generation == 10 and shape.nbytes <= 4 and shape.operation is not Operation.ATOMIC:
            scratch = _is_scratch(e, base, layout)
            address = e.select(scratch, _swizzled(e, offset, first), address)
            outside, unclear = outside & ~scratch, unclear & ~scratch
        return address, outside & ~unclear, unclear

    return semantics


def _chosen(e: Emitter, number: Value, values: dict[int, Value], other: Value) -> Value:
    for key, value in values.items():
        other = e.select(e.compare("eq", number, key), value, other)
    return other


def _raw(e: Emitter, shape: Shape, inner: Value, room: Value) -> tuple[Value, Value]:
    """Whether all of a lane lies outside, and whether a part does where words are looked at one by one."""
    ends = e.compare("ugt", inner + shape.nbytes, room)
    if shape.operation is Operation.ATOMIC or shape.nbytes <= 4:
        return ends, e.value(ends.type, 0)
    outside = e.compare("ugt", inner + 4, room)
    return outside, ends & ~outside


def _known(e: Emitter, arch: Architecture, base: Value, layout: Value) -> Value:
    """Whether a descriptor says nothing that is not executed: a format, no words in other places, no lane numbers."""
    formats = _FORMAT[arch.generation]
    taken = _SELECTIONS | formats | (_NUMBER_FORMAT if arch.generation == 9 else _LEVEL | 3 << _CHECK)
    fine = e.compare("eq", base >> 62, 0) & e.compare("eq", layout & ~taken, 0)
    fine = fine & e.compare("ne", layout & formats, 0)
    # whether gfx9 counts by indices where there is a stride is not known
    return fine & e.compare("eq", base >> 48 & _STRIDE, 0) if arch.generation == 9 else fine


def _is_scratch(e: Emitter, base: Value, layout: Value) -> Value:
    swizzles = e.compare("ne", base >> 63, 0)
    size = 2 if e.layout.lanes == 32 else 3
    return swizzles & e.compare("eq", layout & _SCRATCH, _ADDS_LANE | size << 21)


def _swizzled(e: Emitter, offset: Value, first: Value) -> Value:
    """Words of the lanes lie beside one another (RDNA 2, 8.1.5)."""
    return first + ((offset & 0xFFFF_FFFC) * e.layout.lanes) + (offset & 3) + (e.lane_numbers() << 2)
