"""Steps along lines: the strong conditions of Wolfe hold where the search ends, and L-BFGS finds minima with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn.optim.line_search import CURVATURE, DECREASE, TRIALS, Point, strong_wolfe

NONE = Tensor([0.0])
LINES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "parabola": (lambda x: (x - 3) ** 2, lambda x: 2 * (x - 3)),
    "More and Thuente 5.1": (  # SIAM 1994, with beta = 2
        lambda x: -x / (x * x + 2), lambda x: (x * x - 2) / (x * x + 2) ** 2),
    "More and Thuente 5.2": (lambda x: (x + 0.004) ** 5 - 2 * (x + 0.004) ** 4,
                             lambda x: 5 * (x + 0.004) ** 4 - 8 * (x + 0.004) ** 3),
    "waves": (lambda x: math.cos(3 * x) - x / 5 if x < 40 else math.inf, lambda x: -3 * math.sin(3 * x) - 0.2),
    "a wall": (lambda x: -math.log(2 - x) - 3 * x if x < 2 else math.nan,
               lambda x: 1 / (2 - x) - 3 if x < 2 else math.nan),
}  # fmt: skip


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("name", LINES)
def test_the_conditions_hold(name: str, first: float) -> None:
    loss, slope = LINES[name]
    tried = []

    def at(size: float) -> Point:
        tried.append(size)
        return Point(size, loss(size), slope(size), NONE)

    begin = Point(0.0, loss(0.0), slope(0.0), NONE)
    found, count = strong_wolfe(at, begin, first, 1.0, 1e-9)
    assert count == len(tried) <= TRIALS
    assert found.size in tried
    assert found.loss <= begin.loss + DECREASE * found.size * begin.slope
    assert abs(found.slope) <= -CURVATURE * begin.slope


def test_a_line_without_end_is_left_at_last() -> None:
    found, count = strong_wolfe(lambda size: Point(size, -size, -1.0, NONE), Point(0, 0, -1.0, NONE), 1.0, 1.0, 1e-9)
    assert count == TRIALS
    assert found.size > 1e9


def test_valley() -> None:
    """Rosenbrock's function, where steps of a size that is given go nowhere or too far."""
    x, y = Tensor(-1.2, dtype="float64", requires_grad=True), Tensor([[1.0]], dtype="float64", requires_grad=True)
    optimizer = nn.optim.LBFGS([x, y], max_iter=60, tolerance_change=1e-14, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (((y - x * x) ** 2) * 100 + (1 - x) ** 2).sum().backward()
        losses.append(float(loss.item()))
        return loss

    before = optimizer.step(closure)
    assert before.item() == pytest.approx(24.2)
    np.testing.assert_allclose([x.item(), y.item()], 1, atol=1e-6)
    assert len(losses) < 75
    assert losses[-1] < 1e-12


def test_other_searches_are_refused() -> None:
    with pytest.raises(ValueError, match=r"LBFGS: there is no line search 'armijo'"):
        nn.optim.LBFGS([Tensor([1.0])], line_search_fn="armijo")


@pytest.mark.parametrize("size", [0, -1])
def test_a_history_of_nothing_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="history_size is at least 1"):
        nn.optim.LBFGS([Tensor([1.0])], history_size=size)
