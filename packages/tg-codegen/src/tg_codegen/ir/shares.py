"""Which part of each buffer every thread of a kernel reads and writes, as far as bounds tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tg_dtype import dtypes
from tg_lazy import ALU, COMPARISONS, Ops

from .bounds import Bounds, Interval, dtype_bounds
from .facts import element, pointer_base
from .spec import CLOSES, OPENS, TRANSFERS
from .uop import UOp, UOps

Shares = tuple[Interval | None, ...]
"""For each thread, the first of a buffer's bytes that it may touch, and the one after the last; None for none."""


def shares(uops: Sequence[UOp], threads: int) -> dict[int, Shares]:
    """What each thread of a linear kernel touches, by the slot of a buffer; those that none touches are left out.

    Every byte that a thread reads or writes is within its interval. Which others are is not said: where an index is
    read from memory, all that its dtype has are.

    >>> from tg_codegen.ir.builder import LinearBuilder
    >>> k = LinearBuilder()
    >>> data, first = k.param(0, dtypes.float32), k.alu(Ops.MUL, k.special("core_id", 2), k.const(8))
    >>> with k.range(k.alu(Ops.ADD, first, k.const(8)), first) as i:
    ...     _ = k.store(data, i, k.const(1, dtypes.float32))
    >>> shares(k.uops, 2)
    {0: ((0, 32), (32, 64))}
    """
    kernel = _Accesses(uops)
    each = [kernel.touched(thread) for thread in range(threads)]
    slots = sorted({slot for found in each for slot in found})
    return {slot: tuple(found.get(slot) for found in each) for slot in slots}


class _Accesses:
    """The accesses of a linear kernel to its buffers, and what decides which of them happen."""

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.steps = [
            u for u in uops
            if u.op in OPENS or u.op in CLOSES or (u.op in TRANSFERS and pointer_base(u.src[0]).op is UOps.PARAM)
        ]  # fmt: skip
        varying: set[UOp] = set()
        for u in uops:
            if _is_core(u) or any(s in varying for s in u.src):
                varying.add(u)
        self.common = _Decided(None)
        for u in self.steps:
            for value in _deciding(u):
                if value not in varying:
                    self.common(value)
        gates = [gate for u in self.steps if u.op in TRANSFERS and (gate := _gate(u)) is not None]
        self.facts = {gate: _facts(gate) for gate in gates}

    def touched(self, thread: int) -> dict[int, Interval]:
        """The bytes of each buffer between which all lie that a thread reads and writes."""
        bounds = _Decided(thread, self.common)
        narrowed: dict[UOp, _Decided] = {}
        found: dict[int, Interval] = {}
        depth, skipped = 0, 0
        for u in self.steps:
            if u.op in OPENS:
                depth += 1
                if not skipped and bounds.never(u):
                    skipped = depth
            elif u.op in CLOSES:
                if skipped == depth:
                    skipped = 0
                depth -= 1
            elif not skipped:
                pointer = pointer_base(u.src[0])
                first, end = bounds.lanes(u)
                if first < end:
                    gate, within = _gate(u), bounds
                    if gate is not None and (facts := self.facts.get(gate)):
                        within = narrowed.get(gate) or narrowed.setdefault(gate, _Decided(thread, None, facts))
                    low, high = within(_place(u))
                    size = element(pointer).itemsize
                    own = (low + first) * size, (high + end) * size
                    known = found.get(pointer.arg, own)
                    found[pointer.arg] = min(known[0], own[0]), max(known[1], own[1])
        return found


def _is_core(u: UOp) -> bool:
    return u.op is UOps.SPECIAL and u.arg[0] == "core_id"


def _gate(u: UOp) -> UOp | None:
    """What a LOAD or STORE is gated by."""
    gate = u.src[2 if u.op is UOps.LOAD else 3 :]
    return gate[0] if gate else None


def _deciding(u: UOp) -> tuple[UOp, ...]:
    """The integers and bools that say what a step of a kernel touches, or whether what it opens is run."""
    if u.op in CLOSES:
        return ()
    if u.op in OPENS:
        return u.src[:2] if u.op is UOps.RANGE else u.src[:1]
    gate = _gate(u)
    return u.src[1:2] if gate is None else (u.src[1], gate)


def _facts(gate: UOp) -> dict[UOp, Interval]:
    """The bounds of integers that are compared with constants, where a gate is open: what an index read from memory is.

    A gate of several lanes tells of what all of them have in common.
    """
    facts: dict[UOp, Interval] = {}
    stack = [gate]
    while stack:
        u = stack.pop()
        negated = u.op is Ops.NOT
        inner = u.src[0] if negated else u
        if u.op is Ops.AND or u.op is UOps.BROADCAST:
            stack += u.src
        elif inner.op is Ops.CMPLT and all(dtypes.is_int(s.dtype) for s in inner.src):
            a, b = inner.src
            value, limit, is_less = (a, b, not negated) if b.op is UOps.CONST else (b, a, negated)
            if limit.op is not UOps.CONST:
                continue
            low, high = facts.get(value, dtype_bounds(value))
            number = int(limit.arg)
            if is_less:  # value < number, or number < value, does not hold
                high = min(high, number if negated else number - 1)
            else:
                low = max(low, number if negated else number + 1)
            facts[value] = low, high
    return facts


def _place(u: UOp) -> UOp:
    """The index of a LOAD or STORE; where it is taken out of a vector, computed from what that lane is made of."""
    index = u.src[1]
    return _lane(index.src[0], index.arg[0]) if index.op is UOps.GEP else index


def _lane(u: UOp, lane: int) -> UOp:
    """A lane of a vector, in as small a form as is easily found."""
    if u.dtype.count > 1 and u.op in ALU:
        return UOp(u.op, u.dtype.scalar(), tuple(_lane(s, lane) for s in u.src), u.arg)
    return u if u.dtype.count == 1 else u.gep(lane)


class _Decided(Bounds):
    """Bounds in one thread: its number is known, and with it what many comparisons say.

    Args:
      thread: the number; None for what holds in all.
      common: bounds of what does not depend on it.
      facts: bounds of some values that are known otherwise.
    """

    def __init__(
        self, thread: int | None, common: _Decided | None = None, facts: Mapping[UOp, Interval] | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        self._thread, self._facts = thread, facts or {}
        if common is not None:
            self._known.update(common._known)

    def never(self, u: UOp) -> bool:
        """Whether what a RANGE or an IF begins is not run at all."""
        if u.op is UOps.IF:
            return self(u.src[0])[1] == 0
        return self(u.src[1])[1] <= self(u.src[0])[0]

    def lanes(self, u: UOp) -> Interval:
        """The first lane of a LOAD or STORE whose gate may be open, and the one after the last."""
        gate = _gate(u)
        first, end = 0, (u.dtype if u.op is UOps.LOAD else u.src[2].dtype).count
        if gate is None:
            return first, end
        if gate.dtype.count == 1:
            return first, end if self(gate)[1] else first
        while first < end and not self(_lane(gate, end - 1))[1]:
            end -= 1
        while first < end and not self(_lane(gate, first))[1]:
            first += 1
        return first, end

    def operands(self, u: UOp) -> tuple[UOp, ...]:
        """All operands where it is arithmetic of integers and bools."""
        if u.op in COMPARISONS or u.op in (Ops.WHERE, Ops.NOT):
            whole = all(dtypes.is_int(s.dtype) or dtypes.is_bool(s.dtype) for s in u.src)
            return u.src if whole else super().operands(u)
        return super().operands(u)

    def own(self, u: UOp, of: list[Interval]) -> Interval | None:
        """The bounds of a node, from those of its operands and what is known; a known bool has those of 0 or 1."""
        fact, found = self._facts.get(u), self._computed(u, of)
        if fact is None:
            return found
        low, high = dtype_bounds(u)
        if found is not None and low <= found[0] and found[1] <= high:  # else it wraps, and may be anything
            low, high = found
        return max(low, fact[0]), min(high, fact[1])

    def _computed(self, u: UOp, of: list[Interval]) -> Interval | None:
        if _is_core(u) and self._thread is not None:
            return self._thread, self._thread
        if u.op is Ops.WHERE and len(of) == 3:
            chosen = of[1:] if of[0] == (0, 1) else [of[1] if of[0] == (1, 1) else of[2]]
            return min(low for low, _ in chosen), max(high for _, high in chosen)
        if of and dtypes.is_bool(u.dtype):
            return _decided(u.op, of)
        if u.op is Ops.NOT:  # -1 - x; of unsigned integers that is out of their range, and says nothing
            return -1 - of[0][1], -1 - of[0][0]
        return super().own(u, of)


def _decided(op: object, of: list[Interval]) -> Interval | None:
    """The bounds of a bool."""
    a, b = of[0], of[-1]
    if op is Ops.CMPLT:
        return _either(a[1] < b[0], a[0] >= b[1])
    if op in (Ops.CMPEQ, Ops.CMPNE):
        same, other = a == b and a[0] == a[1], a[1] < b[0] or b[1] < a[0]
        return _either(same, other) if op is Ops.CMPEQ else _either(other, same)
    if op is Ops.NOT:
        return 1 - a[1], 1 - a[0]
    if op is Ops.AND:
        return min(a[0], b[0]), min(a[1], b[1])
    if op in (Ops.OR, Ops.MAX):
        return max(a[0], b[0]), max(a[1], b[1])
    return a if op is UOps.BROADCAST else None


def _either(true: bool, false: bool) -> Interval:
    return int(true), 1 - int(false)
