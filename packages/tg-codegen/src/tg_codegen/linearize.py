"""Linearise: the structured form of a kernel, a DAG under one SINK, becomes a list in execution order.

Where a node goes
  * A listed effect (an operand of SINK, or of a LOOP or IF past the first) stands in that block, in the order listed.
  * Every other node is placed by its operands and its users: in the innermost block that holds all users, moved out of
    every LOOP that it does not depend on. It leaves an IF only on the way out of a LOOP.
  * What must not run more often than written stays inside its guard: a LOAD without a gate, an integer division by
    something that may be 0, and an effect do not leave an IF, nor a LOOP that may run zero times.
  * Constants, arguments, SPECIAL and SCRATCH come first.

State
  * ACC as an operand is the register's value on entry to the innermost block that assigns it, around the user. The
    value after an effect is READ. A use for which the register no longer holds that value is an error.
  * A LOAD from memory that the kernel also stores to is emitted before the first store to it in the same block that
    it does not depend on (through AFTER or otherwise): kernels that work in place read old values.
  * A BARRIER counts as a store to all memory that other threads may write.

In the linear form READ and AFTER name the node that ends their effect (an ENDRANGE or ENDIF), and an IF carries a
number, so that every operand of a node stands before it in the list.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, PtrDType, dtypes
from tg_lazy import Ops

from .bounds import Bounds
from .facts import pointer_base
from .uop import EFFECTS, UOp, UOps
from .verify import InvalidIR

_FIRST = (UOps.PARAM, UOps.VAR, UOps.SPECIAL, UOps.SCRATCH, UOps.CONST)
_BLOCKS = frozenset({UOps.LOOP, UOps.IF})


class LinearizeError(InvalidIR):
    """The structured form has no order of execution; the message names the node."""


class _Block:
    """A body: the kernel's, a LOOP's or an IF's. ``path`` has the bits of this block and of those around it."""

    __slots__ = ("bit", "depth", "effect", "live_in", "parent", "path")

    parent: _Block | None
    depth: int
    path: int

    def __init__(self, effect: UOp, parent: _Block | None, number: int) -> None:
        self.effect = effect
        self.bit = 1 << number
        self.live_in: dict[UOp, None] = {}
        self.attach(parent)

    def attach(self, parent: _Block | None) -> None:
        self.parent = parent
        self.depth = parent.depth + 1 if parent else 0
        self.path = self.bit | (parent.path if parent else 0)

    def around(self) -> list[_Block]:
        """This block and those around it, innermost first."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


def _common(a: _Block | None, b: _Block) -> _Block:
    """The innermost block around both."""
    if a is None or a is b:
        return b
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


def _register_uses(u: UOp) -> tuple[UOp, ...]:
    """The ACC operands whose present value the node takes."""
    if u.op in (UOps.READ, UOps.ACC):
        return ()
    operands = u.src[1:] if u.op is UOps.ASSIGN else () if u.op in _BLOCKS or u.op is UOps.AFTER else u.src
    return tuple(s for s in operands if s.op is UOps.ACC)


class _Placement:
    """Decides the block of every node; ``block`` has the answer."""

    def __init__(self, sink: UOp) -> None:
        self.order = sink.toposort()
        self.block: dict[UOp, _Block] = {}
        self.body: dict[UOp, _Block] = {}
        self.of_range: dict[UOp, _Block] = {}
        self.listed: dict[UOp, list[_Block]] = {}
        self.bounds = Bounds()
        self.root = _Block(sink, None, 0)
        self._blocks = 1
        self._place_late()
        self._collect_writes(sink)
        self._require()
        self._place()

    def _place_late(self) -> None:
        """Gives every node the innermost block that holds its users, and opens the blocks."""
        late = self.block
        for u in reversed(self.order):
            if u.op is UOps.SINK:
                late[u] = self.root
                self._list(u.src, self.root)
            elif u.op in _BLOCKS:
                body = self.body[u] = _Block(u, late[u], self._blocks)
                self._blocks += 1
                self._list(u.src[1:], body)
                if u.op is UOps.IF:
                    self._meet(u.src[:1], late[u])
                elif u.src[0] in self.of_range:
                    raise LinearizeError(f"RANGE {u.src[0].arg!r} has two loops")
                else:
                    self.of_range[u.src[0]] = body
                    self._meet(u.src[0].src, late[u])
            elif u.op is UOps.RANGE:
                if u not in self.of_range:
                    raise LinearizeError(f"RANGE {u.arg!r} has no loop")
                late[u] = self.of_range[u]
            else:
                self._meet(u.src, late[u])

    def _list(self, effects: tuple[UOp, ...], block: _Block) -> None:
        for effect in effects:
            if effect.op not in EFFECTS:
                raise LinearizeError(f"{effect!r} is not an effect, yet {block.effect!r} lists it")
            self.listed.setdefault(effect, []).append(block)
            if effect.op in _BLOCKS and len(self.listed[effect]) > 1:
                raise LinearizeError(f"{effect!r} is listed twice")
        self._meet(effects, block)

    def _meet(self, nodes: tuple[UOp, ...], block: _Block) -> None:
        for node in nodes:
            self.block[node] = _common(self.block.get(node), block)

    def _collect_writes(self, sink: UOp) -> None:
        """For each effect, and each block with everything in it, how often it writes which memory or register."""
        stores = [u for u in self.order if u.op is UOps.STORE]
        self.stored = {pointer_base(u.src[0]) for u in stores}
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
            for body in self.block[u].around():
                total = self.writes[body.effect]
                for state in own:
                    total[state] = total.get(state, 0) + 1

    def _require(self) -> None:
        """Computes the blocks that each node must stay inside, as bits."""
        need: dict[UOp, int] = {}
        self.need = need
        for u in self.order:
            bits = 0
            for s in u.src:
                bits |= need[s]
            late = self.block[u]
            if u.op in _BLOCKS:
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
            elif u.op in (Ops.IDIV, Ops.MOD) and not self._divisor_is_safe(u.src[1]):
                bits |= self._guard(late)
            for register in _register_uses(u):
                bits |= self._writer(late, register, 0)
            if u.op in EFFECTS:
                where = self.listed.get(u, ())
                if len(where) == 1:
                    bits |= where[0].bit
                elif not where:
                    bits |= late.bit if u.op is UOps.BARRIER else self._guard(late)
                    for state, count in self.writes.get(u, {}).items():
                        bits |= self._writer(late, state, count)
            need[u] = bits

    def _divisor_is_safe(self, u: UOp) -> bool:
        low, high = self.bounds(u)
        return low > 0 or high < 0

    def _writer(self, block: _Block, state: UOp, own: int) -> int:
        """The innermost block around that writes ``state`` more than ``own`` times."""
        for b in block.around():
            if self.writes[b.effect].get(state, 0) > own:
                return b.bit
        return 0

    def _awaited(self, effects: Sequence[UOp], state: UOp) -> int:
        """How often effects that move along with what waits for them write ``state``."""
        return sum(self.writes.get(e, {}).get(state, 0) for e in effects if e not in self.listed)

    def _guard(self, block: _Block) -> int:
        """The innermost block around whose body may not run."""
        for b in block.around():
            if b.effect.op is UOps.IF or (b.effect.op is UOps.LOOP and not self._runs(b.effect.src[0])):
                return b.bit
        return 0

    def _runs(self, counter: UOp) -> bool:
        """Whether the loop is seen to run at least once."""
        return self.bounds(counter.src[0])[1] < self.bounds(counter.src[1])[0]

    def _place(self) -> None:
        self.block = {}
        self.block[self.order[-1]] = self.root
        for u in reversed(self.order):
            where = self.listed.get(u)
            if where:
                block = where[0]
                for other in where[1:]:
                    block = _common(block, other)
            elif u.op is UOps.RANGE:
                block = self.of_range[u]
            elif u.op in _FIRST:
                block = self.root
            else:
                block = self._hoist(u, self.block[u])
            if u.op is not UOps.RANGE and self.need[u] & ~block.path:
                self._misplaced(u, block)
            self.block[u] = block
            if u.op in _BLOCKS:
                self.body[u].attach(block)
                self._meet(u.src[1:], self.body[u])
                self._meet(u.src[0].src if u.op is UOps.LOOP else u.src[:1], block)
            elif u.op is not UOps.RANGE:
                self._meet(u.src, block)
        self._find_live_in()

    def _hoist(self, u: UOp, block: _Block) -> _Block:
        best, need = block, self.need[u]
        while block.parent is not None and not need & block.bit:
            if block.effect.op is UOps.LOOP:
                best = block.parent
            block = block.parent
        return best

    def _misplaced(self, u: UOp, block: _Block) -> None:
        missing = self.need[u] & ~block.path
        for body in self.body.values():
            if body.bit & missing:
                name = f"LOOP {body.effect.src[0].arg!r}" if body.effect.op is UOps.LOOP else repr(body.effect)
                raise LinearizeError(f"{u!r} depends on the inside of {name} and is used outside it")

    def _find_live_in(self) -> None:
        """For each block, the values from around it that it uses."""
        for u in self.order:
            if u.op is UOps.RANGE:
                continue
            home = self.block[u]
            for s in (*u.src[0].src, *u.src) if u.op is UOps.LOOP else u.src:
                if s.op in _FIRST or s.op is UOps.RANGE:
                    continue
                at = self.block[s]
                if (u.op in _BLOCKS and self.listed.get(s, (None,))[0] is self.body[u]) or at is home:
                    continue
                inner: _Block | None = home
                while inner is not None and inner.parent is not at:
                    inner = inner.parent
                if inner is None:
                    raise LinearizeError(f"{u!r} uses {s!r} from outside the block that holds it")
                inner.live_in[s] = None


def _space(pointer: UOp) -> AddrSpace:
    assert isinstance(pointer.dtype, PtrDType)
    return pointer.dtype.space


def _constants(uops: list[UOp]) -> list[UOp]:
    """The constants, in the order in which they are first used."""
    return list(dict.fromkeys(s for u in uops for s in u.src if s.is_const))


def _first_key(u: UOp) -> tuple[int, str | int]:
    """The order of what stands before everything: by op, then by slot or name."""
    arg = u.arg if u.op is UOps.PARAM else u.arg.name if u.op is UOps.VAR else u.arg[0]
    return _FIRST.index(u.op), arg


class _Emitter:
    """Writes the list, block by block, operands of each effect depth-first just before it."""

    def __init__(self, placed: _Placement) -> None:
        self.placed = placed
        self.out: list[UOp] = []
        self.done: dict[UOp, UOp] = {}
        self.early: set[UOp] = set()
        self.ifs = 0
        self.assigned: set[tuple[_Block, UOp]] = set()
        self.pending: dict[tuple[_Block, UOp], list[UOp]] = {}
        self.waits_for: dict[UOp, UOp] = {}
        for u in placed.order:
            if u.op in EFFECTS:
                continue
            states = list(_register_uses(u))
            if u.op is UOps.READ:
                states.append(u.src[0])
            elif u.op is UOps.LOAD and (memory := pointer_base(u.src[0])) in placed.stored:
                states.append(memory)
            for state in states:
                self.pending.setdefault((placed.block[u], state), []).append(u)

    def run(self) -> list[UOp]:
        first = [u for u in self.placed.order if u.op in _FIRST and not u.is_const]
        self.done.update((u, u) for u in self.placed.order if u.op in _FIRST)
        stack: list[tuple[str, UOp]] = [("list", u) for u in reversed(self.placed.order[-1].src)]
        while stack:
            step, u = stack.pop()
            if step == "list":
                if u in self.early:
                    self.early.discard(u)
                    continue
                stack.append(("emit", u))
                self._push_operands(u, stack)
            elif step == "visit":
                if u not in self.done:
                    if u in self.placed.listed:
                        self.early.add(u)
                    stack.append(("emit", u))
                    self._push_operands(u, stack)
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
        """What must be emitted before the node, in its own block."""
        home = self.placed.block[u]
        if u.op in _BLOCKS:
            direct = u.src[0].src if u.op is UOps.LOOP else u.src[:1]
            nodes = [*direct, *self.placed.body[u].live_in]
        else:
            nodes = list(u.src)
        return [s for s in nodes if s not in self.done and self.placed.block[s] is home and s.op is not UOps.RANGE]

    def _push_operands(self, u: UOp, stack: list[tuple[str, UOp]]) -> None:
        stack.extend(("visit", s) for s in reversed(self._operands(u)))

    def _readers_before(self, effect: UOp) -> list[UOp]:
        """Values of this block that must be taken before ``effect`` overwrites what they read."""
        ready: list[UOp] = []
        for state in self.placed.writes.get(effect, ()):
            key = (self.placed.block[effect], state)
            waiting = [r for r in self.pending.get(key, ()) if r not in self.done]
            self.pending[key] = waiting
            ready.extend(r for r in waiting if not self._waits(r, effect))
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
        self._check_registers(u)
        if u.op in _BLOCKS:
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
        new = u.replace(tuple(self.done[s] for s in u.src))
        self.done[u] = new
        self.out.append(new)
        if u.op is UOps.ASSIGN:
            self.assigned.add((self.placed.block[u], u.src[0]))

    def _close(self, u: UOp) -> None:
        self.out.append(self.done[u])
        for state in self.placed.writes[u]:
            if state.op is UOps.ACC:
                self.assigned.add((self.placed.block[u], state))

    def _check_registers(self, u: UOp) -> None:
        for register in _register_uses(u):
            for block in self.placed.block[u].around():
                if (block, register) in self.assigned:
                    raise LinearizeError(f"{u!r} uses {register!r}, which its block has already assigned; use READ")
                if register in self.placed.writes[block.effect]:
                    break


def linearize(sink: UOp) -> list[UOp]:
    """The structured form as a list in execution order, without the SINK.

    >>> from tg_codegen.uop import const
    >>> data = UOp(UOps.PARAM, dtypes.int32.ptr(4), (), 0)
    >>> i = UOp(UOps.RANGE, dtypes.int32, (const(0, dtypes.int32), const(4, dtypes.int32)), "i")
    >>> store = UOp(UOps.STORE, dtypes.void, (data, i, i))
    >>> [u.op.name for u in linearize(UOp(UOps.SINK, dtypes.void, (UOp(UOps.LOOP, dtypes.void, (i, store)),)))]
    ['PARAM', 'CONST', 'CONST', 'RANGE', 'STORE', 'ENDRANGE']

    Raises:
      LinearizeError: a value is used outside the loop that it depends on, a RANGE has no loop or two, or a register is
        used after its block has assigned it.
    """
    if sink.op is not UOps.SINK:
        raise LinearizeError(f"the structured form ends in SINK, got {sink!r}")
    return _Emitter(_Placement(sink)).run()
