"""Barriers and waits against brute force: all that conflicts is ordered, and nothing that was left out was needed."""

from __future__ import annotations

import random

import pytest

from tg_hcq.core.dependences import Order, Use, Work, order

QUEUES = 3


def program(rng: random.Random, steps: int) -> list[Work]:
    out: list[Work] = []
    for number in range(steps):
        uses = []
        for _ in range(rng.randint(0, 3)):
            start = rng.randrange(8)
            inputs = rng.random() < 0.3
            space, part = ("inputs", rng.randrange(3)) if inputs else (rng.choice("ab"), 0)
            uses.append(Use(space, part, start, start + rng.randint(1, 4), rng.random() < 0.5))
        after = [rng.randrange(number)] if number and rng.random() < 0.05 else []
        out.append(Work(rng.randrange(QUEUES), uses, after))
    return out


def happens_before(steps: list[Work], orders: list[Order]) -> list[set[int]]:
    """For each step those that are done before it begins, from the meaning of barriers, signals and waits alone."""
    done: list[set[int]] = []
    known: list[set[int]] = [set() for _ in range(QUEUES)]
    begun: list[set[int]] = [set() for _ in range(QUEUES)]
    signalled: dict[int, set[int]] = {}
    for number, (step, what) in enumerate(zip(steps, orders, strict=True)):
        queue = step.queue
        for earlier in what.waits:
            assert steps[earlier].queue != queue
            known[queue] |= signalled[earlier]
        if what.barrier:
            known[queue] |= begun[queue]
        else:
            assert not what.waits
        done.append(set(known[queue]))
        begun[queue].add(number)
        if what.signals:
            signalled[number] = known[queue] | begun[queue]
    return done


def conflicts(steps: list[Work]) -> list[tuple[int, int]]:
    return [
        (earlier, later)
        for later, step in enumerate(steps)
        for earlier in range(later)
        if earlier in step.after or any(a.conflicts(b) for a in step.uses for b in steps[earlier].uses)
    ]


@pytest.mark.parametrize("seed", range(150))
def test_all_that_conflicts_is_ordered_and_no_more(seed: int) -> None:
    rng = random.Random(seed)
    steps = program(rng, rng.randint(1, 25))
    orders = order(steps)
    pairs = conflicts(steps)
    done = happens_before(steps, orders)
    assert all(earlier in done[later] for earlier, later in pairs)
    for number, what in enumerate(orders):
        # without any one wait or barrier, something would be out of order
        for spared in what.waits:
            less = list(orders)
            less[number] = what._replace(waits=tuple(w for w in what.waits if w != spared))
            left = happens_before(steps, less)
            assert not all(earlier in left[later] for earlier, later in pairs)
        if what.barrier and not what.waits:
            less = list(orders)
            less[number] = what._replace(barrier=False)
            left = happens_before(steps, less)
            assert not all(earlier in left[later] for earlier, later in pairs)


def test_parts_of_one_buffer_are_independent() -> None:
    halves = [Work(0, [Use("a", 0, 512 * i, 512 * i + 512, True)]) for i in range(2)]
    whole = Work(0, [Use("a", 0, 0, 1024, False)])
    barriers = [step.barrier for step in order([*halves, whole, whole, *halves])]
    assert barriers == [False, False, True, False, True, False]


def test_inputs_may_be_one_buffer() -> None:
    write, read = Use("inputs", 0, 0, 4, True), Use("inputs", 1, 100, 104, False)
    assert [step.barrier for step in order([Work(0, [write]), Work(0, [read])])] == [False, True]
