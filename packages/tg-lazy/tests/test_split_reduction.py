"""Long reductions in parts: from which length on, along which axis, and how many parts there are."""

from __future__ import annotations

import random
from math import prod

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, ScheduleItem, Storage, schedule
from tg_lazy.cost import Limits
from tg_lazy.subgraph.split_reduction import in_parts, most_parts, split_pays
from tg_shape import ShapeTracker


def scheduled(shape: tuple[int, ...], axes: tuple[int, ...], op: Ops = Ops.ADD) -> list[ScheduleItem]:
    """The schedule of a reduction."""
    x = LazyBuffer.from_storage(Storage("CPU", prod(shape), dtypes.float32), shape)
    return schedule([x.reduce(op, axes)])[0]


def parts_of(items: list[ScheduleItem]) -> tuple[object, ...]:
    """The shape of the results of the parts."""
    assert len(items) == 2 and "parts first" in items[0].reason
    return tuple(dim for dim in items[0].ast.src[0].shape if dim != 1)


def test_a_split_pays_from_one_length_on() -> None:
    """Longer reductions are never left whole where shorter ones are split, and no number of parts does better."""
    limits = Limits()
    lengths = [n for n in range(1, 200_000, 97) if split_pays(n, max(1, most_parts(n, limits)), limits)]
    assert lengths == list(range(lengths[0], 200_000, 97))
    assert 3 * limits.serial_elements < lengths[0] < 4 * limits.serial_elements
    for n in (lengths[0], 100_000, 10_000_000):
        best = min(range(1, limits.split_parts + 1), key=lambda p: n / p + p)
        assert abs(best - most_parts(n, limits)) <= 1


def test_what_a_launch_costs_decides() -> None:
    fast, slow = Limits(serial_elements=1000), Limits(serial_elements=100_000)
    assert split_pays(4000, most_parts(4000, fast), fast) and not split_pays(4000, 63, Limits())
    assert not split_pays(250_000, 256, slow) and split_pays(400_000, 256, slow)


def test_the_outermost_axis_that_fills_the_machine_is_split() -> None:
    assert parts_of(scheduled((64, 16, 64, 64), (0, 2, 3))) == (64, 16)
    assert parts_of(scheduled((16, 4096, 4096), (0, 1, 2))) == (16,)
    assert parts_of(scheduled((4, 4096, 4096), (0, 1, 2))) == (256,), "4 parts are fewer than the machine has units"


def test_few_parts_are_better_than_none() -> None:
    """A product of numbers is cut evenly or not at all: into three, where that saves enough."""
    prime = 99_991
    assert parts_of(scheduled((3 * prime,), (0,), Ops.MUL)) == (3,)
    assert len(scheduled((prime,), (0,), Ops.MUL)) == 1
    assert len(scheduled((2 * 24_593,), (0,), Ops.MUL)) == 1, "halves save less than they cost"


def test_outputs_that_fill_a_tile_are_not_split() -> None:
    assert parts_of(scheduled((64, 70_000), (1,)))[0] == 64
    assert len(scheduled((65, 70_000), (1,))) == 1


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX, Ops.MUL])
def test_parts_are_as_many_as_divide_the_dimension(op: Ops) -> None:
    """Odd ones, too; only where they are too few is it cut otherwise."""
    rng, whole = random.Random(1), 0
    for _ in range(300):
        most = rng.randint(2, 300)
        size = rng.randint(most, 6000)
        most_even = max(p for p in range(1, most + 1) if size % p == 0)
        parts, length = in_parts(ShapeTracker.from_shape((size,)), 0, op, dtypes.float32, most).shape
        if 2 * most_even > most or op is Ops.MUL:
            assert (parts, length) == (most_even, size // most_even), (size, most)
            whole += most_even % 2
        else:
            assert most < 2 * parts <= 2 * most and prod((parts, length)) >= size, (size, most)
    assert whole > 10
