"""Prints the polynomials of ``tg_codegen.rules.transcendental``: Remez's exchange in 60-digit decimals.

Each is the polynomial of its degree whose greatest weighted error on the interval is least. Run it as
``python tools/minimax.py``; a line has the greatest error as a power of two, and the coefficients from the highest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, getcontext

getcontext().prec = 60
Real = Callable[[Decimal], Decimal]
LN2 = Decimal(2).ln()
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def sin(x: Decimal) -> Decimal:
    """The sine, by its series."""
    term = total = x
    n = 1
    while abs(term) > Decimal(10) ** -58:
        term = -term * x * x / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def solve(rows: list[list[Decimal]]) -> list[Decimal]:
    """The solution of a square system, given with its right side as the last column."""
    size = len(rows)
    for at in range(size):
        pivot = max(range(at, size), key=lambda r: abs(rows[r][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for r in range(size):
            if r != at:
                factor = rows[r][at] / rows[at][at]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[at], strict=True)]
    return [rows[r][size] / rows[r][r] for r in range(size)]


def remez(f: Real, weight: Real, low: float, high: float, degree: int) -> tuple[list[Decimal], Decimal]:
    """Coefficients, constant first, and the greatest ``weight * |p - f|`` on the interval."""
    a, b = Decimal(low), Decimal(high)
    count = degree + 2
    grid = [a + (b - a) * Decimal((1 - math.cos(math.pi * k / 1600)) / 2) for k in range(1601)]
    grid = [t for t in grid if abs(t) > Decimal("1e-9")]
    exact = [(f(t), weight(t)) for t in grid]
    places = [len(grid) * k // (count - 1) for k in range(count - 1)] + [len(grid) - 1]
    coefficients: list[Decimal] = []
    for _ in range(30):
        rows = []
        for k, place in enumerate(places):
            t, (value, w) = grid[place], exact[place]
            rows.append([t**power for power in range(degree + 1)] + [Decimal((-1) ** k) / w, value])
        *coefficients, level = solve(rows)
        errors = []
        for t, (value, w) in zip(grid, exact, strict=True):
            total = Decimal(0)
            for c in reversed(coefficients):
                total = total * t + c
            errors.append((total - value) * w)
        runs: list[int] = []
        for place, error in enumerate(errors):
            if runs and (errors[runs[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[runs[-1]]):
                    runs[-1] = place
            else:
                runs.append(place)
        while len(runs) > count:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < count:
            break
        places = runs
        worst = max(abs(e) for e in errors)
        if worst < abs(level) * Decimal("1.001"):
            break
    return coefficients, max(abs(e) for e in errors)


def show(name: str, f: Real, weight: Real, low: float, high: float, degree: int) -> None:
    """Fits and prints one polynomial."""
    coefficients, error = remez(f, weight, low, high, degree)
    text = ", ".join(repr(float(c)) for c in reversed(coefficients))
    print(f"{name}: error 2**{float(error.ln() / LN2):.1f}\n  {text}")


def main() -> None:
    """Prints all of them."""

    def exp2(t: Decimal) -> Decimal:
        return (t * LN2).exp()

    def exp2_rest(t: Decimal) -> Decimal:
        return (exp2(t) - 1) / t

    def log2_rest(t: Decimal) -> Decimal:
        return ((1 + t).ln() - t) / LN2 / (t * t)

    def log2_weight(t: Decimal) -> Decimal:
        return abs(t * t * LN2 / (1 + t).ln())

    def log_rest(z: Decimal) -> Decimal:
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() - 2 * s) / (s * z)

    def sin_rest(z: Decimal) -> Decimal:
        r = z.sqrt()
        return (sin(r) - r) / (r * z)

    half_pi_squared = float(PI * PI / 4) * 1.0000001
    for bits, degree in ((32, 5), (64, 10)):
        show(f"exp2 fp{bits}: (2**t - 1) / t", exp2_rest, lambda t: abs(t) / exp2(t), -0.5001, 0.5001, degree)
    show("log2 fp32: (log2(1 + t) - t / ln 2) / t**2", log2_rest, log2_weight, -0.2932, 0.4143, 7)
    show("log2 fp64: (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2", log_rest, lambda z: z, 0.0, 0.02945, 6)
    for bits, degree in ((32, 3), (64, 7)):
        show(f"sin fp{bits}: (sin(r) - r) / r**3 in r**2", sin_rest, lambda z: z * z.sqrt() / sin(z.sqrt()), 0.0,
             half_pi_squared, degree)


if __name__ == "__main__":
    main()
