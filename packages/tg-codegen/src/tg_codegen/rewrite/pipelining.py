"""Rows that overlap: loops that walk a row alike run as one, and a row is written while the next one is computed.

A softmax walks each row several times: for the maximum, for the exponentials and their sum, for the result. Two of
these loops that run equally often are *joined* where the second wants no more of the first than what it computes in the
same iteration. And where results go past the caches, the walk that writes them waits for memory while the others
compute: it is *delayed* by a row, and takes place inside of the next row's last walk. What it needs of its own row is
carried over: numbers in registers, and values that are kept for a row, which the walk reads just before they are
replaced.

This is software pipelining (M. Lam, "Software pipelining", PLDI 1988) with two stages, of loops in place of
instructions. It works on the structured form; what a kernel computes, and the order within each sum, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from tg_lazy import Ops
from tg_shape import toposort

from ..ir.facts import pointer_base
from ..ir.uop import STREAM, UOp, UOps, const

SIMPLE = frozenset({UOps.STORE, UOps.PREFETCH, UOps.ASSIGN})


def overlap(sink: UOp) -> UOp:
    """The structured form of a kernel with its rows overlapping, where it has such."""
    order = sink.toposort()
    numbers = count(1 + max((u.arg for u in order if u.op is UOps.ACC), default=-1))
    new: dict[UOp, UOp] = {}
    rest: dict[UOp, UOp] = {}
    for u in order:
        src: list[UOp] = []
        for s in u.src:
            src.append(new[s])
            if src[-1] in rest and u.op is not UOps.READ:
                src.append(rest[src[-1]])
        found = u.replace(tuple(src))
        if found.op is UOps.LOOP and sum(e.op is UOps.LOOP for e in found.src[1:]) > 1:
            delayed = Delayed(joined(found), numbers)
            found = delayed.row
            if delayed.last is not None:
                rest[found] = delayed.last
        new[u] = found
    return new[sink]


def rebuilt(root: UOp, swap: Mapping[UOp, UOp]) -> UOp:
    """A node with others in place of those under it."""
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


def joined(row: UOp) -> UOp:
    """A loop over rows whose neighbouring walks are one where they can be."""
    effects = list(row.src[1:])
    at = 0
    while at + 1 < len(effects):
        both = join(effects[at], effects[at + 1])
        if both is None:
            at += 1
            continue
        swap = {effects[at]: both, effects[at + 1]: both}
        effects[at:] = [both, *(rebuilt(e, swap) for e in effects[at + 2 :])]
    return row.replace((row.src[0], *effects))


def join(first: UOp, second: UOp) -> UOp | None:
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
            if value is None:
                return None
            new[u] = value
        elif not waits.isdisjoint(u.src):
            return None
        if u not in new:
            new[u] = u.replace(tuple(new[s] for s in u.src))
    return first.replace((*first.src, *(new[e] for e in second.src[1:])))


def apart(index: UOp, counter: UOp) -> bool:
    """Whether an index is another one in each iteration of a loop, as far as its form tells."""
    while index is not counter:
        varying = [s for s in index.src if counter in s.toposort()]
        fixed = [s for s in index.src if s not in varying]
        if len(varying) != 1 or index.op not in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL):
            return False
        scaled = index.op is Ops.MUL or (index.op is Ops.SHL and varying[0] is index.src[0])
        if index.op in (Ops.MUL, Ops.SHL) and not (scaled and fixed and fixed[0].is_const):
            return False
        if index.op is Ops.MUL and not fixed[0].arg:
            return False
        index = varying[0]
    return True


class Delayed:
    """A loop over rows of which each writes what the row before it computed, where that gains.

    Attributes:
      row: the loop; as it was, if nothing is delayed.
      last: the effect after it that writes the last row; None if nothing is delayed.
    """

    def __init__(self, row: UOp, numbers: Iterator[int]) -> None:
        self.row = row
        self.last: UOp | None = None
        self.counter, effects = row.src[0], row.src[1:]
        self.effects, self.walk, self.write = frozenset(effects), effects[-2], effects[-1]
        self.numbers = numbers
        if len(self.counter.src) == 2 and walks_alike(self.walk, self.write) and self.may_wait():
            self.delay()

    def may_wait(self) -> bool:
        """Whether the last walk writes past the caches what the one before it keeps, and finds it a row later.

        It reads each value just before the next row's takes its place, and nothing else that a row changes. Where
        nothing is kept, a row's values are cheap, and its walks wait for memory alone.
        """
        writes, walk = self.write.src[1:], self.walk.src[1:]
        if any(e.op is not UOps.STORE or e.arg != STREAM for e in writes) or not any(e.op is UOps.ASSIGN for e in walk):
            return False
        stores = [u for u in self.row.toposort() if u.op is UOps.STORE and u not in writes]
        if any(e.op is not UOps.LOOP for e in self.effects) or any(
            u not in walk for u in stores if pointer_base(u.src[0]).op is UOps.SCRATCH
        ):
            return False
        kept = {(pointer_base(e.src[0]), e.src[1]) for e in walk if e.op is UOps.STORE}
        changed = {pointer_base(e.src[0]) for e in (*stores, *writes)}
        swap = {self.write.src[0]: self.walk.src[0]}
        loads = [(pointer_base(u.src[0]), u.src[1]) for u in self.own() if u.op is UOps.LOAD]
        late = [(base, rebuilt(index, swap)) for base, index in loads if base in changed]
        earlier = (u for e in self.row.src[1:-1] for u in e.toposort() if u.op is UOps.LOAD)
        written = {pointer_base(e.src[0]) for e in writes}
        return bool(late) and kept.issuperset(late) and not any(pointer_base(u.src[0]) in written for u in earlier)

    def own(self) -> list[UOp]:
        """What the last walk computes itself, operands first: not what other walks leave."""
        return toposort(self.write.src[1:], lambda u: () if u.op in (UOps.READ, UOps.AFTER) else u.src)

    def delay(self) -> None:
        """Puts the last walk into the one before it, a row late: before what takes the place of what it reads."""
        counter, (start, end) = self.counter, self.counter.src
        one = const(1, counter.dtype)
        register = next(e.src[0] for e in self.walk.src[1:] if e.op is UOps.ASSIGN)
        outer = tuple(s for s in register.src[1:] if s is not counter)
        needs: dict[UOp, UOp] = {}
        for value in self.carried():
            zero = const(0, value.dtype)
            needs[value] = UOp(UOps.ACC, value.dtype, (zero, *outer), next(self.numbers))
        late = self.moved(counter.alu(Ops.SUB, one), self.walk.src[0], needs)
        begun = UOp(UOps.IF, self.walk.dtype, (start.alu(Ops.CMPLT, counter), *late))
        walk = self.walk.replace((self.walk.src[0], begun, *self.walk.src[1:]))
        carry = [
            UOp(UOps.ASSIGN, self.walk.dtype, (register, rebuilt(value, {self.walk: walk})))
            for value, register in needs.items()
        ]
        self.row = self.row.replace((counter, *self.row.src[1:-2], walk, *carry))
        after = {value: UOp(UOps.READ, value.dtype, (register, self.row)) for value, register in needs.items()}
        last = self.moved(end.alu(Ops.SUB, one), self.write.src[0], after)
        loop = UOp(UOps.LOOP, self.write.dtype, (self.write.src[0], *last))
        self.last = UOp(UOps.IF, self.write.dtype, (start.alu(Ops.CMPLT, end), loop))

    def carried(self) -> list[UOp]:
        """The values, as far as they are the same along a row, that the last walk takes from the others."""
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

    def moved(self, row: UOp, walk: UOp, needs: Mapping[UOp, UOp]) -> list[UOp]:
        """The last walk's effects for another row and in another loop.

        Args:
          row: the number of the row.
          walk: the counter of the loop.
          needs: what is in place of the values that are carried over.
        """
        new: dict[UOp, UOp] = {self.write.src[0]: walk, self.counter: row, **needs}
        for u in self.own():
            if u.op is UOps.AFTER:  # what it waits for was there a row before
                new[u] = pointer_base(u)
            elif u not in new:
                new[u] = u if u.op is UOps.READ else u.replace(tuple(new[s] for s in u.src))
        return [new[e] for e in self.write.src[1:]]
