"""Work-groups and work-items: which index of the launch runs along which loop.

A launch has three dimensions of groups and three of items. Where a kernel has more parallel loops, several share a
dimension, their counters being digits of its index. The first dimension, whose neighbours run together and reach memory
together, belongs to the loop along which stores are contiguous.

A reduction that is divided among the items of a group has its result in every item. So items that are there for an
output loop on which the reduction does not depend can take parts of it: its GROUP loop and that LOCAL loop are one
dimension. A softmax by rows is computed by one group a row in this way: maximum, sum, and the columns of the result in
turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tg_shape import Variable, sint, upper

from ..ir.matrix import WARP
from ..machine.gpu import ACCESS_BYTES
from ..machine.target import Target
from .nest import Axis, Nest
from .spec import FRAGMENT, GRID, Kind, NodeOp

DIMENSIONS = 3
"""Dimensions of a launch in every language for GPUs."""
REDUCED_WEIGHT = 8
"""What a load inside of a reduction counts for beside one that is read once."""


@dataclass(frozen=True, slots=True)
class CounterDigit:
    """Where a loop's counter is found: ``index // stride % extent`` of a dimension.

    Attributes:
      dimension: which one.
      stride: the product of the extents of the loops before it in that dimension.
      alone: whether it is the last one there, so that nothing has to be divided off.
    """

    dimension: int
    stride: int
    alone: bool


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Places of parallel loops.

    Attributes:
      digits: where the counter of each loop is, by its name.
      sizes: extents of the dimensions in use.
      slots: the loops that share each digit of each dimension: they have one counter.
      warp: threads that do a matrix instruction together.
    """

    digits: dict[str, CounterDigit]
    sizes: tuple[sint, ...]
    slots: tuple[tuple[Axis, ...], ...]
    warp: int = WARP

    def counter(self, axis: Axis, indices: Sequence[Variable]) -> sint:
        """A loop's counter in terms of the indices of the dimensions."""
        place = self.digits[axis.name]
        index: sint = indices[place.dimension]
        if place.stride > 1:
            index = index // place.stride
        return index if place.alone else index % counted(axis, self.warp)

    def full_sizes(self) -> tuple[sint, sint, sint]:
        """The extents of all three dimensions."""
        x, y, z = (*self.sizes, 1, 1, 1)[:DIMENSIONS]
        return x, y, z


def foreign(target: Target) -> frozenset[Kind]:
    """The kinds of loops that a machine has none of: threads share loops out, or a grid of work-items does."""
    return frozenset({Kind.THREAD}) if target.grid else GRID


def launch_sizes(nest: Nest, target: Target) -> tuple[tuple[sint, ...], tuple[sint, ...]]:
    """How many work-groups along each dimension, and how many items of a group.

    Raises:
      ValueError: if the loops do not fit into the indices that the target has.
    """
    return group_shape(nest, target.global_max).full_sizes(), item_shape(nest, target.warp).full_sizes()


def group_shape(nest: Nest, most: tuple[int, int, int]) -> LaunchShape:
    """Where the counters of the GLOBAL loops are found; ``most`` are the greatest sizes of the dimensions."""
    axes = sorted((a for a in nest.axes if a.kind is Kind.GLOBAL), key=lambda a: distance(nest, a))
    return fold([(a,) for a in axes], most)


def item_shape(nest: Nest, warp: int = WARP) -> LaunchShape:
    """Where the counters of the LOCAL and GROUP loops are found; ``warp`` threads do a matrix instruction together."""
    fragments = [axis for axis in nest.axes if axis.kind in FRAGMENT and warp > 1]
    slots: list[list[Axis]] = [fragments] if fragments else []
    slots += [[axis] for axis in nest.axes if axis.kind is Kind.LOCAL]
    for axis in (a for a in nest.axes if a.kind is Kind.GROUP):
        host = next((slot for slot in slots if may_share(nest, axis, slot)), None)
        if host is None:
            slots.append([axis])
        else:
            host.append(axis)
    slots.sort(key=lambda slot: min(distance(nest, axis) for axis in slot))
    return fold([tuple(slot) for slot in slots], (1 << 31, 1 << 31, 1 << 31), warp)


def distance(nest: Nest, axis: Axis) -> tuple[int, int, int]:
    """Sorts loops so that the one whose neighbouring iterations touch the most adjacent memory comes first.

    Counted are loads and stores whose neighbours lie within one access, loads inside of reductions for more; ties go to
    the smallest distance in a store, then to the inner loop. Staged loads are copied in an order of their own.
    """
    if axis.kind in FRAGMENT:
        return -(1 << 62), 0, 0  # the threads of a warp are neighbours
    shared = {stage.node for stage in nest.stages if stage.shared}
    won = 0
    for node in nest.nodes():
        if node.op is NodeOp.LOAD and node not in shared:
            near = 0 < axis.step(node.arg[1]) * node.dtype.itemsize <= ACCESS_BYTES
            won += near * (REDUCED_WEIGHT if any(nest.roots[root].reduce for root in node.free) else 1)
    stored = [axis.step(s.index) * nest.buffers[s.slot].dtype.itemsize for s in nest.stores]
    won += sum(0 < step <= ACCESS_BYTES for step in stored)
    return -won, min((step for step in stored if step), default=1 << 62), -nest.axes.index(axis)


def may_share(nest: Nest, axis: Axis, slot: Sequence[Axis]) -> bool:
    """Whether a GROUP loop can run across the items that are there for the loops of a slot."""
    return all(
        other.kind not in FRAGMENT and other.extent == axis.extent and independent(nest, axis, other) for other in slot)


def independent(nest: Nest, axis: Axis, other: Axis) -> bool:
    """Whether no reduction over either loop's dimension depends on the other's."""
    for node in nest.nodes():
        if node.op is NodeOp.REDUCE and (
                (axis.root in node.arg[1] and other.root in node.free | set(node.arg[1]))
                or (other.root in node.arg[1] and axis.root in node.free | set(node.arg[1]))):
            return False
    return True


def fold(slots: Sequence[tuple[Axis, ...]], most: tuple[int, int, int], warp: int = WARP) -> LaunchShape:
    """Gives each slot a dimension of its own, or, where there are too many or too long ones, several a common one.

    Raises:
      ValueError: if there are more loops of symbolic extents than dimensions.
    """
    dimensions = sorted(([slot] for slot in slots), key=lambda d: bound(d[0], warp) <= min(most[1:]))
    if len(slots) > DIMENSIONS or any(bound(d[0], warp) > limit for d, limit in zip(dimensions, most, strict=False)):
        dimensions = []
        for slot in sorted(slots, key=lambda slot: not isinstance(counted(slot[0], warp), int)):
            size = prod(bound(other, warp) for other in dimensions[-1]) * bound(slot, warp) if dimensions else 0
            if dimensions and isinstance(counted(slot[0], warp), int) and size <= most[len(dimensions) - 1]:
                dimensions[-1].append(slot)
            else:
                dimensions.append([slot])
    if len(dimensions) > DIMENSIONS:
        raise ValueError(f"{len(slots)} parallel loops do not fit into {DIMENSIONS} dimensions")
    digits: dict[str, CounterDigit] = {}
    for number, dimension in enumerate(dimensions):
        stride = 1
        for slot in dimension:
            digits.update((axis.name, CounterDigit(number, stride, slot is dimension[-1])) for axis in slot)
            stride *= bound(slot, warp)
    sizes = tuple(prod(counted(slot[0], warp) for slot in dimension) for dimension in dimensions)
    return LaunchShape(digits, sizes, tuple(slot for dimension in dimensions for slot in dimension), warp)


def counted(axis: Axis, warp: int) -> sint:
    """How many values a loop's counter has: threads, where a matrix instruction takes the loop."""
    return warp if axis.kind in FRAGMENT else axis.extent


def bound(slot: Sequence[Axis], warp: int) -> int:
    """The greatest extent that a slot's loops can have."""
    return upper(counted(slot[0], warp))
