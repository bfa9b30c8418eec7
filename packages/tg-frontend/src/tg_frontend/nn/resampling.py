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
class CrossMapLRN2d(Layer):
    """Elements of images over a mean of squares of ``size`` neighbouring channels; see :class:`LocalResponseNorm`.

    x / (k + alpha / size * sum of squares) ** beta, over channels from c - size // 2 to c + (size - 1) // 2 (Krizhevsky
    et al. 2012). PyTorch's ``LocalResponseNorm`` agrees. Its layer of this name does not: its running sum keeps the
    square of the first channel, so that of an odd ``size`` only the first (size + 1) / 2 channels agree; of an even
    one it adds the squares of one channel less, which it divides by ``size`` all the same.

    Args:
      size: number of channels.
      alpha: the weight of the mean.
      beta: the exponent.
      k: what is added to the mean.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(Tensor.ones(1, 3, 1, 1)).flatten()
      Tensor([0.33333334, 0.25      , 0.33333334])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, channels, height, width).

        Raises:
          ValueError: if the input has another number of axes, or ``size`` is below 1.
        """
        if x.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: input of shape {x.shape}; (batch, channels, height, width) is wanted")
        return functional.local_response_norm(x, self.size, self.alpha, self.beta, self.k)


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
