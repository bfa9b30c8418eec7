"""MOD of floats, exactly: by one division, or by a long one, many bits of the quotient at a time."""

from __future__ import annotations

from math import inf, nan

from tg_lazy import Ops

from .exponential import WholeNumber, nearest, scaled
from .number import FP64, Format, Number, rarely


def _mantissa(size: Number, f: Format) -> tuple[Number, Number]:
    """m, from 1 to 2, and e of a positive finite number m * 2**e."""
    small = size < 2.0 ** (1 - f.bias)
    bits = small.where(size * 2.0 ** (f.mantissa + 1), size).bitcast(f.signed)
    e = (bits >> f.mantissa) - f.bias
    m = ((bits & ((1 << f.mantissa) - 1)) | (f.bias << f.mantissa)).bitcast(f.dtype)
    return m, e - small.where(e.like(f.mantissa + 1), 0)


def remainder(x: Number, y: Number, f: Format) -> Number:
    """x - y * n, with n = x / y truncated toward zero.

    Where a branch may skip it, only quotients that a mantissa does not hold take a long division.
    """
    size, divisor = f.size(x), f.size(y)
    rest = _long_division(size, divisor, f)
    if f.widens:
        quotient = size.apply(Ops.FDIV, divisor)
        short = _short_division(size, divisor, quotient)
        (rest,) = rarely((quotient < 2.0**f.mantissa).apply(Ops.NOT), [rest], [short])
    found = (size < divisor).where(x, f.signed_as(rest, f.sign(x)))
    valid = (size < inf) & (divisor > 0.0) & y.equals(y)
    return valid.where(found, nan)


def _short_division(size: Number, divisor: Number, quotient: Number) -> Number:
    """What is left of a number that is a divisor or more, by a quotient below 2**mantissa that was rounded once.

    It is rounded by less than a half, so that it reaches the next whole number at most: what is left is no less than
    -divisor then. That has no bits below the divisor's last one, so that a product with a sum gives it exactly.
    """
    left = quotient.apply(Ops.TRUNC).fma(-divisor, size)
    return (left < 0.0).where(left + divisor, left)


def _long_division(size: Number, divisor: Number, f: Format) -> Number:
    """What is left of any positive number that is a divisor or more.

    Every product is of numbers so short that it is exact, and every difference a whole number of units of the shorter
    operand, of which there are no more than a mantissa holds.
    """
    (m, e), (d, e_divisor) = _mantissa(size, f), _mantissa(divisor, f)
    left = e - e_divisor
    w = f
    if f.single and f.doubles:
        w = FP64 if f.shifts else f
        m, d = m.cast(w.dtype), d.cast(w.dtype)
    # Bits of the quotient at a time, less than a mantissa has beside those of a part of the divisor.
    bits = w.mantissa - f.mantissa - 2 if w is not f else f.mantissa - f.half - 1
    divisors = [d]
    if w is f:
        first = f.leading(d)
        divisors = [first, d - first]
    inverse = 1.0 / d
    for _ in range(-(-(2 * f.bias + f.mantissa) // bits)):
        step = (left > bits).where(left.like(bits), left)
        step = (step < 0).where(0, step)
        left = left - bits  # below 0 nothing is left
        m = m * ((step.cast(w.signed) + w.bias) << w.mantissa).bitcast(w.dtype)
        quotient = nearest(m * inverse, 1.0, w).value
        for part in divisors:
            m = w.kept(m - quotient * part, 2.0**w.bias)
    m = (m < 0.0).where(m + d, m).cast(f.dtype)
    return scaled(m, WholeNumber(e_divisor.cast(f.dtype), e_divisor), f)
