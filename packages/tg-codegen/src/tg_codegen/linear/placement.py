"""Placement: the region in which each node of a structured kernel stands.

See :mod:`tg_codegen.linear.linearize` for the rules. The method is that of global code motion (C. Click, "Global code
motion, global value numbering", PLDI 1995): a first walk, users before operands, finds the innermost region that holds
all users of a node; a second, operands first, collects the regions that it must stay inside; a third, users first
again, moves it out of every other loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, PtrDType
from tg_lazy import ALU, INTEGER_DIVISIONS

from ..ir.bounds import Bounds
from ..ir.facts import pointer_base
from ..ir.spec import EFFECTS, LEAVES, REGIONS, REGISTERS
from ..ir.uop import UOp, UOps
from ..ir.verify import InvalidIR


class LinearizeError(InvalidIR):
    """The structured form has no order of execution; the message names the node."""


class LinearRegion:
    """A body: the kernel's, a LOOP's or an IF's. ``path`` has the bits of this region and of those around it."""

    __slots__ = ("bit", "depth", "effect", "live_in", "parent", "path")

    parent: LinearRegion | None
    depth: int
    path: int

    def __init__(self, effect: UOp, parent: LinearRegion | None, number: int) -> None:
        self.effect = effect
        self.bit = 1 << number
        self.live_in: dict[UOp, None] = {}
        self.attach(parent)

    def attach(self, parent: LinearRegion | None) -> None:
        """Puts the region into another one."""
        self.parent = parent
        self.depth = parent.depth + 1 if parent else 0
        self.path = self.bit | (parent.path if parent else 0)

    def around(self) -> list[LinearRegion]:
        """This region and those around it, innermost first."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


def _common(a: LinearRegion, b: LinearRegion) -> LinearRegion:
    """The innermost region around both."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a


def _waits_of(pointer: UOp) -> list[UOp]:
    """The effects that a pointer waits for."""
    found: dict[UOp, None] = {}
    while pointer.op is UOps.AFTER:
        found.update(dict.fromkeys(pointer.src[1:]))
        pointer = pointer.src[0]
    return list(found)


def register_uses(u: UOp) -> tuple[UOp, ...]:
    """The ACC operands whose present value the node takes."""
    if u.op in REGISTERS:
        return ()
    operands = u.src[1:] if u.op is UOps.ASSIGN else () if u.op in REGIONS or u.op is UOps.AFTER else u.src
    return tuple(s for s in operands if s.op is UOps.ACC)


class Placement:
    """Decides the region of every node.

    Attributes:
      order: the nodes, operands first.
      region: the answer.
      registers: of nodes that take the present values of ACCs, which these are.
    """

    def __init__(self, sink: UOp) -> None:
        self.order = sink.toposort()
        self.region: dict[UOp, LinearRegion] = {}
        self.body: dict[UOp, LinearRegion] = {}
        self.of_range: dict[UOp, LinearRegion] = {}
        self.listed: dict[UOp, list[LinearRegion]] = {}
        self.registers: dict[UOp, tuple[UOp, ...]] = {}
        self.bounds = Bounds()
        self.root = LinearRegion(sink, None, 0)
        self._regions = 1
        self._place_late()
        self._collect_writes(sink)
        self._require()
        self._place()

    def _place_late(self) -> None:
        """Gives every node the innermost region that holds its users, and opens the regions."""
        late = self.region
        for u in reversed(self.order):
            if u.op not in _OPENING:
                self._meet(u.src, late[u])
            elif u.op is UOps.SINK:
                late[u] = self.root
                self._list(u.src, self.root)
            elif u.op in REGIONS:
                body = self.body[u] = LinearRegion(u, late[u], self._regions)
                self._regions += 1
                self._list(u.src[1:], body)
                if u.op is UOps.IF:
                    self._meet(u.src[:1], late[u])
                elif u.src[0] in self.of_range:
                    raise LinearizeError(f"RANGE {u.src[0].arg!r} has two loops")
                else:
                    self.of_range[u.src[0]] = body
                    self._meet(u.src[0].src, late[u])
            else:
                if u not in self.of_range:
                    raise LinearizeError(f"RANGE {u.arg!r} has no loop")
                late[u] = self.of_range[u]

    def _list(self, effects: tuple[UOp, ...], region: LinearRegion) -> None:
        for effect in effects:
            if effect.op not in EFFECTS:
                raise LinearizeError(f"{effect!r} is not an effect, yet {region.effect!r} lists it")
            self.listed.setdefault(effect, []).append(region)
            if effect.op in REGIONS and len(self.listed[effect]) > 1:
                raise LinearizeError(f"{effect!r} is listed twice")
        self._meet(effects, region)

    def _meet(self, nodes: tuple[UOp, ...], region: LinearRegion) -> None:
        known = self.region
        for node in nodes:
            before = known.get(node)
            if before is None:
                known[node] = region
            elif before is not region:
                known[node] = _common(before, region)

    def _collect_writes(self, sink: UOp) -> None:
        """For each effect, and each region with everything in it, how often it writes which memory or register."""
        stores = [u for u in self.order if u.op is UOps.STORE]
        self.stored = dict.fromkeys(pointer_base(u.src[0]) for u in stores)  # in their order, which the text follows
        shared = [p for p in self.stored if p.op is UOps.PARAM or _space(p) is AddrSpace.LOCAL]
        self.writes: dict[UOp, dict[UOp, int]] = {sink: {}}
        self.writes.update((effect, {}) for effect in self.body)
        for u in self.order:
            if u.op is UOps.STORE:
                own = {pointer_base(u.src[0]): 1}
            elif u.op is UOps.ASSIGN:
                own = {u.src[0]: 1}
            elif u.op is UOps.BARRIER:
                own = dict.fromkeys(shared, 1)
            else:
                continue
            self.writes[u] = own
            for body in self.region[u].around():
                total = self.writes[body.effect]
                for state in own:
                    total[state] = total.get(state, 0) + 1

    def _require(self) -> None:
        """Computes the regions that each node must stay inside, as bits."""
        need: dict[UOp, int] = {}
        self.need = need
        accumulators = {u for u in self.order if u.op is UOps.ACC}
        for u in self.order:
            bits = 0
            for s in u.src:
                bits |= need[s]
            if u.op in _FREE:
                if not accumulators.isdisjoint(u.src):
                    bits |= self._registers(u)
                need[u] = bits
                continue
            late = self.region[u]
            if u.op in REGIONS:
                bits &= ~self.body[u].bit
            elif u.op is UOps.RANGE:
                bits |= self.of_range[u].bit
            elif u.op is UOps.LOAD:
                memory = pointer_base(u.src[0])
                if memory in self.stored:
                    bits |= self._writer(late, memory, self._awaited(_waits_of(u.src[0]), memory))
                if len(u.src) == 2:
                    bits |= self._guard(late)
            elif u.op is UOps.READ:
                bits |= self._writer(late, u.src[0], self._awaited([u.src[1]], u.src[0]))
            elif u.op in INTEGER_DIVISIONS and not self._divisor_is_safe(u.src[1]):
                bits |= self._guard(late)
            if not accumulators.isdisjoint(u.src):
                bits |= self._registers(u)
            if u.op in EFFECTS:
                where = self.listed.get(u, ())
                if len(where) == 1:
                    bits |= where[0].bit
                elif not where:
                    bits |= late.bit if u.op is UOps.BARRIER else self._guard(late)
                    for state, count in self.writes.get(u, {}).items():
                        bits |= self._writer(late, state, count)
            need[u] = bits

    def _registers(self, u: UOp) -> int:
        """The regions in which the present values of registers that a node takes are those it is to take, as bits."""
        bits = 0
        used = register_uses(u)
        if used:
            self.registers[u] = used
            for register in used:
                bits |= self._writer(self.region[u], register, 0)
        return bits

    def _divisor_is_safe(self, u: UOp) -> bool:
        low, high = self.bounds(u)
        return low > 0 or high < 0

    def _writer(self, region: LinearRegion, state: UOp, own: int) -> int:
        """The innermost region around that writes ``state`` more than ``own`` times."""
        for b in region.around():
            if self.writes[b.effect].get(state, 0) > own:
                return b.bit
        return 0

    def _awaited(self, effects: Sequence[UOp], state: UOp) -> int:
        """How often effects that move along with what waits for them write ``state``."""
        return sum(self.writes.get(e, {}).get(state, 0) for e in effects if e not in self.listed)

    def _guard(self, region: LinearRegion) -> int:
        """The innermost region around whose body may not run."""
        for b in region.around():
            if b.effect.op is UOps.IF or (b.effect.op is UOps.LOOP and not self._runs(b.effect.src[0])):
                return b.bit
        return 0

    def _runs(self, counter: UOp) -> bool:
        """Whether the loop is seen to run at least once."""
        return self.bounds(counter.src[0])[1] < self.bounds(counter.src[1])[0]

    def _place(self) -> None:
        self.region = {}
        self.region[self.order[-1]] = self.root
        for u in reversed(self.order):
            where = self.listed.get(u)
            if where:
                region = where[0]
                for other in where[1:]:
                    region = _common(region, other)
            elif u.op is UOps.RANGE:
                region = self.of_range[u]
            elif u.op in LEAVES:
                region = self.root
            else:
                region = self._hoist(u, self.region[u])
            if u.op is not UOps.RANGE and self.need[u] & ~region.path:
                self._misplaced(u, region)
            self.region[u] = region
            if u.op in REGIONS:
                self.body[u].attach(region)
                self._meet(u.src[1:], self.body[u])
                self._meet(u.src[0].src if u.op is UOps.LOOP else u.src[:1], region)
            elif u.op is not UOps.RANGE:
                self._meet(u.src, region)
        self._find_live_in()

    def _hoist(self, u: UOp, region: LinearRegion) -> LinearRegion:
        best, need = region, self.need[u]
        while region.parent is not None and not need & region.bit:
            if region.effect.op is UOps.LOOP:
                best = region.parent
            region = region.parent
        return best

    def _misplaced(self, u: UOp, region: LinearRegion) -> None:
        missing = self.need[u] & ~region.path
        for body in self.body.values():
            if body.bit & missing:
                name = f"LOOP {body.effect.src[0].arg!r}" if body.effect.op is UOps.LOOP else repr(body.effect)
                raise LinearizeError(f"{u!r} depends on the inside of {name} and is used outside it")

    def _find_live_in(self) -> None:
        """For each region, the values from around it that it uses."""
        region = self.region
        for u in self.order:
            if u.op is UOps.RANGE:
                continue
            if u.op not in EFFECTS:
                here = region[u]
                for s in u.src:
                    if region[s] is not here:
                        break
                else:
                    continue
            for s in (*u.src[0].src, *u.src) if u.op is UOps.LOOP else u.src:
                if s.op in LEAVES or s.op is UOps.RANGE:
                    continue
                at = self.region[s]
                if u.op in REGIONS and self.listed.get(s, (None,))[0] is self.body[u]:
                    continue
                for home in self.listed.get(u, (self.region[u],)):  # an effect may stand in several regions
                    inner: LinearRegion | None = home
                    while inner is not None and inner is not at and inner.parent is not at:
                        inner = inner.parent
                    if inner is None:
                        raise LinearizeError(f"{u!r} uses {s!r} from outside the region that holds it")
                    if inner is not at:
                        inner.live_in[s] = None


_OPENING = REGIONS | {UOps.SINK, UOps.RANGE}
"""What opens a region, and what stands for its iterations."""
_FREE = ALU - INTEGER_DIVISIONS
"""What may stand wherever its operands do."""


def _space(pointer: UOp) -> AddrSpace:
    assert isinstance(pointer.dtype, PtrDType)
    return pointer.dtype.space
