"""Attention."""

from __future__ import annotations

import math

from tg_dtype import sum_acc_dtype
from tg_lazy.cost import limits_of
from tg_shape import prod, upper

from ..array.array import A
from ..array.axes import counter
from ..array.casts import floating
from ..array.ingest import value_of
from ..array.joining import cat
from ..array.shapes import broadcast_shape
from ..autograd.differentiation import MODE
from .axes import narrow
from .elementary import exp
from .linear import dot
from .repetition import repeat_interleave
from .sampling import dropout
from .softmax import below_maximum

_RUNS = 16
"""Of causal attention, at most: 16 runs of rows compute 17/32 of all scores, where half of them would do. Source: the
rows ``causal attention`` of the bench."""
_LEAST_RUN = 256
_ROUND = 64
"""Rows of a run: a multiple of it, so that tiles of registers fit, and so many that a kernel pays; source as above."""
_LONG_ROW = 1024
"""Scores of a row from which on it is divided by its sum after the product: then a kernel keeps exponentials and no
quotients beside the scores. Shorter ones gain nothing. Source: the row ``attention 1x4x4096x64`` of the bench."""


def scaled_dot_product_attention(
    x: A,
    key: A,
    value: A,
    attn_mask: A | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    enable_gqa: bool = False,
    scale: float | None = None,
) -> A:
    """softmax(query @ key.T * scale + mask) @ value, this tensor being the query.

    A position that may attend to nothing gets 0.

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
      ValueError: if the shapes do not fit, or both a mask and ``is_causal`` are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> values = Tensor([[0.0], [1.0], [2.0]])
      >>> x = Tensor.ones(3, 4)  # all alike: each position gets the mean of those up to itself
      >>> x.scaled_dot_product_attention(x, values, is_causal=True).round(4)
      Tensor([[0. ],
              [0.5],
              [1. ]])
    """
    what = "scaled_dot_product_attention"
    query, key, value = floating(x), floating(key), floating(value)
    shapes = f"query {x.shape}, key {key.shape}, value {value.shape}"
    flat = min(query.ndim, key.ndim, value.ndim) < 2
    if flat or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(f"{what}: {shapes}: query and key share the last axis, key and value the one before")
    if enable_gqa:
        flat = min(query.ndim, key.ndim, value.ndim) < 3
        if flat or not key.shape[-3] or query.shape[-3] % key.shape[-3] != 0 or key.shape[-3] != value.shape[-3]:
            raise ValueError(f"{what}: {shapes}: the heads of the query must divide by those of key and value")
        times = value_of(query.shape[-3], query.shape) // value_of(key.shape[-3], key.shape)
        key, value = repeat_interleave(key, times, dim=-3), repeat_interleave(value, times, dim=-3)
    width = value_of(query.shape[-1], query.shape) if scale is None else 0
    factor = scale if scale is not None else 1 / math.sqrt(max(width, 1))  # without features all scores are 0
    if is_causal:
        if attn_mask is not None:
            raise ValueError(f"{what}: give attn_mask or is_causal, not both")
        return _causal(query, key, value, factor, dropout_p)
    scores = _scores(query, key, factor)
    if attn_mask is not None:
        if broadcast_shape(what, attn_mask.shape, scores.shape) != scores.shape:
            raise ValueError(f"{what}: a mask of shape {attn_mask.shape} for scores of shape {scores.shape}")
        if attn_mask.dtype.kind == "bool":
            scores = attn_mask.where(scores, -math.inf)
        else:
            scores = scores + attn_mask.cast(scores.dtype)
    return _mixed(query, scores, value, dropout_p)


def _scores(query: A, key: A, factor: float) -> A:
    return dot(query, key.transpose(-2, -1), dtype=sum_acc_dtype(query.dtype)) * factor


def _mixed(query: A, scores: A, value: A, dropout_p: float, hidden: A | None = None) -> A:
    """softmax(scores) @ value; 0 where all scores of a row are -infinity.

    Long rows are divided by the sums of their exponentials last, when fewer elements are left. The sums are the first
    operand: a kernel that meets the product first adds them up before it, and holds both.

    Args:
      query: of whose dtype the result is.
      scores: shape (…, rows, columns).
      value: shape (…, columns, V).
      dropout_p: share of weights that are dropped.
      hidden: which scores are -infinity. Kernels that are told that their exponentials are 0 leave out what is behind
        a diagonal.
    """
    rows, columns = scores.shape[-2:]
    powers = exp(below_maximum(scores, -1)[0])
    if hidden is not None:
        powers = hidden.where(0, powers)
    total = powers.sum(-1, keepdim=True)
    share = total.eq(0).where(1, total).reciprocal()
    if not (isinstance(rows, int) and isinstance(columns, int)) or rows < _ROUND or columns < _LONG_ROW:
        return dot(dropout((powers * share).cast(query.dtype), dropout_p), value)
    mixed = dot(dropout(powers.cast(query.dtype), dropout_p), value, dtype=scores.dtype)
    return (share * mixed).cast(query.dtype)


def _causal(query: A, key: A, value: A, factor: float, dropout_p: float) -> A:
    """Attention to positions that are not later.

    Where a kernel holds the scores of a block of rows, its loops end at the diagonal. Elsewhere, and where gradients
    are recorded, whose kernels hold no scores, it is done in runs of rows: none reads keys that no row of it may see.
    """
    rows, columns = query.shape[-2], key.shape[-2]
    if not (isinstance(rows, int) and isinstance(columns, int)) or rows < 2 * _LEAST_RUN or _held(query, key, value):
        return _run(query, key, value, 0, factor, dropout_p)
    size = max(_LEAST_RUN, -(-rows // _RUNS // _ROUND) * _ROUND)
    parts = []
    for first in range(0, rows, size):
        seen = min(first + size, columns)
        some = narrow(query, -2, first, min(size, rows - first))
        keys, values = narrow(key, -2, 0, seen), narrow(value, -2, 0, seen)
        parts.append(_run(some, keys, values, first, factor, dropout_p))
    return cat(parts[0], *parts[1:], dim=-2)


def _held(query: A, key: A, value: A) -> bool:
    """Whether a kernel holds the scores of a block of rows: no gradient is recorded, and they outweigh what is read."""
    least = limits_of(query.device).row_bytes
    if not least or (MODE.recording and any(x._wish for x in (query, key, value))):
        return False
    scores = upper(prod(query.shape[:-1])) * upper(key.shape[-2]) * sum_acc_dtype(query.dtype).itemsize
    return scores >= max(least, 2 * sum(upper(x.nbytes()) for x in (query, key, value)))


def _run(query: A, key: A, value: A, first: int, factor: float, dropout_p: float) -> A:
    """Some rows of causal attention, of which the first is at position ``first``."""
    scores = _scores(query, key, factor)
    row, column = counter(scores, scores.ndim - 2), counter(scores, scores.ndim - 1)
    hidden = row + first < column if first else row < column
    return _mixed(query, hidden.where(-math.inf, scores), value, dropout_p, hidden)
