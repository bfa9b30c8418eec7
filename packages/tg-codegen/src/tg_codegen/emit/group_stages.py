"""Loads kept in memory that the items of a work-group share, and fill together.

The elements of a stage are those that all items, in all loops inside of the stage's, will read. They are numbered so
that neighbours in memory have neighbouring numbers, and divided among the items in vectors; what lies contiguous in the
shared memory is what becomes vector lanes. One barrier stands before the stages of a loop are filled, one behind.
"""

from __future__ import annotations

from dataclasses import replace

from tg_dtype import AddrSpace, dtypes
from tg_shape import Variable, sint

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps
from ..nest.env import Env
from ..nest.layout import MOST_COPIES, laid_out, staged_dimensions
from ..nest.nest import Node
from ..nest.spec import ITEMS
from .index import below
from .known import StageMemory
from .site import Site
from .whole import Whole


class GroupStages:
    """The stages of one nest that a work-group shares."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self._scratch: dict[Node, UOp] = {}

    def fill(self, axis: str | None, where: Site) -> None:
        """Fills the shared stages of a loop."""
        whole, effects = self.whole, where.region.effects
        if where.region is not whole.top or self._scratch:  # others may still read what was there
            effects.append(UOp(UOps.BARRIER, dtypes.void, (), next(whole.symbols.numbers)))
        filled = [(stage.node, self.copy(stage.node, where))
                  for stage in whole.nest.stages if stage.shared and stage.axis == axis]
        barrier = UOp(UOps.BARRIER, dtypes.void, (), next(whole.symbols.numbers))
        effects.append(barrier)
        for node, memory in filled:
            whole.known.stages[(where.region, *whole.known.key(node, where.env))] = memory.after([barrier])

    def copy(self, node: Node, where: Site) -> StageMemory:
        """Emits what copies a load to shared memory."""
        whole = self.whole
        dimensions = staged_dimensions(whole.nest, node, where.env.axis)
        layout = laid_out(whole.nest, whole.target, node, [
            replace(found, base=self.base(found.root, where)) for found in dimensions])
        last = layout.last if layout.width > 1 else None
        scratch = self.scratch(node, layout.size)
        lane: sint = 0 if last is None else whole.symbols.several(f"{last.root.name}_shared", layout.width)
        item, count = whole.launch.item()
        if -(-layout.vectors // count) > MOST_COPIES:
            raise EmitError(f"{layout.vectors} vectors are too many for {count} work-items to copy")
        for first in range(0, layout.vectors, count):
            inside = 1 if first + count <= layout.vectors else below(item, layout.vectors - first)
            root = dict(where.env.root)
            place: sint = 0
            number: sint = item + first
            for r in reversed(layout.dimensions):
                vectors = r is layout.last
                length = r.count // layout.width if vectors else r.count
                digit = number if r is layout.dimensions[0] else number % length
                number = number // length
                if vectors:
                    digit = digit * layout.width + lane
                root[r.root] = r.base + digit * r.step
                place = place + digit * r.pitch
            env = Env(root, where.env.axis, where.env.exact, where.env)
            index, valid = whole.space.access(node.arg[1], node.arg[2], tuple(node.free), env)
            value = whole.access.load(whole.params[node.arg[0]], node.dtype, index, valid & inside)
            where.region.effects.extend(whole.access.writes(scratch, place, inside, value))
        return StageMemory(scratch, {a.name: a.stride // r.step * r.pitch for r in layout.dimensions for a in r.axes})

    def scratch(self, node: Node, size: int) -> UOp:
        """The shared memory of a stage, the same wherever it is filled.

        Raises:
          EmitError: if the target has less.
        """
        most = self.whole.target.shared_bytes
        if size * node.dtype.itemsize > most:
            raise EmitError(f"{size} x {node.dtype.name} do not fit into {most} shared bytes")
        if node not in self._scratch:
            name = f"shared{next(self.whole.symbols.numbers)}"
            self._scratch[node] = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.LOCAL), (), (name, size))
        return self._scratch[node]

    def base(self, root: Variable, where: Site) -> sint:
        """The first value of a dimension that a stage at ``where`` holds."""
        base: sint = 0
        for axis in self.whole.space.by_root[root]:
            if axis.kind not in ITEMS and axis.name in where.env.axis:
                base = base + where.env.axis[axis.name] * axis.stride
        return base
