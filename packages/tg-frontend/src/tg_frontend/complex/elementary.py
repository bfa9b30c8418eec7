"""Elementary functions of complex numbers, with the branch cuts of C99's Annex G and numpy.

Sources: W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit", 1987; C99,
Annex G, for arguments that are infinite or no numbers.
"""

from __future__ import annotations

import math

from .algebra import product, quotient
from .infinite import at_infinity, endless_like, infinite, is_endless, lost, zero_like
from .parts import Parts, composed, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LARGE = {4: 2.0**125, 8: 2.0**1021}  # by bytes of a part: to here the modulus and a part have a sum


def _nothing(a: Any, b: Any) -> Any:
    return (a == 0).logical_and(b == 0)


def _defined(value: Any, b: Any, real: Any) -> Any:
    """A product with the sine of ``b``; ``real`` where it is infinity times 0.

    Only there: elsewhere the product is 0 as well, but its slope is its own.
    """
    return (b == 0).logical_and(value.isnan()).where(real, value)


def modulus(a: Any, b: Any) -> Any:
    """|a + bi|, whose gradient at 0 is 0."""
    nothing = _nothing(a, b)
    return nothing.where(0.0, nothing.where(1.0, a).hypot(b))


def abs(z: Any) -> Any:
    return modulus(*z._parts)


def angle(z: Any, deg: bool = False) -> Any:
    a, b = z._parts
    nothing = _nothing(a, b)
    radians = nothing.where(b.detach().atan2(a.detach()), b.atan2(nothing.where(1.0, a)))
    return radians * (180 / math.pi) if deg else radians


def sgn(z: Any) -> Any:
    a, b = z._parts
    size = modulus(a, b)
    nothing = size == 0
    size = nothing.where(1.0, size)
    return composed(nothing.where(0.0, a) / size, nothing.where(0.0, b) / size)


def exp(z: Any) -> Any:
    a, b = z._parts
    size = a.exp()
    plain = composed(size * b.cos(), _defined(size * b.sin(), b, b))  # exp of inf + 0i is real
    return _without_direction(plain, a, b, 0.0)


def exp2(z: Any) -> Any:
    return exp(_scaled(z, math.log(2)))


def expm1(z: Any) -> Any:
    a, b = z._parts
    half, size = (b * 0.5).sin(), a.exp()
    small = a < -1.0  # where -1 takes the digits of the slope, if it is a part of both terms
    re = small.where(size * b.cos() - 1.0, a.expm1() * b.cos() - 2.0 * half * half)
    plain = composed(re, _defined(size * b.sin(), b, b))
    return _without_direction(plain, a, b, -1.0)


def _without_direction(plain: Any, a: Any, b: Any, least: float) -> Any:
    """A function that turns by ``b`` what grows with ``a``, from ``least`` at -inf: nothing is left to turn there."""
    high, low = lost(b).logical_and(infinite(a, 1)), lost(b).logical_and(infinite(a, -1))
    plain = at_infinity(plain, high, math.inf, math.nan)
    return at_infinity(plain, low, least, zero_like(b))


def _scaled(z: Any, factor: float) -> Any:
    return composed(z._parts[0] * factor, z._parts[1] * factor)


def _log_modulus(a: Any, b: Any) -> Any:
    """log |a + bi|: by log1p near 1, where the logarithm of the rounded modulus has few right digits."""
    more = a.abs() < b.abs()
    large, small = more.where(b, a), more.where(a, b)  # with their signs, which the squares do not show
    plain = a.hypot(b)
    near = (plain > 0.5).logical_and(plain < 1.5)
    one = near.where(large, 1.0)
    beyond = plain.isinf()  # the modulus is no number of the dtype, although its parts may be
    far = (beyond.where(a, 1.0) * 0.25).hypot(beyond.where(b, 1.0) * 0.25).log() + math.log(4)
    far = beyond.where(far, beyond.where(1.0, plain).log())
    return near.where(0.5 * ((one - 1.0) * (one + 1.0) + near.where(small, 0.0).square()).log1p(), far)


def log(z: Any) -> Any:
    a, b = z._parts
    return composed(_log_modulus(a, b), b.atan2(a))


def log2(z: Any) -> Any:
    return _scaled(log(z), 1 / math.log(2))


def log10(z: Any) -> Any:
    return _scaled(log(z), 1 / math.log(10))


def log1p(z: Any) -> Any:
    a, b = z._parts
    small = (a.abs() < 0.5).logical_and(b.abs() < 0.5)
    x, y = small.where(a, 0.0), small.where(b, 0.0)
    near = 0.5 * (x * (x + 2.0) + y.square()).log1p()
    return composed(small.where(near, _log_modulus(a + 1.0, b)), b.atan2(a + 1.0))


def sqrt(z: Any) -> Any:
    a, b = z._parts
    infinite, most = b.isinf(), _LARGE[a.dtype.itemsize]
    large = (a.abs() > most).logical_or(b.abs() > most)  # their sum may be no number: the root of a quarter, twice
    a, b = large.where(a * 0.25, a), large.where(b * 0.25, b)
    nothing = _nothing(a, b)
    x = nothing.where(1.0, a)
    right = x >= 0
    root = ((right.where(x, -x) + x.hypot(b)) * 0.5).sqrt()
    other = b / (2.0 * root)
    side = b.detach().ones_like().copysign(b)  # of the cut: a zero has one, too
    re, im = right.where(root, other * side), right.where(other, root * side)
    re, im = large.where(2.0 * re, re), large.where(2.0 * im, im)
    # of an infinite imaginary part the root is inf ± inf i, whatever the real part is
    re, im = infinite.where(math.inf, re), infinite.where(b, im)
    return composed(nothing.where(0.0, re), nothing.where(b, im))


def rsqrt(z: Any) -> Any:
    return composed(*quotient(Parts(1.0, None), Parts(*sqrt(z)._parts)))


def sinh(z: Any) -> Any:
    a, b = z._parts
    plain = composed(a.sinh() * b.cos(), _defined(a.cosh() * b.sin(), b, b))
    plain = at_infinity(plain, lost(b).logical_and(infinite(a)), math.inf, math.nan)
    return at_infinity(plain, lost(b).logical_and(a == 0), zero_like(a), math.nan)


def cosh(z: Any) -> Any:
    a, b = z._parts
    plain = composed(a.cosh() * b.cos(), _defined(a.sinh() * b.sin(), b, a.sign() * b))
    plain = at_infinity(plain, lost(b).logical_and(infinite(a)), math.inf, math.nan)
    return at_infinity(plain, lost(b).logical_and(a == 0), math.nan, 0.0)


def tanh(z: Any) -> Any:
    a, b = z._parts
    side = (a < 0).where(-1.0, 1.0)
    size = side * a
    shrunk, cosine = (-2.0 * size).exp(), b.cos()
    # cosh 2a + cos 2b, times 2 exp -2|a|: a sum of squares, so that slopes have their digits where tanh is nearly 1
    below = (-2.0 * size).expm1().square() + 4.0 * shrunk * cosine.square()
    plain = composed(side * -(-4.0 * size).expm1() / below, 4.0 * shrunk * cosine * b.sin() / below)
    plain = at_infinity(plain, lost(b).logical_and(infinite(a)), a.detach().sign(), zero_like(b))
    known = infinite(a).logical_or(a == 0)
    plain = at_infinity(plain, lost(b).logical_and(known.logical_not()), math.nan, math.nan)
    plain = at_infinity(plain, lost(b).logical_and(a == 0), a.detach(), math.nan)
    return at_infinity(plain, a.isnan().logical_and(b == 0), math.nan, b.detach())


def _turned(z: Any) -> Any:
    """i z."""
    return composed(-z._parts[1], kept(z._parts[0]))


def _turned_back(z: Any) -> Any:
    """-i z."""
    return composed(kept(z._parts[1]), -z._parts[0])


def sin(z: Any) -> Any:
    return _turned_back(sinh(_turned(z)))


def cos(z: Any) -> Any:
    return cosh(_turned(z))


def tan(z: Any) -> Any:
    return _turned_back(tanh(_turned(z)))


def _roots(z: Any) -> tuple[Any, Any]:
    """The roots of 1 - z and 1 + z."""
    a, b = z._parts
    return sqrt(composed(1.0 - a, -b)), sqrt(composed(1.0 + a, kept(b)))


def asin(z: Any) -> Any:
    a, b = z._parts
    minus, plus = _roots(z)
    both = product(Parts(*minus._parts), Parts(*plus._parts))
    across = product(Parts(minus._parts[0], -minus._parts[1]), Parts(*plus._parts))
    plain = composed(a.atan2(both.re), across.im.asinh())
    x, y = a.detach(), b.detach()
    plain = at_infinity(plain, is_endless(a, b), x.atan2(y.abs()), endless_like(y))
    return at_infinity(plain, (a == 0).logical_and(b.isnan()), x, math.nan)


def acos(z: Any) -> Any:
    minus, plus = _roots(z)
    across = product(Parts(plus._parts[0], -plus._parts[1]), Parts(*minus._parts))
    plain = composed(2.0 * minus._parts[0].atan2(plus._parts[0]), across.im.asinh())
    a, b = (part.detach() for part in z._parts)
    plain = at_infinity(plain, is_endless(a, b), b.abs().atan2(a), -endless_like(b))
    return at_infinity(plain, (a == 0).logical_and(b.isnan()), math.pi / 2, math.nan)


def acosh(z: Any) -> Any:
    a, b = z._parts
    minus, plus = sqrt(composed(a - 1.0, kept(b))), sqrt(composed(a + 1.0, kept(b)))
    across = product(Parts(minus._parts[0], -minus._parts[1]), Parts(*plus._parts))
    plain = composed(across.re.asinh(), 2.0 * minus._parts[1].atan2(plus._parts[0]))
    a, b = a.detach(), b.detach()
    plain = at_infinity(plain, is_endless(a, b), math.inf, b.atan2(a))
    return at_infinity(plain, (a == 0).logical_and(b.isnan()), math.nan, math.pi / 2)


def asinh(z: Any) -> Any:
    return _turned_back(asin(_turned(z)))


def atanh(z: Any) -> Any:
    a, b = z._parts
    right = a >= 0
    size = right.where(a, -a)
    below = (1.0 - size).square() + b.square()
    gone = (below == 0).logical_and(b != 0)  # next to 1 the square is too small for a number
    re = gone.where(-0.5 * (gone.where(b, 1.0).abs() * 0.5).log(), 0.25 * (4.0 * size / gone.where(1.0, below)).log1p())
    re = right.where(re, -re)
    plain = composed(re, 0.5 * b.atan2(0.5 * ((1.0 - a) * (1.0 + a) - b.square())))
    a, b = a.detach(), b.detach()
    long = a.hypot(b)
    plain = at_infinity(plain, below.detach() == math.inf, a / long / long, plain._parts[1])
    side = (zero_like(b) + math.pi / 2).copysign(b)
    plain = at_infinity(plain, is_endless(a, b), zero_like(a), b.isnan().where(math.nan, side))
    return at_infinity(plain, (a == 0).logical_and(b.isnan()), a, math.nan)


def atan(z: Any) -> Any:
    return _turned_back(atanh(_turned(z)))


def sigmoid(z: Any) -> Any:
    e = exp(composed(-z._parts[0], -z._parts[1]))
    return composed(*quotient(Parts(1.0, None), Parts(1.0 + e._parts[0], kept(e._parts[1]))))
