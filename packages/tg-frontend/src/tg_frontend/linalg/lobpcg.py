"""A few eigenvalues of large symmetric matrices, from products with a block of vectors.

Source: A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
gradient method", SIAM Journal on Scientific Computing 23, 2001. What the vectors, residuals and directions span is made
orthonormal by Householder's reflections, so that directions that have all but vanished do no harm.
"""

from __future__ import annotations

from typing import NamedTuple

from tg_runtime import capturing

from ..tensor import Tensor
from .cholesky import cholesky
from .matrices import REAL, adjoint, check_matrix
from .orthogonal import qr
from .spectral import eigh
from .triangular import solve_triangular

_MOST = 1000
"""So many steps are made at most where no number is given."""


class Eigenpairs(NamedTuple):
    """Eigenvalues, and their vectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
) -> Eigenpairs:
    """The k greatest or least eigenvalues of symmetric matrices, and their vectors: A @ v = w * B @ v.

    Of A products alone are computed, step after step, until all pairs are accurate: that is looked at after each. Where
    a gradient is wanted, all eigenvalues are computed by :func:`eigh`, and these k are taken.

    Args:
      A: shape (…, m, m), symmetric.
      k: how many; as many as ``X`` has columns, or 1, if None.
      B: shape (…, m, m), symmetric and positive definite; the identity if None.
      X: vectors to begin with, shape (…, m, n); random ones if None.
      n: how many vectors there are in a step, at least k; k if None.
      iK: shape (…, m, m): about the inverse of A, by which residuals are multiplied.
      niter: how many steps at most; 1000 if None or negative. Inside of a TinyJit just so many are made.
      tol: a pair is accurate when its residual is less than this part of the matrix and the vector; the square root of
        the distance from 1 to the next number if None. What rounding leaves is the least that is asked for.
      largest: whether the greatest are wanted; they are if None.
      method: ``"ortho"`` or ``"basic"``, which are the same here.

    Returns:
      Eigenvalues (…, k), the greatest (or least) first, and vectors (…, m, k), whose products v.T @ B @ v are 1.

    Raises:
      ValueError: if shapes do not fit; if m is less than three times n; or there is no such method.
      RuntimeError: if TinyJit is recording, and no number of steps is given.
      TypeError: if the matrices hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> a = Tensor([5.0, 1.0, 3.0, 2.0, 9.0, 4.0, 8.0]).diag()
      >>> linalg.lobpcg(a, k=2).eigenvalues.round(decimals=3)
      Tensor([9., 8.])
    """
    what = "lobpcg"
    check_matrix(A, what, square=True, kinds=REAL)
    m = A._ints()[-1]
    count = k if k is not None else X._ints()[-1] if X is not None else 1
    block = n if n is not None else X._ints()[-1] if X is not None else count
    for other, shape in ((B, (m, m)), (iK, (m, m)), (X, (m, block))):
        if other is not None and other.shape[-2:] != shape:
            raise ValueError(f"{what}: matrices of shape {A.shape} and {other.shape}; {shape} is wanted")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"{what}: there are 'ortho' and 'basic', got {method!r}")
    if not 0 < count <= block or m < 3 * block:
        raise ValueError(
            f"{what}: {count} pairs from blocks of {block} vectors, of matrices of {m} rows; there are to be three "
            "times as many rows as vectors, and as many vectors as pairs"
        )
    steps = _MOST if niter is None or niter < 0 else niter
    if capturing() and (niter is None or niter < 0):
        raise RuntimeError(
            f"{what}: inside of a function while TinyJit records it; give niter, how many steps are made"
        )
    greatest = largest is None or largest
    factor = None if B is None else cholesky(B)
    inner = A if factor is None else _between(A, factor)
    if A._wish or (B is not None and B._wish):
        values, vectors = eigh(inner)
        order = slice(None, None, -1) if greatest else slice(None)
        values, vectors = values[..., order][..., :count], vectors[..., order][..., :count]
    else:
        start = Tensor.randn(*A._ints()[:-1], block, dtype=A.dtype, device=A.device) if X is None else X
        start = start.expand(*A.shape[:-2], m, block)
        accuracy = _accuracy(A) if tol is None else max(_rounding(A), tol)
        values, vectors = _iterated(inner, factor, iK, start, steps, accuracy, greatest)
        values, vectors = values[..., :count], vectors[..., :count]
    if factor is not None:
        vectors = solve_triangular(adjoint(factor), vectors, upper=True)
    return Eigenpairs(values, vectors)


def _accuracy(a: Tensor) -> float:
    return float(2.0 ** (-_bits(a) / 2))


def _rounding(a: Tensor) -> float:
    """What rounding leaves of a residual, as :func:`_iterated` measures it: sums of so many terms are no more exact."""
    return float(4 * a._ints()[-1] ** 0.5 * 2.0 ** -_bits(a))


def _bits(a: Tensor) -> int:
    return 23 if a.dtype.itemsize == 4 else 52


def _between(a: Tensor, factor: Tensor) -> Tensor:
    """The matrix whose eigenvalues are those of A and B = L @ L.T: L^-1 @ A @ L^-T."""
    half = solve_triangular(factor, a, upper=False)
    return adjoint(solve_triangular(factor, adjoint(half), upper=False))


def _iterated(
    a: Tensor, factor: Tensor | None, inverse: Tensor | None, start: Tensor, steps: int, accuracy: float, greatest: bool
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Eigenvalues and vectors as many as there are to begin with, the greatest (or least) first."""
    block, lead = start._ints()[-1], (start if factor is None else adjoint(factor) @ start)
    # of as many columns as in all later steps: their kernels are compiled once; reflections complete the basis
    basis = qr(lead.cat(lead * 0, lead * 0, dim=-1)).Q
    size = (a @ basis).square().sum((-2, -1), keepdim=True).sqrt() / (3 * block) ** 0.5
    values, x = _ritz(a, basis, block, greatest)
    x = x.realize()
    direction = (x * 0).realize()
    for _ in range(steps):
        residual = a @ x - x * values.unsqueeze(-2)
        if not capturing():
            error = residual.square().sum(-2, keepdim=True).sqrt() / (size + values.abs().unsqueeze(-2))
            if error.max().item() < accuracy:
                break
        if inverse is not None:
            residual = inverse @ (residual if factor is None else factor @ residual)
            residual = residual if factor is None else adjoint(factor) @ residual
        residual = residual - x @ (adjoint(x) @ residual)
        residual = residual / residual.square().sum(-2, keepdim=True).sqrt().maximum(1e-30)
        basis = qr(x.cat(residual, direction, dim=-1)).Q
        values, found = _ritz(a, basis, block, greatest)
        direction = found - x @ (adjoint(x) @ found)
        direction = (direction / direction.square().sum(-2, keepdim=True).sqrt().maximum(1e-30)).realize()
        x = found.realize()
    return values, x


def _ritz(a: Tensor, basis: Tensor, block: int, greatest: bool) -> tuple[Tensor, Tensor]:
    """The best pairs whose vectors are sums of those of an orthonormal basis."""
    inner = adjoint(basis) @ (a @ basis)
    values, turned = eigh((inner + adjoint(inner)) * 0.5)
    if greatest:
        values, turned = values.flip(-1), turned.flip(-1)
    return values[..., :block], basis @ turned[..., :block]
