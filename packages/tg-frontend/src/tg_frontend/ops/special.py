"""Special functions."""

from __future__ import annotations

import math

from tg_lazy import Ops

from ..array.array import A
from ..array.casts import floating, wide
from ..array.operands import float_pair
from .elementary import elementary, log, sin, sqrt
from .elementwise import clip
from .predicates import isinf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def erf(x: A) -> A:
    """The error function.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).erf().round(4)
      Tensor([0.    , 0.8427])
    """
    return elementary(x, Ops.ERF)


def erfc(x: A) -> A:
    """1 less the error function, accurate where that is tiny.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).erfc().round(4)
      Tensor([1.    , 0.1573])
    """
    return elementary(x, Ops.ERFC)


def hypot(x: A, other: Any) -> A:
    """sqrt(x * x + other * other), without overflow; infinite where one is, be the other NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3.0]).hypot(Tensor([4.0]))
      Tensor([5.])
    """
    a, b = float_pair(x, other, "hypot")
    return wide(a, _hypot, b)


def _hypot(a: A, b: A) -> A:
    # The result does not depend on the scale, so nothing is differentiated at its kinks.
    great = a.abs().maximum(b.abs()).detach()
    nothing, infinite = great.eq(0), isinf(a) | isinf(b)
    plain = nothing | infinite
    scale = plain.where(1, great)
    c, d = plain.where(1, a) / scale, plain.where(1, b) / scale
    return infinite.where(math.inf, nothing.where(0, scale * sqrt(c * c + d * d)))


def sinc(x: A) -> A:
    """sin(pi * x) / (pi * x), 1 at 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.5]).sinc().round(4)
      Tensor([1.    , 0.6366])
    """
    return wide(x, _sinc)


def _sinc(x: A) -> A:
    near = x.abs() < 1e-3  # where the series has all digits, and the quotient's gradient would be 0 / 0
    angle = near.where(1, x) * math.pi
    part = near.where(x, 0) * math.pi
    square = part * part
    return near.where(1 - square * (1 / 6) + square * square * (1 / 120), sin(angle) / angle)


def logit(x: A, eps: float | None = None) -> A:
    """log(x / (1 - x)), the inverse of the sigmoid; NaN outside of 0 to 1.

    Args:
      eps: take x as at least that and at most 1 less it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 0.75]).logit().round(4)
      Tensor([0.    , 1.0986])
    """

    def odds(x: A) -> A:
        x = x if eps is None else clip(x, eps, 1 - eps)
        return log(x / (1 - x))

    return wide(x, odds)


def xlogy(x: A, other: Any) -> A:
    """x * log(other), 0 where x is 0 unless other is NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0]))
      Tensor([0., 0.])
    """
    a, b = float_pair(x, other, "xlogy")
    return wide(a, _xlogy, b)


def _xlogy(a: A, b: A) -> A:
    nothing = a.eq(0) & ((b <= 0) | isinf(b))
    return nothing.where(0, a * log(nothing.where(1, b)))


def deg2rad(x: A) -> A:
    """Degrees as radians.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([180.0]).deg2rad().round(4)
      Tensor([3.1416])
    """
    return floating(x) * (math.pi / 180)


def rad2deg(x: A) -> A:
    """Radians as degrees.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3.14159265]).rad2deg().round(2)
      Tensor([180.])
    """
    return floating(x) * (180 / math.pi)
