"""What is open at a point of the code that is being emitted: the blocks around it, and what is known in each."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.uop import UOp
from ..nest.env import Env


class Block:
    """A loop's body (or the kernel's) while it is being filled.

    Attributes:
      parent: the block around it.
      effects: its effects so far, in order.
      depth: how many blocks are around it.
      known: how many values were known when it was begun.
      conditional: whether it runs on a condition, and is no loop's.
    """

    __slots__ = ("conditional", "depth", "effects", "known", "parent")

    def __init__(self, parent: Block | None = None, known: int = 0, conditional: bool = False) -> None:
        self.parent = parent
        self.known = known
        self.conditional = conditional
        self.effects: list[UOp] = []
        self.depth: int = 0 if parent is None else parent.depth + 1


@dataclass(frozen=True, slots=True)
class Context:
    """A place in the code: the block being filled and what is open around it.

    Attributes:
      block: where effects go.
      env: values of what is open.
      opened: name of the axis that this context opened (None for the kernel).
      parent: the context around it.
    """

    block: Block
    env: Env
    opened: str | None = None
    parent: Context | None = None

    def at(self, axis: str | None) -> Context:
        """The enclosing context that opened ``axis`` (None: the kernel's)."""
        here: Context = self
        while here.parent is not None and (axis is None or here.opened != axis):
            here = here.parent
        return here

    def around(self, block: Block) -> Context:
        """The innermost enclosing context that fills ``block``; the kernel's if none does."""
        here: Context = self
        while here.parent is not None and here.block is not block:
            here = here.parent
        return here
