"""Arithmetic of lanes."""

from __future__ import annotations

from ...engine.emitter import Operand, Where
from ..registers import VCC
from .placing import Placed, Placing

ENCODINGS = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3SD")


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    handler, fields, places = p.handler(p.found.name), p.fields, p.places
    operands = []
    for result in handler.results:
        if result.where is Where.MASK:
            operands.append(places.result(fields.pop("sdst", fields.pop("vdst", VCC))))
        else:
            operands.append(places.vector(fields.pop("vdst")))
    operands += [_source(p, f"src{i}", source) for i, source in enumerate(handler.sources)]
    return Placed(handler.name, operands)


def _source(p: Placing, name: str, operand: Operand) -> int:
    if operand.where is Where.MASK:
        return p.places.scalar(p.fields.pop(name, VCC), "i", 32)
    number, of_class = p.fields.pop(name), p.found.row.operands[name].register_class
    if number >= 256 or of_class.startswith(("VGPR", "VReg")):
        return p.places.vector(number & 255)
    return p.places.scalar(number, operand.type.kind, operand.type.bits)
