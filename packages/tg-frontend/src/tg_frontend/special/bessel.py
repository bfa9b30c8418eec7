"""Bessel functions of orders 0 and 1: J is finite at 0, Y is not.

Up to 8 they are polynomials times the distances from their zeros, so that errors are relative to the result also
there; from 8 on Hankel's expansion, and errors are relative to the amplitude, sqrt(2 / (pi * x)).
"""

from __future__ import annotations

import math

from ..array.array import A
from ..ops.elementary import cos, log, log1p, sin, sqrt
from ..ops.predicates import isinf
from . import approximations as fits
from .modified_bessel import over_itself
from .pointwise import evaluated, pointwise


def bessel_j0(x: A) -> A:
    """The Bessel function J of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import bessel_j0
      >>> bessel_j0(Tensor([0.0, 1.0])).round(4)
      Tensor([1.    , 0.7652])
    """
    return pointwise("bessel_j0", _j0, lambda x: -bessel_j1(x), x)


def bessel_j1(x: A) -> A:
    """The Bessel function J of order 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import bessel_j1
      >>> bessel_j1(Tensor([0.0, 1.0])).round(4)
      Tensor([0.    , 0.4401])
    """
    return pointwise("bessel_j1", _j1, lambda x: bessel_j0(x) - over_itself(bessel_j1, x), x)


def bessel_y0(x: A) -> A:
    """The Bessel function Y of order 0: -inf at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import bessel_y0
      >>> bessel_y0(Tensor([0.0, 1.0])).round(4)
      Tensor([  -inf, 0.0883])
    """
    return pointwise("bessel_y0", _y0, lambda x: -bessel_y1(x), x)


def bessel_y1(x: A) -> A:
    """The Bessel function Y of order 1: -inf at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import bessel_y1
      >>> bessel_y1(Tensor([0.0, 1.0])).round(4)
      Tensor([   -inf, -0.7812])
    """
    return pointwise("bessel_y1", _y1, lambda x: bessel_y0(x) - bessel_y1(x) / x, x)


def spherical_bessel_j0(x: A) -> A:
    """sin(x) / x, 1 at 0: the spherical Bessel function of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import spherical_bessel_j0
      >>> spherical_bessel_j0(Tensor([0.0, 1.0])).round(4)
      Tensor([1.    , 0.8415])
    """
    return pointwise("spherical_bessel_j0", _spherical, lambda x: -_spherical_bessel_j1(x), x)


def _spherical_bessel_j1(x: A) -> A:
    def slope(x: A) -> A:
        nothing = x.eq(0)
        ratio = _spherical_bessel_j1(x) / nothing.where(1, x)
        return spherical_bessel_j0(x) - nothing.where(1 / 3, ratio) * 2

    return pointwise("spherical_bessel_j0", _spherical_slope, slope, x)


# *** the algorithms ***


def _from_zero(x: A, zero: tuple[float, float]) -> A:
    """x less a zero, without an error that counts."""
    return (x - zero[0]) - zero[1]


def _in_square(x: A, zero: tuple[float, float]) -> A:
    """x**2 less a zero's square."""
    return _from_zero(x, zero) * (x + (zero[0] + zero[1]))


def _within(x: A, low: float, high: float) -> A:
    return ((x > low) & (x < high)).where(x, low)


def _waves(x: A) -> tuple[A, A, A, A]:
    """For x >= 8 (8 elsewhere): sin + cos, sin - cos, 1 / x, 1 / sqrt(pi * x)."""
    y = ((x >= 8) & (x < math.inf)).where(x, 8)
    s, c = sin(y), cos(y)
    inverse = y.reciprocal()
    return s + c, s - c, inverse, sqrt(inverse) * (1 / math.sqrt(math.pi))


def _hankel(inverse: A, order: int) -> tuple[A, A]:
    """P and Q."""
    square = inverse * inverse
    p, q = ((fits.P0, fits.Q0), (fits.P1, fits.Q1))[order]
    return evaluated(p, square), evaluated(q, square) * inverse


def _j0(x: A) -> A:
    size = x.abs()
    near, middle = _within(size, 0, 4), _within(size, 4, 8)
    first = _in_square(near, fits.J0_ZEROS[0]) * evaluated(fits.J0_1, near * near)
    second = _from_zero(middle, fits.J0_ZEROS[1]) * evaluated(fits.J0_2, middle)
    added, less, inverse, scale = _waves(size)
    p, q = _hankel(inverse, 0)
    out = (size < 4).where(first, (size < 8).where(second, scale * (p * added - q * less)))
    return isinf(x).where(0, out + x * 0)


def _j1(x: A) -> A:
    size = x.abs()
    near, middle = _within(size, 0, 5.5), _within(size, 5.5, 8)
    first = near * _in_square(near, fits.J1_ZEROS[0]) * evaluated(fits.J1_1, near * near)
    second = _from_zero(middle, fits.J1_ZEROS[1]) * evaluated(fits.J1_2, middle)
    added, less, inverse, scale = _waves(size)
    p, q = _hankel(inverse, 1)
    out = (size < 5.5).where(first, (size < 8).where(second, scale * (p * less + q * added)))
    out = (x < 0).where(-out, out)
    return isinf(x).where(0, x.eq(0).where(x, out + x * 0))


def _logarithm(x: A, zero: tuple[float, float]) -> A:
    """2/pi * log(x / zero), accurate near the zero."""
    place = zero[0] + zero[1]
    off = _from_zero(x, zero) * (1 / place)
    close = off.abs() < 0.25
    return close.where(log1p(close.where(off, 0)), log(x * (1 / place))) * (2 / math.pi)


def _second_kind(x: A, out: A) -> A:
    """Y with its values at the ends."""
    out = x.eq(math.inf).where(0, out + x * 0)
    return x.eq(0).where(-math.inf, (x < 0).where(math.nan, out))


def _y0(x: A) -> A:
    near = ((x > 0) & (x < 3)).where(x, 1)
    middle, high = _within(x, 3, 5.5), _within(x, 5.5, 8)
    zeros = fits.Y0_ZEROS
    first = _in_square(near, zeros[0]) * evaluated(fits.Y0_1, near * near) + _logarithm(near, zeros[0]) * _j0(near)
    second = _from_zero(middle, zeros[1]) * evaluated(fits.Y0_2, middle)
    third = _from_zero(high, zeros[2]) * evaluated(fits.Y0_3, high)
    added, less, inverse, scale = _waves(x)
    p, q = _hankel(inverse, 0)
    far = (x < 8).where(third, scale * (p * less + q * added))
    return _second_kind(x, (x < 3).where(first, (x < 5.5).where(second, far)))


def _y1(x: A) -> A:
    near = ((x > 0) & (x < 4)).where(x, 1)
    middle = _within(x, 4, 8)
    zeros = fits.Y1_ZEROS
    rest = _in_square(near, zeros[0]) * evaluated(fits.Y1_1, near * near) / near
    first = rest + _logarithm(near, zeros[0]) * _j1(near)
    second = _from_zero(middle, zeros[1]) * evaluated(fits.Y1_2, middle)
    added, less, inverse, scale = _waves(x)
    p, q = _hankel(inverse, 1)
    out = (x < 4).where(first, (x < 8).where(second, scale * (q * less - p * added)))
    return _second_kind(x, out)


def _spherical(x: A) -> A:
    nothing = x.eq(0)
    return nothing.where(1, isinf(x).where(0, sin(isinf(x).where(0, x)) / nothing.where(1, x)))


def _spherical_slope(x: A) -> A:
    """sin(x) / x**2 - cos(x) / x: of small x, where these cancel, a series."""
    square = x * x
    near = square < 1
    z = near.where(square, 0)
    series = z * 0
    for k in range(8, -1, -1):  # x / 3 - x**3 / 30 + …: the factor of x**(2 k + 1) is 2 (k + 1) / (2 k + 3)!
        series = series * z + (-1.0) ** k * 2 * (k + 1) / math.factorial(2 * k + 3)
    y = (near | isinf(x)).where(1, x)
    return isinf(x).where(0, near.where(series * x, (sin(y) / y - cos(y)) / y))
