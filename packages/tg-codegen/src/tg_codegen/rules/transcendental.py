"""EXP2, LOG2 and SIN out of arithmetic that every vector unit has, for fp32 and fp64; narrower floats go through fp32.

All are branch-free. The polynomials are Remez's (``tools/minimax.py``). Greatest errors measured over 1.6 million
arguments, in units in the last place, MULACC fused / not fused:

=====  =========  =========
op     fp32       fp64
=====  =========  =========
EXP2   0.92/1.15  0.91/1.18
LOG2   1.22/2.15  0.95/1.92
SIN    1.70/1.91  2.15/2.54
=====  =========  =========

Subnormal arguments and results are right, and so are NaN, infinities and the sign of zero. SIN reduces arguments of
any size by Payne and Hanek's method: it multiplies the mantissa by just those bits of 2/pi that matter (M. Payne,
R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, ldexp, nan, pi, sqrt

from tg_dtype import ConstType, DType, dtypes, to_bits
from tg_lazy import Ops

from ..renderer import Renderer
from ..uop import UOp, UOps, const


@dataclass(frozen=True, slots=True)
class _Format:
    """A float that the algorithms are written for, and their coefficients, highest power first."""

    dtype: DType
    signed: DType
    unsigned: DType
    mantissa: int
    bias: int
    exp2: tuple[float, ...]
    log2: tuple[float, ...]
    sin: tuple[float, ...]


_FP32 = _Format(
    dtypes.float32, dtypes.int32, dtypes.uint32, 23, 127,
    (0.00015353339956612232, 0.001339890018551765, 0.009618437609176802, 0.05550332409654291, 0.24022647910283068,
     0.6931472028809557),
    (0.1261640511786858, -0.2065224644650541, 0.21522029099439505, -0.23904854607955606, 0.2879905909165374,
     -0.36069953284621825, 0.4809072835225106, -0.7213473959710799),
    (2.605780610755579e-06, -0.00019809602888982362, 0.00833306624588951, -0.16666659550419113),
)  # fmt: skip
_FP64 = _Format(
    dtypes.float64, dtypes.int64, dtypes.uint64, 52, 1023,
    (4.434767820373814e-10, 7.073790785881259e-09, 1.0178199657065532e-07, 1.3215435241190137e-06,
     1.5252733492767733e-05, 0.00015403530457188365, 0.0013333558146775162, 0.009618129107594065, 0.05550410866482008,
     0.2402265069591013, 0.6931471805599453),
    (0.1479662343619266, 0.15313986875294933, 0.1818356666546809, 0.22222198531199905, 0.2857142874276543,
     0.39999999999413133, 0.6666666666666735),
    (2.7211749637462305e-15, -7.642991489632024e-13, 1.6058939705918386e-10, -2.5052106872802908e-08,
     2.7557319211137284e-06, -0.00019841269841209218, 0.008333333333333194, -0.16666666666666666),
)  # fmt: skip
_LOG2_E = 1.4426950408889634
_LOG2_E_REST = 2.0355273740931033e-17  # log2(e) less the above
_PI_REST = 1.2246467991473532e-16  # pi less its nearest double


def _like(u: UOp, value: ConstType, dtype: DType | None = None) -> UOp:
    """A constant of the node's dtype, or of another, with as many lanes."""
    return const(value, (dtype or u.dtype.scalar()).vec(u.dtype.count))


def _add(a: UOp, b: UOp | ConstType) -> UOp:
    return a.alu(Ops.ADD, b if isinstance(b, UOp) else _like(a, b))


def _sub(a: UOp, b: UOp | ConstType) -> UOp:
    return a.alu(Ops.SUB, b if isinstance(b, UOp) else _like(a, b))


def _mul(a: UOp, b: UOp | ConstType) -> UOp:
    return a.alu(Ops.MUL, b if isinstance(b, UOp) else _like(a, b))


def _and(a: UOp, b: int) -> UOp:
    return a.alu(Ops.AND, _like(a, b))


def _or(a: UOp, b: UOp) -> UOp:
    return a.alu(Ops.OR, b)


def _shl(a: UOp, n: UOp | int) -> UOp:
    return a.alu(Ops.SHL, n if isinstance(n, UOp) else _like(a, n))


def _shr(a: UOp, n: UOp | int) -> UOp:
    return a.alu(Ops.SHR, n if isinstance(n, UOp) else _like(a, n))


def _lt(a: UOp | float, b: UOp | float) -> UOp:
    if isinstance(a, UOp):
        return a.alu(Ops.CMPLT, b if isinstance(b, UOp) else _like(a, b))
    assert isinstance(b, UOp)
    return _like(b, a).alu(Ops.CMPLT, b)


def _select(condition: UOp, yes: UOp | float, no: UOp | float) -> UOp:
    like = yes if isinstance(yes, UOp) else no
    assert isinstance(like, UOp)
    return condition.alu(Ops.WHERE, *(v if isinstance(v, UOp) else _like(like, v) for v in (yes, no)))


def _fma(a: UOp, b: UOp | float, c: UOp | float) -> UOp:
    return a.alu(Ops.MULACC, *(v if isinstance(v, UOp) else _like(a, v) for v in (b, c)))


def _horner(x: UOp, coefficients: Sequence[float]) -> UOp:
    total = _like(x, coefficients[0])
    for c in coefficients[1:]:
        total = _fma(total, x, c)
    return total


def _exp2(x: UOp, f: _Format, scales: bool) -> UOp:
    # Beyond these the result is infinity or 0 anyway. Written so that a NaN stays.
    x = _select(_lt(f.bias + 2.0, x), f.bias + 2.0, x)
    lowest = -(f.bias + f.mantissa + 1.0)
    x = _select(_lt(x, lowest), lowest, x)
    if scales:
        whole = _sub(_add(x, 1.5 * 2.0**f.mantissa), 1.5 * 2.0**f.mantissa)
        rest = _sub(x, whole)
        return UOp(UOps.SCALE, x.dtype, (_fma(rest, _horner(rest, f.exp2), 1.0), whole))
    # Results below the normal range are computed 2**64 times too large and scaled at the end, with one rounding.
    small = _lt(x, 2.0 - f.bias)
    x = _select(small, _add(x, 64.0), x)
    # Adding 1.5 * 2**mantissa rounds to an integer, which is then in the low bits of the sum.
    magic = 1.5 * 2.0**f.mantissa
    shifted = _add(x, magic)
    rest = _sub(x, _sub(shifted, magic))
    twice = _fma(rest, _horner(rest, [2 * c for c in f.exp2]), 2.0)
    half_scale = _add(_shl(shifted.bitcast(f.signed), f.mantissa), (f.bias - 1) << f.mantissa).bitcast(f.dtype)
    return _mul(_mul(twice, half_scale), _select(small, 2.0**-64, _like(x, 1.0)))


def _log2(x: UOp, f: _Format) -> UOp:
    small = _lt(x, 2.0 ** (1 - f.bias))
    lift = f.mantissa + 1.0
    bits = _select(small, _mul(x, 2.0**lift), x).bitcast(f.signed)
    # x = m * 2**e with sqrt(1/2) <= m < sqrt(2)
    middle = int(to_bits(sqrt(0.5), f.dtype))
    e = _shr(_sub(bits, middle), f.mantissa)
    m = _sub(_sub(bits, _shl(e, f.mantissa)).bitcast(f.dtype), 1.0)
    exponent = _add(e.cast(f.dtype), _select(small, -lift, _like(x, 0.0)))
    if f is _FP32:
        high = float(dtypes.as_const(_LOG2_E, f.dtype))
        rest = _fma(_mul(m, m), _horner(m, f.log2), _mul(m, _LOG2_E - high))
    else:
        high = _LOG2_E
        s = m.alu(Ops.FDIV, _add(m, 2.0))
        z = _mul(s, s)
        half_square = _mul(_mul(m, m), 0.5)
        series = _mul(_horner(z, f.log2), z)
        log_rest = _sub(_mul(s, _add(half_square, series)), half_square)
        rest = _fma(log_rest, high, _mul(m, _LOG2_E_REST))
    finite = _add(_fma(m, high, rest), exponent)
    positive = _select(_lt(x, inf), finite, x)
    return _select(_lt(0.0, x), positive, _select(x.alu(Ops.CMPEQ, _like(x, 0.0)), -inf, _like(x, nan)))


@cache
def _two_over_pi(words: int) -> tuple[int, ...]:
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


def _window(start: UOp, table: tuple[int, ...], count: int) -> list[UOp]:
    """``count`` words of 32 bits of a table of bits, from bit ``start`` on; ``start`` is uint32."""
    words: list[UOp] = [_like(start, word) for word in table]
    place = _shr(start, 5)
    for bit in reversed(range((len(table) - count - 1).bit_length())):
        taken = _and(place, 1 << bit).alu(Ops.CMPNE, _like(place, 0))
        kept = count + (1 << bit)  # so many words are still needed after this step
        words = [
            _select(taken, words[k + (1 << bit)], words[k]) if k + (1 << bit) < len(words) else words[k]
            for k in range(min(kept, len(words)))
        ]
    shift = _and(start, 31)
    back = _like(start, 31).alu(Ops.SUB, shift)
    return [_or(_shl(words[k], shift), _shr(_shr(words[k + 1], 1), back)) for k in range(count)]


def _half_turns(magnitude: UOp, f: _Format, wide: DType) -> tuple[UOp, UOp]:
    """|x| less the nearest multiple of pi, and whether that multiple is odd, for |x| >= 1.

    Args:
      magnitude: the bits of |x|.
      wide: the float in which the difference is computed.
    """
    u64, u32 = dtypes.uint64, dtypes.uint32
    padding = 1 if f is _FP32 else 2
    significand = _or(_and(magnitude, (1 << f.mantissa) - 1), _like(magnitude, 1 << f.mantissa)).cast(u64)
    # Bits of 2/pi that add multiples of 4 quarter turns are skipped; the table begins with zeros for small exponents.
    skipped = f.bias + f.mantissa + 2 - 32 * padding
    start = _sub(_shr(magnitude, f.mantissa).cast(u32), skipped)
    count = 3 if f is _FP32 else 6
    longest = 2 * f.bias - skipped
    table = (0,) * padding + _two_over_pi(longest // 32 + count + 1 - padding)
    w = [word.cast(u64) for word in reversed(_window(start, table, count))]
    # `turns` is the fraction of a whole turn times 2**64; `below` has the next 64 bits.
    below: UOp | None = None
    if f is _FP32:
        products = [_mul(significand, word) for word in w]
        turns = _add(_add(_shl(products[2], 32), products[1]), _shr(products[0], 32))
    else:
        mask = 0xFFFFFFFF
        low, high = _and(significand, mask), _shr(significand, 32)
        low_products = [_mul(low, word) for word in w]
        digits: list[UOp] = []
        carry: UOp | None = None
        for k in range(1, count):
            total = _add(_and(low_products[k], mask), _shr(low_products[k - 1], 32))
            total = _add(total, _mul(high, w[k - 1]))
            total = total if carry is None else _add(total, carry)
            digits.append(_and(total, mask))
            carry = _shr(total, 32)
        turns = _or(_shl(digits[4], 32), digits[3])
        below = _or(_shl(digits[2], 32), digits[1])
    odd = _shr(_add(turns, 1 << 62), 63)
    if below is None:
        part = _shl(turns, 1).bitcast(dtypes.int64).cast(wide)
    else:
        part = _or(_shl(turns, 1), _shr(below, 63)).bitcast(dtypes.int64).cast(wide)
        part = _fma(_shl(below, 1).cast(wide), 2.0**-64, part)
    near_pi = float(dtypes.as_const(pi, wide))
    return _fma(part, ldexp(near_pi, -64), _mul(part, ldexp(pi - near_pi + _PI_REST, -64))), odd


def _sin(x: UOp, f: _Format, wide: DType) -> UOp:
    bits = x.bitcast(f.unsigned)
    sign = f.unsigned.bits - 1
    magnitude = _and(bits, (1 << sign) - 1)
    size = magnitude.bitcast(f.dtype)
    turned, odd = _half_turns(magnitude, f, wide)
    flip = _shl(_shr(bits, sign).alu(Ops.XOR, odd.cast(f.unsigned)), sign)
    reduced = turned.cast(f.dtype).bitcast(f.unsigned).alu(Ops.XOR, flip).bitcast(f.dtype)
    r = _select(_lt(size, 1.5), x, reduced)
    square = _mul(r, r)
    finite = _fma(_mul(r, square), _horner(square, f.sin), r)
    # Here the sine is the argument, whose sign is kept also for zero.
    finite = _select(_lt(size, 2.0 ** (-f.mantissa // 2 - 2)), x, finite)
    return _select(_lt(size, inf), finite, nan)


def transcendental(root: UOp, renderer: Renderer) -> UOp:
    """EXP2, LOG2 or SIN of any float as arithmetic."""
    x, scalar = root.src[0], root.dtype.scalar()
    if scalar not in (dtypes.float32, dtypes.float64):
        return UOp(root.op, dtypes.float32.vec(x.dtype.count), (x.cast(dtypes.float32),)).cast(scalar)
    f = _FP32 if scalar is dtypes.float32 else _FP64
    if root.op is Ops.EXP2:
        return _exp2(x, f, renderer.scales and renderer.target.scales)
    if root.op is Ops.LOG2:
        return _log2(x, f)
    wide = dtypes.float64 if renderer.supports_dtype(dtypes.float64) else f.dtype
    return _sin(x, f, wide)
