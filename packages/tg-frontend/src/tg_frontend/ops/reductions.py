"""Reductions that are made of others: extrema without their positions, counts, and what leaves NaN out."""

from __future__ import annotations

from ..array.array import A
from ..array.counted import mask_of
from ..array.reduction import sum as total
from .found import Extremes
from .predicates import isnan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..array.base import DTypeLike

    Axes = int | Sequence[int] | None


def amax(x: A, axis: Axes = None, keepdim: bool = False, *, where: Any = None, initial: Any = None) -> A:
    """The maximum along one axis or several: the same as :meth:`max`, whose arguments it takes.

    Raises:
      ValueError: if there is nothing to choose from, or an axis is given twice.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 4.0], [3.0, 2.0]]).amax(axis=(0, 1))
      Tensor(4.)
    """
    return x.max(axis, keepdim, where=where, initial=initial)


def amin(x: A, axis: Axes = None, keepdim: bool = False, *, where: Any = None, initial: Any = None) -> A:
    """The minimum along one axis or several: the same as :meth:`min`, whose arguments it takes.

    Raises:
      ValueError: if there is nothing to choose from, or an axis is given twice.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 4.0], [3.0, 2.0]]).amin(axis=1)
      Tensor([1., 2.])
    """
    return x.min(axis, keepdim, where=where, initial=initial)


def aminmax(x: A, axis: int | None = None, keepdim: bool = False) -> Extremes[A]:
    """The minimum and the maximum.

    Raises:
      ValueError: if there is nothing to choose from.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).aminmax()
      Extremes(min=Tensor(1), max=Tensor(3))
    """
    return Extremes(x.min(axis, keepdim), x.max(axis, keepdim))


def count_nonzero(x: A, axis: Axes = None, *, keepdim: bool = False) -> A:
    """How many elements are not 0, as int64; a NaN is not 0.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if an axis is given twice.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0, 1], [2, 3]]).count_nonzero(axis=1)
      Tensor([1, 2], dtype=int64)
    """
    return x.ne(0).sum(axis, keepdim)


def nansum(
    x: A, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None,
    initial: Any = None,
) -> A:  # fmt: skip
    """The sum of what is not NaN; the arguments are those of :meth:`sum`.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if an axis is given twice.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("nan"), 2.0]).nansum()
      Tensor(3.)
    """
    numbers = isnan(x).where(0, x) if x.dtype.kind == "float" else x
    return total(numbers, axis, keepdim, dtype, where=where, initial=initial)


def nanmean(
    x: A, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None, *, where: Any = None
) -> A:
    """The mean of what is not NaN; NaN where nothing else is there. The arguments are those of :meth:`mean`.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if an axis is given twice.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("nan"), 2.0]).nanmean()
      Tensor(1.5)
    """
    if x.dtype.kind != "float":
        return x.mean(axis, keepdim, dtype, where=where)
    mask = mask_of(x, where, "nanmean")
    there = isnan(x).logical_not()
    return x.mean(axis, keepdim, dtype, where=there if mask is None else there & mask)
