"""Functions that draw random numbers: elements and channels dropped, slopes, choices."""

from __future__ import annotations

import math

from tg_shape import sint

from ...tensor import Tensor

_SATURATED = -1.7580993408473766
"""What SELU tends to for low numbers: minus its scale times its alpha (Klambauer et al. 2017)."""

_LEAST = 1e-20  # below which a random number is not taken, so that it has a logarithm


def probability(p: float, what: str) -> None:
    """Sees to it that a number is a probability.

    Raises:
      TypeError: if it is no number.
      ValueError: if it is below 0 or above 1.

    Example:
      >>> from tg_frontend.nn.functional.dropping import probability
      >>> probability(1.5, "dropout")
      Traceback (most recent call last):
      ...
      ValueError: dropout: 1.5 is not a probability
    """
    if not hasattr(p, "__float__") or (isinstance(p, Tensor) and p.numel() != 1):
        raise TypeError(f"{what}: {p!r} is not a probability, but a {type(p).__name__}")
    if not 0 <= p <= 1:
        raise ValueError(f"{what}: {p!r} is not a probability")


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """In training: elements dropped (0) with probability ``p``, the others over 1 - p.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> sorted(set(F.dropout(Tensor.ones(1000)).tolist()))
      [0.0, 2.0]
    """
    return x.dropout(p, training)


def _dropped(x: Tensor, p: float, training: bool, unbatched: int, what: str) -> Tensor:
    probability(p, what)
    if x.ndim not in (unbatched, unbatched + 1):
        raise ValueError(f"{what}: input of shape {x.shape}; {unbatched} or {unbatched + 1} axes are wanted")
    lead = x.shape[:1] if x.ndim == unbatched else x.shape[:2]
    kept = Tensor.ones(*lead, *(1,) * (x.ndim - len(lead)), dtype=x.dtype, device=x.device)
    return x * kept.dropout(p, training)


def dropout1d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """In training: whole channels dropped with probability ``p``, of shape ([batch,] channels, length).

    Raises:
      ValueError: if ``p`` is not between 0 and 1, or the input has another number of axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> sorted(set(F.dropout1d(Tensor.ones(9, 9, 2)).sum(2).flatten().tolist()))
      [0.0, 4.0]
    """
    return _dropped(x, p, training, 2, "dropout1d")


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """In training: whole channels dropped with probability ``p``, of shape (batch, channels, [height,] width).

    Raises:
      ValueError: if ``p`` is not between 0 and 1, or the input has another number of axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> sorted(set(F.dropout2d(Tensor.ones(9, 9, 2, 1)).sum(2).flatten().tolist()))
      [0.0, 4.0]
    """
    if x.ndim == 3:  # (batch, channels, length), as PyTorch takes it
        return _dropped(x, p, training, 2, "dropout2d")
    return _dropped(x, p, training, 3, "dropout2d")


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """In training: whole channels dropped with probability ``p``, of shape ([batch,] channels, depth, height, width).

    Raises:
      ValueError: if ``p`` is not between 0 and 1, or the input has another number of axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> sorted(set(F.dropout3d(Tensor.ones(9, 9, 2, 1, 1)).sum(2).flatten().tolist()))
      [0.0, 4.0]
    """
    return _dropped(x, p, training, 4, "dropout3d")


def _alpha_dropped(x: Tensor, p: float, training: bool, shape: tuple[sint, ...]) -> Tensor:
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    kept = Tensor.rand(*shape, device=x.device) >= p
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SATURATED**2))
    return kept.where(x, _SATURATED) * scale - scale * _SATURATED * p


def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """In training: elements replaced by SELU's lowest value with probability ``p``; mean 0 and variance 1 stay so.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> len(set(F.alpha_dropout(Tensor.ones(1000), training=True).tolist()))
      2
    """
    probability(p, "alpha_dropout")
    return _alpha_dropped(x, p, training, x.shape)


def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """:func:`alpha_dropout` of whole channels, of shape (batch, channels, ...).

    Raises:
      ValueError: if ``p`` is not between 0 and 1, or in training the input has fewer than 2 axes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.feature_alpha_dropout(Tensor.ones(2, 3, 4)).shape
      (2, 3, 4)
    """
    probability(p, "feature_alpha_dropout")
    if training and x.ndim < 2:
        raise ValueError(f"feature_alpha_dropout: input of shape {x.shape} has no axis of channels")
    return _alpha_dropped(x, p, training, (*x.shape[:2], *(1,) * (x.ndim - 2)))


def rrelu(x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """x, times a slope below 0: a random one between two bounds in training, else their mean (Xu et al. 2015).

    Raises:
      ValueError: if the lower bound is above the upper.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.rrelu(Tensor([-1.0, 2.0]), 0.25, 0.75)
      Tensor([-0.5,  2. ])
    """
    if not lower <= upper:
        raise ValueError(f"rrelu: lower {lower!r} is above upper {upper!r}")
    if not training:
        return x.leaky_relu((lower + upper) / 2)
    slopes = Tensor.uniform(*x.shape, low=lower, high=upper, device=x.device, dtype=x.dtype)
    return (x >= 0).where(x, x * slopes)


def gumbel_softmax(
    x: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Softmax of x with noise of a Gumbel distribution: choices that have a gradient (Jang et al. 2017).

    Args:
      tau: the temperature.
      hard: a single 1 in the result; the gradient is that of the soft choice.
      eps: of no effect, as in PyTorch.
      dim: the axis of choices.

    Raises:
      ValueError: if ``tau`` is not positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.gumbel_softmax(Tensor.zeros(5, 3), hard=True).sum(-1)
      Tensor([1., 1., 1., 1., 1.])
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau {tau!r} is not positive")
    exponential = -Tensor.rand(*x.shape, device=x.device).maximum(_LEAST).log()
    noise = -exponential.maximum(_LEAST).log()
    soft = ((x + noise.cast(x.dtype)) / tau).softmax(dim)
    if not hard:
        return soft
    choices = soft.argmax(dim, keepdim=True)
    one = Tensor.zeros(*x.shape, dtype=x.dtype, device=x.device).scatter(dim, choices, 1.0)
    return one + (soft - soft.detach())
