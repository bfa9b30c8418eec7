"""Division of polynomials by polynomials: what is divided by what."""

from __future__ import annotations

from tg_shape import Variable
from tg_shape.rules.symbolic_division import _divided

N, M = Variable("n", 1, 50), Variable("m", 1, 50)


def test_the_leading_term_divides() -> None:
    den = N * M + N
    assert not isinstance(den, int)
    assert _divided(2 * N * M + 3 * N, den) == (2, N)
    assert _divided(N * N * M + N * N + 5, den) == (N, 5)
    assert _divided(3 * M, den) == (0, 3 * M)
