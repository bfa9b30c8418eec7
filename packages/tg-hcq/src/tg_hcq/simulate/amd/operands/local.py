"""Accesses of LDS: the result, data and the address; behind them who sees the access, which all of the workgroup do."""

from __future__ import annotations

from ...engine import Scope, Undecodable
from ...engine.handlers import ControlHandler
from ...engine.transfers import MemoryHandler
from .memory import vector
from .placing import Placed, Placing

ENCODINGS = ("DS",)
STRIDE = 64
"""Elements between two that ``st64`` and ``stride64`` count."""


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    fields, handler = p.fields, p.handler(p.found.name)
    operands = [vector(p, name) for name in ("vdst", "data0", "data1") if name in fields]
    if "addr" in fields:
        operands.append(vector(p, "addr"))
    if isinstance(handler, ControlHandler):
        constant = fields.pop("offset", 0)
        if p.found.name == "ds_swizzle_b32" and constant >> 15 and constant >> 8 != 0x80:
            raise Undecodable("rotations, and orders of a Fourier transform, are not executed yet")
        return Placed(handler.name, operands, constant)
    assert isinstance(handler, MemoryHandler)
    if handler.shape.pair:
        unit = handler.shape.nbytes * (STRIDE if "st64" in p.found.name or "stride64" in p.found.name else 1)
        first, second = (fields.pop(name) * unit for name in ("offset0", "offset1"))
        constant = first | (second - first) % (1 << 32) << 32
    else:
        constant = fields.pop("offset")
    if fields.pop("gds", 0):
        raise Undecodable("global data share is not executed yet")
    return Placed(handler.name, [*operands, int(Scope.UNIT)], constant)
