"""Attention of several heads, as PyTorch has it, with its names of weights."""

from __future__ import annotations

from ..array.gradients import in_training
from ..tensor import Tensor
from . import functional
from .initial import parameter
from .layering import layer_class
from .layers import Linear
from .module import Module


def _glorot(*shape: int) -> Tensor:
    return parameter(Tensor.glorot_uniform(*shape))


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
        self.head_dim = embed_dim // num_heads
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            self.out_proj.bias = parameter(Tensor.zeros(embed_dim))
        self.bias_k = _glorot(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = _glorot(1, 1, embed_dim) if add_bias_kv else None

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
        turned = query.ndim == 3 and self.batch_first
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        training = bool(self.dropout) and in_training(self.out_proj.weight, "MultiheadAttention")
        out, weights = functional.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training,
            key_padding_mask, need_weights, attn_mask, self.in_proj_weight is None, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turned else out), weights
