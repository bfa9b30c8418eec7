"""Convolution layers."""

from __future__ import annotations

import math

from ..ops.convolution import paddings, per_axis, same_padding
from ..tensor import Tensor
from .initial import for_sums
from .layering import Layer, layer_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}
"""What ``padding_mode`` is to :meth:`tg_frontend.Tensor.pad`."""


def _amounts(padding: Any, axes: int) -> str | tuple[int, ...]:
    """Padding as a layer remembers it: a word, or numbers, one an axis from one for all."""
    if isinstance(padding, str):
        return padding
    amounts = (padding,) if isinstance(padding, int) else tuple(padding)
    return amounts * axes if len(amounts) == 1 else amounts


@layer_class
class Conv(Layer):
    """A convolution over as many axes as ``kernel_size`` has.

    Args:
      in_channels: channels of the input.
      out_channels: channels of the result.
      kernel_size: sizes of the window, one an axis; or, where the class says how many axes there are, one for all.
      stride: distance of windows.
      padding: elements around: one number, or one an axis, or ``"same"`` for a stride of 1, or ``"valid"`` for none.
      dilation: distance of the elements of a window.
      groups: channels are convolved in so many groups by themselves.
      bias: whether there is a bias.
      padding_mode: what stands around: ``"zeros"``, or elements of the input as :meth:`tg_frontend.Tensor.pad` has
        them: ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Attributes:
      weight: shape (out_channels, in_channels / groups, *kernel_size), uniform within 1 / sqrt(fan in) at first.
      bias: shape (out_channels,), likewise; or None.

    Raises:
      ValueError: if the channels do not divide by the groups, ``padding`` is no padding, or there is no such mode.
    """

    _axes: ClassVar[int | None] = None  # over how many, where kernel_size does not tell
    _numbers = "any"
    transposed: ClassVar[bool] = False
    output_padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        what = type(self).__name__
        if padding_mode not in _MODES:
            raise ValueError(f"{what}: padding_mode {padding_mode!r}; there are {', '.join(_MODES)}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{what}: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        axes = self._axes or (1 if isinstance(kernel_size, int) else len(kernel_size))
        kernel = per_axis(kernel_size, axes, f"{what}: kernel_size", 1)
        self.kernel_size, self.padding_mode = kernel, padding_mode
        self.stride = per_axis(stride, axes, f"{what}: stride", 1)
        self.dilation = per_axis(dilation, axes, f"{what}: dilation", 1)
        self.padding: str | tuple[int, ...] = _amounts(padding, axes)
        self._around()
        self.output_padding, inputs = (0,) * axes, in_channels // groups
        self.weight = self._windows(out_channels, inputs)
        self.bias = for_sums(out_channels, terms=inputs * math.prod(kernel)) if bias else None

    def _around(self) -> Any:
        """How many elements stand before and after each axis."""
        if not isinstance(self.padding, str):
            return self.padding
        return same_padding(self.padding, self.kernel_size, self.stride, self.dilation, type(self).__name__)

    def _windows(self, count: int, channels: int) -> Tensor:
        """So many windows of weights, each over so many channels: an output is the sum over one of them."""
        return for_sums(count, channels, *self.kernel_size, terms=channels * math.prod(self.kernel_size))

    def forward(self, x: Tensor) -> Tensor:
        """shape (batch, in_channels, *spatial) to (batch, out_channels, *counts); both may lack the batch."""
        around = self._around()
        if self.padding_mode != "zeros":
            pairs = paddings(around, len(self.kernel_size), type(self).__name__)
            x = x.pad([None] * (x.ndim - len(pairs)) + pairs, mode=_MODES[self.padding_mode])
            around = 0
        return x.conv2d(
            self.weight, self.bias, groups=self.groups, stride=self.stride, dilation=self.dilation, padding=around
        )


@layer_class
class ConvTranspose(Conv):
    """The transpose of a convolution. Its arguments stand in PyTorch's order, in which ``dilation`` follows ``bias``.

    Args:
      output_padding: zeros added at the end of each axis of the result; the others are those of :class:`Conv`.
      padding_mode: ``"zeros"``.

    Attributes:
      weight: shape (in_channels, out_channels / groups, *kernel_size).

    Raises:
      ValueError: if the channels do not divide by the groups, or ``padding_mode`` is another one.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode {padding_mode!r}; only zeros are added")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.weight = self._windows(in_channels, out_channels // groups)
        what = f"{type(self).__name__}: output_padding"
        self.output_padding = per_axis(output_padding, len(self.kernel_size), what, 0)

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """shape (batch, in_channels, *spatial) to (batch, out_channels, *spatial'); both may lack the batch.

        Args:
          x: the input.
          output_size: the last axes of the result, or its whole shape, in place of ``output_padding``: the input of a
            convolution whose stride rounds down has one of several sizes.

        Raises:
          ValueError: if there is no result of such a size.
        """
        behind = self.output_padding if output_size is None else self._behind(x, tuple(output_size))
        return x.conv_transpose2d(
            self.weight, self.bias, groups=self.groups, stride=self.stride, dilation=self.dilation,
            padding=self._around(), output_padding=behind,
        )

    def _behind(self, x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The zeros at the end of each axis with which the result has given sizes."""
        n, name = len(self.kernel_size), type(self).__name__
        said = f"{name}: output_size {sizes} for an input of shape {x.shape}"
        if len(sizes) not in (n, x.ndim):
            raise ValueError(f"{said}; it has {n} or {x.ndim} sizes")
        around = paddings(self._around(), n, name)
        steps, gaps = per_axis(self.stride, n, name, 1), per_axis(self.dilation, n, name, 1)
        least = [(int(str(count)) - 1) * step - sum(pair) + gap * (width - 1) + 1 for count, step, pair, gap, width in
                 zip(x.shape[-n:], steps, around, gaps, self.kernel_size, strict=True)]  # fmt: skip
        behind = tuple(size - lowest for size, lowest in zip(sizes[-n:], least, strict=True))
        if any(not 0 <= zeros < step for zeros, step in zip(behind, steps, strict=True)):
            most = [lowest + step - 1 for lowest, step in zip(least, steps, strict=True)]
            raise ValueError(f"{said}; from {least} to {most} there is")
        return behind


@layer_class
class Conv1d(Conv):
    """A :class:`Conv` over one axis.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Conv1d(3, 8, 5, padding="same")(Tensor.ones(1, 3, 16)).shape
      (1, 8, 16)
    """

    _axes = 1


@layer_class
class Conv2d(Conv):
    """A :class:`Conv` over two axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Conv2d(3, 8, 3, stride=2, padding=1)(Tensor.ones(1, 3, 16, 16)).shape
      (1, 8, 8, 8)
    """

    _axes = 2


@layer_class
class ConvTranspose1d(ConvTranspose):
    """A :class:`ConvTranspose` over one axis.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConvTranspose1d(3, 8, 4, stride=2)(Tensor.ones(1, 3, 16)).shape
      (1, 8, 34)
    """

    _axes = 1


@layer_class
class ConvTranspose2d(ConvTranspose):
    """A :class:`ConvTranspose` over two axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConvTranspose2d(3, 8, 4, stride=2, padding=1)(Tensor.ones(1, 3, 16, 16)).shape
      (1, 8, 32, 32)
    """

    _axes = 2


@layer_class
class Conv3d(Conv):
    """A :class:`Conv` over three axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Conv3d(3, 8, 3, padding=1)(Tensor.ones(1, 3, 4, 5, 6)).shape
      (1, 8, 4, 5, 6)
    """

    _axes = 3


@layer_class
class ConvTranspose3d(ConvTranspose):
    """A :class:`ConvTranspose` over three axes.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ConvTranspose3d(3, 8, 2, stride=2)(Tensor.ones(1, 3, 4, 5, 6)).shape
      (1, 8, 8, 10, 12)
    """

    _axes = 3
