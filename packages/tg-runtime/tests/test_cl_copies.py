"""Copies of OpenCL memory: beside kernels, through pinned memory, between devices."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tg_dtype import dtypes
from tg_runtime import DevEntry, DeviceError, DeviceUnavailable
from tg_runtime.backends.opencl import api
from tg_runtime.backends.opencl import device as device_module
from tg_runtime.backends.opencl.allocator import CLAllocator
from tg_runtime.backends.opencl.device import CLDevice
from tg_runtime.backends.opencl.discovery import physical_devices
from tg_runtime.backends.opencl.memory import BufferMemory, CLMemory
from tg_runtime.backends.opencl.program import CLCompiler, CLProgram
from tg_runtime.backends.opencl.queue import ended
from tg_runtime.backends.opencl.staging import CHUNK_BYTES
from tg_runtime.device.allocator import BufferOptions

_PROBLEM = api.problem()
pytestmark = pytest.mark.skipif(_PROBLEM is not None, reason=f"OpenCL: {_PROBLEM}")
DOUBLE = "__kernel void twice(__global uchar* x) { x[get_global_id(0)] *= 2; }"


@pytest.fixture(params=["", "buffers"], ids=["shared", "buffers"])
def cl(request: pytest.FixtureRequest) -> CLDevice:
    return CLDevice("CL", DevEntry("CL", arch=request.param))


def allocator_of(cl: CLDevice) -> CLAllocator:
    assert isinstance(cl.allocator, CLAllocator)
    return cl.allocator


def program(cl: CLDevice, name: str, source: str) -> CLProgram:
    return CLProgram(cl.queue, name, CLCompiler(cl.queue).compile(source))


def fetched(cl: CLDevice, block: CLMemory, nbytes: int) -> bytes:
    host = bytearray(nbytes)
    cl.allocator.copyout(memoryview(host), block)
    return bytes(host)


@contextmanager
def held(cl: CLDevice) -> Iterator[Callable[[], bool]]:
    """Nothing that is queued begins before the end; what is given says whether someone had to give up waiting."""
    driver, status, queue = api.library(), ctypes.c_int32(), cl.queue
    driver.clCreateUserEvent.restype, driver.clCreateUserEvent.argtypes = ctypes.c_void_p, (ctypes.c_void_p,) * 2
    driver.clSetUserEventStatus.argtypes = (ctypes.c_void_p, ctypes.c_int32)
    gate = ctypes.c_void_p(driver.clCreateUserEvent(queue.context, ctypes.byref(status)))
    api.check(status.value, "an event of the host's")
    api.check(driver.clEnqueueMarkerWithWaitList(queue.handle, 1, ctypes.byref(gate), None), "a marker")
    too_long = threading.Timer(20, driver.clSetUserEventStatus, (gate, api.COMPLETE))
    too_long.start()
    try:
        yield lambda: ended(gate)
    finally:
        too_long.cancel()
        driver.clSetUserEventStatus(gate, api.COMPLETE)
        queue.finish()
        driver.clReleaseEvent(gate)


def test_what_no_kernel_uses_is_copied_beside_kernels(cl: CLDevice) -> None:
    twice, allocator, size = program(cl, "twice", DOUBLE), cl.allocator, 2 << 20
    used, idle, data = allocator.alloc(size), allocator.alloc(size), bytes(range(128)) * (size >> 7)
    allocator.copyin(used, memoryview(data))
    cl.synchronize()
    with held(cl) as waited_for:
        twice(used, global_size=(size, 1, 1))
        allocator.copyin(idle, memoryview(data))
        assert fetched(cl, idle, size) == data
        assert not waited_for(), "a copy waited for a kernel that uses other memory"
    assert fetched(cl, used, size) == bytes(2 * v for v in data)


def test_what_a_kernel_uses_is_copied_after_it(cl: CLDevice) -> None:
    """Into memory that a kernel still reads, and out of memory that one still writes."""
    twice, allocator, size = program(cl, "twice", DOUBLE), cl.allocator, (1 << 20) + 5
    block = allocator.alloc(size)
    for value in range(1, 10):
        allocator.copyin(block, memoryview(bytes([value]) * size))
        twice(block, global_size=(size, 1, 1))
        twice(allocator.offset(block, size, 0), global_size=(size, 1, 1))
        assert fetched(cl, block, 16) == bytes([4 * value]) * 16
    assert fetched(cl, allocator.offset(block, 5, size - 5), 5) == bytes([4 * 9]) * 5


@pytest.mark.drawn(2)
@pytest.mark.parametrize("size", [1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 3])
def test_pinned_memory(size: int) -> None:
    cl = CLDevice("CL", DevEntry("CL", arch="buffers"))
    allocator = allocator_of(cl)
    allocator.pinned = True
    twice, block = program(cl, "twice", DOUBLE), allocator.alloc(size)
    data = (bytes(range(120)) * (size // 120 + 1))[:size]
    for _ in range(3):
        twice(block, global_size=(size, 1, 1))  # so that the memory is in use
        source = bytearray(data)
        allocator.copyin(block, memoryview(source))
        source[:] = bytes(size)
        twice(block, global_size=(size, 1, 1))
        assert fetched(cl, block, size) == bytes(2 * v for v in data)


def test_transfers_of_one_device(cl: CLDevice) -> None:
    allocator, twice = allocator_of(cl), program(cl, "twice", DOUBLE)
    a, b = allocator.alloc(4096), allocator.alloc(4096)
    allocator.copyin(a, memoryview(bytes(range(64)) * 64))
    twice(a, global_size=(4096, 1, 1))
    assert allocator.transfer(b, a, 4096, allocator)
    twice(a, global_size=(4096, 1, 1))
    assert fetched(cl, b, 4096) == bytes(range(0, 128, 2)) * 64
    assert not allocator.transfer(a, a, 4096, allocator)


def test_transfers_between_contexts() -> None:
    """Two devices, or one opened twice: their buffers have no memory in common."""
    one, other = (CLDevice("CL", DevEntry("CL", arch="buffers")) for _ in range(2))
    size = 2 * CHUNK_BYTES + 77
    data = (bytes(range(120)) * (size // 120 + 1))[:size]
    a, b = one.allocator.alloc(size), other.allocator.alloc(size)
    twice = program(one, "twice", DOUBLE)
    one.allocator.copyin(a, memoryview(data))
    twice(a, global_size=(size, 1, 1))
    assert other.allocator.transfer(b, a, size, one.allocator)
    assert fetched(other, b, size) == bytes(2 * v for v in data)
    twice(a, global_size=(size, 1, 1))
    assert other.allocator.transfer(b, a, size, one.allocator)
    program(other, "twice", DOUBLE)(b, global_size=(size, 1, 1))
    assert fetched(other, b, size) == bytes(8 * v & 255 for v in data)


def test_only_buffers_go_from_one_context_to_another() -> None:
    """What is shared with the host, and what are images, is left to the caller, in both directions, and not touched."""
    one, other = (CLDevice("CL", DevEntry("CL", arch=arch)) for arch in ("buffers", ""))
    kind, data = dtypes.imagef((4, 4, 4)), bytes(range(256))
    buffer, rest = one.allocator.alloc(256), [other.allocator.alloc(256)]
    if not allocator_of(other).shared:
        rest.clear()
    if other.physical.images:
        rest.append(other.allocator.alloc(256, BufferOptions(image=kind)))
    if not rest:
        pytest.skip("the OpenCL device has neither shared memory nor images")
    one.allocator.copyin(buffer, memoryview(data))
    for memory in rest:
        other.allocator.copyin(memory, memoryview(data[::-1]))
        assert not other.allocator.transfer(memory, buffer, 256, one.allocator)
        assert not one.allocator.transfer(buffer, memory, 256, other.allocator)
        assert (fetched(one, buffer, 256), fetched(other, memory, 256)) == (data, data[::-1])


def test_what_another_device_took_is_done() -> None:
    """As soon as it has it, copies of it go beside other kernels again; not so of what others may use, too."""
    one, other = (CLDevice("CL", DevEntry("CL", arch="buffers")) for _ in range(2))
    twice = program(one, "twice", DOUBLE)
    for size in (1, 4099, CHUNK_BYTES + 5):
        a, b, later = one.allocator.alloc(size), other.allocator.alloc(size), one.allocator.alloc(16)
        twice(a, global_size=(size, 1, 1))
        assert not a.idle(one.queue)
        assert other.allocator.transfer(b, a, size, one.allocator)
        assert a.idle(one.queue) and not b.idle(other.queue)
        twice(later, global_size=(16, 1, 1))
        assert not later.idle(one.queue)
    assert isinstance(a, BufferMemory)
    theirs = one.allocator.alloc(size, BufferOptions(external_ptr=a.handle))
    assert other.allocator.transfer(b, theirs, size, one.allocator)
    assert not theirs.idle(one.queue) and not later.idle(one.queue)


def test_parts_begin_where_the_device_allows_them_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers need not refuse a part that begins elsewhere: kernels then read something else."""
    cl = CLDevice("CL", DevEntry("CL", arch="buffers"))
    allowed = cl.physical.number(api.DEVICE_MEM_BASE_ADDR_ALIGN)  # in bits
    real, begins = api.library().clCreateSubBuffer, list[int]()

    def checked(handle: int, flags: int, kind: int, region: ctypes.Array[ctypes.c_size_t], status: object) -> object:
        begins.append(8 * region[0])
        return real(handle, flags, kind, region, status)

    monkeypatch.setattr(api.library(), "clCreateSubBuffer", checked)
    twice, whole = program(cl, "twice", DOUBLE), cl.allocator.alloc(4096)
    want = bytearray(range(100)) * 41
    cl.allocator.copyin(whole, memoryview(want)[:4096])
    for begin in (0, 1, allowed // 16, allowed // 8 - 1, allowed // 8, allowed // 8 + 1, allowed // 4):
        twice(cl.allocator.offset(whole, 5, begin), global_size=(5, 1, 1))
        for n in range(begin, begin + 5):
            want[n] = 2 * want[n] & 255
    assert fetched(cl, whole, 4096) == want[:4096]
    assert begins and all(begin % allowed == 0 for begin in begins)


TWO = """
from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_runtime import Device, buffer_of, realize
assert Device["CL"].physical.handle != Device["CL:1"].physical.handle
x = LazyBuffer.iota(1000, dtypes.int32, "CL")
y = x.alu(Ops.ADD, x).copy_to("CL:1")
z = y.alu(Ops.MUL, y).copy_to("CPU").alu(Ops.ADD, LazyBuffer.const(1, dtypes.int32, (1000,), "CPU"))
w = z.copy_to("CL:1").copy_to("CL")
realize([w])
assert buffer_of(w.storage).as_buffer().cast("i").tolist() == [4 * i * i + 1 for i in range(1000)]
print("right")
"""


@pytest.mark.parametrize("setting", ["CL;CPU", "CL::buffers;CPU"])
def test_two_devices(setting: str) -> None:
    if not any("Portable" in d.platform or "PoCL" in d.platform for d in physical_devices()):
        pytest.skip("two OpenCL devices: only PoCL makes a second of the same processor")
    environment = {**os.environ, "POCL_DEVICES": "pthread basic", "DEV": setting}
    done = subprocess.run(
        [sys.executable, "-c", TWO], capture_output=True, text=True, timeout=100, env=environment, check=False
    )
    assert done.stdout == "right\n", done.stderr


# drivers that are too old


def test_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    old = tuple(replace(d, version=(1, 1)) for d in physical_devices())
    monkeypatch.setattr(device_module, "physical_devices", lambda: old)
    with pytest.raises(DeviceUnavailable, match=r"offers OpenCL 1\.1, and 1\.2 is needed: update its driver"):
        CLDevice("CL", DevEntry("CL"))


@pytest.mark.parametrize("name", [None, "libm.so.6"])
def test_a_library_that_is_no_loader(name: str | None) -> None:
    """No driver has to be registered for one, be it of OpenCL or not."""
    assert not api._is_loader(ctypes.CDLL(name))


def test_an_old_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has not all functions is named, with what it lacks."""
    monkeypatch.setattr(api, "_open", lambda: ctypes.CDLL(None))
    api.library.cache_clear()
    try:
        with pytest.raises(DeviceError, match=r"has no clGetPlatformIDs: .* OpenCL 1\.2"):
            api.library()
    finally:
        api.library.cache_clear()


def test_images_know_their_shape(cl: CLDevice) -> None:
    """One that is larger than the device's, or somebody else's of another shape, is refused."""
    from tg_runtime.backends.opencl.image import ImageMemory

    allocator = allocator_of(cl)
    if not cl.physical.images:
        pytest.skip("the OpenCL device has no images")
    huge = dtypes.imagef((1 << 20, 4, 4))
    with pytest.raises(MemoryError, match="images of the device are at most"):
        allocator.alloc(huge.nbytes, BufferOptions(image=huge))
    kind, other = dtypes.imagef((3, 5, 4)), dtypes.imageh((3, 5, 4))
    theirs = ImageMemory.allocate(cl.queue, kind)
    mine = allocator.alloc(kind.nbytes, BufferOptions(external_ptr=theirs.handle, image=kind))
    data = bytes(range(240))
    host = (ctypes.c_char * 240).from_buffer_copy(data)
    theirs.write(cl.queue, ctypes.addressof(host), 240, True)
    assert fetched(cl, mine, 240) == data
    theirs.release(cl.queue)
    assert fetched(cl, mine, 240) == data
    with pytest.raises(ValueError, match=r"is no imageh\(3,5,4\): it is 3 high and 5 wide"):
        handle = mine.handle  # type: ignore[attr-defined]
        allocator.alloc(other.nbytes, BufferOptions(external_ptr=handle, image=other))
    with pytest.raises(TypeError, match=r"imagef\(3,5,4\) has no parts"):
        allocator.offset(mine, 16, 16)
    with pytest.raises(ValueError, match="is copied whole, not 16 bytes of it"):
        allocator.copyin(mine, memoryview(bytes(16)))
    plain = BufferMemory.allocate(cl.queue, 240)
    with pytest.raises(ValueError, match="it is 0 high"):
        allocator.alloc(kind.nbytes, BufferOptions(external_ptr=plain.handle, image=kind))
