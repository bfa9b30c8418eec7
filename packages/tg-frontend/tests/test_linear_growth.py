"""Work grows as the program does: twice as many steps that wait to be computed take about twice as many calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tg_frontend import Tensor
from tg_lazy import Context


def added(steps: int) -> Tensor:
    x = Tensor.zeros(5).contiguous().realize()
    for _ in range(steps):
        x += 1
    return x


def scaled_through_a_view(steps: int) -> Tensor:
    x = Tensor.ones(5, 3).contiguous().realize()
    view = x[1:3]
    for _ in range(steps):
        view.mul_(1.5)
    return x


def chained(steps: int) -> Tensor:
    x = Tensor.ones(7).contiguous().realize()
    for _ in range(steps):
        x = x * 1.0625 + 0.5
    return x


def summed(steps: int) -> Tensor:
    x = Tensor.ones(steps, 3).contiguous().realize()
    return sum((row for row in x), Tensor.zeros(3))


def calls(work: Callable[[], Any]) -> int:
    """Calls of functions of Python and of C."""
    count = 0

    def tell(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tell)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("program", [added, scaled_through_a_view, chained, summed])
def test_twice_as_many_steps_take_twice_as_many_calls(program: Callable[[int], Tensor]) -> None:
    with Context(DEV="NUMPY"):
        program(3).realize()
        # of about as many steps the fewest: now and then a table of all nodes that there are in the process is swept
        few, many = (
            min(calls(lambda n=n: program(n).realize()) for n in range(steps, steps + 3))  # type: ignore[misc]
            for steps in (97, 2 * 97))
    assert many < 2.4 * few, (few, many)
