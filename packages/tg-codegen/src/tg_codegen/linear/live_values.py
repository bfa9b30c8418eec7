"""A block of straight code in an order in which few values are alive at a time.

Where two operations are the last that need an operand, such as the sum and the difference of a butterfly, and one of
them is written long after the other, the operand stays in a register all the time between. So an operation follows as
soon as it frees more registers than it takes; all others come when what is stored needs them, operands first. This
order is taken where registers are too few by far for what is alive in the one before, and fewer do in the new one:
where a few values are reloaded, an order in which each chain is written at once delays less.

Source: R. Sethi and J. D. Ullman, "The generation of optimal code for arithmetic expressions", J. ACM 17 (1970), on
trees; J. R. Goodman and W.-C. Hsu, "Code scheduling and register allocation in large basic blocks", ICS 1988, on
freeing registers first where few are left.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from tg_dtype import DType, dtypes

from ..ir.facts import accessed, pointer_base
from ..ir.spec import REGISTERS, TRANSFERS
from ..ir.uop import UOp, UOps
from ..machine.target import Target


def registers_of(dtype: DType, target: Target) -> int:
    """Vector registers that a value takes, one for a scalar."""
    return -(-dtype.itemsize // target.vector_bytes) if dtype.count > 1 else 1


def most_alive(uops: Sequence[UOp], target: Target) -> int:
    """Registers that hold what is computed and not yet used for the last time, at the most."""
    last = {s: at for at, u in enumerate(uops) for s in u.src}
    ending: dict[int, int] = {}
    alive = most = 0
    for at, u in enumerate(uops):
        alive -= ending.pop(at, 0)
        if at < (end := last.get(u, 0)):
            alive += registers_of(u.dtype, target)
            ending[end] = ending.get(end, 0) + registers_of(u.dtype, target)
        most = max(most, alive)
    return most


def few_alive(uops: list[UOp], kept: Set[UOp], target: Target) -> list[UOp]:
    """The same block with few values alive at a time, where registers do not hold those of the order that it has.

    Args:
      uops: operations, loads and stores in execution order, which nothing else may stand between.
      kept: values that are needed after the block.
      target: the machine.
    """
    if len(uops) <= target.registers or any(u.op is UOps.ASSIGN or u.op in REGISTERS for u in uops):
        return uops  # an assignment ends the value of a register, which its operands do not say
    if len({*uops}) < len(uops):
        return uops  # a store that is listed twice
    block = _Pressure(uops, kept, target)
    before = block.most_alive(uops)
    if before <= target.registers * target.cpu.crowding:
        return uops
    ordered = block.ordered()
    return ordered if block.most_alive(ordered) < before else uops


class _Pressure:
    """The values of a block: what each node waits for, and the registers that each takes and frees."""

    def __init__(self, uops: list[UOp], kept: Set[UOp], target: Target) -> None:
        self.uops, self.kept = uops, kept
        inside = set(uops)
        self.size = {u: 0 if _outside_vectors(u) else registers_of(u.dtype, target) for u in uops}
        self.operands = {u: [s for s in dict.fromkeys(u.src) if s in inside] for u in uops}
        self.users: dict[UOp, list[UOp]] = {u: [] for u in uops}
        for u in uops:
            for s in self.operands[u]:
                self.users[s].append(u)
        self.waits = {u: [*self.operands[u], *earlier] for u, earlier in _accesses_before(uops).items()}
        self.followers: dict[UOp, list[UOp]] = {u: [] for u in uops}
        for u, waits in self.waits.items():
            for s in waits:
                self.followers[s].append(u)

    def most_alive(self, order: Sequence[UOp]) -> int:
        """Registers that values take at the most, what is kept for later blocks among them."""
        left, alive, most = self._uses(), 0, 0
        for u in order:
            alive += self.size[u]
            most = max(most, alive)
            for s in self.operands[u]:
                left[s] -= 1
                alive -= 0 if left[s] else self.size[s]
        return most

    def _uses(self) -> dict[UOp, int]:
        """How often each value is needed, for all of which it stays in its register."""
        return {u: len(users) + (u in self.kept) for u, users in self.users.items()}

    def ordered(self) -> list[UOp]:
        """The new order: what is listed last of what the rest needs comes when it is needed, or frees registers."""
        self.left = self._uses()
        self.missing = {u: len(waits) for u, waits in self.waits.items()}
        self.done: dict[UOp, None] = {}
        for end in [*(u for u in self.uops if u.op is UOps.STORE), *self.uops]:
            stack = [end]
            while stack:
                u = stack[-1]
                missing = [s for s in self.waits[u] if s not in self.done] if u not in self.done else []
                if missing:
                    stack += reversed(missing)
                else:
                    stack.pop()
                    if u not in self.done:
                        self._take(u)
        return [*self.done]

    def _take(self, first: UOp) -> None:
        """Takes a node, and all those after it that free more registers than they take."""
        taken = [first]
        while taken:
            u = taken.pop()
            if u in self.done:
                continue
            self.done[u] = None
            for f in self.followers[u]:
                self.missing[f] -= 1
            near = dict.fromkeys(self.followers[u])
            for s in self.operands[u]:
                self.left[s] -= 1
                if self.left[s] == 1:
                    near.update(dict.fromkeys(self.users[s]))
            taken += [n for n in near if n not in self.done and not self.missing[n] and self._freed(n) > 0]

    def _freed(self, u: UOp) -> int:
        """Registers that a node frees, less those that it takes."""
        return sum(self.size[s] for s in self.operands[u] if self.left[s] == 1) - self.size[u]


def _outside_vectors(u: UOp) -> bool:
    """Whether a node has no value, or one that is in a register of another kind: a pointer or an integer."""
    return u.dtype is dtypes.void or (u.dtype.count == 1 and not dtypes.is_float(u.dtype))


def _accesses_before(uops: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """For each node the accesses that it must come after: of elements that it may touch, where either writes them."""
    stored = {pointer_base(u.src[0]) for u in uops if u.op is UOps.STORE}
    of = {u: (pointer_base(u.src[0]), *accessed(u)) for u in uops if u.op in TRANSFERS}
    bases: dict[UOp, set[UOp | None]] = {}
    for memory, base, _ in of.values():
        bases.setdefault(memory, set()).add(base)
    found: dict[UOp, list[UOp]] = {u: [] for u in uops}
    at: dict[tuple[UOp, int], list[UOp]] = {}
    for u in uops:
        if u not in of or of[u][0] not in stored:
            continue
        memory, _, elements = of[u]
        # where indices are counted from several places, all accesses stay in order
        for element in elements if len(bases[memory]) == 1 else (0,):
            earlier = at.setdefault((memory, element), [])
            if u.op is UOps.STORE or len(bases[memory]) > 1:
                found[u] += earlier
                earlier[:] = [u]
            else:
                found[u] += [s for s in earlier if s.op is UOps.STORE]
                earlier.append(u)
    return {u: [*dict.fromkeys(waits)] for u, waits in found.items()}
