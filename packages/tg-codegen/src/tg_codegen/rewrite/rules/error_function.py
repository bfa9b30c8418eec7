"""ERF and ERFC.

Near 0 a polynomial. Further out erfc x = exp(-x**2) * F(x) / (1 + 2 x) with a smooth F (M. Shepherd, J. Laframboise,
"Chebyshev approximation of (1 + 2 x) exp(x**2) erfc x in 0 <= x < oo", Mathematics of Computation 36, 1981). In
float32 erf x = 1 - exp(p(x)) for all x, p a polynomial: where that is small, exp(p) - 1 is known to its last digit.
"""

from __future__ import annotations

from .exponential import expm1_reduced, reduced, scaled
from .number import Format, Number, parts

# erf(x) / x - 1 in x**2
_NEAR_SINGLE = (
    7.853525510834086e-05, -0.0008010100140410609, 0.00518831798023677, -0.026853807318021915, 0.11283585049859489,
    -0.37612625816516787, 0.12837916572568628,
)  # fmt: skip
_NEAR_DOUBLE = (
    -7.77911079441824e-10, 1.3710791300494562e-08, -1.6206270655734678e-07, 1.644712602820278e-06,
    -1.49247118601418e-05, 0.00012055293554314615, -0.0008548325928574443, 0.005223977606103382, -0.026866170643109675,
    0.11283791670944174, -0.3761263890318352, 0.12837916709551256,
)  # fmt: skip
# log(erfc(x)) / x + 1
_LOG_SINGLE = (
    9.256222225256059e-06, -0.00011764090196722213, 0.0006328355906311569, -0.001667025240905559,
    0.00016039392006622725, 0.019153065042623072, -0.10277783082014928, -0.6366193819282608, -0.1283791716126476,
)  # fmt: skip
# F in (x - 2) / (x + 2) and in (x - 4) / (x + 4)
_FAR_SINGLE = (
    -0.0002134997883625739, -0.0012601440064014902, 0.0011343165255476525, 0.008655281402664246, -0.008001765783461522,
    -0.054210389078427346, 0.16404829607332874, -0.16603088647535774, -0.09276375098089924, 1.2769783855956927,
)  # fmt: skip
_FAR_DOUBLE = (
    1.8399134907120637e-09, -9.69019232470789e-09, -1.7994045100246452e-08, 1.0336717404386094e-07,
    7.484700524063122e-08, -8.196461971884278e-07, 2.935578038521271e-07, 5.706590659885896e-06,
    -1.1221870946136835e-05, -2.4398098286889565e-05, 0.0001506216174369707, -0.00019925695450987934,
    -0.0007577732755336768, 0.005031970016703866, -0.016197734059591764, 0.037167515533983224, -0.06633036581207227,
    0.09373283499852385, -0.10103906603631051, 0.06809705425468872, 0.015379652102619846, -0.1396211168405625,
    1.2329951186255526,
)  # fmt: skip
_FAR_REST = -4.625318921008717e-17  # the last coefficient for float64 less the double


def _far(size: Number, f: Format) -> Number:
    """erfc x for x >= 0.8."""
    center, largest = (2.0, 10.06) if f.single else (4.0, 27.23)
    none = size > largest  # as for exp
    x = none.where(center, size)
    t = (x - center) / (x + center)
    twice = x * 2.0
    below = f.kept(twice + 1.0, 2.0 * largest + 1.0)
    *coefficients, last = _FAR_SINGLE if f.single else _FAR_DOUBLE
    high, low = parts(last, _FAR_REST, f.mantissa + 1)
    smooth = (t.series([*coefficients, low]) + high) / below
    # x**2 is the sum of an exact square and a rest. Beside that stands what the sum 1 + 2 x lost, about F being 1.15.
    first = f.leading(x)
    lost = (twice - (below - 1.0)) * smooth
    r, n = reduced(-(first * first), f, (first - x).fma(x + first, lost * -0.87))
    return none.where(0.0, scaled(expm1_reduced(r, f).fma(smooth, smooth), n, f))


def erf(x: Number, f: Format) -> Number:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    size = f.size(x)
    some = size.at_most(4.0 if f.single else 6.0)  # beyond, it is 1 less a quarter of its last place or less
    if f.single:
        r, n = reduced(some.fma(some.series(_LOG_SINGLE), -some), f)
        power = n.power(f)
        return f.signed_as(power.fma(-expm1_reduced(r, f), 1.0 - power), f.sign(x))
    near = x.fma((x * x).series(_NEAR_DOUBLE), x)
    return (size < 1.0).where(near, f.signed_as(1.0 - _far(some, f), f.sign(x)))


def erfc(x: Number, f: Format) -> Number:
    """1 - erf x."""
    size = f.size(x)
    rest = (x - 0.5) + x * (x * x).series(_NEAR_SINGLE if f.single else _NEAR_DOUBLE)
    far = _far(size, f)
    return (size < 0.8).where(0.5 - rest, (x < 0.0).where(2.0 - far, far))
