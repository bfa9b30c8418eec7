"""One instruction on its way from fields to places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ...engine import InstructionSet, Layout, Undecodable
from ...engine.handlers import Handler
from ..architecture import Architecture
from ..isa import Decoded
from ..registers import Places


@dataclass(slots=True)
class Placing:
    """What a room is given. It takes out of ``fields`` what it obeys; what is left and not zero is refused.

    Attributes:
      found: the decoded instruction.
      arch: whose it is.
      instructions: the handlers.
      pc: the instruction's address.
      layout: of a wave's state.
      places: of operands; it collects constants.
      fields: those of the instruction that are not obeyed yet.
    """

    found: Decoded
    arch: Architecture
    instructions: InstructionSet
    pc: int
    layout: Layout
    places: Places
    fields: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.fields = dict(self.found.fields)

    def handler(self, name: str) -> Handler:
        """A handler by its name.

        Raises:
          Undecodable: if there is none.
        """
        if name not in self.instructions.handlers:
            raise Undecodable("not executed yet")
        return self.instructions.handlers[name]


class Placed(NamedTuple):
    """What a room gives back: a handler's name, the offsets of results and sources, the record's immediate, parts."""

    handler: str
    operands: list[int]
    immediate: int = 0
    parts: tuple[str, ...] = ()


Room: TypeAlias = Callable[[Placing], Placed]
