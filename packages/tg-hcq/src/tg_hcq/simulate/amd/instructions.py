"""Decoded instructions as the engine's: a handler, where operands lie, an immediate."""

from __future__ import annotations

from ..engine import Instruction, InstructionSet, Layout, Undecodable
from ..engine.code import Decoder
from ..engine.emitter import Operand, Where
from .isa import Decoded, text
from .isa import decoder as bytes_decoder
from .registers import VCC, Places

_IGNORED = frozenset({"cpol"})  # which caches are passed: there are none


def decoder(arch: str, instructions: InstructionSet, lanes: int) -> Decoder:
    """Decodes for the engine; whatever has no handler, and each modifier without one, is ``Undecodable``."""
    layout, decode = instructions.layout(lanes), bytes_decoder(arch)

    def of_bytes(pc: int, data: bytes) -> Instruction:
        found = decode(data)
        words = text(found, pc)
        try:
            return _instruction(found, instructions, layout, pc, words)
        except Undecodable as error:
            raise Undecodable(f"{words}: {error}") from None

    return of_bytes


def _instruction(found: Decoded, instructions: InstructionSet, layout: Layout, pc: int, words: str) -> Instruction:
    fields, places = dict(found.fields), Places(layout, found.literal)
    name = f"{found.name}.saddr" if found.encoding == "GLOBAL" and "saddr" in fields else found.name
    if name not in instructions.handlers:
        raise Undecodable("not executed yet")
    handler, operands, immediate = instructions.handlers[name], list[int](), 0
    if found.encoding == "SOPP":
        number = fields.pop("simm16")
        immediate = pc + 4 + 4 * (number - (number >> 15 << 16))
        operands = [layout.scalar("scc")]
    elif found.encoding == "SOP1":
        operands = [places.result(fields.pop("sdst")), layout.scalar("scc"),
                    places.scalar(fields.pop("src0"), "i", layout.lanes)]  # fmt: skip
    elif found.encoding == "SMEM":
        offset = fields.pop("offset", 0)
        immediate = offset - (offset >> 20 << 21)
        operands = [places.result(fields.pop("sdst")), layout.scalar("s", 2 * fields.pop("sbase")),
                    places.scalar(fields.pop("soffset", 124), "i", 32)]  # fmt: skip
    elif found.encoding == "GLOBAL":
        offset = fields.pop("offset")
        immediate = offset - (offset >> 12 << 13)
        operands = [places.vector(fields.pop("vdst" if "vdst" in fields else "vdata")),
                    places.vector(fields.pop("vaddr"))]  # fmt: skip
        if "saddr" in fields:
            operands.append(places.scalar(fields.pop("saddr"), "i", 64))
    elif found.encoding in ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3SD"):
        for result in handler.results:
            if result.where is Where.MASK:
                operands.append(places.result(fields.pop("sdst", fields.pop("vdst", VCC))))
            else:
                operands.append(places.vector(fields.pop("vdst")))
        operands += [_source(found, fields, f"src{i}", s, places) for i, s in enumerate(handler.sources)]
    else:
        raise Undecodable(f"{found.encoding} is not executed yet")
    left = {field: value for field, value in fields.items() if value and field not in _IGNORED}
    if left:
        raise Undecodable(f"{', '.join(f'{field} = {value:#x}' for field, value in left.items())} is not executed yet")
    return Instruction(name, places.record(operands), found.nbytes, immediate, words)


def _source(found: Decoded, fields: dict[str, int], name: str, operand: Operand, places: Places) -> int:
    if operand.where is Where.MASK:
        return places.scalar(fields.pop(name, VCC), "i", 32)
    number, of_class = fields.pop(name), found.row.operands[name].register_class
    if number >= 256 or of_class.startswith(("VGPR", "VReg")):
        return places.vector(number & 255)
    return places.scalar(number, operand.type.kind, operand.type.bits)
