"""Stages of converted values: what a load is converted to, for a run of memory, in vectors.

A scale in 16 bits that is wanted one by one, for all lanes each, takes several instructions to widen. Where those that
a tile wants are neighbours in memory, they are widened in whole vectors first, and read from scratch as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace
from tg_lazy import Ops
from tg_shape import coefficient, sint

from ..ir.uop import UOp, UOps
from ..nest.nest import Axis, Node, NodeOp
from .domain import fixed
from .known import StageMemory
from .scope import Block, Context
from .whole import Whole


def widened(whole: Whole, node: Node, inner: Sequence[Axis], where: Context) -> StageMemory | None:
    """Fills scratch with a conversion of a load, element by element along memory.

    Args:
      whole: the emitter.
      node: what is staged.
      inner: the loops that read the stage.
      where: where it is filled.

    Returns:
      The filled memory; None where ``node`` is no conversion of a load, or where the loops ``inner`` do not run through
      all elements of a run.
    """
    strides = run_of(whole, node, inner, where)
    if strides is None:
        return None
    first = min(inner, key=lambda a: strides[a.name])
    reach = 1 + sum(strides[axis.name] * (fixed(axis) - 1) for axis in inner)
    name = f"stage{next(whole.symbols.numbers)}"
    memory = StageMemory(UOp(UOps.SCRATCH, node.dtype.ptr(reach, AddrSpace.REG), (), (name, reach)), strides)

    def part(block: Block, start: sint, count: int) -> None:
        at = start + whole.symbols.several(f"{first.name}_run", count) if count > 1 else start
        env = where.env
        for axis in inner:
            env = env.open(axis.name, axis.root, axis.stride, at if axis is first else 0)
        value = whole.computed(node, Context(block, env, first.name, where))
        block.effects.extend(whole.access.writes(memory.pointer, at, 1, value))

    before = len(where.block.effects)
    width = max(1, whole.target.vector_bytes // node.dtype.itemsize)
    vectors = reach // width
    if vectors:
        whole.loops.repeat(
            f"{first.name}_run", vectors, where, lambda block, number: part(block, number * width, width))
    at = vectors * width
    while at < reach:
        count = 1 << ((reach - at).bit_length() - 1)
        part(where.block, at, count)
        at += count
    return memory.after(where.block.effects[before:])


def run_of(whole: Whole, node: Node, inner: Sequence[Axis], where: Context) -> dict[str, int] | None:
    """How far apart neighbours along each loop lie in memory, if ``node`` converts all elements of a run of it."""
    load = node.src[0] if node.op is Ops.CAST else None
    if not inner or load is None or load.op is not NodeOp.LOAD or not isinstance(load.arg[2], int):
        return None
    if load in whole.staged:  # its scratch does not lie as memory does
        return None
    if any(a.root not in where.env.exact for a in inner):
        return None
    index = load.arg[1]
    strides = {a.name: (coefficient(index, a.root) or 0) * a.stride for a in inner}
    reach = 1
    for axis in sorted(inner, key=lambda a: strides[a.name]):
        if strides[axis.name] != reach:
            return None
        reach *= fixed(axis)
    return strides
