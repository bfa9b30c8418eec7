"""Lookups in computed tables: what is looked up, and that it is what the table holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, ScheduleItem

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def scalar(x: LazyBuffer, op: Ops, value: float) -> LazyBuffer:
    return x.alu(op, x.const_like(value))


def written(items: list[ScheduleItem]) -> int:
    """Elements of the largest memory that is written."""
    return max(item.bufs[0].size for item in items)


def drawn_table(machine: Any, rng: Any, rows: int, width: int) -> tuple[LazyBuffer, Array]:
    """A table of some rows that is computed from several operands, each seen in its own way."""
    a = rng.integers(-9, 9, (rows + 2, width + 3)).astype(np.int8)
    b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((width, rows), (rows, 1)))
    first = machine.buffer(a).shrink(((1, rows + 1), (2, width + 2)))
    x, value = first.cast(dtypes.float32), a[1:-1, 2:-1].astype(np.float32)
    if rng.integers(2):
        x, value = x.alu(Ops.ADD, machine.buffer(b).permute((1, 0))), value + b.T
    if rng.integers(2):
        x, value = x.flip((1,)), value[:, ::-1]
    if rng.integers(2):
        x, value = x.alu(Ops.MUL, machine.buffer(c).expand(x.shape)), value * c
    if rng.integers(2):
        x, value = x.alu(Ops.NEG).permute((1, 0)), -value.T
    return scalar(x, Ops.ADD, 3), value + np.float32(3)  # a lookup outside, which is 0, is not that of zeros


@pytest.mark.parametrize("seed", range(40))
def test_few_lookups_compute_what_they_want(machine: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width, count = (int(rng.integers(*ends)) for ends in ((60, 90), (5, 12), (1, 12)))
    table, value = drawn_table(machine, rng, rows, width)
    dtype = ("int8", "uint8", "int16", "int32", "uint32", "int64")[seed % 6]
    size = value.size
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    index = rng.integers(max(least, -size), min(most, 2 * size), (count, 1), endpoint=True).astype(dtype)
    index[rng.integers(count)] = min(most, size - 1 + int(rng.integers(2)))  # the last element, or the one after it
    at = index.astype(np.int64)
    inside = (at >= 0) & (at < size)
    expected = np.where(inside, value.reshape(-1)[np.where(inside, at, 0)], np.float32(0))
    (item,) = machine.run(found := table.gather(machine.buffer(index)))
    assert item.bufs[0].size == count
    np.testing.assert_array_equal(machine.value(found), expected)
    padded = scalar(table.gather(machine.buffer(index)).pad(((1, 2), (0, 1))), Ops.MUL, 2)
    np.testing.assert_array_equal(machine.value(padded), np.pad(expected, ((1, 2), (0, 1))) * 2)


def test_a_part_of_a_table_ends_where_it_ends(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((40, 16)).astype(np.float32)
    table = scalar(machine.buffer(values), Ops.ADD, 1).shrink(((0, 20), (0, 16)))
    index = machine.buffer(np.array([319, 320, 639], np.int32))
    out = table.gather(index)
    assert len(machine.run(out)) == 1
    np.testing.assert_array_equal(machine.value(out), [values[19, 15] + 1, 0, 0])


def test_a_table_in_memory_stays_there(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((64, 16)).astype(np.float32)
    index, at = machine.buffer(np.array([3, 700], np.int32)), values.reshape(-1)[[3, 700]]
    table = scalar(machine.buffer(values), Ops.ADD, 1)
    found = table.gather(index)
    items = machine.run(table, found)
    assert [table.storage in item.bufs for item in items] == [True, True], "it is wanted"
    np.testing.assert_array_equal(machine.value(found), at + np.float32(1))
    kept = scalar(machine.buffer(values), Ops.ADD, 2).contiguous()
    assert written(machine.run(scalar(kept, Ops.ADD, 0).gather(index))) == values.size, "it was asked for"
    many = [scalar(scalar(machine.buffer(values), Ops.ADD, i), Ops.MUL, 2) for i in range(2)]
    places = [machine.buffer(np.arange(n, dtype=np.int32)) for n in (128, 129)]
    reads = [table.gather(own) for table, own in zip(many, places, strict=True)]
    assert [written(machine.run(read)) for read in reads] == [128, values.size], "more than an eighth is read"
    together = [many[0].gather(machine.buffer(np.arange(n, n + 60, dtype=np.int32))) for n in range(3)]
    assert written(machine.run(*together)) == values.size, "more than an eighth is read by all"


def test_what_is_reduced_is_reduced_once(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((64, 48)).astype(np.float32)
    x = machine.buffer(values)
    total = x.reduce(Ops.ADD, (1,))
    found = x.alu(Ops.SUB, total.expand(x.shape)).gather(machine.buffer(np.array([50, 5, -1, 3072], np.int32)))
    assert written(machine.run(found)) == 64
    expected = (values - values.sum(1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(machine.value(found), [expected[50], expected[5], 0, 0], rtol=1e-5)


def test_padding_and_counters_are_looked_up_in_memory(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((64, 16)).astype(np.float32)
    index = machine.buffer(np.array([3, 1023, 1039], np.int32))
    padded = scalar(machine.buffer(values).pad(((1, 0), (0, 0))), Ops.ADD, 1)
    flat = np.pad(values, ((1, 0), (0, 0))).reshape(-1) + np.float32(1)
    np.testing.assert_array_equal(machine.value(padded.gather(index)), flat[[3, 1023, 1039]])
    within = scalar(scalar(machine.buffer(values), Ops.ADD, 1).pad(((1, 0), (0, 0))), Ops.MUL, 2)
    flat = np.pad(values + np.float32(1), ((1, 0), (0, 0))).reshape(-1) * np.float32(2)
    np.testing.assert_array_equal(machine.value(within.gather(index)), flat[[3, 1023, 1039]])
    counted = LazyBuffer.iota(1024, dtypes.int32, "CPU")
    numbers = rng.integers(9, size=1024).astype(np.int32)
    table = scalar(counted, Ops.MUL, 2).alu(Ops.ADD, machine.buffer(numbers))
    items = machine.run(found := table.gather(index))
    assert [len(item.bufs) for item in items] == [2, 3], "the table, not its counter, is in memory"
    np.testing.assert_array_equal(machine.value(found), [6 + numbers[3], 2046 + numbers[1023], 0])


def test_memory_that_is_overwritten_later_is_looked_up_before(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((64, 16)).astype(np.float32)
    memory = machine.buffer(values)
    found = scalar(memory, Ops.ADD, 1).gather(machine.buffer(np.array([9, 300], np.int32)))
    after = memory.assign(memory.const_like(0))
    machine.run(after, found)
    np.testing.assert_array_equal(machine.value(found), values.reshape(-1)[[9, 300]] + np.float32(1))
    assert not machine.value(after).any()


def test_a_long_function_is_computed_once(machine: Any, rng: Any) -> None:
    values = rng.standard_normal((64, 16)).astype(np.float32)
    table, found = machine.buffer(values), []
    for count in range(1, 200):
        table = scalar(table, Ops.ADD, 1)
        found.append(table.gather(machine.buffer(np.array([count], np.int32))))
    items = machine.run(*found)
    assert sum(item.fused for item in items) < 20_000, "each of the lookups computes all that stands before it"
    for count, one in enumerate(found, 1):
        np.testing.assert_allclose(machine.value(one), values.reshape(-1)[count] + count, rtol=1e-5)
