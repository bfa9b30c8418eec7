"""Norms of vectors and matrices."""

from __future__ import annotations

from math import inf

from tg_dtype import dtypes

from ..array.casts import wide
from ..host.coerce import to_dtype
from ..tensor import Tensor
from .elimination import inv
from .matrices import check_matrix, square
from .spectral import svdvals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..array.base import DTypeLike

    Axes = int | Sequence[int] | None


def _floats(x: Tensor, dtype: DTypeLike | None, what: str) -> Tensor:
    if x.dtype.kind not in ("float", "complex"):
        raise TypeError(f"{what}: floats or complex numbers are wanted, got a tensor of {x.dtype.name}")
    if dtype is None:
        return x
    kind = to_dtype(dtype)
    if x.is_complex() and not dtypes.is_complex(kind):
        raise TypeError(f"{what}: norms of complex numbers are computed in a complex dtype, not in {kind.name}")
    return x.cast(kind)


def vector_norm(
    x: Tensor, ord: float = 2, dim: Axes = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The norm of vectors: (the sum of abs(x) ** ord) ** (1 / ord).

    Args:
      ord: also infinity and minus infinity, the greatest and the least magnitude; 0 counts what is not 0.
      dim: the axes that are one vector together; all if not given.
      keepdim: whether these stay, of length 1.

    Raises:
      TypeError: if the tensor holds no floats or complex numbers; or complex ones, and the dtype is none of these.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.vector_norm(Tensor([3.0, 4.0]))
      Tensor(5.)
    """
    return wide(_floats(x, dtype, "vector_norm"), lambda x: _vector_norm(x, ord, dim, keepdim))


def _vector_norm(x: Tensor, ord: float, dim: Axes, keepdim: bool) -> Tensor:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    size = x.abs()
    if not axes:
        return (x != 0).cast(size.dtype) if ord == 0 else size
    if ord == inf:
        return size.max(axes, keepdim=keepdim)
    if ord == -inf:
        return size.min(axes, keepdim=keepdim)
    if ord == 0:
        return (x != 0).cast(size.dtype).sum(axes, keepdim=keepdim)
    if ord == 1:
        return size.sum(axes, keepdim=keepdim)
    if ord == 2:
        total = square(x).sum(axes, keepdim=keepdim)
        some = total.detach() != 0
        return some.where(some.where(total, 1).sqrt(), 0)  # through a norm of 0 no gradient flows
    total = (size**ord).sum(axes, keepdim=keepdim)
    return total ** (1 / ord)


def matrix_norm(
    x: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:  # fmt: skip
    """The norm of matrices.

    Args:
      ord: ``"fro"``, the root of the sum of squares; ``"nuc"``, the sum of the singular values; 2 and -2, the greatest
        and the least of them; 1 and -1, the greatest and the least sum of magnitudes of a column; infinity and minus
        infinity, of a row.
      dim: the two axes of the matrices.
      keepdim: whether these stay, of length 1.

    Raises:
      ValueError: if there is no such norm, or not two axes.
      TypeError: if the tensor holds no floats or complex numbers; or complex ones, and the dtype is none of these.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matrix_norm(Tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
      Tensor(6.)
    """
    what = "matrix_norm"
    x = _floats(x, dtype, what)
    if len(dim) != 2 or x.ndim < 2:
        raise ValueError(f"{what}: axes {tuple(dim)} of shape {x.shape}; two are those of a matrix")
    first, second = (x._axis(axis, what) for axis in dim)
    if first == second:
        raise ValueError(f"{what}: axis {first} is given twice")
    if ord == "fro":
        return vector_norm(x, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        s = svdvals(x.movedim((first, second), (-2, -1)))
        out = s.sum(-1) if ord == "nuc" else s.max(-1) if ord == 2 else s.min(-1)
        for axis in sorted((first, second)) if keepdim else ():
            out = out.unsqueeze(axis)
        return out
    if ord not in (1, -1, inf, -inf):
        raise ValueError(f"{what}: ord {ord!r}; there are fro, nuc, 1, 2, infinity, and minus these numbers")
    along, other = (first, second) if ord in (1, -1) else (second, first)
    sums = x.abs().sum(along, keepdim=True)
    both = sums.max(other, keepdim=True) if ord in (1, inf) else sums.min(other, keepdim=True)
    return both if keepdim else both.squeeze(max(first, second)).squeeze(min(first, second))


def norm(
    x: Tensor, ord: float | str | None = None, dim: Axes = None, keepdim: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:  # fmt: skip
    """:func:`vector_norm` along one axis or of everything, :func:`matrix_norm` along two.

    Raises:
      ValueError: if there is no such norm, or ``ord`` is given for a tensor that is neither.
      TypeError: if the tensor holds no floats.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.norm(Tensor([[3.0, 0.0], [0.0, 4.0]]))
      Tensor(5.)
    """
    if ord is None:
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)
    two = x.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2
    if two:
        return matrix_norm(x, ord, (-2, -1) if dim is None or isinstance(dim, int) else dim, keepdim, dtype=dtype)
    if isinstance(ord, str) or (dim is None and x.ndim != 1):
        raise ValueError(f"norm: ord {ord!r} of shape {x.shape} along {dim!r}: a vector or a matrix is wanted")
    return vector_norm(x, ord, dim, keepdim, dtype=dtype)


def cond(a: Tensor, p: float | str | None = None) -> Tensor:
    """The condition of matrices: the greatest by the least singular value, or a norm times that of the inverse.

    Args:
      p: a norm of :func:`matrix_norm`; None and 2 are for singular values, which take matrices that are not square.

    Raises:
      ValueError: if there is no such norm, or the matrices are to be inverted and not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cond(Tensor([[4.0, 0.0], [0.0, 2.0]])).round(4)
      Tensor(2.)
    """
    if p in (None, 2, -2):
        s = svdvals(a)
        return s.min(-1) / s.max(-1) if p == -2 else s.max(-1) / s.min(-1)
    assert p is not None
    check_matrix(a, "cond")
    return matrix_norm(a, p) * matrix_norm(inv(a), p)
