"""The registers and inline constants that a field of an instruction can name.

Source of the numbers: the table "Scalar operands" in AMD's ISA manuals (RDNA 3, section 6.2; CDNA 3, section 4.2).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace

from .table import Kind, Row, Table

LITERAL = "literal"  # in place of a text: the value follows the instruction
LAST_SGPR = {9: 101, 10: 105, 11: 105, 12: 105}
SPECIAL = {
    106: ("vcc_lo", "vcc"), 107: ("vcc_hi", ""), 126: ("exec_lo", "exec"), 127: ("exec_hi", ""),
    235: ("src_shared_base", "src_shared_base"), 236: ("src_shared_limit", "src_shared_limit"),
    237: ("src_private_base", "src_private_base"), 238: ("src_private_limit", "src_private_limit"),
    239: ("src_pops_exiting_wave_id", "src_pops_exiting_wave_id"),
    251: ("src_vccz", "src_vccz"), 252: ("src_execz", "src_execz"), 253: ("src_scc", "src_scc"),
    254: ("src_lds_direct", ""),
}  # fmt: skip
BEFORE_GFX10 = {102: ("flat_scratch_lo", "flat_scratch"), 103: ("flat_scratch_hi", ""),
                104: ("xnack_mask_lo", "xnack_mask"), 105: ("xnack_mask_hi", "")}  # fmt: skip
FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")  # 240 to 248; the last: 1 / (2 pi)
HALVES = (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118)


# Bits that a lane holds of a matrix whose elements have the format of this number: fp8, bf8, fp6, bf6, fp4.
MATRIX_BITS = (256, 256, 192, 192, 128)


def kind_of(row: Row, fields: Mapping[str, int], name: str) -> Kind:
    """An operand's kind. Of a matrix product of several formats, it depends on what the format's field says."""
    kind = row.operands[name]
    if "F8F6F4" in row.record and name in ("src0", "src1"):
        number = fields["cbsz" if name == "src0" else "blgp"]
        bits = MATRIX_BITS[number] if number < len(MATRIX_BITS) else 0
        return replace(kind, bits=bits, register_class=kind.register_class if bits else "none")
    return kind


@functools.cache
def names(kind: Kind, table: Table) -> tuple[str | None, ...]:
    """The text of each value of an operand's field; None where the value names nothing that the operand may be.

    Returns:
      ``LITERAL`` in place of a text where the value follows the instruction.
    """
    return tuple(_name(kind, value, table) for value in range(1024))


def _name(kind: Kind, value: int, table: Table) -> str | None:
    decode, of_class, bits = kind.decode, kind.register_class, kind.bits
    if "VGPR_16_Lo128" in decode:
        return _half(value & 0x7F, value >> 7 & 1) if value < 256 else None
    if "VSrcT16_Lo128" in decode and value & 256:
        return _half(value & 0x7F, value >> 7 & 1) if value < 512 else None
    if decode == "DecodeVGPR_16RegisterClass":
        return _half(value & 0xFF, value >> 9) if not value & 256 else None
    if decode == "decodeOperand_VGPR_16" or ("VSrcT16" in decode and value & 256):
        return _half(value & 0xFF, value >> 9) if value & 256 else None
    if "VSrcT16" in decode:
        return _scalar(kind, value & 0xFF, 16, table)
    if decode.startswith("decodeSDWASrc"):
        return _vector(kind, "v", value) if value < 256 else _scalar(kind, value & 0xFF, 32, table)
    if decode == "decodeSDWAVopcDst":
        vcc = "vcc_lo" if table.lanes == 32 else "vcc"
        return _scalar(kind, value & 0x7F, table.lanes, table) if value & 128 else vcc if not value else None
    if decode.startswith(("decodeAVLdSt", "decodeAV10")):
        value |= 256
    if "A9" in decode:
        value |= 512
    of_vectors = of_class.startswith(("VGPR", "VReg", "AGPR", "AReg", "AV_LdSt"))
    if of_vectors and (not decode or decode.startswith("Decode") or decode == "decodeOperandVOPDDstY"):
        return _vector(kind, "a" if of_class.startswith(("AG", "AR")) else "v", value) if value < 256 else None
    if value & 256:
        return _vector(kind, "a" if value & 512 else "v", value & 0xFF)
    return _scalar(kind, value & 0xFF, table.lanes if decode == "decodeBoolReg" else bits, table)


def _half(number: int, high: int) -> str:
    return f"v{number}.{'h' if high else 'l'}"


def _vector(kind: Kind, bank: str, number: int) -> str | None:
    of_class = kind.register_class
    count = max(kind.bits // 32, 1)
    banks = {"VS": "v", "VG": "v", "VR": "v", "AG": "a", "AR": "a", "AV": "va"}.get(of_class[:2], "")
    if bank not in banks or number + count > 256:
        return None
    if (of_class.endswith("_Align2") and number % 2) or (of_class.endswith("_Lo128") and number > 127):
        return None
    return span(bank, number, count)


def span(bank: str, number: int, count: int) -> str:
    """The name of consecutive registers.

    >>> span("v", 4, 1), span("s", 8, 2)
    ('v4', 's[8:9]')
    """
    return f"{bank}{number}" if count == 1 else f"{bank}[{number}:{number + count - 1}]"


def _scalar(kind: Kind, value: int, bits: int, table: Table) -> str | None:
    of_class = kind.register_class
    constants = kind.type.startswith(("REG_IMM", "REG_INLINE")) or kind.type == "INLINE_SPLIT_BARRIER_INT32"
    if 128 <= value <= 208:
        return str(value - 128 if value <= 192 else 192 - value) if constants else None
    if 240 <= value <= 248:
        return _float(kind.type, value - 240) if constants else None
    if value == 255:
        return LITERAL if kind.type.startswith("REG_IMM") else None
    if of_class == "VRegOrLds_32":
        return "src_lds_direct" if value == 254 else None
    if not of_class.startswith(("VS_", "S")):
        return None
    count = max(bits // 32, 1)
    if value <= LAST_SGPR[table.generation]:
        return _aligned("s", value, count, 106)
    if 108 <= value <= 123:
        return _aligned("ttmp", value - 108, count, 16)
    return _special(of_class, value, count, table)


def _aligned(bank: str, number: int, count: int, limit: int) -> str | None:
    """Scalar registers: pairs begin at even numbers, larger groups at multiples of four."""
    if number % (1 if count == 1 else 2 if count == 2 else 4) or number + count > limit:
        return None
    return span(bank, number, count)


def _special(of_class: str, value: int, count: int, table: Table) -> str | None:
    null, m0 = (124, 125) if table.generation >= 11 else (125, 124)
    if value == null:
        return None if table.generation == 9 or "XNULL" in of_class else "null"
    if value == m0:
        return "m0" if count == 1 and "XM0" not in of_class else None
    if value == 254 and not re.match("VS_16|VS_32|[SV]RegOrLds_32", of_class):
        return None
    if "XEXEC" in of_class and (value == 127 or (value == 126 and "XEXEC_HI" not in of_class)):
        return None
    found = SPECIAL.get(value) or (BEFORE_GFX10.get(value) if table.generation == 9 else None)
    if not found or count > 2:
        return None
    return found[count - 1] or None


def _float(of_type: str, index: int) -> str:
    if of_type.endswith("INT16") and "V2" not in of_type:
        return f"{HALVES[index]:#x}"  # an integer operand gets the bits of the float16
    if of_type.endswith("64") and index == 8:
        return "0.15915494309189532"
    return FLOATS[index]
