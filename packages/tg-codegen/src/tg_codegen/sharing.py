"""Loads kept in memory that the items of a work-group share, and fill together.

The elements of a stage are those that all items, in all loops inside of the stage's, will read. They are numbered so
that neighbours in memory have neighbouring numbers, and divided among the items in vectors; what lies contiguous in the
shared memory is what becomes vector lanes. One barrier stands before the stages of a loop are filled, one behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tg_dtype import AddrSpace, dtypes
from tg_shape import Variable, coefficient, sint

from .access import EmitError
from .index import ramp
from .loops import below
from .nest import LANE, Axis, Kind, Nest, Node, Stage
from .partial import Partials
from .scope import Context, Env
from .staging import offset
from .target import Target
from .uop import UOp, UOps

BANK_BYTES = 128  # of the banks of shared memory: rows of a multiple of this begin in the same bank
MOST_COPIES = 64  # of the code that moves one vector


@dataclass(frozen=True, slots=True)
class Range:
    """The values of one dimension that a stage holds: ``base + number * step`` for ``number < count``.

    Attributes:
      root: the dimension.
      axes: the loops that run through it.
      pitch: how far apart neighbours are in the shared memory.
    """

    root: Variable
    base: sint
    step: int
    count: int
    axes: tuple[Axis, ...]
    pitch: int = 0


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
        return self.load(pointer, stage.node.dtype, offset(env, strides), 1)

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
        ranges = [self.range(root, where) for root in sorted(node.free, key=lambda v: v.name)]
        ranges.sort(key=lambda r: -self.jump(node, r))
        last = ranges[-1] if ranges else None
        width = 1
        if last is not None and self.jump(node, last) == 1:
            most = max(1, self.target.vector_bytes // node.dtype.itemsize)
            width = max(w for w in (1, 2, 4, 8, 16) if w <= most and last.count % w == 0)
        ranges = self.packed(node, ranges)
        size = sum((r.count - 1) * r.pitch for r in ranges) + 1
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
        total = prod(r.count for r in ranges) // width
        item, count = self.item()
        if -(-total // count) > MOST_COPIES:
            raise EmitError(f"{total} vectors are too many for {count} work-items to copy")
        for first in range(0, total, count):
            inside = 1 if first + count <= total else below(item, total - first)
            root = dict(where.env.root)
            place: sint = 0
            number: sint = item + first
            for r in reversed(ranges):
                length = r.count // width if last is not None and r.root is last.root else r.count
                digit = number if r is ranges[0] else number % length
                number = number // length
                if last is not None and r.root is last.root:
                    digit = digit * width + lane
                root[r.root] = r.base + digit * r.step
                place = place + digit * r.pitch
            env = Env(root, where.env.axis, where.env.exact)
            index, valid = self.place(node.arg[1], node.arg[2], tuple(node.free), env)
            value = self.load(self.params[node.arg[0]], node.dtype, index, valid & inside)
            where.block.effects.extend(self.writes(scratch, place, inside, value))
        return scratch, {a.name: a.stride // r.step * r.pitch for r in ranges for a in r.axes}

    def range(self, root: Variable, where: Context) -> Range:
        """The values of a dimension that a stage at ``where`` holds."""
        inner = [a for a in reversed(self.by_root[root])
                 if a.kind in (Kind.LOCAL, Kind.GROUP) or a.name not in where.env.axis]
        base: sint = 0
        for axis in self.by_root[root]:
            if axis not in inner:
                base = base + where.env.axis[axis.name] * axis.stride
        step, count = inner[0].stride if inner else 1, 1
        for axis in inner:
            if axis.stride != step * count:
                raise EmitError(f"what the loops inside of {where.opened} read of {root.name} is not one range")
            count *= self.fixed(axis)
        return Range(root, base, step, count, tuple(inner))

    @staticmethod
    def jump(node: Node, r: Range) -> int:
        """How far apart in memory a load's neighbours in a range are; very far if that differs."""
        index = node.arg[1]
        by = 0 if isinstance(index, int) else coefficient(index, r.root)
        return 1 << 62 if by is None or r.count == 1 else abs(by) * r.step

    def packed(self, node: Node, ranges: list[Range]) -> list[Range]:
        """The ranges with their pitches: what becomes lanes is contiguous, reduced dimensions are outermost."""
        def nearness(r: Range) -> tuple[bool, bool, bool, int]:
            kinds = {a.kind for a in r.axes}
            return Kind.CONTRACT in kinds, bool(kinds & LANE), not self.nest.roots[r.root].reduce, -self.jump(node, r)

        pitches: dict[Variable, int] = {}
        pitch, order = 1, sorted(ranges, key=nearness, reverse=True)
        for number, r in enumerate(order):
            pitches[r.root] = pitch
            pitch *= r.count
            row = pitch * node.dtype.itemsize
            along = r is ranges[-1] and any(a.kind in LANE for a in r.axes)  # written and read in one direction
            if number == 0 and not along and row % BANK_BYTES == 0 and len(order) > 1:
                pitch += max(1, 16 // node.dtype.itemsize)
        return [Range(r.root, r.base, r.step, r.count, r.axes, pitches[r.root]) for r in ranges]

    def item(self) -> tuple[sint, int]:
        """A work-item's number in its group, and how many there are."""
        number: sint = 0
        count = 1
        for index, size in self.items:
            number = number + index * count
            count *= size
        return number, count
