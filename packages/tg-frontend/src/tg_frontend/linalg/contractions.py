"""Contractions and views of matrices that numpy's and the standard's ``linalg`` have beside functions of tensors."""

from __future__ import annotations

from ..ops.products import contracted
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..array.base import DTypeLike


def outer(x: Tensor, y: Tensor) -> Tensor:
    """The products of each element of a vector with each of another one: shape (m, n).

    Raises:
      ValueError: if one is no vector.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.outer(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
      Tensor([[3., 4.],
              [6., 8.]])
    """
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"outer: vectors are wanted, got shapes {x.shape} and {y.shape}")
    return x.outer(y)


def tensordot(x: Tensor, y: Tensor, *, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sums of products along axes of both; see ``Tensor.tensordot``, where one of size 1 goes with any.

    Raises:
      ValueError: if the sizes of the axes differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.tensordot(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), axes=1)
      Tensor([[11.]])
    """
    return contracted(x, y, axes, "tensordot")


def trace(x: Tensor, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of a diagonal of each of many matrices.

    Args:
      x: shape (…, m, n).
      offset: how far the diagonal is above the main one.
      dtype: accumulate and return in this dtype instead.

    Raises:
      ValueError: if there is no matrix.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.trace(Tensor([[[1.0, 2.0], [3.0, 4.0]]]))
      Tensor([5.])
    """
    if x.ndim < 2:
        raise ValueError(f"trace: a matrix is wanted, got shape {x.shape}")
    return x.trace(offset, -2, -1, dtype)


def matrix_transpose(x: Tensor) -> Tensor:
    """The matrices with rows and columns exchanged: the attribute ``mT``.

    Raises:
      ValueError: if there is no matrix.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matrix_transpose(Tensor([[1.0, 2.0]])).shape
      (2, 1)
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: a matrix is wanted, got shape {x.shape}")
    return x.mT
