"""Repeated and rolled elements."""

from __future__ import annotations

from tg_shape import sint

from ..array.array import A
from ..array.computing import copied
from ..array.ingest import value_of
from ..array.movement import stretch
from ..array.shapes import args_to_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def repeat(x: A, *repeats: Any) -> A:
    """The whole tensor repeated along each axis; more counts than axes add axes in front.

    Raises:
      ValueError: if there are fewer counts than axes, or one is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).repeat(2, 2)
      Tensor([[1, 2, 1, 2],
              [1, 2, 1, 2]])
    """
    counts = args_to_tuple(repeats, "repeat")
    if len(counts) < x.ndim or any(isinstance(c, int) and c < 0 for c in counts):
        raise ValueError(f"repeat: {counts} for shape {x.shape}: one count, 0 or more, for each axis")
    base = (1,) * (len(counts) - x.ndim) + x.shape
    out = x.reshape(tuple(d for dim in base for d in (1, dim)))
    out = stretch(out, tuple(d for c, dim in zip(counts, base, strict=True) for d in (c, dim)))
    return copied(out.reshape(tuple(c * dim for c, dim in zip(counts, base, strict=True))))


def repeat_interleave(x: A, repeats: int, dim: int | None = None) -> A:
    """Each element ``repeats`` times in a row along an axis, or of the flattened tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).repeat_interleave(2)
      Tensor([1, 1, 2, 2])
    """
    if not isinstance(repeats, int) or repeats < 0:
        raise ValueError(f"repeat_interleave: {repeats!r} is not a number of repeats")
    out = x.flatten() if dim is None else x
    axis = 0 if dim is None else x._axis(dim, "repeat_interleave")
    shape = out.shape
    out = out.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
    out = stretch(out, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return copied(out.reshape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])))


def roll(x: A, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> A:
    """The elements moved along axes; those that leave at one end come in at the other. None: of the flat tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).roll(1)
      Tensor([3, 1, 2])
    """
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None:
        if len(moves) != 1:
            raise ValueError(f"roll: {shifts!r} places need axes")
        return roll(x.flatten(), moves, 0).reshape(x.shape)
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} axes")
    out = x
    for move, dim in zip(moves, axes, strict=True):
        axis = out._axis(dim, "roll")
        length = out.shape[axis]
        if not isinstance(length, int) and abs(move) <= length.vmin:
            cut: sint = length - move if move > 0 else -move  # whatever the value is
        else:
            length = value_of(length, out.shape)
            cut = length - move % length if length else 0
        if isinstance(length, int) and (not length or not move % length):
            continue
        doubled = repeat(out, *(2 if i == axis else 1 for i in range(out.ndim)))
        out = doubled.shrink([(cut, cut + length) if i == axis else None for i in range(out.ndim)])
    return copied(out)
