"""Long reductions in parts: how many there are."""

from __future__ import annotations

import random
from math import prod

import pytest

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_lazy.subgraph.split_reduction import in_parts
from tg_shape import ShapeTracker


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
