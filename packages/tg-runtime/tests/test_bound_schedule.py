"""Bound schedules: the short way of a graph that was computed before."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, Storage, schedule
from tg_lazy.scheduler import template
from tg_runtime import (
    BufferOptions,
    Device,
    DeviceError,
    ExecItem,
    GlobalCounters,
    LRUAllocator,
    buffer_of,
    capture,
    realize,
)
from tg_runtime.execution import bound_schedule
from tg_runtime.execution.bound_schedule import BoundSchedule
from tg_runtime.testing.kernels import buffer_with, unpack


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(template, "_templates", {})
    with Context(DEV=""):
        try:
            renderer = Device["CPU"].renderer
        except DeviceError as error:
            pytest.skip(str(error))
        if renderer is None:
            pytest.skip("CPU has no renderer")
        yield


def lazy(values: list[float], device: str = "CPU") -> LazyBuffer:
    buffer = buffer_with(device, list(values), dtypes.float32)
    return LazyBuffer.from_storage(Storage(device, len(values), dtypes.float32, buffer), (len(values),))


def values(x: LazyBuffer) -> list[float]:
    assert x.storage is not None
    return unpack(buffer_of(x.storage).as_buffer(), x.dtype)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many launches each bound schedule had that was run."""
    found, real = [], BoundSchedule.run

    def counted(self: BoundSchedule, nodes: list[LazyBuffer]) -> None:
        found.append(len(self._launches))
        real(self, nodes)

    monkeypatch.setattr(BoundSchedule, "run", counted)
    return found


def square(x: LazyBuffer) -> LazyBuffer:
    return x.alu(Ops.MUL, x)


def chain(size: int, steps: int) -> LazyBuffer:
    index = LazyBuffer.iota(size, dtypes.int32, "CPU")
    x = index
    for _ in range(steps):
        x = x.alu(Ops.ADD, index).gather(index)
    return x


def test_the_second_time_is_bound(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(4):
        x = lazy([1.0 + k, 2.0, 3.0])
        y = square(x)
        if k:
            monkeypatch.setattr(sys.modules["tg_runtime.execution.engine"], "schedule", None)
        realize([y])
        assert values(y) == [(1.0 + k) ** 2, 4.0, 9.0] and y.srcs == ()
    assert runs == [1, 1, 1]


def test_it_counts_as_the_long_way_does(runs: list[int]) -> None:
    counts = []
    for _ in range(3):
        GlobalCounters.reset()
        realize([chain(64, 3)])
        counts.append((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem))
    assert counts[0] == counts[1] == counts[2] and counts[0][0] > 1 and runs == [counts[0][0]] * 2


def test_steady_work_allocates_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Device["CPU"].allocator
    x, asked = lazy([1.0, 2.0]), []
    for _ in range(2):
        realize([square(x)])
    real = allocator._alloc

    def noted(nbytes: int, options: BufferOptions) -> object:
        asked.append(nbytes)
        return real(nbytes, options)

    monkeypatch.setattr(allocator, "_alloc", noted)
    for _ in range(50):
        realize([square(x)])
    assert not asked


@pytest.mark.usefixtures("collected")
def test_memory_between_kernels_is_freed_as_they_run(runs: list[int]) -> None:
    size, steps = 1 << 16, 12
    for again in (False, True):
        before = GlobalCounters.mem_used
        GlobalCounters.reset()
        out = chain(size, steps)
        realize([out])
        assert GlobalCounters.mem_peak - before <= 3 * 4 * size, again
        assert GlobalCounters.mem_used - before == 4 * size
        del out
    assert len(runs) == 1 and runs[0] > 2


def test_what_is_recorded_or_printed_goes_the_long_way(runs: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    x = lazy([1.0, 2.0])
    realize([square(x)])
    items: list[ExecItem] = []
    with capture(items):
        realize([square(x)])
    assert len(items) == 1
    with Context(DEBUG=1):
        realize([square(x)])
    assert "realized 1 steps" in capsys.readouterr().out and not runs


def test_settings_that_change_the_program_are_looked_at(runs: list[int]) -> None:
    device = Device["CPU"]
    x = lazy([1.0, 2.0])
    for _ in range(2):
        realize([square(x)])
    before = len(device.programs)
    with Context(NOOPT=1):
        for _ in range(2):
            y = square(x)
            realize([y])
            assert values(y) == [1.0, 4.0]
    assert len(device.programs) == before + 1 and len(runs) == 3


def test_what_overwrites_its_input_is_none(runs: list[int]) -> None:
    x = lazy([1.0, 2.0])
    for k in range(3):
        new = x.assign(x.alu(Ops.ADD, x.const_like(1)))
        realize([new])
        assert values(x) == [2.0 + k, 3.0 + k]
    assert not runs


def test_a_failure_names_the_users_line_and_can_be_repeated(runs: list[int]) -> None:
    allocator = Device["CPU"].allocator
    size = 123_456

    def build() -> LazyBuffer:
        x = LazyBuffer.iota(size, dtypes.int32, "CPU")
        return x.alu(Ops.ADD, x)

    realize([build()])
    assert isinstance(allocator, LRUAllocator)
    allocator.free_cache()
    limit, allocator.limit = allocator.limit, 1 << 10
    y = build()
    try:
        with pytest.raises(MemoryError) as caught:
            realize([y])
    finally:
        allocator.limit = limit
    assert runs == [1] and any(f"{__file__}:" in note for note in caught.value.__notes__)
    realize([y])
    assert values(y)[:3] == [0, 2, 4]


def test_a_kernel_that_does_not_compile_is_told_with_the_users_line(
    runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = lazy([1.0, 2.0])
    schedule([square(x).alu(Ops.EXP2)])
    device = Device["CPU"]
    monkeypatch.setattr(device, "programs", {})
    with monkeypatch.context() as broken:
        broken.setattr(device, "runtime", None)
        for _ in range(2):
            with pytest.raises(DeviceError) as caught:
                realize([square(x).alu(Ops.EXP2)])
            assert any(f"{__file__}:" in note for note in caught.value.__notes__)
    for _ in range(2):
        y = square(x).alu(Ops.EXP2)
        realize([y])
        assert values(y) == [2.0, 16.0]
    assert runs == [1, 1]


def test_it_goes_with_its_template(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    bound: dict[Any, Any] = {}
    monkeypatch.setattr(bound_schedule, "_bound", bound)
    for _ in range(3):
        realize([chain(16, 2)])
    assert len(runs) == 2 and len(bound) == 1
    template._templates.clear()
    gc.collect()
    assert not bound


def test_interpreted_devices_have_none(runs: list[int]) -> None:
    for _ in range(3):
        y = square(lazy([3.0], "NUMPY"))
        realize([y])
        assert values(y) == [9.0]
    assert not runs
