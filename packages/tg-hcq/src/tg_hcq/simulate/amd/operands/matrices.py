"""Products of matrices: which registers, whose lanes, and signs."""

from __future__ import annotations

import re

from ...engine import Undecodable
from .. import broadcast
from ..isa.text import NEGATE, NEGATE_HIGH, SELECT, SELECT_HIGH
from .placing import Placed, Placing
from .rows import register, row_of

PRODUCTS = ("v_wmma_", "v_swmmac_", "v_mfma_", "v_smfmac_")
"""What their names begin with."""
_BLOCKS = re.compile(r"_(\d+)b_")


def matrix(p: Placing) -> Placed:
    """The handler of a product and its operands: D, A, B, and C or the index."""
    name, fields = p.found.name, p.fields
    if name.endswith("_f8f6f4"):
        return _of_formats(p)
    sparse = {"v_smfmac": "idx", "v_swmmac": "src2"}.get(name[:8])
    how = broadcast.taken()
    if name.startswith("v_mfma_f64"):
        how |= fields.pop("blgp", 0) << broadcast.NEGATE
        for ignored in ("cbsz", "abid"):
            fields.pop(ignored, 0)
    elif name.startswith("v_mfma_"):
        how = _broadcast(p)
    elif name.startswith("v_smfmac_"):
        how |= _set_of_index(p) << broadcast.INDEX
    else:
        signs = [_signs(p, i) for i in range(3)]
        if "_iu" in name:
            name = f"{name}.{signs[0] & 1 | (signs[1] & 1) << 1}"
            if any(sign & NEGATE_HIGH for sign in signs) or signs[2]:
                raise Undecodable("its signs are not executed yet")
        else:
            how |= _of_floats(signs)
        how |= 16 * fields.pop("index_key_16bit", 0) << broadcast.INDEX
        if p.arch.generation == 11 and re.match(r"v_wmma_b?f16_", name):
            how |= bool(fields.get("src2_modifiers", 0) & SELECT) << broadcast.HIGH
            fields["src2_modifiers"] = 0
    handler = p.handler(name)
    operands = [row_of(p, field) for field in ("vdst", "src0", "src1")]
    if sparse:
        return Placed(handler.name, [*operands, row_of(p, sparse)], how)
    found, number = register(p, "src2"), fields.pop("src2")
    if found is None and how >> broadcast.HIGH & 1:
        raise Undecodable("the high half of a constant is not executed yet")
    operands.append(found.offset if found else _constant(p, name, number))
    return Placed(handler.name, operands, how)


def _of_formats(p: Placing) -> Placed:
    """A product whose elements CBSZ and BLGP name, with scales or without."""
    name, fields, how = p.found.name, p.fields, broadcast.taken()
    handler = p.handler(f"{name}.{fields.pop('cbsz')}.{fields.pop('blgp')}")
    operands = [row_of(p, field) for field in ("vdst", "src0", "src1")]
    found, number = register(p, "src2"), fields.pop("src2")
    operands.append(found.offset if found else _constant(p, name.replace("_scale", ""), number))
    for which in (0, 1) if "_scale" in name else ():
        operands.append(row_of(p, f"scale_src{which}"))
        value = fields.pop(f"src{which}_modifiers", 0)
        byte = bool(value & SELECT) | bool(value & SELECT_HIGH) << 1
        how |= byte << broadcast.SCALES + 2 * which
        if value & ~(SELECT | SELECT_HIGH):
            raise Undecodable("its signs are not executed yet")
    return Placed(handler.name, operands, how)


def _broadcast(p: Placing) -> int:
    """CBSZ, ABID and BLGP."""
    cbsz, abid, blgp = (p.fields.pop(field, 0) for field in ("cbsz", "abid", "blgp"))
    blocks = _BLOCKS.search(p.found.name)
    if 1 << cbsz > (int(blocks[1]) if blocks else 1) or abid >= 1 << cbsz:
        raise Undecodable(f"there is no block of A for cbsz = {cbsz} and abid = {abid}")
    return broadcast.taken(cbsz, abid, blgp)


def _set_of_index(p: Placing) -> int:
    """How far up in its register the index lies: one of the sets that it holds (CDNA 4, 7.5)."""
    cbsz, abid = p.fields.pop("cbsz", 0), p.fields.pop("abid", 0)
    kept = p.found.row.operands["src0"].bits // int(p.found.name[-2:].lstrip("fip"))
    if cbsz > 3 or (not cbsz and 2 * kept * abid >= 32):
        raise Undecodable(f"there is no index for cbsz = {cbsz} and abid = {abid}")
    return 0 if cbsz else 2 * kept * abid


def _signs(p: Placing, index: int) -> int:
    """The signs of an operand, which are taken out of its modifiers, as are those that must be there."""
    field = f"src{index}_modifiers"
    value = p.fields.get(field, 0)
    if field in p.fields:
        p.fields[field] = value & ~(NEGATE | NEGATE_HIGH | SELECT_HIGH)
    return value & (NEGATE | NEGATE_HIGH)


def _of_floats(signs: list[int]) -> int:
    """Of A and B both halves are negated or none; of C the second bit takes the sign away.

    Source: LLVM, ``SIISelDAGToDAG.cpp``, ``SelectWMMAModsF32NegAbs``.
    """
    found = 0
    for index, sign in enumerate(signs[:2]):
        if sign in (NEGATE, NEGATE_HIGH):
            raise Undecodable("signs of every other element are not executed yet")
        found |= bool(sign) << broadcast.NEGATE + index
    return found | bool(signs[2] & NEGATE) << broadcast.NEGATE + 2 | bool(signs[2] & NEGATE_HIGH) << broadcast.ABSOLUTE


def _constant(p: Placing, name: str, number: int) -> int:
    result = name.split("_")[2]
    if result == "bf16" and 240 <= number <= 248:
        raise Undecodable("constants of bf16 are not executed yet")
    return p.places.scalar(number, "i" if result == "i32" else "f", int(result.lstrip("bfi")))
