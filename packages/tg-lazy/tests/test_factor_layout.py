"""Factors of products that are copied first: which one, from which size on, and that the values stay what they are."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops, ScheduleItem, Storage, schedule
from tg_lazy.cost import LIMITS, Limits
from tg_lazy.subgraph.factor_layout import lay_out_factors
from tg_lazy.subgraph.graph import Graph

EAGER = Limits(factor_bytes=1, balance=0.0)
"""Whatever may be copied is copied."""
L2 = Limits(factor_bytes=2 << 20)


def memory(shape: tuple[int, ...], dtype: DType = dtypes.float32) -> LazyBuffer:
    return LazyBuffer.from_storage(Storage("CPU", prod(shape), dtype), shape)


def product(a: LazyBuffer, b: LazyBuffer) -> LazyBuffer:
    """(…, m, k) times (…, k, n)."""
    m, k = a.shape[-2:]
    n, batch = b.shape[-1], a.shape[:-2]
    left = a.reshape((*batch, m, 1, k)).expand((*batch, m, n, k))
    right = b.permute((*range(len(batch)), len(batch) + 1, len(batch))).reshape((*batch, 1, n, k))
    return left.alu(Ops.MUL, right.expand((*batch, m, n, k))).reduce(Ops.ADD, (len(batch) + 2,))


def turned(x: LazyBuffer) -> LazyBuffer:
    last = len(x.shape) - 1
    return x.permute((*range(last - 1), last, last - 1))


def copies(items: list[ScheduleItem]) -> list[tuple[int, ...]]:
    """The shapes of the factors that are copied, without dimensions of one element."""
    stores = [store for item in items if "factor" in item.reason for store in item.ast.src]
    return [tuple(int(dim) for dim in store.shape if dim != 1) for store in stores]


def shapes(m: int, n: int, k: int, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    monkeypatch.setitem(LIMITS, "CPU", limits)
    return copies(schedule([product(turned(memory((k, m))), memory((k, n)))])[0])


def test_the_factor_with_fewer_elements_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    for _ in range(20):
        m, n, k = rng.sample(range(601, 3001, 2), 3)
        assert shapes(m, n, k, L2, monkeypatch) == [(min(m, n), k)], (m, n, k)


def test_a_copy_has_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shapes(1024, 1024, 1024, Limits(), monkeypatch), "a target on which layouts do not count"
    assert not shapes(601, 607, 431, L2, monkeypatch), "both factors stay in the cache"
    assert shapes(601, 607, 439, L2, monkeypatch) == [(601, 439)]
    assert shapes(1021, 509, 4093, L2, monkeypatch) == [(509, 4093)]
    assert not shapes(487, 479, 4093, L2, monkeypatch), "a copy takes longer than what so few results save"
    assert not shapes(1021, 1, 4093, L2, monkeypatch), "one result reads each element once"


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.int32, dtypes.int8])
def test_other_numbers_have_instructions_of_their_own(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    assert not copies(schedule([product(turned(memory((67, 31), dtype)), memory((67, 29), dtype))])[0])


def test_terms_side_by_side_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of at least one factor: of the other, vectors lie along its results."""
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    for a, b in (
        (memory((31, 67)), memory((67, 29))), (memory((31, 67)), turned(memory((29, 67)))),
        (turned(memory((67, 31))), turned(memory((29, 67)))),
    ):  # fmt: skip
        assert not copies(schedule([product(a, b)])[0])


def test_windows_and_padding_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    b = memory((67, 29))
    assert not copies(schedule([product(turned(memory((67, 30)).pad(((0, 0), (1, 0)))), b)])[0])
    assert not copies(schedule([product(turned(memory((67, 31)).flip((1,))), b)])[0])
    repeated = memory((67, 40)).reshape((67, 1, 40)).expand((67, 4, 40)).reshape((67, 160))
    windows = repeated.shrink(((0, 67), (0, 3 * 41))).reshape((67, 3, 41)).shrink(((0, 67), (0, 3), (0, 38)))
    assert [view.strides for view in windows.st.views] == [(40, 1, 1)], "window i has element j at i + j"
    left = windows.permute((1, 2, 0)).reshape((3, 38, 1, 67)).expand((3, 38, 29, 67))
    right = b.permute((1, 0)).reshape((1, 1, 29, 67)).expand((3, 38, 29, 67))
    assert not copies(schedule([left.alu(Ops.MUL, right).reduce(Ops.ADD, (3,))])[0])


def test_products_that_are_wanted_themselves_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    total = product(turned(memory((67, 31))), memory((67, 29)))
    assert not copies(schedule([total.srcs[0], total])[0])


def test_products_share_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    x = turned(memory((67, 23)))
    items = schedule([product(x, memory((67, n))) for n in (29, 31, 37)])[0]
    assert copies(items) == [(23, 67)]


def test_factors_along_which_vectors_lie_with_those_of_the_other_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result of ``hbn,hn->bn`` has its own n of both: vectors would gather what a copy puts apart."""
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    b, h, n = 31, 67, 17
    left = memory((h, b, n)).permute((1, 0, 2))

    def right(m: int) -> LazyBuffer:
        return memory((h, m, n)).permute((1, 0, 2)).reshape((1, m, h, n)).expand((b, m, h, n))

    batches = left.reshape((b, 1, h, n)).expand((b, 5, h, n)).alu(Ops.MUL, right(5)).reduce(Ops.ADD, (2,))
    assert copies(schedule([batches])[0]) == [(5, n, h)]
    assert not copies(schedule([left.alu(Ops.MUL, right(1).reshape((b, h, n))).reduce(Ops.ADD, (1,))])[0])


def test_factors_without_terms_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    m, n, k = 31, 29, 67
    left = memory((m,)).reshape((m, 1, 1)).expand((m, n, k))
    right = turned(memory((k, n))).reshape((1, n, k)).expand((m, n, k))
    assert not copies(schedule([left.alu(Ops.MUL, right).reduce(Ops.ADD, (2,))])[0])


@pytest.mark.parametrize("seed", range(20))
def test_copies_come_before_all_that_read_them(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Of products that share a copy, one may be read by others before it is summed along its terms."""
    pick = random.Random(seed)
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    x, k = memory((67, 11)), 67
    totals = [product(turned(x), memory((k, n))) for n in (13, 17, 19)]
    outputs = [*totals, *(total.srcs[0].reduce(Ops.MAX, (2,)) for total in totals)]
    graph = Graph()
    graph.reach(pick.sample(outputs, len(outputs)), "output")
    nodes = lay_out_factors(graph.nodes)
    assert [node.index for node in nodes] == [*range(len(nodes))]
    assert all(source.index < node.index for node in nodes for source, _ in node.srcs)
    assert sum("factor" in node.reason for node in nodes) == 1


@pytest.mark.drawn(12)
@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_the_product(machine: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Of drawn factors, in batches or not, computed or in memory, of which one may be written after it was read."""
    pick = random.Random(seed)
    monkeypatch.setitem(LIMITS, "CPU", EAGER)
    rng = np.random.default_rng(seed)
    m, n, k = (pick.randrange(2, 12) for _ in range(3))
    batch = (pick.randrange(2, 4),) if pick.randrange(2) else ()
    left, right = (rng.integers(-9, 9, (*batch, k, size)).astype(np.float32) for size in (m, n))
    stored = machine.buffer(left)
    a, b = stored, machine.buffer(right)
    if pick.randrange(2):
        a, left = a.alu(Ops.ADD, a), left + left
    if pick.randrange(2):
        b, right = b.alu(Ops.NEG), -right
    expected = np.swapaxes(left, -1, -2) @ right
    total = product(turned(a), b)
    outputs = [total]
    if pick.randrange(2):
        outputs.append(stored.assign(stored.alu(Ops.MUL, stored)))
    items = machine.run(*outputs)
    assert len(copies(items)) == 1
    np.testing.assert_array_equal(machine.value(total).reshape(expected.shape), expected)
