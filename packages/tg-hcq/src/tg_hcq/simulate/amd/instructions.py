"""Decoded instructions as the engine's: a handler, where operands lie, an immediate."""

from __future__ import annotations

from ..engine import Instruction, InstructionSet, Undecodable
from ..engine.code import Decoder
from .architecture import Architecture
from .isa import Decoded, text
from .isa import decoder as bytes_decoder
from .operands import ROOMS, Placing, indexed
from .registers import Places


def decoder(arch: Architecture, instructions: InstructionSet) -> Decoder:
    """Decodes for the engine; whatever has no handler, and each modifier without one, is ``Undecodable``."""
    layout, decode = instructions.layout(arch.lanes), bytes_decoder(arch.name)

    def placing(pc: int, found: Decoded) -> Placing:
        return Placing(found, arch, instructions, pc, layout, Places(layout, found.literal, arch))

    def of_bytes(pc: int, data: bytes) -> Instruction:
        found = decode(data)
        words = text(found, pc)
        try:
            if found.name == indexed.BEGINS:
                return three(pc, data, found)
            return _instruction(placing(pc, found), words)
        except Undecodable as error:
            raise Undecodable(f"{words}: {error}") from None

    def three(pc: int, data: bytes, first: Decoded) -> Instruction:
        """An instruction that is executed with the two behind it."""
        move = decode(data[first.nbytes :])
        last = decode(data[first.nbytes + move.nbytes :])
        moving = placing(pc, move)
        placed = indexed.place(placing(pc, first), moving, last)
        nbytes = first.nbytes + move.nbytes + last.nbytes
        words = " :: ".join(text(one, pc) for one in (first, move, last))
        return Instruction(placed.handler, moving.places.record(placed.operands), nbytes, text=words)

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
