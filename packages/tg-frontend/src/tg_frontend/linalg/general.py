"""Eigenvalues and eigenvectors of general matrices, real or complex."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from .elimination import solve
from .matrices import check_matrix, diagonal_of, numbers, over_gaps
from .schur import many, schur, triangular_vectors

_PHASE = 1e-2
"""As much of a gradient may go along the phases of eigenvectors, which are arbitrary: what PyTorch allows."""


class Eig(NamedTuple):
    """a @ V = V @ diag(w)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _unit(vectors: Tensor) -> Tensor:
    """Columns (count, n, n) of length 1, whose largest element is real and positive."""
    n = vectors._ints()[1]
    size = vectors.abs()
    most = size.max(1, keepdim=True)
    vectors = vectors / most
    first = (size == most).where(numbers(n, size).reshape((-1, 1)), n).min(1, keepdim=True)
    largest = vectors.gather(1, first.minimum(n - 1))
    vectors = vectors * (largest.conj() / largest.abs())
    length = (vectors.real * vectors.real + vectors.imag * vectors.imag).sum(1, keepdim=True).sqrt()
    return vectors / length


def _paired(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Of real matrices: those that are conjugate are made so exactly, and those that have no partner real."""
    place = numbers(values._ints()[1], values.real)
    apart = (values.unsqueeze(1) - values.conj().unsqueeze(2)).abs()  # of [i, j]: of j from the conjugate of i
    nearest = apart.min(2)
    alone = diagonal_of(apart) <= nearest
    other = alone.where(place, apart.argmin(2).cast(dtypes.int32))
    mutual = other.gather(1, other) == place
    single, first = mutual & (other == place), mutual & (place < other)
    partners = values.gather(1, other).conj()
    half = Tensor.complex((values.real + partners.real) * 0.5, (values.imag + partners.imag) * 0.5)
    real = Tensor.complex(values.real, values.imag * 0)
    found = single.where(real, mutual.where(first.where(half, half.gather(1, other).conj()), values))
    columns = vectors.gather(2, other.unsqueeze(1).expand(*vectors.shape)).conj()
    single, second = single.unsqueeze(1), (mutual & (place > other)).unsqueeze(1)
    straight = Tensor.complex(vectors.real, vectors.imag * 0)
    return found, _unit(single.where(straight, second.where(columns, vectors)))


def _solution(a: Tensor, b: Tensor) -> Tensor:
    """The solution of a @ x = b for complex matrices, by real ones of twice the size."""
    n = a._ints()[1]
    rows = Tensor.cat(Tensor.cat(a.real, -a.imag, dim=2), Tensor.cat(a.imag, a.real, dim=2), dim=1)
    x = solve(rows, Tensor.cat(b.real, b.imag, dim=1))
    return Tensor.complex(x[:, :n], x[:, n:])


class _Eig(Function):
    """Source of the gradient: Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of complex-
    valued gradients with application to statistically optimum beamforming", 2017, equation 4.77; less what changes the
    lengths of the vectors, which are 1."""

    @staticmethod
    def forward(ctx: FunctionContext, re: Tensor, im: Tensor, is_real: bool) -> tuple[Tensor, ...]:
        most = re.abs().maximum(im.abs()).max((1, 2), keepdim=True)
        scale = ((most == 0) | (most.isfinite().logical_not())).where(1, most)
        t, z, converged = schur(Tensor.complex(re / scale, im / scale))
        values, vectors = diagonal_of(t), _unit(z @ triangular_vectors(t))
        if is_real:
            values, vectors = _paired(values, vectors)
        good = converged & most.isfinite().reshape((-1,))
        values = good.unsqueeze(1).where(values * scale.squeeze(2), nan)
        vectors = good.reshape((-1, 1, 1)).where(vectors, nan)
        out = values.real * 1, values.imag * 1, vectors.real * 1, vectors.imag * 1
        ctx.save_for_backward(*out)
        return out

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_values, of_vectors = Tensor.complex(*grads[:2]), Tensor.complex(*grads[2:])
        saved = ctx.saved_tensors
        values, vectors = Tensor.complex(*saved[:2]), Tensor.complex(*saved[2:])
        inner = vectors.mH @ of_vectors
        along = diagonal_of(inner)
        told = (along.imag.abs() <= _PHASE * (along.abs() + 1)).all(1).reshape((-1, 1, 1))
        lengths = (vectors.mH @ vectors) * Tensor.complex(along.real, along.real * 0).unsqueeze(1)
        gaps = (values.unsqueeze(1) - values.unsqueeze(2)).conj()
        inner = over_gaps(inner - lengths, gaps) + of_values.diag_embed()
        into = told.where(_solution(vectors.mH, inner @ vectors.mH), nan)
        return into.real, into.imag, None


def eig(a: Tensor) -> Eig:
    """The eigenvalues w, in any order, and eigenvectors V, columns of length 1: a @ V = V @ diag(w).

    Eigenvalues are those of a matrix that differs from ``a`` by a few bits of its norm. Those of a real matrix are
    conjugate in pairs, or real. A vector's largest element is real and positive; as any other phase would be as good, a
    gradient that depends on it is NaN, and where eigenvalues are equal none is known through the vectors. A matrix that
    has not as many independent vectors as columns (a defective one) has vectors that are parallel to within rounding.
    Infinities or NaN in a matrix, and one that does not converge, make all of its results NaN. Source: see the module
    ``schur``.

    Args:
      a: shape (…, n, n), of floats or complex numbers.

    Returns:
      Complex: shapes (…, n) and (…, n, n).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> w, v = linalg.eig(Tensor([[0.0, 1.0], [-1.0, 0.0]]))
      >>> w.real.abs().max().item() < 1e-6, w.imag.abs().round(decimals=4)
      (True, Tensor([1., 1.]))
    """
    is_real = not (isinstance(a, Tensor) and a.is_complex())
    check_matrix(a if is_real else a.real, "eig", square=True)
    lead, n = a._ints()[:-2], a._ints()[-1]
    if 0 in a._ints():
        part = a if is_real else a.real
        return Eig(Tensor.complex(part.sum(-1), part.sum(-1)), Tensor.complex(part * 1, part * 1))
    whole = many(a)
    parts = _Eig.apply(whole.real, whole.imag, is_real)
    values, vectors = Tensor.complex(*parts[:2]), Tensor.complex(*parts[2:])
    return Eig(values.reshape((*lead, n)), vectors.reshape((*lead, n, n)))


def eigvals(a: Tensor) -> Tensor:
    """The eigenvalues of square matrices, in any order: see :func:`eig`.

    Args:
      a: shape (…, n, n), of floats or complex numbers.

    Returns:
      Complex: shape (…, n).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.eigvals(Tensor([[2.0, 1.0], [0.0, 3.0]])).real
      Tensor([2., 3.])
    """
    return eig(a).eigenvalues

