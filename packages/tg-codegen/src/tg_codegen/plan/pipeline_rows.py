"""Walks over rows that overlap: actions on the structured form of a kernel, and when they gain.

:mod:`tg_codegen.rewrite.pipelining` does it; this module says where it is worth it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.uop import UOp
from ..rewrite.pipelining import delayed, hides_memory, is_row, with_joined_walks
from .actions import ActionError, StructureAction


@dataclass(frozen=True, slots=True)
class JoinWalks(StructureAction):
    """Runs neighbouring walks over a row as one loop, where the later one wants no more than each iteration has."""

    def apply(self, sink: UOp) -> UOp:
        found = with_joined_walks(sink)
        if found is sink:
            raise ActionError(f"{self}: no two neighbouring loops walk over a row alike")
        return found


@dataclass(frozen=True, slots=True)
class DelayStores(StructureAction):
    """Writes each row in a walk of the next row: software pipelining, of loops in place of instructions."""

    def apply(self, sink: UOp) -> UOp:
        found = delayed(sink)
        if found is sink:
            raise ActionError(f"{self}: no loop over rows ends with a walk that can wait for the next row")
        return found


def proposed(sink: UOp) -> list[StructureAction]:
    """The actions that gain: whenever walks can be joined, and where stores wait for memory."""
    actions: list[StructureAction] = []
    if not any(map(is_row, sink.toposort())):
        return actions
    both = with_joined_walks(sink)
    if both is not sink:
        actions.append(JoinWalks())
    if delayed(both, hides_memory) is not both:
        actions.append(DelayStores())
    return actions
