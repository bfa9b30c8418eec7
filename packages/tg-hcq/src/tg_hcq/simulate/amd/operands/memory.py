"""Scalar loads, and accesses of lanes."""

from __future__ import annotations

from .placing import Placed, Placing

ENCODINGS = ("SMEM", "GLOBAL")


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    fields, places = p.fields, p.places
    fields.pop("cpol", None)  # which caches are passed: there are none
    if p.found.encoding == "SMEM":
        handler = p.handler(p.found.name)
        offset = fields.pop("offset", 0)
        operands = [places.result(fields.pop("sdst")), p.layout.scalar("s", 2 * fields.pop("sbase")),
                    places.scalar(fields.pop("soffset", 124), "i", 32)]  # fmt: skip
        return Placed(handler.name, operands, offset - (offset >> 20 << 21))
    based = "saddr" in fields
    handler = p.handler(f"{p.found.name}.saddr" if based else p.found.name)
    offset = fields.pop("offset")
    operands = [places.vector(fields.pop("vdst" if "vdst" in fields else "vdata")),
                places.vector(fields.pop("vaddr"))]  # fmt: skip
    if based:
        operands.append(places.scalar(fields.pop("saddr"), "i", 64))
    return Placed(handler.name, operands, offset - (offset >> 12 << 13))
