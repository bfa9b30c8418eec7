"""Convolutions of sequences, and losses of products, by PyTorch's names."""

from __future__ import annotations

from math import prod

from ...tensor import Tensor
from .arranged import cross_entropy

NO_CLASS = -100
"""The class that does not count, where none is given: as PyTorch has it."""


def conv_tbc(x: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over the first axis of sequences whose last axis holds channels.

    Args:
      x: shape (steps, batch, in_channels).
      weight: shape (kernel, in_channels, out_channels).
      bias: shape (out_channels,).
      pad: zeros before the first and behind the last step.

    Returns:
      Shape (steps + 2 pad - kernel + 1, batch, out_channels).

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.conv_tbc(Tensor([[[1.0]], [[2.0]], [[3.0]]]), Tensor([[[1.0]], [[10.0]]]), Tensor([0.5])).flatten()
      Tensor([21.5, 32.5])
    """
    if x.ndim != 3 or weight.ndim != 3 or x.shape[2] != weight.shape[1] or bias.shape != (weight.shape[2],):
        raise ValueError(f"conv_tbc: shapes {x.shape}, {weight.shape} and {bias.shape} do not fit")
    out: Tensor = x.permute(1, 2, 0).conv1d(weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
    return out


def linear_cross_entropy(
    x: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: None = None,
) -> Tensor:  # fmt: skip
    """:func:`cross_entropy` of x @ linear_weight.T + linear_bias.

    Args:
      x: shape ([batch,] inputs).
      linear_weight: shape (classes, inputs); or (classes, *features, inputs) for so many losses of each example.
      target: classes, shape ([batch,] *features); or their probabilities, shape ([batch,] classes, *features).
      linear_bias: shape (classes, *features).
      weight: of each class, shape (classes,).
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      ignore_index: the class that does not count; -100 if not given.
      label_smoothing: the share of the target that is spread over all classes.
      options: None alone: results are fused and kept as the scheduler plans, not by settings.

    Raises:
      ValueError: if the shapes do not fit, or ``options`` are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> x, weight = Tensor([[1.0, 2.0], [0.0, 1.0]]), Tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
      >>> F.linear_cross_entropy(x, weight, Tensor([2, 0])).round(4)
      Tensor(1.1348)
    """
    what = "linear_cross_entropy"
    if options is not None:
        raise ValueError(f"{what}: there are no options; leave them out")
    classes, *features = linear_weight.shape[:-1] if linear_weight.ndim > 1 else (0,)
    bias_fits = linear_bias is None or linear_bias.shape == (classes, *features)
    fits = linear_weight.ndim > 1 and x.ndim in ((2,) if features else (1, 2)) and bias_fits
    if not fits or x.shape[-1] != linear_weight.shape[-1]:
        bias = "" if linear_bias is None else f" and linear_bias of shape {linear_bias.shape}"
        raise ValueError(f"{what}: x of shape {x.shape}, linear_weight of shape {linear_weight.shape}{bias}")
    flat = linear_weight.reshape(classes * prod(features), x.shape[-1])
    logits = x.linear(flat.T, None if linear_bias is None else linear_bias.reshape(-1))
    if features:
        logits = logits.reshape(x.shape[0], classes, *features)
    ignored = NO_CLASS if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)
