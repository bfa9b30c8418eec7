"""Views of views as one: loop variables, and by how much an expression grows with one of them."""

from __future__ import annotations

import pytest

from tg_shape import Variable, sint
from tg_shape.merge import loop_variables, slope

X, N = Variable("x", 0, 9), Variable("n", 1, 9)


def test_a_dimension_of_one_has_no_variable() -> None:
    one, two, none = loop_variables((1, 3, 0))
    assert one == 0 and none == 0 and not isinstance(two, int) and (two.vmin, two.vmax) == (0, 2)


@pytest.mark.parametrize("e, by", [
    (7, 0), (3 * X + N, 3), (N * X, N), (2 * N * X + 5 * X, 2 * N + 5), (N * N, 0),
    (X * X, None), (X * (X // 2), None), ((X // 3) * N, None), (X * X * N, None),
])  # fmt: skip
def test_slopes(e: sint, by: sint | None) -> None:
    assert slope(e, X) == by
