"""Decompositions of matrices as methods, in PyTorch's forms.

Their algorithms are loops over tensors, and stand above the class of tensors, in ``tg_frontend.linalg``.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from tg_dtype import dtypes

from ..array.array import A
from ..array.casts import wide
from .above import Above
from .elementary import sqrt
from .linear import matmul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class QR(NamedTuple, Generic[A]):
    """a = Q @ R."""

    Q: A
    R: A


class SVD(NamedTuple, Generic[A]):
    """a = U @ diag(S) @ V.mH."""

    U: A
    S: A
    V: A


class Slogdet(NamedTuple, Generic[A]):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: A
    logabsdet: A


class Geqrf(NamedTuple, Generic[A]):
    """R and the axes of reflections in one matrix, and the factors of the reflections."""

    a: A
    tau: A


class TriangularSolve(NamedTuple, Generic[A]):
    """The solution, and the matrix."""

    solution: A
    cloned_coefficient: A


def adjoint(x: A) -> A:
    """The last two axes exchanged, and complex elements conjugated: ``mH``.

    Raises:
      ValueError: if there are fewer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).adjoint().tolist()
      [[1], [2]]
    """
    return x.mH


def cholesky(x: A, upper: bool = False) -> A:
    """The lower triangular factor l of symmetric positive definite matrices (…, n, n): x = l @ l.mT.

    A matrix that is not positive definite gives NaN; ``linalg.cholesky_ex`` says which.

    Args:
      upper: return l.mT instead.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky()
      Tensor([[2., 0.],
              [1., 2.]])
    """
    out: A = Above.linalg.cholesky(x, upper=upper)
    return out


def cholesky_inverse(x: A, upper: bool = False) -> A:
    """The inverses of the matrices of which these (…, n, n) are Cholesky's factors.

    Args:
      upper: whether the factors are upper triangles.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cholesky_inverse()
      Tensor([[0.25, 0.  ],
              [0.  , 1.  ]])
    """
    out: A = Above.linalg.cholesky_inverse(x, upper)
    return out


def cholesky_solve(x: A, input2: A, upper: bool = False) -> A:
    """The solution s of a @ s = x, x being (…, n, m), from Cholesky's factor of a.

    Args:
      input2: the factor, shape (…, n, n).
      upper: whether it is an upper triangle.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[4.0], [2.0]]).cholesky_solve(Tensor([[2.0, 0.0], [0.0, 1.0]]))
      Tensor([[1.],
              [2.]])
    """
    out: A = Above.linalg.cholesky_solve(x, input2, upper)
    return out


def det(x: A) -> A:
    """The determinants of square matrices (…, n, n).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 2.0], [1.0, 3.0]]).det()
      Tensor(-2.)
    """
    out: A = Above.linalg.det(x)
    return out


def logdet(x: A) -> A:
    """The logarithms of determinants of (…, n, n): NaN of negative ones, complex of complex ones, minus infinity of 0.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 0.0], [0.0, 1.0]]).logdet()
      Tensor(0.)
    """
    sign, size = Above.linalg.slogdet(x)
    out: A = sign.log() + size if dtypes.is_complex(x.dtype) else (sign < 0).where(float("nan"), size)
    return out


def slogdet(x: A) -> Slogdet[A]:
    """The signs of determinants of (…, n, n), and the logarithms of their magnitudes.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()
      Slogdet(sign=Tensor(-1.), logabsdet=Tensor(0.))
    """
    return Slogdet(*Above.linalg.slogdet(x))


def inverse(x: A) -> A:
    """The inverses of square matrices (…, n, n). A singular one gives infinities or NaN; ``linalg.inv_ex`` says which.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 2.0], [1.0, 0.0]]).inverse()
      Tensor([[0. , 1. ],
              [0.5, 0. ]])
    """
    out: A = Above.linalg.inv(x)
    return out


def pinverse(x: A, rcond: float = 1e-15) -> A:
    """The pseudo-inverses of Moore and Penrose of matrices (…, m, n).

    Args:
      rcond: singular values below it, times the greatest of the matrix, count as 0. PyTorch's default counts few of
        float32; ``linalg.pinv`` has one that follows the dtype.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3.0], [4.0]]).pinverse().round(decimals=4)
      Tensor([[0.12, 0.16]])
    """
    out: A = Above.linalg.pinv(x, rtol=rcond)
    return out


def lu(x: A, pivot: bool = True, get_infos: bool = False) -> tuple[A, ...]:
    """Both triangles of matrices (…, m, n) in one, by elimination with partial pivoting.

    ``linalg.lu`` has the triangles and the permutation each by itself.

    Args:
      pivot: whether rows are exchanged; they always are.
      get_infos: give also for each matrix which pivot is the first that is 0, from 1; 0 if none is.

    Returns:
      The triangles, shape (…, m, n), and with which row (from 1) each row was exchanged in turn, (…, min(m, n)).

    Raises:
      ValueError: if there is no matrix; or rows are not to be exchanged.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0], [2.0, 0.0]]).lu()[1]
      Tensor([2, 2])
    """
    found = Above.linalg.lu_factor_ex(x, pivot=pivot) if get_infos else Above.linalg.lu_factor(x, pivot=pivot)
    return tuple(found)


def lu_solve(x: A, LU_data: A, LU_pivots: A) -> A:
    """The solution s of a @ s = x, x being (…, n, m), from what :meth:`lu` gave for a.

    Args:
      LU_data: shape (…, n, n).
      LU_pivots: shape (…, n), integers.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes do not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[4.0], [3.0]]).lu_solve(*Tensor([[0.0, 2.0], [1.0, 1.0]]).lu())
      Tensor([[1.],
              [2.]])
    """
    out: A = Above.linalg.lu_solve(LU_data, LU_pivots, x)
    return out


def matrix_exp(x: A) -> A:
    """The exponentials of square matrices (…, n, n).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 1.0], [0.0, 0.0]]).matrix_exp()
      Tensor([[1., 1.],
              [0., 1.]])
    """
    out: A = Above.linalg.matrix_exp(x)
    return out


def matrix_power(x: A, n: int) -> A:
    """The n-th power of square matrices (…, k, k); of the inverse for negative ones.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``n`` is no integer, or the matrices are to be inverted and hold no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 1], [0, 1]]).matrix_power(5).tolist()
      [[1, 5], [0, 1]]
    """
    out: A = Above.linalg.matrix_power(x, n)
    return out


def qr(x: A, some: bool = True) -> QR[A]:
    """Orthonormal columns Q and an upper triangle R of matrices (…, m, n): x = Q @ R.

    Args:
      some: give shapes (…, m, k) and (…, k, n), k being the lesser of m and n; else (…, m, m) and (…, m, n).

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3.0], [4.0]]).qr().R.abs()
      Tensor([[5.]])
    """
    return QR(*Above.linalg.qr(x, "reduced" if some else "complete"))


def geqrf(x: A) -> Geqrf[A]:
    """The factors of :meth:`qr` as LAPACK keeps them, for :meth:`orgqr` and :meth:`ormqr`.

    Returns:
      Shape (…, m, n): on and above the diagonal R; below, in column i, the axis v of reflection i, which is
      ``1 - tau[i] * v @ v.mT`` and v being 1 on the diagonal. And ``tau``, shape (…, min(m, n)).

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor
      >>> packed, tau = Tensor([[3.0], [4.0]]).geqrf()
      >>> packed.tolist(), tau.round(decimals=4).tolist()
      ([[-5.0], [0.5]], [1.600000023841858])
    """
    return Geqrf(*Above.linalg.reflections(x))


def orgqr(x: A, input2: A) -> A:
    """The first columns of the product of the reflections that :meth:`geqrf` found.

    Args:
      input2: factors of the reflections, shape (…, k), with k <= n <= m of x's shape (…, m, n).

    Returns:
      Shape (…, m, n).

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0], [1.0]]).orgqr(Tensor([1.0]))
      Tensor([[ 0.],
              [-1.]])
    """
    out: A = Above.linalg.householder_product(x, input2)
    return out


def ormqr(x: A, input2: A, input3: A, left: bool = True, transpose: bool = False) -> A:
    """Matrices times the whole product Q of the reflections that :meth:`geqrf` found.

    Args:
      input2: factors of the reflections, shape (…, k); x has shape (…, q, n), with k <= min(q, n).
      input3: what is multiplied: shape (…, q, p), or (…, p, q) where Q stands on the right.
      left: give Q @ input3, else input3 @ Q.
      transpose: of the transpose of Q.

    Returns:
      The shape of ``input3``.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0], [1.0]]).ormqr(Tensor([1.0]), Tensor([[1.0], [2.0]]))
      Tensor([[-2.],
              [-1.]])
    """
    out: A = Above.linalg.reflected_by(x, input2, input3, left, transpose)
    return out


def triangular_solve(
    x: A, A: A, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve[A]:
    """The solution s of A @ s = x for triangular A, x being (…, n, m), and A itself.

    Args:
      A: shape (…, n, n); what is on the other side of the diagonal is not read.
      upper: whether the triangle is the upper one.
      transpose: solve A.mT @ s = x.
      unitriangular: the diagonal counts as ones, and is not read.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[4.0], [8.0]]).triangular_solve(Tensor([[2.0, 1.0], [0.0, 4.0]])).solution
      Tensor([[1.],
              [2.]])
    """
    matrix = A.mT if transpose else A
    solved = Above.linalg.solve_triangular(matrix, x, upper=upper is not transpose, unitriangular=unitriangular)
    return TriangularSolve(solved, A)


def svd(x: A, some: bool = True, compute_uv: bool = True, *, full_matrices: bool | None = None) -> SVD[A]:
    """Orthonormal columns U and V, and descending singular values S of matrices (…, m, n): x = U @ diag(S) @ V.mH.

    PyTorch's method gives V; ``linalg.svd``, numpy and tinygrad give its transpose, and so does this one if
    ``full_matrices`` is said, which is their word.

    Args:
      some: give shapes (…, m, k) and (…, n, k), k being the lesser of m and n; else (…, m, m) and (…, n, n).
      compute_uv: if False, U and V are zeros of (…, m, m) and (…, n, n), as PyTorch has it.
      full_matrices: the opposite of ``some``; V is transposed then.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128; or both ``some`` and
        ``full_matrices`` are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 2.0], [1.0, 0.0]]).svd().S.round(decimals=4)
      Tensor([2., 1.])
    """
    if not compute_uv:
        s = Above.linalg.svdvals(x)
        like: Any = x  # of complex numbers this is a method of another class
        u, v = (like.new_zeros(*x.shape[:-2], n, n) for n in x.shape[-2:])
        return SVD(u, s, v)
    if full_matrices is not None:
        if not some:
            raise TypeError("svd: some and full_matrices say the same; one of them is wanted")
        return SVD(*Above.linalg.svd(x, full_matrices))
    u, s, vh = Above.linalg.svd(x, not some)
    return SVD(u, s, vh.mH)


def newton_schulz(x: A, steps: int, params: Sequence[float], eps: float = 1.0e-7) -> A:
    """Matrices (…, m, n) whose singular values an odd polynomial was applied to, again and again.

    They are divided by their norm first. With the coefficients of Newton's and Schulz's iteration, (1.5, -0.5),
    singular values go to 1, and the result to the orthogonal factor of the polar decomposition. Source: Higham,
    "Functions of Matrices", 2008, section 8.3.

    Args:
      steps: how often.
      params: coefficients of x, x cubed, x to the fifth, ….
      eps: what is added to the norm.

    Raises:
      ValueError: if there is no matrix, or no coefficient, or fewer than 0 steps.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 2.0], [-1.0, 0.0]]).newton_schulz(12, (1.5, -0.5)).round(decimals=3).abs()
      Tensor([[0., 1.],
              [1., 0.]])
    """
    if x.ndim < 2:
        raise ValueError(f"newton_schulz: shape {x.shape} is no matrix; the last two axes are those of one")
    if not isinstance(steps, int) or steps < 0 or not isinstance(params, (tuple, list)) or not params:
        raise ValueError(f"newton_schulz: a number of steps and one coefficient or more, got {steps!r} and {params!r}")
    return wide(x, lambda x: _polar(x, steps, params, eps))


def _polar(x: A, steps: int, params: Sequence[float], eps: float) -> A:
    m, n = x.shape[-2:]
    tall = isinstance(m, int) and isinstance(n, int) and m > n
    out: A = x / (sqrt((x * x).sum((-2, -1), keepdim=True)) + eps)
    out = out.mT if tall else out
    for _ in range(steps):
        gram = matmul(out, out.mT).contiguous()
        total = out * params[-1]
        for factor in reversed(params[:-1]):  # Horner's scheme
            total = matmul(gram, total) + out * factor
        out = total.contiguous()
    return out.mT if tall else out
