"""What was emitted and may be used again: values, and stages that are filled.

Both are remembered under the index expressions that they depend on. What is true only inside of a region is forgotten
when that region is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from tg_shape import Variable, sint

from ..ir.uop import UOp, UOps
from ..nest.env import Env
from ..nest.nest import Nest, Node
from .site import Region

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
      stages: the filled memory of each stage, by the region in which it was filled, its node and what that depends on.
      reduced: the reductions whose loops stand in a region.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.values: dict[Key, UOp] = {}
        self.stages: dict[Key, StageMemory] = {}
        self.reduced: dict[Region, set[Node]] = {}
        self._free: dict[Node, tuple[Variable, ...]] = {}

    def key(self, node: Node, env: Env) -> Key:
        """The key of a value: the node, and the values of all dimensions that it depends on."""
        free = self._free.get(node)
        if free is None:
            free = self._free[node] = tuple(sorted(node.free, key=lambda v: v.name))
        return (node, *map(env.root.__getitem__, free))

    def enter(self, parent: Region, conditional: bool = False) -> Region:
        """A new region inside of ``parent``, a loop's or one that runs on a condition."""
        return Region(parent, len(self.values), conditional)

    def leave(self, region: Region) -> None:
        """Forgets what is valid in ``region`` alone, once that is complete: its stages, and all that was read there.

        So are the reductions of a conditional region. Those of a loop are remembered under its counter, which nothing
        else has; but a condition holds at a number, at which the same value may be wanted again elsewhere.
        """
        gone = [key for key in self.stages if key[0] is region]
        for key in gone:
            del self.stages[key]
        nodes = {key[1] for key in gone}
        self.forget(region, nodes | self.reduced.get(region, set()) if region.conditional else nodes)

    @contextmanager
    def outside(self, region: Region, outer: Region) -> Iterator[None]:
        """Hides, for code put into ``outer``, the reductions of the conditional regions from ``region`` out to it.

        Inside ``region`` they are known again afterwards.
        """
        hidden: dict[Key, UOp] = {}
        here: Region | None = region
        while here is not None and here is not outer:
            if here.conditional:
                hidden |= self.forget(here, self.reduced.get(here, set()))
            here = here.parent
        yield
        for key, value in hidden.items():
            self.values.setdefault(key, value)

    def forget(self, region: Region, nodes: Set[object]) -> dict[Key, UOp]:
        """Forgets nodes, and values computed from them, among those that were added since ``region`` was begun."""
        if not nodes:
            return {}
        stale = {node for node in self.nest.nodes() if not nodes.isdisjoint(node.toposort())}
        newer = islice(self.values, region.known, None)  # they stand after older ones
        return {key: self.values.pop(key) for key in list(newer) if key[0] in stale}
