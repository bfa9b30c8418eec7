"""Functions between layers, as layers: what a model is listed with."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional
from .applied import Applied


class ReLU(Applied):
    """max(x, 0). See :meth:`tg_frontend.Tensor.relu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReLU()(Tensor([-1.0, 2.0]))
      Tensor([0., 2.])
    """

    _method = Tensor.relu
    in_place = True


class ReLU6(Applied):
    """x between 0 and 6. See :meth:`tg_frontend.Tensor.relu6`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ReLU6()(Tensor([-1.0, 8.0]))
      Tensor([0., 6.])
    """

    _method = Tensor.relu6
    min_val, max_val = 0.0, 6.0  # what it is a Hardtanh of
    in_place = True


class LeakyReLU(Applied):
    """x, times ``negative_slope`` (0.01) below 0. See :meth:`tg_frontend.Tensor.leaky_relu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LeakyReLU(0.5)(Tensor([-1.0, 2.0]))
      Tensor([-0.5,  2. ])
    """

    _method = Tensor.leaky_relu
    in_place = True


class ELU(Applied):
    """x, and alpha * (exp(x) - 1) below 0. See :meth:`tg_frontend.Tensor.elu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.ELU()(Tensor([0.0, 2.0]))
      Tensor([0., 2.])
    """

    _method = Tensor.elu
    in_place = True


class CELU(Applied):
    """x, and alpha * (exp(x / alpha) - 1) below 0. See :meth:`tg_frontend.Tensor.celu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.CELU()(Tensor([0.0, 2.0]))
      Tensor([0., 2.])
    """

    _method = Tensor.celu
    in_place = True


class SELU(Applied):
    """The scaled ELU that keeps mean and variance (Klambauer et al. 2017). See :meth:`tg_frontend.Tensor.selu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.SELU()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.    , 2.1014])
    """

    _method = Tensor.selu
    in_place = True
    positional = ()


class GELU(Applied):
    """x times the share of a normal distribution below it; ``approximate`` is "none" unless it is given. See
    :meth:`tg_frontend.Tensor.gelu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GELU()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.    , 1.9545])
    """

    _method = Tensor.gelu
    defaults = {"approximate": "none"}


class SiLU(Applied):
    """x * sigmoid(x). See :meth:`tg_frontend.Tensor.silu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.SiLU()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.    , 1.7616])
    """

    _method = Tensor.silu
    in_place = True


class Mish(Applied):
    """x * tanh(softplus(x)). See :meth:`tg_frontend.Tensor.mish`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Mish()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.   , 1.944])
    """

    _method = Tensor.mish
    in_place = True


class Sigmoid(Applied):
    """1 / (1 + exp(-x)). See :meth:`tg_frontend.Tensor.sigmoid`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Sigmoid()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.5   , 0.8808])
    """

    _method = Tensor.sigmoid


class LogSigmoid(Applied):
    """log(sigmoid(x)). See :meth:`tg_frontend.Tensor.logsigmoid`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LogSigmoid()(Tensor([0.0, 2.0])).round(4)
      Tensor([-0.6931, -0.1269])
    """

    _method = Tensor.logsigmoid


class Hardsigmoid(Applied):
    """x / 6 + 1 / 2 between 0 and 1. See :meth:`tg_frontend.Tensor.hardsigmoid`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Hardsigmoid()(Tensor([0.0, 4.0]))
      Tensor([0.5, 1. ])
    """

    _method = Tensor.hardsigmoid
    in_place = True
    positional = ()


class Hardswish(Applied):
    """x * relu6(x + 3) / 6. See :meth:`tg_frontend.Tensor.hardswish`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Hardswish()(Tensor([0.0, 4.0]))
      Tensor([0., 4.])
    """

    _method = Tensor.hardswish
    in_place = True


class Hardtanh(Applied):
    """x between two bounds, -1 and 1. See :meth:`tg_frontend.Tensor.hardtanh`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Hardtanh(-2, 2)(Tensor([0.0, 4.0]))
      Tensor([0., 2.])
    """

    _method = Tensor.hardtanh
    in_place = True


class Tanh(Applied):
    """The hyperbolic tangent. See :meth:`tg_frontend.Tensor.tanh`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Tanh()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.   , 0.964])
    """

    _method = Tensor.tanh


class Tanhshrink(Applied):
    """x - tanh(x). See :meth:`tg_frontend.Tensor.tanhshrink`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Tanhshrink()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.   , 1.036])
    """

    _method = Tensor.tanhshrink


class Softshrink(Applied):
    """x moved towards 0 by ``lambd`` (0.5), and 0 where it is nearer. See :meth:`tg_frontend.Tensor.softshrink`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softshrink()(Tensor([0.25, 2.0]))
      Tensor([0. , 1.5])
    """

    _method = Tensor.softshrink


class Hardshrink(Applied):
    """x, and 0 within ``lambd`` (0.5) of 0. See :meth:`tg_frontend.Tensor.hardshrink`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Hardshrink()(Tensor([0.25, 2.0]))
      Tensor([0., 2.])
    """

    _method = Tensor.hardshrink


class Softplus(Applied):
    """log(1 + exp(beta * x)) / beta. See :meth:`tg_frontend.Tensor.softplus`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softplus()(Tensor([0.0, 2.0])).round(4)
      Tensor([0.6931, 2.1269])
    """

    _method = functional.softplus


class Softsign(Applied):
    """x / (1 + abs(x)). See :meth:`tg_frontend.Tensor.softsign`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softsign()(Tensor([0.0, 3.0]))
      Tensor([0.  , 0.75])
    """

    _method = Tensor.softsign


class Threshold(Applied):
    """x where it is above ``threshold``, else ``value``. See :meth:`tg_frontend.Tensor.threshold`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Threshold(0.5, 20)(Tensor([0.25, 2.0]))
      Tensor([20.,  2.])
    """

    _method = Tensor.threshold
    in_place = True


class GLU(Applied):
    """The first half along an axis (the last), times the sigmoid of the second. See :meth:`tg_frontend.Tensor.glu`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GLU()(Tensor([4.0, 0.0]))
      Tensor([2.])
    """

    _method = Tensor.glu


class Softmax(Applied):
    """exp(x) over its sum along an axis (the last). See :func:`tg_frontend.nn.functional.softmax`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softmax(dim=0)(Tensor([1.0, 1.0]))
      Tensor([0.5, 0.5])
    """

    _method = functional.softmax
    positional = ("dim",)


class LogSoftmax(Applied):
    """The logarithm of softmax along an axis (the last). See :func:`tg_frontend.nn.functional.log_softmax`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.LogSoftmax(dim=0)(Tensor([1.0, 1.0])).round(4)
      Tensor([-0.6931, -0.6931])
    """

    _method = functional.log_softmax
    positional = ("dim",)


class Softmin(Applied):
    """softmax(-x) along an axis (the last). See :func:`tg_frontend.nn.functional.softmin`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Softmin(dim=0)(Tensor([1.0, 1.0]))
      Tensor([0.5, 0.5])
    """

    _method = functional.softmin
    positional = ("dim",)
