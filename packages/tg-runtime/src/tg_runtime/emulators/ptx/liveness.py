"""Which registers a point in a function still needs: what a thread must keep when it stops there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .syntax import Address, Group, Instruction, Label, Operand, Register, Symbol, Vector

_NO_RESULT = frozenset(
    {"st", "red", "bra", "bar", "barrier", "ret", "exit", "call", "membar", "fence", "trap", "brkpt", "prefetch",
     "prefetchu", "nanosleep", "cp"}
)  # fmt: skip
_ENDS = frozenset({"ret", "exit", "trap", "brkpt"})
_COMBINED = frozenset({"and", "or", "xor"})


def names(operand: Operand) -> Iterator[str]:
    """The registers that an operand mentions."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base.name
    elif isinstance(operand, Vector | Group):
        for item in operand.items:
            yield from names(item)


def result_count(i: Instruction) -> int:
    """How many operands, from the first on, an instruction sets."""
    if i.opcode in _NO_RESULT:
        return 0
    if i.opcode == "setp":
        return len(i.operands) - (2 if _COMBINED.isdisjoint(i.modifiers) else 3)
    if i.opcode == "shfl":
        return len(i.operands) - (4 if "sync" in i.modifiers else 3)
    if i.opcode == "match":
        return len(i.operands) - 2
    return 1


def _bits(operands: Iterable[Operand], number: dict[str, int]) -> int:
    found = 0
    for operand in operands:
        for name in names(operand):
            if name in number:
                found |= 1 << number[name]
    return found


def live_after(body: Sequence[Instruction | Label], registers: dict[str, str]) -> list[frozenset[str]]:
    """For each place of ``body``, the registers whose value may be read after it."""
    places = {item.name: at for at, item in enumerate(body) if isinstance(item, Label)}
    number = {name: bit for bit, name in enumerate(registers)}
    reads, kills, follows = [], [], []
    for at, item in enumerate(body):
        read, kill, follow = 0, 0, [at + 1]
        if isinstance(item, Instruction):
            count = result_count(item)
            read, kill = _bits(item.operands[count:], number), _bits(item.operands[:count], number)
            if item.opcode == "bra":
                target = item.operands[0]
                assert isinstance(target, Symbol)
                follow = [places[target.name]]
            elif item.opcode in _ENDS:
                follow = []
            if item.guard is not None:  # it may not happen at all
                read, kill = read | _bits([item.guard], number), 0
                follow = [*follow, at + 1]
        reads.append(read)
        kills.append(kill)
        follows.append([place for place in follow if place < len(body)])
    before, after = [0] * len(body), [0] * len(body)
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(body))):
            out = 0
            for place in follows[at]:
                out |= before[place]
            now = reads[at] | (out & ~kills[at])
            changed = changed or now != before[at]
            before[at], after[at] = now, out
    order = list(registers)
    return [frozenset(name for bit, name in enumerate(order) if mask >> bit & 1) for mask in after]
