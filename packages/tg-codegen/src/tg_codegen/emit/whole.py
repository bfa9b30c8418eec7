"""What the parts of an emitter know of one another: one interface, which the emitter fills in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..ir.uop import UOp
from ..machine.target import Target
from ..nest.env import Env
from ..nest.nest import Nest, Node, Stage
from .access import Access
from .known import Known
from .launch import Launch
from .loops import Loops
from .site import Region, Site
from .space import IterationSpace
from .spans import Spans
from .symbols import Symbols
from .tiles import Tiles


class Whole(Protocol):
    """An emitter, as its parts see it: what they all use, and what they ask of each other.

    Attributes:
      nest: what is emitted.
      target: the machine that it is for.
      symbols: the variables that are open, and their UOps.
      launch: where a work-item stands among those that run the kernel.
      params: the memory behind each slot.
      top: the region around all that is emitted.
      staged: the stage of each node that has one.
      known: what was emitted and may be used again.
      space: which values of the nest's dimensions lie inside.
      spans: the copies in which loops are emitted.
      loops: opens them.
      access: loads and stores.
      tiles: loads and stores of squares that are transposed in registers.
    """

    nest: Nest
    target: Target
    symbols: Symbols
    launch: Launch
    params: Sequence[UOp]
    top: Region
    staged: Mapping[Node, Stage]
    known: Known
    space: IterationSpace
    spans: Spans
    loops: Loops
    access: Access
    tiles: Tiles

    def value(self, node: Node, env: Env, site: Site) -> UOp:
        """The value of a node with the dimensions as in ``env``: read from its stage, if it has one."""
        ...

    def computed(self, node: Node, site: Site) -> UOp:
        """The value of a node, though it has a stage: what that is filled with."""
        ...

    def stored(self, stage: Stage, env: Env, site: Site) -> UOp:
        """An element of a stage, which is filled where that was not done yet."""
        ...

    def reduced(self, node: Node, env: Env, site: Site) -> UOp:
        """The result of a reduction, whose loops are put where they belong."""
        ...
