"""Rows of tables, alone and in bags; and products with tables."""

from __future__ import annotations

import math
from itertools import pairwise

from tg_dtype import dtypes
from tg_shape import sint

from ...array.reading import is_at_hand
from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ...transform.custom import Function, FunctionContext

_LITTLE = 1e-7  # added to the norm of a row that is divided by, as PyTorch does
_MODES = ("sum", "mean", "max")


class _ByFrequency(Function):
    """Rows that were looked up, whose gradients count less where a row was looked up several times."""

    @staticmethod
    def forward(ctx: FunctionContext, rows: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(counts)
        return rows

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> tuple[Tensor, None]:
        (counts,) = ctx.saved_tensors
        return grads[0] / counts.cast(grads[0].dtype), None


def _counted(x: Tensor, table: Tensor) -> Tensor:
    """How often each row of a table is named."""
    rows = table._ints()[0]
    at = x.detach().reshape(-1)
    return (at < 0).where(at + rows, at).bincount(minlength=rows)[:rows]


def _rows(
    weight: Tensor, x: Tensor, padding_idx: int | None, max_norm: float | None, norm_type: float,
    scale_grad_by_freq: bool, sparse: bool,
) -> Tensor:  # fmt: skip
    """The rows that ``x`` names; those that are too long are made shorter in the table before."""
    if max_norm is not None:
        with Switch(MODE, "recording", False):
            table = weight.detach()
            lengths = table.norm(norm_type, 1)
            long = (_counted(x, table) > 0) & (lengths > max_norm)
            share = long.where(max_norm / (lengths + _LITTLE), 1).cast(table.dtype)
            weight.assign((table * share.unsqueeze(1)).contiguous())
    rows: Tensor = weight.embedding(x, padding_idx, sparse)
    if not scale_grad_by_freq:
        return rows
    counts = _counted(x, weight)[x.detach()]
    return _ByFrequency.apply(rows, counts.unsqueeze(-1))  # type: ignore[no-any-return]


def embedding(
    x: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of ``weight`` that ``x`` names. See :meth:`tg_frontend.Tensor.embedding`.

    Args:
      x: integers.
      weight: shape (rows, width).
      padding_idx: a row that gets no gradient.
      max_norm: rows that are named and whose norm is greater are made that long, in ``weight`` itself.
      norm_type: the power of that norm.
      scale_grad_by_freq: whether the gradient of a row is divided by how often it is named.
      sparse: whether the gradient is row-sparse.

    Raises:
      TypeError: if ``x`` holds no integers.
      ValueError: if there is no row ``padding_idx``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.embedding(Tensor([2, 0]), Tensor([[1.0], [2.0], [3.0]]))
      Tensor([[3.],
              [1.]])
    """
    return _rows(weight, x, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)


def _check_offsets(what: str, begins: list[int], count: sint) -> None:
    """Looks whether every row is in a bag.

    Raises:
      ValueError: if the first bag does not begin at 0, or one begins before the last one does or beyond the end.
    """
    if begins[0] != 0:
        raise ValueError(f"{what}: offsets begin at 0, got {begins[0]}: what lies before it would be in no bag")
    for before, begin in pairwise([*begins, count]):
        if begin < before:
            raise ValueError(f"{what}: offsets rise from 0 to {count}, the number of rows, got {begins}")


def embedding_bag(
    x: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means or maxima of rows of ``weight``, bag by bag; 0 for a bag without rows.

    Args:
      x: row numbers: shape (bags, rows of a bag), or all bags one after another.
      weight: shape (rows, width).
      offsets: where each bag begins, for numbers one after another.
      max_norm: as for :func:`embedding`; and so are ``norm_type``, ``scale_grad_by_freq`` (not for maxima) and
        ``sparse``.
      mode: "sum", "mean" or "max".
      per_sample_weights: what each row is multiplied with, of the shape of ``x``; for sums.
      include_last_offset: whether the last of ``offsets`` begins no bag: it is the number of rows, and the last bag
        goes to the end whatever it says, as in PyTorch.
      padding_idx: a row that does not count.

    Raises:
      ValueError: if the shapes do not fit, there is no such mode, or offsets that the host can read do not begin at 0,
        or go beyond the end.
      TypeError: if ``x`` holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.embedding_bag(Tensor([0, 2, 1]), Tensor([[1.0], [2.0], [3.0]]), Tensor([0, 2]), mode="sum")
      Tensor([[4.],
              [2.]])
    """
    what = "embedding_bag"
    if mode not in _MODES:
        raise ValueError(f"{what}: mode {mode!r}; there are {', '.join(_MODES)}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != x.shape):
        raise ValueError(f"{what}: per_sample_weights are for mode 'sum', and of the shape {x.shape} of the input")
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"{what}: indices are integers, got a tensor of {x.dtype.name}")
    if (x.ndim == 2) != (offsets is None) or x.ndim not in (1, 2):
        raise ValueError(f"{what}: input of shape {x.shape}; offsets are for an input of one axis, which needs them")
    if include_last_offset and offsets is not None and offsets.shape[0] == 0:
        raise ValueError(f"{what}: include_last_offset, and no offset")
    if scale_grad_by_freq and mode == "max":
        raise ValueError(f"{what}: scale_grad_by_freq is for sums and means")
    rows = _rows(weight, x, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counts = x.ne(padding_idx % weight.shape[0]) if padding_idx is not None else x.eq(x)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if offsets is None:
        there, axis = counts.unsqueeze(-1), 1
    else:
        begins = offsets[:-1] if include_last_offset else offsets
        if begins.shape[0] != 0 and is_at_hand(offsets):
            _check_offsets(what, begins.tolist(), x.shape[0])
        at = Tensor.arange(x.shape[0], device=x.device)
        end = Tensor([x.shape[0]], dtype=offsets.dtype, device=offsets.device)
        ends = begins[1:].cat(end, dim=0)
        inside = (at >= begins.unsqueeze(1)) & (at < ends.unsqueeze(1)) & counts
        bags = begins.shape[0]
        if bags and mode in ("sum", "mean"):
            number = Tensor.arange(bags, device=x.device).unsqueeze(1)
            bag = inside.any(0).where(inside.where(number, 0).sum(0), bags)  # of each row; there are no more than these
            total = Tensor.zeros(bags, weight.shape[1], dtype=rows.dtype, device=rows.device).index_add(0, bag, rows)
            return total if mode == "sum" else total / inside.sum(1, keepdim=True).maximum(1).cast(rows.dtype)
        there, axis, rows = inside.unsqueeze(-1), 1, rows.unsqueeze(0)
    if mode == "max":
        if there.shape[1] == 0:
            return rows.sum(1).expand(there.shape[0], weight.shape[1])
        most = there.where(rows, -math.inf).max(axis)
        return there.any(1).where(most, 0)
    total = there.where(rows, 0).sum(axis)
    return total if mode == "sum" else total / there.sum(1).maximum(1).cast(rows.dtype)


def bilinear(x: Tensor, other: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight[k] @ other for each k, plus the bias.

    Args:
      x: shape (..., n).
      other: shape (..., m).
      weight: shape (outputs, n, m).
      bias: shape (outputs,).

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.bilinear(Tensor([[1.0, 2.0]]), Tensor([[3.0]]), Tensor([[[1.0], [1.0]]]))
      Tensor([[9.]])
    """
    shapes = x.shape[:-1] != other.shape[:-1] or weight.ndim != 3
    if min(x.ndim, other.ndim) < 1 or shapes or weight.shape[1:] != (x.shape[-1], other.shape[-1]):
        raise ValueError(f"bilinear: inputs of shapes {x.shape} and {other.shape} for a weight of shape {weight.shape}")
    flat, beside = x.reshape(-1, x.shape[-1]), other.reshape(-1, other.shape[-1])
    out = (flat @ weight).transpose(0, 1)  # (rows, outputs, m)
    out = out * beside.unsqueeze(1)
    out = out.sum(-1, dtype=out.dtype).reshape((*x.shape[:-1], weight.shape[0]))
    return out if bias is None else out + bias
