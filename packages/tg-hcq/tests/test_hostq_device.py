"""HOSTQ as a device of the runtime: found by name, running schedules and graphs that the CPU's compilers made."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_dtype import dtypes
from tg_hcq import DeviceFault, HCQGraph, HCQProgram
from tg_hcq.hostq import HostQueueDevice
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import (
    Buffer,
    BufferCopy,
    BufferXfer,
    CompiledRunner,
    DevEntry,
    Device,
    DeviceError,
    ExecItem,
    buffer_of,
    capture,
    profile,
    realize,
)
from tg_runtime.testing.trace import spans

PROBLEM = HostQueueDevice.unavailable(DevEntry("HOSTQ"))
needs_compiler = pytest.mark.skipif(PROBLEM is not None, reason=f"HOSTQ compiles with what the CPU has: {PROBLEM}")

Array = NDArray[np.float32]


def buffer_from(array: Array, device: str = "HOSTQ") -> Buffer:
    return Buffer(device, array.size, dtypes.float32).allocate().copyin(memoryview(array.tobytes()))


def lazy(array: Array, device: str = "HOSTQ") -> LazyBuffer:
    storage = Storage(device, array.size, dtypes.float32, buffer_from(array, device))
    return LazyBuffer.from_storage(storage, array.shape)


def read(node: LazyBuffer | Buffer) -> Array:
    if isinstance(node, LazyBuffer):
        assert node.storage is not None
        node = buffer_of(node.storage)
    return np.frombuffer(node.tobytes(), np.float32)


def test_the_registry_finds_it() -> None:
    row = next(row for row in Device.table() if row.name == "HOSTQ")
    assert "tg_hcq" in row.source and set(row.renderers) == {"LLVM", "CLANG"}


def test_importing_the_package_imports_no_device() -> None:
    code = "import sys, tg_hcq; assert not {'tg_hcq.hostq', 'numpy', 'llvmlite'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_compiler
def test_a_schedule_runs() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((33, 17), np.float32), rng.standard_normal((17, 5), np.float32)
    x, y = lazy(a), lazy(b)
    product = x.reshape((33, 17, 1)).expand((33, 17, 5)).alu(Ops.MUL, y.reshape((1, 17, 5)).expand((33, 17, 5)))
    z = product.reduce(Ops.ADD, (1,)).contiguous()
    realize([z])
    np.testing.assert_allclose(read(z).reshape(33, 5), a @ b, rtol=1e-4, atol=1e-5)


@needs_compiler
def test_copies_to_and_from_other_devices() -> None:
    values = np.arange(1000, dtype=np.float32)
    there = lazy(values, "CPU").copy_to("HOSTQ")
    twice = there.alu(Ops.ADD, there).contiguous()
    other = twice.copy_to("HOSTQ:1")
    back = other.alu(Ops.ADD, other).contiguous().copy_to("CPU")
    realize([back])
    np.testing.assert_array_equal(read(back), 4 * values)


def captured_chain(x: LazyBuffer, length: int) -> tuple[list[ExecItem], LazyBuffer]:
    items: list[ExecItem] = []
    node = x
    for step in range(length):
        with capture(items):
            node = node.alu(Ops.ADD, node.const_like(float(step))).contiguous()
            realize([node])
    return items, node


@needs_compiler
def test_a_graph_is_replayed_with_other_inputs() -> None:
    values = np.arange(64, dtype=np.float32)
    source = lazy(values)
    items, result = captured_chain(source, 10)
    assert source.storage is not None
    graph = HCQGraph(items, [buffer_of(source.storage)])
    assert graph.num_kernels == len(items) == 10
    inputs = [buffer_from(values * scale) for scale in range(5)]
    for repeat in range(100):
        scale = repeat % 5
        seconds = graph([inputs[scale]], {}, wait=repeat % 2 == 0)
        assert (seconds is not None and 0 < seconds < 5) == (repeat % 2 == 0)
        np.testing.assert_array_equal(read(result), values * scale + 45)
    with pytest.raises(ValueError, match="takes 1 buffers, got 2"):
        graph(inputs[:2], {})


@needs_compiler
def test_a_graph_of_two_devices_and_copies_between_them(tmp_path: Path) -> None:
    values = np.arange(256, dtype=np.float32)
    source = lazy(values)
    items, node = captured_chain(source, 3)
    with capture(items):
        node = node.copy_to("HOSTQ:1")
        node = node.alu(Ops.MUL, node).contiguous().copy_to("HOSTQ")
        node = node.alu(Ops.ADD, source).contiguous()
        realize([node])
    assert sum(isinstance(item.prg, BufferXfer) for item in items) == 2
    first = Device["HOSTQ"]
    assert all(item.prg.device == "HOSTQ" or first.joins(item.prg) for item in items)
    assert source.storage is not None
    graph = HCQGraph(items, [buffer_of(source.storage)])
    want = [(values * scale + 3) ** 2 + values * scale for scale in range(4)]
    inputs = [buffer_from(values * scale) for scale in range(4)]
    for repeat in range(60):
        seconds = graph([inputs[repeat % 4]], {}, wait=repeat % 5 == 0)
        assert (seconds is not None) == (repeat % 5 == 0)
        if repeat % 3 == 0:
            np.testing.assert_array_equal(read(node), want[repeat % 4])
    with profile(tmp_path / "t.json") as recorded:
        ExecItem(graph, [inputs[1]]).run()
    tracks = spans(recorded.trace())
    shown = [(key, event["name"]) for key, events in tracks.items() if key[0] != "host" for event in events]
    assert sorted(name for _, name in shown) == sorted(item.prg.name for item in items)
    assert {key for key, _ in shown} == {
        ("HOSTQ", "compute queue"), ("HOSTQ", "copy queue"), ("HOSTQ:1", "compute queue"), ("HOSTQ:1", "copy queue"),
    }  # fmt: skip


@needs_compiler
def test_graphs_refuse_what_they_cannot_run() -> None:
    values = np.arange(64, dtype=np.float32)
    items, _ = captured_chain(lazy(values), 1)
    with pytest.raises(DeviceError, match="no kernels"):
        HCQGraph([])
    foreign, _ = captured_chain(lazy(values, "CPU"), 1)
    with pytest.raises(DeviceError, match="is no kernel of a queue-driven device"):
        HCQGraph(foreign)
    strange = [ExecItem(BufferCopy(256, "CPU", "HOSTQ"), [None, None])]
    with pytest.raises(DeviceError, match="is no kernel of a queue-driven device"):
        HCQGraph([*items, *strange])
    strange = [ExecItem(BufferXfer(256, "CPU", "HOSTQ"), [None, None])]
    with pytest.raises(DeviceError, match="cannot be part of a graph on HOSTQ"):
        HCQGraph([*items, *strange])
    assert not Device["HOSTQ"].joins(strange[0].prg)
    with pytest.raises(DeviceError, match="misses a buffer"):
        HCQGraph([ExecItem(items[0].prg, [None, *items[0].bufs[1:]])])


@needs_compiler
def test_kernels_run_behind_the_callers_back() -> None:
    device = Device["HOSTQ"]
    assert isinstance(device, HostQueueDevice)
    items, _ = captured_chain(lazy(np.ones(64, np.float32)), 1)
    runner = items[0].prg
    assert isinstance(runner, CompiledRunner) and isinstance(runner.program, HCQProgram)
    gate = device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1)
    before = device.timeline.point()
    items[0].run()  # returns though the device is held
    assert not device.timeline.reached(before)
    gate.value = 1
    device.synchronize()
    assert device.timeline.reached(device.timeline.point())


@needs_compiler
def test_a_user_sees_the_fault_and_may_reset() -> None:
    device = Device["HOSTQ:2"]
    assert isinstance(device, HostQueueDevice)
    buffer = buffer_from(np.ones(4, np.float32), "HOSTQ:2")
    with device.submission() as queue:
        queue.write(0x1000, [1])
    with pytest.raises(DeviceFault, match=r"HOSTQ:2 compute queue: fault .* WRITE: 4 bytes at 0x1000 are not mapped"):
        buffer.tobytes()
    with pytest.raises(DeviceFault):
        buffer.copyin(memoryview(bytes(16)))
    device.reset()
    np.testing.assert_array_equal(read(buffer), np.ones(4))


def test_leaving_with_work_queued_ends_the_process() -> None:
    code = (
        "from tg_hcq.hostq import HostQueue, HostQueueDevice\n"
        "device = HostQueueDevice()\n"
        "HostQueue().wait(device.new_signal(), 1).submit(device)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_a_dropped_device_stops_its_threads() -> None:
    before = threading.active_count()
    device = HostQueueDevice("HOSTQ:8")
    with device.submission():
        pass
    device.synchronize()
    assert threading.active_count() == before + 1
    del device
    gc.collect()
    for _ in range(200):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_loses_the_device() -> None:
    """A child is told so by whatever it asks of the parent's device, and may open one of its own."""
    name = "HOSTQ:7"
    values = np.arange(64, dtype=np.float32)
    there = lazy(values, name)
    twice = there.alu(Ops.ADD, there).contiguous()
    realize([twice])
    device = Device[name]
    assert isinstance(device, HostQueueDevice)

    def answer(work: Callable[[], object]) -> str:
        try:
            work()
        except DeviceError as error:
            return str(error)
        return "nothing"

    def launch() -> None:
        realize([twice.alu(Ops.MUL, twice).contiguous()])

    def all_answers() -> str:
        asked: list[Callable[[], object]] = [
            lambda: read(twice), lambda: lazy(values, name), launch, device.synchronize, device.reset,
            lambda: device.allocator.alloc(1 << 20),
        ]  # fmt: skip
        silent = [number for number, work in enumerate(asked) if "before this process was forked" not in answer(work)]
        gc.collect()
        device.close()
        own = lazy(values, "HOSTQ:8")
        double = own.alu(Ops.ADD, own).contiguous()
        realize([double])
        return f"{silent} {np.array_equal(read(double), 2 * values)}"

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a wait that has no end ends the child
        try:
            os.write(writing, all_answers().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert told.read() == "[] True"
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    launch()
    np.testing.assert_array_equal(read(twice), 2 * values)


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_ends() -> None:
    """The child's interpreter ends in the ordinary way, with the parent's device still known to it."""
    code = """if True:
        import os
        from tg_hcq.hostq import HostQueueDevice
        device = HostQueueDevice()
        block = device.allocator.alloc(4096)
        device.allocator.copyin(block, memoryview(bytes(4096)))
        device.synchronize()
        child = os.fork()
        if child:
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
