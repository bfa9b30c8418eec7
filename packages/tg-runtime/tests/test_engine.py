"""The engine: lowering, running, committing; counters and print; captures; what an exception leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, Storage, schedule
from tg_runtime import (
    Buffer,
    BufferCopy,
    BufferXfer,
    CustomOp,
    Device,
    EmptyOp,
    ExecItem,
    GlobalCounters,
    InterpretedRunner,
    Runner,
    ViewOp,
    buffer_of,
    capture,
    capturing,
    lower_schedule,
    realize,
    run_schedule,
    update_stats,
)
from tg_runtime.host.interrupts import Uninterrupted
from tg_runtime.testing.kernels import buffer_with, unpack
from tg_shape import Variable


@pytest.fixture(params=["CPU", "NUMPY"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEV=""):
        yield request.param


def lazy(device: str, values: list[float]) -> LazyBuffer:
    buffer = buffer_with(device, list(values), dtypes.float32)
    return LazyBuffer.from_storage(Storage(device, len(values), dtypes.float32, buffer), (len(values),))


def values(x: LazyBuffer) -> list[float]:
    assert x.storage is not None
    return unpack(buffer_of(x.storage).as_buffer(), x.dtype)


def test_realize(device: str) -> None:
    x = lazy(device, [1.0, 2.0, 3.0])
    y = x.alu(Ops.MUL, x)
    total = y.reduce(Ops.ADD, (0,))
    realize([y, total])
    assert values(y) == [1.0, 4.0, 9.0]
    assert values(total) == [14.0]
    assert y.is_realized
    count = GlobalCounters.kernel_count
    realize([y, total])
    assert GlobalCounters.kernel_count == count


def test_lower_then_run(device: str) -> None:
    y = lazy(device, [1.0, 2.0]).alu(Ops.ADD, lazy(device, [10.0, 20.0]))
    items, var_vals = schedule([y])
    (item,) = lower_schedule(items)
    assert not y.is_realized
    item.run(var_vals)
    items[0].commit()
    assert values(y) == [11.0, 22.0]


def test_run_waits_and_measures(device: str) -> None:
    (item,) = lower_schedule(schedule([lazy(device, [1.0]).alu(Ops.ADD, lazy(device, [1.0]))])[0])
    assert item.run() is None
    seconds = item.run(wait=True)
    assert seconds is not None
    assert 0 < seconds < 5


def test_missing_buffer() -> None:
    (item,) = lower_schedule(schedule([lazy("CPU", [1.0]).alu(Ops.ADD, lazy("CPU", [1.0]))])[0])
    item.bufs[1] = None
    with pytest.raises(RuntimeError, match="buffer 1 was not put in"):
        item.run()


@pytest.mark.usefixtures("collected")
def test_counters(device: str) -> None:
    x = lazy(device, [float(i) for i in range(8)])
    GlobalCounters.reset()
    realize([x.alu(Ops.ADD, x)])
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_ops == 8
    assert GlobalCounters.global_mem == 64
    assert GlobalCounters.time_sum_s == 0
    held = GlobalCounters.mem_used
    GlobalCounters.reset()
    assert GlobalCounters.kernel_count == GlobalCounters.global_ops == GlobalCounters.global_mem == 0
    assert GlobalCounters.mem_used == held


def test_compilation_is_counted_once(device: str) -> None:
    def graph() -> LazyBuffer:
        x = lazy(device, [float(i) for i in range(23)])
        return x.alu(Ops.SUB, x.alu(Ops.MUL, x))

    GlobalCounters.reset()
    realize([graph()])
    realize([graph()])
    assert GlobalCounters.kernel_count == 2
    assert GlobalCounters.compile_count == 1
    assert GlobalCounters.compile_time_s > 0


def test_update_stats_with_variables(capsys: pytest.CaptureFixture[str]) -> None:
    n = Variable("n", 1, 100)
    GlobalCounters.reset()
    update_stats("k", n * 2, n * 4, {n: 10}, 0.5, 3, num_kernels=2)
    assert (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem) == (2, 20, 40)
    assert GlobalCounters.time_sum_s == 0.5
    assert capsys.readouterr().out == ""
    with Context(DEBUG=2):
        update_stats("mykernel", 10**9, 10**6, None, 1e-3, 3, jit=True, lra={"global": (4, 1, 1)}, device="CPU")
    line = capsys.readouterr().out
    for part in ("jit", "mykernel", "CPU", "3 bufs", "1000.0 us", "1.00 TFLOP/s", "1.00 GB/s", "global=(4, 1, 1)"):
        assert part in line


def test_memory_is_told_in_binary_units(capsys: pytest.CaptureFixture[str]) -> None:
    """Of half a TiB, 1025 in place of 1024 would be seen."""
    held = Buffer("NULL", 1 << 39, dtypes.uint8).allocate()
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    x = lazy("NUMPY", [1.0] * 7)
    with Context(DEBUG=1):
        realize([x.alu(Ops.ADD, x)])
    told = re.findall(r"; (\S+) (\S+) held, most (\S+) (\S+)$", capsys.readouterr().out.strip())
    with Context(DEBUG=2):
        update_stats("mykernel", 1, 1, None, 1e-3, 1)
    told += re.findall(r"mem +(\S+) (\S+) ", capsys.readouterr().out)
    (used, unit, most, its_unit), (again, third_unit) = told
    assert {unit, its_unit, third_unit} == {"GiB"}
    for number in (used, most, again):
        assert abs(float(number) - before / 2**30) < 0.02
    assert held.is_allocated


def test_debug_levels(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        1: ["realized 1 steps, 1 new"],
        2: ["us", "FLOP/s", "B/s", "new"],
        3: ["ScheduleItem", "actions:"],
        4: ["define void @"],
        5: ["load", "store"],
        6: ["UOp"],
        7: [],
    }
    if not _has_llvm():
        pytest.skip("llvmlite is not installed")
    seen = 0
    with Context(DEV="CPU:LLVM"):
        for level, parts in expected.items():
            Device["CPU"].programs.clear()
            x = lazy("CPU", [1.0] * (30 + level))
            with Context(DEBUG=level):
                realize([x.alu(Ops.ADD, x)])
            out = capsys.readouterr().out
            for part in parts:
                assert part in out, f"DEBUG={level}"
            if level != 2:
                assert len(out) > seen, f"DEBUG={level} prints less than {level - 1}"
            seen = len(out)
    x = lazy("CPU", [1.0] * 29)
    realize([x.alu(Ops.ADD, x)])
    assert capsys.readouterr().out == ""


def _has_llvm() -> bool:
    from tg_runtime.compilers import llvm

    return llvm.available()


def test_copy_between_devices() -> None:
    x = lazy("CPU", [1.0, 2.0])
    y = x.copy_to("NUMPY")
    (item,) = lower_schedule(schedule([y])[0])
    assert type(item.prg) is BufferCopy
    realize([y])
    assert values(y) == [1.0, 2.0]
    other = y.copy_to("CPU:1")
    other = other.alu(Ops.ADD, other).copy_to("CPU")
    items = list(lower_schedule(schedule([other])[0]))
    assert type(items[-1].prg) is BufferXfer
    realize([other])
    assert values(other) == [2.0, 4.0]


def test_copy_of_another_size_is_refused() -> None:
    copy = BufferCopy(4, "CPU", "NUMPY")
    with pytest.raises(ValueError, match="sizes differ"):
        copy([Buffer("CPU", 1, dtypes.float32), Buffer("NUMPY", 2, dtypes.float32)], {})


def test_xfer_falls_back() -> None:
    source = buffer_with("NULL", [0.0], dtypes.float32)
    dest = buffer_with("CPU", [5.0], dtypes.float32)
    BufferXfer(4, "CPU", "NULL")([dest, source], {})
    assert unpack(dest.as_buffer(), dtypes.float32) == [0.0]
    BufferCopy(4, "NULL", "NULL")([Buffer("NULL", 1, dtypes.float32), source], {}, wait=True)


def test_view_empty_and_custom(device: str) -> None:
    base = buffer_with(device, [1.0, 2.0, 3.0], dtypes.float32)
    view = Buffer(device, 2, dtypes.float32)
    assert ViewOp(4, device).exec([view, base]) == 0.0
    assert unpack(view.as_buffer(), dtypes.float32) == [2.0, 3.0]
    empty = Buffer(device, 2, dtypes.float32)
    EmptyOp(device)([empty], {})
    assert empty.is_allocated

    def double(out: Buffer, x: Buffer) -> None:
        out.copyin(memoryview(bytes(x.as_buffer()) * 2))

    custom = CustomOp(double, device)
    assert "double" in repr(custom)
    out = Buffer(device, 4, dtypes.float32)
    assert custom.exec([out, view]) is not None
    assert unpack(out.as_buffer(), dtypes.float32) == [2.0, 3.0, 2.0, 3.0]


def test_interpreted_runner() -> None:
    (item,) = lower_schedule(schedule([lazy("NUMPY", [1.0]).alu(Ops.ADD, lazy("NUMPY", [1.0]))])[0])
    assert isinstance(item.prg, InterpretedRunner)
    assert not item.prg.in_place
    x = lazy("NUMPY", [1.0])
    (item,) = lower_schedule(schedule([x.assign(x.alu(Ops.ADD, x))])[0])
    assert item.prg.in_place


def test_capture(device: str) -> None:
    x = lazy(device, [1.0, 2.0])
    captured: list[ExecItem] = []
    assert not capturing()
    with capture(captured):
        assert capturing()
        realize([x.alu(Ops.ADD, x)])
        with pytest.raises(RuntimeError, match="captures do not nest"), capture([]):
            pass
        other = threading.Thread(target=realize, args=([lazy(device, [1.0]).alu(Ops.ADD, lazy(device, [1.0]))],))
        other.start()
        other.join()
    assert not capturing()
    assert len(captured) == 1
    assert captured[0].bufs[0] is not None
    captured[0].bufs[0].copyin(memoryview(bytes(8)))
    captured[0].run()
    assert unpack(captured[0].bufs[0].as_buffer(), dtypes.float32) == [2.0, 4.0]


class Failing(Runner):
    """Fails the first time, then does what another runner does."""

    def __init__(self, other: Runner, error: BaseException) -> None:
        super().__init__("failing", other.device)
        self.other, self.error = other, error
        self.failed = False

    def __call__(self, bufs: object, var_vals: object, wait: bool = False) -> float | None:
        if not self.failed:
            self.failed = True
            raise self.error
        return self.other(bufs, var_vals, wait)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [ValueError("in the middle"), KeyboardInterrupt()])
def test_exception_in_the_middle(device: str, error: BaseException) -> None:
    """What was done stays done, and the rest can be realised again."""
    x = lazy(device, [1.0, 2.0])
    index = LazyBuffer.iota(2, dtypes.int32, device)
    first = x.alu(Ops.ADD, x)
    second = first.alu(Ops.MUL, first).gather(index)  # a gather wants its table in memory
    third = second.gather(index).alu(Ops.SUB, first)
    programs = Device[device].programs
    items, _ = schedule([first, second, third])
    assert len(items) == 3
    runners = [item.prg for item in lower_schedule(items)]
    key, runner = next((k, v) for k, v in programs.items() if v is runners[1])
    programs[key] = Failing(runner, error)
    try:
        with pytest.raises(type(error)):
            realize([first, second, third])
        assert first.is_realized
        assert not second.is_realized
        assert not third.is_realized
        before = GlobalCounters.kernel_count
        realize([first, second, third])
        assert GlobalCounters.kernel_count == before + 2
    finally:
        programs[key] = runner
    assert [values(v) for v in (first, second, third)] == [[2.0, 4.0], [4.0, 16.0], [2.0, 12.0]]


def test_in_place_step_is_not_interrupted() -> None:
    """SIGINT during a step that overwrites its input is delivered after the step is marked done."""
    with pytest.raises(KeyboardInterrupt):
        with Uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done = True
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupted_assign_is_applied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = lazy("CPU", [1.0, 2.0])
    y = x.assign(x.alu(Ops.ADD, x))
    run = ExecItem.run

    def interrupted(self: ExecItem, *args: object, **kwargs: object) -> float | None:
        result = run(self, *args, **kwargs)  # type: ignore[arg-type]
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(ExecItem, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        realize([y])
    monkeypatch.undo()
    realize([y])
    assert values(y) == [2.0, 4.0]


def test_threads_realise_at_once(device: str) -> None:
    shared = lazy(device, [1.0, 2.0, 3.0]).alu(Ops.ADD, lazy(device, [1.0, 1.0, 1.0]))
    outputs: list[LazyBuffer] = []
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(20):
                mine = shared.alu(Ops.MUL, lazy(device, [float(number + i)] * 3))
                realize([mine, shared])
                assert values(mine) == [(number + i) * v for v in (2.0, 3.0, 4.0)]
                outputs.append(mine)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(outputs) == 80
    assert values(shared) == [2.0, 3.0, 4.0]


def test_memory_between_kernels_is_freed_as_they_run() -> None:
    size, steps = 1 << 18, 12
    index = LazyBuffer.iota(size, dtypes.int32, "CPU")
    x = index
    for _ in range(steps):
        x = x.alu(Ops.ADD, index).gather(index)
    allocator = Device["CPU"].allocator
    before, peak = allocator.used, 0
    run = ExecItem.run

    def watched(self: ExecItem, *args: object, **kwargs: object) -> float | None:
        nonlocal peak
        result = run(self, *args, **kwargs)  # type: ignore[arg-type]
        peak = max(peak, allocator.used - before)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExecItem, "run", watched)
        realize([x])
    assert peak <= 3 * 4 * size
    assert allocator.used - before == 4 * size


def test_out_of_memory_names_the_users_line() -> None:
    allocator = Device["CPU"].allocator
    x = LazyBuffer.iota(1 << 20, dtypes.int32, "CPU")
    y = x.alu(Ops.ADD, x)
    limit, allocator.limit = allocator.limit, 1 << 10
    try:
        with pytest.raises(MemoryError, match=r"CPU: out of memory: 4\.00 MiB asked") as caught:
            realize([y])
    finally:
        allocator.limit = limit
    assert any(f"{__file__}:" in note for note in caught.value.__notes__)
    realize([y])
    assert y.is_realized


def test_bad_item_is_refused() -> None:
    from tg_lazy import LazyOp, ScheduleItem
    from tg_lazy.graph.origin import Origin

    item = ScheduleItem(
        LazyOp(Ops.ASSIGN, dtypes.float32, (1,)), (Storage("CPU", 1, dtypes.float32),), "", Origin(("f.py", 3))
    )
    with pytest.raises(ValueError, match="ends in SINK, COPY"):
        run_schedule([item])


def test_memory_only_device_runs_nothing() -> None:
    from tg_lazy import ast
    from tg_runtime import DeviceError, get_runner
    from tg_runtime.testing.kernels import kernel

    sink = kernel([(ast.const(1.0, dtypes.float32, (2,)), 2)], [])
    with pytest.raises(DeviceError, match="holds memory only"):
        get_runner(Device["DISK:/nonexistent/file"], sink)


def test_forked_child_realises() -> None:
    code = """
import os, threading, time
from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_runtime import realize, buffer_of
def once(n):
    x = LazyBuffer.iota(n, dtypes.int32, "CPU")
    y = x.alu(Ops.ADD, x)
    realize([y])
    return buffer_of(y.storage).as_buffer().cast("i").tolist() == [2 * i for i in range(n)]
assert once(50)
stop = threading.Event()
def spin():
    n = 50
    while not stop.is_set():
        once(n)
thread = threading.Thread(target=spin)
thread.start()
for i in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0 if once(50) and once(60 + i) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
thread.join()
print("done")
"""
    # Python 3.12 and later warn of a fork with threads, which is what this is about.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
