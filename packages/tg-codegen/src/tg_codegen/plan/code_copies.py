"""Copies of the code: loops in parts, some of which need no masks, and outputs that are written in a loop.

A padded operand is masked at the rim of its iteration space and nowhere else. A loop over a padded dimension can be
emitted in parts, before, inside and after the interior; inside, bounds prove the masks away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tg_shape import coefficient

from ..nest.interior import LEAST_INTERIOR, interior, settled
from ..nest.nest import Axis, Nest
from ..nest.spec import SERIAL, SERIAL_OUTPUT, Kind
from ..nest.trim import bounding
from .actions import ActionError, LoopAction, find, reductions_of

RIM = 4
"""Iterations outside of an interior, at the most, that are copies of the code, in each of which masks are known.

More copies make a kernel long and not faster: the interior does most of the work on any machine.
"""


@dataclass(frozen=True, slots=True)
class Partition(LoopAction):
    """Emits the loop ``axis`` in parts: before, inside and after the iterations in which masks hold whatever else is.

    If no more than ``copies`` iterations lie outside of these, each of them is a copy of the code by itself. Compilers
    know it as index-set splitting, Halide as ``partition``.
    """

    axis: str
    copies: int

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        if self.copies < 0:
            raise ActionError(f"{self}: there cannot be {self.copies} copies")
        if axis.kind not in SERIAL or nest.of_root(axis.root)[0] is not axis:
            raise ActionError(f"{self}: {self.axis} is not the outermost loop of its dimension, or no serial one")
        if interior(nest, axis.root) is None:
            raise ActionError(f"{self}: no mask says by itself which values {axis.root.name} has")
        if any(name == self.axis for name, _ in nest.partitions):
            raise ActionError(f"{self}: it is in parts already")
        return replace(nest, partitions=(*nest.partitions, (self.axis, self.copies)))


@dataclass(frozen=True, slots=True)
class Roll(LoopAction):
    """Writes the outputs of the unrolled loop ``axis`` in a loop, though reductions have a copy for each iteration."""

    axis: str

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        if axis not in idle_copies(nest):
            raise ActionError(f"{self}: {self.axis} is not unrolled, or its copies are in registers or side by side")
        if self.axis in nest.rolled:
            raise ActionError(f"{self}: it is a loop already")
        return replace(nest, rolled=(*nest.rolled, self.axis))


def idle_copies(nest: Nest) -> list[Axis]:
    """Unrolled output loops whose copies gain nothing where the outputs are written.

    Copies keep accumulators in registers, or are neighbours in memory. Where all accumulators lie in scratch when the
    outputs are written, other copies only make the code long, which is slow to compile.
    """
    staged = {stage.node for stage in nest.stages}
    reductions = reductions_of(nest)
    if not reductions or any(node not in staged for node in reductions):
        return []
    near = {root for store in nest.stores for root in store.roots if coefficient(store.index, root) == 1}
    return [a for a in nest.axes if a.kind is Kind.UPCAST and a.root not in near]


def proposed(nest: Nest) -> Iterator[LoopAction]:
    """The actions for a nest whose loops are what they are to be."""
    yield from (Roll(axis.name) for axis in idle_copies(nest))
    found = next((action for axis in partitionable(nest) if (action := partition(nest, axis))), None)
    if found is not None:  # one dimension in parts is enough: copies multiply
        yield found


def partitionable(nest: Nest) -> Iterator[Axis]:
    """The outermost loops of dimensions that nothing trims, those around the outputs first."""
    trimmed = [axis for node in reductions_of(nest) for axis in bounding(nest, node).values()]
    for kinds in (SERIAL_OUTPUT, SERIAL - SERIAL_OUTPUT):
        for axis in nest.axes:
            if axis.kind in kinds and axis not in trimmed and nest.of_root(axis.root)[0] is axis:
                yield axis


def partition(nest: Nest, axis: Axis) -> Partition | None:
    """The action for one loop; None where it has no interior, or one that is too small to matter.

    It is too small if it has few values, or fewer than half of all; but not where masks are known in all copies of the
    rim, as these then have less to do.
    """
    bounds, extent = interior(nest, axis.root), nest.roots[axis.root].extent
    if bounds is None or not isinstance(extent, int) or not extent // axis.stride:
        return None
    known = axis.kind is not Kind.THREAD and settled(nest, axis.root)  # one copy is one thread's
    first, end = -(-bounds[0] // axis.stride), min(bounds[1], extent) // axis.stride
    small = bounds[1] - bounds[0] < max(LEAST_INTERIOR, extent // 2) or (end - first) * axis.stride < LEAST_INTERIOR
    return None if small and not known else Partition(axis.name, RIM if known else 0)
