"""Graphs of OpenCL kernels: what is queued, what is recorded, and what a lost device leaves."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tg_dtype import dtypes
from tg_lazy import Context, Ops, ast
from tg_runtime import Buffer, DevEntry, Device, DeviceError, ExecItem, get_runner, profile
from tg_runtime.backends.opencl import api
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.backends.opencl.graph import CLGraph
from tg_runtime.backends.opencl.program import tell_times
from tg_runtime.testing.kernels import buffer_with, kernel, unpack
from tg_shape import ShapeTracker, Variable

_PROBLEM = api.problem()
pytestmark = pytest.mark.skipif(_PROBLEM is not None, reason=f"OpenCL: {_PROBLEM}")
i32 = dtypes.int32


@pytest.fixture(params=["CL", "CL::buffers"])
def cl(request: pytest.FixtureRequest) -> Iterator[CLDevice]:
    """The device in force, with shared memory and with buffers."""
    with Context(DEV=request.param):
        found = Device["CL"]
        assert isinstance(found, CLDevice)
        yield found
        found.queue.lost = ""


def ints(*values: int) -> Buffer:
    return buffer_with("CL", list(values), i32)


def read(buffer: Buffer) -> list[int]:
    return [int(v) for v in unpack(memoryview(buffer.tobytes()), i32)]


def add(out: Buffer, a: Buffer, b: Buffer) -> ExecItem:
    st = ShapeTracker.from_shape((out.size,))
    value = ast.alu(Ops.ADD, ast.load(1, i32, st), ast.load(2, i32, st))
    return ExecItem(get_runner(Device["CL"], kernel([(value, out.size)], [(i32, out.size)] * 2)), [out, a, b])


def test_a_sequence_that_comes_again_is_recorded(cl: CLDevice) -> None:
    x, one, out = ints(1, 2, 3), ints(1, 1, 1), ints(0, 0, 0)
    graph = CLGraph([add(out, x, one), add(out, out, one)], [x])
    other = ints(10, 20, 30)
    for turn in range(6):
        source = (x, other)[turn % 2]
        graph([source], {})
        assert read(out) == [v + 2 for v in read(source)]
    records = [record for record in graph._records.values() if record is not None]
    assert len(records) == (2 if cl.physical.records else 0)
    for _ in range(10):  # sources that never come again
        graph([ints(5, 5, 5)], {})
        assert read(out) == [7, 7, 7]
    assert len(graph._records) <= 4


def test_memory_that_was_given_back_is_no_longer_recorded(cl: CLDevice) -> None:
    """A block that comes after one that was freed may have its address, or its handle, and other content."""
    one, out = ints(1, 1, 1), ints(0, 0, 0)
    first = ints(0, 0, 0)
    graph = CLGraph([add(out, first, one), add(out, out, one)], [first])
    with Context(LRU=0):
        for value in range(20):
            source = ints(value, value, value)
            for _ in range(3):
                graph([source], {})
                assert read(out) == [value + 2] * 3
            del source
            cl.allocator.free_cache()  # type: ignore[attr-defined]


def test_parts_that_begin_anywhere(cl: CLDevice) -> None:
    """Where no sub-buffer may begin, the kernels are queued one by one."""
    whole, out = ints(*range(64)), ints(0, 0, 0)
    low, high = whole.view(3, i32, 4), whole.view(3, i32, 20)
    graph = CLGraph([add(out, low, high), add(out, out, high)], [whole])
    for first in (0, 100):
        graph([ints(*range(first, first + 64))], {})
        assert read(out) == [3 * first + 3 * i + 11 for i in range(3)]
    if cl.queue.alignment > 4 and not cl.allocator.shared:  # type: ignore[attr-defined]
        with pytest.raises(DeviceError, match="begins where no sub-buffer may"):
            CLGraph([add(out, low, high)])


def test_parts_that_begin_anywhere_are_written(cl: CLDevice) -> None:
    """Beside buffers that begin where they may."""
    whole, more = ints(*range(64)), ints(0, 0, 0)
    graph = CLGraph([add(whole.view(3, i32, 4), more, whole.view(3, i32, 20))], [whole, more])
    for first in (0, 100, 7):
        given, added = ints(*range(first, first + 64)), ints(5, 6, 7)
        graph([given, added], {})
        wanted = list(range(first, first + 64))
        wanted[1:4] = [first + 10, first + 12, first + 14]
        assert read(given) == wanted


def test_symbolic_sizes(cl: CLDevice) -> None:
    n = Variable("n", 1, 100)
    st = ShapeTracker.from_shape((n,))
    value = ast.alu(Ops.ADD, ast.load(1, i32, st), ast.symbol(n, i32, (n,)))
    sink = kernel([(value, n)], [(i32, 100)], [100])
    source, out = ints(*range(100)), ints(*[0] * 100)
    graph = CLGraph([ExecItem(get_runner(cl, sink), [out, source])])
    for number in (1, 100, 37, 37, 37):
        graph([], {n: number})
        assert read(out)[:number] == [i + number for i in range(number)]


def test_a_profile_shows_each_kernel(cl: CLDevice, tmp_path: os.PathLike[str]) -> None:
    x, out = ints(1, 2, 3), ints(0, 0, 0)
    item = add(out, x, x)
    graph = CLGraph([item] * 3, [x])
    with profile(os.path.join(tmp_path, "trace.json")) as recorded:
        ExecItem(graph, [x]).run()
        cl.synchronize()
    found = [event for event in recorded.events if event.category == "device"]
    assert [event.name for event in found] == [item.prg.name] * 3
    assert all(event.end >= event.start for event in found)


def test_what_cannot_be_part(cl: CLDevice) -> None:
    out, x = Buffer("NUMPY", 4, i32), Buffer("NUMPY", 4, i32)
    sink = kernel([(ast.load(1, i32, ShapeTracker.from_shape((4,))), 4)], [(i32, 4)])
    with pytest.raises(DeviceError, match="no kernel of an OpenCL device"):
        CLGraph([ExecItem(get_runner(Device["NUMPY"], sink), [out, x])])
    item = add(ints(0, 0), ints(1, 1), ints(2, 2))
    item.bufs[0] = None
    with pytest.raises(DeviceError, match="misses a buffer"):
        CLGraph([item])
    with pytest.raises(ValueError, match="takes 1 buffers, got 0"):
        CLGraph([], [x])([], {})


def test_a_device_that_is_lost_in_the_middle(cl: CLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel and the reason are told; whoever asks later is told the same, and nothing hangs."""
    x, out = ints(1, 2, 3), ints(0, 0, 0)
    graph = CLGraph([add(out, x, x)] * 5, [x])
    real, calls = api.library().clEnqueueNDRangeKernel, [0]

    def failing(*arguments: object) -> int:
        calls[0] += 1
        return -2 if calls[0] == 3 else int(real(*arguments))

    with monkeypatch.context() as patched:
        patched.setattr(api.library(), "clEnqueueNDRangeKernel", failing)
        with pytest.raises(DeviceError, match=r"was lost: .*graph of 5 kernels: launch of .*DEVICE_NOT_AVAILABLE"):
            graph([x], {})
    with pytest.raises(DeviceError, match="the device .* was lost"):
        graph([x], {})
    with pytest.raises(DeviceError, match="the device .* was lost"):
        cl.synchronize()
    with pytest.raises(DeviceError, match="the device .* was lost"):
        out.tobytes()
    with pytest.raises(DeviceError, match="the device .* was lost"):
        x.copyin(memoryview(bytes(12)))
    cl.queue.lost = ""  # it was not really
    assert read(x) == [1, 2, 3]


def test_work_that_ends_badly_loses_the_device(cl: CLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is refused for want of resources does not: the next may ask for less."""
    x, out = ints(1, 2, 3), ints(0, 0, 0)
    graph = CLGraph([add(out, x, x)] * 2, [x])
    with monkeypatch.context() as patched:
        patched.setattr(api.library(), "clEnqueueNDRangeKernel", lambda *arguments: -5)
        with pytest.raises(DeviceError, match=r"launch of .*OUT_OF_RESOURCES"):
            graph([x], {})
    graph([x], {})
    assert read(out) == [2, 4, 6]
    with monkeypatch.context() as patched:
        patched.setattr(api.library(), "clFinish", lambda *arguments: -5)
        with pytest.raises(DeviceError, match=r"was lost: .*waiting for the queue: OUT_OF_RESOURCES"):
            cl.synchronize()
    with pytest.raises(DeviceError, match="was lost"):
        graph([x], {})


def test_whoever_waits_for_a_kernel_is_told_that_it_ended_badly(
    cl: CLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, out = ints(1, 2, 3), ints(0, 0, 0)
    item, graph = add(out, x, x), CLGraph([add(out, x, x)] * 2, [x])
    waits: dict[str, Callable[[], float | None]] = {
        f"kernel {item.prg.name}": lambda: item.run(wait=True),
        "graph of 2 kernels: its first kernel": lambda: graph([x], {}, wait=True),
    }
    for what, run in waits.items():
        with monkeypatch.context() as patched:
            patched.setattr(api.library(), "clWaitForEvents", lambda *arguments: -5)
            with pytest.raises(DeviceError, match=rf"was lost: .*{what}: waiting for its end: OUT_OF_RESOURCES"):
                run()
        with pytest.raises(DeviceError, match="the device .* was lost"):
            run()
        cl.queue.lost = ""  # it was not really
        assert run() is not None


def test_the_end_of_what_failed_in_the_driver() -> None:
    """A marker fails that waits for an event that does; no time is told of it."""
    cl = CLDevice("CL", DevEntry("CL"))
    driver, status, event = api.library(), ctypes.c_int32(), ctypes.c_void_p()
    driver.clCreateUserEvent.restype, driver.clCreateUserEvent.argtypes = ctypes.c_void_p, (ctypes.c_void_p,) * 2
    driver.clSetUserEventStatus.argtypes = (ctypes.c_void_p, ctypes.c_int32)
    gate = ctypes.c_void_p(driver.clCreateUserEvent(cl.queue.context, ctypes.byref(status)))
    api.check(status.value, "an event of the host's")
    marked = driver.clEnqueueMarkerWithWaitList(cl.queue.handle, 1, ctypes.byref(gate), ctypes.byref(event))
    api.check(marked, "a marker")
    api.check(driver.clSetUserEventStatus(gate, -5), "the failure of an event")
    driver.clReleaseEvent(gate)
    with pytest.raises(DeviceError, match="the marker: waiting for its end: EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"):
        tell_times(cl.queue, event, "the marker")


def test_memory_of_a_lost_device_is_let_go(cl: CLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it in use or idle: nothing waits for the device, nothing of the driver is called, and nobody gets an error."""
    x, idle, out = ints(1, 2, 3), ints(4, 5, 6), ints(0, 0, 0)
    cl.synchronize()
    add(out, x, x).run()
    assert idle.opaque.idle(cl.queue) and not out.opaque.idle(cl.queue)
    cl.queue.lost = "the device was pulled out"
    called: list[str] = []
    with monkeypatch.context() as patched, Context(LRU=0):
        for name in ("clSVMFree", "clReleaseMemObject", "clFinish"):
            patched.setattr(api.library(), name, lambda *arguments, name=name: called.append(name))
        for buffer in (x, idle, out):
            buffer.release()
    assert not called
    cl.queue.lost = ""
    assert read(ints(7)) == [7]


FORKED = """
import os
from tg_dtype import dtypes
from tg_runtime import Buffer, DeviceError
b = Buffer("CL", 4, dtypes.int32).allocate()
b.copyin(memoryview(bytes(16)))
child = os.fork()
if child == 0:
    try:
        b.copyin(memoryview(bytes(16)))
        b.tobytes()
    except DeviceError as error:
        print(error, flush=True)
        del b
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(b.tobytes() == bytes(16))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("setting", ["CL", "CL::buffers"])
def test_a_fork_loses_the_device(setting: str) -> None:
    """It is told in the child, which does not touch the driver; the parent goes on."""
    environment = {**os.environ, "DEV": setting}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    lines = done.stdout.splitlines()
    assert "was opened before this process was forked, and is lost in the child" in lines[0], done.stderr
    assert lines[-1] == "True"
