"""Repeated and rolled elements."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import sint

from ..array.array import A, Array
from ..array.axes import iota
from ..array.computing import copied
from ..array.ingest import value_of
from ..array.movement import stretch
from ..array.shapes import args_to_tuple
from .indexing import getitem
from .scan import cumsum
from .searching import searchsorted

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


def repeat_interleave(
    x: A, repeats: int | Sequence[int] | A | None = None, dim: int | None = None, *, output_size: int | None = None
) -> A:
    """Each element ``repeats`` times in a row along an axis, or of the flattened tensor.

    Args:
      repeats: one number, or a list or tensor with one for each element along the axis. A tensor is computed at once,
        unless ``output_size`` is given. None: the tensor itself holds them, and the elements are 0, 1, 2, …
      output_size: the sum of the repeats. Where that is less, elements at the end are missing; where it is more, the
        last one comes oftener.

    Raises:
      ValueError: if a number of repeats is negative, or there is not one for each element.
      TypeError: if they are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).repeat_interleave(2)
      Tensor([1, 1, 2, 2])
      >>> Tensor([1, 2]).repeat_interleave([1, 3])
      Tensor([1, 2, 2, 2])
      >>> Tensor([1, 3]).repeat_interleave()
      Tensor([0, 1, 1, 1], dtype=int64)
    """
    if repeats is None:
        if x.ndim != 1 or dim is not None:
            raise ValueError(f"repeat_interleave: repeats of shape {x.shape} alone, and dim {dim}; one axis is wanted")
        return _repeated_each(iota(type(x), x.shape[0], dtypes.int64, x.device), x, 0, output_size)
    out = x.flatten() if dim is None else x
    axis = 0 if dim is None else x._axis(dim, "repeat_interleave")
    if isinstance(repeats, (list, tuple, Array)):
        return _repeated_each(out, repeats, axis, output_size)
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 0:
        raise ValueError(f"repeat_interleave: {repeats!r} is not a number of repeats")
    if x.ndim == 0:
        out = x.reshape((1,))
    shape = out.shape
    if output_size is not None and output_size != shape[axis] * repeats:
        raise ValueError(f"repeat_interleave: output_size {output_size}; it is {shape[axis] * repeats}")
    out = out.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
    out = stretch(out, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return copied(out.reshape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])))


def _repeated_each(x: A, repeats: Sequence[int] | A, axis: int, length: int | None) -> A:
    """Elements along an axis, each as often as ``repeats`` says."""
    counts = repeats if isinstance(repeats, Array) else type(x)(list(repeats), dtype=dtypes.int64, device=x.device)
    size = x.shape[axis] if x.ndim else 1
    if not dtypes.is_int(counts.dtype):
        raise TypeError(f"repeat_interleave: repeats are integers, got a tensor of {counts.dtype.name}")
    if counts.ndim > 1 or counts.numel() not in (1, size):
        raise ValueError(f"repeat_interleave: {counts.shape} repeats for {size} elements along axis {axis}")
    counts = counts.reshape((counts.numel(),)).expand(size)
    if length is None:
        if counts.numel() and counts.min().item() < 0:
            raise ValueError("repeat_interleave: a number of repeats is negative")
        length = int(counts.sum().item())
    if length < 0:
        raise ValueError(f"repeat_interleave: output_size {length} is negative")
    # Position i of the result shows the element before which at most i have been given.
    upto = cumsum(counts.cast(dtypes.int64), 0)
    at = searchsorted(upto, iota(type(x), length, dtypes.int32, x.device).cast(dtypes.int64), right=True)
    at = at.minimum(max(value_of(size, x.shape) - 1, 0))
    return getitem(x.reshape((1,)) if x.ndim == 0 else x, (*(slice(None),) * axis, at))


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
