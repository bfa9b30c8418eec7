"""Frames: over which loops a kernel is built, and how they map to the elements of each output."""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import ShapeTracker, sint

from ..subgraph.node import Edge, Node, seen_shape, target_of, update_of
from ..trackers import Shape, contiguous, max_size


def frames_of(roots: Sequence[Node], shape: Shape, finished: Edge | None) -> list[ShapeTracker | None]:
    """Over which loops a kernel is formed: those of its outputs, or those of the reduction that they finish.

    Args:
      roots: the outputs: one element each iteration, or one each row.
      shape: the loops.
      finished: a reduction of which the outputs see each result once, and how; None if there is no such.

    Returns:
      For each root how the loops map to its elements; None: one by one, over its own shape.
    """
    if update_of(roots[0]) is not None:
        return [None]
    loops = shape
    frame: ShapeTracker | None = None
    if finished is not None:
        reduction, seen = finished
        frame = (seen or contiguous(shape)).invert(reduction.shape)
        if frame is not None:
            loops = reduction.shape
    out: list[ShapeTracker | None] = []
    for root in roots:
        own = seen_shape(target_of(root))
        if max_size(own) != max_size(shape):
            rows = row_shape(shape, max_size(own))
            out.append(None if own == rows else contiguous(own).reshape(rows))
        elif frame is None or (frame.contiguous and own == loops):
            out.append(None if own == loops else contiguous(own).reshape(loops))
        else:
            out.append(frame)
    return out


def row_shape(shape: Shape, rows: int) -> Shape:
    """The outer dimensions of ``shape`` that have ``rows`` elements together, the others 1."""
    out: list[sint] = []
    for dim in shape:
        out.append(dim if max_size(tuple(out)) < rows else 1)
    return tuple(out)
