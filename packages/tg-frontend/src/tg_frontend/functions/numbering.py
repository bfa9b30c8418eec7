"""Orders by several keys, partial orders, and functions along axes, as numpy has them."""

from __future__ import annotations

import math
from math import prod

from tg_dtype import dtypes

from ..array.casts import floating
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def lexsort(keys: Sequence[Any] | Tensor, axis: int = -1) -> Tensor:
    """The order by several keys, of which the last comes first: where that is equal the one before it decides.

    Args:
      keys: tensors or lists of numbers, of one shape; or a tensor, whose first axis they are along.
      axis: along which is ordered.

    Returns:
      Positions along the axis (int32), of the shape of a key.

    Raises:
      ValueError: if there is no key, or they are of several shapes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import lexsort
      >>> lexsort([Tensor([9, 4, 0, 4, 0, 2, 1]), Tensor([1, 5, 1, 4, 3, 4, 4])])
      Tensor([2, 0, 4, 6, 5, 3, 1])
    """
    every = [key if isinstance(key, Tensor) else Tensor(key) for key in keys]
    if not every:
        raise ValueError("lexsort: one key at least is wanted")
    if len({key.shape for key in every}) > 1:
        raise ValueError(f"lexsort: keys of shapes {', '.join(str(key.shape) for key in every)}")
    order = every[0].argsort(axis, stable=True)
    for key in every[1:]:
        order = order.gather(axis, key.gather(axis, order).argsort(axis, stable=True))
    return order


def partition(a: Tensor, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The elements so that none before place ``kth`` is larger, and none behind it smaller: here, in order.

    Args:
      a: the elements.
      kth: a place, or several.
      axis: along which; of the flat tensor if None.

    Raises:
      IndexError: if a place or the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import partition
      >>> partition(Tensor([7, 1, 7, 7, 1, 5]), 3)
      Tensor([1, 1, 5, 7, 7, 7])
    """
    row, place = _along(a, kth, axis, "partition")
    return row.sort(place)[0]


def argpartition(a: Tensor, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Where the elements of :func:`partition` are (int32).

    Args:
      a: the elements.
      kth: a place, or several.
      axis: along which; of the flat tensor if None.

    Raises:
      IndexError: if a place or the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import argpartition
      >>> argpartition(Tensor([3, 4, 2, 1]), 1)
      Tensor([3, 2, 0, 1])
    """
    row, place = _along(a, kth, axis, "argpartition")
    return row.argsort(place)


def _along(a: Tensor, kth: int | Sequence[int], axis: int | None, what: str) -> tuple[Tensor, int]:
    row, place = (a.flatten(), 0) if axis is None else (a, a._axis(axis, what))
    size = row._ints()[place] if row.ndim else 1
    for one in [kth] if isinstance(kth, int) else kth:
        if not -size <= one < size:
            raise IndexError(f"{what}: place {one} of {size}")
    return row, place


def rollaxis(a: Tensor, axis: int, start: int = 0) -> Tensor:
    """The tensor with an axis moved before the one that stands at ``start``.

    Args:
      a: the tensor.
      axis: which is moved.
      start: before which; the number of axes for the end.

    Raises:
      IndexError: if one is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import rollaxis
      >>> rollaxis(Tensor.zeros(3, 4, 5, 6), 3, 1).shape, rollaxis(Tensor.zeros(3, 4, 5, 6), 1, 4).shape
      ((3, 6, 4, 5), (3, 5, 6, 4))
    """
    moved, before = a._axis(axis, "rollaxis"), start + a.ndim if start < 0 else start
    if not 0 <= before <= a.ndim:
        raise IndexError(f"rollaxis: start {start} of {a.ndim} axes")
    return a.movedim(moved, before - 1 if moved < before else before)


def size(a: Tensor, axis: int | Sequence[int] | None = None) -> int:
    """How many elements there are; along some axes, if they are given.

    Args:
      a: the tensor.
      axis: an axis, or several.

    Raises:
      IndexError: if one is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import size
      >>> size(Tensor.zeros(2, 3)), size(Tensor.zeros(2, 3), 1)
      (6, 3)
    """
    sizes = a._ints()
    if axis is None:
        return prod(sizes)
    return prod(sizes[a._axis(one, "size")] for one in ([axis] if isinstance(axis, int) else axis))


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """What a function says of each row along an axis, one after another; ``vmap`` calls it once for all.

    Args:
      func1d: from a row, shape (n,), to a tensor or a number, of one shape for all.
      axis: along which the rows are.
      arr: the tensor.
      args: and ``kwargs``: given to the function, too.

    Returns:
      The results, whose axes stand where the axis stood.

    Raises:
      ValueError: if there is no row.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import apply_along_axis
      >>> apply_along_axis(lambda row: row.max() - row.min(), 0, Tensor([[1, 9], [4, 3]]))
      Tensor([3, 6])
    """
    place = arr._axis(axis, "apply_along_axis")
    rows = arr.movedim(place, -1)
    lead = rows._ints()[:-1]
    if not prod(lead):
        raise ValueError(f"apply_along_axis: shape {arr.shape} has no row along axis {axis}")
    found = [func1d(row, *args, **kwargs) for row in rows.reshape(prod(lead), -1)]
    parts = [one if isinstance(one, Tensor) else Tensor(one) for one in found]
    out = Tensor.stack(*parts).reshape(*lead, *parts[0].shape)
    extra, kept = range(len(lead), out.ndim), list(range(len(lead)))
    return out.permute([*kept[:place], *extra, *kept[place:]])


def apply_over_axes(func: Callable[[Tensor, int], Tensor], a: Tensor, axes: int | Sequence[int]) -> Tensor:
    """What a function makes of a tensor along one axis after another; an axis that it takes away has size 1.

    Args:
      func: from a tensor and an axis to a tensor.
      a: the tensor.
      axes: an axis, or several.

    Raises:
      ValueError: if the function gives another number of axes.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import apply_over_axes
      >>> apply_over_axes(Tensor.sum, Tensor.ones(2, 3, 2), [0, 2])
      Tensor([[[4.],
               [4.],
               [4.]]])
    """
    for axis in [axes] if isinstance(axes, int) else axes:
        place = a._axis(axis, "apply_over_axes")
        found = func(a, place)
        found = found.unsqueeze(place) if found.ndim == a.ndim - 1 else found
        if found.ndim != a.ndim:
            raise ValueError(f"apply_over_axes: from shape {a.shape} the function gave shape {found.shape}")
        a = found
    return a


def spacing(x: Tensor) -> Tensor:
    """How far the next float is, away from 0: with the sign of the number, which at 0 is that of 1.

    Args:
      x: floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import spacing
      >>> spacing(Tensor([1.0])) == 2.0**-23
      Tensor([ True])
    """
    value = floating(x)
    return value.nextafter((value < 0).where(value.full_like(-math.inf), math.inf)) - value


def fabs(x: Tensor) -> Tensor:
    """The absolute value as a float.

    Args:
      x: numbers.

    Raises:
      TypeError: for complex numbers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import fabs
      >>> fabs(Tensor([-1, 2]))
      Tensor([1., 2.])
    """
    if x.is_complex():
        raise TypeError("fabs: complex numbers are not taken; abs() is")
    return floating(x).abs()


def mask_indices(n: int, mask_func: Callable[[Tensor, int], Tensor], k: int = 0) -> tuple[Tensor, ...]:
    """Where a function like ``triu`` leaves something of an (n, n) matrix of ones. Computed now.

    Args:
      n: rows and columns.
      mask_func: from a matrix and ``k`` to a matrix.
      k: given to it.

    Returns:
      Rows and columns.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import mask_indices
      >>> mask_indices(3, Tensor.triu, 1)
      (Tensor([0, 0, 1]), Tensor([1, 2, 2]))
    """
    there = mask_func(Tensor.ones(n, n, dtype=dtypes.int32), k).ne(0)
    return tuple(there.nonzero().cast(dtypes.int32).unbind(1))
