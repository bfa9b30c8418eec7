"""Parts of a tensor replaced: the result is another tensor, through which gradients flow to both."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import prod

from ..array.array import A, Array
from ..array.axes import counter
from ..array.computing import copied
from ..array.movement import stretch
from ..array.shapes import broadcast_shape
from ..array.writing import as_value, fitting
from .diagonal import diagonal
from .gather_scatter import scatter
from .index_update import index_put
from .indexing import __getitem__ as at_index
from .lookup import placed_within, take
from .ranges import arange
from .scan import cumsum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def put_at(x: A, places: A, src: Any, what: str) -> A:
    """``src`` at the places, a tensor of positions in the flattened tensor."""
    value = fitting(x, src, what)
    if value.shape != places.shape:
        raise ValueError(f"{what}: a source of shape {value.shape}; the part of the tensor has {places.shape}")
    if places.numel() == 0:
        return copied(x, value)
    flat = scatter(x.reshape((-1,)), 0, places.reshape((-1,)), value.reshape((-1,)))
    return flat.reshape(x.shape)


def positions(x: A) -> A:
    """The position of each element in the flattened tensor."""
    return arange(type(x), prod(x.shape), device=x.device).reshape(x.shape)


def select_scatter(x: A, src: A, dim: int, index: int) -> A:
    """This tensor with ``src`` for what :meth:`select` gives.

    Raises:
      ValueError: if the source has another shape than that.
      IndexError: if the axis or the position is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).select_scatter(Tensor([7, 8]), 1, 0).tolist()
      [[7, 2], [8, 4]]
    """
    axis = x._axis(dim, "select_scatter")
    size = x.shape[axis] if x.ndim else 1
    at = index + size if index < 0 else index
    if not x.ndim or not 0 <= at < size:
        raise IndexError(f"select_scatter: {index} is out of range for axis {dim} of shape {x.shape}")
    value = fitting(x, src, "select_scatter")
    wanted = (*x.shape[:axis], *x.shape[axis + 1 :])
    if value.shape != wanted:
        raise ValueError(f"select_scatter: a source of shape {value.shape}; the part of the tensor has {wanted}")
    return counter(x, axis).reshape((-1, *(1 for _ in wanted[axis:]))).eq(at).where(value.unsqueeze(axis), x)


def slice_scatter(
    x: A, src: A, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> A:
    """This tensor with ``src`` for the positions ``start:end:step`` along an axis.

    Raises:
      ValueError: if the source has another shape than those, or the step is not positive.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).slice_scatter(Tensor([7, 8]), start=1, step=2).tolist()
      [1, 7, 3, 8]
    """
    axis = x._axis(dim, "slice_scatter")
    if step < 1 or not x.ndim:
        raise ValueError(f"slice_scatter: a step of {step} along axis {dim} of shape {x.shape}")
    part = (*(slice(None) for _ in range(axis)), slice(start, end, step))
    return put_at(x, at_index(positions(x), part), src, "slice_scatter")


def diagonal_scatter(x: A, src: A, offset: int = 0, dim1: int = 0, dim2: int = 1) -> A:
    """This tensor with ``src`` for what :meth:`diagonal` gives.

    Raises:
      ValueError: if the source has another shape than that, or there are not two axes.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 2).diagonal_scatter(Tensor([1.0, 2.0])).tolist()
      [[1.0, 0.0], [0.0, 2.0]]
    """
    return put_at(x, diagonal(positions(x), offset, dim1, dim2), src, "diagonal_scatter")


def masked_scatter(x: A, mask: A, source: A) -> A:
    """This tensor with the elements of ``source``, in order, where the mask is true.

    Args:
      mask: bools; both are broadcast to one shape.
      source: as many elements as the mask has true ones, or more; where there are fewer, the rest are 0.

    Raises:
      ValueError: if the shapes do not broadcast.
      TypeError: if the mask holds no bools, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8])).tolist()
      [7, 2, 8]
    """
    if not isinstance(mask, Array) or mask.dtype != dtypes.bool:
        raise TypeError("masked_scatter: the mask is a tensor of bools")
    shape = broadcast_shape("masked_scatter", x.shape, mask.shape)
    x = x if x.shape == shape else stretch(x, shape)
    chosen, value = stretch(mask, shape), as_value(x, source, "masked_scatter").reshape((-1,))
    if 0 in (x.numel(), value.numel()):
        return copied(x, value)
    places = cumsum(chosen.reshape((-1,)).cast(dtypes.int32), 0) - 1
    return chosen.where(take(value, places.maximum(0)).reshape(x.shape), x)


def put(x: A, index: A, source: A, accumulate: bool = False, *, mode: str = "raise") -> A:
    """This tensor with elements of ``source`` at positions of the flattened tensor.

    A position outside of it is left out: it cannot be checked before it is computed.

    Args:
      index: integers; negative ones count from the end.
      source: a value for each.
      accumulate: add to what is there; otherwise of several for one place the last stays.
      mode: as of :meth:`take`; ``raise`` leaves a position outside of it out.

    Raises:
      ValueError: if there are not as many values as positions, or no such mode.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).put(Tensor([0, -1]), Tensor([7, 8])).tolist()
      [[7, 2], [3, 8]]
    """
    value = as_value(x, source, "put")
    if value.numel() != index.numel():
        raise ValueError(f"put: {value.numel()} values for {index.numel()} positions")
    places = placed_within(index.reshape((-1,)), x.numel(), mode, "put")
    flat = index_put(x.reshape((-1,)), (places,), value.reshape((-1,)), accumulate)
    return flat.reshape(x.shape)
