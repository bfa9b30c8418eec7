"""Loops: buffers move as their places say, on every device alike, whether native code walks or Python does."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.isolate import isolate
from tg_runtime import Body, Buffer, Device, LoopRunner, Place, profile
from tg_runtime.execution.graph import parts_at


def test_places() -> None:
    forward = Place(2, 16, 8, -1, 1, 4, 0, 3)
    assert [forward.at(step) for step in range(3)] == [(3, 0), (2, 16), (2, 24)]
    turns = Place(0, 0, 4, 0, 1, 5, 2)
    assert [turns.at(step) for step in range(4)] == [(0, 0), (0, 4), (0, 0), (0, 4)]
    backward = Place(1, 0, 4, 3, -1, 4)
    assert [backward.at(step) for step in range(4)] == [(1, 12), (1, 8), (1, 4), (1, 0)]
    assert Place(5).at(7) == (5, 0)


def test_parts_are_whole_buffers_where_they_can_be() -> None:
    whole = Buffer("CPU", 4, dtypes.float32).allocate()
    kinds = [(4, dtypes.float32), (1, dtypes.float32)]
    one, other = parts_at([whole], [Place(0), Place(0, 0, 4, 0, 1, 4)], kinds, 2)
    assert one is whole and other.base is whole and other.offset == 8


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("profiled", [0, 1])
def test_a_running_sum(device: str, count: int, profiled: int, tmp_path: Path) -> None:
    """carry' = carry + x[step] + w, in two places in turn; ys[step] = carry * x[step], from the end."""
    if device not in Device.available():
        pytest.skip(f"{device} is not available here")
    carry, x, w = (LazyBuffer.empty((3,), dtypes.float32, device) for _ in range(3))
    new = carry.alu(Ops.ADD, x).alu(Ops.ADD, w)
    body = Body(isolate([new, carry.alu(Ops.MUL, x)], [carry, x, w]))
    data = np.random.default_rng(count).standard_normal((count + 2, 3)).astype(np.float32)
    places = [
        Place(0, 0, 12, -1, 1, count, 2, 1), Place(2, 0, 12, 0, 1, count), Place(3),
        Place(0, 0, 12, 0, 1, count, 2), Place(0, 24, 12, count - 1, -1, count),
    ]  # fmt: skip
    runner = LoopRunner("a running sum", device, body, places, count)
    held = []
    for scale in (1.0, 3.0, 0.5):  # each time in other memory
        xs, first, weight = scale * data[:count], scale * data[count], scale * data[count + 1]
        results = Buffer(device, (2 + count) * 3, dtypes.float32).allocate()
        bufs = [results, *(Buffer.fromCPU(device, np.array(array)) for array in (first, xs, weight))]
        with profile(tmp_path / "trace.json") if profiled else nullcontext():
            assert runner(bufs, {}, wait=True) is not None
        want, state = [], first
        for step in range(count):
            want.append(state * xs[step])
            state = state + xs[step] + weight
        held.append((bufs, want, state))
    for bufs, want, state in held:
        got = bufs[0].toCPU().reshape(-1, 3)
        np.testing.assert_allclose(got[2:][::-1], want, rtol=1e-5)
        np.testing.assert_allclose(got[(count - 1) % 2], state, rtol=1e-5)
    assert runner.num_kernels >= count


def _sums(device: str, columns: int, held: LazyBuffer) -> LoopRunner:
    """total' = total + x[step] + held, over a row: one slot for the total, read from elsewhere in step 0."""
    total, x = (LazyBuffer.empty((1,), dtypes.float32, device) for _ in range(2))
    inner = Body(isolate([total.alu(Ops.ADD, x).alu(Ops.ADD, held)], [total, x]))
    places = [
        Place(0, 8, 4, -1, 1, columns, 2, 1),
        Place(2, 0, 4, 0, 1, columns),
        Place(3),
        Place(0, 8, 4, 0, 1, columns, 2),
    ]
    return LoopRunner("a row", device, inner, places, columns)


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("profiled", [0, 1])
def test_a_loop_within_a_loop(device: str, columns: int, profiled: int, tmp_path: Path) -> None:
    """Sums along rows, each from the last one's, doubled: the steps of both loops move, and both read what stays."""
    if device not in Device.available():
        pytest.skip(f"{device} is not available here")
    rows = 5
    held = LazyBuffer.empty((1,), dtypes.float32, device)
    sums = _sums(device, columns, held)
    start, row, own = (LazyBuffer.empty(shape, dtypes.float32, device) for shape in ((1,), (columns,), (1,)))
    packed = LazyBuffer.custom(sums, [start, row, own], (4,), dtypes.float32, device)
    last = 2 + (columns - 1) % 2
    outer = Body(
        isolate(
            [packed.shrink(((last, last + 1),)).alu(Ops.MUL, LazyBuffer.const(2.0, dtypes.float32, (1,), device))],
            [start, row, own],
        )
    )
    places = [
        Place(0, 0, 4, -1, 1, rows, 0, 1), Place(2, 0, 4 * columns, 0, 1, rows), Place(3), Place(0, 0, 4, 0, 1, rows),
    ]  # fmt: skip
    runner = LoopRunner("rows", device, outer, places, rows)
    data = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
    for scale in (1.0, 0.25):  # the second time in other memory
        bufs = [Buffer(device, rows, dtypes.float32).allocate()]
        bufs += [Buffer.fromCPU(device, np.array(a, np.float32)) for a in ([3.0], scale * data, [0.5])]
        with profile(tmp_path / "trace.json") if profiled else nullcontext():
            runner(bufs, {}, wait=True)
        total, want = 3.0, []
        for one in scale * data:
            total = 2 * (total + float(one.sum()) + 0.5 * columns)
            want.append(total)
        np.testing.assert_allclose(bufs[0].toCPU(), want, rtol=1e-4)
    assert runner.num_kernels >= rows * (columns + 1)
    if device == "CPU":
        assert outer.graph is not None, "no Python stands between the steps"
