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
from ..machine.target import Target
from ..nest.env import Env
from ..nest.layout import ITEMS, MOST_COPIES, laid_out, ranges
from ..nest.nest import Nest, Node, Stage
from .index import ramp
from .loops import below
from .scope import Context
from .split_reduction import Partials
from .staging import offset


class Sharing(Partials):
    """The stages of one nest, those of a work-group too.

    Attributes:
      shared: the memory of each load that is shared.
    """

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
        self.shared: dict[Node, UOp] = {}

    def read_stage(self, stage: Stage, env: Env, context: Context) -> UOp:
        if not stage.shared:
            return super().read_stage(stage, env, context)
        where = context.at(stage.axis)
        key = (where.block, *self.key(stage.node, where.env))
        if key not in self.fills:
            self.share(stage.axis, where)
        pointer, strides = self.fills[key]
        return self.load(pointer, stage.node.dtype, offset(env, strides), self.kept(env, strides))

    def share(self, axis: str | None, where: Context) -> None:
        """Fills the shared stages of a loop."""
        effects = where.block.effects
        if where.block is not self.top or self.shared:  # others may still read what was there
            effects.append(UOp(UOps.BARRIER, dtypes.void, (), next(self.numbers)))
        filled = [(stage.node, *self.fill_shared(stage.node, where))
                  for stage in self.nest.stages if stage.shared and stage.axis == axis]
        barrier = UOp(UOps.BARRIER, dtypes.void, (), next(self.numbers))
        effects.append(barrier)
        for node, scratch, strides in filled:
            ready = UOp(UOps.AFTER, scratch.dtype, (scratch, barrier))
            self.fills[(where.block, *self.key(node, where.env))] = (ready, strides)

    def fill_shared(self, node: Node, where: Context) -> tuple[UOp, dict[str, int]]:
        """Emits what copies a load to shared memory. Returns that memory, and the stride of each loop in it."""
        layout = laid_out(self.nest, self.target, node, [
            replace(found, base=self.base(found.root, where)) for found in ranges(self.nest, node, where.env.axis)])
        width, size, last = layout.width, layout.size, layout.last
        if size * node.dtype.itemsize > self.target.shared_bytes:
            raise EmitError(f"{size} x {node.dtype.name} do not fit into {self.target.shared_bytes} shared bytes")
        scratch = self.shared.get(node)
        if scratch is None:
            name = f"shared{next(self.numbers)}"
            scratch = UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.LOCAL), (), (name, size))
            self.shared[node] = scratch
        lane: sint = 0
        if width > 1:
            assert last is not None
            lane = variable = Variable(f"{last.root.name}_shared{width}", 0, width - 1)
            self.lanes[variable] = width
            self.leaves[variable] = ramp(width, self.index)
        total = layout.vectors
        item, count = self.item()
        if -(-total // count) > MOST_COPIES:
            raise EmitError(f"{total} vectors are too many for {count} work-items to copy")
        for first in range(0, total, count):
            inside = 1 if first + count <= total else below(item, total - first)
            root = dict(where.env.root)
            place: sint = 0
            number: sint = item + first
            for r in reversed(layout.ranges):
                length = r.count // width if last is not None and r.root is last.root else r.count
                digit = number if r is layout.ranges[0] else number % length
                number = number // length
                if last is not None and r.root is last.root:
                    digit = digit * width + lane
                root[r.root] = r.base + digit * r.step
                place = place + digit * r.pitch
            env = Env(root, where.env.axis, where.env.exact)
            index, valid = self.place(node.arg[1], node.arg[2], tuple(node.free), env)
            value = self.load(self.params[node.arg[0]], node.dtype, index, valid & inside)
            where.block.effects.extend(self.writes(scratch, place, inside, value))
        return scratch, {a.name: a.stride // r.step * r.pitch for r in layout.ranges for a in r.axes}

    def base(self, root: Variable, where: Context) -> sint:
        """The first value of a dimension that a stage at ``where`` holds."""
        base: sint = 0
        for axis in self.by_root[root]:
            if axis.kind not in ITEMS and axis.name in where.env.axis:
                base = base + where.env.axis[axis.name] * axis.stride
        return base

    def item(self) -> tuple[sint, int]:
        """A work-item's number in its group, and how many there are."""
        number: sint = 0
        count = 1
        for index, size in self.items:
            number = number + index * count
            count *= size
        return number, count
