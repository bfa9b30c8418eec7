"""The memory between recorded steps: places, kernels in place, what is given back while a record is made."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, Storage
from tg_runtime import (
    Buffer,
    Device,
    DeviceError,
    ExecItem,
    GlobalCounters,
    Usage,
    arrange,
    buffer_of,
    capture,
    realize,
)
from tg_runtime.execution.lifetimes import Life, needed, place
from tg_runtime.testing.kernels import buffer_with, unpack

SIZE = 1 << 14


def overlap(lives: list[Life]) -> bool:
    return any(
        a.first <= b.last and b.first <= a.last and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes
        for i, a in enumerate(lives) for b in lives[:i]
    )  # fmt: skip


def test_blocks_that_follow_one_another_share_a_place() -> None:
    lives = [Life(1000, n, n + 1) for n in range(10)]
    assert needed(lives) == place(lives) == 2 * 1024 and not overlap(lives)


@pytest.mark.parametrize("count", [1, 30, 300, 1200])
def test_random_lives_never_overlap(count: int) -> None:
    chance = random.Random(count)
    lives = []
    for _ in range(count):
        first = chance.randrange(count)
        lives.append(Life(chance.choice((0, 1, 64, 1000, 4096, 100_000)), first, first + chance.randrange(12)))
    size = place(lives)
    assert not overlap(lives)
    assert all(life.offset % 64 == 0 and life.offset + life.nbytes <= size for life in lives)
    assert needed(lives) <= size <= 1.5 * needed(lives)


def test_nothing_takes_nothing() -> None:
    assert place([]) == needed([]) == 0 and arrange([], []) == ([], Usage())


@pytest.fixture
def cpu() -> Any:
    with Context(DEV=""):
        try:
            device = Device["CPU"]
        except DeviceError as error:
            pytest.skip(str(error))
        if device.renderer is None:
            pytest.skip("CPU has no renderer")
        yield device


def lazy(values: list[float]) -> LazyBuffer:
    buffer = buffer_with("CPU", list(values), dtypes.float32)
    return LazyBuffer.from_storage(Storage("CPU", len(values), dtypes.float32, buffer), (len(values),))


def values(buffer: Buffer) -> list[float]:
    return unpack(buffer.as_buffer(), buffer.dtype)


def shifted(x: LazyBuffer) -> LazyBuffer:
    """One kernel that reads elements other than those that it writes."""
    return x.alu(Ops.ADD, x.flip((0,))).contiguous()


def doubled(x: LazyBuffer) -> LazyBuffer:
    """One kernel that reads just what it would overwrite."""
    return x.alu(Ops.ADD, x).contiguous()


def recorded(build: Any, start: LazyBuffer, steps: int) -> tuple[list[ExecItem], list[Buffer], LazyBuffer]:
    items: list[ExecItem] = []
    ended: list[Buffer] = []
    with capture(items, ended):
        x = start
        for _ in range(steps):
            x = build(x)
            realize([x])
    return items, ended, x


@pytest.mark.parametrize("build", [shifted, doubled])
@pytest.mark.usefixtures("collected")
def test_a_chain_needs_two_buffers_or_one(cpu: Any, build: Any) -> None:
    start = lazy([float(n) for n in range(SIZE)])
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    items, ended, out = recorded(build, start, 6)
    assert len(items) == 6 and len(ended) == 5 and not any(buffer.is_allocated for buffer in ended)
    assert GlobalCounters.mem_peak - before <= 3 * 4 * SIZE, "recording frees memory as the kernels run"
    expected = values(buffer_of(out.storage))  # type: ignore[arg-type]
    steps, usage = arrange(items, ended)
    room = 1 if build is doubled else 2
    assert usage == Usage(5, 5 * 4 * SIZE, room * 4 * SIZE, room * 4 * SIZE, 4 if build is doubled else 0)
    result = steps[-1].bufs[0]
    assert result is not None and result is buffer_of(out.storage)  # type: ignore[arg-type]
    for _ in range(2):
        result.copyin(memoryview(bytes(result.nbytes)))
        before = GlobalCounters.mem_used
        for step in steps:
            step.run()
        assert values(result) == expected
        assert values(buffer_of(start.storage)) == [float(n) for n in range(SIZE)]  # type: ignore[arg-type]


def test_kernels_are_made_in_place_only_where_that_spares_memory(cpu: Any) -> None:
    items: list[ExecItem] = []
    ended: list[Buffer] = []
    stages = (
        doubled,
        doubled,  # could be in place, but two small blocks are not where the most is needed
        lambda x: x.reshape((1, SIZE)).expand((8, SIZE)).contiguous(),
        doubled,
        lambda x: x.reduce(Ops.ADD, (0,)).contiguous(),
    )
    with capture(items, ended):
        x = lazy([float(n) for n in range(SIZE)])
        for stage in stages:
            x = stage(x)
            realize([x])
    expected = values(buffer_of(x.storage))  # type: ignore[arg-type]
    steps, usage = arrange(items, ended)
    assert usage == Usage(4, 18 * 4 * SIZE, 9 * 4 * SIZE, 9 * 4 * SIZE, 1)
    buffer_of(x.storage).copyin(memoryview(bytes(4 * SIZE)))  # type: ignore[arg-type]
    for step in steps:
        step.run()
    assert values(buffer_of(x.storage)) == expected  # type: ignore[arg-type]


def test_what_others_hold_keeps_its_own_memory(cpu: Any) -> None:
    items: list[ExecItem] = []
    ended: list[Buffer] = []
    start = lazy([1.0] * 64)
    with capture(items, ended):
        middle = doubled(start)
        out = shifted(middle)
        realize([out])
    assert not ended
    steps, usage = arrange(items, ended)
    assert usage == Usage() and steps == items
    assert values(buffer_of(middle.storage)) == [2.0] * 64  # type: ignore[arg-type]


def test_memory_from_before_is_not_taken(cpu: Any) -> None:
    items: list[ExecItem] = []
    ended: list[Buffer] = []
    start = doubled(lazy([1.0] * 64))
    realize([start])
    with capture(items, ended):
        out = shifted(start)
        realize([out])
        del start  # a replay reads it all the same
    assert not ended
    steps, _ = arrange(items, ended)
    for step in steps:
        step.run()
    assert values(buffer_of(out.storage)) == [4.0] * 64  # type: ignore[arg-type]


def test_views_follow_what_they_are_views_of(cpu: Any) -> None:
    items: list[ExecItem] = []
    ended: list[Buffer] = []
    start = lazy([float(n) for n in range(64)])
    with capture(items, ended):
        bits = doubled(start).bitcast(dtypes.uint8)
        out = bits.alu(Ops.ADD, bits).contiguous()
        realize([out])
        del bits
    expected = values(buffer_of(out.storage))  # type: ignore[arg-type]
    steps, usage = arrange([item for item in items if item.prg.num_kernels and len(item.bufs) > 1], ended)
    assert usage.buffers == 1
    buffer_of(out.storage).copyin(memoryview(bytes(256)))  # type: ignore[arg-type]
    for step in steps:
        step.run()
    assert values(buffer_of(out.storage)) == expected  # type: ignore[arg-type]
