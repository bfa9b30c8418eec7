"""Random expressions with symbolic divisors and symbolic upper bounds against direct evaluation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_shape import Expr, Variable, bounds_of, sint

X, Y, Z = Variable("x", 0, 11), Variable("y", -5, 4), Variable("z", 0, 3)
L = Variable("l", 0, Z - 1)
# Every assignment that the bounds allow, except a divisor of 0.
ROWS = np.array([(x, y, z, k) for x in range(12) for y in range(-5, 5) for z in range(1, 4) for k in range(z)])
VALUES: dict[Variable, Any] = {v: ROWS[:, i] for i, v in enumerate((X, Y, Z, L))}
DIVISORS: list[tuple[sint, Any]] = [
    (Z, VALUES[Z]), (Z * 2, VALUES[Z] * 2),
    (Z * Z, VALUES[Z] ** 2), (Z * 3, VALUES[Z] * 3), (Z + 1, VALUES[Z] + 1), (4, 4),
]  # fmt: skip


def expression(draw: random.Random, depth: int) -> tuple[sint, Any]:
    """What the operators make, and its values."""
    if depth == 0:
        if draw.random() < 0.3:
            c = draw.randint(-6, 6)
            return c, np.int64(c)
        v = draw.choice([X, Y, Z, Z, L, L])
        return v, VALUES[v]
    a, x = expression(draw, depth - 1)
    b, y = expression(draw, draw.randint(0, depth - 1))
    d, z = draw.choice(DIVISORS)
    kind = draw.choice(["+", "-", "*", "//", "//", "%", "%", "both", "<"])
    if kind == "+":
        return a + b, x + y
    if kind == "-":
        return a - b, x - y
    if kind == "*":
        return a * b, x * y
    if kind == "//":
        return a // d, x // z
    if kind == "%":
        return a % d, x % z
    if kind == "both":
        return a // d * d + a % d, x
    left = a + Y
    return (left < b, (x + VALUES[Y] < y) * 1) if isinstance(left, Expr) else (a, x)


@pytest.mark.parametrize("seed", range(4))
def test_symbolic_divisors_and_bounds(seed: int, values_at: Callable[..., npt.NDArray[np.int64]]) -> None:
    draw = random.Random(seed)
    for _ in range(800):
        e, want = expression(draw, draw.randint(1, 4))
        got, want = np.broadcast_arrays(values_at(e, VALUES), want)
        lo, hi = bounds_of(e)
        assert (got == want).all() and lo <= want.min() and want.max() <= hi, (e, lo, hi)
