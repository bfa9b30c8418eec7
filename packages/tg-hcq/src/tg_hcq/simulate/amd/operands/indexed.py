"""Moves of rows that an index counts, on gfx9: three instructions that are executed as one.

LLVM puts nothing else between those that begin and end indexing (``SIInstrInfo::expandPostRAPseudo``,
``V_INDIRECT_REG_READ_GPR_IDX``), and jumps into the middle of them are a fault at what ends it.
"""

from __future__ import annotations

from ...engine import Undecodable
from ..isa import Decoded
from ..registers import INDEXED, SOURCE
from .placing import Placed, Placing
from .rows import register, row_of

BEGINS, MOVE, ENDS = "s_set_gpr_idx_on", "v_mov_b32", "s_set_gpr_idx_off"


def place(first: Placing, move: Placing, last: Decoded) -> Placed:
    """The handler of the three and its operands: the result, the source, the index.

    Raises:
      Undecodable: if they are others.
    """
    plain = move.found.name == MOVE and move.found.encoding == "VOP1"
    flags = first.fields["imm"] if "imm" in first.fields else first.fields["src1"]
    if not plain or last.name != ENDS or flags not in INDEXED:
        raise Undecodable("an index of registers but for one move of 32 bits is not executed yet")
    target, found, number = row_of(move, "vdst"), register(move, "src0"), move.fields.pop("src0")
    if found is None and flags & SOURCE:
        raise Undecodable("scalar registers that an index counts are not executed yet")
    source = found.offset if found is not None else move.places.scalar(number, "i", 32)
    return Placed(INDEXED[flags], [target, source, move.places.scalar(first.fields["src0"], "i", 32)])
