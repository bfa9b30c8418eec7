from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_lazy import LazyBuffer, Ops, ScheduleItem, schedule

DEPTH, SIZE = 8, 512


def total(x: LazyBuffer) -> LazyBuffer:
    return x.reduce(Ops.ADD, (0,))


def mixed(x: LazyBuffer) -> LazyBuffer:
    """A kernel of its own, since it reads other elements than it makes."""
    return x.alu(Ops.ADD, x.flip((0,)).alu(Ops.MUL, x.const_like(0.5))).contiguous()


def network(
    machine: Any, in_place: bool = True, rate: LazyBuffer | None = None
) -> tuple[list[LazyBuffer], list[LazyBuffer]]:
    """Weights, and their updates after a pass forward and one back: in the weights' memory, or beside them."""
    x = machine.buffer(np.linspace(0, 1, SIZE, dtype=np.float32))
    weights = [machine.buffer(np.ones(1, np.float32)) for _ in range(DEPTH)]
    values = [x]
    for w in weights:
        values.append(mixed(values[-1].alu(Ops.MUL, w.expand((SIZE,)))))
    gradient = mixed(values[-1])
    updates = []
    for w, value in zip(reversed(weights), reversed(values[:-1]), strict=True):
        change = total(gradient.alu(Ops.MUL, value))
        updated = w.alu(Ops.SUB, change if rate is None else change.alu(Ops.MUL, rate))
        updates.append(w.assign(updated) if in_place else updated)
        gradient = mixed(gradient.alu(Ops.MUL, w.expand((SIZE,))))
    return weights, updates


def most(items: list[ScheduleItem]) -> int:
    """How many large buffers that the schedule makes are needed at once."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, item in enumerate(items):
        for storage in item.bufs:
            if storage.size == SIZE and storage.payload is None:
                first.setdefault(storage.uid, number)
                last[storage.uid] = number
    return max(sum(first[u] <= n <= last[u] for u in first) for n in range(len(items)))


@pytest.mark.parametrize("in_place", [True, False])
def test_updates_do_not_wait_for_the_end(machine: Any, in_place: bool) -> None:
    _, updates = network(machine, in_place)
    items, _ = schedule(updates[::-1])  # in the order of the weights, as optimizers have them
    assert len(items) > 2 * DEPTH
    assert most(items) <= DEPTH + 3


def test_updates_do_not_wait_for_what_is_small(machine: Any) -> None:
    """A number that all updates read is computed before the first of them, wherever it stands in the graph."""
    rate = total(machine.buffer(np.ones(3, np.float32))).contiguous()
    items, _ = schedule(network(machine, True, rate)[1][::-1])
    assert most(items) <= DEPTH + 4


def test_the_values_are_the_same(machine: Any) -> None:
    weights, updates = network(machine)
    start = [np.ones(1, np.float32) for _ in range(DEPTH)]

    def mix(x: Any) -> Any:
        return x + x[::-1] * np.float32(0.5)

    values = [np.linspace(0, 1, SIZE, dtype=np.float32)]
    for w in start:
        values.append(mix(values[-1] * w))
    gradient, expected = mix(values[-1]), []
    for w, value in zip(reversed(start), reversed(values[:-1]), strict=True):
        expected.append(w - (gradient * value).sum())
        gradient = mix(gradient * w)
    machine.run(*updates[::-1])
    for weight, want in zip(reversed(weights), expected, strict=True):
        np.testing.assert_allclose(machine.value(weight), want, rtol=1e-4)
