"""Where the elements of a load lie in memory that a work-group shares, and how many they are.

The planner asks before it shares a load, and the emitter when it does: both by the same arithmetic, so that what is
planned fits.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod

from tg_shape import Variable, coefficient, sint

from ..ir.errors import EmitError
from ..machine.target import Target
from .nest import Axis, Nest, Node
from .spec import ITEMS, LANE, SERIAL_OUTPUT, Kind

MOST_COPIES = 64
"""Copies, at the most, of the code with which an item moves one vector: a compiler's patience."""


@dataclass(frozen=True, slots=True)
class StagedDimension:
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


@dataclass(frozen=True, slots=True)
class Layout:
    """A stage in shared memory.

    Attributes:
      dimensions: what it holds, dimension by dimension; along the last one neighbours in memory are nearest.
      width: elements that an item copies at once.
      size: elements, those between rows included.
    """

    dimensions: tuple[StagedDimension, ...]
    width: int
    size: int

    @property
    def last(self) -> StagedDimension | None:
        """The dimension along which vectors are copied."""
        return self.dimensions[-1] if self.dimensions else None

    @property
    def vectors(self) -> int:
        """How many vectors are copied."""
        return prod(r.count for r in self.dimensions) // self.width


def staged_dimensions(nest: Nest, node: Node, opened: Container[str]) -> list[StagedDimension]:
    """What a load reads of each dimension for all work-items of a group, the loops ``opened`` standing still.

    Raises:
      EmitError: if the loops that move leave values out.
    """
    found: list[StagedDimension] = []
    for root in sorted(node.free, key=lambda v: v.name):
        axes = nest.of_root(root)
        inner = [a for a in reversed(axes) if a.kind in ITEMS or a.name not in opened]
        step, count = inner[0].stride if inner else 1, 1
        for axis in inner:
            if axis.stride != step * count:
                raise EmitError(f"what the work-items of a group read of {root.name} is not one range")
            if not isinstance(axis.extent, int):
                raise EmitError(f"the loop {axis.name} of symbolic extent {axis.extent} cannot be shared")
            count *= axis.extent
        found.append(StagedDimension(root, 0, step, count, tuple(inner)))
    return found


def laid_out(nest: Nest, target: Target, node: Node, found: Sequence[StagedDimension]) -> Layout:
    """Where the elements of a stage lie in shared memory."""
    ordered = sorted(found, key=lambda r: -jump(node, r))
    last = ordered[-1] if ordered else None
    width = 1
    if last is not None and jump(node, last) == 1:
        most = max(1, target.vector_bytes // node.dtype.itemsize)
        width = max(w for w in (1, 2, 4, 8, 16) if w <= most and last.count % w == 0)
    pitched = packed(nest, target, node, ordered)
    return Layout(tuple(pitched), width, sum((r.count - 1) * r.pitch for r in pitched) + 1)


def jump(node: Node, r: StagedDimension) -> int:
    """How far apart in memory a load's neighbours in a range are; very far if that differs."""
    index = node.arg[1]
    by = coefficient(index, r.root)
    return 1 << 62 if by is None or r.count == 1 else abs(by) * r.step


def packed(nest: Nest, target: Target, node: Node, ordered: Sequence[StagedDimension]) -> list[StagedDimension]:
    """The dimensions with their pitches: what becomes lanes is contiguous, reduced dimensions are outermost."""
    def nearness(r: StagedDimension) -> tuple[bool, bool, bool, int]:
        kinds = {a.kind for a in r.axes}
        return Kind.CONTRACT in kinds, bool(kinds & LANE), not nest.roots[r.root].reduce, -jump(node, r)

    pitches: dict[Variable, int] = {}
    pitch, order = 1, sorted(ordered, key=nearness, reverse=True)
    for number, r in enumerate(order):
        pitches[r.root] = pitch
        pitch *= r.count
        row = pitch * node.dtype.itemsize
        along = r is ordered[-1] and any(a.kind in LANE for a in r.axes)  # written and read in one direction
        if number == 0 and not along and row % target.gpu.bank_bytes == 0:
            pitch += max(1, target.gpu.pad_bytes // node.dtype.itemsize)
    return [replace(r, pitch=pitches[r.root]) for r in ordered]


def planned_layout(nest: Nest, target: Target, node: Node, axis: str | None) -> Layout:
    """Where the elements of a load would lie if it were shared in the loop ``axis`` (None: in the kernel).

    Raises:
      EmitError: if its work-items do not read one range of each dimension.
    """
    opened = {a.name for a in nest.axes if a.kind is Kind.GLOBAL}
    if axis is not None:
        opened |= {a.name for a in nest.axes if a.kind in SERIAL_OUTPUT}
        for other in nest.axes:
            if other.kind is Kind.REDUCE:
                opened.add(other.name)
            if other.name == axis:
                break
    return laid_out(nest, target, node, staged_dimensions(nest, node, opened))
