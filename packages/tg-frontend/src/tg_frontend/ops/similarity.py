"""Lengths of vectors, distances and angles between them."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_shape import prod

from ..array.array import A
from ..array.axes import axes_of, kept
from ..array.casts import floating, negatable, wide
from ..array.operands import as_tensor, pair
from .above import Above
from .elementary import sqrt
from .indexing import __getitem__ as at_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Axes = int | Sequence[int] | None


def norm_along(x: A, p: float, axis: int, keepdim: bool = False) -> A:
    """The p-norm along an axis, with powers of 32 bits at least; its gradient where the norm is 0 is 0."""
    return wide(x, lambda x: _norm_along(x, p, axis, keepdim))


def _norm_along(x: A, p: float, axis: int, keepdim: bool) -> A:
    size = x.abs()
    if math.isinf(p):
        return size.max(axis, keepdim) if p > 0 else size.min(axis, keepdim)
    if p == 0:
        return size.ne(0).where(1, size).sum(axis, keepdim)  # whose gradient is 0, as that of a size at 0 is
    if p == 1:
        return size.sum(axis, keepdim)
    total = (x * x if p == 2 else size.pow(p)).sum(axis, keepdim)
    flat = total.detach().eq(0)
    whole = flat.where(1, total)
    return flat.where(0, sqrt(whole) if p == 2 else whole.pow(1 / p))


def norm(x: A, p: float | str | None = 2, axis: Axes = None, keepdim: bool = False) -> A:
    """The p-norm of elements: the p-th root of the sum of the p-th powers of their sizes.

    Args:
      p: a number, infinite ones included; 0 counts what is not 0; ``"fro"`` is 2; ``"nuc"`` is the sum of the
        singular values of matrices.
      axis: over which axes; all, if it is not given.

    Raises:
      ValueError: if there is no such norm, or the sum of singular values is wanted of other than two axes.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3.0, 4.0], [6.0, 8.0]]).norm(axis=1)
      Tensor([ 5., 10.])
    """
    if p is None or p == "fro":
        p = 2
    if p == "nuc":
        return nuclear_norm(floating(x), axis, keepdim)
    axes = axes_of(x, axis, "norm")
    others = tuple(i for i in range(x.ndim) if i not in axes)
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ValueError(f"norm: {p!r} is no norm of elements; it is a number, 'fro' or 'nuc'")
    flat = floating(x).permute(*others, *axes).reshape((*(x.shape[i] for i in others), prod(x.shape[i] for i in axes)))
    found = norm_along(flat, p, len(others)).reshape(tuple(1 if i in axes else d for i, d in enumerate(x.shape)))
    return kept(found, axes, keepdim)


def nuclear_norm(x: A, axis: Axes, keepdim: bool) -> A:
    """The sum of the singular values of matrices, of floats or of complex numbers.

    Raises:
      ValueError: if it is not of two axes.
    """
    axes = axes_of(x, axis, "norm")
    if len(axes) != 2:
        raise ValueError(f"norm: 'nuc' of shape {x.shape} along {axis!r}; the two axes of matrices are wanted")
    values: A = Above.linalg.svdvals(x.permute(*(i for i in range(x.ndim) if i not in axes), *axes))
    total = values.sum(-1)
    return total.reshape(tuple(1 if i in axes else d for i, d in enumerate(x.shape))) if keepdim else total


def renorm(x: A, p: float, dim: int, maxnorm: float) -> A:
    """Slices along an axis, of which those of a greater p-norm are scaled down to ``maxnorm``.

    Raises:
      ValueError: if the power or the greatest norm is not positive, or there are fewer than two axes.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3.0, 4.0], [0.0, 0.5]]).renorm(2, 0, 1.0).round(4)
      Tensor([[0.6, 0.8],
              [0. , 0.5]])
    """
    if not p > 0 or not maxnorm >= 0 or x.ndim < 2:
        raise ValueError(f"renorm: the {p}-norm to at most {maxnorm} of slices of shape {x.shape}")
    axis = x._axis(dim, "renorm")
    length = norm(x, p, tuple(i for i in range(x.ndim) if i != axis), keepdim=True)
    return (length > maxnorm).where(x * (maxnorm / (length + 1e-7)), x)


def pdist(x: A, p: float = 2.0) -> A:
    """The p-norm distance of each row from each later one: (n, k) gives n * (n - 1) / 2.

    Raises:
      ValueError: if it is no matrix, or p is negative or NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).pdist().round(3)
      Tensor([5.   , 1.   , 4.243])
    """
    if x.ndim != 2 or not isinstance(x.shape[0], int):
        raise ValueError(f"pdist: a matrix is wanted, got shape {x.shape}")
    if not p >= 0:
        raise ValueError(f"pdist: the norm is one of 0 or more, got p={p}")
    n = x.shape[0]
    if n < 2:
        return norm_along(x.shrink([(0, 0), None]), p, 1)
    # rows of all pairs lie one after the other in memory, whereas the two of each later pair are read from anywhere
    later = [place for i in range(n) for place in range(i * n + i + 1, i * n + n)]
    return at_index(cdist(x, x, p).flatten(), type(x)(later, device=x.device, dtype=dtypes.int32))


def cosine_similarity(x: A, other: A, dim: int = 1, eps: float = 1e-8) -> A:
    """The cosine of the angle between vectors along an axis; norms are taken as at least ``eps``.

    Raises:
      ValueError: if the shapes do not broadcast.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 0.0]]).cosine_similarity(Tensor([[1.0, 1.0]])).round(4)
      Tensor([0.7071])
    """
    a, b = pair(x, other, "cosine_similarity")
    axis = a._axis(dim, "cosine_similarity")
    return wide(a, lambda a, b: _cosine(a, b, axis, eps), b)


def _cosine(a: A, b: A, axis: int, eps: float) -> A:
    one, two = (norm_along(t, 2, axis, keepdim=True).maximum(eps) for t in (a, b))
    product: A = (a / one) * (b / two)
    return product.sum(axis)


def pairwise_distance(x: A, other: A, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> A:
    """The p-norm of x - other + eps along the last axis.

    Raises:
      ValueError: if the shapes do not broadcast.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0]]).pairwise_distance(Tensor([[3.0, 4.0]])).round(3)
      Tensor([5.])
    """
    a, b = pair(x, other, "pairwise_distance")
    return norm_along(negatable(a) - negatable(b) + eps, p, a.ndim - 1, keepdim)


def cdist(x: A, other: A, p: float = 2.0, compute_mode: str | None = None) -> A:
    """The p-norm distance of each row of x from each row of other: (…, m, k) and (…, n, k) give (…, m, n).

    Args:
      p: which norm; of 0, how many elements differ.
      compute_mode: says nothing: there is one way to compute it here.

    Raises:
      ValueError: if the rows are of different lengths, there are no rows, or p is negative or NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]]))
      Tensor([[5., 1.]])
    """
    b = as_tensor(x, other, "cdist")
    if x.ndim < 2 or b.ndim < 2 or x.shape[-1] != b.shape[-1]:
        raise ValueError(f"cdist: rows of shapes {x.shape} and {b.shape}: matrices with rows of one length are wanted")
    if not p >= 0:
        raise ValueError(f"cdist: the norm is one of 0 or more, got p={p}")
    apart = negatable(x).unsqueeze(-2) - negatable(b).unsqueeze(-3)
    return norm_along(apart, p, apart.ndim - 1)


def dist(x: A, other: Any, p: float = 2.0) -> A:
    """The p-norm of all elements of x - other.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.0]).dist(Tensor([3.0, 4.0]))
      Tensor(5.)
    """
    number = isinstance(other, (bool, int, float))
    apart: A = negatable(x) - (other if number else negatable(as_tensor(x, other, "dist")))
    return norm_along(apart.flatten(), p, 0)
