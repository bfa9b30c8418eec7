"""Chains of arithmetic that do not need one another, such as those of unrolled copies, side by side.

A processor starts what has its operands among the instructions that its scheduler holds. Where a chain takes so long
that the scheduler is full before as many chains are in it as would keep all units busy, copies that follow one another
wait for one another; written an instruction of each in turn, they all advance. There are as many as registers hold what
is alive in all of them, or some more: what is read again from the stack delays less than a chain that waits.

Source: Little's law; J. Fisher, "Trace Scheduling", IEEE Trans. Computers 30 (1981), on lists of what is ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tg_lazy import Ops

from ..ir.uop import UOp, UOps
from ..machine.target import Target
from .live_values import most_alive, registers_of

_ENDS = frozenset({UOps.STORE, UOps.ASSIGN})
"""Effects that a chain ends in."""


def in_turns(uops: list[UOp], target: Target) -> list[UOp]:
    """The same block with long chains side by side, where a thread hides by itself how long they take.

    Args:
      uops: operations, loads, stores and assignments in execution order.
      target: the machine.
    """
    ends = [at for at, u in enumerate(uops) if u.op in _ENDS]
    if len(ends) < 2:
        return uops
    chains = [uops[first : last + 1] for first, last in zip((0, *(at + 1 for at in ends)), ends, strict=False)]
    found, free = list[UOp](), None  # registers, told once for the block
    for long, group in groupby(chains, lambda chain: _long(chain, target)):
        run = [*group]
        if long and free is None:
            free = (target.registers - _kept(uops, target)) * target.cpu.crowding
        found += _groups(run, free, target) if long and free is not None else [u for chain in run for u in chain]
    return [*found, *uops[ends[-1] + 1 :]]


def _groups(run: list[list[UOp]], free: float, target: Target) -> Iterator[UOp]:
    """Long chains that follow one another, in groups alike in size, each as large as ``free`` registers allow."""
    alive = [most_alive(chain, target) for chain in run]
    size = next(size for size in (-(-len(run) // parts) for parts in range(1, len(run) + 1))
                if size == 1 or all(sum(alive[at : at + size]) <= free for at in range(0, len(run), size)))
    for at in range(0, len(run), size):
        yield from _side_by_side(run[at : at + size])


def _long(chain: Sequence[UOp], target: Target) -> bool:
    """Whether the scheduler is full before as many such chains are in it as keep all units busy."""
    if len(chain) * target.cpu.in_flight <= target.cpu.scheduler:
        return False
    depths: dict[UOp, int] = {}
    for u in chain:
        depths[u] = max([depths.get(s, 0) for s in u.src], default=0) + isinstance(u.op, Ops)
    return max(depths.values()) * target.cpu.in_flight > target.cpu.scheduler


def _kept(uops: Sequence[UOp], target: Target) -> int:
    """Registers that hold what a block changes, or only reads, all the time."""
    inside = set(uops)
    read = {s for u in uops for s in u.src if s not in inside and s.dtype.count > 1 and not s.is_const}
    return sum(registers_of(u.dtype, target) for u in read)


def _side_by_side(chains: Sequence[Sequence[UOp]]) -> list[UOp]:
    """An instruction of each chain in turn, as soon as it has its operands.

    Chains end together: what the first of them computes for all comes before. So effects stay in order, and none comes
    before what reads the state that it changes: it is the last of its chain, and is taken where all others have nothing
    but their effects left, or where it is of the first chain that has anything left.
    """
    waiting, rest = {u for chain in chains for u in chain}, [list(reversed(chain)) for chain in chains]
    found = list[UOp]()
    while any(rest):
        longest = max(map(len, rest))
        # where the longest wait for a shorter one, the first does not: it needs nothing of those behind it
        ready = [c for c in rest if len(c) == longest and waiting.isdisjoint(c[-1].src)] or [next(filter(None, rest))]
        for chain in ready:
            waiting.discard(chain[-1])
            found.append(chain.pop())
    return found
