"""What is open at a point of the code that is being emitted: the regions around it, and what is known in each."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.uop import UOp
from ..nest.env import Env


class Region:
    """A loop's body (or the kernel's) while it is being filled.

    Attributes:
      parent: the region around it.
      effects: its effects so far, in order.
      depth: how many regions are around it.
      known: how many values were known when it was begun.
      conditional: whether it runs on a condition, and is no loop's.
    """

    __slots__ = ("conditional", "depth", "effects", "known", "parent")

    def __init__(self, parent: Region | None = None, known: int = 0, conditional: bool = False) -> None:
        self.parent = parent
        self.known = known
        self.conditional = conditional
        self.effects: list[UOp] = []
        self.depth: int = 0 if parent is None else parent.depth + 1


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the code: the region being filled and what is open around it.

    Attributes:
      region: where effects go.
      env: values of what is open.
      opened: name of the axis that this site opened (None for the kernel).
      parent: the site around it.
    """

    region: Region
    env: Env
    opened: str | None = None
    parent: Site | None = None

    def at(self, axis: str | None) -> Site:
        """The enclosing site that opened ``axis`` (None: the kernel's)."""
        here: Site = self
        while here.parent is not None and (axis is None or here.opened != axis):
            here = here.parent
        return here

    def around(self, region: Region) -> Site:
        """The innermost enclosing site that fills ``region``; the kernel's if none does."""
        here: Site = self
        while here.parent is not None and here.region is not region:
            here = here.parent
        return here
