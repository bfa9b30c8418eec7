"""Attention of several heads with its projections."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ...tensor import Tensor

Result = tuple[Tensor, Tensor | None]


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as what is added to scores: True forbids."""
    if mask.dtype.kind != "bool":
        return mask.cast(like.dtype)
    return mask.where(Tensor(-math.inf, dtype=like.dtype, device=like.device), 0.0)


def _mask(
    like: Tensor, heads: int, keys: object, key_padding_mask: Tensor | None, attn_mask: Tensor | None,
    is_causal: bool, what: str,
) -> Tensor | None:  # fmt: skip
    """What is added to scores, broadcast over (batch, heads, length, keys)."""
    batch, length, found = like.shape[0], like.shape[1], None
    if is_causal and attn_mask is None:
        row, column = (Tensor.arange(int(str(n)), dtype=dtypes.int32, device=like.device) for n in (length, keys))
        attn_mask = column > row.unsqueeze(1)
    if attn_mask is not None:
        each = attn_mask.ndim == 3
        if attn_mask.shape != ((batch * heads, length, keys) if each else (length, keys)):
            raise ValueError(f"{what}: attn_mask of shape {attn_mask.shape} for {length} queries, {keys} keys")
        found = _added(attn_mask, like)
        found = found.unflatten(0, (batch, heads)) if each else found.reshape((1, 1, length, keys))
    if key_padding_mask is not None:
        padding = key_padding_mask.unsqueeze(0) if key_padding_mask.ndim == 1 else key_padding_mask
        if padding.shape != (batch, keys):
            raise ValueError(f"{what}: key_padding_mask of shape {key_padding_mask.shape} for {keys} keys")
        hidden = _added(padding, like).reshape((batch, 1, 1, keys))
        found = hidden if found is None else found + hidden
    return found


def _attended(
    q: Tensor, k: Tensor, v: Tensor, heads: int, forbidden: Tensor | None, extra: object, dropout: float,
    training: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The values of all heads side by side, and each head's weights."""
    batch, length, width = q.shape
    q, k, v = (x.reshape(batch, x.shape[1], heads, int(str(width)) // heads).transpose(1, 2) for x in (q, k, v))
    scores = (q * (1 / math.sqrt(int(str(width)) // heads))) @ k.transpose(-2, -1)
    if forbidden is not None:
        scores = scores + forbidden.pad([None, None, None, (0, extra)])
    weights = scores.softmax(-1).dropout(dropout, training)
    return (weights @ v).transpose(1, 2).reshape(batch, length, width), weights


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Result:  # fmt: skip
    """What :class:`~tg_frontend.nn.attention.MultiheadAttention` computes, with its parameters as arguments.

    Args:
      query: shape (length, batch, embed_dim_to_check); it may lack the batch, and so may ``key`` and ``value``, of
        shapes (keys, batch, widths).
      embed_dim_to_check: width of the queries and of the result.
      num_heads: how many heads there are.
      in_proj_weight: shape (3 embed_dim, embed_dim), of queries, keys and values.
      in_proj_bias: shape (3 embed_dim,); or None.
      bias_k: a key, and ``bias_v`` a value, that are added to each sequence: shape (1, 1, embed_dim); or None.
      add_zero_attn: whether a key and a value of zeros are added.
      dropout_p: share of weights that are dropped in ``training``.
      out_proj_weight: applied to what the heads give, with ``out_proj_bias``.
      key_padding_mask: shape (batch, keys): True where a key is not attended to; or numbers that are added.
      need_weights: whether weights are returned; their mean with ``average_attn_weights``.
      attn_mask: shape (length, keys) or (batch * heads, length, keys), likewise.
      use_separate_proj_weight: whether ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` stand for
        ``in_proj_weight``.
      static_k: keys that are projected already, and ``static_v`` values: shape (batch * heads, keys, head width).
      is_causal: each position attends only to itself and those before.

    Returns:
      The result, of the shape of the queries; and weights of the shape (batch, [heads,] length, keys), or None.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> x, eye = Tensor.ones(5, 2, 4), Tensor.eye(4)
      >>> out, weights = F.multi_head_attention_forward(
      ...     x, x, x, 4, 2, eye.cat(eye, eye), None, None, None, False, 0.0, eye, None)
      >>> out.shape, weights.shape
      ((5, 2, 4), (2, 5, 5))
    """
    what, batched = "multi_head_attention_forward", query.ndim == 3
    inputs = [x.transpose(0, 1) if batched else x.unsqueeze(0) for x in (query, key, value)]
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    else:
        weights = [None] * 3 if in_proj_weight is None else list(in_proj_weight.chunk(3))
    widths = [None if w is None else w.shape[-1] for w in weights]
    if num_heads < 1 or embed_dim_to_check % num_heads:
        raise ValueError(f"{what}: {num_heads} heads do not divide a width of {embed_dim_to_check}")
    fits = all(x.ndim == 3 and x.shape[2] == width for x, width in zip(inputs, widths, strict=True))
    alike = inputs[1].shape[:2] == inputs[2].shape[:2] and inputs[0].shape[0] == inputs[1].shape[0]
    if not fits or not alike or widths[0] != embed_dim_to_check:
        raise ValueError(f"{what}: shapes {query.shape}, {key.shape}, {value.shape} for widths {widths}")
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    q, k, v = (x.linear(w.T, b) for x, w, b in zip(inputs, weights, biases, strict=True) if w is not None)
    batch, size = q.shape[0], (q.shape[0] * num_heads, embed_dim_to_check // num_heads)
    for static in (static_k, static_v):
        if static is not None and (static.ndim != 3 or (static.shape[0], static.shape[2]) != size):
            raise ValueError(f"{what}: static keys or values of shape {static.shape}, not ({size[0]}, keys, {size[1]})")
    k, v = (
        x if static is None else static.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)
        for x, static in ((k, static_k), (v, static_v))
    )
    keys = k.shape[1]
    forbidden = _mask(q, num_heads, keys, key_padding_mask, attn_mask, is_causal, what)
    if bias_k is not None and bias_v is not None:
        k = k.cat(bias_k.expand(batch, 1, embed_dim_to_check), dim=1)
        v = v.cat(bias_v.expand(batch, 1, embed_dim_to_check), dim=1)
    if add_zero_attn:
        k, v = k.pad([None, (0, 1), None]), v.pad([None, (0, 1), None])
    out, shares = _attended(q, k, v, num_heads, forbidden, k.shape[1] - keys, dropout_p, training)
    out = out.linear(out_proj_weight.T, out_proj_bias)
    shown = (shares.mean(1) if average_attn_weights else shares) if need_weights else None
    if batched:
        return out.transpose(0, 1), shown
    return out.squeeze(0), None if shown is None else shown.squeeze(0)
