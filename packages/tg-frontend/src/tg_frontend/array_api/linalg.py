"""The extension for linear algebra: decompositions, and what is solved with them."""

from __future__ import annotations

from typing import NamedTuple

from .. import linalg as ours
from ..tensor import Tensor
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .operands import summed, tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .operands import Axis

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip


class Eigh(NamedTuple):
    """Eigenvalues in order, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """Orthonormal columns, and a triangle."""

    Q: Tensor
    R: Tensor


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """Left singular vectors, singular values, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangle whose product with its transpose is ``x``."""
    return ours.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements.

    Raises:
      ValueError: if the axis is not of three elements in both.
    """
    for x in (tensor(x1, "cross"), tensor(x2, "cross")):
        if -x.ndim <= axis < x.ndim and x.shape[axis] != 3:
            raise ValueError(f"cross: axis {axis} of shape {x.shape} is not of size 3")
    a, b = Tensor.broadcast_tensors(x1, x2)
    return a.cross(b, axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return ours.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonal of each matrix."""
    return tensor(x, "diagonal").diagonal(offset, -2, -1)


def eigh(x: Tensor, /) -> Eigh:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return Eigh(*ours.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return ours.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return ours.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix."""
    return ours.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of ``n`` times a matrix."""
    return ours.matrix_power(x, n)


def _of_each(limit: Any) -> Any:
    """A relative tolerance of each matrix, beside its singular values."""
    return limit.unsqueeze(-1) if isinstance(limit, Tensor) and limit.ndim else limit


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above ``rtol`` times the greatest."""
    if rtol is None:
        return ours.matrix_rank(x)
    values = ours.svdvals(x)
    kept: Tensor = values > values.max(-1, keepdim=True) * _of_each(rtol)
    return kept.sum(-1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of each element of a vector with each of another."""
    return tensor(x1, "outer").outer(x2)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of Moore and Penrose."""
    if rtol is None:
        return ours.pinv(x)
    u, s, vh = ours.svd(x, full_matrices=False)
    kept = s > s.max(-1, keepdim=True) * _of_each(rtol)
    inverse: Tensor = (vh.mH * kept.where(1 / s, 0).unsqueeze(-2)) @ u.mH
    return inverse


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """Orthonormal columns and a triangle whose product is ``x``."""
    return QR(*ours.qr(x, mode))


def slogdet(x: Tensor, /) -> Slogdet:
    """The sign of the determinant and the logarithm of its magnitude."""
    return Slogdet(*ours.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What ``x1`` is to be multiplied with to give ``x2``: a vector if ``x2`` has one axis, else matrices."""
    if tensor(x2, "solve").ndim == 1:
        return ours.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    return ours.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """Singular vectors and values."""
    return SVD(*ours.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, in descending order."""
    return ours.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal; of integers, in int64 or uint64."""
    return diagonal(x, offset=offset).sum(-1, dtype=summed(x, dtype))


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """A norm of the elements along axes."""
    return ours.vector_norm(x, ord, axis, keepdims)
