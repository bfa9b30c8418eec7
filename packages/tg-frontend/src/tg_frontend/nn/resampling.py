"""Layers without weights that arrange or resample elements."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional
from .applied import Applied
from .layering import Layer, layer_class


class Upsample(Applied):
    """The axes behind the first two resampled. See :func:`tg_frontend.nn.functional.interpolate`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Upsample(scale_factor=2)(Tensor([[[1.0, 3.0]]]))
      Tensor([[[1., 1., 3., 3.]]])
    """

    _method = functional.interpolate


class UpsamplingNearest2d(Applied):
    """Two axes resampled, by the nearest element. See :func:`tg_frontend.nn.functional.upsample_nearest`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.UpsamplingNearest2d(scale_factor=2)(Tensor.ones(1, 1, 2, 3)).shape
      (1, 1, 4, 6)
    """

    _method = functional.upsample_nearest


class UpsamplingBilinear2d(Applied):
    """Two axes resampled; the corners keep their places. See :func:`tg_frontend.nn.functional.upsample_bilinear`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.UpsamplingBilinear2d((1, 3))(Tensor([[[[1.0, 3.0]]]]))
      Tensor([[[[1., 2., 3.]]]])
    """

    _method = functional.upsample_bilinear


class PixelShuffle(Applied):
    """Channels as smaller pixels. See :func:`tg_frontend.nn.functional.pixel_shuffle`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.PixelShuffle(2)(Tensor.ones(1, 4, 2, 3)).shape
      (1, 1, 4, 6)
    """

    _method = functional.pixel_shuffle


class PixelUnshuffle(Applied):
    """Smaller pixels as channels. See :func:`tg_frontend.nn.functional.pixel_unshuffle`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.PixelUnshuffle(2)(Tensor.ones(1, 1, 4, 6)).shape
      (1, 4, 2, 3)
    """

    _method = functional.pixel_unshuffle


class ChannelShuffle(Applied):
    """Channels of all groups by turns. See :func:`tg_frontend.nn.functional.channel_shuffle`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ChannelShuffle(2)(Tensor([[[0.0], [1.0], [2.0], [3.0]]])).flatten()
      Tensor([0., 2., 1., 3.])
    """

    _method = functional.channel_shuffle


class Unfold(Applied):
    """Windows of two axes as columns. See :func:`tg_frontend.nn.functional.unfold`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Unfold(2)(Tensor.ones(1, 3, 4, 5)).shape
      (1, 12, 12)
    """

    _method = functional.unfold


class Fold(Applied):
    """Columns put back as windows, added where they overlap. See :func:`tg_frontend.nn.functional.fold`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Fold((2, 3), 2)(Tensor.ones(1, 4, 2))
      Tensor([[[[1., 2., 1.],
                [1., 2., 1.]]]])
    """

    _method = functional.fold


class LocalResponseNorm(Applied):
    """Elements over a mean of squares of neighbouring channels. See
    :func:`tg_frontend.nn.functional.local_response_norm`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LocalResponseNorm(2)(Tensor.ones(1, 3, 2)).shape
      (1, 3, 2)
    """

    _method = functional.local_response_norm


@layer_class
class Softmax2d(Layer):
    """Softmax along the channels of images, of shape ([batch,] channels, height, width).

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softmax2d()(Tensor.zeros(1, 4, 1, 2))[0, 0]
      Tensor([[0.25, 0.25]])
    """

    def __init__(self) -> None:
        """There is nothing to set."""

    def forward(self, x: Tensor) -> Tensor:
        """``x.softmax(-3)``.

        Raises:
          ValueError: if the input has another number of axes.
        """
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: input of shape {x.shape}; ([batch,] channels, height, width) is wanted")
        return x.softmax(-3)

    def __repr__(self) -> str:
        return "Softmax2d()"
