"""Layers without weights that change shapes or drop elements."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional
from .applied import Applied, Windowed
from .functional.dropping import probability


class Flatten(Applied):
    """The axes from ``start_dim`` (1) to ``end_dim`` (the last) as one. See :meth:`tg_frontend.Tensor.flatten`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Flatten()(Tensor.ones(2, 3, 5)).shape
      (2, 15)
    """

    _method = Tensor.flatten
    defaults = {"start_dim": 1}


class Unflatten(Applied):
    """One axis as several. See :meth:`tg_frontend.Tensor.unflatten`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Unflatten(1, (3, 5))(Tensor.ones(2, 15)).shape
      (2, 3, 5)
    """

    _method = Tensor.unflatten


class Dropout(Applied):
    """In training: elements dropped with probability ``p`` (0.5), the others over 1 - p. See
    :meth:`tg_frontend.Tensor.dropout`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Dropout()(Tensor.ones(3))
      Tensor([1., 1., 1.])
    """

    _method = Tensor.dropout
    in_place = True
    positional = ("p",)

    def _check(self) -> None:
        probability(vars(self)["p"], "Dropout")


class MaxPool2d(Windowed):
    """The maximum of each window of two axes. See :meth:`tg_frontend.Tensor.max_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.MaxPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
      (1, 1, 2, 2)
    """

    _method = functional.max_pool2d
    positional = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")


class AvgPool2d(Windowed):
    """The mean of each window of two axes. See :meth:`tg_frontend.Tensor.avg_pool2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AvgPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
      (1, 1, 2, 2)
    """

    _method = functional.avg_pool2d
    positional = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
