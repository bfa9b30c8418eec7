"""The incomplete gamma functions, regularised: P grows from 0 to 1, and Q is 1 less P.

Where x is small beside a, P's power series; elsewhere Q's continued fraction; for large a the integral itself, by
Gauss and Legendre's quadrature up to where the integrand vanishes. The other one of the two is 1 less what is found.
"""

from __future__ import annotations

import math
from functools import cache

from ..array.array import A
from ..ops.elementary import exp, log, log1p, sqrt
from . import approximations as fits
from .gamma import _lgamma, lgamma
from .pointwise import evaluated, pointwise_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGE = 24.0
"""From which on the integral is computed by quadrature."""


def igamma(x: A, other: Any) -> A:
    """The lower incomplete gamma function of x at ``other``, over gamma(x). There is a gradient by ``other`` only.

    Far in the tail below x errors are relative to the result, else to 1. NaN where one is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).igamma(Tensor([1.0, 1.0])).round(4)
      Tensor([0.6321, 0.2642])
    """
    return pointwise_pair("igamma", lambda a, x: _parts(a, x)[0], (None, _density), x, other)


def igammac(x: A, other: Any) -> A:
    """The upper incomplete gamma function of x at ``other``, over gamma(x): 1 less :meth:`igamma`.

    Far in the tail above x errors are relative to the result, else to 1. NaN where one is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).igammac(Tensor([1.0, 1.0])).round(4)
      Tensor([0.3679, 0.7358])
    """
    return pointwise_pair("igammac", lambda a, x: _parts(a, x)[1], (None, lambda a, x: -_density(a, x)), x, other)


def _density(a: A, x: A) -> A:
    return exp((a - 1) * log(x) - x - lgamma(a))


# *** the algorithms ***


@cache
def legendre_nodes(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss and Legendre's quadrature from 0 to 1, by Newton's method."""
    found = []
    for k in range(count):
        node = math.cos(math.pi * (k + 0.75) / (count + 0.5))
        slope = 1.0
        for _ in range(50):
            before, now = 1.0, node
            for j in range(1, count):
                before, now = now, ((2 * j + 1) * node * now - j * before) / (j + 1)
            slope = count * (before - node * now) / (1 - node * node)
            node -= now / slope
        found.append(((1 + node) / 2, 1 / ((1 - node * node) * slope * slope)))
    return tuple(found)


def _prefactor(a: A, x: A) -> A:
    """x**a * exp(-x) / gamma(a + 1)."""
    great = a >= 8
    b = great.where(a, 8)
    off = (x - b) / b
    close = (off > -0.5) & (off < 1)
    near = close.where(off, 0)
    rest = close.where(near * near * evaluated(fits.LOG_REST, near), off - log(close.where(1, x / b)))
    inverse = b.reciprocal()
    correction = evaluated(fits.LGAMMA_REST, inverse * inverse) * inverse
    stirling = exp(-(b * rest + correction)) * sqrt(inverse * (1 / (2 * math.pi)))
    small = great.where(1, a)
    direct = exp(small * log(x) - x - _lgamma(small + 1))
    return great.where(stirling, direct)


def _series(a: A, x: A) -> A:
    """P over the prefactor, for x below a + 1 and a below LARGE."""
    out = x * 0 + 1
    for k in range(110 if x.dtype.itemsize == 8 else 60, 0, -1):
        out = out * x / (a + k) + 1
    return out


def _fraction(a: A, x: A) -> A:
    """Q over the prefactor, for x from max(1, a + 1) on."""
    count = 110 if x.dtype.itemsize == 8 else 30
    out = x + (2 * count + 1) - a
    for k in range(count, 0, -1):
        out = x + (2 * k - 1) - a - (k - a) * k / out
    return a / out


def _quadrature(a: A, x: A) -> tuple[A, A]:
    """P and Q over the prefactor, each where it is the lesser one, for a from LARGE on."""
    wide = x.dtype.itemsize == 8
    depth = 42.0 if wide else 22.0
    below = x < a - 1
    slope = (a - 1 - x).abs()
    reach = 2 * depth / (slope + sqrt(slope * slope + (a - 1) * (2 * depth)))
    end = below.where((reach < 1).where(reach, 1), reach * 1.7)
    sign = below.where(-1, 1)
    total = x * 0
    for node, weight in legendre_nodes(40 if wide else 20):
        s = end * node * sign
        total = total + exp((a - 1) * log1p((s <= -1).where(-0.9999999, s)) - x * s) * weight
    found = total * end * a
    return below.where(found, 0), below.where(0, found)


def _parts(a: A, x: A) -> tuple[A, A]:
    """P and Q."""
    usual = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    b, y = usual.where(a, 1), usual.where(x, 1)
    large = b >= LARGE
    few = large.where(1, b)
    rising = (y < few + 1) | (y < 1)
    factor = _prefactor(b, y)
    lower = factor * _series(few, rising.where(y, 1))
    upper = factor * _fraction(few, (large | rising).where(few + 2, y))
    left, right = _quadrature(large.where(b, LARGE), y)
    is_lower = large.where(y < b - 1, rising)
    p = large.where(factor * left, lower)
    q = large.where(factor * right, upper)
    p, q = is_lower.where(p, 1 - q), is_lower.where(1 - p, q)
    p, q = (p < 1).where(p, 1), (q < 1).where(q, 1)
    all_ = (x > 0) & (a < math.inf) & (a >= 0) & (a.eq(0) | x.eq(math.inf))
    none = (a > 0) & (x >= 0) & (x < math.inf) & (x.eq(0) | a.eq(math.inf))
    p = usual.where(p, all_.where(1, none.where(0, math.nan)))
    q = usual.where(q, all_.where(0, none.where(1, math.nan)))
    return p, q
