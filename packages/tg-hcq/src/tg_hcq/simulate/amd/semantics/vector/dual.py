"""Two instructions that are issued at once: both read before either writes.

Source: AMD, "RDNA3 Instruction Set Architecture", 7.6 "Dual Issue VALU".
"""

from __future__ import annotations

from ....engine import I1, I32, I64, Emitter
from ....engine.emitter import STRIP
from ....engine.handlers import active_bits
from ....engine.state import NEXT, OPERANDS, PARTS, RECORD_BYTES
from ...registers import temporaries
from .alu import Lanes

SECOND = 6
"""Where the operands of the second instruction begin in the record."""


def add(to: Lanes) -> None:
    """Adds the handler; the result of the first instruction lies in a row of its own until the second is done."""
    row = temporaries(to.arch) + 10
    to.to.control("dual", lambda e: _dual(e, row))


def _dual(e: Emitter, row: int) -> None:
    kept, target = e.layout.vector(row), e.slot(0)
    record = I32.of(RECORD_BYTES // 4)
    e.do(f"%first = alloca [{RECORD_BYTES} x i8], align 64")
    e.do(f"%second = alloca [{RECORD_BYTES} x i8], align 64")
    whole = e.load(record, "%r", 8)
    e.store(whole, "%first", 8)
    e.store(whole, "%second", 8)
    e.store(e.value(I32, kept), e.at("%first", OPERANDS), 4)
    for index in range(SECOND):
        e.store(e.slot(SECOND + index), e.at("%second", OPERANDS + 4 * index), 4)
    active = e.exec()
    for number, name in enumerate(("first", "second")):
        handler = e.emit(I64, f"load ptr, ptr {e.at('%r', PARTS + 8 * number)}")
        done = e.emit(I64, f"call ptr {handler.text}(ptr %w, ptr %{name})")
        fine = e.emit(I1, f"icmp ne ptr {done.text}, null")
        e.do(f"br i1 {fine.text}, label %{name}.done, label %refused")
        e.label(f"{name}.done")
    for lane in range(0, e.layout.lanes, STRIP):
        place = e.at("%w", e.convert("zext", target, I64) + 4 * lane)
        old = e.load(I32.of(STRIP), place, 4)
        new = e.load(I32.of(STRIP), e.at("%w", kept + 4 * lane), 4)
        e.store(e.select(active_bits(e, active, e.value(I64, lane)), new, old), place, 4)
    distance = e.convert("sext", e.load(I32, e.at("%r", NEXT)), I64)
    e.do(f"ret ptr {e.at('%r', distance)}")
    e.label("refused")
    e.do("ret ptr null")
