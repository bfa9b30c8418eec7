"""Polynomials of special functions: ``python -m tools.special_fits`` writes ``special/approximations.py`` anew.

Each polynomial interpolates its function at Chebyshev's points, in numbers of 60 digits, with the least degree whose
relative error is below a tenth of an ulp of the format. It is given in powers of t, which goes from -1 to 1 while the
argument goes from one end of the interval to the other. Of entire functions there are Taylor's coefficients.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

mp: Any = importlib.import_module("mpmath")
mp.mp.dps = 60
Real = Callable[[Any], Any]
FILE = Path(__file__).parents[1] / "packages/tg-frontend/src/tg_frontend/special/approximations.py"
GOALS = (2.0**-27, 2.0**-56)
"""Greatest relative errors: of float32 and float64."""


class Fit(NamedTuple):
    """A function on an interval.

    Attributes:
      name: of the table.
      says: what it approximates.
      f: the function.
      low: where the interval begins.
      high: where it ends.
      waves: whether it has zeros there, so that an error counts beside its greatest value.
    """

    name: str
    says: str
    f: Real
    low: float
    high: float
    waves: bool = False


class Taylor(NamedTuple):
    """A power series.

    Attributes:
      name: of the table.
      says: what it is.
      term: its coefficient of a power.
      reach: the greatest argument.
    """

    name: str
    says: str
    term: Real
    reach: float


def interpolated(f: Real, low: Any, high: Any, degree: int) -> list[Any]:
    """Coefficients of the interpolating polynomial, constant first, in powers of t."""
    count = degree + 1
    angles = [mp.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    values = [f(low + (high - low) * (1 + mp.cos(angle)) / 2) for angle in angles]
    chebyshev = [
        2 * mp.fsum(value * mp.cos(j * angle) for value, angle in zip(values, angles, strict=True)) / count
        for j in range(count)
    ]
    chebyshev[0] /= 2
    before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    powers = [mp.mpf(0)] * count
    for factor in chebyshev:
        for k, c in enumerate(before):
            powers[k] += factor * c
        after = [mp.mpf(0), *(2 * c for c in now)]
        for k, c in enumerate(before):
            after[k] -= c
        before, now = now, after
    return powers


def fitted(fit: Fit, goal: float) -> list[Any]:
    """The coefficients of least degree that reach the goal."""
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    grid = [mp.mpf(k) / 40 + mp.mpf(1) / 977 for k in range(-40, 40)]
    exact = [fit.f(low + (high - low) * (1 + t) / 2) for t in grid]
    most = 90
    least = interpolated(fit.f, low, high, most)
    size = max(abs(value) for value in exact)
    known = [size if fit.waves else abs(value) for value in exact]
    for degree in range(2, most):
        if abs(least[degree]) > size:  # a first look, before anything is interpolated
            continue
        found = interpolated(fit.f, low, high, degree) if degree % 2 == 0 else []
        if found and all(
            abs(mp.polyval(found[::-1], t) - value) <= goal * scale
            for t, value, scale in zip(grid, exact, known, strict=True)
        ):
            return found
    raise ValueError(f"{fit.name}: no polynomial is good enough")


def summed(series: Taylor, goal: float) -> list[Any]:
    """As many coefficients as count."""
    out: list[Any] = []
    total = mp.mpf(0)
    while True:
        part = abs(series.term(len(out))) * mp.mpf(series.reach) ** len(out)
        total = max(total, part)
        if out and part < goal * total / 16:
            return out
        out.append(series.term(len(out)))


def _near(f: Real) -> Real:
    """The function, with removable singularities stepped over."""
    return lambda x: f(x + mp.mpf(10) ** -25)


def _stirling(x: Any) -> Any:
    return (x - mp.mpf(0.5)) * mp.log(x) - x + mp.log(2 * mp.pi) / 2


def _inverse_square(f: Real) -> Real:
    """A function of x in 1 / x**2, also at 0."""
    return lambda z: f(1 / mp.sqrt(z if z > mp.mpf(10) ** -12 else mp.mpf(10) ** -12))


DIGAMMA_ZERO = mp.findroot(mp.digamma, 1.46)


def _erfinv_of_log(w: Any) -> Any:
    x = mp.sqrt(-mp.expm1(-w)) if w > 0 else mp.mpf(10) ** -20
    x = max(x, mp.mpf(10) ** -20)
    return mp.erfinv(x) / x


def _erfinv_of_root(s: Any) -> Any:
    x = mp.sqrt(-mp.expm1(-s * s))
    guess = s - mp.log(s * mp.sqrt(mp.pi)) / (2 * s)
    rest = -mp.expm1(mp.log(-mp.expm1(-s * s)) / 2)  # 1 - x, exactly
    root = mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(rest), guess)
    return root / x


def _quantile(r: Any) -> Any:
    """-ndtri(p) / r where r = sqrt(-2 log p)."""
    y = mp.findroot(lambda y: mp.log(mp.erfc(y / mp.sqrt(2)) / 2) + r * r / 2, r - mp.log(r * 2.5) / r)
    return y / r


def _scaled_erfc(t: Any) -> Any:
    if t > 1 - mp.mpf(10) ** -12:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x > 1e3:
        total, term = mp.mpf(1), mp.mpf(1)
        for k in range(1, 12):
            term *= -(2 * k - 1) / (2 * x * x)
            total += term
        return (1 + 2 * x) * total / (x * mp.sqrt(mp.pi))
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _scaled_i(order: int) -> Real:
    return lambda u: mp.exp(-1 / u) * mp.besseli(order, 1 / u) / mp.sqrt(u)


def _scaled_k(order: int) -> Real:
    return lambda u: mp.exp(1 / u) * mp.besselk(order, 1 / u) / mp.sqrt(u)


def _cross(order: int, wanted: str) -> Real:
    """P or Q * x, in 1 / x**2, of J = sqrt(2 / (pi x)) (P cos(a) - Q sin(a)) and Y, likewise P sin(a) + Q cos(a)."""

    def apply(z: Any) -> Any:
        x = 1 / mp.sqrt(max(z, mp.mpf(10) ** -10))
        angle = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        c, s = mp.cos(angle), mp.sin(angle)
        return mp.sqrt(mp.pi * x / 2) * (j * c + y * s if wanted == "P" else (y * c - j * s) * x)

    return apply


J0_ZEROS = [mp.besseljzero(0, k) for k in (1, 2)]
J1_ZEROS = [mp.besseljzero(1, k) for k in (1, 2)]
Y0_ZEROS = [mp.besselyzero(0, k) for k in (1, 2, 3)]
Y1_ZEROS = [mp.besselyzero(1, k) for k in (1, 2)]


def _without_logarithm(order: int, zero: Any) -> Real:
    """Y less its logarithm, over z less its zero's square, in z = x**2; of order 1 times x."""

    def apply(z: Any) -> Any:
        x = mp.sqrt(z)
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x / zero) * mp.besselj(order, x)
        return rest * x**order / (z - zero * zero)

    return _near(apply)


def _zeta_of(y: Any) -> Any:
    return 2 * mp.sqrt(y) ** 3 / 3


def _airy(derivative: int) -> Real:
    """Ai, or Ai' over -sqrt(x), without its decay: in 1 / zeta where zeta = 2/3 x**1.5."""

    def apply(u: Any) -> Any:
        zeta = 1 / max(u, mp.mpf(10) ** -4)
        x = (zeta * 1.5) ** (mp.mpf(2) / 3)
        return mp.airyai(x, derivative=derivative) * mp.exp(zeta) * x ** (mp.mpf(1 - 2 * derivative) / 4)

    return apply


def _airy_cross(derivative: int, wanted: str) -> Real:
    """Factors of cosine and sine of zeta - pi/4, in 1 / zeta**2; the lesser one is multiplied by zeta.

    Ai(-y) = (P cos + Q sin) / (sqrt(pi) y**0.25), and Ai'(-y) = (P sin - Q cos) y**0.25 / sqrt(pi).
    """

    def apply(u: Any) -> Any:
        zeta = 1 / mp.sqrt(max(u, mp.mpf(10) ** -8))
        y = (zeta * 1.5) ** (mp.mpf(2) / 3)
        c, s = mp.cos(zeta - mp.pi / 4), mp.sin(zeta - mp.pi / 4)
        a, b = mp.airyai(-y, derivative=derivative), mp.airybi(-y, derivative=derivative)
        scale = mp.sqrt(mp.pi) * y ** (mp.mpf(1 - 2 * derivative) / 4)
        if derivative:
            return scale * (a * s + b * c if wanted == "P" else (b * s - a * c) * zeta)
        return scale * (a * c - b * s if wanted == "P" else (a * s + b * c) * zeta)

    return apply


def _over(f: Real, zero: Any) -> Real:
    return _near(lambda x: f(x) / (x - zero))


def _in_square(f: Real, zero: Any) -> Real:
    """f(x) / (z - zero**2) in z = x**2."""
    return _near(lambda z: f(mp.sqrt(z)) / (z - zero * zero))


def _j(order: int) -> Real:
    return lambda x: mp.besselj(order, x)


def _y(order: int) -> Real:
    return lambda x: mp.bessely(order, x)


FITS: list[Fit | Taylor] = [
    Fit("LGAMMA_1", "lgamma(x) / ((x - 1) (x - 2))", _near(lambda x: mp.loggamma(x) / ((x - 1) * (x - 2))), 0.5, 1.5),
    Fit("LGAMMA_2", "the same", _near(lambda x: mp.loggamma(x) / ((x - 1) * (x - 2))), 1.5, 3.0),
    Fit("LGAMMA_3", "the same", lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), 3.0, 8.0),
    Fit("LGAMMA_REST", "(lgamma(x) - Stirling's formula) * x, in 1 / x**2",
        _inverse_square(lambda x: (mp.loggamma(x) - _stirling(x)) * x), 0.0, 1 / 64),
    Fit("LOG_REST", "(m - log(1 + m)) / m**2", _near(lambda m: (m - mp.log1p(m)) / m**2), -0.5, 1.0),
    Fit("DIGAMMA_1", "digamma(x) / (x - its zero)", _near(lambda x: mp.digamma(x) / (x - DIGAMMA_ZERO)), 1.0, 2.5),
    Fit("DIGAMMA_2", "digamma(x)", mp.digamma, 2.5, 8.0),
    Fit("DIGAMMA_REST", "(log(x) - 1 / (2 x) - digamma(x)) * x**2, in 1 / x**2",
        _inverse_square(lambda x: (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x), 0.0, 1 / 64),
    Fit("ERFINV_1", "erfinv(x) / x, in w = -log(1 - x**2)", _erfinv_of_log, 0.0, 5.0),
    Fit("ERFINV_2", "erfinv(x) / x, in sqrt(w)", _erfinv_of_root, 2.2, 6.2),
    Fit("NDTRI_1", "-ndtri(p) / r, in r = sqrt(-2 log(p))", _quantile, 2.0, 6.0),
    Fit("NDTRI_2", "the same, in 1 / r", lambda u: _quantile(1 / u), 1 / 40, 1 / 6),
    Taylor("I0", "I0(x), in (x / 2)**2", lambda k: 1 / mp.factorial(k) ** 2, 16.0),
    Taylor("I1", "I1(x) / (x / 2), in (x / 2)**2", lambda k: 1 / (mp.factorial(k) * mp.factorial(k + 1)), 16.0),
    Fit("I0_SCALED", "I0(x) exp(-x) sqrt(x), in 1 / x", _near(_scaled_i(0)), 0.0, 1 / 8),
    Fit("I1_SCALED", "I1(x) exp(-x) sqrt(x), in 1 / x", _near(_scaled_i(1)), 0.0, 1 / 8),
    Taylor("K0_REST", "K0(x) + log(x / 2) I0(x), in (x / 2)**2",
           lambda k: mp.digamma(k + 1) / mp.factorial(k) ** 2, 1.0),
    Taylor("K1_REST", "(1 / x + log(x / 2) I1(x) - K1(x)) / (x / 2), in (x / 2)**2",
           lambda k: (mp.digamma(k + 1) + mp.digamma(k + 2)) / (2 * mp.factorial(k) * mp.factorial(k + 1)), 1.0),
    Fit("K0_SCALED", "K0(x) exp(x) sqrt(x), in 1 / x", _near(_scaled_k(0)), 0.0, 0.5),
    Fit("K1_SCALED", "K1(x) exp(x) sqrt(x), in 1 / x", _near(_scaled_k(1)), 0.0, 0.5),
    Fit("J0_1", "J0(x) / (x**2 - its first zero squared), in x**2", _in_square(_j(0), J0_ZEROS[0]), 0.0, 16.0),
    Fit("J0_2", "J0(x) / (x - its second zero)", _over(_j(0), J0_ZEROS[1]), 4.0, 8.0),
    Fit("J1_1", "J1(x) / (x (x**2 - its first zero squared)), in x**2",
        _in_square(lambda x: mp.besselj(1, x) / x, J1_ZEROS[0]), 0.0, 30.25),
    Fit("J1_2", "J1(x) / (x - its second zero)", _over(_j(1), J1_ZEROS[1]), 5.5, 8.0),
    Fit("Y0_1", "(Y0(x) - 2/pi log(x / its first zero) J0(x)) / (x**2 - that zero squared), in x**2",
        _without_logarithm(0, Y0_ZEROS[0]), 0.0, 9.0),
    Fit("Y0_2", "Y0(x) / (x - its second zero)", _over(_y(0), Y0_ZEROS[1]), 3.0, 5.5),
    Fit("Y0_3", "Y0(x) / (x - its third zero)", _over(_y(0), Y0_ZEROS[2]), 5.5, 8.0),
    Fit("Y1_1", "(Y1(x) - 2/pi log(x / its first zero) J1(x)) x / (x**2 - that zero squared), in x**2",
        _without_logarithm(1, Y1_ZEROS[0]), 0.0, 16.0),
    Fit("Y1_2", "Y1(x) / (x - its second zero)", _over(_y(1), Y1_ZEROS[1]), 4.0, 8.0),
    Fit("P0", "J0 = sqrt(2 / (pi x)) (P0 cos(x - pi/4) - Q0 sin(x - pi/4)), in 1 / x**2", _cross(0, "P"), 0.0, 1 / 64),
    Fit("Q0", "Q0 x", _cross(0, "Q"), 0.0, 1 / 64),
    Fit("P1", "J1 = sqrt(2 / (pi x)) (P1 cos(x - 3 pi/4) - Q1 sin(x - 3 pi/4)), in 1 / x**2", _cross(1, "P"), 0.0,
        1 / 64),
    Fit("Q1", "Q1 x", _cross(1, "Q"), 0.0, 1 / 64),
    Fit("AIRY_DECAY", "Ai(x) exp(zeta) x**0.25, in 1 / zeta = 1.5 x**-1.5", _airy(0), 0.0, 1.5),
    Fit("AIRY_MIDDLE", "Ai(x)", mp.airyai, -2.0, 1.0),
    Fit("AIRY_WAVES_1", "Ai(x)", mp.airyai, -5.0, -2.0, waves=True),
    Fit("AIRY_WAVES_2", "Ai(x)", mp.airyai, -8.0, -5.0, waves=True),
    Fit("AIRY_P", "Ai(-y) = (P cos(zeta - pi/4) + Q sin(zeta - pi/4)) / (sqrt(pi) y**0.25), in 1 / zeta**2",
        _airy_cross(0, "P"), 0.0, 1 / 225),
    Fit("AIRY_Q", "Q zeta", _airy_cross(0, "Q"), 0.0, 1 / 225),
    Fit("SLOPE_DECAY", "Ai'(x) exp(zeta) / x**0.25, in 1 / zeta", _airy(1), 0.0, 1.5),
    Fit("SLOPE_MIDDLE", "Ai'(x)", lambda x: mp.airyai(x, derivative=1), -2.0, 1.0, waves=True),
    Fit("SLOPE_WAVES_1", "Ai'(x)", lambda x: mp.airyai(x, derivative=1), -5.0, -2.0, waves=True),
    Fit("SLOPE_WAVES_2", "Ai'(x)", lambda x: mp.airyai(x, derivative=1), -8.0, -5.0, waves=True),
    Fit("SLOPE_P", "Ai'(-y) = (P sin(zeta - pi/4) - Q cos(zeta - pi/4)) y**0.25 / sqrt(pi), in 1 / zeta**2",
        _airy_cross(1, "P"), 0.0, 1 / 225),
    Fit("SLOPE_Q", "Q zeta", _airy_cross(1, "Q"), 0.0, 1 / 225),
    Fit("ERFCX", "(1 + 2 x) erfcx(x), in (x - 4) / (x + 4)", _scaled_erfc, -1.0, 1.0),
]  # fmt: skip


OPENING = '''"""Polynomials of special functions: written by ``python -m tools.special_fits``.

Of each its interval, and its coefficients in powers of t, which goes from -1 to 1 there, the constant first. Of power
series, t is the argument itself.
"""

from __future__ import annotations

from typing import NamedTuple


class Polynomial(NamedTuple):
    """An approximation.

    Attributes:
      middle: of the interval.
      half: its half length.
      single: coefficients for float32.
      double: coefficients for float64.
    """

    middle: float
    half: float
    single: tuple[float, ...]
    double: tuple[float, ...]


'''


def tables() -> str:
    """The module."""
    text = OPENING
    for fit in FITS:
        if isinstance(fit, Taylor):
            middle, half, made = 0.0, 1.0, [summed(fit, goal) for goal in GOALS]
        else:
            middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
            made = [fitted(fit, goal) for goal in GOALS]
        print(fit.name, [len(one) - 1 for one in made], flush=True)
        text += f"# {fit.says}\n{fit.name} = Polynomial(\n    {middle!r}, {half!r},\n"
        for one, digits in zip(made, (9, 17), strict=True):
            text += "    (\n"
            line = "       "
            for c in one:
                piece = f" {mp.nstr(c, digits)},"
                if len(line) + len(piece) > 118:
                    text, line = text + line + "\n", "       "
                line += piece
            text += f"{line}\n    ),\n"
        text += ")  # fmt: skip\n"
    text += "# Zeros, each as a number of few bits and the rest.\n"
    for name, zeros in (("J0", J0_ZEROS), ("J1", J1_ZEROS), ("Y0", Y0_ZEROS), ("Y1", Y1_ZEROS)):
        parts = [mp.nint(zero * 1024) / 1024 for zero in zeros]
        pairs = [(float(high), mp.nstr(zero - high, 17)) for high, zero in zip(parts, zeros, strict=True)]
        text += f"{name}_ZEROS = (\n{''.join(f'    ({high!r}, {rest}),{chr(10)}' for high, rest in pairs)})\n"
    return text


if __name__ == "__main__":
    FILE.write_text(tables(), encoding="utf-8")
