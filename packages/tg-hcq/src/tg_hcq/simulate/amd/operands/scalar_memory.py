"""Scalar loads: what is loaded, the base, an offset in a register or none."""

from __future__ import annotations

from ...engine import Operation, Undecodable
from ...engine.handlers import ControlHandler
from .memory import LAST, ZERO, scope_of
from .placing import Placed, Placing

ENCODINGS = ("SMEM",)


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    fields, places, handler = p.fields, p.places, p.handler(p.found.name)
    if p.found.name in ("s_memtime", "s_memrealtime"):
        return Placed(handler.name, [places.result(fields.pop("sdst"), 64)])
    if isinstance(handler, ControlHandler):
        for name in ("sbase", "offset", "soffset", "sdata"):
            fields.pop(name, None)
        return Placed(handler.name, [])
    bits, width = p.found.row.operands["sdst"].bits, 24 if p.arch.generation >= 12 else 21
    offset = fields.pop("offset", 0)
    base = fields.pop("sbase")
    operands = [places.result(fields.pop("sdst"), min(bits, 64)), places.scalar(base, "i", 64)]
    if "_buffer_" in p.found.name:
        if offset >> width - 1:
            raise Undecodable("a buffer has no negative offset")
        if base >= LAST:
            raise Undecodable("descriptors lie in scalar registers")
        operands.append(places.scalar(base + 2, "i", 32))
    operands.append(places.scalar(fields.pop("soffset", ZERO), "i", 32))
    scope_of(p.arch, fields.pop("cpol"), Operation.LOAD)
    return Placed(handler.name, operands, offset - (offset >> width - 1 << width))
