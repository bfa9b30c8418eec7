"""What was emitted and may be used again: values, and stages that are filled.

Both are remembered under the index expressions that they depend on. What is true only inside of a block is forgotten
when that block is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from tg_shape import Variable, sint

from ..ir.uop import UOp, UOps
from ..nest.env import Env
from ..nest.nest import Nest, Node
from .scope import Block

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Where the elements of a stage lie.

    Attributes:
      pointer: the scratch memory.
      strides: by loop, how far apart in it neighbouring iterations are.
    """

    pointer: UOp
    strides: dict[str, int]

    def offset(self, env: Env) -> sint:
        """The place of the element at ``env``."""
        index: sint = 0
        for name, stride in self.strides.items():
            index = index + env.axis[name] * stride
        return index

    def after(self, effects: list[UOp]) -> StageMemory:
        """The same memory, once ``effects`` have filled it."""
        return StageMemory(UOp(UOps.AFTER, self.pointer.dtype, (self.pointer, *effects)), self.strides)


class Known:
    """What was emitted of one nest.

    Attributes:
      values: by node and by all that it depends on.
      stages: the filled memory of each stage, by the block in which it was filled, its node and what that depends on.
      reduced: the reductions whose loops stand in a block.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.values: dict[Key, UOp] = {}
        self.stages: dict[Key, StageMemory] = {}
        self.reduced: dict[Block, set[Node]] = {}
        self._free: dict[Node, tuple[Variable, ...]] = {}

    def key(self, node: Node, env: Env) -> Key:
        """Under what a value is remembered: the node and all that it depends on here."""
        free = self._free.get(node)
        if free is None:
            free = self._free[node] = tuple(sorted(node.free, key=lambda v: v.name))
        return (node, *[env.root[root] for root in free])

    def enter(self, parent: Block) -> Block:
        """A new block inside of ``parent``."""
        return Block(parent, len(self.values))

    def leave(self, block: Block, conditional: bool = False) -> None:
        """Forgets what was there in ``block`` alone, which is complete: its stages, and all that was read from them.

        So are the reductions of a conditional block. Those of a loop are remembered under its counter, which nothing
        else has; but a condition holds at a number, at which the same value may be wanted again elsewhere.
        """
        gone = [key for key in self.stages if key[0] is block]
        for key in gone:
            del self.stages[key]
        nodes = {key[1] for key in gone}
        if conditional:
            nodes |= self.reduced.get(block, set())
        if nodes:
            stale = {node for node in self.nest.nodes() if not nodes.isdisjoint(node.toposort())}
            for key in list(islice(self.values, block.known, None)):  # newer ones stand after older ones
                if key[0] in stale:
                    del self.values[key]
