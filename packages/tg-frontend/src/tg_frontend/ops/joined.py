"""Tensors side by side and taken apart, by the names that say along which axis; blocks of a matrix."""

from __future__ import annotations

from ..array.array import A
from ..array.base import DTypeLike
from ..array.ingest import value_of
from ..array.joining import cat, split
from ..array.operands import common_dtype
from .axes import atleast_1d, atleast_2d, atleast_3d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _parts(x: Any, others: tuple[Any, ...], raised: Callable[[Any], Any]) -> list[Any]:
    """The tensors of a call with several, or with one list of them, with as many axes as are wanted."""
    return [raised(t) for t in (x if isinstance(x, (list, tuple)) and not others else (x, *others))]


def _joined(parts: list[Any], dim: int, what: str, dtype: DTypeLike | None = None) -> Any:
    if not parts:
        raise ValueError(f"{what}: at least one tensor is wanted")
    return cat(parts[0], *parts[1:], dim=dim, dtype=dtype)


def hstack(x: A, *others: Any, dtype: DTypeLike | None = None) -> A:
    """Tensors side by side: along the second axis, vectors along the first. Also ``Tensor.hstack([a, b])``.

    Args:
      dtype: as of :meth:`cat`.

    Raises:
      ValueError: if the other axes differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1], [2]]).hstack(Tensor([[3], [4]])).tolist()
      [[1, 3], [2, 4]]
    """
    parts = _parts(x, others, atleast_1d)
    out: A = _joined(parts, 0 if parts and parts[0].ndim == 1 else 1, "hstack", dtype)
    return out


def vstack(x: A, *others: Any, dtype: DTypeLike | None = None) -> A:
    """Tensors above one another: along the first axis; a vector is a row. Also ``Tensor.vstack([a, b])``.

    Args:
      dtype: as of :meth:`cat`.

    Raises:
      ValueError: if the other axes differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).vstack(Tensor([3, 4])).tolist()
      [[1, 2], [3, 4]]
    """
    out: A = _joined(_parts(x, others, atleast_2d), 0, "vstack", dtype)
    return out


def dstack(x: A, *others: Any) -> A:
    """Tensors behind one another: along the third axis, which is added where there are two.

    Raises:
      ValueError: if the other axes differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).dstack(Tensor([3, 4])).tolist()
      [[[1, 3], [2, 4]]]
    """
    out: A = _joined(_parts(x, others, atleast_3d), 2, "dstack")
    return out


def column_stack(x: A, *others: Any) -> A:
    """Columns of a matrix: vectors as columns, and matrices, side by side.

    Raises:
      ValueError: if the numbers of rows differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).column_stack(Tensor([3, 4])).tolist()
      [[1, 3], [2, 4]]
    """
    out: A = _joined(_parts(x, others, lambda t: t.reshape((t.numel(), 1)) if t.ndim < 2 else t), 1, "column_stack")
    return out


def tensor_split(x: A, indices: int | Sequence[int] | A, dim: int = 0) -> tuple[A, ...]:
    """Parts along an axis: so many, the first ones larger by 1 where they are not equal; or cut at positions.

    Args:
      indices: the number of parts, or where the second and later ones begin; what lies beyond the axis is its end. A
        tensor of either is read at once.

    Raises:
      ValueError: if there is no axis, or the number of parts is not positive.
      TypeError: if places are no integers.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([1, 2, 3, 4, 5]).tensor_split(2)]
      [[1, 2, 3], [4, 5]]
      >>> [part.tolist() for part in Tensor([1, 2, 3, 4, 5]).tensor_split((1, 3))]
      [[1], [2, 3], [4, 5]]
    """
    axis = x._axis(dim, "tensor_split")
    if x.ndim == 0:
        raise ValueError("tensor_split: a tensor of shape () has no axis to split")
    length = value_of(x.shape[axis], x.shape)
    indices = indices.tolist() if hasattr(indices, "tolist") else indices
    if isinstance(indices, int):
        if indices <= 0:
            raise ValueError(f"tensor_split: {indices} is not a number of parts")
        size, more = divmod(length, indices)
        return split(x, [size + (n < more) for n in range(indices)], axis)
    if not isinstance(indices, (tuple, list)) or any(not isinstance(cut, int) for cut in indices):
        raise TypeError(f"tensor_split: places are integers, got {indices!r}")
    cuts = [min(max(cut + length if cut < 0 else cut, 0), length) for cut in indices]
    bounds = list(zip([0, *cuts], [*cuts, length], strict=True))
    return tuple(
        x.shrink([(a, max(a, b)) if i == axis else None for i in range(x.ndim)]) for a, b in bounds
    )  # fmt: skip


def _places(indices: Any, more: tuple[int, ...]) -> Any:
    """Positions that were given one by one as a list of them; a single number is one of parts."""
    return (indices, *more) if more else indices


def _split_along(x: A, indices: int | Sequence[int], axis: int, what: str) -> tuple[A, ...]:
    if x.ndim <= axis:
        raise ValueError(f"{what}: a tensor of at least {axis + 1} axes is wanted, got shape {x.shape}")
    if isinstance(indices, int) and (indices <= 0 or value_of(x.shape[axis], x.shape) % indices):
        raise ValueError(f"{what}: axis {axis} of shape {x.shape} is no {indices} equal parts")
    return tensor_split(x, indices, axis)


def hsplit(x: A, indices: int | Sequence[int], *more: int) -> tuple[A, ...]:
    """Parts along the second axis, of a vector along the first: so many equal ones, or cut at positions.

    Positions may be given one by one: ``x.hsplit(1, 3)``.

    Raises:
      ValueError: if there is no such axis, or it is no such number of equal parts.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).hsplit(2)]
      [[[1], [3]], [[2], [4]]]
    """
    return _split_along(x, _places(indices, more), 0 if x.ndim == 1 else 1, "hsplit")


def vsplit(x: A, indices: int | Sequence[int], *more: int) -> tuple[A, ...]:
    """Parts along the first axis of two or more: so many equal ones, or cut at positions.

    Positions may be given one by one.

    Raises:
      ValueError: if there are fewer than two axes, or the first is no such number of equal parts.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).vsplit(2)]
      [[[1, 2]], [[3, 4]]]
    """
    if x.ndim < 2:
        raise ValueError(f"vsplit: a tensor of at least 2 axes is wanted, got shape {x.shape}")
    return _split_along(x, _places(indices, more), 0, "vsplit")


def dsplit(x: A, indices: int | Sequence[int], *more: int) -> tuple[A, ...]:
    """Parts along the third axis: so many equal ones, or cut at positions.

    Positions may be given one by one.

    Raises:
      ValueError: if there are fewer than three axes, or the third is no such number of equal parts.

    Example:
      >>> from tg_frontend import Tensor
      >>> [part.tolist() for part in Tensor([[[1, 2]]]).dsplit(2)]
      [[[[1]]], [[[2]]]]
    """
    return _split_along(x, _places(indices, more), 2, "dsplit")


def block_diag(x: A, *others: Any) -> A:
    """Matrices along the diagonal of one that is 0 elsewhere; a vector is a row. The function, called without any,
    gives a matrix of shape (1, 0).

    Raises:
      ValueError: if one has more than two axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).block_diag(Tensor([[3]])).tolist()
      [[1, 2, 0], [0, 0, 3]]
    """
    given = _parts(x, others, lambda part: part)
    parts = [atleast_2d(part) for part in given]
    if wrong := [part.shape for part in parts if part.ndim != 2]:
        raise ValueError(f"block_diag: matrices are wanted, got shape {wrong[0]}")
    dtype, width = common_dtype(*given), sum(part.shape[1] for part in parts)
    rows, before = [], 0
    for part in parts:
        rows.append(part.cast(dtype).pad(((0, 0), (before, width - before - part.shape[1]))))
        before += part.shape[1]
    out: A = _joined(rows, 0, "block_diag")
    return out
