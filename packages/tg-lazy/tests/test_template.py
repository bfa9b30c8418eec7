from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, schedule
from tg_lazy.cost import LIMITS, Limits
from tg_lazy.scheduler import template
from tg_shape import Variable


def plus(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.ADD, x.const_like(value))


def ramp(machine: Any, start: float = 0) -> LazyBuffer:
    return machine.buffer(np.arange(start, start + 6, dtype=np.float32).reshape(2, 3))  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    templates: dict[Any, Any] = {}
    monkeypatch.setattr(template, "_templates", templates)
    return templates


def pair(x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
    return x.permute((1, 0)).alu(Ops.MUL, y.permute((1, 0))).reduce(Ops.ADD, (0,)).alu(Ops.EXP2).contiguous()


def test_the_same_structure_is_scheduled_once(machine: Any, empty: dict[Any, Any]) -> None:
    asts = []
    for k in range(3):
        x, y = ramp(machine, k), ramp(machine, -k)
        out = pair(x, y)
        items = machine.run(out)
        asts.append(items[0].ast)
        assert str(items[0].origin).startswith(__file__)
        v, w = machine.memory[x.storage].reshape(2, 3), machine.memory[y.storage].reshape(2, 3)
        np.testing.assert_allclose(machine.value(out), np.exp2((v * w).sum(1)).reshape(1, 2), rtol=1e-5)
        assert out.is_realized
    assert len(empty) == 1 and asts[0] is asts[1] is asts[2]


def test_a_placeholder_without_a_value_is_found_in_a_structure_that_is_remembered(empty: dict[Any, Any]) -> None:
    for stale in (None, ("here", 3)):
        hole = LazyBuffer.empty((2, 3), dtypes.float32, "TEST")
        hole.stale = stale
        if stale is None:
            assert len(schedule([plus(hole, 1)])[0]) == 2 and len(empty) == 1
            continue
        with pytest.raises(RuntimeError, match="was left by the function at here:3"):
            schedule([plus(hole, 1)])


def test_which_memory_is_the_same_matters(machine: Any, empty: dict[Any, Any]) -> None:
    x, y = ramp(machine), ramp(machine, 1)
    assert len(schedule([pair(x, y)])[0][0].bufs) == 3
    assert len(schedule([pair(x, x)])[0][0].bufs) == 2
    assert x.storage is not None
    alias = LazyBuffer.from_storage(x.storage, (2, 3))
    assert len(schedule([pair(x, alias)])[0][0].bufs) == 2
    assert len(empty) == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda x: plus(x, -0.0), lambda x: x.alu(Ops.SUB, x.const_like(0.0)), lambda x: plus(x.flip((0,)), 0.0),
        lambda x: plus(x, 0.0).contiguous(), lambda x: plus(x.reshape((6,)), 0.0),
    ],
)  # fmt: skip
def test_what_differs_is_told_apart(machine: Any, empty: dict[Any, Any], other: Any) -> None:
    x = ramp(machine)
    schedule([plus(x, 0.0)])
    schedule([other(x)])
    assert len(empty) == 2


def test_several_outputs_and_temporaries(machine: Any, empty: dict[Any, Any]) -> None:
    for k in range(2):
        x = machine.buffer(np.full((300, 400), k + 1, np.float32))
        total = x.reduce(Ops.ADD, (0, 1))
        top = plus(x.reduce(Ops.MAX, (0, 1)), 1)
        machine.run(total, top, LazyBuffer.empty((2,), dtypes.float32, "CPU"))
        assert machine.value(total) == (k + 1) * 120_000 and machine.value(top) == k + 2
    assert len(empty) == 1


@pytest.fixture
def thoughts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each graph had that was not scheduled from memory."""
    module = sys.modules["tg_lazy.scheduler.schedule"]
    real, found = module._scheduled, []

    def counted(bases: Any, *rest: Any) -> Any:
        found.append(len(bases))
        return real(bases, *rest)

    monkeypatch.setattr(module, "_scheduled", counted)
    return found


def test_assignments_are_scheduled_once(machine: Any, thoughts: list[int]) -> None:
    x, momentum = ramp(machine), ramp(machine)
    expected = v = machine.memory[x.storage].copy()
    for _ in range(4):
        new = momentum.assign(momentum.alu(Ops.MUL, momentum.const_like(0.5)).alu(Ops.ADD, x))
        after = x.assign(x.alu(Ops.SUB, new))
        items = machine.run(after)
        v = v * np.float32(0.5) + expected
        expected = expected - v
        assert after.storage is x.storage and len(items) == 1
        np.testing.assert_array_equal(machine.value(after), expected.reshape(2, 3))
        np.testing.assert_array_equal(machine.value(new), v.reshape(2, 3))
    assert len(thoughts) == 1


def test_who_reads_what_is_overwritten_matters(machine: Any, thoughts: list[int]) -> None:
    for k, times in enumerate((1, 2, 2, 1, 2)):
        x = ramp(machine, k)
        before = machine.memory[x.storage].reshape(2, 3).copy()
        readers = [plus(x, 10 * n) for n in range(1, times)]
        machine.run(x.assign(plus(x, 1)))
        np.testing.assert_array_equal(machine.value(x), before + 1)
        for n, reader in enumerate(readers, 1):
            assert reader.is_realized
            np.testing.assert_array_equal(machine.value(reader), before + 10 * n)
    assert len(thoughts) == 2


def test_who_holds_what_would_be_lost_matters(machine: Any, thoughts: list[int]) -> None:
    for k, held in enumerate((False, True, False, True)):
        x = ramp(machine, k)
        before = machine.memory[x.storage].reshape(2, 3).copy()
        middle = plus(x, 5).alu(Ops.EXP2)
        new = x.assign(middle.alu(Ops.MUL, middle))
        if not held:
            del middle
        machine.run(new)
        np.testing.assert_allclose(machine.value(x), np.exp2(before + 5) ** 2, rtol=1e-5)
        if held:
            assert middle.is_realized
            np.testing.assert_allclose(machine.value(middle), np.exp2(before + 5), rtol=1e-5)
    assert len(thoughts) == 2


def test_the_order_of_assignments_matters(machine: Any, thoughts: list[int]) -> None:
    for first in (0, 1, 0, 1):
        x = ramp(machine)
        halves = [x.shrink(((0, 2), (0, 2))), x.shrink(((0, 2), (1, 3)))]
        a = halves[first].assign(halves[first].const_like(1.0))
        b = halves[1 - first].rebase(a).assign(halves[0].const_like(2.0))
        machine.run(b)
        expected = [[1.0, 2.0, 2.0] if first == 0 else [2.0, 2.0, 1.0]] * 2
        assert machine.value(x).tolist() == expected
    assert len(thoughts) == 2


def test_parts_of_memory(machine: Any, thoughts: list[int]) -> None:
    for k in range(3):
        x = ramp(machine, k)
        bits = x.bitcast(dtypes.uint8)
        out = bits.alu(Ops.ADD, bits)
        machine.run(out)
        expected = machine.memory[x.storage].reshape(2, 3).view(np.uint8)
        np.testing.assert_array_equal(machine.value(out), expected + expected)
    assert len(thoughts) == 1


def test_symbols_are_thought_about_anew(machine: Any, empty: dict[Any, Any]) -> None:
    x, n = ramp(machine), Variable("n", 1, 3)
    machine.run(plus(x.shrink(((0, 2), (0, n.bind(2)))), 1).reduce(Ops.ADD, (1,)))
    assert not empty


def test_limits_are_part_of_the_structure(machine: Any, empty: dict[Any, Any]) -> None:
    def build() -> LazyBuffer:
        y = ramp(machine)
        for _ in range(4):
            y = y.alu(Ops.ADD, ramp(machine))
        return y

    assert len(schedule([build()])[0]) == 1
    LIMITS["CPU"] = Limits(buffers=4)
    try:
        assert len(schedule([build()])[0]) > 1
    finally:
        del LIMITS["CPU"]
    assert len(schedule([build()])[0]) == 1


def test_no_more_is_remembered_than_fits(
    machine: Any, empty: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "CAPACITY", 3)
    monkeypatch.setattr(template, "LARGEST", 256)
    x = ramp(machine)
    for k in range(5):
        schedule([plus(x, k)])
    assert len(empty) == 3
    y = x
    for k in range(300):
        y = plus(y, k)
    schedule([y])
    assert len(empty) == 3
    monkeypatch.setattr(template, "CAPACITY_NODES", 10)
    y = x
    for _ in range(4):
        y = plus(y, 2.5)
    schedule([y])
    assert sum(one.size for one in empty.values()) <= 10
