"""Where elements are, and in what order."""

from __future__ import annotations

from ..tensor import Tensor
from .operands import both, tensor, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from .operands import Axis


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first maximum."""
    return whole(tensor(x, "argmax").argmax(axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first minimum."""
    return whole(tensor(x, "argmin").argmin(axis, keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0."""
    return whole(tensor(x, "count_nonzero").count_nonzero(axis, keepdim=keepdims))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of elements that are not 0, one tensor an axis.

    Raises:
      ValueError: if there is no axis.
    """
    if not tensor(x, "nonzero").ndim:
        raise ValueError("nonzero: a tensor of shape () has no axes")
    return tuple(whole(part) for part in x.nonzero(as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where each of ``x2`` is to be put so that ``x1`` stays in order."""
    return whole(tensor(x1, "searchsorted").searchsorted(x2, side=side, sorter=sorter))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of ``x1`` where the condition holds, else of ``x2``."""
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        x1, x2 = both(x1, x2, "where")
    return tensor(condition, "where").where(x1, x2)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions of the elements in order."""
    return whole(tensor(x, "argsort").argsort(axis, descending, stable))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order."""
    return tensor(x, "sort").sort(axis, descending, stable)[0]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices along an axis by their positions.

    Raises:
      ValueError: if no axis is given, and there is more than one.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an axis is wanted for shape {x.shape}")
        axis = 0
    return tensor(x, "take").take(indices, axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """An element of each line along an axis by its position."""
    return tensor(x, "take_along_axis").take_along_dim(indices, axis)
