"""Modified Bessel functions of orders 0 and 1: I grows, K decays; scaled ones go without the exponential."""

from __future__ import annotations

import math

from ..array.array import A
from ..ops.elementary import exp, log, sign, sqrt
from ..ops.predicates import isinf
from . import approximations as fits
from .pointwise import evaluated, pointwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def i0(x: A) -> A:
    """The modified Bessel function I of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).i0().round(4)
      Tensor([1.    , 1.2661])
    """
    return pointwise("i0", lambda x: _grown(_i(x, 0, 1.0), x, x.abs()), i1, x)


def i0e(x: A) -> A:
    """exp(-|x|) * I of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import i0e
      >>> i0e(Tensor([0.0, 100.0])).round(4)
      Tensor([1.    , 0.0399])
    """
    return pointwise("i0e", lambda x: _i(x, 0, 0.0)[0], lambda x: i1e(x) - sign(x) * i0e(x), x)


def i1(x: A) -> A:
    """The modified Bessel function I of order 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import i1
      >>> i1(Tensor([0.0, 1.0])).round(4)
      Tensor([0.    , 0.5652])
    """
    return pointwise("i1", lambda x: _grown(_i(x, 1, 1.0), x, x), lambda x: i0(x) - over_itself(i1, x), x)


def i1e(x: A) -> A:
    """exp(-|x|) * I of order 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import i1e
      >>> i1e(Tensor([0.0, 100.0])).round(4)
      Tensor([0.    , 0.0397])
    """

    def slope(x: A) -> A:
        return i0e(x) - sign(x) * i1e(x) - over_itself(i1e, x)

    return pointwise("i1e", lambda x: _i(x, 1, 0.0)[0], slope, x)


def modified_bessel_i0(x: A) -> A:
    """The modified Bessel function I of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import modified_bessel_i0
      >>> modified_bessel_i0(Tensor([0.0, 1.0])).round(4)
      Tensor([1.    , 1.2661])
    """
    return i0(x)


def modified_bessel_i1(x: A) -> A:
    """The modified Bessel function I of order 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import modified_bessel_i1
      >>> modified_bessel_i1(Tensor([0.0, 1.0])).round(4)
      Tensor([0.    , 0.5652])
    """
    return i1(x)


def modified_bessel_k0(x: A) -> A:
    """The modified Bessel function K of order 0: infinite at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import modified_bessel_k0
      >>> modified_bessel_k0(Tensor([0.0, 1.0])).round(4)
      Tensor([  inf, 0.421])
    """
    return pointwise("modified_bessel_k0", lambda x: _k0(x, False), lambda x: -modified_bessel_k1(x), x)


def modified_bessel_k1(x: A) -> A:
    """The modified Bessel function K of order 1: infinite at 0, NaN below.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import modified_bessel_k1
      >>> modified_bessel_k1(Tensor([0.0, 1.0])).round(4)
      Tensor([   inf, 0.6019])
    """

    def slope(x: A) -> A:
        return -modified_bessel_k0(x) - modified_bessel_k1(x) / x

    return pointwise("modified_bessel_k1", lambda x: _k1(x, False), slope, x)


def scaled_modified_bessel_k0(x: A) -> A:
    """exp(x) * K of order 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import scaled_modified_bessel_k0
      >>> scaled_modified_bessel_k0(Tensor([1.0, 100.0])).round(4)
      Tensor([1.1445, 0.1252])
    """

    def slope(x: A) -> A:
        return scaled_modified_bessel_k0(x) - scaled_modified_bessel_k1(x)

    return pointwise("scaled_modified_bessel_k0", lambda x: _k0(x, True), slope, x)


def scaled_modified_bessel_k1(x: A) -> A:
    """exp(x) * K of order 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import scaled_modified_bessel_k1
      >>> scaled_modified_bessel_k1(Tensor([1.0, 100.0])).round(4)
      Tensor([1.6362, 0.1258])
    """

    def slope(x: A) -> A:
        return scaled_modified_bessel_k1(x) * (1 - x.reciprocal()) - scaled_modified_bessel_k0(x)

    return pointwise("scaled_modified_bessel_k1", lambda x: _k1(x, True), slope, x)


# *** the algorithms ***


def over_itself(function: Callable[[A], A], x: A) -> A:
    """function(x) / x of an odd function with the slope 1/2 at 0."""
    nothing = x.eq(0)
    return nothing.where(0.5, function(x) / nothing.where(1, x))


def _i(x: A, order: int, power: float) -> tuple[A, A]:
    """I times exp(-|x|), and where |x| is below 8 times exp((power - 1) |x|); and whether it is."""
    size = x.abs()
    near = size < 8
    half = near.where(size, 0) * 0.5
    series = evaluated((fits.I0, fits.I1)[order], half * half)
    if order:
        series = series * half
    if power != 1:
        series = series * exp(half * -2)
    inverse = near.where(8, size).reciprocal()
    far = evaluated((fits.I0_SCALED, fits.I1_SCALED)[order], inverse) * sqrt(inverse)
    out = near.where(series, far)
    return ((x < 0).where(-out, out) if order else out), near


def _grown(parts: tuple[A, A], x: A, limit: A) -> A:
    """I of what is scaled where it is not near 0; of infinity the limit."""
    scaled, near = parts
    half = exp(near.where(0, x.abs()) * 0.5)  # twice: the whole exponential overflows before I does
    return isinf(x).where(limit, scaled * half * half)


def _beyond(x: A, small: A, far: A, scaled: bool) -> A:
    """K from its parts for x <= 2 and x > 2, the second of which is scaled."""
    near = x <= 2
    if scaled:
        out = near.where(small * exp(near.where(x, 0)), far)
    else:
        out = near.where(small, far * exp(near.where(0, -x)))
    return x.eq(0).where(math.inf, (x < 0).where(math.nan, out))


def _small(x: A) -> tuple[A, A, A, A]:
    """For x <= 2: x (1 elsewhere), half of it, that squared, its logarithm."""
    y = ((x > 0) & (x <= 2)).where(x, 1)
    half = y * 0.5
    return y, half, half * half, log(half)


def _k0(x: A, scaled: bool) -> A:
    _, _, square, logarithm = _small(x)
    small = evaluated(fits.K0_REST, square) - logarithm * evaluated(fits.I0, square)
    inverse = (x <= 2).where(2, x).reciprocal()
    return _beyond(x, small, evaluated(fits.K0_SCALED, inverse) * sqrt(inverse), scaled)


def _k1(x: A, scaled: bool) -> A:
    y, half, square, logarithm = _small(x)
    small = y.reciprocal() + half * (logarithm * evaluated(fits.I1, square) - evaluated(fits.K1_REST, square))
    inverse = (x <= 2).where(2, x).reciprocal()
    return _beyond(x, small, evaluated(fits.K1_SCALED, inverse) * sqrt(inverse), scaled)
