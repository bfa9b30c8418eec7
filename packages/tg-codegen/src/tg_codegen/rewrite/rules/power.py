"""POW: 2**(y * log2 x), with the logarithm as the sum of two floats."""

from __future__ import annotations

from math import inf, nan

from tg_lazy import Ops

from .exponential import exp_reduced, nearest, scaled
from .logarithm import taken_apart
from .number import Format, Number, parts

_TWO_OVER_LOG_2 = (2.8853900817779268, 4.0710547481862066e-17)
_LOG_2, _LOG_2_REST = 0.6931471805599453, 2.3190468138462996e-17
# (log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in s**2
_SINGLE = (0.23419113889571325, 0.2854711206253396, 0.40000152378173376)
_DOUBLE = (
    0.11989537455817896, 0.11674755683337193, 0.1333632050764647, 0.15384556790872525, 0.18181818871487046,
    0.22222222217526924, 0.2857142857144515, 0.3999999999999998,
)  # fmt: skip


def _log2(x: Number, f: Format) -> tuple[Number, Number]:
    """log2 of a positive finite x; the first summand has few enough bits for an exact product with another such."""
    e, m = taken_apart(x, f)
    # log m = 2 s + 2/3 s**3 + ... with s = (m - 1) / (m + 1) = s1 + s2, where s1 has few bits.
    top, bottom = m - 1.0, m + 1.0
    s1 = f.leading(top / bottom)
    first = f.leading(bottom)
    s2 = ((top - s1 * first) - s1 * (m - (first - 1.0))) / bottom
    s = s1 + s2
    square = s * s
    # (3 + s**2 + 3/2 s**4 * series) = t1 + t2; the product with 2/3 s is log m.
    rest = square * square * square.series([1.5 * c for c in (_SINGLE if f.single else _DOUBLE)])
    exact = s1 * s1
    rest = rest + s2 * (s1 + s)
    t1 = f.leading((exact + 3.0) + rest)
    t2 = rest - ((t1 - 3.0) - exact)
    u = s1 * t1
    v = s2 * t1 + t2 * s
    p1 = f.leading(u + v)
    p2 = v - (p1 - u)
    high, low = parts(_TWO_OVER_LOG_2[0] / 3, 0.0, f.half)
    low = (_TWO_OVER_LOG_2[0] - 3 * high + _TWO_OVER_LOG_2[1]) / 3
    z1 = p1 * high
    z2 = p1 * low + p2 * (high + low)
    total = f.leading((z1 + z2) + e)
    return total, z2 - ((total - e) - z1)


def _magnitude(size: Number, y: Number, f: Format) -> Number:
    """``size`` ** y of a positive finite ``size``."""
    largest = 2.0**60 if f.single else 2.0**80  # beyond, the result is infinite, 0 or 1 anyway
    y = y.at_most(largest).at_least(-largest)
    log1, log2 = _log2(size, f)
    y1 = f.leading(y)
    first, rest = y1 * log1, (y - y1) * log1 + y * log2
    total = first + rest
    limit = f.bias + f.mantissa + 3.0
    inside = f.size(total) < limit
    none = total < -(f.bias + f.mantissa + 1.0)  # rounds to 0: see exp
    first = inside.where(first, total.at_most(limit))
    first, rest = none.where(0.0, first), inside.where(rest, 0.0)
    n = nearest(first + rest, 1.0, f)
    # r = (first - n) * log 2 + rest * log 2, and what rounding it loses.
    first = first - n.value
    whole = f.leading(first + rest)
    rest = rest - (whole - first)
    high, low = parts(_LOG_2, _LOG_2_REST, f.half)
    r = whole * high + (whole.fma(low, rest * _LOG_2))
    return none.where(0.0, scaled(exp_reduced(r, f), n, f))


def power(x: Number, y: Number, f: Format) -> Number:
    """x ** y, with C's special values."""
    size = f.size(x)
    half = y * 0.5
    whole = y.apply(Ops.TRUNC).equals(y)
    odd = whole & half.apply(Ops.TRUNC).differs(half)
    # 0 and infinity to the power y are each other for -y
    end = size.equals(0.0).where(-y, y)
    at_end = size.equals(0.0) | size.equals(inf)
    limit = (end < 0.0).where(size.like(0.0), (end > 0.0).where(size.like(inf), y))
    found = at_end.where(limit, _magnitude(size, y, f))
    found = odd.where(f.signed_as(found, f.sign(x)), found)
    undefined = (x < 0.0) & (whole | at_end).apply(Ops.NOT)
    found = undefined.where(nan, found)
    found = (x.differs(x) | y.differs(y)).where(x + y, found)
    return (y.equals(0.0) | x.equals(1.0)).where(1.0, found)


