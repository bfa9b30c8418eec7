"""What is made of the error function: its inverse, its scaled complement, and the normal distribution."""

from __future__ import annotations

import math

from ..array.array import A
from ..ops.elementary import exp, log, log1p, sqrt, square
from ..ops.predicates import isnan
from ..ops.special import erf, erfc
from . import approximations as fits
from .pointwise import evaluated, pointwise, squared

_ROOT_TWO = math.sqrt(2)


def erfinv(x: A) -> A:
    """The inverse of the error function: infinite at -1 and 1, NaN outside.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.5, 1.0]).erfinv().round(4)
      Tensor([0.    , 0.4769,    inf])
    """
    return pointwise("erfinv", _erfinv, lambda x: exp(square(erfinv(x))) * (math.sqrt(math.pi) / 2), x)


def erfcx(x: A) -> A:
    """exp(x * x) * erfc(x), which neither overflows nor vanishes for great x.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import erfcx
      >>> erfcx(Tensor([0.0, 1.0, 30.0])).round(4)
      Tensor([1.    , 0.4276, 0.0188])
    """
    return pointwise("erfcx", _erfcx, lambda x: x * erfcx(x) * 2 - 2 / math.sqrt(math.pi), x)


def ndtr(x: A) -> A:
    """The distribution function of the normal distribution: the probability of less than x.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import ndtr
      >>> ndtr(Tensor([-1.0, 0.0, 1.0])).round(4)
      Tensor([0.1587, 0.5   , 0.8413])
    """
    return pointwise("ndtr", _ndtr, _density, x)


def log_ndtr(x: A) -> A:
    """The logarithm of :func:`ndtr`, also where that is 0 or 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import log_ndtr
      >>> log_ndtr(Tensor([-100.0, 0.0])).round(4)
      Tensor([-5.0055244e+03, -6.9309998e-01])
    """
    return pointwise("log_ndtr", _log_ndtr, lambda x: math.sqrt(2 / math.pi) / erfcx(x * (-1 / _ROOT_TWO)), x)


def ndtri(x: A) -> A:
    """The inverse of :func:`ndtr`: infinite at 0 and 1, NaN outside.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import ndtri
      >>> ndtri(Tensor([0.0, 0.025, 0.5])).round(2)
      Tensor([ -inf, -1.96,  0.  ])
    """
    return pointwise("ndtri", _ndtri, lambda x: exp(square(ndtri(x)) * 0.5) * math.sqrt(2 * math.pi), x)


# *** the algorithms ***


def _density(x: A) -> A:
    return exp(square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))


def _erfinv(x: A) -> A:
    inside = x.abs() < 1
    y = inside.where(x, 0)
    w = -log((1 - y) * (1 + y))
    w = (y.abs() < 0.5).where(-log1p(-y * y), w)
    found = y * (w < 5).where(evaluated(fits.ERFINV_1, w), evaluated(fits.ERFINV_2, sqrt(w)))
    return inside.where(found, x.abs().eq(1).where(x * math.inf, math.nan))


def _scaled(x: A) -> A:
    """erfcx for x >= 0."""
    return evaluated(fits.ERFCX, 1 - 8 / (x + 4)) * 0.5 / (x + 0.5)


def _erfcx(x: A) -> A:
    scaled = _scaled(x.abs())
    whole, rest = squared((x < 0).where((x < -60).where(-60, x), 0))
    return (x < 0).where(exp(whole) * exp(rest) * 2 - scaled, scaled)


def _above(size: A) -> A:
    """The probability of more than ``size`` >= 0."""
    size = (size < 40).where(size, 40)
    whole, rest = squared(size)
    return exp(whole * -0.5) * exp(rest * -0.5) * _scaled(size * (1 / _ROOT_TWO)) * 0.5


def _ndtr(x: A) -> A:
    size = x.abs()
    tail = _above(size)
    near = erf(x * (1 / _ROOT_TWO)) * 0.5 + 0.5
    out = (size < 0.5).where(near, (x < 0).where(tail, 1 - tail))
    return isnan(x).where(x, out)


def _log_ndtr(x: A) -> A:
    below = x < -1
    far = (below & (x > -math.inf)).where(x, -1)
    tail = log(_scaled(far * (-1 / _ROOT_TWO)) * 0.5) - far * far * 0.5
    above = x > 1
    rest = above.where(_above(above.where(x, 1)), erfc((below | above).where(0, x) * (1 / _ROOT_TWO)) * 0.5)
    out = x.eq(-math.inf).where(-math.inf, below.where(tail, log1p(-rest)))
    return isnan(x).where(x, out)


def _ndtri(p: A) -> A:
    inside = (p > 0) & (p < 1)
    q = inside.where(p, 0.5)
    upper = q > 0.5
    small = upper.where(1 - q, q)
    tail = small < 0.1
    r = sqrt(log(tail.where(small, 0.1)) * -2)
    far = r * (r < 6).where(evaluated(fits.NDTRI_1, r), evaluated(fits.NDTRI_2, r.reciprocal()))
    middle = tail.where(0, q * 2 - 1)
    out = tail.where(upper.where(far, -far), _erfinv(middle) * _ROOT_TWO)
    edge = p.eq(0).where(-math.inf, p.eq(1).where(math.inf, math.nan))
    return inside.where(out, edge)
