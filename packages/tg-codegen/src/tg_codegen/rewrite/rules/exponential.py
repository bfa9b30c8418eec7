"""EXP, EXP2, EXPM1 and the hyperbolic functions.

e**x = 2**n * e**r with n the whole number nearest to x / log 2, so that abs(r) <= log(2) / 2. n * log 2 is taken away
in two parts, of which the first has so few bits that its product with n is exact (W. J. Cody, W. Waite, "Software
manual for the elementary functions", 1980).
"""

from __future__ import annotations

from typing import NamedTuple

from tg_lazy import Ops

from .number import Format, Number, parts, scale

_LOG2_E = 1.4426950408889634
_LOG_2, _LOG_2_REST = 0.6931471805599453, 2.3190468138462996e-17
# (2**t - 1) / t
_EXP2_SINGLE = (
    0.00015353339956612232, 0.001339890018551765, 0.009618437609176802, 0.05550332409654291, 0.24022647910283068,
    0.6931472028809557,
)  # fmt: skip
_EXP2_DOUBLE = (
    4.434767820373814e-10, 7.073790785881259e-09, 1.0178199657065532e-07, 1.3215435241190137e-06,
    1.5252733492767733e-05, 0.00015403530457188365, 0.0013333558146775162, 0.009618129107594065, 0.05550410866482008,
    0.2402265069591013, 0.6931471805599453,
)  # fmt: skip
# (exp(r) - 1 - r) / r**2, relative to exp(r) and to exp(r) - 1
_EXP_SINGLE = (
    0.001381460760361855, 0.008368711194825455, 0.04166838755475387, 0.16666520678411675, 0.49999993450620206,
)  # fmt: skip
_EXPM1_SINGLE = (
    0.00019845877362074552, 0.0013940618817410593, 0.008333389349615033, 0.041666361014078626, 0.1666666637061715,
    0.500000004414199,
)  # fmt: skip
_EXPM1_DOUBLE = (
    2.0875327715788043e-09, 2.510896973400645e-08, 2.755740262383737e-07, 2.7557244398236302e-06,
    2.4801587172591834e-05, 0.00019841269885944413, 0.001388888888896233, 0.008333333333321698, 0.04166666666666651,
    0.16666666666666677, 0.5,
)  # fmt: skip
# (sinh(x) - x) / x**3 in x**2
_SINH_SINGLE = (0.00020372300955449026, 0.008330282501361301, 0.16666716051735223)
_SINH_DOUBLE = (
    7.75877122918969e-13, 1.6057259053433425e-10, 2.5052123145579163e-08, 2.7557319157018405e-06,
    0.00019841269841432035, 0.008333333333333148, 0.16666666666666669,
)  # fmt: skip
# (tanh(x) - x) / x**3 in x**2
_TANH = (
    -1.6068223459743967e-05, 7.713548782935207e-05, -0.00022855640392690043, 0.0005863126758458186,
    -0.0014549576957858699, 0.0035919889428807764, -0.008863220973891063, 0.021869487573890758, -0.053968253931171,
    0.13333333333261882, -0.33333333333332854,
)  # fmt: skip


class WholeNumber(NamedTuple):
    """A whole number n: as a float, and as a signed integer whose low bits are those of n."""

    value: Number
    bits: Number

    def power(self, f: Format, less: int = 0) -> Number:
        """2**(n - less), which must be normal."""
        return ((self.bits << f.mantissa) + ((f.bias - less) << f.mantissa)).bitcast(f.dtype)


def nearest(x: Number, factor: float, f: Format) -> WholeNumber:
    """The whole number near x * factor, which is less than 2**(mantissa - 2)."""
    if not f.shifts:
        value = (x.fma(factor, (x < 0.0).where(x.like(-0.5), 0.5))).apply(Ops.TRUNC)
        return WholeNumber(value, value.cast(f.signed))
    # The sum has no bits after the point, and the whole number is in its low ones.
    magic = 1.5 * 2.0**f.mantissa
    shifted = x.fma(factor, magic)
    return WholeNumber(shifted - magic, shifted.bitcast(f.signed))


def reduced(x: Number, f: Format, rest: Number | None = None) -> tuple[Number, WholeNumber]:
    """r and n of e**(x + rest), where ``rest`` is small beside ``x``."""
    n = nearest(x if rest is None else x + rest, _LOG2_E, f)
    high, low = parts(_LOG_2, _LOG_2_REST, f.mantissa - 8 if f.single else f.mantissa - 11)
    r = f.kept(n.value.fma(-high, x), 1.0)
    return n.value.fma(-low, r if rest is None else r + rest), n


def scaled(x: Number, n: WholeNumber, f: Format, less: int = 0) -> Number:
    """x * 2**(n - less), rounded once, for n in about twice the range of exponents."""
    if f.scales:
        return scale(x, n.value - less if less else n.value)
    # Two factors, of which each is normal. The low bits of n have its sign only once they are shifted up.
    whole = ((n.bits << f.mantissa) >> f.mantissa) - less
    part = whole >> 1
    first, second = (((p + f.bias) << f.mantissa).bitcast(f.dtype) for p in (part, whole - part))
    return f.kept(x * first, 2.0**f.bias) * second


def exp_reduced(r: Number, f: Format) -> Number:
    """e**r for a reduced r."""
    series = r.series(_EXP_SINGLE if f.single else _EXPM1_DOUBLE)
    return r.fma(r.fma(series, 1.0), 1.0)


def expm1_reduced(r: Number, f: Format) -> Number:
    """e**r - 1 for a reduced r."""
    return (r * r).fma(r.series(_EXPM1_SINGLE if f.single else _EXPM1_DOUBLE), r)


def exp(x: Number, f: Format, less: int = 0) -> Number:
    """e**x / 2**less."""
    # beyond these limits it is infinite or 0 anyway
    none = x < (-104.0 if f.single else -746.0)
    r, n = reduced(none.where(0.0, x).at_most(90.0 if f.single else 711.0), f)
    # What rounds to 0 is not computed: results below the normal range take ten times as long on processors that leave
    # them to microcode, and a softmax that is masked with -inf has little else. Source: Intel 64 and IA-32
    # Architectures Optimization Reference Manual, "Floating-Point Exceptions in SSE and SSE2/SSE3 Code".
    return none.where(0.0, scaled(exp_reduced(r, f), n, f, less))


def exp2(x: Number, f: Format) -> Number:
    """2**x."""
    none = x < -(f.bias + f.mantissa + 0.0)  # as for exp
    x = none.where(0.0, x).at_most(f.bias + 2.0)
    coefficients = _EXP2_SINGLE if f.single else _EXP2_DOUBLE
    direct = f.scales or not f.shifts
    # Else results below the normal range are computed 2**64 times too large and scaled at the end, with one rounding.
    small = x < 2.0 - f.bias
    moved = x if direct else small.where(x + 64.0, x)
    n = nearest(moved, 1.0, f)
    rest = moved - n.value
    if direct:
        return none.where(0.0, scaled(rest.fma(rest.series(coefficients), 1.0), n, f))
    twice = rest.fma(rest.series([2 * c for c in coefficients]), 2.0)
    return none.where(0.0, (twice * n.power(f, 1)) * small.where(x.like(2.0**-64), 1.0))


def expm1(x: Number, f: Format) -> Number:
    """e**x - 1."""
    bounded = x.at_most(89.0 if f.single else 710.0).at_least(-20.0 if f.single else -40.0)
    r, n = reduced(bounded, f)
    near = expm1_reduced(r, f)
    half = n.power(f, 1)  # 2**n may be more than the greatest float
    far = half.fma(near, half - 0.5) * 2.0
    found = n.value.equals(0.0).where(near, far)
    return (f.size(x) < 2.0 ** -(f.mantissa + 2)).where(x, found)


def _halves(size: Number, f: Format) -> tuple[Number, Number]:
    """e**size / 2 and e**-size / 2."""
    half = exp(size, f, 1)
    return half, 0.25 / half


def sinh(x: Number, f: Format) -> Number:
    """(e**x - e**-x) / 2."""
    size = f.size(x)
    square = x * x
    near = (x * square).fma(square.series(_SINH_SINGLE if f.single else _SINH_DOUBLE), x)
    half, other = _halves(size, f)
    far = f.signed_as(half - other, f.sign(x))
    return (size < 1.0).where((size < 2.0 ** -(f.mantissa // 2 + 2)).where(x, near), far)


def cosh(x: Number, f: Format) -> Number:
    """(e**x + e**-x) / 2."""
    half, other = _halves(f.size(x), f)
    return half + other


def tanh(x: Number, f: Format) -> Number:
    """sinh x / cosh x, as the fewest instructions that are accurate enough.

    For float32 t / (t + 2) with t = e**(2 |x|) - 1; for float64, of which that is 2.6 units off, 1 - 2 / (t + 2) and
    near 0 a polynomial.
    """
    size = f.size(x)
    r, n = reduced((size * 2.0).at_most(20.0 if f.single else 40.0), f)
    power = n.power(f)
    if f.single:
        t = power.fma(expm1_reduced(r, f), power - 1.0)
        return f.signed_as(t / (t + 2.0), f.sign(x))
    square = x * x
    near = (size * square).fma(square.series(_TANH), size)
    far = 1.0 - 2.0 / power.fma(exp_reduced(r, f), 1.0)
    return f.signed_as((size < 0.625).where(near, far), f.sign(x))
