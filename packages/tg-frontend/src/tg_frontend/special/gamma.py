"""The gamma function's logarithm, its derivatives, and Hurwitz's zeta function, of which these are made."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from ..array.array import A
from ..ops.elementary import log, sin, tan
from ..ops.predicates import isinf
from ..ops.rounding import ceil, round
from . import approximations as fits
from .pointwise import evaluated, pointwise, pointwise_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DIGAMMA_ZERO = (1.46142578125, 0.00020636371836234126)
"""The zero of digamma, whose first part has few bits."""


def lgamma(x: A) -> A:
    """The logarithm of the gamma function's magnitude; infinite at 0, -1, -2, ….

    Below -2, where it has zeros, the error is relative to the larger of the result and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 1.0, 5.0]).lgamma().round(4)
      Tensor([0.5724, 0.    , 3.1781])
    """
    return pointwise("lgamma", _lgamma, digamma, x)


def digamma(x: A) -> A:
    """The derivative of :func:`lgamma`; -inf at 0, inf at -0.0, NaN at -1, -2, ….

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 1.0, 5.0]).digamma().round(4)
      Tensor([-1.9635, -0.5772,  1.5061])
    """
    return pointwise("digamma", _digamma, lambda x: polygamma(x, 1), x)


def polygamma(x: A, n: int) -> A:
    """The n-th derivative of :func:`digamma`; infinite at 0, -1, -2, ….

    Raises:
      ValueError: if ``n`` is negative.
      TypeError: if ``n`` is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 1.0, 5.0]).polygamma(1).round(4)
      Tensor([4.9348, 1.6449, 0.2213])
    """
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"polygamma: the order is an integer, got {n!r}")
    if n < 0:
        raise ValueError(f"polygamma: the order is 0 or more, got {n}")
    if n == 0:
        return digamma(x)
    return pointwise("polygamma", lambda x: _polygamma(x, n), lambda x: polygamma(x, n + 1), x)


def mvlgamma(x: A, p: int) -> A:
    """The logarithm of the multivariate gamma function of dimension ``p``, for elements above (p - 1) / 2.

    Raises:
      ValueError: if ``p`` is below 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 5.0]).mvlgamma(2).round(4)
      Tensor([1.1447, 6.2042])
    """
    if p < 1:
        raise ValueError(f"mvlgamma: the dimension is 1 or more, got {p}")
    out = lgamma(x) + p * (p - 1) / 4 * math.log(math.pi)
    for j in range(1, p):
        out = out + lgamma(x - j / 2)
    return out


def zeta(x: A, other: Any) -> A:
    """Hurwitz's zeta function: the sum of (other + k) ** -x over k = 0, 1, 2, …; there is a gradient by ``other`` only.

    Infinite where x is 1 and at poles, which are the integers below 1; NaN where x is below 1, and where other is
    negative and x is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import zeta
      >>> zeta(Tensor([2.0, 4.0]), 1.0).round(4)
      Tensor([1.6449, 1.0823])
    """
    return pointwise_pair("zeta", _zeta, (None, lambda s, q: zeta(s + 1, q) * -s), x, other)


# *** the algorithms ***


def _from_integer(x: A) -> A:
    """How far a number is from the nearest integer: exact."""
    return x - round(x)


def _lgamma(x: A) -> A:
    positive = x > 0
    mirrored = positive.where(x, 1 - x)
    small = x.abs() < 0.5  # lgamma(x) = lgamma(1 + x) - log(x)
    y = small.where(1 + x, mirrored)
    near = (y - 1) * (y - 2)
    middle = (y < 3).where(evaluated(fits.LGAMMA_2, y), evaluated(fits.LGAMMA_3, y))
    part = near.eq(0).where(0, near) * (y < 1.5).where(evaluated(fits.LGAMMA_1, y), middle)
    big = (y >= 8).where(y, 8)
    inverse = big.reciprocal()
    rest = evaluated(fits.LGAMMA_REST, inverse * inverse) * inverse
    stirling = (big - 0.5) * (log(big) - 1) + (rest + (math.log(2 * math.pi) - 1) / 2)
    found = (y < 8).where(part, stirling)
    wave = sin(_from_integer(x) * math.pi).abs()
    reflected = log(math.pi / small.where(1, wave)) - found
    out = small.where(found - log(small.where(x, 1).abs()), positive.where(found, reflected))
    return isinf(x).where(math.inf, out)


def _digamma(x: A) -> A:
    positive = x > 0
    mirrored = positive.where(x, 1 - x)
    low = mirrored < 1
    y = low.where(mirrored + 1, mirrored)
    high, rest = DIGAMMA_ZERO
    first = ((y - high) - rest) * evaluated(fits.DIGAMMA_1, y)
    part = (y < 2.5).where(first, evaluated(fits.DIGAMMA_2, y))
    big = (y >= 8).where(y, 8)
    inverse = big.reciprocal()
    square = inverse * inverse
    asymptotic = log(big) - (inverse * 0.5 + square * evaluated(fits.DIGAMMA_REST, square))
    found = (y < 8).where(part, asymptotic)
    found = low.where(found - low.where(mirrored, 1).reciprocal(), found)
    away = _from_integer(x)
    pole = away.eq(0) & (x < 0)
    turned = found - math.pi / tan(away * math.pi)
    out = positive.where(found, pole.where(math.nan, turned))
    return x.eq(0).where(-x.reciprocal(), out)


@cache
def bernoulli(count: int) -> tuple[float, ...]:
    """B(2 j) / (2 j)! for j = 1, 2, …"""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        total = sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0))
        numbers.append(-total / (m + 1))
    return tuple(float(numbers[2 * j] / math.factorial(2 * j)) for j in range(1, count + 1))


def _hurwitz(s: A | int, q: A) -> A:
    """The zeta function for s > 1 and q > 0: the first terms, and Euler and Maclaurin's formula for the rest."""
    count, corrections = (10, 10) if q.dtype.itemsize == 8 else (6, 5)
    near = q < 32 + s  # else the formula does without the first terms
    end = near.where(q + count, q)
    inverse = end.reciprocal()
    series = inverse * 0.5 + 1 / (s - 1)
    term = inverse * inverse * s
    for j, factor in enumerate(bernoulli(corrections), 1):
        series = series + term * factor
        term = term * (s + (2 * j - 1)) * (s + 2 * j) * inverse * inverse
    scale = end ** (1 - s)
    out = scale.eq(0).where(0, series) * scale
    for k in range(count - 1, -1, -1):
        out = out + near.where((q + k) ** -s, 0)
    return out


def _zeta(x: A, q: A) -> A:
    usual = x > 1
    s = usual.where(x, 2)
    below = q < 0
    away = q - q.floor()  # of a negative q: the sum over all integers, from both sides, less what is above it
    right = _hurwitz(s, below.where(away, q))
    left = _hurwitz(s, below.where(ceil(q) - q, 1)) - _hurwitz(s, below.where(1 - q, 1))
    odd = (s * 0.5 - (s * 0.5).floor()).ne(0)
    out = below.where(right + odd.where(-left, left), right)
    out = (below & (s - s.floor()).ne(0)).where(math.nan, out)
    out = ((q <= 0) & away.eq(0)).where(math.inf, out)
    return usual.where(out, x.eq(1).where(math.inf, math.nan))


@cache
def cotangent_slope(n: int) -> tuple[float, ...]:
    """The n-th derivative of cot, over (1 + cot**2): a polynomial in cot, the constant first."""
    found = [-1]
    for _ in range(n - 1):
        # d/dx of (1 + c**2) p(c) is -(1 + c**2) (2 c p + (1 + c**2) p')
        slope = [k * c for k, c in enumerate(found)][1:]
        new = [0] * (len(found) + 1)
        for k, c in enumerate(found):
            new[k + 1] -= 2 * c
        for k, c in enumerate(slope):
            new[k] -= c
            new[k + 2] -= c
        found = new
    return tuple(float(c) for c in found)


def _polygamma(x: A, n: int) -> A:
    positive = x > 0
    found = _hurwitz(n + 1, positive.where(x, 1 - x)) * (math.factorial(n) * (-1.0) ** (n + 1))
    angle = positive.where(0.5, _from_integer(x)) * math.pi
    cotangent = 1 / tan(angle)
    series = cotangent * 0
    for coefficient in reversed(cotangent_slope(n)):
        series = series * cotangent + coefficient
    # polygamma(n, 1 - x) - (-1)**n polygamma(n, x) = (-1)**n pi d^n/dx^n cot(pi x)
    turned = found * (-1.0) ** n - (1 / sin(angle)) ** 2 * series * math.pi ** (n + 1)
    pole = (x <= 0) & _from_integer(x).eq(0)
    return pole.where(math.inf * (-1.0) ** (n + 1), positive.where(found, turned))
