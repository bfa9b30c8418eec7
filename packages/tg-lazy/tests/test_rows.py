"""Outputs that are rows of outputs: each has more elements than the one before; axes are grouped at random."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tg_lazy import Ops


def grouped(rng: random.Random, sizes: list[int]) -> tuple[int, ...]:
    """A shape in which neighbouring axes are taken together, and axes of size 1 stand between."""
    shape: list[int] = []
    for size in sizes:
        if shape and rng.random() < 0.5:
            shape[-1] *= size
        else:
            shape += [1] * (rng.random() < 0.2) + [size]
    return tuple(shape)


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_rows(machine: Any, seed: int) -> None:
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    sizes = [rng.choice([2, 3, 5, 8, 9, 24])]
    start = numbers.integers(-9, 9, sizes).astype(np.float32)
    node, value = machine.buffer(start).alu(Ops.NEG).contiguous(), -start
    made = [(node, value)]
    for _ in range(rng.randint(2, 3)):
        size = rng.choice([2, 3, 4, 9, 17])
        over = grouped(rng, sizes)
        more = numbers.integers(-3, 3, (1,) * len(over) + (size,)).astype(np.float32)
        shape = (*over, size)
        wide = node.reshape((*over, 1)).expand(shape)
        node = wide.alu(Ops.ADD, machine.buffer(more).expand(shape)).contiguous()
        value = value.reshape(*over, 1) + more
        sizes.append(size)
        made.append((node, value))
    machine.run(*(node for node, _ in made))
    for node, value in made:
        np.testing.assert_array_equal(machine.value(node), value)
