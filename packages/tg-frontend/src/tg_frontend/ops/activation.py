"""Functions between layers."""

from __future__ import annotations

import math

from ..array.array import A
from ..array.casts import floating, wide
from ..array.ingest import value_of
from ..autograd.functions import Relu, Sigmoid, Softplus
from .elementary import expm1, tanh
from .elementwise import clip
from .special import erf


def relu(x: A) -> A:
    """max(x, 0); the gradient at 0 is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).relu()
      Tensor([0., 0., 2.])
    """
    return x._apply(Relu())


def relu6(x: A) -> A:
    """x between 0 and 6; the gradient at either bound is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-3.0, 0.5, 8.0]).relu6()
      Tensor([0. , 0.5, 6. ])
    """
    return (x <= 0).where(0, (x >= 6).where(6, x))


def sigmoid(x: A) -> A:
    """1 / (1 + exp(-x)).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).sigmoid().round(4)
      Tensor([0.2689, 0.5   , 0.8808])
    """
    return floating(x)._apply(Sigmoid())


def logsigmoid(x: A) -> A:
    """log(sigmoid(x)), accurate where that is tiny.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).logsigmoid().round(4)
      Tensor([-1.3133, -0.6931, -0.1269])
    """
    return -softplus(-floating(x))


def hardsigmoid(x: A, alpha: float = 1 / 6, beta: float = 0.5) -> A:
    """alpha * x + beta between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).hardsigmoid().round(4)
      Tensor([0.3333, 0.5   , 0.8333])
    """
    # the sum is exact near its zero; alpha has been rounded
    line = (x + beta / alpha) * alpha if alpha else x * alpha + beta
    return clip(line, 0, 1)


def hardswish(x: A) -> A:
    """x * relu6(x + 3) / 6.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).hardswish().round(4)
      Tensor([-0.3333,  0.    ,  1.6667])
    """
    x = floating(x)
    near = (x <= -3).where(-3, (x >= 3).where(3, x))
    return (x >= 3).where(x, near * (near + 3) * (1 / 6))


def hardtanh(x: A, min_val: float = -1.0, max_val: float = 1.0) -> A:
    """x between two bounds; of integers, those are truncated.

    Raises:
      ValueError: if the lower bound is above the upper one.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-2.0, 0.5]).hardtanh()
      Tensor([-1. ,  0.5])
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} is greater than max_val {max_val}")
    if x.dtype.kind != "float":
        return clip(x, int(min_val), int(max_val))
    return clip(x, min_val, max_val)


def leaky_relu(x: A, neg_slope: float = 0.01) -> A:
    """x, times ``neg_slope`` up to 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).leaky_relu().round(4)
      Tensor([-0.01,  0.  ,  2.  ])
    """
    x = floating(x)
    return (x > 0).where(x, x * neg_slope)


def elu(x: A, alpha: float = 1.0) -> A:
    """x, and alpha * (exp(x) - 1) up to 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).elu().round(4)
      Tensor([-0.6321,  0.    ,  2.    ])
    """
    x = floating(x)
    above = x > 0
    return above.where(x, expm1(above.where(0, x)) * alpha)


def celu(x: A, alpha: float = 1.0) -> A:
    """x, and alpha * (exp(x / alpha) - 1) up to 0.

    Raises:
      ValueError: if alpha is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).celu().round(4)
      Tensor([-0.6321,  0.    ,  2.    ])
    """
    if alpha == 0:
        raise ValueError("celu: alpha is 0, by which x would be divided")
    x = floating(x)
    above = x > 0
    return above.where(x, expm1(above.where(0, x) / alpha) * alpha)


def selu(x: A, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> A:
    """gamma * elu(x, alpha).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).selu().round(4)
      Tensor([-1.1113,  0.    ,  2.1014])
    """
    return elu(x, alpha) * gamma


def gelu(x: A, approximate: str = "tanh") -> A:
    """x times the normal distribution function of x.

    Args:
      approximate: ``"tanh"`` for the usual approximation, ``"none"`` for the error function.

    Raises:
      ValueError: if it is neither.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).gelu().round(4)
      Tensor([-0.1588,  0.    ,  1.9546])
    """
    if approximate == "none":
        return wide(x, lambda x: x * 0.5 * (erf(x * math.sqrt(0.5)) + 1))
    if approximate != "tanh":
        raise ValueError(f"gelu: approximate {approximate!r}; there are 'tanh' and 'none'")
    # (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where tanh is near -1. From x = 100 on the sigmoid is 0
    # or 1 whatever the square is, which would be infinite for large x, and its gradient NaN.
    return wide(x, lambda x: x * sigmoid(x * math.sqrt(8 / math.pi) * ((x * x).minimum(1e4) * 0.044715 + 1)))


def quick_gelu(x: A) -> A:
    """x * sigmoid(1.702 * x).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).quick_gelu().round(4)
      Tensor([-0.1542,  0.    ,  1.9357])
    """
    return wide(x, lambda x: x * sigmoid(x * 1.702))


def silu(x: A) -> A:
    """x * sigmoid(x).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).silu().round(4)
      Tensor([-0.2689,  0.    ,  1.7616])
    """
    return wide(x, lambda x: x * sigmoid(x))


def swish(x: A) -> A:
    """The same as :meth:`silu`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).swish().round(4)
      Tensor([-0.2689,  0.    ,  1.7616])
    """
    return silu(x)


def mish(x: A) -> A:
    """x * tanh(softplus(x)).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).mish().round(4)
      Tensor([-0.3034,  0.    ,  1.944 ])
    """
    return wide(x, lambda x: x * tanh(softplus(x)))


def softplus(x: A, beta: float = 1.0, threshold: float | None = None) -> A:
    """log(1 + exp(beta * x)) / beta, without overflow.

    Args:
      threshold: where beta * x is above it, x itself is taken; nowhere if it is not given (PyTorch takes 20).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).softplus().round(4)
      Tensor([0.3133, 0.6931, 2.1269])
    """
    if beta == 1:
        out = floating(x)._apply(Softplus())
    else:
        out = wide(x, lambda x: (x * beta)._apply(Softplus()) / beta)
    return out if threshold is None else (x * beta > threshold).where(x, out)


def softsign(x: A) -> A:
    """x / (1 + abs(x)).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 1.0]).softsign()
      Tensor([-0.5,  0. ,  0.5])
    """
    x = floating(x)
    return x / (x.abs() + 1)


def glu(x: A, dim: int = -1) -> A:
    """The first half along an axis, times the sigmoid of the second (Dauphin et al. 2017).

    Raises:
      ValueError: if the axis is of no even size.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([4.0, 6.0, 0.0, 0.0]).glu()
      Tensor([2., 3.])
    """
    axis = x._axis(dim, "glu")
    if x.ndim == 0 or value_of(x.shape[axis], x.shape) % 2:
        raise ValueError(f"glu: axis {dim} of shape {x.shape} has no two halves")
    value, gate = x.split(value_of(x.shape[axis], x.shape) // 2, axis) if x.shape[axis] != 0 else (x, x)
    return value * sigmoid(gate)


def tanhshrink(x: A) -> A:
    """x - tanh(x).

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).tanhshrink().round(4)
      Tensor([-0.2384,  0.    ,  1.036 ])
    """
    return wide(x, lambda x: x - tanh(x))


def softshrink(x: A, lambd: float = 0.5) -> A:
    """x moved towards 0 by ``lambd``, and 0 where it is nearer.

    Raises:
      ValueError: if ``lambd`` is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.25, 2.0]).softshrink()
      Tensor([-0.5,  0. ,  1.5])
    """
    if not lambd >= 0:
        raise ValueError(f"softshrink: lambd {lambd!r} is negative")
    x = floating(x)
    return (x > lambd).where(x - lambd, (x < -lambd).where(x + lambd, x * 0))


def hardshrink(x: A, lambd: float = 0.5) -> A:
    """x, and 0 within ``lambd`` of 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.25, 2.0]).hardshrink()
      Tensor([-1.,  0.,  2.])
    """
    x = floating(x)
    return (x.abs() <= lambd).where(0, x)


def threshold(x: A, threshold: float, value: float) -> A:
    """x where it is above the threshold, else ``value``.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.25, 2.0]).threshold(0.5, 20)
      Tensor([20., 20.,  2.])
    """
    return (x <= threshold).where(value, x)


def prelu(x: A, weight: A) -> A:
    """x, times ``weight`` up to 0.

    Args:
      weight: one number, or one for each position along axis 1.

    Raises:
      ValueError: if there are as many weights as neither.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-1.0, 0.0, 2.0]).prelu(Tensor([0.25]))
      Tensor([-0.25,  0.  ,  2.  ])
    """
    if weight.ndim > 1 or (weight.numel() != 1 and (x.ndim < 2 or weight.shape != (x.shape[1],))):
        raise ValueError(f"prelu: weights of shape {weight.shape} for shape {x.shape}: one, or one a channel")
    slope = weight.reshape(()) if weight.numel() == 1 else weight.reshape((-1,) + (1,) * (x.ndim - 2))
    return (x > 0).where(x, x * slope)
