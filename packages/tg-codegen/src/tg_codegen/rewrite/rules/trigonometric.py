"""SIN, COS, TAN and their inverses.

Arguments of any size are reduced by Payne and Hanek's method: the mantissa is multiplied by just those bits of 2/pi
that matter (M. Payne, R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
A float32 is multiplied by them as a float64 where that is a vector's lane and products with sums are rounded once, else
as an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf, ldexp, nan

from tg_dtype import dtypes
from tg_lazy import Ops

from .number import Format, Number, double, parts, rarely

_HALF_PI, _HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2
_SIN_SINGLE = (-0.0001951528313957394, 0.008332160761436554, -0.16666654609540238)
_SIN_DOUBLE = (
    1.5896230155044097e-10, -2.5050747762826777e-08, 2.755731362138567e-06, -0.0001984126982958954,
    0.008333333333322118, -0.1666666666666663,
)  # fmt: skip
_COS_SINGLE = (2.4438451577353733e-05, -0.00138873675157098, 0.041666646866445764)
_COS_DOUBLE = (
    -1.1359669894455904e-11, 2.0875723684936074e-09, -2.7557314355245404e-07, 2.480158728949184e-05,
    -0.0013888888888874138, 0.0416666666666666,
)  # fmt: skip
# (atan(t) - t) / t**3 in t**2
_ATAN_SINGLE = (
    -0.05817991143900764, 0.1049034122688573, -0.14229515273040957, 0.1999773430452298, -0.3333330337922388,
)  # fmt: skip
_ATAN_DOUBLE = (
    -0.016258745418371596, 0.03650350579914964, -0.049756227227920946, 0.058332532541186664, -0.06661023547931379,
    0.07691871231568587, -0.09090886814251686, 0.11111110392769215, -0.14285714272212421, 0.19999999999873155,
    -0.3333333333333292,
)  # fmt: skip
# (asin(x) - x) / x**3 in x**2
_ASIN_SINGLE = (
    0.04217823205101574, 0.024172950952057494, 0.04547160715212382, 0.07495288673768119, 0.1666675268124671,
)  # fmt: skip
_ASIN_DOUBLE = (
    0.03265386515422682, -0.021038425244900114, 0.02173454124504376, 0.0036955761476502175, 0.01078303834919405,
    0.01139843035046623, 0.013980877532333928, 0.0173516074259775, 0.022372215233342176, 0.03038194269942771,
    0.04464285717477795, 0.07499999999970634, 0.1666666666666676,
)  # fmt: skip
# From where on atan x = atan c + atan((x - c) / (1 + c x)) is used, c, and atan c as a double and what is left of it.
_TURNS = (
    (7 / 16, 0.5, 0.4636476090008061, 2.2698777452961687e-17),
    (11 / 16, 1.0, 0.7853981633974483, 3.061616997868383e-17),
    (19 / 16, 1.5, 0.982793723247329, 1.3903311031230998e-17),
    (39 / 16, inf, _HALF_PI, _HALF_PI_REST),
)


@cache
def two_over_pi(words: int) -> tuple[int, ...]:
    """The leading bits of 2/pi in words of 32 bits."""
    bits = 32 * words
    one = 1 << (bits + 64)

    def arctan_inverse(n: int) -> int:
        power = total = one // n
        k, sign = 3, -1
        while power:
            power //= n * n
            total += sign * (power // k)
            k, sign = k + 2, -sign
        return total

    quarter_pi = 4 * arctan_inverse(5) - arctan_inverse(239)  # J. Machin, 1706
    value = (one << bits) // (2 * quarter_pi)
    return tuple((value >> (bits - 32 * (k + 1))) & 0xFFFFFFFF for k in range(words))


def _pieces(starts: Sequence[int], significant: int) -> tuple[tuple[float, float], ...]:
    """2/pi less what adds multiples of 4 to its products with floats of ``significant`` bits.

    Args:
      starts: for floats of at least which power of 2.

    Returns:
      for each start the sum of a double and of a smaller one.
    """
    words = two_over_pi(8)
    fixed = 32 * len(words)
    value = sum(word << (fixed - 32 * (k + 1)) for k, word in enumerate(words))
    found: list[tuple[float, float]] = []
    for start in starts:
        unit = fixed + 2 - (start - significant + 1)  # the weight of 4, divided by that of a float's last bit
        kept = (value + (1 << (unit - 1))) % (1 << unit) - (1 << (unit - 1)) if unit < fixed else value
        high = float(kept)
        found.append((ldexp(high, -fixed), ldexp(float(kept - int(high)), -fixed)))
    return tuple(found)


def _three_parts(bits: int) -> tuple[float, float, float]:
    """pi/2 as the sum of three float32, of which the second has so many bits."""
    head, left = parts(_HALF_PI, _HALF_PI_REST, 24)
    middle, left = parts(left, 0.0, bits)
    return head, middle, parts(left, 0.0, 24)[0]


_STARTS = (50, 76, 102)
"""Exponents of 2 from which on other bits of 2/pi matter: products with them are less than 2**51."""
_PIECES = _pieces((0, *_STARTS), 24)
_FROM = tuple(2.0**start for start in _STARTS)
_WHOLE, _WHOLE_SINGLE = 1.5 * 2.0**52, 1.5 * 2.0**23
"""A double, and a float32, so large that it has bits for whole numbers only."""
_NEAR = (2.0**16, 2.0**10)
"""Up to which float32 three parts of pi/2 do: without and with what rounding takes away.

Their products with 2/pi, which are rounded, are less than 2**-8 off; below the second there are less than 2**10 right
angles.
"""
_PARTS = _three_parts(24), _three_parts(14)


def _window(start: Number, table: tuple[int, ...], count: int) -> list[Number]:
    """``count`` words of 32 bits of a table of bits, from bit ``start`` on; ``start`` is uint32."""
    words = [start.like(word) for word in table]
    place = start >> 5
    for bit in reversed(range((len(table) - count - 1).bit_length())):
        taken = (place & (1 << bit)).differs(0)
        kept = count + (1 << bit)  # so many words are still needed after this step
        words = [
            taken.where(words[k + (1 << bit)], words[k]) if k + (1 << bit) < len(words) else words[k]
            for k in range(min(kept, len(words)))
        ]
    shift = start & 31
    back = shift.like(31) - shift
    return [(words[k] << shift) | ((words[k + 1] >> 1) >> back) for k in range(count)]


def _turns(magnitude: Number, f: Format) -> tuple[Number, Number | None]:
    """|x| in turns of 4 right angles, less whole ones, times 2**64; and the next 64 bits, for float64.

    Args:
      magnitude: the bits of |x|, which is 1/2 at least.
    """
    u64, u32 = dtypes.uint64, dtypes.uint32
    padding = 1 if f.single else 2
    whole = (magnitude & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    significand = whole.cast(u64)
    # Bits of 2/pi that add multiples of 4 quarter turns are skipped; the table begins with zeros for small exponents.
    skipped = f.bias + f.mantissa + 2 - 32 * padding
    start = (magnitude >> f.mantissa).cast(u32) - skipped
    count = 3 if f.single else 6
    longest = 2 * f.bias - skipped
    table = (0,) * padding + two_over_pi(longest // 32 + count + 1 - padding)
    low_first = _window(start, table, count)[::-1]
    w = [word.cast(u64) for word in low_first]
    if f.single:  # of the highest product the lower half is all that counts
        return ((whole * low_first[2]).cast(u64) << 32) + significand * w[1] + (significand * w[0] >> 32), None
    mask = 0xFFFFFFFF
    low, high = significand & mask, significand >> 32
    low_products = [low * word for word in w]
    digits: list[Number] = []
    carry: Number | None = None
    for k in range(1, count):
        total = (low_products[k] & mask) + (low_products[k - 1] >> 32) + high * w[k - 1]
        total = total if carry is None else total + carry
        digits.append(total & mask)
        carry = total >> 32
    return (digits[4] << 32) | digits[3], (digits[2] << 32) | digits[1]


def _scaled(part: Number, below: Number | None, f: Format) -> tuple[Number, Number]:
    """pi/2 times a part of a right angle, as the sum of two floats.

    Args:
      part: int64, times 2**62, from -1/2 to 1/2.
      below: the next bits, uint64, times 2**126.
    """
    value = part.cast(f.dtype)
    lost = (part - value.cast(dtypes.int64)).cast(f.dtype)
    if below is not None:
        lost = below.cast(f.dtype).fma(2.0**-64, lost)
    whole, _ = (ldexp(x, -62) for x in parts(_HALF_PI, _HALF_PI_REST, f.mantissa + 1))
    high, low = (ldexp(x, -62) for x in parts(_HALF_PI, _HALF_PI_REST, f.half))
    # What rounding the product takes away: the factors of all that is not small have half the bits (T. Dekker, 1971).
    product = (value * whole).at_most(1.0)  # which compilers do not see through: it is rounded once, for all who use it
    head = f.leading(value)
    error = f.kept(head * high - product, 1.0)
    return product, error + head.fma(low, (value - head).fma(whole, lost * whole))


def _near_right_angles(size: Number, exact: bool) -> tuple[Number, Number, Number]:
    """What :func:`_right_angles` gives, of float32 up to ``_NEAR[exact]``.

    By parts of pi/2: W. Cody, W. Waite, "Software manual for the elementary functions", 1980. The first difference is
    exact, as its product is not rounded and it is a multiple of 2**-23 less than 2. If ``exact``, the second product is
    so as well: its factors have 24 bits together.
    """
    counted = size.fma(1 / _HALF_PI, _WHOLE_SINGLE)  # the last bits count right angles
    back = -(counted - _WHOLE_SINGLE)
    head, middle, tail = _PARTS[exact]
    above = back.fma(head, size)
    angles = counted.bitcast(dtypes.uint32) << 30
    if not exact:
        return back.fma(tail, back.fma(middle, above)), size.like(0.0), angles
    product = back * middle
    left = above + product
    lost = back.fma(tail, (above - left) + product)
    first = left + lost
    return first, (left - first) + lost, angles


def _far_right_angles(size: Number) -> tuple[Number, Number, Number]:
    """What :func:`_right_angles` gives, of a float64 that was a float32, by two pieces of 2/pi.

    Products are not rounded before they are added, and the second one is 2**-2 at most.
    """
    (high, low), *others = ((size.like(high), size.like(low)) for high, low in _PIECES)
    for least, piece in zip(_FROM, others, strict=True):
        below = size < least
        high, low = below.where(high, piece[0]), below.where(low, piece[1])
    counted = size.fma(high, _WHOLE)  # the last bits count right angles
    part = size.fma(low, size.fma(high, -(counted - _WHOLE))) * _HALF_PI
    first = part.cast(dtypes.float32)
    rest = (part - first.cast(dtypes.float64)).cast(dtypes.float32)
    return first, rest, counted.bitcast(dtypes.uint64).cast(dtypes.uint32) << 30


def _branching_right_angles(size: Number, exact: bool) -> tuple[Number, Number, Number]:
    """What :func:`_right_angles` gives of a float32; a branch skips what only large ones need."""
    far, near = _far_right_angles(size.cast(dtypes.float64)), _near_right_angles(size, exact)
    large = size > _NEAR[exact]
    if not exact:
        first, angles = rarely(large, far[::2], near[::2])
        return first, near[1], angles
    first, rest, angles = rarely(large, far, near)
    return first, rest, angles


def _right_angles(size: Number, f: Format, exact: bool) -> tuple[Number, Number, Number]:
    """|x| less the nearest multiple of pi/2, what rounding that took away (if it is asked for), and that multiple.

    Of the multiple the two highest bits of an unsigned integer hold what is left of a whole turn; the bits below mean
    nothing. Of infinity there is no multiple, and the difference is NaN.
    """
    if f.single and f.widens:
        return _branching_right_angles(size, exact)
    turns, below = _turns(size.bitcast(f.unsigned), f)
    bits = f.unsigned.bits
    angles = (turns >> (64 - bits)).cast(f.unsigned) + (1 << (bits - 3))
    # The remaining part of a right angle, from -1/2 to 1/2, times 2**64.
    part = (turns << 2).bitcast(dtypes.int64)
    if f.single and f.doubles:
        wide = double(part, f) * ldexp(_HALF_PI, -64)
        first = wide.cast(f.dtype)
        rest = (wide - first.cast(dtypes.float64)).cast(f.dtype)
    else:
        product, rest = _scaled(part >> 2, below, f)
        first = f.leading(product + rest, 1) if exact else product + rest
        rest = rest - (first - product)
    near = size < _HALF_PI / 2
    first = near.where(size, (size < inf).where(first, nan))
    return first, near.where(size.like(0.0), rest), near.where(angles.like(0), angles)


def _odd(angles: Number) -> Number:
    """Whether a multiple of pi/2 that :func:`_right_angles` gives is odd."""
    return (angles & (1 << (angles.uop.dtype.bits - 2))).differs(0)


def _sine(r: Number, rest: Number | None, f: Format) -> Number:
    """sin(r + rest) for abs(r) <= pi/4."""
    square = r * r
    cube = r * square
    series = square.series(_SIN_SINGLE if f.single else _SIN_DOUBLE)
    if rest is None:
        return cube.fma(series, r)
    return f.leading(cube.fma(series, rest * square.fma(-0.5, 1.0)), 1) + r


def _cosine(r: Number, rest: Number | None, f: Format) -> Number:
    """cos(r + rest) for abs(r) <= pi/4."""
    square = r * r
    if rest is None:
        return square.fma(square.fma(square.series(_COS_SINGLE if f.single else _COS_DOUBLE), -0.5), 1.0)
    half = square * 0.5
    first = f.leading(1.0 - half, 1)
    lost = (1.0 - first) - half - r * rest
    series = square.series(_COS_SINGLE if f.single else _COS_DOUBLE)
    return first + f.leading((square * square).fma(series, lost), 1)


def sine(x: Number, f: Format, ahead: int) -> Number:
    """The sine of x and so many right angles: for 1 the cosine."""
    size = f.size(x)
    r, _, angles = _right_angles(size, f, exact=False)
    angles = angles + (ahead << (f.unsigned.bits - 2))
    found = _odd(angles).where(_cosine(r, None, f), _sine(r, None, f))
    flip = angles & (1 << (f.unsigned.bits - 1))
    if not ahead:
        flip = flip ^ f.sign(x)
    return f.signed_as(found, flip)


def tan(x: Number, f: Format) -> Number:
    """The tangent of x."""
    size = f.size(x)
    r, rest, angles = _right_angles(size, f, exact=True)
    odd = _odd(angles)
    sin, cos = _sine(r, rest, f), _cosine(r, rest, f)
    found = odd.where(cos, sin) / odd.where(-sin, cos)
    return f.signed_as(found, f.sign(x))


def atan(x: Number, f: Format) -> Number:
    """The angle whose tangent is x."""
    size = f.size(x)
    top, bottom = size, size.like(1.0)
    first, rest = size.like(0.0), size.like(0.0)
    for start, c, angle, less in _TURNS:
        beyond = size > start
        top = beyond.where(size.like(-1.0) if c == inf else size - c, top)
        bottom = beyond.where(size if c == inf else size.fma(c, 1.0), bottom)
        high, low = parts(angle, less, f.mantissa + 1)
        first, rest = beyond.where(size.like(high), first), beyond.where(size.like(low), rest)
    t = top / bottom
    square = t * t
    angle_t = (t * square).fma(square.series(_ATAN_SINGLE if f.single else _ATAN_DOUBLE), rest) + t
    return f.signed_as(f.size(first + angle_t), f.sign(x))


def _arc(x: Number, f: Format) -> tuple[Number, Number, Number, Number, Number]:
    """What both inverses are made of: asin y = y + y * p, with y = x where |x| < 1/2, else sqrt((1 - |x|) / 2).

    Returns:
      whether |x| < 1/2; p; y; the leading bits of y; what is left of the exact root beyond them.
    """
    size = f.size(x)
    near = size < 0.5
    z = near.where(x * x, (1.0 - size) * 0.5)
    p = z * z.series(_ASIN_SINGLE if f.single else _ASIN_DOUBLE)
    root = z.apply(Ops.SQRT)
    first = f.leading(root)
    total = root + first
    c = total.equals(0.0).where(total, (z - first * first) / total)
    return near, p, root, first, c


def asin(x: Number, f: Format) -> Number:
    """The angle whose sine is x: near 1, pi/2 - 2 asin(sqrt((1 - x) / 2))."""
    near, p, root, first, c = _arc(x, f)
    high, low = parts(_HALF_PI, _HALF_PI_REST, f.mantissa + 1)
    far = high / 2 - ((root * p * 2.0 - (low - c * 2.0)) - (high / 2 - first * 2.0))
    return near.where((x * p) + x, f.signed_as(far, f.sign(x)))


def acos(x: Number, f: Format) -> Number:
    """The angle whose cosine is x."""
    near, p, root, first, c = _arc(x, f)
    high, low = parts(_HALF_PI, _HALF_PI_REST, f.mantissa + 1)
    middle = high - (x - (low - x * p))
    above = (first + (p * root + c)) * 2.0
    below = 2 * high - (root + (root * p - low)) * 2.0
    return near.where(middle, (x < 0.0).where(below, above))
