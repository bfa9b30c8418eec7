"""Normalisation along axes."""

from __future__ import annotations

import math

from tg_dtype import sum_acc_dtype
from tg_shape import upper

from ..array.array import A
from ..array.axes import axes_of
from ..array.casts import floating, wide
from .elementary import rsqrt
from .similarity import norm_along

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def layernorm(x: A, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> A:
    """The tensor less its mean, over its standard deviation (uncorrected), along axes.

    Raises:
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 3.0], [2.0, 6.0]]).layernorm().round(3)
      Tensor([[-1.,  1.],
              [-1.,  1.]])
    """
    axes = axes_of(x, axis, "layernorm")
    x = floating(x)
    wide = x.cast(sum_acc_dtype(x.dtype))
    centred = wide - wide.mean(axes, keepdim=True)
    return (centred * rsqrt((centred * centred).mean(axes, keepdim=True) + eps)).cast(x.dtype)


def batchnorm(
    x: A, weight: A | None, bias: A | None, mean: A, invstd: A, axis: int | Sequence[int] = 1
) -> A:
    """(x - mean) * weight * invstd + bias, the vectors lying along ``axis``.

    Raises:
      ValueError: if a vector does not fit.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 10.0], [3.0, 30.0]])
      >>> mean, deviation = x.mean(0), x.std(0, correction=0)
      >>> x.batchnorm(None, None, mean, 1 / deviation).round(4)
      Tensor([[-1., -1.],
              [ 1.,  1.]])
    """
    axes = axes_of(x, axis, "batchnorm")
    shape = tuple(dim if i in axes else 1 for i, dim in enumerate(x.shape))

    def fitted(vector: A, name: str) -> A:
        if vector.numel() != math.prod(map(upper, shape)):
            raise ValueError(f"batchnorm: {name} of shape {vector.shape} for axes {axes} of shape {x.shape}")
        return vector.reshape(shape)

    out = x - fitted(mean, "mean")
    if weight is not None:
        out = out * fitted(weight, "weight")
    scale = invstd.reshape(shape) if invstd.ndim <= len(axes) else invstd
    out = out * scale
    return out if bias is None else out + fitted(bias, "bias")


def normalize(x: A, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> A:
    """The tensor divided by its p-norm along an axis, or by ``eps`` where that is greater.

    The norm for ``p=0`` is the number of elements that are not 0; through it no gradient flows. For infinity it
    is the greatest absolute value, for minus infinity the least. Through a norm of 0 no gradient flows.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[3.0, 4.0]]).normalize().round(4)
      Tensor([[0.6, 0.8]])
    """
    axis = x._axis(dim, "normalize")
    return wide(x, lambda x: x / norm_along(x, p, axis, keepdim=True).maximum(eps))
