"""LOG, LOG2, LOG10, LOG1P and the inverse hyperbolic functions.

x = m * 2**e with sqrt(1/2) <= m < sqrt(2), so that log x = e * log 2 + log(1 + (m - 1)).
"""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import NamedTuple

from tg_dtype import to_bits
from tg_lazy import Ops

from .number import Format, Number, parts


class Base(NamedTuple):
    """The base of a logarithm.

    Attributes:
      one: 1 / log(base), and what is left of it beyond the double.
      two: log(2) / log(base), likewise.
    """

    one: tuple[float, float]
    two: tuple[float, float]


E = Base((1.0, 0.0), (0.6931471805599453, 2.3190468138462996e-17))
TWO = Base((1.4426950408889634, 2.0355273740931033e-17), (1.0, 0.0))
TEN = Base((0.4342944819032518, 1.098319650216765e-17), (0.3010299956639812, -2.8037281277851704e-18))
# (log(1 + f) - f) / f**2
_SINGLE = (
    0.0874502563625267, -0.14315046396624376, 0.14917933790205593, -0.16569582573199845, 0.19961986612159047,
    -0.25001786422164557, 0.3333395276843705, -0.4999999137216125,
)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2
_DOUBLE = (
    0.1479662343619266, 0.15313986875294933, 0.1818356666546809, 0.22222198531199905, 0.2857142874276543,
    0.39999999999413133, 0.6666666666666735,
)  # fmt: skip


def taken_apart(x: Number, f: Format) -> tuple[Number, Number]:
    """e, as a float, and m of a positive finite x."""
    small = x < 2.0 ** (1 - f.bias)
    lift = f.mantissa + 1.0
    bits = small.where(x * 2.0**lift, x).bitcast(f.signed)
    e = (bits - int(to_bits(sqrt(0.5), f.dtype))) >> f.mantissa
    m = (bits - (e << f.mantissa)).bitcast(f.dtype)
    return e.cast(f.dtype) + small.where(x.like(-lift), 0.0), m


def _log_near_1(m: Number, f: Format, base: Base) -> tuple[float, Number]:
    """log(1 + m) in a base as m times the first result, plus the second, which is small beside that."""
    high, rest = parts(*base.one, f.mantissa + 1)
    if f.single:
        square = m * m
        if base is E:
            return 1.0, square * m.series(_SINGLE)
        return high, square.fma(m.series([c * high for c in _SINGLE]), m * rest)
    s = m / (m + 2.0)
    z = s * s
    half_square = m * m * 0.5
    low = s * (half_square + z.series(_DOUBLE) * z)
    if base is E:
        return 1.0, low - half_square
    return high, (low - half_square).fma(high, m * rest)


def _valid(x: Number, finite: Number) -> Number:
    """The logarithm where x is finite and positive, else what it is there."""
    positive = (x < inf).where(finite, x)
    return (x > 0.0).where(positive, x.equals(0.0).where(x.like(-inf), nan))


def _sum(m: Number, factor: float, rest: Number) -> Number:
    return m + rest if factor == 1.0 else m.fma(factor, rest)


def log(x: Number, f: Format, base: Base = E) -> Number:
    """The logarithm of x."""
    e, m = taken_apart(x, f)
    m = m - 1.0
    factor, rest = _log_near_1(m, f, base)
    if base is TWO:
        return _valid(x, _sum(m, factor, rest) + e)
    high, low = parts(*base.two, f.mantissa - 8 if f.single else f.mantissa - 11)
    return _valid(x, e.fma(high, _sum(m, factor, e.fma(low, rest))))


def log1p(x: Number, f: Format) -> Number:
    """The logarithm of 1 + x."""
    u = f.leading(x + 1.0, 1)
    e, m = taken_apart(u, f)
    here = e.equals(0.0)
    # Near 1, where what the sum lost matters most, x itself is at hand.
    m = here.where(x, m - 1.0)
    lost = (x < 1.0).where(x - (u - 1.0), 1.0 - (u - x))
    _, rest = _log_near_1(m, f, E)
    high, low = parts(*E.two, f.mantissa - 8 if f.single else f.mantissa - 11)
    far = e.fma(high, m + (e.fma(low, rest) + lost / u))
    return _valid(u, here.where(m + rest, far))


def asinh(x: Number, f: Format) -> Number:
    """log(x + sqrt(x**2 + 1))."""
    size = f.size(x)
    large = size > 2.0 ** (f.mantissa // 2 + 2)
    square = size * size
    root = (square + 1.0).apply(Ops.SQRT)
    near = log1p(large.where(size - 1.0, size + square / (root + 1.0)), f)
    return f.signed_as(large.where(near + E.two[0], near), f.sign(x))


def acosh(x: Number, f: Format) -> Number:
    """log(x + sqrt(x**2 - 1))."""
    large = x > 2.0 ** (f.mantissa // 2 + 2)
    t = x - 1.0
    near = log1p(large.where(t, t + t.fma(t, t * 2.0).apply(Ops.SQRT)), f)
    return (x < 1.0).where(nan, large.where(near + E.two[0], near))


def atanh(x: Number, f: Format) -> Number:
    """log((1 + x) / (1 - x)) / 2."""
    size = f.size(x)
    twice, rest = size * 2.0, 1.0 - size
    inner = (size < 0.5).where(twice + twice * size / rest, twice / rest)
    return f.signed_as(log1p(inner, f) * 0.5, f.sign(x))
