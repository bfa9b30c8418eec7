"""Normalised exponentials."""

from __future__ import annotations

from ..array.array import A
from ..array.axes import axes_of, kept
from ..array.base import DTypeLike
from ..array.casts import floating, wide
from ..array.computing import copied
from ..autograd.functions import Max
from .elementary import exp, log
from .predicates import isinf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def below_maximum(x: A, *axes: int) -> tuple[A, A]:
    """This tensor less its maximum along axes, and the maximum; no gradient flows through the maximum."""
    highest = x.detach()._apply(Max(axes))
    highest = isinf(highest).where(0, highest)
    return x - highest, highest


def _softmax_axis(x: A, axis: int, what: str) -> tuple[A, int]:
    place = x._axis(axis, what)
    return floating(x.reshape((1,)) if x.ndim == 0 else x), place


def softmax(x: A, axis: int = -1, dtype: DTypeLike | None = None) -> A:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0, 2.0]).softmax().round(4)
      Tensor([0.09  , 0.2447, 0.6652])
    """
    floats, place = _softmax_axis(x if dtype is None else x.cast(dtype), axis, "softmax")
    return wide(floats, lambda floats: _softmax(floats, place)).reshape(x.shape)


def _softmax(x: A, axis: int) -> A:
    powers = exp(below_maximum(x, axis)[0])
    return powers * powers.sum(axis, keepdim=True).reciprocal()


def log_softmax(x: A, axis: int = -1, dtype: DTypeLike | None = None) -> A:
    """The logarithm of :meth:`softmax`, accurate where that is tiny.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0, 2.0]).log_softmax().round(4)
      Tensor([-2.4076, -1.4076, -0.4076])
    """
    floats, place = _softmax_axis(x if dtype is None else x.cast(dtype), axis, "log_softmax")
    return wide(floats, lambda floats: _log_softmax(floats, place)).reshape(x.shape)


def _log_softmax(x: A, axis: int) -> A:
    shifted = below_maximum(x, axis)[0]
    return shifted - log(exp(shifted).sum(axis, keepdim=True))


def softmin(x: A, axis: int = -1, dtype: DTypeLike | None = None) -> A:
    """:meth:`softmax` of -x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0, 2.0]).softmin().round(4)
      Tensor([0.6652, 0.2447, 0.09  ])
    """
    return softmax(-floating(x), axis, dtype)


def logsumexp(x: A, axis: int | Sequence[int] | None = None, keepdim: bool = False) -> A:
    """log(sum(exp(x))) along an axis or several (None: over everything), without overflow.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 0.0], [1000.0, 1000.0]]).logsumexp(1).round(4)
      Tensor([6.9309998e-01, 1.0006932e+03])
    """
    axes = axes_of(x, axis, "logsumexp")
    if axis is None and len(axes) > 1:
        out = logsumexp(x.flatten(), 0)
        return out.reshape((1,) * x.ndim) if keepdim else out
    if not axes:
        return copied(floating(x))
    return kept(wide(x, lambda x: _logsumexp(x, axes)), axes, keepdim)


def _logsumexp(x: A, axes: tuple[int, ...]) -> A:
    shifted, highest = below_maximum(x, *axes)
    return log(exp(shifted).sum(axes, keepdim=True)) + highest
