"""Products of matrices and vectors."""

from __future__ import annotations

from tg_dtype import least_upper_dtype

from ..ops.products import contracted
from ..tensor import Tensor
from .operands import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices."""
    return tensor(x1, "matmul").matmul(tensor(x2, "matmul"))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    return tensor(x, "matrix_transpose").mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products along pairs of axes.

    Raises:
      ValueError: if the sizes of a pair differ.
    """
    return contracted(tensor(x1, "tensordot"), tensor(x2, "tensordot"), axes, "tensordot")


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis, which is counted after broadcasting.

    Raises:
      ValueError: if the sizes along the axis differ.
      IndexError: if the axis is out of range.
    """
    x1, x2 = tensor(x1, "vecdot"), tensor(x2, "vecdot")
    for x in (x1, x2):
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"vecdot: axis {axis} is out of range for shape {x.shape}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: shapes {x1.shape} and {x2.shape} differ along the axis {axis}")
    left = x1.conj() if x1.dtype.kind == "complex" else x1
    return (left * x2).sum(axis, dtype=least_upper_dtype(x1.dtype, x2.dtype))
