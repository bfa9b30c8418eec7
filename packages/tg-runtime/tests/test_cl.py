"""The CL device on whatever OpenCL driver the loader finds first."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_dtype import DType, dtypes
from tg_runtime import Buffer, CompileError, DevEntry, Device, DeviceError, DeviceUnavailable, OutOfMemory
from tg_runtime.backends.opencl import api
from tg_runtime.backends.opencl.allocator import CLAllocator
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.backends.opencl.memory import BufferMemory
from tg_runtime.backends.opencl.program import CLCompiler, CLProgram
from tg_runtime.device.allocator import BufferOptions
from tg_runtime.testing import DeviceConformance

_PROBLEM = api.problem()
needs_opencl = pytest.mark.skipif(_PROBLEM is not None, reason=f"OpenCL: {_PROBLEM}")
# Drivers compile slowly: kinds of dtypes, not all of each kind.
KINDS = (
    dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.uint64, dtypes.float16, dtypes.bfloat16,
    dtypes.float32, dtypes.float64,
)  # fmt: skip
SCALARS = {"alu_bool", "alu_int16", "alu_int32", "alu_uint64", "alu_float32", "cast_int8", "cast_float32"}
ADD_N = """__kernel void add_n(__global int* out, __global const int* a, const int n, const int m) {
  int i = get_global_id(0); out[i] = a[i] + n * 10 + m;
}"""


@functools.cache
def opened(arch: str = "") -> CLDevice:
    return CLDevice("CL", DevEntry("CL", arch=arch))


@pytest.fixture(params=["", "buffers"], ids=["shared", "buffers"])
def cl(request: pytest.FixtureRequest) -> CLDevice:
    """The device with memory shared with the host (where it has that), then with buffers of its own."""
    return opened(request.param)


def load(device: CLDevice, name: str, source: str) -> CLProgram:
    return CLProgram(device.queue, name, CLCompiler(device.queue).compile(source))


def run(device: CLDevice, case: Case) -> list[bytearray]:
    assert device.renderer is not None
    program = load(device, case.name, device.renderer.render(case.name, case.uops))
    host = case.buffers()
    memory = [device.allocator.alloc(len(raw)) for raw in host]
    for block, raw in zip(memory, host, strict=True):
        device.allocator.copyin(block, memoryview(raw))
    program(*memory, vals=case.vals)
    for block, raw in zip(memory, host, strict=True):
        device.allocator.copyout(memoryview(raw), block)
        device.allocator.free(block, len(raw))
    return host


@functools.cache
def device_cases() -> dict[str, Case]:
    renderer = opened().renderer
    assert renderer is not None
    return {case.name: case for case in cases(renderer, lanes=4, relaxed=1e-6)}


def chosen(name: str) -> bool:
    return not name.startswith(("alu_", "cast_")) or name.endswith("x4") or name in SCALARS


# Collecting tests must not start drivers: the names are those of a device with float64 and without float16.
@pytest.mark.drawn(20)
@needs_opencl
@pytest.mark.parametrize("name", [case.name for case in cases(OpenCLRenderer()) if chosen(case.name)])
def test_renderer_conforms(name: str) -> None:
    device_cases()[name].check(run(opened(), device_cases()[name]))


@needs_opencl
def test_float16_where_the_device_has_it() -> None:
    names = [name for name in device_cases() if "float16" in name]
    assert bool(names) == opened().physical.half
    for name in names:
        device_cases()[name].check(run(opened(), device_cases()[name]))


@pytest.mark.alike
@pytest.mark.usefixtures("some_dtypes")
@needs_opencl
class TestCL(DeviceConformance):
    """As it comes."""

    device = "CL"
    dtypes: tuple[DType, ...] = KINDS

    def test_reductions(self) -> None:
        """Those of some kinds: a driver works for seconds on each kernel of a work-group."""
        some = (dtypes.bool, dtypes.int32, dtypes.bfloat16, dtypes.float32)
        self.dtypes = tuple(dtype for dtype in self.dtypes if dtype in some)
        super().test_reductions()

    @pytest.mark.slow
    def test_reductions_of_every_kind(self) -> None:
        self.dtypes = KINDS
        super().test_reductions()

    def test_replay_of_a_recording_that_is_not_ready(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """PoCL refuses now and then to queue a recording whose last run is complete: the launches come one by one."""
        if not opened().physical.records:
            return
        functions = api.command_buffers(opened().physical.platform_handle)
        real, refused = functions.clEnqueueCommandBufferKHR, itertools.count()
        monkeypatch.setattr(
            functions,
            "clEnqueueCommandBufferKHR",
            lambda *arguments: -59 if next(refused) % 3 == 0 else real(*arguments),
            raising=False,
        )
        monkeypatch.setattr(api, "command_buffers", lambda platform: functions)
        self.test_replay_without_waiting()
        assert next(refused) > 100


@pytest.mark.alike
@needs_opencl
class TestCLBuffers(DeviceConformance):
    """With buffers of its own; arithmetic is the same as above."""

    device = "CL"
    dev = "CL::buffers"
    dtypes = (dtypes.int32, dtypes.float32)


@needs_opencl
def test_launch(cl: CLDevice) -> None:
    """Buffers, then the variables in order; with ``wait``, the time on the device."""
    allocator = cl.allocator
    out, a = allocator.alloc(64), allocator.alloc(64)
    allocator.copyin(a, memoryview(b"".join(i.to_bytes(4, "little") for i in range(16))))
    program = load(cl, "add_n", ADD_N)
    assert program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(3, 4)) is None
    seconds = program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(5, 6), wait=True)
    assert seconds is not None
    assert 0 < seconds < 10
    host = bytearray(64)
    allocator.copyout(memoryview(host), out)
    assert list(memoryview(host).cast("i")) == [i + 56 for i in range(16)]


@needs_opencl
def test_a_part_may_begin_anywhere(cl: CLDevice) -> None:
    """Also where no sub-buffer may: what the kernel writes is in the whole, and nothing else is touched."""
    allocator = cl.allocator
    out, a = allocator.alloc(64), allocator.alloc(64)
    allocator.copyin(out, memoryview(bytes(64)))
    allocator.copyin(a, memoryview(b"".join(i.to_bytes(4, "little") for i in range(16))))
    program = load(cl, "add_n", ADD_N)
    for _ in range(2):
        program(allocator.offset(out, 16, 12), allocator.offset(a, 16, 4), global_size=(4, 1, 1), vals=(0, 100))
    host = bytearray(64)
    allocator.copyout(memoryview(host), out)
    assert list(memoryview(host).cast("i")) == [0, 0, 0, 101, 102, 103, 104, *([0] * 9)]


@needs_opencl
def test_copyin_takes_what_is_there_now(cl: CLDevice) -> None:
    """The caller may change the memory as soon as copyin is back, whether or not the device has read it."""
    block, source, host = cl.allocator.alloc(4096), bytearray(b"a" * 4096), bytearray(4096)
    for _ in range(50):
        source[:] = b"a" * 4096
        cl.allocator.copyin(block, memoryview(source))
        source[:] = b"b" * 4096
        cl.allocator.copyout(memoryview(host), block)
        assert host == b"a" * 4096
    big = bytes(range(256)) * 8192
    block, host = cl.allocator.alloc(len(big)), bytearray(len(big))
    cl.allocator.copyin(block, memoryview(big))
    cl.allocator.copyout(memoryview(host), block)
    assert host == big


@needs_opencl
def test_host_view(cl: CLDevice) -> None:
    """Memory that is shared is seen by the host as it is; other memory is not."""
    block = cl.allocator.alloc(64)
    cl.allocator.copyin(block, memoryview(bytes(range(64))))
    cl.synchronize()
    view = cl.allocator.as_buffer(block, 64)
    assert isinstance(cl.allocator, CLAllocator)
    assert (view is not None) == cl.allocator.shared
    if view is not None:
        assert bytes(view) == bytes(range(64))


@needs_opencl
def test_threads_share_a_program(cl: CLDevice) -> None:
    """Each launch has the arguments that it was called with."""
    program, results = load(cl, "add_n", ADD_N), {}

    def work(number: int) -> None:
        out, a = cl.allocator.alloc(64), cl.allocator.alloc(64)
        cl.allocator.copyin(a, memoryview(bytes(64)))
        for _ in range(20):
            program(out, a, global_size=(16, 1, 1), vals=(number, 0))
        host = bytearray(64)
        cl.allocator.copyout(memoryview(host), out)
        results[number] = list(memoryview(host).cast("i"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [10 * n] * 16 for n in range(4)}


@needs_opencl
def test_a_rejected_source_is_kept(cache_folder: Path) -> None:
    source = "__kernel void broken(__global float* x) { *x = missing; }"
    with pytest.raises(CompileError, match="missing") as caught:
        CLCompiler(opened().queue).compile(source)
    assert caught.value.path is not None
    assert caught.value.path in str(caught.value)
    assert Path(caught.value.path).read_text() == source


@needs_opencl
def test_refusals(cl: CLDevice) -> None:
    """Errors name the kernel, the sizes and the status."""
    with pytest.raises(DeviceError, match="loading the binary of k"):
        CLProgram(cl.queue, "k", b"not a binary")
    with pytest.raises(DeviceError, match="the kernel absent: INVALID_KERNEL_NAME"):
        load(cl, "absent", ADD_N)
    block, program = cl.allocator.alloc(64), load(cl, "add_n", ADD_N)
    with pytest.raises(DeviceError, match=r"kernel add_n: launch of \(1, 1, 1\) groups of \(1000000, 1, 1\)"):
        program(block, block, local_size=(1_000_000, 1, 1), vals=(1, 2))
    with pytest.raises(DeviceError, match="kernel add_n: argument 4 of 5"):
        program(block, block, vals=(1, 2, 3))
    with pytest.raises(ValueError, match="cannot allocate -1 bytes"):
        cl.allocator.alloc(-1)
    with pytest.raises(OutOfMemory, match=r"CL: out of memory: .* asked"):
        cl.allocator.alloc(1 << 60)


@needs_opencl
def test_a_cl_mem_of_somebody_else() -> None:
    """It is used in place, and lives until both sides have let it go."""
    cl = Device["CL"]
    assert isinstance(cl, CLDevice)
    theirs = BufferMemory.allocate(cl.queue, 64)
    options = BufferOptions(external_ptr=theirs.handle)
    buffer = Buffer(cl.device, 16, dtypes.float32, options=options).allocate()
    buffer.copyin(memoryview(array("f", range(16))))
    cl.synchronize()  # we know nothing of what they do with it, nor they of our queues
    out = bytearray(64)
    cl.allocator.copyout(memoryview(out), theirs)
    assert list(memoryview(out).cast("f")) == [float(i) for i in range(16)]
    theirs.release(cl.queue)
    assert buffer.tobytes() == bytes(out)
    with pytest.raises(ValueError, match="has 64 bytes; 128 are asked for"):
        cl.allocator.alloc(128, options)
    with pytest.raises(ValueError, match="does not belong to the context"):
        CLDevice("CL", DevEntry("CL")).allocator.alloc(64, options)


@needs_opencl
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DeviceUnavailable, match=r"the device CL:99 is not available .* the OpenCL devices") as caught:
        CLDevice("CL:99", DevEntry("CL"))
    assert opened().physical.name in str(caught.value)
    with pytest.raises(DeviceUnavailable, match="the device CL is not available"):
        CLDevice("CL", DevEntry("CL", indices=(99,)))


def test_what_an_entry_may_say() -> None:
    assert CLDevice.unavailable(DevEntry("CL", renderer="LLVM")) == "it has no renderer LLVM; there is CL"
    assert CLDevice.unavailable(DevEntry("CL", iface="KFD")) == "it has no interface KFD"
    assert "ARCH is 'buffers' or nothing" in str(CLDevice.unavailable(DevEntry("CL", arch="gfx90a")))


def problem_with(**variables: str) -> str:
    """What the table of devices says of CL in a process with these variables, and whether a driver was started."""
    code = (
        "from tg_runtime import Device; from tg_runtime.backends.opencl.discovery import physical_devices as p; "
        "print(next(r.problem for r in Device.table() if r.name == 'CL'), p.cache_info().misses)"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OCL_ICD", "OPENCL"))}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_without_a_loader() -> None:
    assert problem_with(OPENCL_LIBRARY="/nowhere/libOpenCL.so") == (
        "the library that OPENCL_LIBRARY names cannot be loaded: /nowhere/libOpenCL.so 0"
    )


@needs_opencl
def test_listing_starts_no_driver(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "some.icd"):
        found = problem_with(OCL_ICD_VENDORS=str(place))
        assert found.startswith(f"no OpenCL driver is registered: {place} has no .icd file")
        assert found.endswith(" 0")
    (tmp_path / "some.icd").write_text("/nowhere/driver.so\n")
    assert problem_with(OCL_ICD_VENDORS=str(tmp_path)) == "None 0"
    assert problem_with(OCL_ICD_VENDORS=str(tmp_path / "some.icd")) == "None 0"
