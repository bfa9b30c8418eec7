"""Where the elements of a stage lie in a thread's scratch, and how many they are.

The planner asks before it keeps something, and the emitter when it does: both by the same arithmetic, so that what is
planned fits.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from ..ir.errors import EmitError
from ..machine.target import Target
from .nest import Axis, Nest, Stage
from .spec import GRID, LANE, SERIAL_OUTPUT, Kind, NodeOp
from .windows import Windowed, windowed


@dataclass(frozen=True, slots=True)
class StagePlaces:
    """A stage in a thread's scratch.

    Attributes:
      axes: the loops that fill it, outermost first; one stands for each window that its dimensions overlap in.
      strides: how many elements the iterations of each are apart, by its name.
      size: elements, those that lengthen strides included.
    """

    axes: tuple[Axis, ...]
    strides: dict[str, int]
    size: int


def stage_places(found: Windowed, itemsize: int, inner: Sequence[Axis], target: Target) -> StagePlaces:
    """Where the elements lie of what some loops read of a node.

    Args:
      found: the node, by the coordinates of its windows.
      itemsize: bytes of an element.
      inner: the loops.
      target: the machine.

    Raises:
      EmitError: if a loop has a symbolic extent.
    """
    for axis in inner:
        iterations(axis)
    axes = [Axis(w.root.name, w.root, 1, w.reach(inner), Kind.LOOP) for w in found.windows]
    axes += [a for a in inner if a.root not in found.factors]
    axes.sort(key=_nearness)
    return StagePlaces(tuple(axes), *spaced(list(reversed(axes)), itemsize, target))


def _nearness(axis: Axis) -> int:
    """How near one another the iterations of a loop lie, as a matrix instruction's operands have them.

    Terms that are contracted together are neighbours; then columns, further terms, and rows.
    """
    if axis.kind is Kind.FRAGMENT_ROWS:
        return 2
    order = {Kind.UPCAST: 1, Kind.DEPTH: 3, Kind.CONTRACT: 5}
    return 4 if axis.kind in LANE else order.get(axis.kind, 0)


def spaced(
    axes: Sequence[Axis], itemsize: int, target: Target, dense: Container[Axis] = ()
) -> tuple[dict[str, int], int]:
    """How far apart the iterations of loops lie in scratch, and the elements of all.

    A stride at which lines fall on the same set of the first-level cache is longer by a line.

    Args:
      axes: the loops, the one of neighbours first.
      itemsize: bytes of an element.
      target: the machine.
      dense: the loops whose strides are as they are.
    """
    strides, size = dict[str, int](), 1
    for axis in axes:
        if axis not in dense and size * itemsize % target.period_bytes == 0:
            size += target.line_bytes // itemsize
        strides[axis.name] = size
        size *= iterations(axis)
    return strides, size


def iterations(axis: Axis) -> int:
    """The iterations of a loop inside of a stage.

    Raises:
      EmitError: if their number is symbolic.
    """
    if not isinstance(axis.extent, int):
        raise EmitError(f"what the loop {axis.name} of symbolic extent {axis.extent} reads is not kept")
    return axis.extent


def planned_places(nest: Nest, stage: Stage, target: Target) -> StagePlaces:
    """Where the elements of a stage will lie.

    Raises:
      EmitError: if it is for a loop of symbolic extent.
    """
    node, around = stage.node, open_loops(nest, stage)
    found = windowed(node, nest) if node.op is NodeOp.LOAD else Windowed(node, ())
    inner = [a for a in nest.axes if a.root in node.free and a.name not in around]
    return stage_places(found, node.dtype.itemsize, inner, target)


def open_loops(nest: Nest, stage: Stage) -> set[str]:
    """The loops that are open where a stage is filled."""
    items = {a.name for a in nest.axes if a.kind in GRID and a.kind is not Kind.GROUP}
    if stage.axis is None:
        return items
    last = nest.axis(stage.axis)
    outputs = [a for a in nest.axes if a.kind in SERIAL_OUTPUT]
    nodes = [n for n in nest.nodes() if n.op is NodeOp.REDUCE and n is not stage.node and stage.node in n.toposort()]
    reduced = [a for a in nest.axes if a.kind is Kind.REDUCE and any(a.root in n.arg[1] for n in nodes)]
    partial = next((s for s in nest.stages if s.node in nodes), None)
    pieces = {reduced[0].name} if partial is not None and reduced else set[str]()
    if last in outputs:
        around = {a.name for a in outputs[: outputs.index(last) + 1]}
        inside = partial is not None and last.name not in open_loops(nest, partial)
        return items | around | (pieces if inside else set[str]())
    walked = {a.name for a in reduced[: reduced.index(last) + 1]}
    if partial is not None and walked == pieces:  # outside of the outputs' loops inside of the partial results
        return walked | open_loops(nest, partial)
    return items | walked | {a.name for a in outputs}


def stages_fit(nest: Nest, target: Target) -> bool:
    """Whether each stage of a nest that a thread has for itself fits into an array of scratch."""
    try:
        return all(
            planned_places(nest, stage, target).size * stage.node.dtype.itemsize <= target.scratch_bytes
            for stage in nest.stages if not stage.shared)
    except EmitError:
        return False
