"""Pools as layers."""

from __future__ import annotations

from . import functional
from .applied import Applied, Windowed


class MaxPool1d(Windowed):
    """The maximum of each window of one axis. See :func:`tg_frontend.nn.functional.max_pool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MaxPool1d(2)(Tensor.ones(1, 1, 6)).shape
      (1, 1, 3)
    """

    _method = functional.max_pool1d
    positional = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")


class MaxPool3d(Windowed):
    """The maximum of each window of three axes. See :func:`tg_frontend.nn.functional.max_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MaxPool3d(2)(Tensor.ones(1, 1, 6, 6, 6)).shape
      (1, 1, 3, 3, 3)
    """

    _method = functional.max_pool3d
    positional = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")


class AvgPool1d(Windowed):
    """The mean of each window of one axis. See :func:`tg_frontend.nn.functional.avg_pool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AvgPool1d(2)(Tensor.ones(1, 1, 6)).shape
      (1, 1, 3)
    """

    _method = functional.avg_pool1d
    per_axis = 1


class AvgPool3d(Windowed):
    """The mean of each window of three axes. See :func:`tg_frontend.nn.functional.avg_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AvgPool3d(2)(Tensor.ones(1, 1, 6, 6, 6)).shape
      (1, 1, 3, 3, 3)
    """

    _method = functional.avg_pool3d


class MaxUnpool1d(Windowed):
    """Maxima put back where a pool of one axis found them. See :func:`tg_frontend.nn.functional.max_unpool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> most, where = nn.MaxPool1d(2, return_indices=True)(Tensor.ones(1, 1, 6))
      >>> nn.MaxUnpool1d(2)(most, where).shape
      (1, 1, 6)
    """

    _method = functional.max_unpool1d
    per_axis = 1
    positional = ("kernel_size", "stride", "padding")


class MaxUnpool2d(Windowed):
    """Maxima put back where a pool of two axes found them. See :func:`tg_frontend.nn.functional.max_unpool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> most, where = nn.MaxPool2d(2, return_indices=True)(Tensor.ones(1, 1, 6, 6))
      >>> nn.MaxUnpool2d(2)(most, where).shape
      (1, 1, 6, 6)
    """

    _method = functional.max_unpool2d
    per_axis = 2
    positional = ("kernel_size", "stride", "padding")


class MaxUnpool3d(Windowed):
    """Maxima put back where a pool of three axes found them. See :func:`tg_frontend.nn.functional.max_unpool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> most, where = nn.MaxPool3d(2, return_indices=True)(Tensor.ones(1, 1, 6, 6, 6))
      >>> nn.MaxUnpool3d(2)(most, where).shape
      (1, 1, 6, 6, 6)
    """

    _method = functional.max_unpool3d
    per_axis = 3
    positional = ("kernel_size", "stride", "padding")


class AdaptiveAvgPool1d(Applied):
    """Means of windows of one axis, as many as are wanted. See :func:`tg_frontend.nn.functional.adaptive_avg_pool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveAvgPool1d(4)(Tensor.ones(1, 1, 6)).shape
      (1, 1, 4)
    """

    _method = functional.adaptive_avg_pool1d


class AdaptiveAvgPool2d(Applied):
    """Means of windows of two axes, as many as are wanted. See :func:`tg_frontend.nn.functional.adaptive_avg_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveAvgPool2d(4)(Tensor.ones(1, 1, 6, 6)).shape
      (1, 1, 4, 4)
    """

    _method = functional.adaptive_avg_pool2d


class AdaptiveAvgPool3d(Applied):
    """Means of windows of three axes, as many as are wanted. See :func:`tg_frontend.nn.functional.adaptive_avg_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveAvgPool3d(4)(Tensor.ones(1, 1, 6, 6, 6)).shape
      (1, 1, 4, 4, 4)
    """

    _method = functional.adaptive_avg_pool3d


class AdaptiveMaxPool1d(Applied):
    """Maxima of windows of one axis, as many as are wanted. See :func:`tg_frontend.nn.functional.adaptive_max_pool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveMaxPool1d(4)(Tensor.ones(1, 1, 6)).shape
      (1, 1, 4)
    """

    _method = functional.adaptive_max_pool1d


class AdaptiveMaxPool2d(Applied):
    """Maxima of windows of two axes, as many as are wanted. See :func:`tg_frontend.nn.functional.adaptive_max_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveMaxPool2d(4)(Tensor.ones(1, 1, 6, 6)).shape
      (1, 1, 4, 4)
    """

    _method = functional.adaptive_max_pool2d


class AdaptiveMaxPool3d(Applied):
    """Maxima of windows of three axes, as many as are wanted. See
    :func:`tg_frontend.nn.functional.adaptive_max_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AdaptiveMaxPool3d(4)(Tensor.ones(1, 1, 6, 6, 6)).shape
      (1, 1, 4, 4, 4)
    """

    _method = functional.adaptive_max_pool3d


class LPPool1d(Applied):
    """Norms of windows of one axis. See :func:`tg_frontend.nn.functional.lp_pool1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LPPool1d(2, 2)(Tensor.ones(1, 1, 6)).shape
      (1, 1, 3)
    """

    _method = functional.lp_pool1d


class LPPool2d(Applied):
    """Norms of windows of two axes. See :func:`tg_frontend.nn.functional.lp_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LPPool2d(2, 2)(Tensor.ones(1, 1, 6, 6)).shape
      (1, 1, 3, 3)
    """

    _method = functional.lp_pool2d


class LPPool3d(Applied):
    """Norms of windows of three axes. See :func:`tg_frontend.nn.functional.lp_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LPPool3d(2, 2)(Tensor.ones(1, 1, 6, 6, 6)).shape
      (1, 1, 3, 3, 3)
    """

    _method = functional.lp_pool3d


class FractionalMaxPool2d(Windowed):
    """The maxima of windows of two axes that lie where random numbers say. See
    :func:`tg_frontend.nn.functional.fractional_max_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(Tensor.ones(1, 1, 7, 6)).shape
      (1, 1, 3, 3)
    """

    _method = functional.fractional_max_pool2d
    per_axis = 2


class FractionalMaxPool3d(Windowed):
    """The maxima of windows of three axes that lie where random numbers say. See
    :func:`tg_frontend.nn.functional.fractional_max_pool3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.FractionalMaxPool3d(2, output_size=(1, 3, 4))(Tensor.ones(1, 1, 5, 7, 6)).shape
      (1, 1, 1, 3, 4)
    """

    _method = functional.fractional_max_pool3d
    per_axis = 3
