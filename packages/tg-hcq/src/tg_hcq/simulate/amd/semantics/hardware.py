"""Registers of the hardware that programs read and write: MODE, and on gfx10.3 where private memory begins.

No generic address leads there: kernels set it for functions that could have such addresses.

Sources: AMD, "RDNA3 Instruction Set Architecture", sections 3.4.1 and 16.4 (S_GETREG_B32, S_SETREG_B32); LLVM,
``SIDefines.h`` (``ID_FLAT_SCR_LO``).
"""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I32, I64, Emitter, FaultKind, InstructionSet, Value
from ..architecture import Architecture
from ..registers import FLAT_SCRATCH, FLOATS, OF_NUMBERS


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    mode = to.layout(arch.lanes).scalar("mode")
    to.control("s_getreg_b32", _get(mode))
    to.control("s_setreg_b32", _set(mode, lambda e: e.read(0)))
    to.control("s_setreg_imm32_b32", _set(mode, lambda e: e.convert("trunc", e.immediate() >> 32, I32)))
    if arch.generation == 10:
        for word, number in enumerate(FLAT_SCRATCH):
            to.control(f"s_setreg_b32.{number}", _whole(to.layout(arch.lanes).scalar("flat_scratch", word)))
    to.control("s_round_mode", _replace(mode, 0))
    to.control("s_denorm_mode", _replace(mode, 4))


def _whole(register: int) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        e.set_field(register, e.read(0))
        e.go_on()

    return body


def _field(e: Emitter) -> tuple[Value, Value]:
    """Where the bits begin, and as many ones as there are."""
    how = e.convert("trunc", e.immediate(), I32)
    one = e.value(I64, 1) << e.convert("zext", (how >> 11 & 31) + 1, I64)
    return how >> 6 & 31, e.convert("trunc", one - 1, I32)


def _get(mode: int) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        first, ones = _field(e)
        e.write(0, (e.field(mode, I32) >> first) & ones)
        e.go_on()

    return body


def _set(mode: int, value: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        first, ones = _field(e)
        new = (value(e) & ones) << first
        _store(e, mode, (e.field(mode, I32) & ~(ones << first)) | new)

    return body


def _replace(mode: int, first: int) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        new = e.convert("trunc", e.immediate(), I32) & 15
        _store(e, mode, (e.field(mode, I32) & ~(15 << first)) | (new << first))

    return body


def _store(e: Emitter, mode: int, value: Value) -> None:
    """The mode, unless it asks for what no handler does: another rounding, exceptions, FP16_OVFL, skipping, …"""
    e.do(f"br i1 {e.compare('eq', value & ~OF_NUMBERS, FLOATS).text}, label %known, label %unknown")
    e.label("unknown")
    e.fault(FaultKind.UNDECODABLE)
    e.label("known")
    e.set_field(mode, value)
    e.go_on()
