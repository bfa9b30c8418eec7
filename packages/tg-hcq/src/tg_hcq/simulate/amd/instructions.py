"""Decoded instructions as the engine's: a handler, where operands lie, an immediate."""

from __future__ import annotations

from ..engine import Instruction, InstructionSet, Undecodable
from ..engine.code import Decoder
from .architecture import Architecture
from .isa import decoder as bytes_decoder
from .isa import text
from .operands import ROOMS, Placing
from .registers import Places


def decoder(arch: Architecture, instructions: InstructionSet) -> Decoder:
    """Decodes for the engine; whatever has no handler, and each modifier without one, is ``Undecodable``."""
    layout, decode = instructions.layout(arch.lanes), bytes_decoder(arch.name)

    def of_bytes(pc: int, data: bytes) -> Instruction:
        found = decode(data)
        words = text(found, pc)
        try:
            return _instruction(
                Placing(found, arch, instructions, pc, layout, Places(layout, found.literal, arch)), words
            )
        except Undecodable as error:
            raise Undecodable(f"{words}: {error}") from None

    return of_bytes


def _instruction(p: Placing, words: str) -> Instruction:
    if p.found.encoding not in ROOMS:
        raise Undecodable(f"{p.found.encoding} is not executed yet")
    placed = ROOMS[p.found.encoding](p)
    left = ", ".join(f"{field} = {value:#x}" for field, value in p.fields.items() if value)
    if left:
        raise Undecodable(f"{left} is not executed yet")
    operands = p.places.record(placed.operands)
    return Instruction(placed.handler, operands, p.found.nbytes, placed.immediate, words, placed.parts)
