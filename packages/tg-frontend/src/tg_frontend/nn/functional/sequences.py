"""Convolutions of sequences whose first axis is that of steps."""

from __future__ import annotations

from ...tensor import Tensor


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
