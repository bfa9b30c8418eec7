"""Slices along an axis that a list of positions names: added to, replaced, filled, combined.

A position outside of the axis is left out: it cannot be checked before it is computed.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_shape import prod

from ..array.array import A, Array
from ..array.computing import copied
from ..array.movement import stretch
from ..array.positions import signed
from ..array.shapes import broadcast_shape
from ..array.writing import as_value
from ..autograd.functions import Scatter, ScatterAdd
from .gather_scatter import REDUCTIONS, check_places, combined
from .indexing import flat_index, shape_of_places
from .selection import nonzero

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def index_add(x: A, dim: int, index: A, source: Any, alpha: float = 1) -> A:
    """This tensor with ``alpha * source`` added: its slices along ``dim`` go to the positions ``index``.

    Args:
      index: shape (m,), integers.
      source: this tensor's shape, with m along ``dim``.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3, 2).index_add(0, Tensor([2, 0, 2]), Tensor.ones(3, 2)).tolist()
      [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """
    if x.ndim == 0:
        return index_add(x.reshape((1,)), dim, index, _row(source), alpha).reshape(())
    axis, at, value = _slices(x, dim, index, source, "index_add")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, value)
    return x._apply(ScatterAdd(axis), at, value if alpha == 1 else value * alpha)


def index_copy(x: A, dim: int, index: A, source: Any) -> A:
    """This tensor with the slices of ``source`` at the positions ``index`` along ``dim``; of several the last stays.

    Args:
      index: shape (m,), integers.
      source: this tensor's shape, with m along ``dim``.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).index_copy(0, Tensor([2, 0]), Tensor([7, 8])).tolist()
      [8, 2, 7]
    """
    if x.ndim == 0:
        return index_copy(x.reshape((1,)), dim, index, _row(source)).reshape(())
    axis, at, value = _slices(x, dim, index, source, "index_copy")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, value)
    return x._apply(Scatter(axis), at, value)


def index_fill(x: A, dim: int, index: A, value: Any) -> A:
    """This tensor with one number in the slices at the positions ``index`` along ``dim``.

    Args:
      index: shape (m,), integers.
      value: a number, or a tensor of one.

    Raises:
      ValueError: if the value is more than one number.
      TypeError: if the index holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).index_fill(1, Tensor([0]), 9).tolist()
      [[9, 2], [9, 4]]
    """
    if x.ndim == 0:
        return index_fill(x.reshape((1,)), dim, index, value).reshape(())
    number = as_value(x, value, "index_fill")
    if number.shape != ():
        raise ValueError(f"index_fill: one number is wanted, got a tensor of shape {number.shape}")
    axis, at = _positions(x, dim, index, "index_fill")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, number)
    return x._apply(Scatter(axis), at, stretch(number, at.shape))


def index_reduce(x: A, dim: int, index: A, source: Any, reduce: str, include_self: bool = True) -> A:
    """This tensor's slices at the positions ``index`` combined with those of ``source``.

    Args:
      index: shape (m,), integers.
      source: this tensor's shape, with m along ``dim``.
      reduce: ``"prod"``, ``"mean"``, ``"amax"``, ``"amin"``, or ``"sum"``.
      include_self: combine with what is there, too.

    Raises:
      ValueError: if the shapes do not fit, or there is no such ``reduce``.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).index_reduce(0, Tensor([2, 2, 0]), Tensor([7, 8, 0]), "amax").tolist()
      [1, 2, 8]
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"index_reduce: reduce {reduce!r}; there are {', '.join(REDUCTIONS)}")
    if x.ndim == 0:
        return index_reduce(x.reshape((1,)), dim, index, _row(source), reduce, include_self).reshape(())
    axis, at, value = _slices(x, dim, index, source, "index_reduce")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, value)
    return combined(x, axis, at, value, reduce, include_self)


def index_put(x: A, indices: Sequence[A], values: Any, accumulate: bool = False) -> A:
    """This tensor with ``values`` at the places that several index tensors name together, one for each leading axis.

    Args:
      indices: integers, of shapes that broadcast to one; negative ones count from the end. Or bools, which stand for
        the positions of those that are true, one for each of their axes, and are computed at once.
      values: what broadcasts to that shape, followed by the axes that no index is for.
      accumulate: add to what is there, every value; otherwise of several for one place the last stays.

    Raises:
      ValueError: if there are no indices or too many, or the shapes do not fit.
      TypeError: if an index holds no integers, or the values have another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 2).index_put((Tensor([1, 1]), Tensor([0, 0])), Tensor([2.0, 3.0]), accumulate=True).tolist()
      [[0.0, 0.0], [5.0, 0.0]]
    """
    if isinstance(indices, Array):
        raise TypeError("index_put: indices are a tuple of tensors, got one tensor")
    found = [part for index in indices for part in _of_bools(index)]
    if not 0 < len(found) <= x.ndim:
        raise ValueError(f"index_put: {len(found)} indices for a tensor of shape {x.shape}")
    for index in found:
        if not isinstance(index, Array) or not dtypes.is_int(index.dtype):
            raise TypeError("index_put: indices are tensors of integers")
    for axis, index in enumerate(found):
        check_places(x, axis, index, "index_put")
    shape = shape_of_places("index_put", found)
    at, n = flat_index([stretch(index, shape) for index in found], list(x.shape[: len(found)]))
    rest = x.shape[len(found) :]
    value = as_value(x, values, "index_put")
    if broadcast_shape("index_put", value.shape, (*shape, *rest)) != (*shape, *rest):
        raise ValueError(f"index_put: values of shape {value.shape} for places of shape {(*shape, *rest)}")
    m, width = prod(shape), prod(rest)
    if 0 in (m, n, width):
        return copied(x, value)
    rows = stretch(value, (*shape, *rest)).reshape((m, width))
    function = ScatterAdd(0) if accumulate else Scatter(0)
    out = x.reshape((n, width))._apply(function, stretch(at.reshape((m, 1)), (m, width)), rows)
    return out.reshape(x.shape)


def _of_bools(index: Any) -> Sequence[Any]:
    """The positions of true elements, one tensor an axis; an index of integers as it is."""
    if isinstance(index, Array) and index.dtype.kind == "bool":
        places: tuple[Any, ...] = nonzero(index, as_tuple=True)
        return places
    return (index,)


def _row(x: Any) -> Any:
    """A number as a row of one."""
    return x.reshape((1,)) if isinstance(x, Array) and x.ndim == 0 else x


def _positions(x: A, dim: int, index: A, what: str) -> tuple[int, A]:
    """The axis, and a position for each element of the slices."""
    axis = x._axis(dim, what)
    if not isinstance(index, Array):
        raise TypeError(f"{what}: the index is a tensor, got a {type(index).__name__}")
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"{what}: indices are integers, got a tensor of {index.dtype.name}")
    if index.device != x.device:
        raise ValueError(f"{what}: an index on {index.device} for a tensor on {x.device}; use .to()")
    index = _row(index)
    if index.ndim != 1:
        raise ValueError(f"{what}: an index of shape {index.shape} for slices of shape {x.shape}; it has one axis")
    check_places(x, axis, index, what)
    m = index.shape[0]
    at = signed(x._wrap(index.lazydata), x.shape[axis])
    single = tuple(m if i == axis else 1 for i in range(x.ndim))
    return axis, stretch(at.reshape(single), tuple(m if i == axis else d for i, d in enumerate(x.shape)))


def _slices(x: A, dim: int, index: A, source: Any, what: str) -> tuple[int, A, A]:
    """The axis, a position for each element of the slices, and the elements."""
    axis, at = _positions(x, dim, index, what)
    value = as_value(x, source, what)
    if value.shape != at.shape:
        raise ValueError(f"{what}: a source of shape {value.shape}; slices at these positions have {at.shape}")
    return axis, at, value
