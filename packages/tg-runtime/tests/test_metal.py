"""The METAL device on a stand-in for Metal, which checks every message and runs kernels on the host."""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import mmap
import os
import sys
import threading
from typing import Any

import pytest

from tg_codegen import compile_ast
from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops, Storage, ast
from tg_runtime import CompileError, DeviceError, DeviceUnavailable, OutOfMemory, realize
from tg_runtime.backends.metal import api
from tg_runtime.backends.metal.device import MetalDevice
from tg_runtime.backends.metal.memory import MetalAllocator, MetalMemory
from tg_runtime.backends.metal.program import MetalProgram
from tg_runtime.device.allocator import BufferOptions
from tg_runtime.device.dev import DevEntry
from tg_runtime.device.registry import Device
from tg_runtime.execution.item import ExecItem
from tg_runtime.kernels.programs import get_runner
from tg_runtime.kernels.runner import CompiledRunner
from tg_runtime.memory.buffer import Buffer, buffer_of
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.arithmetic import Casts, Elementwise, Reductions
from tg_runtime.testing.kernels import buffer_with, kernel, unpack
from tg_shape import ShapeTracker

f32, i32 = dtypes.float32, dtypes.int32
ADD_N = """#include <metal_stdlib>
using namespace metal;
struct Args { int n; int m; };
kernel void add_n(device int* data0 [[buffer(0)]], device const int* data1 [[buffer(1)]], constant Args& args \
[[buffer(2)]], uint3 group [[threadgroup_position_in_grid]], uint3 item [[thread_position_in_threadgroup]]) {
  int at = int(group.x) * 4 + int(item.x);
  data0[at] = data1[at] + args.n * 10 + args.m;
}
kernel void diverges(device int* data0 [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]], \
uint3 item [[thread_position_in_threadgroup]]) {
  if (item.x > 1) threadgroup_barrier(mem_flags::mem_threadgroup);
  data0[item.x] = 1;
}
[[max_total_threads_per_threadgroup(64)]] kernel void small(device int* data0 [[buffer(0)]], \
uint3 group [[threadgroup_position_in_grid]], uint3 item [[thread_position_in_threadgroup]]) { data0[item.x] = 1; }
"""


@pytest.fixture(autouse=True)
def fake(checked_metal: Any) -> Any:
    """The stand-in; what is against its rules fails the test."""
    return checked_metal


@pytest.fixture
def device(metal: MetalDevice) -> MetalDevice:
    """The default device, of the registry."""
    return metal


def fresh(number: int = 0) -> MetalDevice:
    """A device of a test's own."""
    return MetalDevice(f"METAL:{number}" if number else "METAL", DevEntry("METAL"))


def block_of(device: MetalDevice, values: list[int]) -> MetalMemory:
    memory = device.allocator.alloc(4 * len(values))
    assert isinstance(memory, MetalMemory)
    device.allocator.copyin(memory, memoryview((ctypes.c_int32 * len(values))(*values)).cast("B"))
    return memory


def read(device: MetalDevice, memory: MetalMemory, count: int) -> list[int]:
    host = (ctypes.c_int32 * count)()
    device.allocator.copyout(memoryview(host).cast("B"), memory)
    return list(host)


def load(device: MetalDevice, name: str, source: str = ADD_N) -> MetalProgram:
    assert device.compiler is not None
    return MetalProgram(device.queue, device.compiler, name, device.compiler.compile(source))  # type: ignore[arg-type]


# Each kernel is a process of the compiler: kinds of dtypes, not all of each kind.
KINDS: tuple[DType, ...] = (
    dtypes.bool, dtypes.int8, dtypes.uint32, dtypes.uint64, dtypes.fp8e4m3, dtypes.float16, dtypes.bfloat16,
    dtypes.float32,
)  # fmt: skip


@pytest.mark.usefixtures("some_dtypes")
class TestConformance(DeviceConformance):
    """With bfloat16 of the language's own."""

    device = "METAL"
    dtypes = KINDS

    def test_reductions(self) -> None:
        some = (dtypes.bool, dtypes.int8, dtypes.float16, dtypes.bfloat16, dtypes.float32)
        self.dtypes = tuple(dtype for dtype in self.dtypes if dtype in some)
        super().test_reductions()


@pytest.mark.slow
class TestEveryDtype(Elementwise, Casts, Reductions):
    device = "METAL"
    dtypes = tuple(d for d in dtypes.all if d is not dtypes.float64)


class TestOlderSystem(Elementwise, Casts):
    """Before macOS 14 there is none: it is computed in fp32."""

    device = "METAL:1"
    dev = "METAL"
    dtypes = (dtypes.bfloat16, dtypes.float32, dtypes.int32)

    def setup_method(self) -> None:
        super().setup_method()
        ctypes.CDLL(os.environ["METAL_LIBRARY"]).fake_set(b"macOS", ctypes.c_long(13))
        assert not Device[self.device].renderer.supports_dtype(dtypes.bfloat16)  # type: ignore[union-attr]


# launches


def test_launch(device: MetalDevice) -> None:
    """Buffers, then the variables in order; with ``wait``, the time."""
    out, a = block_of(device, [0] * 16), block_of(device, list(range(16)))
    program = load(device, "add_n")
    assert program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(3, 4)) is None
    seconds = program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(5, -6), wait=True)
    assert seconds is not None
    assert 0 < seconds < 10
    assert read(device, out, 16) == [i + 44 for i in range(16)]
    assert program(out, a, global_size=(0, 1, 1), vals=(1, 1), wait=True) == 0.0


def test_names(device: MetalDevice) -> None:
    """A kernel may be called by a word of the language."""
    assert device.renderer is not None
    spec = compile_ast(kernel([(ast.iota(ShapeTracker.from_shape((8,)), i32), 8)], []), device.renderer, name="kernel")
    out = Buffer("METAL", 8, i32).allocate()
    ExecItem(CompiledRunner(spec, device), [out]).run()
    assert unpack(out.as_buffer(), i32) == list(range(8))


def test_parts(device: MetalDevice) -> None:
    """A part may begin at any element."""
    block = block_of(device, list(range(16)))
    a, out = (device.allocator.offset(block, 16, at) for at in (4, 36))
    load(device, "add_n")(out, a, local_size=(4, 1, 1), vals=(1, 0))
    assert read(device, block, 16) == [*range(9), 11, 12, 13, 14, 13, 14, 15]


def test_launches_are_committed_together(device: MetalDevice, fake: Any) -> None:
    """One at once, so that the device begins; the others with it as long as it is busy."""
    out, a = block_of(device, [0] * 4), block_of(device, [1] * 4)
    program = load(device, "add_n")
    device.synchronize()
    before = device.queue.number
    for number in range(65):
        program(out, a, local_size=(4, 1, 1), vals=(0, number))
    assert device.queue.number == before + 3
    assert read(device, out, 4) == [65] * 4


def test_refusals(device: MetalDevice, fake: Any) -> None:
    """What would end the process is refused before."""
    out = block_of(device, [0] * 4)
    with pytest.raises(DeviceError, match=r"kernel small: launch of \(1, 1, 1\) threadgroups of \(65, 1, 1\); .* 64"):
        load(device, "small")(out, local_size=(65, 1, 1))
    for arguments, vals in (((out,), (1, 2)), ((out, out), ()), ((out, out, out), (1, 2))):
        with pytest.raises(DeviceError, match=f"kernel add_n takes 3 buffers, .* got {len(arguments)} and {len(vals)}"):
            load(device, "add_n")(*arguments, vals=vals)
    with pytest.raises(DeviceError, match="the source has no kernel absent"):
        load(device, "absent")
    crowded = ADD_N.replace("[[max_total_threads_per_threadgroup(64)]]", "[[max_total_threads_per_threadgroup(2048)]]")
    with pytest.raises(DeviceError, match="Fake M1 cannot run small: small: 0 bytes of threadgroup memory, 2048"):
        load(device, "small", crowded)


def test_a_source_that_does_not_compile(device: MetalDevice) -> None:
    with pytest.raises(CompileError, match=r"Metal on Fake M1: compilation failed; .* line 5: int at =") as caught:
        load(device, "add_n", ADD_N.replace("int at = int(", "int at = into("))
    assert "program_source:5" in str(caught.value)
    assert caught.value.line == 5
    assert caught.value.path is not None
    assert caught.value.path.endswith(".metal")


def test_an_old_system_has_fast_math_turned_off(fake: Any) -> None:
    """Where there is no mathMode yet."""
    fake.set("old system", 1)
    device = fresh()
    out, a = block_of(device, [0] * 4), block_of(device, [2] * 4)
    load(device, "add_n", ADD_N + "\n")(out, a, local_size=(4, 1, 1), vals=(1, 1))
    assert read(device, out, 4) == [13] * 4


def test_a_kernel_that_fails(device: MetalDevice, fake: Any) -> None:
    """It is told where somebody waits, with the names of what ran; the device goes on."""
    out, a = block_of(device, [0] * 4), block_of(device, [2] * 4)
    program = load(device, "add_n")
    fake.set("fail", 1)
    program(out, a, local_size=(4, 1, 1), vals=(1, 1))
    with pytest.raises(DeviceError, match=r"Metal: Fake M1: add_n: Caused GPU Timeout Error .* \(code 2\)"):
        device.synchronize()
    with pytest.raises(DeviceError, match="GPU Timeout"):
        program(out, a, local_size=(4, 1, 1), vals=(1, 1), wait=True)
    fake.set("fail", 0)
    program(out, a, local_size=(4, 1, 1), vals=(1, 1))
    assert read(device, out, 4) == [13] * 4
    with pytest.raises(DeviceError, match="a barrier was not reached by all threads"):
        load(device, "diverges")(out, local_size=(4, 1, 1), wait=True)


def test_threads(device: MetalDevice) -> None:
    """Launches from several threads are each whole."""
    program = load(device, "add_n")
    results: dict[int, list[int]] = {}

    def work(number: int) -> None:
        out, a = block_of(device, [0] * 4), block_of(device, [number] * 4)
        for count in range(50):
            program(out, a, local_size=(4, 1, 1), vals=(count, 0), wait=count % 10 == 0)
        results[number] = read(device, out, 4)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number + 490] * 4 for number in range(4)}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, f32], ids=lambda dtype: dtype.name)
def test_matrices(dtype: DType, device: MetalDevice) -> None:
    """Products by matrices of a SIMD-group, with sides that are no multiples of theirs."""
    n, k, m = 40, 24, 33
    a, b = ([float((i * 7 + i // 5) % 9 - 4) for i in range(size)] for size in (n * k, k * m))
    x = ast.load(1, dtype, ShapeTracker.from_shape((n, 1, k)).expand((n, m, k)))
    y = ast.load(2, dtype, ShapeTracker.from_shape((1, k, m)).permute((0, 2, 1)).expand((n, m, k)))
    total = ast.reduce(ast.alu(Ops.MUL, ast.cast(x, f32), ast.cast(y, f32)), Ops.ADD, (2,))
    runner = get_runner(device, kernel([(total, n * m)], [(dtype, n * k), (dtype, k * m)]))
    assert isinstance(runner, CompiledRunner)
    assert "simdgroup_multiply_accumulate" in runner.spec.src
    out = Buffer("METAL", n * m, f32).allocate()
    ExecItem(runner, [out, buffer_with("METAL", a, dtype), buffer_with("METAL", b, dtype)]).run()
    want = [sum(a[i * k + q] * b[q * m + j] for q in range(k)) for i in range(n) for j in range(m)]
    assert unpack(out.as_buffer(), f32) == want


# memory


def test_memory_is_the_hosts(device: MetalDevice) -> None:
    """Views are the memory itself; one that is kept keeps it from others."""
    block = block_of(device, [1, 2, 3, 4])
    view = device.allocator.as_buffer(block, 16)
    assert view is not None
    assert ctypes.addressof(ctypes.c_char.from_buffer(view)) == block.address
    kept = device.allocator.export(block, 16)
    assert kept is not None
    del view
    device.allocator.free(block, 16)
    assert block_of(device, [9, 9, 9, 9]).address != block.address
    assert list(kept.cast("i")) == [1, 2, 3, 4]


def test_the_host_waits_for_the_device(device: MetalDevice) -> None:
    """What the device has still to read is not overwritten, and what it has still to write is not read."""
    out, a, other = block_of(device, [0] * 4), block_of(device, [1] * 4), block_of(device, [7] * 4)
    program = load(device, "add_n")
    program(out, a, local_size=(4, 1, 1), vals=(1, 0))
    flying = len(device.queue._flying)
    assert flying
    device.allocator.copyin(other, memoryview(bytes(16)))
    assert len(device.queue._flying) == flying  # nobody uses that one
    device.allocator.copyin(a, memoryview(bytes(16)))
    assert not device.queue._flying
    assert read(device, out, 4) == [11] * 4


def test_memory_of_somebody_else(device: MetalDevice, fake: Any) -> None:
    """Pages of the host become a buffer; the owner lives as long as it does."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    pages[64:80] = bytes((ctypes.c_int32 * 4)(1, 2, 3, 4))
    source = Buffer("METAL", 4, i32, options=BufferOptions(external_ptr=address + 64, owner=pages)).allocate()
    out = block_of(device, [0] * 4)
    load(device, "add_n")(out, source.opaque, local_size=(4, 1, 1), vals=(1, 0))
    assert read(device, out, 4) == [11, 12, 13, 14]
    load(device, "add_n")(source.opaque, out, local_size=(4, 1, 1), vals=(1, 0))
    device.synchronize()
    assert list(memoryview(pages)[64:80].cast("i")) == [21, 22, 23, 24]
    before = fake.living
    source.release()
    gc.collect()
    assert fake.living == before - 1
    fake.set("no borrowing", 1)
    with pytest.raises(DeviceError, match=r"cannot use 16 bytes at 0x[0-9a-f]+ in place: it takes pages"):
        Buffer("METAL", 4, i32, options=BufferOptions(external_ptr=address, owner=pages)).allocate()


def test_memory_ends(device: MetalDevice, fake: Any) -> None:
    with pytest.raises(OutOfMemory, match=r"the device has no buffers of more than 1073741824 bytes"):
        device.allocator.alloc((1 << 30) + 64)
    fake.set("no memory", 1)
    with pytest.raises(OutOfMemory, match=r"METAL: out of memory: .* asked .*; Metal gives no more memory"):
        device.allocator.alloc(12345)


def test_transfers(device: MetalDevice) -> None:
    """On the device where both are of one; by the host's memory between two."""
    second = fresh(1)
    here, there, beyond = block_of(device, [1, 2, 3]), block_of(device, [0] * 3), block_of(second, [0] * 3)
    assert device.allocator.transfer(there, here, 12, device.allocator)
    assert second.allocator.transfer(beyond, there, 12, device.allocator)
    assert read(second, beyond, 3) == [1, 2, 3]
    assert not device.allocator.transfer(here, here, 12, Device["NUMPY"].allocator)


def test_nothing_is_left_behind(fake: Any) -> None:
    """Every object of a device, its programs and graphs is given back."""

    def use() -> None:
        device = fresh(1)
        out, a = block_of(device, [0] * 4), block_of(device, [1] * 4)
        program = load(device, "add_n")
        for _ in range(100):
            program(out, a, local_size=(4, 1, 1), vals=(1, 0))
        assert read(device, out, 4) == [11] * 4
        with pytest.raises(CompileError):
            load(device, "add_n", "kernel")
        assert device.compiler is not None
        device.compiler.compile(ADD_N)  # never loaded
        device.allocator.free(out, 16)
        device.allocator.free_cache()  # type: ignore[attr-defined]

    use()
    gc.collect()
    before = fake.living
    use()
    gc.collect()
    assert fake.living == before


# the device


def test_through_the_graph_of_tensors(device: MetalDevice) -> None:
    storage = Storage("METAL", 6, f32, buffer_with("METAL", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f32))
    x = LazyBuffer.from_storage(storage, (2, 3))
    total = x.alu(Ops.MUL, x).reduce(Ops.ADD, (1,))
    realize([total])
    assert total.storage is not None
    assert unpack(buffer_of(total.storage).as_buffer(), f32) == [14.0, 77.0]


def test_devices(fake: Any) -> None:
    assert fresh(1).opened_facts().arch == "Fake M3"
    with pytest.raises(DeviceUnavailable, match="METAL:2 is not available .*: Metal has 2 devices"):
        fresh(2)
    with pytest.raises(DeviceUnavailable, match="wants a number"):
        MetalDevice("METAL:x", DevEntry("METAL"))
    chosen = MetalDevice("METAL", DevEntry("METAL", indices=(1,)))
    assert chosen.context.name == "Fake M3"
    assert chosen.renderer is not None
    assert chosen.renderer.supports_dtype(dtypes.bfloat16)
    fake.set("no device", 1)
    with pytest.raises(DeviceUnavailable, match="Metal has 0 devices"):
        fresh()


def test_what_an_entry_may_say(fake: Any) -> None:
    said = MetalDevice.unavailable
    assert said(DevEntry("METAL")) is None
    assert said(DevEntry("METAL", renderer="CL")) == "it has no renderer CL; there is MSL"
    assert said(DevEntry("METAL", iface="PCI")) == "it has no interface PCI"
    assert said(DevEntry("METAL", arch="m1")) == "it has no ARCH 'm1'"


def problem_with(library: str | None) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("METAL_LIBRARY")
        if library is not None:
            patch.setenv("METAL_LIBRARY", library)
        api._libraries.cache_clear()
        try:
            return {row.name: row.problem for row in Device.table()}["METAL"]
        finally:
            api._libraries.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="the message is that of Linux")
def test_without_metal() -> None:
    assert problem_with(None) == "Metal is a part of macOS, and this is Linux"


def test_a_library_that_is_none() -> None:
    nowhere = "/nowhere/metal.so"
    assert problem_with(nowhere) == f"the library that METAL_LIBRARY names cannot be loaded: {nowhere}"
    libm = ctypes.util.find_library("m")
    if libm is not None:
        assert problem_with(libm) == "what loads as Metal lacks objc_msgSend"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_loses_the_device(device: MetalDevice) -> None:
    """A child that uses its parent's device is told so; what it drops is the parent's."""
    block = block_of(device, [1, 2, 3, 4])
    child = os.fork()
    if child == 0:
        told = 1
        try:
            device.allocator.alloc(65432)
        except DeviceError as error:
            told = 0 if "was opened before this process was forked" in str(error) else 2
        block.release()
        os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read(device, block, 4) == [1, 2, 3, 4]


def test_no_copy_of_the_host(device: MetalDevice) -> None:
    """Results are read in place by whoever asks for a view of a buffer."""
    buffer = buffer_with("METAL", [5, 6, 7], i32)
    view = buffer.as_buffer()
    allocator = device.allocator
    assert isinstance(allocator, MetalAllocator)
    assert ctypes.addressof(ctypes.c_char.from_buffer(view)) == buffer.opaque.address
    address = buffer.opaque.address
    del buffer
    gc.collect()
    assert list(view.cast("i")) == [5, 6, 7]
    assert buffer_with("METAL", [0, 0, 0], i32).opaque.address != address
