"""Layers that draw random numbers in training."""

from __future__ import annotations

from ..array.gradients import in_training
from ..tensor import Tensor
from . import functional
from .applied import Applied
from .functional.dropping import probability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class InTraining(Applied):
    """A layer that tells its function whether it trains: as ``Tensor.training`` says, or the setting ``training``."""

    def _check(self) -> None:
        if "p" in self._known:
            probability(vars(self)["p"], type(self).__name__)

    def forward(self, *operands: Any, **named: Any) -> Any:
        """What the function makes of ``x``."""
        given = next((x for x in (*operands, *named.values()) if isinstance(x, Tensor)), None)
        if given is not None and "training" not in named:
            named["training"] = in_training(given, type(self).__name__)
        out = type(self)._method(*operands, **{"training": Tensor.training, **named, **self._settings()})
        return self._given_back(out, (given,))


class Dropout1d(InTraining):
    """In training: whole channels of one axis dropped. See :func:`tg_frontend.nn.functional.dropout1d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Dropout1d()(Tensor.ones(1, 2, 2))
      Tensor([[[1., 1.],
               [1., 1.]]])
    """

    _method = functional.dropout1d
    in_place = True
    positional = ("p",)


class Dropout2d(InTraining):
    """In training: whole channels of two axes dropped. See :func:`tg_frontend.nn.functional.dropout2d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Dropout2d()(Tensor.ones(1, 2, 1, 2)).flatten()
      Tensor([1., 1., 1., 1.])
    """

    _method = functional.dropout2d
    in_place = True
    positional = ("p",)


class Dropout3d(InTraining):
    """In training: whole channels of three axes dropped. See :func:`tg_frontend.nn.functional.dropout3d`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Dropout3d()(Tensor.ones(1, 2, 1, 1, 2)).shape
      (1, 2, 1, 1, 2)
    """

    _method = functional.dropout3d
    in_place = True
    positional = ("p",)


class AlphaDropout(InTraining):
    """In training: elements replaced such that mean and variance stay. See
    :func:`tg_frontend.nn.functional.alpha_dropout`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.AlphaDropout()(Tensor.ones(2))
      Tensor([1., 1.])
    """

    _method = functional.alpha_dropout
    in_place = True
    positional = ("p",)


class FeatureAlphaDropout(InTraining):
    """In training: channels replaced such that mean and variance stay. See
    :func:`tg_frontend.nn.functional.feature_alpha_dropout`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.FeatureAlphaDropout()(Tensor.ones(1, 2, 2))
      Tensor([[[1., 1.],
               [1., 1.]]])
    """

    _method = functional.feature_alpha_dropout
    in_place = True
    positional = ("p",)


class RReLU(InTraining):
    """x, times a slope below 0 that is random in training. See :func:`tg_frontend.nn.functional.rrelu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.RReLU(0.25, 0.75)(Tensor([-1.0, 2.0]))
      Tensor([-0.5,  2. ])
    """

    _method = functional.rrelu
    in_place = True
    positional = ("lower", "upper")
