"""Positions in flattened tensors, from positions along axes and back; the shape in which shapes meet."""

from __future__ import annotations

from math import prod

from tg_dtype import dtypes
from tg_shape import sint

from ..array.array import A
from ..array.joining import unbind
from ..array.positions import counting_dtype
from ..array.shapes import args_to_tuple, broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def broadcast_shapes(*shapes: int | Sequence[sint]) -> tuple[sint, ...]:
    """The shape in which all of the shapes meet: aligned at their ends, where a size of 1 stretches.

    Args:
      shapes: tuples of sizes; a number is the shape of a vector.

    Raises:
      ValueError: if they do not meet.
      TypeError: if a size is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.broadcast_shapes((2, 1), (3,), 1)
      (2, 3)
    """
    known = [args_to_tuple(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), "broadcast_shapes")
             for shape in shapes]  # fmt: skip
    if any(isinstance(size, int) and size < 0 for shape in known for size in shape):
        raise ValueError(f"broadcast_shapes: a size of {shapes} is negative")
    return broadcast_shape("broadcast_shapes", *known) if known else ()


def _sizes(shape: Any, what: str) -> tuple[int, ...]:
    sizes = args_to_tuple((shape,), what)
    if any(not isinstance(size, int) or size < 0 for size in sizes):
        raise ValueError(f"{what}: the sizes {sizes} are not numbers from 0 on")
    return sizes


def unravel_index(x: A, shape: int | Sequence[int]) -> tuple[A, ...]:
    """Where positions in a flattened tensor are in a tensor of a shape: one tensor for each axis.

    Negative positions count from the end. A position that is out of range cannot be checked before it is computed:
    it wraps, as PyTorch has it.

    Args:
      shape: of the tensor that the positions are of.

    Returns:
      Tensors of this tensor's shape and dtype; what square brackets take.

    Raises:
      TypeError: if the positions are no integers.
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> rows, columns = Tensor([5, 0, -2]).unravel_index((2, 3))
      >>> rows.tolist(), columns.tolist()
      ([1, 0, 1], [2, 0, 1])
    """
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"unravel_index: positions are integers, got a tensor of {x.dtype.name}")
    sizes = _sizes(shape, "unravel_index")
    if 0 in sizes and x.numel() != 0:
        raise ValueError(f"unravel_index: there are no positions in a tensor of shape {sizes}")
    places = x if x.dtype.itemsize > counting_dtype(prod(sizes)).itemsize else x.cast(counting_dtype(prod(sizes)))
    found: list[A] = []
    for axis, size in enumerate(sizes):
        inner = max(prod(sizes[axis + 1 :]), 1)
        found.append((places // inner % max(size, 1)).cast(x.dtype))
    return tuple(found)


def ravel_multi_index(x: A, dims: int | Sequence[int], mode: str | Sequence[str] = "raise", order: str = "C") -> A:
    """The positions in a flattened tensor of those whose positions along each axis are the rows of this one.

    The opposite of :meth:`unravel_index`: ``rows.stack(columns).ravel_multi_index(shape)``.

    Args:
      x: shape (len(dims), …), integers.
      dims: the shape of the tensor that the positions are of.
      mode: what becomes of positions out of range, for all axes or for each: ``"raise"`` computes them at once and
        raises; ``"wrap"`` counts on from the other end; ``"clip"`` takes the nearest.
      order: ``"C"``, the last axis changes fastest; ``"F"``, the first one does.

    Returns:
      Shape (…), int32, or int64 where there are more positions than that counts.

    Raises:
      TypeError: if the positions are no integers.
      ValueError: if there are not as many rows as axes; with ``"raise"``, if a position is out of range or negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 0], [2, 0]]).ravel_multi_index((2, 3)).tolist()
      [5, 0]
      >>> Tensor([[1, 0], [5, 0]]).ravel_multi_index((2, 3), mode="clip").tolist()
      [5, 0]
    """
    what = "ravel_multi_index"
    sizes = _sizes(dims, what)
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"{what}: positions are integers, got a tensor of {x.dtype.name}")
    rows: list[A] = list(unbind(x)) if x.ndim else [x]
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    if len(rows) != len(sizes) or len(modes) != len(sizes) or not rows:
        raise ValueError(f"{what}: {len(rows)} rows and {len(modes)} modes for a tensor of shape {sizes}")
    if order not in ("C", "F"):
        raise ValueError(f"{what}: order {order!r}; there are 'C' and 'F'")
    kind = counting_dtype(prod(sizes))
    steps = [prod(sizes[axis + 1 :] if order == "C" else sizes[:axis]) for axis in range(len(sizes))]
    total: Any = 0
    for row, size, how, step in zip(rows, sizes, modes, steps, strict=True):
        total = total + _inside(row, size, how).cast(kind) * step
    found: A = total
    return found


def _inside(row: A, size: int, how: str) -> A:
    """Positions along one axis, those out of range as the mode has them."""
    if how == "wrap":
        return row % max(size, 1)
    if how == "clip":
        return row.maximum(0).minimum(max(size - 1, 0))
    if how != "raise":
        raise ValueError(f"ravel_multi_index: mode {how!r}; there are 'raise', 'wrap' and 'clip'")
    if row.numel() != 0 and bool(((row < 0) | (row >= size)).any().item()):
        raise ValueError(f"ravel_multi_index: a position is out of range for an axis of size {size}")
    return row
