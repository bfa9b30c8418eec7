"""Eigenvalues and eigenvectors of general matrices, real or complex."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.traced_once import traced_once
from .elimination import solve
from .francis import blocks_of_two, condensed, whole_blocks
from .matrices import adjoint, check_matrix, diagonal_of, flat, numbers, over_gaps, without_phase
from .pairs import paired, triangular
from .schur import schur
from .vectors import triangular_vectors


class Eig(NamedTuple):
    """a @ V = V @ diag(w)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _turned(vectors: Tensor) -> Tensor:
    """Columns (count, n, n) whose largest element is 1."""
    n = vectors._ints()[1]
    size = vectors.abs()
    most = size.max(1, keepdim=True)
    vectors = vectors / most
    first = (size == most).where(numbers(n, size).reshape((-1, 1)), n).min(1, keepdim=True)
    largest = vectors.gather(1, first.minimum(n - 1))
    return vectors * (largest.conj() / largest.abs())


def _unit(vectors: Tensor) -> Tensor:
    """Columns (count, n, n) of length 1, of such whose largest element is 1."""
    length = (vectors.real * vectors.real + vectors.imag * vectors.imag).sum(1, keepdim=True).sqrt()
    return vectors / length


@traced_once
def _decomposed(re: Tensor, im: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues (count, n), and vectors of length 1, of matrices whose elements are 1 at most; which converged.

    There may be more than n of them: see :func:`whole_blocks`.
    """
    if im is not None:
        t, z, converged = schur(Tensor.complex(re, im))
        turned = z @ Tensor.complex(*triangular_vectors(t.real, t.imag))
        return diagonal_of(t), _unit(_turned(turned)), converged
    h, z, begins = condensed(whole_blocks(re), True)
    values, t, turns = triangular(h, begins)
    inner = turns.applied(Tensor.complex(*triangular_vectors(t.real, t.imag)))
    back = adjoint(z).contiguous()
    # products end here: what follows them would be written out for each of their tiles
    vectors = Tensor.complex(*((back @ part.contiguous()).contiguous() for part in (inner.real, inner.imag)))
    return values, _unit(paired(_turned(vectors), turns.second, values)), blocks_of_two(begins)


@traced_once
def _values(re: Tensor, im: Tensor | None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (count, n) of matrices whose elements are 1 at most, and maybe more; which converged."""
    if im is not None:
        t, _, converged = schur(Tensor.complex(re, im))
        return diagonal_of(t), converged
    h, _, begins = condensed(whole_blocks(re), False)
    return triangular(h, begins)[0], blocks_of_two(begins)


class _Eig(Function):
    """Source of the gradient: Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of complex-
    valued gradients with application to statistically optimum beamforming", 2017, equation 4.77; less what changes the
    lengths of the vectors, which are 1."""

    @staticmethod
    def forward(ctx: FunctionContext, re: Tensor, im: Tensor | None) -> tuple[Tensor, ...]:
        n = re._ints()[1]
        re, im, scale, finite = _scaled(re, im)
        values, vectors, converged = _decomposed(re, im)
        values, vectors = values[:, :n], vectors[:, :n, :n]
        good = converged & finite
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
        along, turned = diagonal_of(inner), inner
        lengths = (vectors.mH @ vectors) * Tensor.complex(along.real, along.real * 0).unsqueeze(1)
        gaps = (values.unsqueeze(1) - values.unsqueeze(2)).conj()
        inner = over_gaps(inner - lengths, gaps) + of_values.diag_embed()
        into = without_phase(turned, solve(vectors.mH, inner @ vectors.mH))
        return into.real, into.imag


class _Eigenvalues(Function):
    @staticmethod
    def forward(ctx: FunctionContext, re: Tensor, im: Tensor | None) -> tuple[Tensor, ...]:
        ctx.save_for_backward(*((re,) if im is None else (re, im)))
        re, im, scale, finite = _scaled(re, im)
        values, converged = _values(re, im)
        values = values[:, : re._ints()[1]]
        values = (converged & finite).unsqueeze(1).where(values * scale.squeeze(2), nan)
        out = values.real * 1, values.imag * 1
        ctx.save_for_backward(*ctx.saved_tensors, *out)
        return out

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        *given, re, im = ctx.saved_tensors
        found = _Eig.apply(*given, *([None] * (2 - len(given))))
        # the same values, which rounding may have put in another order
        same = _ranks(re, im).unsqueeze(1) == _ranks(*found[:2]).unsqueeze(2)
        into = (same.where(grad.unsqueeze(1), 0).sum(2) for grad in grads)
        vectors = Tensor.complex(*found[2:])
        back = solve(vectors.mH, Tensor.complex(*into).diag_embed() @ vectors.mH)
        return back.real, back.imag


def _ranks(re: Tensor, im: Tensor) -> Tensor:
    """How many values come before each of (count, n) in order of real, then of imaginary parts."""
    place = numbers(re._ints()[1], re)
    mine, its, upward, its_upward = re.unsqueeze(2), re.unsqueeze(1), im.unsqueeze(2), im.unsqueeze(1)
    before = (its_upward < upward) | ((its_upward == upward) & (place < place.reshape((-1, 1))))
    return ((its < mine) | ((its == mine) & before)).cast(dtypes.int32).sum(2)


def _scaled(re: Tensor, im: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Matrices whose elements are 1 at most; by what they were divided, (count, 1, 1); which are finite."""
    most = (re.abs() if im is None else re.abs().maximum(im.abs())).max((1, 2), keepdim=True)
    scale = ((most == 0) | (most.isfinite().logical_not())).where(1, most)
    return re / scale, None if im is None else im / scale, scale, most.isfinite().reshape((-1,))


def _checked(a: Tensor, what: str) -> tuple[tuple[int, ...], int]:
    """The leading axes, and the size of the matrices."""
    check_matrix(a, what, square=True)
    return a._ints()[:-2], a._ints()[-1]


def _parts(a: Tensor) -> tuple[Tensor, Tensor | None]:
    """All matrices along one axis: their real parts, and their imaginary ones if they are complex."""
    return (flat(a.real), flat(a.imag)) if a.is_complex() else (flat(a), None)


def eig(a: Tensor) -> Eig:
    """The eigenvalues w, in any order, and eigenvectors V, columns of length 1: a @ V = V @ diag(w).

    Eigenvalues are those of a matrix that differs from ``a`` by a few bits of its norm. Those of a real matrix are
    conjugate in pairs, or real. A vector's largest element is real and positive; as any other phase would be as good, a
    gradient that depends on it is NaN, and where eigenvalues are equal none is known through the vectors. A matrix that
    has not as many independent vectors as columns (a defective one) has vectors that are parallel to within rounding.
    Infinities or NaN in a matrix, and one that does not converge, make all of its results NaN. Sources: see the modules
    ``francis`` and ``schur``.

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
    lead, n = _checked(a, "eig")
    if 0 in a._ints():
        part = a.real if a.is_complex() else a
        return Eig(Tensor.complex(part.sum(-1), part.sum(-1)), Tensor.complex(part * 1, part * 1))
    parts = _Eig.apply(*_parts(a))
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
    lead, n = _checked(a, "eigvals")
    if 0 in a._ints():
        return eig(a).eigenvalues
    values: Tensor = Tensor.complex(*_Eigenvalues.apply(*_parts(a))).reshape((*lead, n))
    return values

