"""Ctrl-C while a device is waited for."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tg_runtime.backends.cuda.context import Context
from tg_runtime.backends.cuda.device import CUDADevice
from tg_runtime.backends.cuda.memory import CUDAAllocator
from tg_runtime.backends.cuda.program import CUDAProgram
from tg_runtime.backends.opencl import api as opencl
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.backends.opencl.program import CLCompiler, CLProgram
from tg_runtime.device.dev import DevEntry
from tg_runtime.device.waiting import wait_until
from tg_runtime.emulators.cuda_driver.driver import MockDriver
from tg_runtime.emulators.cuda_driver.work import Launch
from tg_runtime.headers.cuda import api
from tg_runtime.headers.cuda.api import Driver

_PROBLEM = CUDADevice.unavailable(DevEntry("CUDA", renderer="PTX", iface="MOCK"))
needs_mock = pytest.mark.skipif(_PROBLEM is not None, reason=_PROBLEM or "available")
needs_opencl = pytest.mark.skipif(opencl.problem() is not None, reason=f"OpenCL: {opencl.problem()}")
LAUNCHES, LONGEST_S = 40, 0.2

ADD_ONE = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; ret;
}
"""
SLOW = """__kernel void slow(__global int* out) {
  volatile int n = 0;
  for (int i = 0; i < 12000000; i++) n = n + 1;
  out[0] += n / 12000000;
}"""


@contextmanager
def interrupted(after_s: float = 0.1) -> Iterator[Callable[[], float]]:
    """Ctrl-C after a while; how long ago it was."""
    moments: list[float] = []

    def press() -> None:
        moments.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after_s, press)
    timer.start()
    try:
        yield lambda: time.perf_counter() - moments[0]
    finally:
        timer.cancel()
        timer.join()


def test_wait_until() -> None:
    """Short waits do not sleep; long ones ask about once a millisecond."""
    wait_until(lambda: True)
    begin, asked = time.perf_counter(), 0

    def ready() -> bool:
        nonlocal asked
        asked += 1
        return time.perf_counter() - begin > 0.2

    wait_until(ready)
    assert 50 < asked < 4000


def slow_mock(monkeypatch: pytest.MonkeyPatch) -> tuple[MockDriver, CUDAAllocator, CUDAProgram]:
    state = MockDriver("sm_80")
    driver = Driver(state.functions().__getitem__)
    api.start(driver)
    context = Context(driver, 0)
    run = Launch.run

    def slowly(launch: Launch) -> None:
        time.sleep(0.01)
        run(launch)
        time.sleep(0.01)

    monkeypatch.setattr(Launch, "run", slowly)
    return state, CUDAAllocator("CUDA", context), CUDAProgram(context, "add_one", ADD_ONE)


@needs_mock
@pytest.mark.parametrize("how", ["synchronize", "copyout", "wait"])
def test_cuda(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is heard within a fifth of a second; each launch is done once all the same."""
    _, allocator, program = slow_mock(monkeypatch)
    block, host = allocator.alloc(4), bytearray(4)
    allocator.copyin(block, memoryview(bytes(4)))
    for _ in range(LAUNCHES):
        program(block)
    with interrupted() as since, pytest.raises(KeyboardInterrupt):
        if how == "synchronize":
            program.context.synchronize()
        elif how == "copyout":
            allocator.copyout(memoryview(host), block)
        else:
            program(block, wait=True)
    assert since() < LONGEST_S
    monkeypatch.undo()
    allocator.copyout(memoryview(host), block)
    assert array("i", host)[0] == LAUNCHES + (how == "wait")


@needs_mock
def test_what_the_mock_raises_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception beside the driver's own failures, Ctrl-C too, comes out of the call during which it was raised."""
    state, allocator, program = slow_mock(monkeypatch)
    block = allocator.alloc(4)

    def broken(launch: Launch) -> None:
        raise ZeroDivisionError("of the mock")

    monkeypatch.setattr(Launch, "run", broken)
    program(block)
    with pytest.raises(ZeroDivisionError, match="of the mock"):
        program.context.synchronize()
    monkeypatch.undo()
    program.context.synchronize()
    assert state.launches == 1

    def pressed(launch: Launch) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)

    monkeypatch.setattr(Launch, "run", pressed)
    program(block)
    with pytest.raises(KeyboardInterrupt):
        program.context.driver.cuStreamSynchronize(program.context.stream)
    monkeypatch.undo()
    assert program.context.driver.cuStreamQuery(program.context.stream) == api.SUCCESS
    found = ctypes.c_int()
    assert program.context.driver.cuDeviceGetCount(ctypes.byref(found)) == api.SUCCESS


@needs_opencl
@pytest.mark.parametrize("how", ["synchronize", "copyout", "wait"])
@pytest.mark.parametrize("arch", ["", "buffers"])
def test_opencl(how: str, arch: str) -> None:
    """The same, of a driver that works by itself."""
    device = CLDevice("CL", DevEntry("CL", arch=arch))
    program = CLProgram(device.queue, "slow", CLCompiler(device.queue).compile(SLOW))
    block, host = device.allocator.alloc(4), bytearray(4)
    device.allocator.copyin(block, memoryview(bytes(4)))
    program(block, wait=True)  # drivers compile here
    for _ in range(LAUNCHES):
        program(block)
    with interrupted() as since, pytest.raises(KeyboardInterrupt):
        if how == "synchronize":
            device.synchronize()
        elif how == "copyout":
            device.allocator.copyout(memoryview(host), block)
        else:
            program(block, wait=True)
    assert since() < LONGEST_S
    device.allocator.copyout(memoryview(host), block)
    assert array("i", host)[0] == LAUNCHES + 1 + (how == "wait")


PRESSED = """
import os, signal
from tg_runtime.device.dev import DevEntry
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.host.interrupts import Uninterrupted
from tg_runtime.backends.opencl.program import CLCompiler, CLProgram
device = CLDevice("CL", DevEntry("CL"))
lib = CLCompiler(device.queue).compile("__kernel void one(__global int* out) { out[0] = 1; }")
CLProgram(device.queue, "one", lib)(device.allocator.alloc(4), wait=True)
for _ in range(3):
    try:
        with Uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            print("done", end=" ")
    except KeyboardInterrupt:
        print("heard", flush=True)
"""


@needs_opencl
def test_ctrl_c_beside_an_opencl_driver_that_handles_signals() -> None:
    """PoCL's LLVM has handlers of its own, good for one signal; put back when that had come, they ended the process."""
    done = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "done heard\n" * 3), done.stderr
