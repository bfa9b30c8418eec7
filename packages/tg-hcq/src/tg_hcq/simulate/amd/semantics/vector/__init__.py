"""Arithmetic of lanes, a room for each subject."""

from __future__ import annotations

from ....engine import InstructionSet
from ...architecture import Architecture
from . import (
    comparisons,
    conversions,
    crossing,
    division,
    dual,
    floats,
    integers,
    matrices,
    modified,
    packed,
    relative,
    scaled,
    transcendental,
    turns,
)
from .alu import Lanes


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    modified.add(to, arch)
    lanes = Lanes(to, arch)
    for room in (
        integers, comparisons, floats, conversions, division, transcendental, packed, crossing, relative,
        matrices, scaled, dual, turns,
    ):  # fmt: skip
        room.add(lanes)
