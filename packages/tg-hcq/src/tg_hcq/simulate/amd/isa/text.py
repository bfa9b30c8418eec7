"""Decoded instructions as assembly, as LLVM prints them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from . import immediates
from .decode import Decoded
from .literals import immediate_text, literal_text
from .registers import LITERAL, kind_of, names
from .table import Kind

NEGATE, ABSOLUTE, SELECT, SELECT_HIGH = 1, 2, 4, 8  # bits of a source's modifiers
SIGN_EXTEND, NEGATE_HIGH, SELECT_DESTINATION = 16, 2, 8
FLAT_OFFSET_BITS = {9: 13, 10: 12, 11: 13, 12: 24}
BUFFER_OFFSET_BITS = {9: 12, 10: 12, 11: 12, 12: 24}
SELECTED_BYTES = re.compile(r"V_CVT_(PK_)?F32_(BF8|FP8)(_\w+)?_e64(_dpp8?)?_gfx12")


def text(decoded: Decoded, pc: int | None = None) -> str:
    """The assembly of an instruction.

    Args:
      decoded: the instruction.
      pc: its address; branches then show their target in place of the distance, which is what LLVM shows.

    Example:
      >>> from tg_hcq.simulate.amd.isa import decoder
      >>> text(decoder("gfx1100")(bytes.fromhex("0005a0bf")), 0x100)
      's_branch 0x1504'
    """
    words = []
    for literal, name in _template(decoded.row.asm):
        words.append(literal)
        if name:
            words.append(_operand(decoded, name, pc))
    return "".join(words).rstrip()


@functools.cache
def _template(asm: str) -> tuple[tuple[str, str], ...]:
    """Texts, and the name of the operand behind each, empty for none."""
    parts = re.split(r"\$(\w+)", asm)
    return tuple(zip(parts[::2], [*parts[1::2], ""], strict=True))


def _operand(decoded: Decoded, name: str, pc: int | None) -> str:
    if name == "vcc":
        return "vcc_lo" if decoded.table.lanes == 32 else "vcc"
    kind = decoded.row.operands[name]
    if kind.print.startswith("OperandAnd"):
        return _modified(decoded, name, kind)
    if kind.register_class:
        return register(decoded, name)
    value = decoded.fields.get(name, 0) if not kind.type.startswith("KIMM") else decoded.literal or 0
    if kind.type == "PCREL":
        distance = (value ^ 0x8000) - 0x8000
        return str(value) if pc is None else f"{pc + 4 + 4 * distance:#x}"
    if kind.decode == "decodeSplitBarrier":
        return str(value - 128 if value <= 192 else 192 - value)
    what, *arguments = kind.print.split(":")
    return PRINTERS[what](decoded, value, *arguments)


def register(decoded: Decoded, name: str) -> str:
    """The text of a register operand, or of the constant in its place."""
    kind = kind_of(decoded.row, decoded.fields, name)
    shown = names(kind, decoded.table)[decoded.fields.get(name, 0)] or "?"
    if shown is LITERAL:
        return literal_text(decoded.literal or 0, kind.type, decoded.table.generation)
    if shown.endswith(".l"):  # selects of a half lie in the modifiers, where an instruction has them
        modifiers = decoded.fields.get("src0_modifiers" if name == "vdst" else f"{name}_modifiers", 0)
        if modifiers & (SELECT_DESTINATION if name == "vdst" else SELECT):
            return shown[:-1] + "h"
    return shown


def _modified(decoded: Decoded, name: str, kind: Kind) -> str:
    value, source = decoded.fields.get(name, 0), name.removesuffix("_modifiers")
    shown = register(decoded, source)
    if kind.print == "OperandAndIntInputMods":
        return f"sext({shown})" if value & SIGN_EXTEND else shown
    if value & ABSOLUTE:
        shown = f"|{shown}|"
    if value & NEGATE:
        constant = not value & ABSOLUTE and re.match(r"-?[0-9]", shown)
        return f"neg({shown})" if constant else f"-{shown}"
    return shown


def _packed(decoded: Decoded, word: str, bit: int) -> str:
    """Per source one bit of its modifiers, if any differs from its default."""
    operands, flags = decoded.row.operands, decoded.row.flags
    if flags & {"IsWMMA", "IsSWMMAC"}:
        sources = ["src0", "src1", "src2"]
    else:
        sources = []
        for source in ("src0", "src1", "src2"):
            if source not in operands:
                break
            sources.append(source)
    modifiers = [decoded.fields.get(f"{source}_modifiers", 0) for source in sources]
    usual = bit if "IsPacked" in flags and bit == SELECT_HIGH else 0
    destination = bit == SELECT and "VOP3_OPSEL" in flags and bool({"vdst", "sdst"} & set(operands)) and bool(sources)
    to_high = bool(modifiers and modifiers[0] & SELECT_DESTINATION)
    if all(value & bit == usual for value in modifiers) and not (destination and to_high):
        return ""
    bits = [int(bool(value & bit)) for value in modifiers] + ([int(to_high)] if destination else [])
    return f" {word}:[{','.join(map(str, bits))}]"


def _op_sel(decoded: Decoded, _: int) -> str:
    modifiers = decoded.fields.get("src0_modifiers", 0), decoded.fields.get("src1_modifiers", 0)
    if SELECTED_BYTES.fullmatch(decoded.record):
        bits = int(bool(modifiers[0] & SELECT)), int(bool(modifiers[0] & SELECT_HIGH))
    elif decoded.name.startswith("v_permlane") and "16" in decoded.name and "swap" not in decoded.name:
        bits = int(bool(modifiers[0] & SELECT)), int(bool(modifiers[1] & SELECT))
    else:
        return _packed(decoded, "op_sel", SELECT)
    return f" op_sel:[{bits[0]},{bits[1]}]" if any(bits) else ""


def _named_int(decoded: Decoded, value: int, word: str, hexadecimal: str, always: str) -> str:
    if word == "offset":  # of a scalar load, beside a register
        value = _signed(value, 24 if decoded.table.generation >= 12 else 21)
    if not value and always == "false":
        return ""
    return f" {word}:{value:#x}" if hexadecimal == "true" else f" {word}:{value}"


def _signed(value: int, bits: int) -> int:
    return (value & (1 << bits) - 1) - ((value & 1 << bits - 1) << 1)


def _buffer_offset(decoded: Decoded, value: int) -> str:
    return f" offset:{value & 0xFFFF if decoded.table.generation < 12 else value}" if value else ""


def _flat_offset(decoded: Decoded, value: int) -> str:
    generation = decoded.table.generation
    if generation >= 12 or decoded.encoding != "FLAT":
        value = _signed(value, FLAT_OFFSET_BITS[generation])
    return f" offset:{value}" if value else ""


def _blgp(decoded: Decoded, value: int) -> str:
    if not value:
        return ""
    if "F64_" in decoded.record:
        return f" neg:[{value & 1},{value >> 1 & 1},{value >> 2 & 1}]"
    return f" blgp:{value}"


def _gpr_index(_: Decoded, value: int) -> str:
    if value & ~15:
        return f"{value:#x}"
    return f"gpr_idx({','.join(name for bit, name in enumerate(('SRC0', 'SRC1', 'SRC2', 'DST')) if value >> bit & 1)})"


def _plain(decoded: Decoded, value: int) -> str:
    return immediate_text(value)


def _u16(decoded: Decoded, value: int) -> str:
    kinds = decoded.row.operands.values()
    if any(kind.decode == "decodeVersionImm" for kind in kinds):
        return immediates.version(value)
    return f"{value & 0xFFFF if value <= 0xFFFF or value >= 0xFFFF8000 else value:#x}"


def _bitop(_: Decoded, value: int) -> str:
    return "" if not value else f" bitop3:{value}" if value <= 10 else f" bitop3:{value:#x}"


Printer = Callable[..., str]
PRINTERS: dict[str, Printer] = {
    "Operand": _plain,
    "NamedBit": lambda decoded, value, word: f" {word}" if value else "",
    "NamedInt": _named_int,
    "CPol": lambda decoded, value: immediates.cache_policy(value, decoded.row, decoded.table),
    "DPP8": lambda decoded, value: "dpp8:[" + ",".join(str(value >> 3 * lane & 7) for lane in range(8)) + "]",
    "DPPCtrl": lambda decoded, value: immediates.dpp_control(value, decoded.table.generation),
    "DppBoundCtrl": lambda decoded, value: " bound_ctrl:1" if value else "",
    "DppFI": lambda decoded, value: " fi:1" if value in (1, 0xEA) else "",
    "DepCtr": lambda decoded, value: immediates.depctr(value),
    "Endpgm": lambda decoded, value: f" {value}" if value else "",
    "FlatOffset": _flat_offset,
    "Offset": _buffer_offset,
    "Hwreg": lambda decoded, value: immediates.hwreg(value, decoded.table.generation),
    "NegLo": lambda decoded, value: _packed(decoded, "neg_lo", NEGATE),
    "NegHi": lambda decoded, value: _packed(decoded, "neg_hi", NEGATE_HIGH),
    "OpSel": _op_sel,
    "OpSelHi": lambda decoded, value: _packed(decoded, "op_sel_hi", SELECT_HIGH),
    "OModSI": lambda decoded, value: ("", " mul:2", " mul:4", " div:2")[value],
    "SDelayALU": lambda decoded, value: immediates.delay_alu(value),
    "SMEMOffset": lambda decoded, value: f"{_signed(value, 24 if decoded.table.generation >= 12 else 21):#x}",
    "SWaitCnt": lambda decoded, value: immediates.waitcnt(value, decoded.table.generation),
    "SendMsg": lambda decoded, value: immediates.sendmsg(value, decoded.table.generation),
    "Swizzle": lambda decoded, value: immediates.swizzle(value),
    "U16ImmOperand": _u16,
    "U32ImmOperand": lambda decoded, value: f"{value:#x}",
    "SDWADstSel": lambda decoded, value: f"dst_sel:{immediates.SELECTIONS[value]}",
    "SDWASrc0Sel": lambda decoded, value: f"src0_sel:{immediates.SELECTIONS[value]}",
    "SDWASrc1Sel": lambda decoded, value: f"src1_sel:{immediates.SELECTIONS[value]}",
    "SDWADstUnused": lambda decoded, value: f"dst_unused:{immediates.UNUSED[value]}",
    "BLGP": _blgp,
    "BitOp3": _bitop,
    "GPRIdxMode": _gpr_index,
    "IndexKey8bit": lambda decoded, value: f" index_key:{value}" if value else "",
    "IndexKey16bit": lambda decoded, value: f" index_key:{value}" if value else "",
    "IndexKey32bit": lambda decoded, value: f" index_key:{value}" if value else "",
}
