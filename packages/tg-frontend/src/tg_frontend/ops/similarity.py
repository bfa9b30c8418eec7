"""Distances and angles between vectors."""

from __future__ import annotations

import math

from ..array.array import A
from ..array.casts import wide
from ..array.operands import as_tensor, pair
from .elementary import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def norm_along(x: A, p: float, axis: int, keepdim: bool = False) -> A:
    """The p-norm along an axis, with powers of 32 bits at least; its gradient where the norm is 0 is 0."""
    return wide(x, lambda x: _norm_along(x, p, axis, keepdim))


def _norm_along(x: A, p: float, axis: int, keepdim: bool) -> A:
    size = x.abs()
    if math.isinf(p):
        return size.max(axis, keepdim) if p > 0 else size.min(axis, keepdim)
    if p == 0:
        return size.ne(0).cast(x.dtype).sum(axis, keepdim)
    if p == 1:
        return size.sum(axis, keepdim)
    total = (x * x if p == 2 else size.pow(p)).sum(axis, keepdim)
    flat = total.detach().eq(0)
    whole = flat.where(1, total)
    return flat.where(0, sqrt(whole) if p == 2 else whole.pow(1 / p))


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
    return norm_along(a - b + eps, p, a.ndim - 1, keepdim)


def cdist(x: A, other: A, p: float = 2.0) -> A:
    """The p-norm distance of each row of x from each row of other: (…, m, k) and (…, n, k) give (…, m, n).

    Raises:
      ValueError: if the rows are of different lengths, or there are no rows.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]]))
      Tensor([[5., 1.]])
    """
    b = as_tensor(x, other, "cdist")
    if x.ndim < 2 or b.ndim < 2 or x.shape[-1] != b.shape[-1]:
        raise ValueError(f"cdist: rows of shapes {x.shape} and {b.shape}: matrices with rows of one length are wanted")
    apart = x.unsqueeze(-2) - b.unsqueeze(-3)
    return norm_along(apart, p, apart.ndim - 1)


def dist(x: A, other: Any, p: float = 2.0) -> A:
    """The p-norm of all elements of x - other.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.0]).dist(Tensor([3.0, 4.0]))
      Tensor(5.)
    """
    apart: A = x - other
    return norm_along(apart.flatten(), p, 0)
