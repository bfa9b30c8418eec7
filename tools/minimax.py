"""Prints the polynomials of the functions in ``tg_codegen.rewrite.rules``: Remez's exchange in numbers of 60 digits.

Each is the polynomial of its degree whose greatest weighted error on the interval is least. Run it as
``python -m tools.minimax``, or with the names of some; a line has the greatest error as a power of two, and the
coefficients from the highest, which are to be rounded to the format that they are for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

mp: Any = importlib.import_module("mpmath")
mp.mp.dps = 60
Real = Callable[[Any], Any]
GRID = 1600


class Fit(NamedTuple):
    """A polynomial that is wanted.

    Attributes:
      name: what it is for.
      f: the function.
      weight: by which an error counts, so that it is one relative to the result of the whole.
      low: where the interval begins.
      high: where it ends.
      degrees: one for each format, float32 and float64; 0 if there is none.
    """

    name: str
    f: Real
    weight: Real
    low: float
    high: float
    degrees: tuple[int, int]


def remez(fit: Fit, degree: int) -> tuple[list[Any], Any]:
    """Coefficients, constant first, and the greatest ``weight * |p - f|`` on the interval."""
    a, b = mp.mpf(fit.low), mp.mpf(fit.high)
    count = degree + 2
    grid = [a + (b - a) * (1 - mp.cos(mp.pi * k / GRID)) / 2 for k in range(GRID + 1)]
    grid = [t for t in grid if abs(t) > mp.mpf("1e-9")]
    exact = [(fit.f(t), fit.weight(t)) for t in grid]
    places = [len(grid) * k // (count - 1) for k in range(count - 1)] + [len(grid) - 1]
    coefficients: list[Any] = []
    worst = mp.inf
    for _ in range(40):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for k, place in enumerate(places):
            t, (value, w) = grid[place], exact[place]
            for power in range(degree + 1):
                matrix[k, power] = t**power
            matrix[k, degree + 1], right[k] = (-1) ** k / w, value
        *coefficients, level = list(mp.lu_solve(matrix, right))
        errors = [
            (mp.polyval(coefficients[::-1], t) - value) * w for t, (value, w) in zip(grid, exact, strict=True)
        ]
        worst = max(abs(e) for e in errors)
        runs: list[int] = []
        for place, error in enumerate(errors):
            if runs and (errors[runs[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[runs[-1]]):
                    runs[-1] = place
            else:
                runs.append(place)
        while len(runs) > count:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < count or worst < abs(level) * mp.mpf("1.001"):
            break
        places = runs
    return coefficients, worst


def _root(f: Real, power: int) -> Real:
    """(f(x) - x) / x**power as a function of x**2."""

    def apply(z: Any) -> Any:
        x = mp.sqrt(z)
        return (f(x) - x) / x**power

    return apply


def _odd(name: str, f: Real, high: float, degrees: tuple[int, int]) -> Fit:
    """The rest of an odd function whose series begins with x: (f(x) - x) / x**3 in x**2."""

    def weight(z: Any) -> Any:
        return z * mp.sqrt(z) / f(mp.sqrt(z))

    return Fit(name, _root(f, 3), weight, 0.0, high**2, degrees)


def _exp_rest(x: Any) -> Any:
    return (mp.expm1(x) - x) / (x * x)


def _log_rest(x: Any) -> Any:
    return (mp.log1p(x) - x) / (x * x)


def _erf_rest(z: Any) -> Any:
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def _scaled_erfc(center: float) -> Real:
    """(1 + 2 x) * exp(x**2) * erfc(x) at x = center * (1 + t) / (1 - t)."""

    def apply(t: Any) -> Any:
        x = center * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    return apply


def _exp2(t: Any) -> Any:
    return mp.mpf(2) ** t


QUARTER = 0.7853982
HALF_LOG2 = 0.34658
FITS = (
    Fit("exp2: (2**t - 1) / t", lambda t: (_exp2(t) - 1) / t, lambda t: abs(t) / _exp2(t), -0.5001, 0.5001, (5, 10)),
    Fit("exp: (exp(r) - 1 - r) / r**2", _exp_rest, lambda r: r * r / mp.exp(r), -HALF_LOG2, HALF_LOG2, (4, 0)),
    Fit("expm1: (exp(r) - 1 - r) / r**2", _exp_rest, lambda r: abs(r * r / mp.expm1(r)), -HALF_LOG2, HALF_LOG2,
        (5, 10)),
    Fit("log: (log(1 + f) - f) / f**2", _log_rest, lambda f: abs(f * f / mp.log1p(f)), -0.2932, 0.4143, (7, 0)),
    Fit("log: (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2", lambda z: 2 * _root(mp.atanh, 3)(z), lambda z: z, 0.0,
        0.02945, (0, 6)),
    Fit("pow: (log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in s**2",
        lambda z: 2 * (_root(mp.atanh, 3)(z) - mp.mpf(1) / 3) / z, lambda z: z * z, 0.0, 0.02945, (2, 7)),
    _odd("sin: (sin(r) - r) / r**3 in r**2", mp.sin, QUARTER, (2, 5)),
    Fit("cos: (cos(r) - 1 + r**2 / 2) / r**4 in r**2", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2, 0.0, QUARTER**2, (2, 5)),
    _odd("atan: (atan(t) - t) / t**3 in t**2", mp.atan, 0.4376, (4, 10)),
    _odd("asin: (asin(x) - x) / x**3 in x**2", mp.asin, 0.5001, (4, 12)),
    _odd("sinh: (sinh(x) - x) / x**3 in x**2", mp.sinh, 1.0001, (2, 6)),
    _odd("tanh: (tanh(x) - x) / x**3 in x**2", mp.tanh, 0.6251, (0, 10)),
    Fit("erf: erf(x) / x - 1 in x**2", _erf_rest, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), 0.0, 1.0001, (6, 11)),
    Fit("erf: log(erfc(x)) / x + 1", lambda x: mp.log(mp.erfc(x)) / x + 1, lambda x: x * mp.erfc(x) / mp.erf(x), 0.0,
        4.0, (8, 0)),
    Fit("erfc: (1 + 2 x) exp(x**2) erfc(x) in (x - 2) / (x + 2)", _scaled_erfc(2.0), lambda t: 1, -0.61, 0.69, (9, 0)),
    Fit("erfc: (1 + 2 x) exp(x**2) erfc(x) in (x - 4) / (x + 4)", _scaled_erfc(4.0), lambda t: 1, -0.78, 0.75,
        (0, 22)),
)  # fmt: skip


def main(names: list[str]) -> None:
    """Prints those whose name begins with one of ``names``, or all of them."""
    for fit in FITS:
        if names and not any(fit.name.startswith(name) for name in names):
            continue
        for bits, degree in zip((32, 64), fit.degrees, strict=True):
            if degree:
                coefficients, error = remez(fit, degree)
                text = ", ".join(repr(float(c)) for c in reversed(coefficients))
                print(f"{fit.name}, float{bits}: error 2**{float(mp.log(error, 2)):.1f}\n  {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
