"""The mask of active lanes: saved and combined. SCC says whether a lane is left."""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I32, I64, Emitter, InstructionSet, Type, Value
from ...engine.state import EXEC
from ..architecture import Architecture

_COMBINED: dict[str, Callable[[Value, Value], Value]] = {
    "and": lambda x, mask: x & mask, "or": lambda x, mask: x | mask, "xor": lambda x, mask: x ^ mask,
    "nand": lambda x, mask: ~(x & mask), "nor": lambda x, mask: ~(x | mask), "xnor": lambda x, mask: ~(x ^ mask),
    "and_not0": lambda x, mask: ~x & mask, "and_not1": lambda x, mask: x & ~mask,
    "or_not0": lambda x, mask: ~x | mask, "or_not1": lambda x, mask: x | ~mask,
}  # fmt: skip
"""Of the source and the mask before (RDNA 3, 16.3)."""
_OLDER = {"and_not0": "andn1", "and_not1": "andn2", "or_not0": "orn1", "or_not1": "orn2"}


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name, combined in _COMBINED.items():
        shown = _OLDER.get(name, name) if arch.generation < 11 else name
        for kind in (I32, I64)[: arch.lanes // 32]:
            to.control(f"s_{shown}_saveexec_b{kind.bits}", _changed(combined, kind, old=True))
            if name.startswith("and_not"):
                to.control(f"s_{shown}_wrexec_b{kind.bits}", _changed(combined, kind, old=False))


def _changed(combined: Callable[[Value, Value], Value], kind: Type, old: bool) -> Callable[[Emitter], None]:
    """Operands: the destination, which gets the mask before or after, SCC, what the mask is combined with."""

    def body(e: Emitter) -> None:
        before, other = e.convert("trunc", e.exec(), kind), e.read(2, kind)
        after = combined(other, before)
        e.store(after, e.at("%w", EXEC), 4)
        e.write(1, e.convert("zext", e.compare("ne", after, 0), I32))
        e.write(0, before if old else after)
        e.go_on()

    return body
