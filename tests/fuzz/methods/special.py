"""Special functions, beside sums that are slow and simple."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .table import Array, Call, Pool, Ref, binary, row, unary


def _lgamma(x: Array) -> Array:
    return np.vectorize(math.lgamma, otypes=[float])(x) if x.size else x


def _zeta(s: int, q: Array) -> Any:
    end = q + 40
    rest = end ** (1 - s) / (s - 1) + end**-s / 2 + s * end ** (-s - 1) / 12
    rest -= s * (s + 1) * (s + 2) * end ** (-s - 3) / 720
    rest += s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * end ** (-s - 5) / 30240
    return sum(((q + k) ** -s for k in range(40)), rest)


def _digamma(x: Array) -> Array:
    end = x + 40
    rest = np.log(end) - 1 / (2 * end) - 1 / (12 * end**2) + 1 / (120 * end**4) - 1 / (252 * end**6)
    less: Array = rest - sum((1 / (x + k) for k in range(40)), np.zeros_like(x))
    return less


def _erfinv(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[float])
    low, high = np.full(x.shape, -4.0), np.full(x.shape, 4.0)
    for _ in range(60 if x.size else 0):
        middle = (low + high) / 2
        above = erf(middle) > x
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low


def _usual(x: Array) -> Array:
    return (x >= 0.1) & (x <= 100)


unary("lgamma", _lgamma, within=_usual, smooth=True)
unary("digamma", _digamma, within=_usual, smooth=True)
unary("i0", np.i0, within=lambda x: np.abs(x) <= 20, smooth=True)
unary("erfinv", _erfinv, within=lambda x: np.abs(x) <= 0.9, smooth=True)


def _polygamma(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not np.all(_usual(value.array)):
        return None
    order = pool.pick.randint(1, 3)
    return Call("polygamma", (Ref(i), order), {}, lambda x, n: (-1) ** (n + 1) * math.factorial(n) * _zeta(n + 1, x))


def _mvlgamma(pool: Pool, i: int) -> Call | None:
    value = pool.values[i]
    if value.kind != "f" or not np.all((value.array >= 1.6) & (value.array <= 100)):
        return None

    def reference(x: Array, p: int) -> Array:
        return sum((_lgamma(x - j / 2) for j in range(p)), np.full(x.shape, p * (p - 1) / 4 * math.log(math.pi)))

    return Call("mvlgamma", (Ref(i), pool.pick.randint(1, 4)), {}, reference)


row("polygamma", _polygamma, smooth=True)
row("mvlgamma", _mvlgamma, smooth=True)


def _lower(a: Array, x: Array) -> Any:
    """The power series, which has no differences in it."""
    a, x = np.broadcast_arrays(a, x)
    term = np.exp(a * np.log(x) - x - _lgamma(a + 1))
    total = term
    for k in range(1, 200):
        term = term * x / (a + k)
        total = total + term
    return total


def _both_usual(a: Array, x: Array) -> Any:
    return np.all((a >= 0.1) & (a <= 50)) and np.all((x >= 0.1) & (x <= 50))


binary("igamma", _lower, "f", within=_both_usual)
binary("igammac", lambda a, x: 1 - _lower(a, x), "f", within=_both_usual)
