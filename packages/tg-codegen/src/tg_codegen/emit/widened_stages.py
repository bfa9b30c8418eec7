"""Stages of converted values: what a load is converted to, for a run of memory, in vectors.

A scale in 16 bits that is wanted one by one, for all lanes each, takes several instructions to widen. Where those that
a tile wants are neighbours in memory, they are widened in whole vectors first, and read from scratch as they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from tg_dtype import AddrSpace
from tg_lazy import Ops
from tg_shape import coefficient, sint

from ..ir.uop import UOp, UOps
from ..nest.nest import Axis, Node, NodeOp
from .scope import Block, Context
from .tiles import Tiles


class Runs(Tiles):
    """Stages of one nest that lie in scratch as in memory."""

    @abstractmethod
    def computed(self, node: Node, context: Context) -> UOp:
        """A node's value, though it is staged."""

    def fill_run(self, node: Node, inner: Sequence[Axis], where: Context) -> tuple[UOp, dict[str, int]] | None:
        """Fills scratch with a conversion of a load, element by element along memory.

        Returns the filled scratch and the stride of each loop in it; None where ``node`` is no conversion, or where the
        loops ``inner`` do not run through all elements of a run.
        """
        load = converted(node)
        if not inner or load is None or not isinstance(load.arg[2], int):
            return None
        if any(s.node is load for s in self.nest.stages):  # its scratch does not lie as memory does
            return None
        if any(a.root not in where.env.exact for a in inner):
            return None
        strides = {a.name: (step(load, a) or 0) * a.stride for a in inner}
        reach = 1
        for axis in sorted(inner, key=lambda a: strides[a.name]):
            if strides[axis.name] != reach:
                return None
            reach *= self.fixed(axis)
        scratch = UOp(UOps.SCRATCH, node.dtype.ptr(reach, AddrSpace.REG), (), (f"stage{next(self.numbers)}", reach))
        first = min(inner, key=lambda a: strides[a.name])

        def part(block: Block, start: sint, count: int) -> None:
            at = start + self.several(f"{first.name}_run", count) if count > 1 else start
            env = where.env
            for axis in inner:
                env = env.open(axis.name, axis.root, axis.stride, at if axis is first else 0)
            value = self.computed(node, Context(block, env, first.name, where))
            block.effects.extend(self.writes(scratch, at, 1, value))

        before = len(where.block.effects)
        width = max(1, self.target.vector_bytes // node.dtype.itemsize)
        whole = reach // width
        if whole:
            self.repeat(f"{first.name}_run", whole, where, lambda block, number: part(block, number * width, width))
        at = whole * width
        while at < reach:
            count = 1 << ((reach - at).bit_length() - 1)
            part(where.block, at, count)
            at += count
        return UOp(UOps.AFTER, scratch.dtype, (scratch, *where.block.effects[before:])), strides


def converted(node: Node) -> Node | None:
    """The load of which ``node`` is a conversion."""
    return node.src[0] if node.op is Ops.CAST and node.src[0].op is NodeOp.LOAD else None


def step(load: Node, axis: Axis) -> int | None:
    """By how much a load's index grows with the dimension of ``axis``; None if unevenly."""
    return 0 if isinstance(load.arg[1], int) else coefficient(load.arg[1], axis.root)
