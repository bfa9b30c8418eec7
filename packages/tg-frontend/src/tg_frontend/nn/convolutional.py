"""Convolution layers."""

from __future__ import annotations

import math

from ..convolution import per_axis
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Conv:
    """A convolution over as many axes as ``kernel_size`` has.

    Args:
      in_channels: channels of the input.
      out_channels: channels of the result.
      kernel_size: sizes of the window, one an axis.
      stride: distance of windows.
      padding: zeros around: one number, or one an axis, or ``"same"`` for a stride of 1.
      dilation: distance of the elements of a window.
      groups: channels are convolved in so many groups by themselves.
      bias: whether there is a bias.

    Attributes:
      weight: shape (out_channels, in_channels / groups, *kernel_size), uniform within 1 / sqrt(fan in) at first.
      bias: shape (out_channels,), likewise; or None.

    Raises:
      ValueError: the channels do not divide by the groups, or ``padding`` is no padding.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"Conv: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        self.kernel_size, self.stride, self.dilation, self.groups = kernel_size, stride, dilation, groups
        self.padding = _same(kernel_size, stride, dilation) if padding == "same" else padding
        if isinstance(self.padding, str):
            raise ValueError(f"Conv: padding {padding!r}; a number, one an axis, or 'same'")
        bound = 1 / math.sqrt(max(1, in_channels // groups * math.prod(kernel_size)))
        self.weight = Tensor.uniform(out_channels, in_channels // groups, *kernel_size, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """shape (batch, in_channels, *spatial) to (batch, out_channels, *counts)."""
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


def _same(kernel: tuple[int, ...], stride: int | Sequence[int], dilation: int | Sequence[int]) -> list[int]:
    if any(s != 1 for s in per_axis(stride, len(kernel), "Conv: stride", 1)):
        raise ValueError(f"Conv: padding 'same' is for a stride of 1, not {stride!r}")
    gaps = per_axis(dilation, len(kernel), "Conv: dilation", 1)
    pairs = [(d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in zip(kernel, gaps, strict=True)]
    return [amount for pair in reversed(pairs) for amount in pair]


class ConvTranspose(Conv):
    """The transpose of a convolution, as PyTorch has it.

    Args:
      output_padding: zeros added at the end of each axis of the result; the others are those of :class:`Conv`.

    Attributes:
      weight: shape (in_channels, out_channels / groups, *kernel_size).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        bound = 1 / math.sqrt(max(1, out_channels // groups * math.prod(kernel_size)))
        self.weight = Tensor.uniform(in_channels, out_channels // groups, *kernel_size, low=-bound, high=bound)
        self.output_padding = output_padding

    def __call__(self, x: Tensor) -> Tensor:
        """shape (batch, in_channels, *spatial) to (batch, out_channels, *spatial')."""
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, self.output_padding
        )


def Conv1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> Conv:
    """A :class:`Conv` over one axis."""
    return Conv(in_channels, out_channels, (kernel_size,), stride, padding, dilation, groups, bias)


def Conv2d(
    in_channels: int,
    out_channels: int,
    kernel_size: int | tuple[int, int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    bias: bool = True,
) -> Conv:
    """A :class:`Conv` over two axes.

    Example:
        >>> from tg_frontend import Tensor, nn
        >>> nn.Conv2d(3, 8, 3, stride=2, padding=1)(Tensor.ones(1, 3, 16, 16)).shape
        (1, 8, 8, 8)
    """
    kernel = per_axis(kernel_size, 2, "Conv2d: kernel_size", 1)
    return Conv(in_channels, out_channels, kernel, stride, padding, dilation, groups, bias)


def ConvTranspose1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> ConvTranspose:
    """A :class:`ConvTranspose` over one axis."""
    return ConvTranspose(
        in_channels, out_channels, (kernel_size,), stride, padding, output_padding, dilation, groups, bias
    )


def ConvTranspose2d(
    in_channels: int,
    out_channels: int,
    kernel_size: int | tuple[int, int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    bias: bool = True,
) -> ConvTranspose:
    """A :class:`ConvTranspose` over two axes."""
    kernel = per_axis(kernel_size, 2, "ConvTranspose2d: kernel_size", 1)
    return ConvTranspose(
        in_channels, out_channels, kernel, stride, padding, output_padding, dilation, groups, bias
    )
