"""Rows of lanes as operands, by the table's names of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...engine import Undecodable
from ..isa.registers import kind_of, names
from .placing import Placing

_VECTOR = re.compile(r"([va])\[?(\d+)(?::\d+\])?(\.[lh])?")


class Place(NamedTuple):
    """Where an operand lies; of half a register, whether it is the high one."""

    offset: int
    high: bool = False
    constant: bool = False


def register(p: Placing, name: str) -> Place | None:
    """A vector register, if the operand is one."""
    row, number = p.found.row, p.found.fields.get(name)
    if number is None or name not in row.operands:
        return None
    text = names(kind_of(row, p.found.fields, name), p.found.table)[number]
    match = _VECTOR.fullmatch(text or "")
    if match is None:
        return None
    return Place(p.places.vector(int(match[2]) + (256 if match[1] == "a" else 0)), match[3] == ".h")


def row_of(p: Placing, name: str) -> int:
    """The place of an operand that must be a vector register; its field is taken.

    Raises:
      Undecodable: if it is another.
    """
    found = register(p, name)
    if found is None:
        raise Undecodable(f"its {name} is not executed yet")
    p.fields.pop(name)
    return found.offset
