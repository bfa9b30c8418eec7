"""From decoded instructions to handlers and the places of their operands, a room for each family of encodings."""

from __future__ import annotations

from . import indexed, local, memory, scalar, scalar_memory, vector
from .placing import Placed, Placing, Room

_MODULES = (scalar, vector, scalar_memory, memory, local)
ROOMS: dict[str, Room] = {encoding: module.place for module in _MODULES for encoding in module.ENCODINGS}
"""By the encoding's name in the tables."""

__all__ = ["ROOMS", "Placed", "Placing", "Room", "indexed"]
