"""Branches, waits, the end, and masks that are saved."""

from __future__ import annotations

from collections.abc import Callable

from ...engine import I32, Emitter, InstructionSet, Status, Type, Value
from ...engine.state import EXEC
from ..architecture import Architecture

NOTHING = ("s_delay_alu", "s_clause", "s_nop", "s_waitcnt")
"""Of no effect where every access is done at once."""


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for name in NOTHING:
        to.control(name, lambda e: e.go_on())
    to.control("s_endpgm", lambda e: e.stop(Status.ENDED))
    to.control("s_branch", lambda e: e.jump(e.immediate()))
    to.control("s_cbranch_execz", _branch(lambda e: e.compare("eq", e.exec(), 0)))
    to.control("s_cbranch_execnz", _branch(lambda e: e.compare("ne", e.exec(), 0)))
    to.control("s_cbranch_scc0", _branch(lambda e: e.compare("eq", e.read(0), 0)))
    to.control("s_cbranch_scc1", _branch(lambda e: e.compare("ne", e.read(0), 0)))
    for op in ("and", "or", "xor"):
        to.control(f"s_{op}_saveexec_b32", _save(op))


def _branch(test: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    def body(e: Emitter) -> None:
        e.do(f"br i1 {test(e).text}, label %taken, label %not.taken")
        e.label("taken")
        e.jump(e.immediate())
        e.label("not.taken")
        e.go_on()

    return body


def _save(op: str) -> Callable[[Emitter], None]:
    """Operands: where the mask goes, SCC, what it is combined with. SCC says whether a lane is left."""

    def body(e: Emitter) -> None:
        lanes = Type("i", e.layout.lanes)
        old, other = e.convert("trunc", e.exec(), lanes), e.read(2, lanes)
        new = e.binary(op, other, old)
        e.set_field(EXEC, e.convert("zext", new, Type("i", 64)))
        e.write(1, e.convert("zext", e.compare("ne", new, 0), I32))
        e.write(0, old)
        e.go_on()

    return body
