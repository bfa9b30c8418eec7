"""What all decompositions share: what a matrix is, and many of them at once."""

from __future__ import annotations

from math import nan, prod

from tg_dtype import DType, dtypes

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

REAL = (dtypes.float32, dtypes.float64)
KINDS = (*REAL, dtypes.complex64, dtypes.complex128)
"""Of these dtypes matrices are decomposed, as LAPACK has it."""
_PHASE = 1e-2
"""As much of a gradient may go along the phases of vectors, which are arbitrary: what PyTorch allows."""
BLOCK = 32
"""Reflections that are done one after the other before all others follow by a product of matrices."""
WIDTHS = (64, 16)
"""Rows or columns of LU, of Cholesky's factor and of triangular systems that are done by themselves before all others
follow by a product, from the outside to the inside: 16 of 512 elements fit into the nearest cache, and products of 64
columns take longer than reading and writing what they are subtracted from."""


def narrower(widths: Sequence[int], n: int) -> Sequence[int]:
    """Those of some widths that n rows or columns are divided by: at least three times, as two blocks win nothing."""
    return [width for width in widths if n > 2 * width]


class LinAlgError(ValueError, RuntimeError):
    """A matrix that a decomposition failed for, where that is checked: numpy's and PyTorch's error of this name.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.inv_ex(Tensor([[0.0, 0.0], [0.0, 1.0]]), check_errors=True)
      Traceback (most recent call last):
      tg_frontend.linalg.matrices.LinAlgError: linalg.inv_ex: a matrix is singular: 0 is the pivot number 1
    """


def check_matrix(x: Tensor, what: str, square: bool = False, kinds: Sequence[DType] = KINDS) -> None:
    """Sees to it that the last two axes are those of a matrix of floats or complex numbers.

    Raises:
      ValueError: if there are fewer axes, or the matrix is to be square and is not.
      TypeError: if it holds anything else than what is in ``kinds``.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{what}: a tensor is wanted, got a {type(x).__name__}")
    if x.ndim < 2:
        raise ValueError(f"{what}: a tensor of shape {x.shape} is no matrix; the last two axes are those of one")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{what}: matrices of shape {x.shape[-2:]} are not square")
    if x.dtype not in kinds:
        *names, last = (kind.name for kind in kinds)
        raise TypeError(f"{what}: matrices of {x.dtype.name}; {', '.join(names)} and {last} are decomposed")


def flat(x: Tensor) -> Tensor:
    """All matrices along one axis: shape (…, m, n) gives (count, m, n)."""
    shape = x._ints()
    return x.reshape((prod(shape[:-2]), *shape[-2:]))


def unflat(x: Tensor, like: Tensor) -> Tensor:
    """The leading axes of ``like`` in the place of the first."""
    return x.reshape((*like.shape[:-2], *x.shape[1:]))


def eye(n: int, like: Tensor) -> Tensor:
    """The identity, as ``like`` in dtype and device."""
    return Tensor.eye(n, dtype=like.dtype, device=like.device)


def adjoint(x: Tensor) -> Tensor:
    """The transposes, with complex elements conjugated."""
    return x.transpose(-2, -1).conj()


def numbers(n: int, like: Tensor) -> Tensor:
    """0 to n - 1, on the device of ``like``."""
    return Tensor.arange(n, dtype=dtypes.int32, device=like.device)


def epsilon(x: Tensor) -> float:
    """The distance from 1 to the next number of the tensor's floats."""
    return 2.0**-52 if x.real.dtype is dtypes.float64 else 2.0**-23


def square(x: Tensor) -> Tensor:
    """The squares of the magnitudes."""
    return x.real * x.real + x.imag * x.imag if x.is_complex() else x * x


def phase(x: Tensor) -> Tensor:
    """Complex numbers over their magnitudes; of 0 it is 1."""
    size = extent(x)
    nothing = size == 0
    # the magnitudes of the smallest floats have few bits
    return (nothing.where(1, x) / nothing.where(1, size)).sgn()


def extent(x: Tensor) -> Tensor:
    """The magnitudes, of complex elements that of the greater part: a float in any case."""
    return x.real.abs().maximum(x.imag.abs()) if x.is_complex() else x.abs()


def mirrored(a: Tensor) -> Tensor:
    """Symmetric or Hermitian matrices (…, n, n), of which the lower triangle is given: of the diagonal what is real."""
    both = lower(a) + adjoint(lower(a, -1))
    if not a.is_complex():
        return both
    place = numbers(a._ints()[-1], a)
    return Tensor.complex(both.real, (place == place.reshape((-1, 1))).where(0, both.imag))


def without_phase(inner: Tensor, into: Tensor) -> Tensor:
    """A gradient, or NaN where it depends on the phases of complex vectors, which are arbitrary.

    Args:
      inner: products of the vectors and the gradients at them, (count, n, n).
      into: the gradient, (count, m, n).
    """
    if not inner.is_complex():
        return into
    along = diagonal_of(inner)
    told = (along.imag.abs() <= _PHASE * (along.abs() + 1)).all(1)
    return told.reshape((-1, 1, 1)).where(into, nan)


def column(x: Tensor, k: Tensor) -> Tensor:
    """Column ``k`` of each of (count, m, n): shape (count, m)."""
    return x.index_select(2, k.reshape((1,))).squeeze(2)


def row(x: Tensor, k: Tensor) -> Tensor:
    """Row ``k`` of each of (count, m, n): shape (count, n)."""
    return x.index_select(1, k.reshape((1,))).squeeze(1)


def diagonal_of(x: Tensor) -> Tensor:
    """The diagonals: shape (…, m, n) gives (…, min(m, n))."""
    return x.diagonal(0, -2, -1)


def lower(x: Tensor, diagonal: int = 0) -> Tensor:
    """What is on and below a diagonal; zeros elsewhere, whatever is there."""
    m, n = x._ints()[-2:]
    return (numbers(m, x).reshape((-1, 1)) + diagonal >= numbers(n, x)).where(x, 0)


def upper(x: Tensor, diagonal: int = 0) -> Tensor:
    """What is on and above a diagonal; zeros elsewhere, whatever is there."""
    m, n = x._ints()[-2:]
    return (numbers(m, x).reshape((-1, 1)) + diagonal <= numbers(n, x)).where(x, 0)


def over_gaps(x: Tensor, gaps: Tensor) -> Tensor:
    """x / gaps off the diagonal, 0 on it, and 0 where there is neither x nor a gap: all are (count, n, n)."""
    place = numbers(x._ints()[1], gaps)
    nothing = (place == place.reshape((-1, 1))) | ((x == 0) & (gaps == 0))
    return nothing.where(0, x / nothing.where(1, gaps))


def bordered(a: Tensor, n: int) -> Tensor:
    """Square (count, k, k) with the identity for what is missing of (count, n, n)."""
    k = a._ints()[1]
    more = (numbers(n, a) >= k).where(eye(n, a), 0)
    return a.pad(((0, 0), (0, n - k), (0, n - k))) + more
