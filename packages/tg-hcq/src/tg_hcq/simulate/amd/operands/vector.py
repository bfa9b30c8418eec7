"""Arithmetic of lanes: sources and results by the table's names of them, modifiers as words of the record."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ...engine import Undecodable
from .. import modifiers as m
from ..isa.text import NEGATE, NEGATE_HIGH, SELECT, SELECT_DESTINATION, SELECT_HIGH, SIGN_EXTEND
from ..modifiers import Kind
from ..registers import EXEC_MASK, VCC
from ..scaled import PREFIX
from .matrices import PRODUCTS, matrix
from .placing import Placed, Placing
from .rows import Place, register, row_of
from .scaled import conversion

_PLAIN = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3SD", "VOP3P")
ENCODINGS = (*_PLAIN, *(f"{e}_{form}" for e in _PLAIN for form in ("DPP8", "DPP16", "SDWA")), "VOPD")
_SECOND = 6  # of a pair, where the second one's operands begin
_CONSTANT = {Kind.B32: ("i", 32), Kind.B64: ("i", 64), Kind.F32: ("f", 32), Kind.F64: ("f", 64), Kind.B16: ("i", 16),
             Kind.F16: ("f", 16), Kind.PACKED: ("i", 32), Kind.PACKED_F16: ("f", 16), Kind.BF16: ("i", 16),
             Kind.MIXED: ("f", 32), Kind.PACKED_F32: ("i", 64)}  # fmt: skip
_FLOATS = range(240, 249)


@runtime_checkable
class LanesHandler(Protocol):
    """What is needed of a handler of lanes."""

    name: str
    result_kinds: tuple[Kind, ...]
    source_kinds: tuple[Kind, ...]


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    name, encoding = p.found.name, p.found.encoding
    if encoding == "VOPD":
        return _pair(p)
    if name in _SPECIAL:
        return _SPECIAL[name](p)
    if name.startswith("v_s_"):
        return _of_scalar(p)
    if name.startswith(PRODUCTS):
        return matrix(p)
    if name.startswith(PREFIX):
        return conversion(p)
    if name.startswith("v_accvgpr_"):
        name = "v_mov_b32"
    if name.startswith("v_dot") and "_iu" in name:
        signs = [p.fields.get(f"src{i}_modifiers", 0) & NEGATE for i in (0, 1)]
        name = f"{name}.{signs[0] | signs[1] << 1}"
        for i in range(3):
            _default(p, f"src{i}_modifiers", SELECT_HIGH | NEGATE if i < 2 else SELECT_HIGH)
    elif name.startswith("v_dot"):
        _default(p, "src2_modifiers", SELECT_HIGH)
    handler = _lanes(p, name)
    clamps = p.fields.pop("clamp", 0)
    if clamps and not handler.result_kinds[0].is_float:
        handler = _lanes(p, f"{name}.clamp")
    words = _Words()
    results = [_result(p, handler, i, words) for i in range(len(handler.result_kinds))]
    sources = [_source(p, handler, i, words) for i in range(len(handler.source_kinds))]
    if clamps and handler.result_kinds[0].is_float:
        words.result |= m.CLAMP
    if name == "v_fma_mixhi_f16":
        words.result |= m.HIGH
    _whole(p, handler, words)
    immediate = p.fields.pop("bitop3", 0)
    return Placed(handler.name, words.record([*results, *sources]), immediate)


def _of_scalar(p: Placing) -> Placed:
    """A function of a scalar. One of 16 bits takes no inline constant.

    Source: LLVM, ``GCNSubtarget::hasNoF16PseudoScalarTransInlineConstants``.
    """
    name, number, signs = p.found.name, p.fields.pop("src0"), p.fields.get("src0_modifiers", 0) & 3
    if name.endswith("_f16") and 128 <= number < 255:
        raise Undecodable("it takes no inline constant")
    _default(p, "src0_modifiers", 3)
    operands = [p.places.result(p.fields.pop("vdst")), p.places.scalar(number, "f", 32)]
    return Placed(p.handler(f"{name}.{signs}").name, operands)


def _lanes(p: Placing, name: str) -> LanesHandler:
    handler = p.handler(name)
    if not isinstance(handler, LanesHandler):
        raise Undecodable("not executed yet")
    return handler


def _default(p: Placing, field: str, mask: int) -> None:
    """Takes bits out of a field."""
    if field in p.fields:
        p.fields[field] &= ~mask


class _Words:
    """The modifiers of an instruction."""

    def __init__(self) -> None:
        self.sources = self.result = self.permutation = self.permuted = 0

    def record(self, operands: list[int]) -> list[int]:
        """The operands with the modifiers behind them, if there are any."""
        if not (self.sources or self.result or self.permutation):
            return operands
        words = [self.sources | m.MODIFIED, self.result, self.permutation, self.permuted]
        signed = [word - (word >> 31 << 32) for word in words]
        return [*operands, *[0] * (m.SOURCES - len(operands)), *signed]


def _result(p: Placing, handler: LanesHandler, index: int, words: _Words) -> int:
    lanes = p.arch.lanes
    if handler.result_kinds[index] is Kind.MASK:
        if p.found.name.startswith("v_cmpx_") and (p.arch.generation >= 10 or index):
            p.fields.pop("sdst", None)
            p.fields.pop("vdst", None)
            if any(field in p.found.fields for field in ("dpp_ctrl", "dpp8")):
                raise Undecodable("permuted lanes that write EXEC are not executed yet")
            return p.places.result(EXEC_MASK, lanes)
        number = p.fields.pop("sdst", p.fields.pop("vdst", VCC) if index == 0 else VCC)
        if p.found.encoding == "VOPC_SDWA":
            number = number & 0x7F if number & 0x80 else VCC
        return p.places.result(number, lanes)
    found = register(p, "vdst")
    if found is None:
        raise Undecodable("its result is not executed yet")
    p.fields.pop("vdst")
    if found.high:
        words.result |= m.HIGH
    return found.offset


def _source(p: Placing, handler: LanesHandler, index: int, words: _Words) -> int:
    kind, name = handler.source_kinds[index], _source_name(p, index)
    if kind is Kind.MASK:
        return p.places.scalar(p.fields.pop(name, VCC), "i", p.arch.lanes)
    if name == "imm":
        p.fields.pop(name)
        return p.places.literal(p.found.literal or 0)
    if name not in p.found.fields:  # the result is a source as well
        found = register(p, "vdst")
        if found is None:
            raise Undecodable("its sources are not executed yet")
        found = found._replace(high=found.high or bool(p.found.fields.get("src0_modifiers", 0) & SELECT_DESTINATION))
    else:
        found = register(p, name)
        number = p.fields.pop(name)
        if found is None:
            found = _scalar(p, kind, number & 0xFF)
    words.sources |= _modifiers(p, kind, name, found) << 8 * index
    return found.offset


def _source_name(p: Placing, index: int) -> str:
    """The constant inside an instruction is the second source of v_fmamk, and the third of v_fmaak."""
    if p.found.name.startswith("v_fmamk_"):
        return ("src0", "imm", "src1")[index]
    if p.found.name.startswith("v_fmaak_"):
        return ("src0", "src1", "imm")[index]
    return f"src{index}"


def _scalar(p: Placing, kind: Kind, number: int) -> Place:
    constant = 128 <= number <= 208 or number in _FLOATS or number == 255
    if constant and kind is Kind.PACKED_F32:
        return Place(p.places.scalar(number, "f", 32), constant=True)
    if kind is Kind.MIXED and number in _FLOATS:
        raise Undecodable("constants of mixed precision are not executed yet")
    if kind is Kind.BF16 and number in _FLOATS:
        raise Undecodable("constants of bf16 are not executed yet")
    return Place(p.places.scalar(number, *_CONSTANT[kind]), constant=constant)


def _modifiers(p: Placing, kind: Kind, name: str, found: Place) -> int:
    """The byte of a source."""
    value = p.fields.pop(f"{name}_modifiers", 0)
    word = m.SELECT if found.high else 0
    if name == "src0" and value & SELECT_DESTINATION and not (kind.is_packed or kind is Kind.MIXED):
        value &= ~SELECT_DESTINATION  # looked at with the result
    if kind.is_packed:
        if "VOP3P" in p.found.row.flags:
            word |= value & 3 | (m.SELECT if value & SELECT else 0) | (0 if value & SELECT_HIGH else m.SELECT_OTHER)
            value = 0
        if found.constant and word & m.SELECT and p.found.literal is None:
            raise Undecodable("the high half of a constant is not executed yet")
        if found.constant and kind is Kind.PACKED_F32 and not word & m.SELECT_OTHER:
            raise Undecodable("the high one of a pair of constants is not executed yet")
        if kind is Kind.PACKED and word & 3:
            raise Undecodable("negated integers are not executed yet")
    elif kind is Kind.MIXED:
        word |= value & 3 | (m.SELECT if value & SELECT else 0) | (m.SELECT_OTHER if value & SELECT_HIGH else 0)
        value = 0
    elif kind.is_half and value & SELECT:
        if found.constant or ("$op_sel" not in p.found.row.asm and found.offset < p.layout.rows):
            raise Undecodable("the high half of what is no vector register is not executed yet")
        word |= m.SELECT
        value &= ~SELECT
    if kind is Kind.F32 and "VOP3P" in p.found.row.flags and value & NEGATE_HIGH:
        raise Undecodable(f"neg_hi of {name}, which has no high half, is not executed yet")
    if kind.is_float and kind is not Kind.BF16 and not kind.is_packed:
        word |= value & 3
        value &= ~3
    part = p.fields.pop(f"{name}_sel", 6)
    if name == "src0" and p.found.fields.get("byte_sel") and p.found.name.startswith("v_cvt_f32_"):
        part = p.fields.pop("byte_sel")
    if part != 6:
        if found.constant:
            raise Undecodable("a part of a constant is not executed yet")
        word |= part + 1 << m.PART
    if value & SIGN_EXTEND:
        if part == 6 and not kind.is_half:
            value &= ~SIGN_EXTEND  # all bits are there
        elif part != 6:
            word |= m.PART_SIGNED
            value &= ~SIGN_EXTEND
    if value:
        raise Undecodable(f"{name}_modifiers = {value:#x} is not executed yet")
    return word


def _whole(p: Placing, handler: LanesHandler, words: _Words) -> None:
    """Modifiers of the result, and permutations of lanes."""
    fields, kind = p.fields, handler.result_kinds[0]
    first = p.found.fields.get("src0_modifiers", 0)
    packed = handler.source_kinds[0].is_packed or handler.source_kinds[0] is Kind.MIXED
    if first & SELECT_DESTINATION and not packed and not _is_dot(p):
        if not kind.is_half:
            raise Undecodable("the high half of its result is not executed yet")
        words.result |= m.HIGH
    if kind.is_float and kind not in (Kind.PACKED_F16, Kind.PACKED_F32) and p.arch.generation < 12:
        words.result |= fields.pop("omod", 0) << m.OMOD
    into, unused = fields.pop("dst_sel", 6), fields.pop("dst_unused", 0)
    if into != 6:
        words.result |= into + 1 << m.INTO | unused << m.UNUSED
    if "dpp8" in fields:
        fetches = fields.pop("fi") in (1, 0xEA)
        words.permutation = fields.pop("dpp8") | m.OF_EIGHT | (m.FETCH_INACTIVE if fetches else 0)
    elif "dpp_ctrl" in fields:
        words.permutation = fields.pop("dpp_ctrl") | m.OF_ROW
        words.permutation |= m.BOUND_CONTROL if fields.pop("bound_ctrl") else 0
        words.permutation |= m.FETCH_INACTIVE if fields.pop("fi", 0) else 0
        words.permuted = fields.pop("bank_mask") | fields.pop("row_mask") << 4


def _is_dot(p: Placing) -> bool:
    return p.found.name.startswith("v_dot")


def _pair(p: Placing) -> Placed:
    """Two instructions at once; constants are shared."""
    operands: list[int] = []
    parts = []
    fields = p.fields
    for half, name in zip("XY", p.found.name.split(" :: "), strict=True):
        name = name.replace("v_dual_", "v_")
        handler = _lanes(p, name)
        target = register(p, f"vdst{half}")
        if target is None:
            raise Undecodable("its result is not executed yet")
        own = [target.offset]
        order = [f"src0{half}", f"vsrc1{half}", f"vdst{half}"][: len(handler.source_kinds)]
        if name.startswith("v_fmaak_"):
            order[2] = "imm"
        elif name.startswith("v_fmamk_"):
            order = [f"src0{half}", "imm", f"vsrc1{half}"]
        for source, kind in zip(order, handler.source_kinds, strict=True):
            if kind is Kind.MASK:
                own.append(p.places.scalar(VCC, "i", p.arch.lanes))
            elif source == "imm":
                own.append(p.places.literal(p.found.literal or 0))
            else:
                found = register(p, source)
                own.append(found.offset if found else _scalar(p, kind, p.found.fields[source]).offset)
        operands += [*own, *[0] * (_SECOND - len(own))]
        parts.append(name)
    for field in ("vdstX", "vdstY", "src0X", "src0Y", "vsrc1X", "vsrc1Y", "imm"):
        fields.pop(field, None)
    return Placed("dual", operands, parts=tuple(parts))


def _read_lane(p: Placing) -> Placed:
    handler, fields = p.handler(p.found.name), p.fields
    operands = [p.places.result(fields.pop("vdst")), row_of(p, "src0")]
    if "src1" in fields:
        operands.append(p.places.scalar(fields.pop("src1"), "i", 32))
    return Placed(handler.name, operands)


def _write_lane(p: Placing) -> Placed:
    handler, fields = p.handler(p.found.name), p.fields
    operands = [row_of(p, "vdst"), *(p.places.scalar(fields.pop(name), "i", 32) for name in ("src0", "src1"))]
    return Placed(handler.name, operands)


def _permute_lanes(p: Placing) -> Placed:
    handler, fields = p.handler(p.found.name), p.fields
    operands = [row_of(p, "vdst"), row_of(p, "src0")]
    operands += [p.places.scalar(fields.pop(name), "i", 32) for name in ("src1", "src2") if name in fields]
    how = 0
    for name, flag in (("src0_modifiers", m.FETCH_INACTIVE), ("src1_modifiers", m.BOUND_CONTROL)):
        if fields.get(name, 0) & SELECT:
            how |= flag
            fields[name] &= ~SELECT
    return Placed(handler.name, operands, how)


def _swap(p: Placing) -> Placed:
    handler = p.handler(p.found.name)
    rows = [row_of(p, "vdst"), row_of(p, "src0")]
    return Placed(handler.name, [*rows, *rows])


def _relative(p: Placing) -> Placed:
    """Rows from which M0 counts; the source of V_MOVRELD is none of them."""
    if p.found.encoding not in ("VOP1", "VOP3"):
        raise Undecodable("permuted lanes, and parts of registers, from which M0 counts are not executed yet")
    handler, target, found = p.handler(p.found.name), row_of(p, "vdst"), register(p, "src0")
    number = p.fields.pop("src0")
    if found is None and p.found.name != "v_movreld_b32":
        raise Undecodable("scalar registers from which M0 counts are not executed yet")
    source = found.offset if found is not None else p.places.scalar(number, "i", 32)
    return Placed(handler.name, [target, source])


def _move_pair(p: Placing) -> Placed:
    """Two registers from two pairs, of each of which the instruction selects one."""
    handler, operands = p.handler("v_pk_mov_b32"), [row_of(p, "vdst")]
    for i in (0, 1):
        found, value = register(p, f"src{i}"), p.fields.pop(f"src{i}_modifiers", 0)
        number = p.fields.pop(f"src{i}")
        high = bool(value & SELECT)
        if found is not None:
            operands.append(found.offset + high * p.layout.row_bytes)
        elif number < 104:
            operands.append(p.places.scalar(number + high, "i", 32))
        else:
            raise Undecodable("constants of pairs are not executed yet")
        if value & ~(SELECT | SELECT_HIGH):
            raise Undecodable("its modifiers are not executed yet")
    return Placed(handler.name, operands)


def _nothing(p: Placing) -> Placed:
    return Placed(p.handler(p.found.name).name, [])


_SPECIAL = {
    "v_readlane_b32": _read_lane, "v_readfirstlane_b32": _read_lane, "v_writelane_b32": _write_lane,
    "v_permlane16_b32": _permute_lanes, "v_permlanex16_b32": _permute_lanes, "v_permlane64_b32": _permute_lanes,
    "v_permlane16_swap_b32": _permute_lanes, "v_permlane32_swap_b32": _permute_lanes, "v_swap_b32": _swap,
    "v_pk_mov_b32": _move_pair, "v_nop": _nothing,
    **dict.fromkeys(
        ("v_movreld_b32", "v_movrels_b32", "v_movrelsd_b32", "v_movrelsd_2_b32", "v_swaprel_b32"), _relative),
}  # fmt: skip
