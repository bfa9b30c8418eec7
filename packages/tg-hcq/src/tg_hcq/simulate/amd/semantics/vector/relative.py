"""Rows of lanes from which ``m0`` or an index counts: moves to and from them, and two that change places.

Sources: AMD, "RDNA3 Instruction Set Architecture", 16.8 (V_MOVRELD_B32, V_MOVRELS_B32, V_MOVRELSD_B32,
V_MOVRELSD_2_B32, V_SWAPREL_B32); "AMD Instinct MI300 Instruction Set Architecture", 3.9.1 and 12.1 (S_SET_GPR_IDX_ON).
"""

from __future__ import annotations

from collections.abc import Callable

from ....engine import I32, I64, Emitter, FaultKind, Value
from ....engine.emitter import STRIP
from ....engine.handlers import active_bits
from ....engine.state import EXEC
from ...registers import INDEXED, RESULT, SOURCE
from .alu import Lanes

_LAST = 255


def add(to: Lanes) -> None:
    """Adds the handlers of this subject; operands are the result and the source."""
    m0 = to.to.layout(to.arch.lanes).scalar("m0")
    for name, read, written, swaps in (
        ("v_movreld_b32", None, 0, False), ("v_movrels_b32", 0, None, False), ("v_movrelsd_b32", 0, 0, False),
        ("v_movrelsd_2_b32", 0, 16, False), ("v_swaprel_b32", 0, 16, True),
    ):  # fmt: skip
        if name in to.there:
            to.to.control(name, _moved(lambda e: e.field(m0, I32), read, written, swaps))
    for flags, name in INDEXED.items():
        if INDEXED[SOURCE] in to.there:
            read, written = (0 if flags & flag else None for flag in (SOURCE, RESULT))
            to.to.control(name, _moved(_index(m0, flags), read, written))


def _index(m0: int, flags: int) -> Callable[[Emitter], Value]:
    """The third operand, which M0 takes with what counts from it."""

    def index(e: Emitter) -> Value:
        number = e.read(2) & 0xFF
        e.set_field(m0, (e.field(m0, I32) & ~0xF0FF) | number | flags << 12)
        return number

    return index


def _moved(
    counts: Callable[[Emitter], Value], read: int | None, written: int | None, swaps: bool = False
) -> Callable[[Emitter], None]:
    """Bits of M0 that count rows begin at ``read`` and ``written``, or the row is as it stands."""

    def row(e: Emitter, index: int, shift: int | None, number: Value) -> Value:
        offset = e.convert("zext", e.slot(index), I64)
        if shift is None:
            return offset
        count = number >> shift
        if written == 16:
            count = count & 0x3FF
        found = offset + e.convert("zext", count, I64) * e.layout.row_bytes
        inside = e.compare("ule", found, e.layout.vector(_LAST))
        e.do(f"br i1 {inside.text}, label %inside{index}, label %outside")
        e.label(f"inside{index}")
        return found

    def body(e: Emitter) -> None:
        executing, number = e.exec(), counts(e)
        source, target = row(e, 1, read, number), row(e, 0, written, number)
        first = e.convert("trunc", source, I32)
        e.check(first, 1)
        if swaps:
            e.check(e.convert("trunc", target, I32), 1)
        of_row = e.compare("sge", first, e.layout.rows)
        one = e.load(I32, e.scalar_address(e.select(of_row, e.value(I32, EXEC), first)), 4)
        source = e.select(of_row, source, e.layout.rows)
        for lane in range(0, e.layout.lanes, STRIP):
            there, here = (e.at("%w", offset + 4 * lane) for offset in (source, target))
            active = active_bits(e, executing, e.value(I64, lane))
            found = e.load(I32.of(STRIP), there, 4)
            old = e.load(I32.of(STRIP), here, 4)
            value = e.select(of_row, found, e.value(found.type, one))
            e.store(e.select(active, value, old), here, 4)
            if swaps:
                e.store(e.select(active, old, found), there, 4)
        e.go_on()
        e.label("outside")
        e.fault(FaultKind.UNDECODABLE)

    return body
