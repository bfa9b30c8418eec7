"""Which registers a point in a function still needs: what a thread must keep when it stops there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .syntax import Address, Group, Instruction, Label, Operand, Register, Symbol, Vector

# Opcodes whose first operand is read like the others.
_NO_RESULT = frozenset({"st", "red", "bra", "bar", "barrier", "ret", "exit", "call", "membar", "fence", "trap", "prefetch"})
_TWO_RESULTS = frozenset({"setp", "shfl", "match"})


def names(operand: Operand) -> Iterator[str]:
    """The registers that an operand mentions."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base.name
    elif isinstance(operand, Vector | Group):
        for item in operand.items:
            yield from names(item)


def written(i: Instruction, registers: dict[str, str]) -> set[str]:
    """The registers that an instruction sets. Those that it may leave as they are do not count."""
    if i.opcode in _NO_RESULT and not (i.opcode in ("bar", "barrier") and "red" in i.modifiers):
        return set()
    first = i.operands[:1]
    if i.opcode in _TWO_RESULTS and len(i.operands) > (3 if i.opcode == "setp" else 4):
        first = i.operands[:2]
    return {name for operand in first if not isinstance(operand, Address) for name in names(operand) if name in registers}


def live_after(body: Sequence[Instruction | Label], registers: dict[str, str]) -> list[frozenset[str]]:
    """For each place of ``body``, the registers whose value may be read after it."""
    places = {item.name: at for at, item in enumerate(body) if isinstance(item, Label)}
    number = {name: bit for bit, name in enumerate(registers)}
    reads, kills, next_places = [], [], []
    for at, item in enumerate(body):
        read, kill, follow = 0, 0, [at + 1]
        if isinstance(item, Instruction):
            sets = written(item, registers)
            for operand in item.operands:
                for name in names(operand):
                    if name in number and (name not in sets or isinstance(operand, Address)):
                        read |= 1 << number[name]
            if item.guard is not None:
                read |= 1 << number[item.guard.name]
            else:
                kill = sum(1 << number[name] for name in sets)
            # A register that is both read and set stands in a later operand too.
            later = item.operands[2:] if len(sets) > 1 and item.opcode in _TWO_RESULTS else item.operands[1:]
            for operand in later if sets else ():
                for name in names(operand):
                    if name in number:
                        read |= 1 << number[name]
            if item.opcode == "bra":
                target = item.operands[0]
                assert isinstance(target, Symbol)
                follow = [places[target.name]] + ([at + 1] if item.guard is not None else [])
            elif item.opcode in ("ret", "exit", "trap"):
                follow = [at + 1] if item.guard is not None else []
        reads.append(read)
        kills.append(kill)
        next_places.append([place for place in follow if place < len(body)])
    before = [0] * (len(body) + 1)
    after = [0] * len(body)
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            out = 0
            for place in next_places[at]:
                out |= before[place]
            now = reads[at] | (out & ~kills[at])
            if now != before[at] or out != after[at]:
                before[at], after[at], changed = now, out, True
    order = list(registers)
    return [frozenset(name for bit, name in enumerate(order) if mask >> bit & 1) if mask else frozenset() for mask in after]
