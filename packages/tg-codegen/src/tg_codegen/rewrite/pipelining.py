"""Rows that overlap: loops that walk a row alike run as one, and a row is written while the next one is computed.

A softmax walks each row several times: for the maximum, for the exponentials and their sum, for the result. Two of
these loops that run equally often are *joined* where the second wants no more of the first than what it computes in the
same iteration. And the walk that writes a row can be *delayed*, so that it takes place inside of a walk over the next
row: where results go past the caches it waits for memory while the other walk computes. What it needs of its own row is
carried over: numbers in registers, and values that are kept for a row, which it reads just before they are replaced.

This is software pipelining (M. Lam, "Software pipelining", PLDI 1988) with two stages, of loops in place of
instructions. It works on the structured form; what a kernel computes, and the order within each sum, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from tg_lazy import LINEAR, SHIFTS, Ops
from tg_shape import toposort

from ..ir.facts import pointer_base
from ..ir.spec import CLOSES, EFFECTS, LISTS, WAITS
from ..ir.uop import STREAM, UOp, UOps, const

SIMPLE = EFFECTS - LISTS - CLOSES

ChangedRows = tuple[UOp, UOp | None]
"""A loop over rows, and what is to come after it, if anything."""


def with_joined_walks(sink: UOp) -> UOp:
    """The structured form of a kernel with neighbouring walks over a row joined; itself where there are none."""
    return over_rows(sink.toposort(), lambda row: (joined_walks(row), None))


def delayed(sink: UOp, worth: Callable[[Delay], bool] = lambda delay: True) -> UOp:
    """The structured form of a kernel whose rows are written in a walk of the next row; itself where none can be.

    Args:
      sink: the kernel.
      worth: which of the delays that are possible are to take place.
    """
    order = sink.toposort()
    numbers = count(1 + max((u.arg for u in order if u.op is UOps.ACC), default=-1))

    def change(row: UOp) -> ChangedRows:
        found = delay_of(row)
        return found.applied(numbers) if found is not None and worth(found) else (row, None)

    return over_rows(order, change)


def is_row(u: UOp) -> bool:
    """Whether a node is a loop that contains several loops."""
    return u.op is UOps.LOOP and sum(e.op is UOps.LOOP for e in u.src[1:]) > 1


def over_rows(order: Sequence[UOp], change: Callable[[UOp], ChangedRows]) -> UOp:
    """A kernel in which ``change`` was applied to each loop that contains several loops.

    Args:
      order: the nodes of the kernel, operands first.
      change: what is done to such a loop.
    """
    new: dict[UOp, UOp] = {}  # of nodes that are others now, or that others follow
    rest: dict[UOp, UOp] = {}
    for u in order if any(map(is_row, order)) else ():
        found, last = u, None
        if not new.keys().isdisjoint(u.src):
            src: list[UOp] = []
            for s in u.src:
                src.append(new.get(s, s))
                if src[-1] in rest and u.op is not UOps.READ:
                    src.append(rest[src[-1]])
            found = u.replace(tuple(src))
        if is_row(found):
            found, last = change(found)
            if last is not None:
                rest[found] = last
        if found is not u or last is not None:
            new[u] = found
    return new.get(order[-1], order[-1])


def rebuilt(root: UOp, swap: Mapping[UOp, UOp]) -> UOp:
    """A node in which some of the nodes that it depends on were replaced."""
    new = dict(swap)
    for u in root.toposort():
        if u not in new:
            new[u] = u.replace(tuple(new[s] for s in u.src))
    return new[root]


def walks_alike(one: UOp, other: UOp) -> bool:
    """Whether two effects are loops that run equally often, of nothing but stores, prefetches and registers."""
    if one.op is not UOps.LOOP or other.op is not UOps.LOOP or one.src[0].src != other.src[0].src:
        return False
    return all(e.op in SIMPLE for loop in (one, other) for e in loop.src[1:])


def joined_walks(row: UOp) -> UOp:
    """A loop over rows whose neighbouring walks are one where they can be."""
    effects = list(row.src[1:])
    at = 0
    while at + 1 < len(effects):
        both = join_loops(effects[at], effects[at + 1])
        if both is None:
            at += 1
            continue
        swap = {effects[at]: both, effects[at + 1]: both}
        effects[at:] = [both, *(rebuilt(e, swap) for e in effects[at + 2 :])]
    return row.replace((row.src[0], *effects))


def join_loops(first: UOp, second: UOp) -> UOp | None:
    """Both loops as one; None if the second needs more of the first than one iteration of it."""
    if not walks_alike(first, second) or any(e.op is UOps.STORE for e in second.src[1:]):
        return None
    stores = [e for e in first.src[1:] if e.op is UOps.STORE]
    if not stores or any(e.op is UOps.ASSIGN for e in first.src[1:]):
        return None
    if any(len(e.src) > 3 or pointer_base(e.src[0]).op is not UOps.SCRATCH for e in stores):
        return None
    if not all(apart(e.src[1], first.src[0]) for e in stores):
        return None  # later iterations store there again: what the second loop reads is the last one's
    held = {(pointer_base(e.src[0]), e.src[1], e.src[2].dtype): e.src[2] for e in stores}
    new: dict[UOp, UOp] = {second.src[0]: first.src[0]}
    waits: set[UOp] = set()
    for u in second.toposort():
        if first in u.src:
            if u.op is not UOps.AFTER:
                return None
            waits.add(u)
        elif u.op is UOps.LOAD and u.src[0] in waits:
            value = held.get((pointer_base(u.src[0]), new[u.src[1]], u.dtype))
            if value is None or len(u.src) > 2:
                return None  # another element, or none where a condition does not hold
            new[u] = value
        elif not waits.isdisjoint(u.src):
            return None
        if u not in new:
            new[u] = u.replace(tuple(new[s] for s in u.src))
    return first.replace((*first.src, *(new[e] for e in second.src[1:])))


def apart(index: UOp, counter: UOp) -> bool:
    """Whether an index provably takes a different value in every iteration of a loop."""
    while index is not counter:
        varying = [s for s in index.src if counter in s.toposort()]
        fixed = [s for s in index.src if s not in varying]
        if len(varying) != 1 or len(index.src) != 2 or index.op not in LINEAR:
            return False
        scaled = index.op is Ops.MUL or (index.op in SHIFTS and varying[0] is index.src[0])
        if (index.op is Ops.MUL or index.op in SHIFTS) and not (scaled and fixed and fixed[0].is_const):
            return False
        if index.op is Ops.MUL and not fixed[0].arg:
            return False
        index = varying[0]
    return True


def delay_of(row: UOp) -> Delay | None:
    """How the last walk of a loop over rows can wait for a walk of the next row; None where it cannot."""
    *walks, write = row.src[1:]
    if len(row.src[0].src) != 2 or any(e.op is not UOps.STORE for e in write.src[1:]):
        return None
    delays = (Delay(row, walk, write) for walk in reversed(walks) if walks_alike(walk, write))
    return next((delay for delay in delays if delay.possible()), None)


def hides_memory(delay: Delay) -> bool:
    """Whether a delay gains: the walk that writes goes past the caches, and the one that it waits for computes.

    Where nothing of a row is kept, its values are cheap, and both walks wait for memory alone.
    """
    streams = all(e.arg == STREAM for e in delay.write.src[1:])
    return streams and any(e.op is UOps.ASSIGN for e in delay.walk.src[1:]) and bool(delay.late)


class Delay:
    """A loop over rows of which each can write what the row before it computed.

    Attributes:
      row: the loop.
      walk: the walk of the next row in which the last one is to take place.
      write: the last walk.
      late: what the last walk reads of what rows change, as places in the terms of ``walk``.
    """

    def __init__(self, row: UOp, walk: UOp, write: UOp) -> None:
        self.row, self.walk, self.write = row, walk, write
        self.counter, self.effects = row.src[0], row.src[1:]
        self.stores = [u for u in row.toposort() if u.op is UOps.STORE and u not in write.src]
        changed = {pointer_base(e.src[0]) for e in (*self.stores, *write.src[1:])}
        swap = {write.src[0]: walk.src[0]}
        loads = [(pointer_base(u.src[0]), u.src[1], u.dtype) for u in self.own() if u.op is UOps.LOAD]
        self.late = [(base, rebuilt(index, swap), dtype) for base, index, dtype in loads if base in changed]

    def possible(self) -> bool:
        """Whether what the last walk reads is still there one row later.

        It reads each value just before the next row's takes its place, which no earlier iteration did, and nothing else
        that a row changes; and no other walk reads what it writes.
        """
        stores = [e for e in self.walk.src[1:] if e.op is UOps.STORE and apart(e.src[1], self.walk.src[0])]
        kept = {(pointer_base(e.src[0]), e.src[1], e.src[2].dtype) for e in stores}
        bases = {base for base, *_ in self.late}
        if not kept.issuperset(self.late) or any(
            pointer_base(u.src[0]) in bases and u not in self.walk.src for u in self.stores
        ):
            return False
        written = {pointer_base(e.src[0]) for e in self.write.src[1:]}
        earlier = (u for e in self.effects[:-1] for u in e.toposort() if u.op is UOps.LOAD)
        return not any(pointer_base(u.src[0]) in written for u in earlier) and self.around() is not None

    def around(self) -> tuple[UOp, ...] | None:
        """The counters of the loops around the rows, read off a register that each row initialises; None without one.

        Where that register belongs to a loop within the row, those loops' counters are left out.
        """
        nodes = self.row.toposort()
        within = {u.src[0] for u in nodes if u.op is UOps.LOOP}
        for u in nodes:
            if u.op is UOps.ASSIGN and self.counter in u.src[0].src:
                return tuple(s for s in u.src[0].src[1:] if s not in within)
        return None

    def own(self) -> list[UOp]:
        """What the last walk computes itself, operands first: not what other walks leave."""
        return toposort(self.write.src[1:], lambda u: () if u.op in WAITS else u.src)

    def applied(self, numbers: Iterator[int]) -> ChangedRows:
        """The loop with its last walk moved into the one that it waits for, ahead of what overwrites its operands.

        Args:
          numbers: for the registers that carry what it needs of its own row.

        Returns:
          the loop, and the effect after it that writes the last row.
        """
        counter, (start, end) = self.counter, self.counter.src
        one = const(1, counter.dtype)
        around = self.around()
        assert around is not None, "possible() says so"
        needs: dict[UOp, UOp] = {}
        for value in self.carried():
            zero = const(0, value.dtype)
            needs[value] = UOp(UOps.ACC, value.dtype, (zero, *around), next(numbers))
        second = start.alu(Ops.CMPLT, counter)
        late = self.moved(counter.alu(Ops.SUB, one), self.walk.src[0], needs, second)
        begun = UOp(UOps.IF, self.walk.dtype, (second, *late))
        swap = {self.walk: self.walk.replace((self.walk.src[0], begun, *self.walk.src[1:]))}
        carry = [
            UOp(UOps.ASSIGN, self.walk.dtype, (register, rebuilt(value, swap))) for value, register in needs.items()]
        row = self.row.replace((counter, *(rebuilt(e, swap) for e in self.effects[:-1]), *carry))
        after = {value: UOp(UOps.READ, value.dtype, (register, row)) for value, register in needs.items()}
        some = start.alu(Ops.CMPLT, end)
        last = self.moved(end.alu(Ops.SUB, one), self.write.src[0], after, some)
        loop = UOp(UOps.LOOP, self.write.dtype, (self.write.src[0], *last))
        return row, UOp(UOps.IF, self.write.dtype, (some, loop))

    def carried(self) -> list[UOp]:
        """The values that the last walk takes from the other walks of its row, one each for the whole row."""
        found: dict[UOp, None] = {}
        varies: set[UOp] = {self.write.src[0]}
        late: set[UOp] = set()
        for u in self.own():
            if (u.op is UOps.READ and u.src[1] in self.effects) or not late.isdisjoint(u.src):
                late.add(u)
            if not varies.isdisjoint(u.src):
                varies.add(u)
                found.update((s, None) for s in u.src if s in late and s not in varies)
        return list(found)

    def moved(self, row: UOp, walk: UOp, needs: Mapping[UOp, UOp], there: UOp) -> list[UOp]:
        """The last walk's effects, computed for another row and run in another loop.

        Args:
          row: the number of the row.
          walk: the counter of the loop.
          needs: what is in place of the values that are carried over.
          there: whether there is such a row: a load with a gate may be moved out of the condition around it.
        """
        new: dict[UOp, UOp] = {self.write.src[0]: walk, self.counter: row, **needs}
        for u in self.own():
            if u.op is UOps.AFTER:  # what it waits for was there a row before
                new[u] = pointer_base(u)
            elif u not in new:
                src = u.src if u.op is UOps.READ else tuple(new[s] for s in u.src)
                if u.op is UOps.LOAD and len(src) > 2 and src[1] is not u.src[1]:
                    src = (*src[:2], src[2].alu(Ops.AND, there.broadcast(src[2].dtype.count)), src[3])
                new[u] = u.replace(src)
        return [new[e] for e in self.write.src[1:]]
