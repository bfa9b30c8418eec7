"""From decoded instructions to handlers and the places of their operands, a room for each family of encodings."""

from __future__ import annotations

from . import memory, scalar, vector
from .placing import Placed, Placing, Room

ROOMS: dict[str, Room] = {encoding: room.place for room in (scalar, vector, memory) for encoding in room.ENCODINGS}
"""By the encoding's name in the tables."""

__all__ = ["ROOMS", "Placed", "Placing", "Room"]
