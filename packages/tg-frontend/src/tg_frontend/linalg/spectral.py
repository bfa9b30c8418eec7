"""Eigenvalues of symmetric matrices, and singular values: reductions by reflections, then divide and conquer.

Matrices become tridiagonal or bidiagonal (`condensed.py`), and real if they were complex; these are decomposed
(`divide.py`), and the vectors turned back.
Source: Golub and Van Loan, "Matrix Computations", 4th edition, sections 8.3.1, 8.4 and 8.6.
"""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple, overload

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.traced_once import traced_once
from .compact import multiplied
from .condensed import bidiagonal, real_bidiagonal, real_tridiagonal, tridiagonal
from .divide import singular, symmetric
from .lanes import grouped, in_lanes, singly
from .matrices import adjoint, check_matrix, diagonal_of, extent, flat, mirrored, over_gaps, unflat, without_phase
from .sturm import singular_values, symmetric_values


class Eigh(NamedTuple):
    """a = V @ diag(w) @ V.mH."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """a = U @ diag(S) @ Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _scaled(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Matrices whose elements are 1 at most; what they were divided by; and whether they are finite: (count, 1, 1)."""
    most = extent(a).max((1, 2), keepdim=True)
    finite = a.isfinite().all(2, keepdim=True).all(1, keepdim=True)
    scale = ((most > 0) & finite).where(most, 1)
    return a / scale, scale, finite


@traced_once
def _tridiagonal(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues, in no order, and vectors of tridiagonal matrices, and the axes by which they became such."""
    d, e, axes = tridiagonal(a)
    if not a.is_complex():
        return *symmetric(d, e, vectors), axes
    d, e, turns = real_tridiagonal(d, e)
    values, inner = symmetric(d.contiguous(), e.contiguous(), vectors)
    return values, turns.unsqueeze(2) * inner if vectors else inner, axes


@traced_once
def _bidiagonal(a: Tensor, vectors: bool) -> tuple[Tensor, ...]:
    """Singular values, in no order, and vectors of bidiagonal matrices, and the axes by which they became such."""
    d, e, left, right = bidiagonal(a)
    if not a.is_complex():
        return *singular(d, e, vectors), left, right
    d, e, turns, others = real_bidiagonal(d, e)
    values, u, v = singular(d.contiguous(), e.contiguous(), vectors)
    if vectors:
        u, v = turns.unsqueeze(2) * u, others.unsqueeze(2) * v
    return values, u, v, left, right


def _by_bisection(a: Tensor) -> bool:
    """Whether values alone are found side by side (`sturm.py`): of many small matrices, which are real."""
    return in_lanes(a) and not a.is_complex()


@traced_once
def _values_in_lanes(a: Tensor, is_symmetric: bool) -> Tensor:
    """Ascending eigenvalues of symmetric (count, n, n), or descending singular values of (count, m, n) with m >= n."""
    a, scale, finite = _scaled(mirrored(a) if is_symmetric else a)
    many = grouped(a).contiguous()
    values = symmetric_values(many) if is_symmetric else singular_values(many).flip(1)
    return finite.squeeze(2).where(singly(values, a._ints()[0]) * scale.squeeze(2), nan)


def _eigen(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues (count, n) and, with ``vectors``, eigenvectors (count, n, n) of symmetric (count, n, n).

    Of complex numbers, Hermitian ones are meant here and below.
    """
    count, n, _ = a._ints()
    a, scale, finite = _scaled(a)
    values, inner, axes = _tridiagonal(a, vectors)
    order = values.argsort(1)
    values = finite.squeeze(2).where(values.gather(1, order) * scale.squeeze(2), nan)
    if not vectors:
        return values, inner
    inner = inner.gather(2, order.unsqueeze(1).expand(count, n, n))
    return values, finite.where(multiplied(axes, inner), nan)


class _Eigh(Function):
    """Source of the gradient: Giles, "An extended collection of matrix derivative results", 2008, section 3.1."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = _eigen(mirrored(a), True)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_values, of_vectors = grads
        values, vectors = ctx.saved_tensors
        gaps = values.unsqueeze(1) - values.unsqueeze(2)
        turned = adjoint(vectors) @ of_vectors
        inner = over_gaps(turned, gaps) + of_values.diag_embed()
        into = vectors @ inner @ adjoint(vectors)
        return without_phase(turned, (into + adjoint(into)) / 2)  # of a matrix of which a half is a copy of the other


class _Eigenvalues(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return _values_in_lanes(a, True) if _by_bisection(a) else _eigen(mirrored(a), False)[0]

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        (a,) = ctx.saved_tensors
        _, vectors = _Eigh.apply(a)
        return (vectors * grad.unsqueeze(1)) @ adjoint(vectors)


def _lower_triangle(a: Tensor, uplo: str, what: str) -> Tensor:
    """All matrices (count, n, n), of which the lower triangle is meant.

    Raises:
      ValueError: if they are not square, or there is no such triangle.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.
    """
    check_matrix(a, what, square=True)
    if uplo.upper() not in ("L", "U"):
        raise ValueError(f"{what}: UPLO {uplo!r}; there are L and U")
    return flat(a if uplo.upper() == "L" else adjoint(a))


def eigh(a: Tensor, UPLO: str = "L") -> Eigh:
    """The ascending eigenvalues w and orthonormal eigenvectors V (columns) of symmetric or Hermitian matrices.

    Where eigenvalues are equal, no gradient is known through the eigenvectors (it is NaN or infinite); nor is one that
    depends on the phases of complex vectors, which are arbitrary (it is NaN).

    Args:
      a: shape (…, n, n).
      UPLO: which triangle is read: ``"L"`` or ``"U"``.

    Raises:
      ValueError: if the matrices are not square, or there is no such triangle.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.eigh(Tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(4)
      Tensor([1., 3.])
    """
    many = _lower_triangle(a, UPLO, "eigh")
    if 0 in a._ints():
        return Eigh(a.real.sum(-1), a * 1)
    values, vectors = _Eigh.apply(many)
    return Eigh(values.reshape(a.shape[:-1]), unflat(vectors, a))


def eigvalsh(a: Tensor, UPLO: str = "L") -> Tensor:
    """The ascending eigenvalues of symmetric or Hermitian matrices.

    Args:
      a: shape (…, n, n).
      UPLO: which triangle is read: ``"L"`` or ``"U"``.

    Raises:
      ValueError: if the matrices are not square, or there is no such triangle.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.eigvalsh(Tensor([[2.0, 1.0], [1.0, 2.0]])).round(4)
      Tensor([1., 3.])
    """
    many = _lower_triangle(a, UPLO, "eigvalsh")
    return a.real.sum(-1) if 0 in a._ints() else _Eigenvalues.apply(many).reshape(a.shape[:-1])


def _three(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor, Tensor]:
    """All of U (count, m, m), the singular values (count, n) and V (count, n, n), for m >= n.

    Without ``vectors`` the singular values alone are of use.
    """
    count, m, n = a._ints()
    a, scale, finite = _scaled(a)
    values, u, v, left, right = _bidiagonal(a, vectors)
    order = values.argsort(1, descending=True)
    values = finite.squeeze(2).where(values.gather(1, order) * scale.squeeze(2), nan)
    if not vectors:
        return u, values, v
    u, v = (x.gather(2, order.unsqueeze(1).expand(count, n, n)) for x in (u, v))
    beyond = Tensor.eye(m, dtype=a.dtype, device=a.device)[:, n:].expand(count, m, m - n)
    u = Tensor.cat(u.pad(((0, 0), (0, m - n), (0, 0))), beyond, dim=2)
    return finite.where(multiplied(left, u), nan), values, finite.where(multiplied(right, v), nan)


class _SVD(Function):
    """Source of the gradient: Townsend, "Differentiating the singular value decomposition", 2016."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, values, v = _three(a, True)
        ctx.save_for_backward(u, values, v)
        return u, values, v

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_all, of_values, of_v = grads
        whole, s, v = ctx.saved_tensors
        n, m = s._ints()[1], whole._ints()[1]
        u, of_u = whole[:, :, :n], of_all[:, :, :n]  # the columns beyond are any that complete the basis
        gaps = (s.unsqueeze(1) - s.unsqueeze(2)) * (s.unsqueeze(1) + s.unsqueeze(2))
        in_u, in_v = adjoint(u) @ of_u, adjoint(v) @ of_v
        turned, turned_v = (over_gaps(inside - adjoint(inside), gaps) for inside in (in_u, in_v))
        inner = turned * s.unsqueeze(1) + s.unsqueeze(2) * turned_v + of_values.diag_embed()
        if inner.is_complex():  # where u and v turn by one phase, nothing changes: what is left is that of one of them
            along = diagonal_of(in_u).imag
            none = (s == 0) & (along == 0)
            along = none.where(0, along / none.where(1, s))
            inner = inner + Tensor.complex(along * 0, along).diag_embed()
        into = without_phase(in_u + in_v, u @ inner @ adjoint(v))
        if m > n:
            outside, sizes = of_u - u @ in_u, s.unsqueeze(1)
            nothing = (outside == 0) & (sizes == 0)
            into = into + nothing.where(0, outside / nothing.where(1, sizes)) @ adjoint(v)
        return into


class _SingularValues(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return _values_in_lanes(a, False) if _by_bisection(a) else _three(a, False)[1]

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        (a,) = ctx.saved_tensors
        u, _, v = _SVD.apply(a)
        return (u[:, :, : v._ints()[1]] * grad.unsqueeze(1)) @ adjoint(v)


def _decomposed(a: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """All of U, S and V of the higher of a and its transpose, and whether that is the transpose."""
    many = flat(a)
    wide = many._ints()[1] < many._ints()[2]
    u, s, v = _SVD.apply(adjoint(many) if wide else many)
    return u, s, v, wide


class Mirrored(Function):
    """Of one triangle the whole; the gradient is symmetric, as that of ``eigh`` and ``cholesky`` is."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> Tensor:
        return mirrored(a)

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        return (grad + adjoint(grad)) / 2


@overload
def svd(a: Tensor, full_matrices: bool = True, *, hermitian: bool = False) -> SVD: ...
@overload
def svd(
    a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVD | Tensor: ...
def svd(a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> SVD | Tensor:
    """Orthonormal columns U, descending singular values S, and orthonormal rows Vh with a = U @ diag(S) @ Vh.

    Where singular values are equal, no gradient is known through U and Vh (it is NaN or infinite); nor is one that
    depends on the phases of complex vectors, which are arbitrary (it is NaN).

    Args:
      a: shape (…, m, n).
      full_matrices: U and Vh are square, completed to a basis by any vectors, through which no gradient flows.
      compute_uv: if False, singular values alone are given: see :func:`svdvals`.
      hermitian: whether the matrices are symmetric, of which the lower triangle alone is read then.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.svd(Tensor([[0.0, 2.0], [1.0, 0.0]])).S.round(4)
      Tensor([2., 1.])
    """
    check_matrix(a, "svd", square=hermitian)
    if hermitian:
        a = Mirrored.apply(a)
    if not compute_uv:
        return svdvals(a)
    m, n = a._ints()[-2:]
    if 0 in a._ints():
        lead, least = a._ints()[:-2], min(m, n)
        sides = (m, n) if full_matrices else (least, least)
        u, v = (Tensor.eye(k, side, dtype=a.dtype, device=a.device).expand(*lead, k, side).contiguous()
                for k, side in zip((m, n), sides, strict=True))  # fmt: skip
        return SVD(u, Tensor.zeros(*lead, least, dtype=a.real.dtype, device=a.device), adjoint(v))
    u, s, v, wide = _decomposed(a)
    if not full_matrices:
        u = u[:, :, : min(m, n)]
    left, right = (v, u) if wide else (u, v)
    return SVD(unflat(left, a), s.reshape((*a.shape[:-2], min(m, n))), unflat(adjoint(right), a))


def svdvals(a: Tensor) -> Tensor:
    """The descending singular values.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.svdvals(Tensor([[0.0, 2.0], [1.0, 0.0]])).round(4)
      Tensor([2., 1.])
    """
    check_matrix(a, "svdvals")
    m, n = a._ints()[-2:]
    if 0 in a._ints():
        return Tensor.zeros(*a._ints()[:-2], min(m, n), dtype=a.real.dtype, device=a.device)
    values: Tensor = _SingularValues.apply(flat(a if m >= n else adjoint(a)))
    return values.reshape((*a.shape[:-2], min(m, n)))
