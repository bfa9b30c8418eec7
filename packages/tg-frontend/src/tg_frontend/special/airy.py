"""The Airy function and its derivative.

Both decay above 0, where their errors are relative to the result; below 0 they are waves, and errors are relative to
the amplitude. The phase, 2/3 * |x|**1.5, is computed with twice the digits of the dtype.
"""

from __future__ import annotations

import math

from ..array.array import A
from ..ops.elementary import cos, exp, sin, sqrt
from . import approximations as fits
from .pointwise import evaluated, pointwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .approximations import Polynomial


def airy_ai(x: A) -> A:
    """The Airy function Ai.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import airy_ai
      >>> airy_ai(Tensor([-2.0, 0.0, 2.0])).round(4)
      Tensor([0.2274, 0.355 , 0.0349])
    """
    return pointwise("airy_ai", _airy, _slope, x)


def _slope(x: A) -> A:
    return pointwise("airy_ai", _derivative, lambda x: x * airy_ai(x), x)


def _product(a: A, b: A) -> tuple[A, A]:
    """A product and its error, by the algorithms of Veltkamp and Dekker (1971)."""
    factor = 134217729.0 if a.dtype.itemsize == 8 else 4097.0

    def parts(x: A) -> tuple[A, A]:
        wide = x * factor
        high = wide - (wide - x)
        return high, x - high

    whole = a * b
    (a1, a2), (b1, b2) = parts(a), parts(b)
    return whole, ((a1 * b1 - whole) + a1 * b2 + a2 * b1) + a2 * b2


def _phase(size: A) -> tuple[A, A]:
    """2/3 * size**1.5 and its error."""
    root = sqrt(size)
    square, error = _product(root, root)
    rest = ((size - square) - error) / (root * 2)
    whole, error = _product(size, root)
    error = error + size * rest
    third = whole * 0 + 2 / 3
    out, lost = _product(whole, third)
    remainder = 2 / 3 - 0.66666668653488159 if size.dtype.itemsize == 4 else 3.700743415417188e-17
    return out, lost + error * third + whole * remainder


def _pieces(x: A, decay: Polynomial, middle: Polynomial, waves: tuple[Polynomial, Polynomial]) -> tuple[A, A, A, A]:
    """For x > 1: exp(-phase), and a factor; and for x between -8 and 1 the function."""
    size = ((x > 1) & (x < 200)).where(x, (x >= 200).where(200, 1))
    phase, error = _phase(size)
    falling = exp(-phase) * (1 - error)
    center = evaluated(middle, ((x >= -2) & (x <= 1)).where(x, 0))
    low = (x < -5).where(evaluated(waves[1], (x < -8).where(-8, x)), evaluated(waves[0], (x < -5).where(-5, x)))
    return falling, evaluated(decay, phase.reciprocal()), (x < -2).where(low, center), sqrt(sqrt(size))


def _far(x: A, p: Polynomial, q: Polynomial) -> tuple[A, A, A, A, A]:
    """For x < -8: sin and cos of the phase less pi/4, P, Q, |x|**0.25."""
    size = ((x < -8) & (x > -math.inf)).where(-x, 8)
    phase, error = _phase(size)
    s, c = sin(phase), cos(phase)
    s, c = s + c * error, c - s * error
    half = 1 / math.sqrt(2)
    inverse = phase.reciprocal()
    square = inverse * inverse
    return (s - c) * half, (s + c) * half, evaluated(p, square), evaluated(q, square) * inverse, sqrt(sqrt(size))


def _airy(x: A) -> A:
    waves = (fits.AIRY_WAVES_1, fits.AIRY_WAVES_2)
    falling, factor, near, root = _pieces(x, fits.AIRY_DECAY, fits.AIRY_MIDDLE, waves)
    s, c, p, q, quarter = _far(x, fits.AIRY_P, fits.AIRY_Q)
    low = (p * c + q * s) / (quarter * math.sqrt(math.pi))
    out = (x > 1).where(factor * falling / root, (x >= -8).where(near, low))
    return (x.abs().eq(math.inf)).where(0, out + x * 0)


def _derivative(x: A) -> A:
    waves = (fits.SLOPE_WAVES_1, fits.SLOPE_WAVES_2)
    falling, factor, near, root = _pieces(x, fits.SLOPE_DECAY, fits.SLOPE_MIDDLE, waves)
    s, c, p, q, quarter = _far(x, fits.SLOPE_P, fits.SLOPE_Q)
    low = (p * s - q * c) * quarter * (1 / math.sqrt(math.pi))
    out = (x > 1).where(factor * falling * root, (x >= -8).where(near, low))
    return x.eq(math.inf).where(0, out + x * 0)
