"""Elements and slices that a tensor of positions names.

A position outside of the axis reads as 0: it cannot be checked before it is computed.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import sint, upper

from ..array.array import A, Array
from ..array.movement import stretch
from ..array.positions import counting_dtype, signed
from ..array.shapes import broadcast_shape
from .gather_scatter import gather
from .indexing import __getitem__ as at_index


def _whole(index: object, what: str) -> None:
    if not isinstance(index, Array):
        raise TypeError(f"{what}: the index is a tensor, got a {type(index).__name__}")
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"{what}: indices are integers, got a tensor of {index.dtype.name}")


def index_select(x: A, dim: int, index: A) -> A:
    """The slices at the positions ``index`` along ``dim``.

    Args:
      index: shape (m,), integers; or one integer.

    Raises:
      ValueError: if the index has more than one axis.
      TypeError: if it holds no integers.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1, 1, 0])).tolist()
      [[2, 2, 1], [4, 4, 3]]
    """
    axis = x._axis(dim, "index_select")
    _whole(index, "index_select")
    if index.ndim > 1:
        raise ValueError(f"index_select: an index of shape {index.shape}; it has one axis")
    if x.ndim == 0:
        return index_select(x.reshape((1,)), 0, index).reshape(())
    return at_index(x, (*(slice(None) for _ in range(axis)), index.reshape((-1,))))


def placed_within(index: A, size: sint, mode: str, what: str) -> A:
    """Positions on an axis: as they are (``raise``), modulo its size (``wrap``), or those at its ends (``clip``).

    Raises:
      ValueError: if there is no such mode, or no position to wrap to.
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"{what}: mode {mode!r}; there are 'raise', 'wrap' and 'clip'")
    if mode == "raise":
        return index
    if isinstance(size, int) and size == 0:
        if 0 in index.shape:
            return index
        raise ValueError(f"{what}: there is no element to {mode} to")
    if mode == "wrap" and index.dtype.kind == "uint":  # before anything is cut off
        whole = index if upper(size) <= dtypes.max(index.dtype) else index.cast(dtypes.uint64)
        return (whole % size).cast(counting_dtype(size))
    at = signed(index, size)
    return at % size if mode == "wrap" else at.maximum(0).minimum(size - 1)


def take(x: A, index: A, axis: int | None = None, *, mode: str = "raise") -> A:
    """The elements at positions of the flattened tensor, in the index's shape; or slices along an axis.

    Args:
      index: integers; negative ones count from the end.
      axis: take slices along it, so that the index's shape stands in its place.
      mode: what a position outside of the axis stands for: ``raise`` for 0, which is read there, as it cannot be
        checked before it is computed; ``wrap`` for that modulo the size; ``clip`` for the nearest, where negative ones
        are the first.

    Raises:
      TypeError: if the index holds no integers.
      ValueError: if there is no such mode.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).take(Tensor([[0, 3]])).tolist()
      [[1, 4]]
    """
    _whole(index, "take")
    if axis is None:
        return at_index(x.reshape((-1,)), placed_within(index, x.numel(), mode, "take"))
    place = x._axis(axis, "take")
    within = placed_within(index, x.shape[place] if x.ndim else 1, mode, "take")
    return at_index(x, (*(slice(None) for _ in range(place)), within))


def _from_begin(index: A, size: sint) -> A:
    """Positions that may count from the end, counted from the beginning."""
    at = signed(index, size)
    return (at < 0).where(at + size, at)


def take_along_dim(x: A, indices: A, dim: int | None = None) -> A:
    """One element for each position: as :meth:`gather`, of shapes that broadcast along the other axes.

    Args:
      indices: integers, with as many axes as this tensor; any shape without ``dim``; negative ones count from the end.
      dim: the axis of the positions; without it, both are taken as flat.

    Raises:
      ValueError: if the shapes do not broadcast.
      TypeError: if the index holds no integers.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[3, 1], [2, 5]])
      >>> x.take_along_dim(x.argsort(1), 1).tolist()
      [[1, 3], [2, 5]]
    """
    _whole(indices, "take_along_dim")
    if dim is None:
        return gather(x.reshape((-1,)), 0, _from_begin(indices.reshape((-1,)), x.numel()))
    axis = x._axis(dim, "take_along_dim")
    if indices.ndim != x.ndim or x.ndim == 0:
        raise ValueError(f"take_along_dim: indices of shape {indices.shape} for a tensor of shape {x.shape}")
    of_one = [tuple(1 if i == axis else d for i, d in enumerate(shape)) for shape in (x.shape, indices.shape)]
    common = broadcast_shape("take_along_dim", *of_one)
    wide, at = (
        stretch(t, tuple(t.shape[axis] if i == axis else d for i, d in enumerate(common))) for t in (x, indices)
    )
    return gather(wide, axis, _from_begin(at, x.shape[axis]))
