"""The order of each block of straight code: long chains side by side, else few values alive at a time.

A compiler has a scheduler of its own, which counts registers too late in blocks of many values: LLVM's puts sums first
and differences behind, and spills half of what a butterfly holds. Barriers keep it from moving anything far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tg_dtype import dtypes

from ..ir.spec import EFFECTS, LEAVES, OPENS
from ..ir.uop import UOp, UOps
from ..machine.target import Target
from .interleave import in_turns
from .live_values import few_alive

_BORDERS = (EFFECTS | OPENS | frozenset(LEAVES)) - {UOps.STORE, UOps.ASSIGN}
"""What nothing is moved across. Leaves come first anyway."""
_APART = 16
"""Nodes between barriers: a compiler's scheduler gains little in so few, and 8 or 4 leave no fewer values to spill."""


def scheduled(uops: Sequence[UOp], target: Target) -> list[UOp]:
    """The same list, each of whose blocks is in an order that its machine runs faster.

    Args:
      uops: in execution order.
      target: the machine.
    """
    if not target.hides_latency:
        return list(uops)
    blocks: list[list[UOp]] = [[]]
    block_of: dict[UOp, int] = {}
    kept = set[UOp]()  # values that another block needs
    for u in uops:
        if u.op in _BORDERS:
            blocks += [[u], []]
        else:
            blocks[-1].append(u)
        here = block_of[u] = len(blocks)
        for s in u.src:
            if block_of[s] != here:
                kept.add(s)
    found = list[UOp]()
    for block in blocks:
        turns = in_turns(block, target)
        order = few_alive(block, kept, target) if turns == block else block
        found += turns if order == block else _kept_so(order)
    return found


def _kept_so(order: list[UOp]) -> Iterator[UOp]:
    """The same with barriers between, of a thread that waits for no other one."""
    for number, u in enumerate(order):
        if number and number % _APART == 0:
            yield UOp(UOps.BARRIER, dtypes.void, (), number)
        yield u
