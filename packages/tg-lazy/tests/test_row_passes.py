"""Passes over rows, each of which reads its row in another order: drawn at random, they share a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, ScheduleItem

Array = np.ndarray[Any, np.dtype[Any]]
pytestmark = pytest.mark.usefixtures("row_kernels")


def internal(items: list[ScheduleItem]) -> int:
    return sum(arg.internal for item in items for arg in item.ast.arg)


def second_half(shape: tuple[int, ...], axis: int) -> LazyBuffer:
    """Whether an index along an axis of two is 1."""
    one = LazyBuffer.const(True, dtypes.bool, tuple(int(n == axis) or 1 for n in range(len(shape))), "CPU")
    return one.pad([(int(n == axis), 0) for n in range(len(shape))]).expand(shape)


class Passes:
    """Rows of two parts each, every part of a row being a matrix: as nodes, and as arrays."""

    def __init__(self, machine: Any, seed: int) -> None:
        self.machine, self.rng = machine, np.random.default_rng(seed)
        a, b = (int(n) for n in self.rng.integers(2, 6, 2))
        rows = -(-8192 // (8 * a * b)) + int(self.rng.integers(0, 5))
        self.arrays = [self.rng.integers(-3, 4, (rows, a, b)).astype(np.float32) for _ in range(2)]
        self.parts = [machine.buffer(x) for x in self.arrays]

    def turned(self) -> None:
        """Each matrix is transposed, or reversed, or both; then mixed with the other part and a table."""
        order = (0, 2, 1) if self.rng.integers(2) else (0, 1, 2)
        flipped = tuple(axis for axis in (1, 2) if self.rng.integers(2))
        x, y = (np.flip(x.transpose(order), flipped) for x in self.arrays)
        u, v = (node.permute(order).flip(flipped) for node in self.parts)
        table = self.rng.integers(1, 3, x.shape[1:]).astype(np.float32)
        wide = self.machine.buffer(table).reshape((1, *table.shape)).expand(x.shape)
        self.arrays = [x * table - y, y]
        self.parts = [u.alu(Ops.MUL, wide).alu(Ops.SUB, v), v]

    def both(self, axis: int) -> LazyBuffer:
        """The parts as one node, beside one another along an axis."""
        shape = self.arrays[0].shape
        whole = (*shape[:axis], 2, *shape[axis:])
        first, second = (p.reshape((*shape[:axis], 1, *shape[axis:])).expand(whole) for p in self.parts)
        return second_half(whole, axis).alu(Ops.WHERE, second, first)

    def handed_on(self) -> LazyBuffer:
        """The parts by way of an intermediate."""
        rows, *rest = shape = self.arrays[0].shape
        both = self.both(1).intermediate()
        self.parts = [both.shrink([(0, rows), (n, n + 1), *[(0, dim) for dim in rest]]).reshape(shape) for n in (0, 1)]
        return both


@pytest.mark.parametrize("seed", range(12))
def test_passes_share_a_kernel(machine: Any, seed: int) -> None:
    """Also where the last one writes the parts one after the other."""
    passes = Passes(machine, seed)
    count = int(passes.rng.integers(2, 5))
    for _ in range(count - 1):
        passes.turned()
        passes.handed_on()
    passes.turned()
    apart = bool(passes.rng.integers(2))
    out = passes.both(1).permute((1, 0, 2, 3)).contiguous() if apart else passes.both(1)
    items = machine.run(out)
    assert len(items) == 1 and internal(items) == count - 1
    want = np.stack(passes.arrays, 0 if apart else 1)
    np.testing.assert_array_equal(machine.memory[out.base.storage].reshape(want.shape), want)


@pytest.mark.parametrize("seed", range(6))
def test_an_intermediate_that_is_asked_for_is_in_memory(machine: Any, seed: int) -> None:
    """In the same schedule, or later, when it is computed again."""
    passes = Passes(machine, seed)
    passes.turned()
    middle, both = np.stack(passes.arrays, 1), passes.handed_on()
    passes.turned()
    out, now = passes.both(1), bool(seed % 2)
    items = machine.run(out, *[both] * now)
    assert internal(items) == int(not now)
    assert both.is_realized is now
    if not now:
        machine.run(both)
    np.testing.assert_array_equal(machine.memory[both.base.storage].reshape(middle.shape), middle)
    want = np.stack(passes.arrays, 1)
    np.testing.assert_array_equal(machine.memory[out.base.storage].reshape(want.shape), want)


@pytest.mark.parametrize("seed", range(4))
def test_an_intermediate_of_what_is_overwritten_keeps_its_value(machine: Any, seed: int) -> None:
    """Somebody holds it while the rows that it was made of get other numbers in the same schedule."""
    passes = Passes(machine, seed)
    source, start = passes.parts[0], passes.arrays[0]
    passes.turned()
    middle, both = np.stack(passes.arrays, 1), passes.handed_on()
    passes.turned()
    out = passes.both(1)
    machine.run(out, source.assign(source.const_like(7.0)))
    want = np.stack(passes.arrays, 1)
    np.testing.assert_array_equal(machine.memory[out.base.storage].reshape(want.shape), want)
    if not both.is_realized:
        machine.run(both)
    np.testing.assert_array_equal(machine.memory[both.base.storage].reshape(middle.shape), middle)
    assert (machine.memory[source.base.storage] == 7).all() and not (start == 7).all()


def test_a_part_of_the_last_output_that_nothing_computes_is_zero(machine: Any) -> None:
    """Padding is no other order of what is computed."""
    passes = Passes(machine, 3)
    passes.turned()
    passes.handed_on()
    passes.turned()
    out = passes.both(1).permute((1, 0, 2, 3)).pad([(0, 0), (0, 3), (0, 0), (0, 0)]).contiguous()
    machine.run(out)
    want = np.pad(np.stack(passes.arrays), ((0, 0), (0, 3), (0, 0), (0, 0)))
    np.testing.assert_array_equal(machine.memory[out.base.storage].reshape(want.shape), want)


def test_rows_that_an_intermediate_shifts_stay_apart(machine: Any) -> None:
    """The second part of each row is read one row further on."""
    rows, width = 160, 8
    x = np.arange(2 * rows * width, dtype=np.float32).reshape(rows, 2, width)
    both = machine.buffer(x).alu(Ops.NEG).intermediate()
    shifted = both.pad([(0, 1), (0, 0), (0, 0)]).shrink([(1, rows + 1), (1, 2), (0, width)])
    out = shifted.alu(Ops.ADD, both.shrink([(0, rows), (0, 1), (0, width)]))
    items = machine.run(out)
    assert not internal(items)
    want = -np.concatenate([x[1:, 1], np.zeros((1, width), np.float32)]) - x[:, 0]
    np.testing.assert_array_equal(machine.memory[out.base.storage].reshape(want.shape), want)
