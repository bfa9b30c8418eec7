"""Attention of several heads, as PyTorch has it, with its names of weights."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..tensor import Tensor
from .initial import parameter
from .layering import layer_class
from .layers import Linear
from .module import Module


def _glorot(*shape: int) -> Tensor:
    return parameter(Tensor.glorot_uniform(*shape))


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as what is added to scores: True forbids."""
    if mask.dtype.kind != "bool":
        return mask.cast(like.dtype)
    return mask.where(Tensor(-math.inf, dtype=like.dtype, device=like.device), 0.0)


@layer_class
class MultiheadAttention(Module):
    """softmax(queries @ keys.T / sqrt(width)) @ values in several heads, each of its own projections.

    Args:
      embed_dim: width of queries and of the result.
      num_heads: divides ``embed_dim``.
      dropout: share of weights that are dropped in training.
      bias: whether the projections have biases.
      add_bias_kv: whether a learnt key and value are added to each sequence.
      add_zero_attn: whether a key and value of zeros are added to each sequence.
      kdim: width of keys; ``embed_dim`` if not given.
      vdim: width of values; ``embed_dim`` if not given.
      batch_first: whether inputs have the shape (batch, length, width) and not (length, batch, width).

    Attributes:
      in_proj_weight: shape (3 embed_dim, embed_dim): of queries, keys and values; None where the widths differ.
      q_proj_weight: and ``k_proj_weight``, ``v_proj_weight``: where the widths differ; otherwise None.
      in_proj_bias: shape (3 embed_dim,); or None.
      out_proj: a :class:`Linear` of what the heads give.
      bias_k: and ``bias_v``: shape (1, 1, embed_dim); or None.

    Raises:
      ValueError: if the heads do not divide ``embed_dim``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> x = Tensor.ones(2, 5, 8)
      >>> out, weights = nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
      >>> out.shape, weights.shape
      ((2, 5, 8), (2, 5, 5))
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
    ) -> None:  # fmt: skip
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {num_heads} heads do not divide a width of {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        alike = self.kdim == self.vdim == embed_dim
        self.in_proj_weight = _glorot(3 * embed_dim, embed_dim) if alike else None
        self.q_proj_weight = None if alike else _glorot(embed_dim, embed_dim)
        self.k_proj_weight = None if alike else _glorot(embed_dim, self.kdim)
        self.v_proj_weight = None if alike else _glorot(embed_dim, self.vdim)
        self.in_proj_bias = parameter(Tensor.zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = parameter(Tensor.zeros(embed_dim))
        self.bias_k = _glorot(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = _glorot(1, 1, embed_dim) if add_bias_kv else None

    def _projected(self, inputs: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        if self.in_proj_weight is not None:
            weights = list(self.in_proj_weight.chunk(3))
        else:
            found = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            weights = [weight for weight in found if weight is not None]
        biases = [None] * 3 if self.in_proj_bias is None else list(self.in_proj_bias.chunk(3))
        return [x.linear(w.T, b) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attention of queries to keys; inputs may lack the batch.

        Args:
          query: shape (length, batch, embed_dim), or (batch, length, embed_dim) with ``batch_first``.
          key: shape (keys, batch, kdim), likewise.
          value: shape (keys, batch, vdim), likewise.
          key_padding_mask: shape (batch, keys): True where a key is not attended to; or numbers that are added.
          need_weights: whether the weights are returned.
          attn_mask: shape (length, keys) or (batch * heads, length, keys): likewise.
          average_attn_weights: the mean of the heads' weights; otherwise those of each.
          is_causal: each position attends only to itself and those before.

        Returns:
          The result, of the shape of the queries; and weights of the shape (batch, [heads,] length, keys), or None.

        Raises:
          ValueError: if the shapes do not fit.
        """
        what = "MultiheadAttention"
        inputs = (query, key, value)
        if query.ndim == 2:
            inputs = (query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0))
        elif not self.batch_first and query.ndim == 3:
            inputs = (query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1))
        widths = (self.embed_dim, self.kdim, self.vdim)
        fits = all(x.ndim == 3 and x.shape[2] == width for x, width in zip(inputs, widths, strict=True))
        if not fits or inputs[1].shape[:2] != inputs[2].shape[:2] or inputs[0].shape[0] != inputs[1].shape[0]:
            raise ValueError(f"{what}: shapes {query.shape}, {key.shape}, {value.shape} for widths {widths}")
        batch, length, keys, heads = inputs[0].shape[0], inputs[0].shape[1], inputs[1].shape[1], self.num_heads
        q, k, v = self._projected(inputs)
        forbidden = self._mask(q, batch, length, keys, key_padding_mask, attn_mask, is_causal)
        if self.bias_k is not None and self.bias_v is not None:
            k = k.cat(self.bias_k.expand(batch, 1, self.embed_dim), dim=1)
            v = v.cat(self.bias_v.expand(batch, 1, self.embed_dim), dim=1)
        if self.add_zero_attn:
            k, v = k.pad([None, (0, 1), None]), v.pad([None, (0, 1), None])
        extra = k.shape[1] - keys
        q, k, v = (x.reshape(batch, -1, heads, self.embed_dim // heads).transpose(1, 2) for x in (q, k, v))
        scores = (q * (1 / math.sqrt(self.embed_dim // heads))) @ k.transpose(-2, -1)
        if forbidden is not None:
            scores = scores + forbidden.pad([None, None, None, (0, extra)])
        weights = scores.softmax(-1).dropout(self.dropout)
        out = (weights @ v).transpose(1, 2).reshape(batch, length, self.embed_dim)
        out = self.out_proj(out)
        shown = (weights.mean(1) if average_attn_weights else weights) if need_weights else None
        if query.ndim == 2:
            return out.squeeze(0), None if shown is None else shown.squeeze(0)
        return (out if self.batch_first else out.transpose(0, 1)), shown

    def _mask(
        self, like: Tensor, batch: object, length: object, keys: object, key_padding_mask: Tensor | None,
        attn_mask: Tensor | None, is_causal: bool,
    ) -> Tensor | None:  # fmt: skip
        """What is added to scores, broadcast over (batch, heads, length, keys)."""
        what, heads, found = "MultiheadAttention", self.num_heads, None
        if is_causal and attn_mask is None:
            row, column = (Tensor.arange(int(str(n)), dtype=dtypes.int32, device=like.device) for n in (length, keys))
            attn_mask = column > row.unsqueeze(1)
        if attn_mask is not None:
            each = attn_mask.ndim == 3
            if attn_mask.shape != ((like.shape[0] * heads, length, keys) if each else (length, keys)):
                raise ValueError(f"{what}: attn_mask of shape {attn_mask.shape} for {length} queries, {keys} keys")
            found = _added(attn_mask, like)
            found = found.unflatten(0, (-1, heads)) if each else found.reshape((1, 1, length, keys))
        if key_padding_mask is not None:
            padding = key_padding_mask.unsqueeze(0) if key_padding_mask.ndim == 1 else key_padding_mask
            if padding.shape != (batch, keys):
                raise ValueError(f"{what}: key_padding_mask of shape {key_padding_mask.shape} for {keys} keys")
            hidden = _added(padding, like).reshape((-1, 1, 1, keys))
            found = hidden if found is None else found + hidden
        return found
