"""Scalar arithmetic, branches and waits: results stand before sources, SCC behind the destination and the sources."""

from __future__ import annotations

from ...engine import LITERAL, Undecodable
from ...engine.handlers import ControlHandler
from ..registers import FLAT_SCRATCH, VCC
from .placing import Placed, Placing

ENCODINGS = ("SOPP", "SOP1", "SOP2", "SOPC", "SOPK")
_ONLY_SOURCE = ("s_cmpk_", "s_setreg_", "s_waitcnt_")
"""Of these, what the tables call the destination is read and not written."""
WORKGROUP = 193
"""The operand of split barriers that means the workgroup's: -1."""
MODE = 1
"""The number of that register among those of the hardware."""
_FLAT_SCRATCH = tuple(number | 31 << 11 for number in FLAT_SCRATCH)
"""All bits of them."""
GET_REALTIME = 0x83
"""``MSG_RTN_GET_REALTIME`` (LLVM, ``SIDefines.h``)."""
DEALLOCATE = 3
"""``MSG_DEALLOC_VGPRS``: the wave is done with its vector registers."""


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    name, number = p.found.name, p.fields.get("simm16", 0)
    if name == "s_setreg_b32" and p.arch.generation == 10 and number in _FLAT_SCRATCH:
        del p.fields["simm16"]
        name = f"{name}.{number & 63}"
    if name == "s_sendmsg_rtn_b64":
        if p.fields.pop("src0") != GET_REALTIME:
            raise Undecodable("messages that return something but the time are not executed yet")
        return Placed(p.handler(name).name, [p.places.result(p.fields.pop("sdst"), 64)])
    handler, row = p.handler(name), p.found.row
    control, constant = isinstance(handler, ControlHandler), p.found.encoding == "SOPK"
    immediate, scc = _immediate(p), p.layout.scalar("scc")
    if p.found.encoding == "SOPP":
        return Placed(handler.name, [scc, p.layout.scalar("s", VCC)], immediate)
    results, sources = list[int](), list[int]()
    if "sdst" in p.fields:
        number, bits = p.fields.pop("sdst"), row.operands["sdst"].bits
        written = not row.name.startswith(_ONLY_SOURCE)
        if written:
            results.append(p.places.result(number, bits))
        if not written or _reads_destination(p):
            sources.append(p.places.scalar(number, "i", bits))
    for name, kind in row.operands.items():
        if name in p.fields and kind.register_class:
            number, bits = p.fields.pop(name), 16 if kind.type.endswith("16") else kind.bits
            if bits == 32 and row.name.endswith("_f16") and 240 <= number <= 248:
                raise Undecodable("whether a constant is a float of 16 or of 32 bits is not known")
            of_floats = "f" if "FP" in kind.type else "i"
            sources.append(p.places.scalar(number, of_floats, bits, row.name.endswith("_b64")))
        elif name in p.fields and kind.type.startswith("KIMM"):
            sources.append(p.places.literal(p.fields.pop(name)))
    if constant and not control:
        sources.append(LITERAL)
    if "SCC" in row.defs or (control and "SCC" in row.uses):
        results.append(scc)
    if "SCC" in row.uses and not control:
        sources.append(scc)
    return Placed(handler.name, results + sources, immediate)


def _reads_destination(p: Placing) -> bool:
    kinds, name = p.found.row.operands, p.found.name
    tied = "sdst_in" in kinds or ("src2" in kinds and "src2" not in p.found.fields)
    return tied or name.startswith("s_cmov") or (p.found.encoding == "SOPK" and "src0" in kinds)


def _immediate(p: Placing) -> int:
    """The constant of 16 bits, where a branch leads to, a barrier's number, or what is set."""
    name, kinds = p.found.name, p.found.row.operands
    if name.startswith("s_barrier_") and "src0" in p.fields:
        if p.fields.pop("src0") != WORKGROUP:
            raise Undecodable("barriers but that of the workgroup are not executed yet")
        return 0
    if "simm16" not in p.fields:
        return 0
    number = p.fields.pop("simm16")
    signed = number - (number >> 15 << 16)
    if name == "s_sendmsg" and number != DEALLOCATE:
        raise Undecodable("messages but that vector registers are free are not executed yet")
    if name.startswith(("s_getreg_", "s_setreg_")) and number & 63 != MODE:
        raise Undecodable("registers of the hardware but MODE are not executed yet")
    if kinds["simm16"].type == "PCREL":
        return p.pc + 4 + 4 * signed
    if "imm" in p.fields:
        return number | p.fields.pop("imm") << 32
    return signed if p.found.encoding == "SOPK" and not name.endswith("_u32") else number
