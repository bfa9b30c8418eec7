"""The greatest singular values of a matrix, from its products with a few random vectors.

Source: N. Halko, P. G. Martinsson and J. A. Tropp, "Finding structure with randomness: probabilistic algorithms for
constructing approximate matrix decompositions", SIAM Review 53, 2011, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

from ..tensor import Tensor
from .matrices import adjoint, check_matrix
from .orthogonal import qr
from .spectral import svd


class LowRankSVD(NamedTuple):
    """a is about U @ diag(S) @ V.T."""

    U: Tensor
    S: Tensor
    V: Tensor


def _checked(a: Tensor, q: int, niter: int, what: str) -> None:
    check_matrix(a, what)
    least = min(a._ints()[-2:])
    if not isinstance(q, int) or not 0 <= q <= least:
        raise ValueError(f"{what}: q is a number from 0 to {least} for matrices of shape {a.shape[-2:]}, got {q!r}")
    if not isinstance(niter, int) or niter < 0:
        raise ValueError(f"{what}: niter is how many times the matrix is multiplied again, got {niter!r}")


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> LowRankSVD:
    """The q greatest singular values, about, and their vectors: a random projection, and what is exact inside of it.

    Args:
      A: shape (…, m, n).
      q: how many; for the r greatest to be accurate, some more than r.
      niter: how many times the projection is multiplied by the matrix again, which makes it better where singular
        values fall slowly.
      M: is subtracted from A first; it broadcasts.

    Returns:
      U, S and V of shapes (…, m, q), (…, q) and (…, n, q).

    Raises:
      ValueError: if q is greater than m or n, or negative.
      TypeError: if the matrices hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> a = Tensor([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
      >>> linalg.svd_lowrank(a, q=2).S.round(decimals=4)
      Tensor([3., 2.])
    """
    what = "svd_lowrank"
    _checked(A, q, niter, what)
    return _lowrank(A if M is None else A - M, q, niter)


def _lowrank(a: Tensor, q: int, niter: int) -> LowRankSVD:
    m, n = a._ints()[-2:]
    if m < n:
        turned = _lowrank(adjoint(a), q, niter)
        return LowRankSVD(turned.V, turned.S, turned.U)
    drawn = Tensor.randn(n, q, dtype=a.dtype, device=a.device)
    basis = qr(a @ drawn).Q
    for _ in range(niter):
        basis = qr(a @ qr(adjoint(a) @ basis).Q).Q
    left, values, right = svd(adjoint(basis) @ a, full_matrices=False)
    return LowRankSVD(basis @ left, values, adjoint(right))


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRankSVD:
    """The principal components of rows: :func:`svd_lowrank` of what is left when their mean is taken away.

    Args:
      A: shape (…, m, n): m observations of n quantities.
      q: how many components; 6, or as many as there are, if None.
      center: whether the mean is taken away.
      niter: see :func:`svd_lowrank`.

    Returns:
      U, S and V: the columns of V are the directions, ``S**2 / (m - 1)`` the variances along them.

    Raises:
      ValueError: if q is greater than m or n, or negative.
      TypeError: if the matrices hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> a = Tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
      >>> linalg.pca_lowrank(a, q=1).V.abs().round(decimals=4)
      Tensor([[0.7071],
              [0.7071]])
    """
    what = "pca_lowrank"
    check_matrix(A, what)
    count = min(6, *A._ints()[-2:]) if q is None else q
    _checked(A, count, niter, what)
    return _lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)
