"""Axes as they are given, and positions along them."""

from __future__ import annotations

from tg_dtype import DType
from tg_lazy import LazyBuffer
from tg_shape import sint

from .base import B
from .movement import reshape
from .positions import counting_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Axes = int | Sequence[int] | None


def axes_of(x: B, axis: Axes, what: str) -> tuple[int, ...]:
    """Axes as they are given, one, several or None for all, as sorted numbers from 0.

    Raises:
      IndexError: if one is out of range.
      ValueError: if one is given twice.
    """
    if axis is None:
        return tuple(range(x.ndim))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(x._axis(a, what) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{what}: an axis is given twice in {given}")
    return tuple(sorted(axes)) if x.ndim else ()


def kept(x: B, axes: tuple[int, ...], keepdim: bool) -> B:
    """This reduced tensor without the reduced axes, unless they are to be kept.

    Raises:
      TypeError: if ``keepdim`` is something else than True or False, as a dtype where numpy has that.
    """
    if keepdim is not True and keepdim is not False and keepdim not in (0, 1):
        raise TypeError(f"keepdim is True or False, got {keepdim!r}")
    return x if keepdim else reshape(x, tuple(dim for i, dim in enumerate(x.shape) if i not in axes))


def check_nonempty(x: B, axes: tuple[int, ...], what: str) -> None:
    """Sees to it that there is something to choose from along axes.

    Raises:
      ValueError: if there is not.
    """
    if any(isinstance(x.shape[axis], int) and x.shape[axis] == 0 for axis in axes):
        raise ValueError(f"{what}: there is no element along axes {axes} of shape {x.shape}")


def iota(cls: type[B], n: sint, dtype: DType, device: str) -> B:
    """0, 1, … below ``n``, which takes no memory."""
    return cls._wrap(LazyBuffer.iota(n, dtype, device))


def counter(x: B, axis: int) -> B:
    """The index along ``axis``, in a shape that broadcasts with this tensor's."""
    shape = tuple(dim if i == axis else 1 for i, dim in enumerate(x.shape))
    return reshape(iota(type(x), x.shape[axis], counting_dtype(x.shape[axis]), x.device), shape)
