"""Loops that threads go through each by itself: which are, and that their values are those of threads that meet.

What is computed is compared to the last bit with the same loops whose threads wait for one another after each kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, scan, vmap
from tg_frontend.transform.traced_once import traced_once
from tg_runtime import Body, Device
from tg_runtime.execution import apart, loop
from tg_runtime.execution.apart import threads_apart
from tg_runtime.kernels import making
from tg_runtime.kernels.programs import get_spec

STEPS = 300
SEVERAL = Device["CPU"].steps_apart > 1
"""Whether this machine has threads that may stay apart."""
Array = Any
Step = Callable[[Any, Any], tuple[Any, Any]]


class Record:
    """The bodies that are prepared, and whether threads may stay apart in them.

    Attributes:
      apart: for each body, what was decided.
      parts: in how many parts each was cut that might be.
      allowed: whether it may be decided that they do.
    """

    def __init__(self) -> None:
        self.apart: list[bool] = []
        self.parts: list[int] = []
        self.allowed = True
        self._decide = threads_apart

    def decide(self, *args: Any) -> int:
        found = self._decide(*args) if self.allowed else 0
        self.apart.append(found > 1)
        if self.allowed:
            self.parts.append(found)
        return found


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    made = Record()
    monkeypatch.setattr(loop, "threads_apart", made.decide)
    return made


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def both(record: Record, compute: Callable[..., Any], *arrays: Array) -> list[bool]:
    """Computes with threads apart where they may be, and with threads that meet; whether bodies stayed apart."""
    found, decided = [], []
    for allowed in (True, False):
        record.allowed, record.apart = allowed, []
        if allowed:
            record.parts = []
        results = compute(*(Tensor(array, device="CPU").realize() for array in arrays))
        found.append([result.numpy() for result in results])
        decided.append(record.apart)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not any(decided[1])
    return decided[0]


def average(mean: Any, x: Any) -> tuple[Any, Any]:
    return (mean * 0.9 + x * 0.1,) * 2


def swapped(state: Any, x: Any) -> tuple[Any, Any]:
    """Two values that change places, one of another dtype, and what is kept of both."""
    a, b = state
    return (b.cast("float32") * 0.5 + x, a.cast("float64")), a * b.cast("float32")


def rows(hidden: Any, x: Any) -> tuple[Any, Any]:
    return (hidden * 0.5 + (x * hidden).sum(-1, keepdim=True) * 0.01,) * 2


def rolled(state: Any, x: Any) -> tuple[Any, Any]:
    return (state.roll(1, 0) * 0.9 + x,) * 2


def totalled(state: Any, x: Any) -> tuple[Any, Any]:
    return (state * 0.9 + x - state.mean() * 0.5,) * 2


def turned(state: Any, x: Any) -> tuple[Any, Any]:
    return (state.flip(0) * 0.9 + x,) * 2


def far(state: Any, x: Any) -> tuple[Any, Any]:
    """What a step keeps is read by none; what it carries crosses over."""
    return state.flip(0) * 0.5 + x, state * x


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lanes", [1501, 2048, 4099])
def test_elements_that_stay_in_their_lane(lanes: int, reverse: bool, record: Record) -> None:
    def compute(start: Tensor, x: Tensor) -> Sequence[Tensor]:
        return scan(average, start, x, reverse=reverse)

    decided = both(record, compute, random(lanes), random(STEPS, lanes, seed=1))
    assert decided == [SEVERAL]


def test_values_are_those_of_numpy(record: Record) -> None:
    lanes = 2003
    start, x = random(lanes), random(STEPS, lanes, seed=1)
    last, means = scan(average, Tensor(start, device="CPU"), Tensor(x, device="CPU"))
    want, mean = [], start
    for part in x:
        mean = mean * np.float32(0.9) + part * np.float32(0.1)
        want.append(mean)
    np.testing.assert_allclose(means.numpy(), np.array(want), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.numpy(), mean, rtol=1e-5, atol=1e-6)
    assert record.apart == [SEVERAL]


@pytest.mark.skipif(not SEVERAL, reason="there is one thread")
def test_reductions_are_looked_at_first(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of which threads have no parts is enough: others need not be generated for threads that are awake."""
    asked: list[str] = []

    def noted(device: Any, ast: Any, awake: int) -> Any:
        asked.append(get_spec(device, ast, awake).name)
        return get_spec(device, ast, awake)

    monkeypatch.setattr(apart, "get_spec", noted)

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        kept = (state * 0.9 + x).contiguous()
        return (kept - kept.sum(-1, keepdim=True).contiguous() * 0.01,) * 2

    both(record, lambda start, x: scan(step, start, x), random(3, 1025), random(STEPS, 3, 1025, seed=1))
    assert asked[0].startswith("r_"), "though the elementwise kernel comes before it"


@pytest.mark.skipif(not SEVERAL, reason="there is one thread")
def test_what_reads_computed_places_of_what_is_written_is_enough(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at before what writes them, and no other kernel is generated for threads that are awake."""
    asked: list[Any] = []

    def noted(device: Any, ast: Any, awake: int) -> Any:
        asked.append(ast)
        return get_spec(device, ast, awake)

    monkeypatch.setattr(apart, "get_spec", noted)
    lanes = 3001
    places = np.random.default_rng(2).permutation(lanes).astype(np.int32)

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        kept = (state * 0.9 + x).contiguous()
        return (kept * 0.5 + kept[Tensor(places, device="CPU")] * 0.5,) * 2

    decided = both(record, lambda start, x: scan(step, start, x), random(lanes), random(STEPS, lanes, seed=1))
    assert decided == [False] and len(asked) == 1


@pytest.mark.parametrize("length", [1, 2, 3, 301])
def test_any_number_of_steps(length: int, record: Record) -> None:
    lanes = 30011
    decided = both(record, lambda start, x: scan(average, start, x), random(lanes), random(length, lanes, seed=1))
    assert decided == [SEVERAL and length > 1]


def test_several_carried_values(record: Record) -> None:
    lanes = 1999

    def compute(a: Tensor, b: Tensor, x: Tensor) -> Sequence[Tensor]:
        (one, other), kept = scan(swapped, (a, b.cast("float64")), x)
        return one, other, kept

    decided = both(record, compute, random(lanes), random(lanes, seed=2), random(STEPS, lanes, seed=1))
    assert decided == [SEVERAL]


def test_rows_that_stay_rows(record: Record) -> None:
    decided = both(record, lambda h, x: scan(rows, h, x), random(67, 53), random(STEPS, 67, 53, seed=1))
    assert decided == [SEVERAL]
    width = 61
    decided = both(
        record, lambda h, x, w: scan(lambda h, x: ((h @ w + x).tanh(),) * 2, h, x),
        random(29, width), random(STEPS, 29, width, seed=1), random(width, width, seed=2) / 8,
    )  # fmt: skip
    assert decided == [SEVERAL]


@pytest.mark.parametrize("step", [rolled, totalled, turned, far], ids=lambda step: step.__name__)
def test_what_crosses_over_is_waited_for(step: Step, record: Record) -> None:
    lanes = 3001
    start, x = random(lanes), random(STEPS, lanes, seed=1)
    assert both(record, lambda start, x: scan(step, start, x), start, x) == [False]


def row_at(state: Any, k: Any) -> tuple[Any, Any]:
    """One column of each matrix is subtracted from all."""
    own = state.index_select(2, k.reshape((1,)))
    return (state * 0.5 - own * 0.25,) * 2


@pytest.mark.skipif(not SEVERAL, reason="there is one thread")
def test_blocks_that_stay_in_the_cache(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on more memory than caches hold are cut in more parts than there are threads, of sizes drawn at random."""
    monkeypatch.setattr(apart, "_near", lambda device: 1 << 14)
    rng = np.random.default_rng(11)
    threads, cut = Device["CPU"].steps_apart, 0
    for _ in range(6):
        count, m, n = (int(rng.integers(low, high)) for low, high in ((40, 150), (3, 9), (4, 12)))
        start = random(count, m, n)
        places = Tensor.arange(n, dtype=dtypes.int32, device="CPU")
        both(record, lambda start, places=places: scan(row_at, start, places), start)
        both(record, lambda start, x: scan(rows, start, x), start, random(n, count, m, n, seed=1))
        lanes = int(rng.integers(20000, 60000))
        assert both(record, lambda start, x: scan(average, start, x), random(lanes), random(9, lanes, seed=1)) == [True]
        assert record.parts[0] > threads
        cut += sum(found > threads for found in record.parts)
    assert cut >= 6


def reversed_rows(state: Any, x: Any) -> tuple[Any, Any]:
    """A row becomes what its mirror image was."""
    return ((state.flip(0) * 0.5 + x).contiguous(),) * 2


def neighbours(state: Any, x: Any) -> tuple[Any, Any]:
    """A row reads the next one."""
    return (state * 0.5 + state.roll(1, 0) * 0.25 + x,) * 2


def centred(state: Any, x: Any) -> tuple[Any, Any]:
    """All rows are read for the mean of each column."""
    return (state - state.mean(0, keepdim=True) + x,) * 2


@pytest.mark.skipif(not SEVERAL, reason="there is one thread")
@pytest.mark.parametrize("step", [reversed_rows, neighbours, centred], ids=lambda step: step.__name__)
def test_what_crosses_over_is_not_cut_in_blocks(
    step: Step, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A block that goes first would read what the others have not written yet."""
    monkeypatch.setattr(apart, "_near", lambda device: 1 << 12)
    count, n = (int(x) for x in np.random.default_rng(13).integers(60, 200, 2))
    start, x = random(count, n), random(9, count, n, seed=1)
    assert both(record, lambda start, x: scan(step, start, x), start, x) == [False]
    assert record.parts == [0]


@pytest.mark.skipif(not SEVERAL, reason="there is one thread")
def test_what_all_blocks_read_is_no_large_matrix(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_near", lambda device: 1 << 14)
    width = 61
    decided = both(
        record, lambda h, x, w: scan(lambda h, x: ((h @ w + x).tanh(),) * 2, h, x),
        random(290, width), random(9, 290, width, seed=1), random(width, width, seed=2) / 8,
    )  # fmt: skip
    assert record.parts[0] <= Device["CPU"].steps_apart and len(decided) == 1


def test_it_is_found_out_while_kernels_are_foreseen(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: the kernels that compilers get are those that are run."""
    made: list[int] = []
    monkeypatch.setattr(making.Making, "add", lambda self, device, ast, awake: made.append(awake))

    @traced_once
    def traced(x: Tensor) -> tuple[Tensor]:
        _, means = scan(average, x[0], x)
        return (means * 2,)

    with Tensor.no_grad():
        found = traced(Tensor(random(12, 4099, seed=3), device="CPU"))
        assert record.apart == [SEVERAL] and sorted(made)[-1:] == record.parts
        made.clear()
        found[0].realize()
    assert record.apart == [SEVERAL]


def test_gradients(record: Record) -> None:
    def compute(start: Tensor, x: Tensor, factor: Tensor) -> Sequence[Tensor]:
        def step(state: Any, part: Any) -> tuple[Any, Any]:
            new = (state * factor + part).tanh()
            return new, new * state

        given = start, x, factor
        for tensor in given:
            tensor.requires_grad = True
        last, kept = scan(step, start, x)
        found: Sequence[Tensor] = (last.sum() + (kept * kept).sum()).gradient(*given)
        return found

    lanes = 2501
    decided = both(record, compute, random(lanes), random(60, lanes, seed=1), random(lanes, seed=2))
    assert decided == [SEVERAL] * 2


def test_loops_within_loops_and_many_at_once(record: Record) -> None:
    lanes = 1601

    def within(start: Tensor, x: Tensor) -> Sequence[Tensor]:
        def outer(state: Any, parts: Any) -> tuple[Any, Any]:
            return scan(average, state.roll(1, 0), parts)

        return scan(outer, start, x)

    decided = both(record, within, random(lanes), random(7, 50, lanes, seed=1))
    assert decided == [False, SEVERAL]
    both(
        record, lambda start, x: [vmap(lambda one: scan(average, one, x)[0])(start)], random(3, lanes),
        random(STEPS, lanes, seed=1),
    )  # fmt: skip


def test_bodies_drawn_at_random(record: Record) -> None:
    """Steps of elementwise work on two values, now and then with one that crosses over, of any shape."""
    rng = np.random.default_rng(7)
    stayed = 0
    for _ in range(8):
        shape: tuple[int, ...] = tuple(map(int, rng.integers(30, 90, size=2)))
        if rng.integers(2):
            shape = (int(rng.integers(1100, 5000)),)
        crossing = int(rng.integers(4))
        factor, order = float(rng.uniform(0.1, 0.9)), int(rng.integers(2))

        def step(
            state: Any, x: Any, crossing: int = crossing, factor: float = factor, order: int = order
        ) -> tuple[Any, Any]:
            a, b = state
            if crossing == 0:
                a = a.flip(0)
            new = (a * factor + x.sin(), b.maximum(x) * 0.5)
            return new[::-1] if order else new, a - b

        def compute(a: Tensor, b: Tensor, x: Tensor, step: Step = step) -> Sequence[Tensor]:
            (one, other), kept = scan(step, (a, b), x)
            return one, other, kept

        decided = both(record, compute, random(*shape), random(*shape, seed=1), random(90, *shape, seed=2))
        assert not (crossing == 0 and any(decided))
        stayed += sum(decided)
    assert stayed >= 3 or not SEVERAL


def test_a_body_says_it_of_its_graph(record: Record) -> None:
    made: list[Body] = []
    before = Body.prepare

    def prepare(self: Body) -> None:
        before(self)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Body, "prepare", prepare)
        scan(average, Tensor(random(2003), device="CPU"), Tensor(random(STEPS, 2003), device="CPU"))[0].realize()
    graph = made[0].graph
    assert graph is None or graph.apart == record.apart[0]
