"""Stages of converted values: what a load is converted to, for runs of memory, in vectors.

A scale in 16 bits that is wanted one by one, for all lanes each, takes several instructions to widen; a byte whose sign
is flipped for a dot product takes one each time. Where those that a tile wants are neighbours in memory, they are
converted in whole vectors first, and read from scratch as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_dtype import AddrSpace
from tg_shape import coefficient, sint

from ..ir.uop import UOp, UOps
from ..nest.nest import Axis, Node, is_elementwise
from ..nest.scratch import spaced
from ..nest.spec import LANE, SERIAL, Kind, NodeOp
from .known import StageMemory
from .site import Region, Site
from .space import fixed
from .whole import Whole


@dataclass(frozen=True, slots=True)
class Runs:
    """How the loops that read a stage run through memory.

    Attributes:
      along: the loops that together run through neighbours, the innermost first.
      apart: the others, each of whose iterations has a run of its own.
      reach: elements of a run, of all iterations of the loops.
      length: how many of them lie in the iteration space.
    """

    along: tuple[Axis, ...]
    apart: tuple[Axis, ...]
    reach: int
    length: int


def widened(whole: Whole, node: Node, inner: Sequence[Axis], where: Site) -> StageMemory | None:
    """Fills scratch with a conversion of a load, element by element along memory.

    Args:
      whole: the emitter.
      node: what is staged.
      inner: the loops that read the stage.
      where: where it is filled.

    Returns:
      The filled memory; None where ``node`` is no conversion of a load, where the loops ``inner`` do not run through
      neighbours in memory, or where what lengthens the strides of other loops is too much for an array of scratch.
    """
    runs = runs_of(whole, node, inner, where)
    if runs is None:
        return None
    target = whole.target
    itemsize = node.dtype.itemsize
    strides, size = spaced((*runs.along, *reversed(runs.apart)), itemsize, target, dense=runs.along)
    if size * itemsize > target.scratch_bytes:
        return None
    name = f"stage{next(whole.symbols.numbers)}"
    memory = StageMemory(UOp(UOps.SCRATCH, node.dtype.ptr(size, AddrSpace.REG), (), (name, size)), strides)
    first = runs.along[0]

    def part(region: Region, start: sint, count: int, inside: Site) -> None:
        at = start + whole.symbols.several(f"{first.name}_run", count) if count > 1 else start
        env = inside.env
        for axis in runs.along:
            env = env.open(axis.name, axis.root, axis.stride, at if axis is first else 0, exact=True)
        value = whole.computed(node, Site(region, env, first.name, inside))
        place = at + sum(inside.env.axis[axis.name] * strides[axis.name] for axis in runs.apart)
        region.effects.extend(whole.access.writes(memory.pointer, place, 1, value))

    def fill(inside: Site) -> None:
        width = max(1, target.vector_bytes // node.dtype.itemsize)
        vectors = runs.length // width
        if vectors:
            whole.loops.repeat(f"{first.name}_run", vectors, inside,
                               lambda region, number: part(region, number * width, width, inside))
        at = vectors * width
        while at < runs.length:
            count = 1 << ((runs.length - at).bit_length() - 1)
            part(inside.region, at, count, inside)
            at += count

    before = len(where.region.effects)
    whole.loops.nested(runs.apart, where, fill)
    return memory.after(where.region.effects[before:])


def converted(node: Node) -> Node | None:
    """The only load that a node converts, one element of it to one of its own; None if it is no such conversion."""
    here = node
    while here.op is not NodeOp.LOAD:
        varying = [s for s in here.src if s.op is not NodeOp.CONST]
        if not is_elementwise(here) or len(varying) != 1:
            return None
        here = varying[0]
    return None if here is node else here


def runs_of(whole: Whole, node: Node, inner: Sequence[Axis], where: Site) -> Runs | None:
    """The runs of memory of which ``node`` converts all elements; None if there are none.

    A run may go through the whole of a dimension whose last iterations lie outside of it: these are left out.
    """
    load = converted(node)
    if not inner or load is None or not isinstance(load.arg[2], int):
        return None
    if load in whole.staged:  # its scratch does not lie as memory does
        return None
    if any(not isinstance(axis.extent, int) for axis in inner):
        return None
    steps = {a.name: (coefficient(load.arg[1], a.root) or 0) * a.stride for a in inner}
    along, reach = list[Axis](), 1
    for axis in sorted(inner, key=lambda a: steps[a.name]):
        if steps[axis.name] == reach:
            along.append(axis)
            reach *= fixed(axis)
    apart = tuple(axis for axis in inner if axis not in along)
    if not along or any(axis.kind is Kind.CONTRACT or axis.kind in LANE for axis in apart):
        return None
    loose = {axis.root for axis in along} - where.env.exact
    if not loose:
        return Runs(tuple(along), apart, reach, reach)
    root = along[0].root
    extent = whole.nest.roots[root].extent
    # serial loops end with the last element, and their products are masked; all others read what lies outside, too
    if reach != extent and any(axis.kind not in SERIAL and axis.kind is not Kind.CONTRACT for axis in along):
        return None
    alone = all(axis.root is root for axis in along) and all(axis.root is not root for axis in apart)
    if not alone or where.env.root[root] != 0 or along[0].stride != 1 or not isinstance(extent, int):
        return None
    return Runs(tuple(along), apart, reach, min(reach, extent))
