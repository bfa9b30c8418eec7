"""Which values of a linear kernel stand inside the expression that uses them; all others get a variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.spec import CLOSES, LANE_MOVES, OPENS
from ..ir.uop import UOp, UOps, is_alu


def inlined(uops: Sequence[UOp], uses: Mapping[UOp, int]) -> set[UOp]:
    """Values used once, in the region that makes them, with no change of a register they read in between.

    Args:
      uops: a linear kernel.
      uses: how often each node stands as an operand.
    """
    position, region, user = {}, {}, {}
    open_regions, count = [0], 0
    reads: dict[UOp, frozenset[UOp]] = {}
    changes: dict[UOp, list[int]] = {}
    for i, u in enumerate(uops):
        if u.op in CLOSES:
            open_regions.pop()
        for operand in u.src:
            user[operand] = u
        position[u], region[u] = i, open_regions[-1]
        if u.op in OPENS:
            count += 1
            open_regions.append(count)
        if u.op is UOps.ASSIGN:
            changes.setdefault(u.src[0], []).append(i)
        elif u.op is UOps.ACC:
            reads[u] = frozenset((u,))
        elif is_alu(u) or u.op in LANE_MOVES:
            reads[u] = frozenset().union(*(reads.get(operand, ()) for operand in u.src))
    chosen: set[UOp] = set()
    lands: dict[UOp, int] = {}
    for u in reversed(uops):
        lands[u] = position[u]
        if not (is_alu(u) or u.op in LANE_MOVES) or uses.get(u) != 1 or region[user[u]] != region[u]:
            continue
        landing = lands[user[u]]
        if not any(position[u] < i < landing for register in reads[u] for i in changes.get(register, ())):
            chosen.add(u)
            lands[u] = landing
    return chosen
