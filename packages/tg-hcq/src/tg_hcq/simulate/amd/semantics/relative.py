"""Scalar registers that ``m0`` counts from: moves to and from them.

Source: AMD, "RDNA3 Instruction Set Architecture", section 16.3 (S_MOVRELS_B32 and those after it).
"""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I32, I64, Emitter, FaultKind, InstructionSet, Type, Value
from ..architecture import Architecture


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    layout = to.layout(arch.lanes)
    m0, first, last = layout.scalar("m0"), layout.scalar("s"), layout.scalar("s", 105)

    def moved(kind: Type, read: int | None, written: int | None) -> Callable[[Emitter], None]:
        """Bits of M0 that count registers begin at ``read`` and ``written``, or the register is as it stands."""

        def place(e: Emitter, index: int, shift: int | None) -> Value:
            offset = e.slot(index)
            if shift is None:
                return offset
            count = e.field(m0, I32) >> shift
            if read is not None and written is not None:
                count = count & 0x3FF
            found = offset + (count << 2)
            end = e.value(I32, last + 4 - kind.bits // 8)
            inside = e.compare("uge", found, first) & e.compare("ule", found, end)
            e.do(f"br i1 {inside.text}, label %inside{index}, label %outside")
            e.label(f"inside{index}")
            return found

        def body(e: Emitter) -> None:
            source = place(e, 1, read)
            e.check(source, kind.bits // 32)
            target = place(e, 0, written)
            e.store(e.load(kind, e.scalar_address(source), 4), e.at("%w", e.convert("zext", target, Type("i", 64))), 4)
            e.go_on()
            e.label("outside")
            e.fault(FaultKind.UNDECODABLE)

        return body

    for kind in (I32, I64):
        to.control(f"s_movrels_b{kind.bits}", moved(kind, 0, None))
        to.control(f"s_movreld_b{kind.bits}", moved(kind, None, 0))
    to.control("s_movrelsd_2_b32", moved(I32, 0, 16))
