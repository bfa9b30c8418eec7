"""What networks are made of: activations, normalisation, attention."""

from __future__ import annotations

import math

from tg_dtype import sum_acc_dtype
from tg_shape import upper

from ..array.ingest import value_of
from ..array.shapes import broadcast_shape
from ..autograd.functions import Relu, Sigmoid, Softplus
from .convolution import Convolution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class Activation(Convolution):
    """Functions between layers."""

    __slots__ = ()

    def relu(self) -> Self:
        """max(x, 0); the gradient at 0 is 0."""
        return self._apply(Relu())

    def relu6(self) -> Self:
        """x between 0 and 6."""
        return self.relu() - (self - 6).relu()

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x))."""
        return self._floating()._apply(Sigmoid())

    def logsigmoid(self) -> Self:
        """log(sigmoid(x)), accurate where that is tiny."""
        return -(-self).softplus()

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * x + beta between 0 and 1."""
        # the sum is exact near its zero; alpha has been rounded
        line = (self + beta / alpha) * alpha if alpha else self * alpha + beta
        return line.clip(0, 1)

    def hardswish(self) -> Self:
        """x * relu6(x + 3) / 6."""
        return self * (self + 3).relu6() * (1 / 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """x between two bounds."""
        return self.clip(min_val, max_val)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """x, times ``neg_slope`` below 0."""
        x = self._floating()
        return (x < 0).where(x * neg_slope, x)

    def elu(self, alpha: float = 1.0) -> Self:
        """x, and alpha * (exp(x) - 1) below 0."""
        x = self._floating()
        return (x > 0).where(x, x.minimum(0).expm1() * alpha)

    def celu(self, alpha: float = 1.0) -> Self:
        """x, and alpha * (exp(x / alpha) - 1) below 0."""
        x = self._floating()
        return (x > 0).where(x, (x.minimum(0) / alpha).expm1() * alpha)

    def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Self:
        """gamma * elu(x, alpha)."""
        return self.elu(alpha) * gamma

    def gelu(self, approximate: str = "tanh") -> Self:
        """x times the normal distribution function of x.

        Args:
          approximate: ``"tanh"`` for the usual approximation, ``"none"`` for the error function.

        Raises:
          ValueError: it is neither.
        """
        if approximate == "none":
            return self._wide(lambda x: x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1))
        if approximate != "tanh":
            raise ValueError(f"gelu: approximate {approximate!r}; there are 'tanh' and 'none'")
        # (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where tanh is near -1
        return self._wide(lambda x: x * (x * math.sqrt(8 / math.pi) * (x * x * 0.044715 + 1)).sigmoid())

    def quick_gelu(self) -> Self:
        """x * sigmoid(1.702 * x)."""
        return self._wide(lambda x: x * (x * 1.702).sigmoid())

    def silu(self) -> Self:
        """x * sigmoid(x)."""
        return self._wide(lambda x: x * x.sigmoid())

    def swish(self) -> Self:
        """The same as :meth:`silu`."""
        return self.silu()

    def mish(self) -> Self:
        """x * tanh(softplus(x))."""
        return self._wide(lambda x: x * x.softplus().tanh())

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta * x)) / beta, without overflow."""
        if beta == 1:
            return self._floating()._apply(Softplus())
        return self._wide(lambda x: (x * beta)._apply(Softplus()) / beta)

    def softsign(self) -> Self:
        """x / (1 + abs(x))."""
        return self / (self.abs() + 1)


class Neural(Activation):
    """Normalisation and attention."""

    __slots__ = ()

    def layernorm(self, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Self:
        """The tensor less its mean, over its standard deviation (uncorrected), along axes.

        Raises:
          IndexError: an axis is out of range.
        """
        axes = self._axes(axis, "layernorm")
        x = self._floating()
        wide = x.cast(sum_acc_dtype(x.dtype))
        centred = wide - wide.mean(axes, keepdim=True)
        return (centred * ((centred * centred).mean(axes, keepdim=True) + eps).rsqrt()).cast(x.dtype)

    def batchnorm(
        self, weight: Self | None, bias: Self | None, mean: Self, invstd: Self, axis: int | Sequence[int] = 1
    ) -> Self:
        """(x - mean) * weight * invstd + bias, the vectors lying along ``axis``.

        Raises:
          ValueError: a vector does not fit.
          IndexError: an axis is out of range.
        """
        axes = self._axes(axis, "batchnorm")
        shape = tuple(dim if i in axes else 1 for i, dim in enumerate(self.shape))

        def fitted(vector: Self, name: str) -> Self:
            if vector.numel() != math.prod(map(upper, shape)):
                raise ValueError(f"batchnorm: {name} of shape {vector.shape} for axes {axes} of shape {self.shape}")
            return vector.reshape(shape)

        out = self - fitted(mean, "mean")
        if weight is not None:
            out = out * fitted(weight, "weight")
        scale = invstd.reshape(shape) if invstd.ndim <= len(axes) else invstd
        out = out * scale
        return out if bias is None else out + fitted(bias, "bias")

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
        scale: float | None = None,
    ) -> Self:
        """softmax(query @ key.T * scale + mask) @ value, this tensor being the query.

        Args:
          key: shape (…, heads, S, E) for a query of (…, heads, L, E).
          value: shape (…, heads, S, V).
          attn_mask: broadcasts to (…, heads, L, S): added, or, of bools, what may be attended to.
          dropout_p: share of weights that are dropped in training.
          is_causal: each position attends only to itself and those before; excludes ``attn_mask``.
          enable_gqa: key and value may have fewer heads, each for several query heads.
          scale: 1 / sqrt(E) if not given.

        Returns:
          shape (…, heads, L, V).

        Raises:
          ValueError: the shapes do not fit, or both a mask and ``is_causal`` are given.
        """
        what = "scaled_dot_product_attention"
        query, shapes = self, f"query {self.shape}, key {key.shape}, value {value.shape}"
        flat = min(query.ndim, key.ndim, value.ndim) < 2
        if flat or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
            raise ValueError(f"{what}: {shapes}: query and key share the last axis, key and value the one before")
        if enable_gqa:
            flat = min(query.ndim, key.ndim, value.ndim) < 3
            if flat or query.shape[-3] % key.shape[-3] != 0 or key.shape[-3] != value.shape[-3]:
                raise ValueError(f"{what}: {shapes}: the heads of the query must divide by those of key and value")
            times = value_of(query.shape[-3], query.shape) // value_of(key.shape[-3], key.shape)
            key, value = key.repeat_interleave(times, dim=-3), value.repeat_interleave(times, dim=-3)
        factor = 1 / math.sqrt(value_of(query.shape[-1], query.shape)) if scale is None else scale
        scores = query.dot(key.transpose(-2, -1), dtype=sum_acc_dtype(query.dtype)) * factor
        if is_causal:
            if attn_mask is not None:
                raise ValueError(f"{what}: give attn_mask or is_causal, not both")
            row, column = scores._counter(scores.ndim - 2), scores._counter(scores.ndim - 1)
            scores = (column <= row).where(scores, -math.inf)
        elif attn_mask is not None:
            if broadcast_shape(what, attn_mask.shape, scores.shape) != scores.shape:
                raise ValueError(f"{what}: a mask of shape {attn_mask.shape} for scores of shape {scores.shape}")
            if attn_mask.dtype.kind == "bool":
                scores = attn_mask.where(scores, -math.inf)
            else:
                scores = scores + attn_mask.cast(scores.dtype)
        weights = scores.softmax(-1).cast(query.dtype)
        return weights._dropped(dropout_p).dot(value)

    def _dropped(self, p: float) -> Self:
        if p != 0.0 and type(self).training:
            raise TypeError(f"dropout needs random numbers, which {type(self).__name__} has not")
        return self
