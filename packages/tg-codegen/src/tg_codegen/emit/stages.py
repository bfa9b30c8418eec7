"""Stages: nodes kept in scratch memory, which is filled when one of its elements is first asked for."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace
from tg_shape import sint

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps
from ..nest.env import Env
from ..nest.nest import Axis, Node, Stage
from ..nest.scratch import stage_places
from ..nest.spec import NodeOp
from ..nest.windows import Windowed
from .group_stages import GroupStages
from .index import below
from .known import StageMemory
from .site import Site
from .split_reduction import SplitReductions
from .stage_copies import StageCopies, copied
from .whole import Whole
from .widened_stages import widened


class Stages:
    """The stages of one nest.

    Attributes:
      windowed: how each load that has a stage is copied.
    """

    def __init__(self, whole: Whole, windowed: dict[Node, Windowed]) -> None:
        self.whole, self.windowed = whole, windowed
        self.group_stages = GroupStages(whole)
        self.copies = StageCopies(whole)
        self.split_reductions = SplitReductions(whole)

    def value(self, stage: Stage, env: Env, site: Site) -> UOp:
        """An element of a staged node; the stage is filled first if this is the first use inside its loop."""
        known = self.whole.known
        where = site.at(stage.axis)
        key = (where.region, *known.key(stage.node, where.env))
        if key not in known.stages:
            with known.outside(site.region, where.region):
                if stage.shared:
                    self.group_stages.fill(stage.axis, where)
                else:
                    known.stages[key] = self.fill(stage.node, where)
        memory = known.stages[key]
        return self.whole.access.load(memory.pointer, stage.node.dtype, memory.offset(env), self.kept(env, memory))

    def kept(self, env: Env, memory: StageMemory) -> sint:
        """Whether a stage surely holds an iteration: a partial last one, of symbolic size, may be missing."""
        found: sint = 1
        for name in memory.strides:
            inside = below(env.axis[name], self.whole.nest.axis(name).extent)
            if inside not in self.whole.space.implied:
                found = found & inside
        return found

    def fill(self, node: Node, where: Site) -> StageMemory:
        """Emits the loops that fill the stage of a node. Returns what its loops read of the filled memory."""
        inner = [a for a in self.whole.nest.axes if a.root in node.free and a.name not in where.env.axis]
        memory = widened(self.whole, node, inner, where)
        if memory is not None:
            return memory
        found = self.windowed.get(node, Windowed(node, ()))
        layout, target = stage_places(found, node.dtype.itemsize, inner, self.whole.target), self.whole.target
        size, strides, factors = layout.size, layout.strides, found.factors
        if size * node.dtype.itemsize > target.scratch_bytes:
            raise EmitError(f"a stage of {size} x {node.dtype.name} is larger than {target.scratch_bytes} bytes")
        name = f"stage{next(self.whole.symbols.numbers)}"
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.REG), (), (name, size))
        before = len(where.region.effects)
        self.fill_memory(found.load, StageMemory(scratch, strides), layout.axes, at_windows(found, where))
        read = {
            a.name: strides[factors[a.root][0].name] * factors[a.root][1] * a.stride
            if a.root in factors else strides[a.name] for a in inner
        }  # fmt: skip
        return StageMemory(scratch, read).after(where.region.effects[before:])

    def fill_memory(self, node: Node, memory: StageMemory, inner: Sequence[Axis], site: Site) -> None:
        """Emits the effects that fill ``memory``: the loops ``inner`` around what computes the node."""
        if node.op is NodeOp.REDUCE:
            self.split_reductions.fill(node, memory, inner, site)
        elif copied(node) is not None:
            self.copies.copy(node, memory, inner, site)
        else:
            self.copies.compute(node, memory, inner, site)


def at_windows(found: Windowed, where: Site) -> Site:
    """``where``, with each window's coordinate computed from the loops that are open there."""
    if not found.windows:
        return where
    env, roots = where.env, dict(where.env.root)
    for window in found.windows:
        at: sint = 0
        for root, factor in window.terms:
            at = at + env.root[root] * factor
        roots[window.root] = at
    exact = env.exact - {window.root for window in found.windows}
    return Site(where.region, Env(roots, env.axis, exact, env), where.opened, where.parent)
