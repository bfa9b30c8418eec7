"""Linearise: the structured form of a kernel, a DAG under one SINK, becomes a list in execution order.

Where a node goes
  * A listed effect (an operand of SINK, or of a LOOP or IF past the first) stands in that region, in the order listed.
  * Every other node is placed by its operands and its users: in the innermost region that holds all users, moved out of
    every LOOP that it does not depend on. It leaves an IF only on the way out of a LOOP.
  * What must not run more often than written stays inside its guard: a LOAD without a gate, an integer division by
    something that may be 0, and an effect do not leave an IF, nor a LOOP that may run zero times.
  * Constants, arguments, SPECIAL and SCRATCH come first.

State
  * ACC as an operand is the register's value on entry to the innermost region that assigns it, around the user. The
    value after an effect is READ. A use for which the register no longer holds that value is an error.
  * A LOAD from memory that the kernel also stores to is emitted before the first store to it in the same region that
    it does not depend on (through AFTER or otherwise) and that may write what it reads: kernels that work in place
    read old values.
  * A BARRIER counts as a store to all memory that other threads may write.

In the linear form READ and AFTER name the node that ends their effect (an ENDRANGE or ENDIF), and an IF carries a
number, so that every operand of a node stands before it in the list.
"""

from __future__ import annotations

from tg_dtype import dtypes

from ..ir.facts import accessed, pointer_base
from ..ir.spec import EFFECTS, LEAVES, REGIONS
from ..ir.uop import UOp, UOps
from .placement import LinearizeError, LinearRegion, Placement


def _constants(uops: list[UOp]) -> list[UOp]:
    """The constants, in the order in which they are first used."""
    return list(dict.fromkeys([s for u in uops for s in u.src if s.op is UOps.CONST]))


def _first_key(u: UOp) -> tuple[int, str | int]:
    """The order of what stands before everything: by op, then by slot or name."""
    arg = u.arg if u.op is UOps.PARAM else u.arg.name if u.op is UOps.VAR else u.arg[0]
    return LEAVES.index(u.op), arg


_READING = frozenset({UOps.READ, UOps.LOAD})
"""What reads a state that effects change."""


class _Linearizer:
    """Writes the list, region by region, operands of each effect depth-first just before it."""

    def __init__(self, placed: Placement) -> None:
        self.placed = placed
        self.out: list[UOp] = []
        self.done: dict[UOp, UOp] = {}
        self.early: set[UOp] = set()
        self.ifs = 0
        self.assigned: set[tuple[LinearRegion, UOp]] = set()
        # What is to be read before it is overwritten, by region and state, then by what its place is counted from.
        self.pending: dict[tuple[LinearRegion, UOp], dict[UOp | None, list[UOp]]] = {}
        self.at: dict[tuple[LinearRegion, UOp, UOp | None, int], list[UOp]] = {}
        self.waits_for: dict[UOp, UOp] = {}
        for u in placed.order:
            if u.op in EFFECTS or (u.op not in _READING and u not in placed.registers):
                continue
            states = list(placed.registers.get(u, ()))
            if u.op is UOps.READ:
                states.append(u.src[0])
            elif u.op is UOps.LOAD and (memory := pointer_base(u.src[0])) in placed.stored:
                states.append(memory)
            for state in states:
                key = (placed.region[u], state)
                base, elements = accessed(u) if u.op is UOps.LOAD and state in placed.stored else (state, range(0))
                self.pending.setdefault(key, {}).setdefault(base, []).append(u)
                for element in elements:
                    self.at.setdefault((*key, base, element), []).append(u)

    def run(self) -> list[UOp]:
        first = [u for u in self.placed.order if u.op in LEAVES and not u.is_const]
        self.done.update((u, u) for u in self.placed.order if u.op in LEAVES)
        stack: list[tuple[str, UOp]] = [("list", u) for u in reversed(self.placed.order[-1].src)]
        while stack:
            step, u = stack.pop()
            if step == "list":
                if u in self.early:
                    self.early.discard(u)
                    continue
                stack.append(("emit", u))
                stack += [("visit", s) for s in reversed(self._operands(u))]
            elif step == "visit":
                if u not in self.done:
                    if u in self.placed.listed:
                        self.early.add(u)
                    missing = self._operands(u)
                    if missing or u.op in EFFECTS:
                        stack.append(("emit", u))
                        missing.reverse()
                        stack += [("visit", s) for s in missing]
                    else:
                        self._emit(u, stack)
            elif step == "emit":
                if u in self.done and u.op not in EFFECTS:
                    continue
                readers = self._readers_before(u) if u.op in EFFECTS else []
                if readers:
                    stack.append(("emit", u))
                    stack.extend(("visit", r) for r in reversed(readers))
                else:
                    self._emit(u, stack)
            else:
                self._close(u)
        return [*sorted(first, key=_first_key), *_constants(self.out), *self.out]

    def _operands(self, u: UOp) -> list[UOp]:
        """What must be emitted before the node, in its own region."""
        region, done = self.placed.region, self.done
        home, nodes = region[u], u.src
        if u.op in REGIONS:
            direct = u.src[0].src if u.op is UOps.LOOP else u.src[:1]
            nodes = (*direct, *self.placed.body[u].live_in)
        return [s for s in nodes if s not in done and region[s] is home and s.op is not UOps.RANGE]

    def _readers_before(self, effect: UOp) -> list[UOp]:
        """Values of this region that must be taken before ``effect`` overwrites what they read."""
        ready: list[UOp] = []
        base, elements = accessed(effect) if effect.op is UOps.STORE else (effect, range(0))
        for state in self.placed.writes.get(effect, ()):
            key = (self.placed.region[effect], state)
            groups = self.pending.get(key, {})
            for other, waiting in groups.items():
                if other is base:  # the places tell which are the same
                    readers = list(dict.fromkeys(r for n in elements for r in self.at.get((*key, base, n), ())))
                else:
                    readers = groups[other] = [r for r in waiting if r not in self.done]
                ready.extend(r for r in readers if r not in self.done and not self._waits(r, effect))
        return ready

    def _waits(self, reader: UOp, effect: UOp) -> bool:
        """Whether ``reader`` depends on an effect that is yet to come."""
        cause = self.waits_for.get(reader)
        if cause is not None and cause not in self.done:
            return True
        seen = {reader}
        stack = [reader]
        while stack:
            u = stack.pop()
            if u is effect or u in self.placed.listed:
                self.waits_for[reader] = u
                return True
            for s in self._operands(u):
                if s not in seen:
                    seen.add(s)
                    stack.append(s)
        return False

    def _emit(self, u: UOp, stack: list[tuple[str, UOp]]) -> None:
        if u in self.placed.registers:
            self._check_registers(u)
        if u.op in REGIONS:
            if u.op is UOps.LOOP:
                counter = u.src[0]
                opened = self.done[counter] = counter.replace(tuple(self.done[s] for s in counter.src))
            else:
                opened = UOp(UOps.IF, u.dtype, (self.done[u.src[0]],), self.ifs)
                self.ifs += 1
            self.out.append(opened)
            self.done[u] = UOp(UOps.ENDRANGE if u.op is UOps.LOOP else UOps.ENDIF, dtypes.void, (opened,))
            stack.append(("close", u))
            stack.extend(("list", s) for s in reversed(u.src[1:]))
            return
        done = self.done
        new = done[u] = u.replace(tuple([done[s] for s in u.src]))
        self.out.append(new)
        if u.op is UOps.ASSIGN:
            self.assigned.add((self.placed.region[u], u.src[0]))

    def _close(self, u: UOp) -> None:
        self.out.append(self.done[u])
        for state in self.placed.writes[u]:
            if state.op is UOps.ACC:
                self.assigned.add((self.placed.region[u], state))

    def _check_registers(self, u: UOp) -> None:
        for register in self.placed.registers[u]:
            for region in self.placed.region[u].around():
                if (region, register) in self.assigned:
                    raise LinearizeError(f"{u!r} uses {register!r}, which its region has already assigned; use READ")
                if register in self.placed.writes[region.effect]:
                    break


def linearize(sink: UOp) -> list[UOp]:
    """The structured form as a list in execution order, without the SINK.

    >>> from tg_codegen.ir.uop import const
    >>> data = UOp(UOps.PARAM, dtypes.int32.ptr(4), (), 0)
    >>> i = UOp(UOps.RANGE, dtypes.int32, (const(0, dtypes.int32), const(4, dtypes.int32)), "i")
    >>> store = UOp(UOps.STORE, dtypes.void, (data, i, i))
    >>> [u.op.name for u in linearize(UOp(UOps.SINK, dtypes.void, (UOp(UOps.LOOP, dtypes.void, (i, store)),)))]
    ['PARAM', 'CONST', 'CONST', 'RANGE', 'STORE', 'ENDRANGE']

    Raises:
      LinearizeError: if a value is used outside the loop that it depends on, a RANGE has no loop or two, or a register
        is used after its region has assigned it.
    """
    if sink.op is not UOps.SINK:
        raise LinearizeError(f"the structured form ends in SINK, got {sink!r}")
    return _Linearizer(Placement(sink)).run()
