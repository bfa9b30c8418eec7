"""Scalar arithmetic, branches and waits."""

from __future__ import annotations

from .placing import Placed, Placing

ENCODINGS = ("SOPP", "SOP1")


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    handler = p.handler(p.found.name)
    if p.found.encoding == "SOPP":
        number = p.fields.pop("simm16")
        return Placed(handler.name, [p.layout.scalar("scc")], p.pc + 4 + 4 * (number - (number >> 15 << 16)))
    return Placed(handler.name, [p.places.result(p.fields.pop("sdst")), p.layout.scalar("scc"),
                                 p.places.scalar(p.fields.pop("src0"), "i", p.layout.lanes)])  # fmt: skip
