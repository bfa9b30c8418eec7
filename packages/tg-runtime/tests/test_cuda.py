"""The CUDA device on a driver whose GPUs are the host."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import gc
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tg_codegen import compile_ast
from tg_codegen.plan.vocabulary import parse_action
from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, LazyOp, Ops, Storage, ast
from tg_runtime import CompileError, DeviceError, DeviceUnavailable, OutOfMemory, realize
from tg_runtime.backends.cuda.context import Context as CUDAContext
from tg_runtime.backends.cuda.device import CUDADevice
from tg_runtime.backends.cuda.graph import CUDAGraph
from tg_runtime.backends.cuda.memory import CUDAAllocator, CUDAMemory
from tg_runtime.backends.cuda.order import MOST_MARKS
from tg_runtime.backends.cuda.program import Arguments, CUDAProgram
from tg_runtime.device.allocator import BufferOptions
from tg_runtime.device.dev import DevEntry
from tg_runtime.device.registry import Device
from tg_runtime.emulators.cuda_driver.driver import MockDriver, mock
from tg_runtime.emulators.cuda_driver.work import Stream
from tg_runtime.execution.item import ExecItem
from tg_runtime.headers.cuda import api
from tg_runtime.headers.cuda.api import Driver
from tg_runtime.kernels.programs import get_runner
from tg_runtime.kernels.runner import CompiledRunner
from tg_runtime.memory.buffer import Buffer, buffer_of
from tg_runtime.telemetry.profiler import profile
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.kernels import buffer_with, kernel, pack, unpack
from tg_shape import ShapeTracker, Variable

MOCK = DevEntry("CUDA", renderer="PTX", iface="MOCK")
_PROBLEM = CUDADevice.unavailable(MOCK)
needs_mock = pytest.mark.skipif(_PROBLEM is not None, reason=_PROBLEM or "available")
f32 = dtypes.float32
SIZE = 256

ADD_N = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry add_n(.param .u64 out, .param .u64 a, .param .u32 n, .param .u32 m)
{
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r3, %r3, %r4, %r5;
  mad.wide.u32 %rd1, %r3, 4, %rd1; mad.wide.u32 %rd2, %r3, 4, %rd2;
  ld.global.u32 %r6, [%rd2]; mad.lo.u32 %r6, %r1, 10, %r6; add.u32 %r6, %r6, %r2; st.global.u32 [%rd1], %r6; ret;
}
.visible .entry pairs(.param .u64 out, .param .u64 a) .maxntid 64, 1, 1
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.global.v2.u32 {%r1, %r2}, [%rd2];
  st.global.v2.u32 [%rd1], {%r2, %r1}; ret;
}
.visible .entry fails() { trap; }
"""


@pytest.mark.alike
@pytest.mark.usefixtures("some_dtypes")
@needs_mock
class TestMock(DeviceConformance):
    """PTX, run on the host."""

    device = "CUDA"
    dev = "MOCK+CUDA:PTX"


@pytest.mark.alike
@needs_mock
class TestOlder(DeviceConformance):
    """Without bfloat16, and without maxima that know NaN; the rest is as above."""

    device = "CUDA"
    dev = "MOCK+CUDA:PTX:sm_75"
    dtypes = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
    launches = 2_000
    test_far_elements = None  # type: ignore[assignment]  # indices do not depend on the architecture


@functools.cache
def opened(number: int = 0) -> CUDADevice:
    return CUDADevice(f"CUDA:{number}" if number else "CUDA", MOCK)


def fresh(arch: str = "sm_80", memory_bytes: int = 1 << 30) -> tuple[MockDriver, CUDAContext]:
    """A driver of a test's own, for what breaks it."""
    mock = MockDriver(arch, memory_bytes=memory_bytes)
    driver = Driver(mock.functions().__getitem__)
    api.start(driver)
    return mock, CUDAContext(driver, 0)


def block_of(device: CUDADevice, values: list[int]) -> CUDAMemory:
    block = device.allocator.alloc(4 * len(values))
    assert isinstance(block, CUDAMemory)
    device.allocator.copyin(block, pack(values, dtypes.int32))
    return block


def read(device: CUDADevice, block: CUDAMemory, count: int) -> list[object]:
    host = bytearray(4 * count)
    device.allocator.copyout(memoryview(host), block)
    return list(unpack(memoryview(host), dtypes.int32))


@needs_mock
def test_launch() -> None:
    """Buffers, then the variables in order; with ``wait``, the time."""
    device = opened()
    out, a = block_of(device, [0] * 16), block_of(device, list(range(16)))
    program = CUDAProgram(device.context, "add_n", ADD_N)
    assert program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(3, 4)) is None
    seconds = program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(5, -6), wait=True)
    assert seconds is not None
    assert 0 < seconds < 10
    assert read(device, out, 16) == [i + 44 for i in range(16)]
    assert program(out, a, global_size=(0, 1, 1), vals=(1, 1), wait=True) == 0.0


@needs_mock
def test_a_part_may_begin_anywhere() -> None:
    """Vectors of a kernel must be aligned: a part that is not is replaced by a copy, which is written back."""
    device = opened()
    out, a = block_of(device, [0] * 8), block_of(device, list(range(8)))
    allocator = device.allocator
    program = CUDAProgram(device.context, "pairs", ADD_N)
    assert program.vectors
    assert program.max_threads == 64
    program(allocator.offset(out, 8, 12), allocator.offset(a, 8, 4))
    assert read(device, out, 8) == [0, 0, 0, 2, 1, 0, 0, 0]
    used = device.allocator.used
    program(allocator.offset(out, 8, 16), allocator.offset(a, 8, 4))
    assert device.allocator.used == used


@needs_mock
@pytest.mark.parametrize("nbytes", [1, 4096, 4 << 20, (4 << 20) + 1, 13_000_001])
def test_staged_copies(nbytes: int) -> None:
    """In chunks, whatever the size; the caller may change the memory as soon as copyin is back."""
    device, data = opened(), random.Random(nbytes).randbytes(nbytes)
    source, host = bytearray(data), bytearray(nbytes)
    block = device.allocator.alloc(nbytes)
    device.allocator.copyin(block, memoryview(source))
    source[:] = bytes(nbytes)
    device.allocator.copyout(memoryview(host), block)
    device.allocator.free(block, nbytes)
    assert host == data


@needs_mock
def test_pinned_memory() -> None:
    """Memory of the host that the device uses in place, and addresses that somebody else owns."""
    device = opened()
    block = device.allocator.alloc(64, BufferOptions(host=True))
    view = device.allocator.as_buffer(block, 64)
    assert view is not None
    view[:] = bytes(range(64))
    out = block_of(device, [0] * 16)
    CUDAProgram(device.context, "add_n", ADD_N)(out, block, local_size=(16, 1, 1), vals=(0, 0))
    host = bytearray(64)
    device.allocator.copyout(memoryview(host), out)
    assert host == bytes(range(64))
    assert device.allocator.as_buffer(out, 64) is None
    other = device.allocator.alloc(64, BufferOptions(external_ptr=out.address))
    assert read(device, other, 16) == read(device, out, 16)
    device.allocator.free(other, 64, BufferOptions(external_ptr=out.address))
    device.allocator.free(block, 64, BufferOptions(host=True))
    assert read(device, out, 2) == [0x03020100, 0x07060504]


@needs_mock
def test_threads_share_a_program() -> None:
    """Each launch has the arguments that it was called with, in a thread that never saw the context."""
    device, results = opened(), {}
    program = CUDAProgram(device.context, "add_n", ADD_N)

    def work(number: int) -> None:
        out, a = block_of(device, [0] * 16), block_of(device, [0] * 16)
        for _ in range(20):
            program(out, a, local_size=(16, 1, 1), vals=(number, 0))
        results[number] = read(device, out, 16)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [10 * n] * 16 for n in range(4)}


@needs_mock
def test_peers() -> None:
    """Two devices of a driver copy without the host; to another driver's they cannot."""
    first, second = opened(0), opened(1)
    assert first.context.device != second.context.device
    source, dest = block_of(first, [1, 2, 3]), block_of(second, [0, 0, 0])
    assert second.allocator.transfer(dest, source, 12, first.allocator)
    assert read(second, dest, 3) == [1, 2, 3]
    stranger = CUDAAllocator("other", fresh()[1])
    assert not second.allocator.transfer(dest, source, 12, stranger)  # type: ignore[arg-type]


@needs_mock
def test_memory_ends() -> None:
    """Freed blocks are kept and given back when memory ends; then the message says who holds what."""
    driver, context = fresh(memory_bytes=1 << 20)
    allocator = CUDAAllocator("CUDA", context)
    block = allocator.alloc(1 << 19)
    allocator.free(block, 1 << 19)
    assert allocator.cached == 1 << 19
    again = allocator.alloc(1 << 19)
    assert again is block
    allocator.free(again, 1 << 19)
    big = allocator.alloc(900 << 10)
    assert allocator.cached == 0
    with pytest.raises(OutOfMemory, match=r"CUDA: out of memory: .* asked"):
        allocator.alloc(900 << 10)
    allocator.free(big, 900 << 10)
    allocator.free_cache()
    assert driver.used == [0, 0]


@needs_mock
def test_refusals() -> None:
    """Errors name the kernel, the sizes, the status, and what the driver's compiler says."""
    device = opened()
    context = device.context
    text = ADD_N.replace(b"trap;", b"trip %r1;")
    with pytest.raises(CompileError, match=r"CUDA driver, kernel k: compilation failed; .*\.ptx") as caught:
        CUDAProgram(context, "k", text)
    error = caught.value
    assert error.path is not None and Path(error.path).read_bytes() == error.source.encode() == text
    assert error.line is not None and "trip" in text.decode().splitlines()[error.line - 1]
    with pytest.raises(CompileError, match="PTX line 1: "):
        CUDAProgram(context, "k", b"not a binary")
    with pytest.raises(DeviceError, match=r"the mock runs PTX only.*INVALID_IMAGE"):
        CUDAProgram(context, "k", b"\x7fELF...")
    with pytest.raises(CompileError, match=r"the text is for sm_120, the device is sm_90"):
        CUDAProgram(context, "k", b".version 8.7\n.target sm_120\n.address_size 64\n")
    with pytest.raises(DeviceError, match="the kernel absent: NOT_FOUND"):
        CUDAProgram(context, "absent", ADD_N)
    out = block_of(device, [0] * 16)
    program = CUDAProgram(context, "pairs", ADD_N)
    with pytest.raises(DeviceError, match=r"kernel pairs: launch of .* blocks of \(65, 1, 1\); a block of it may"):
        program(out, out, local_size=(65, 1, 1))
    with pytest.raises(ValueError, match="cannot allocate -1 bytes"):
        device.allocator.alloc(-1)
    with pytest.raises(OutOfMemory, match="CUDA: out of memory"):
        device.allocator.alloc(1 << 60)


@needs_mock
def test_a_kernel_that_fails() -> None:
    """It is reported where somebody waits, and the device is lost from then on."""
    driver, context = fresh()
    program = CUDAProgram(context, "fails", ADD_N)
    assert program() is None
    with pytest.raises(DeviceError, match=r"waiting for mock GPU 0: LAUNCH_FAILED \(719\)"):
        context.synchronize()
    assert driver.error == "kernel fails: it trapped"
    with pytest.raises(DeviceError, match="LAUNCH_FAILED"):
        program()


@needs_mock
def test_nothing_grows() -> None:
    """Launches leave nothing behind, nor do programs and graphs that are dropped."""
    with Context(DEV="MOCK+CUDA:PTX"):
        items, inputs, _ = captured(SIZE)
        device, state = Device["CUDA"], mock("sm_90")
        items[0].run()
        gc.collect()  # what other tests left in cycles
        before = state.objects
        for _ in range(2000):
            items[1].run()
        graph = CUDAGraph(items, inputs)
        graph(inputs, {}, wait=True)
        program = CUDAProgram(device.context, "add_n", ADD_N)  # type: ignore[attr-defined]
        assert state.objects > before
        del graph, program
        gc.collect()
        assert state.objects == before


@needs_mock
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_loses_the_device() -> None:
    """A child that uses its parent's device is told so; what it drops is the parent's."""
    _, context = fresh()
    program = CUDAProgram(context, "fails", ADD_N)
    allocator = CUDAAllocator("CUDA", context)
    block = allocator.alloc(64)
    child = os.fork()
    if child == 0:
        told = 1
        try:
            context.synchronize()
        except DeviceError as error:
            told = 0 if "was opened before this process was forked" in str(error) else 2
        program.__del__()
        allocator.free_cache()
        os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    host = bytearray(64)
    allocator.copyin(block, memoryview(bytes(range(64))))
    allocator.copyout(memoryview(host), block)
    assert host == bytes(range(64))


@needs_mock
def test_the_mock_checks() -> None:
    """What a driver would refuse, or what would crash, is refused."""
    state, context = fresh()
    driver = context.driver
    host = ctypes.create_string_buffer(64)
    assert driver.cuMemcpyHtoDAsync_v2(4096, host, 64, context.stream) == api.INVALID_VALUE
    assert driver.cuMemFree_v2(4096) == api.INVALID_VALUE
    assert driver.cuStreamSynchronize(12345) == api.INVALID_HANDLE
    assert driver.cuInit(1) == api.INVALID_VALUE
    assert driver.error_name(1 << 20) == "unknown error"
    assert state.launches == 0
    results = []
    thread = threading.Thread(target=lambda: results.append(driver.cuStreamSynchronize(context.stream)))
    thread.start()
    thread.join()
    assert results == [201]  # no context in that thread


@needs_mock
def test_what_is_no_memory_any_more() -> None:
    """A kernel that gets memory which was freed loses the device, as it may on a real one."""
    state, context = fresh()
    allocator = CUDAAllocator("CUDA", context)
    kept, gone = allocator.alloc(64), allocator.alloc(64)
    program = CUDAProgram(context, "pairs", ADD_N)
    program(kept, gone, local_size=(1, 1, 1))
    allocator.free(gone, 64, BufferOptions(nolru=True))
    context.synchronize()
    stale = CUDAMemory(0x12340, 64)
    program(kept, stale, local_size=(1, 1, 1))
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS \(700\); the device is lost to this process"):
        context.synchronize()
    assert state.error == "pairs: 0x12340 is no memory, or none any more"
    with pytest.raises(DeviceError, match="the device is lost"):
        allocator.copyin(kept, memoryview(bytes(64)))


@needs_mock
def test_arguments_are_counted() -> None:
    device = opened()
    program = CUDAProgram(device.context, "add_n", ADD_N)
    block = block_of(device, [0] * 4)
    assert program.parameters == 4
    with pytest.raises(DeviceError, match="kernel add_n takes 4 arguments, got 3"):
        program(block, block, vals=(1,))
    state, context = fresh()
    other = CUDAProgram(context, "pairs", ADD_N)
    empty, address = (ctypes.c_void_p * 2)(), ctypes.c_uint64()
    given = (ctypes.c_void_p * 2)(*[ctypes.addressof(address)] * 2)
    for shared_bytes, params in ((0, empty), (0, None), (1 << 16, given)):
        code = context.driver.cuLaunchKernel(
            other.function, 1, 1, 1, 1, 1, 1, shared_bytes, context.stream, params, None
        )
        assert code == api.INVALID_VALUE
    assert state.launches == 0


# copies and kernels on two streams


@needs_mock
def test_a_batch_arrives_while_the_one_before_is_computed() -> None:
    state, context = fresh()
    allocator = CUDAAllocator("CUDA", context)
    first, second, out = (allocator.alloc(64) for _ in range(3))
    program = CUDAProgram(context, "add_n", ADD_N)
    size = {"global_size": (16, 1, 1), "vals": (0, 1)}
    allocator.copyin(first, pack(list(range(16)), dtypes.int32))
    program(out, first, **size)  # type: ignore[arg-type]
    allocator.copyin(second, pack([100] * 16, dtypes.int32))
    kernels: Stream = state._handles[context.stream]
    context.wait(second.arrived)
    assert kernels.done == 0  # the copy is there, and nothing was computed for it
    allocator.copyin(first, pack([7] * 16, dtypes.int32))  # is used by the kernel: the copy waits for it
    context.wait(first.arrived)
    assert kernels.done > 0
    host = bytearray(64)
    allocator.copyout(memoryview(host), out)
    assert list(unpack(memoryview(host), dtypes.int32)) == list(range(1, 17))


@needs_mock
@pytest.mark.parametrize("waits", [False, True])
def test_few_events_mark_the_kernels_that_copies_may_wait_for(waits: bool) -> None:
    """Of marks that no copy waits for the last few are kept; those that a copy has waited for are used again."""
    state, context = fresh()
    allocator = CUDAAllocator("CUDA", context)
    used, beside = (allocator.alloc(64) for _ in range(2))
    program = CUDAProgram(context, "add_n", ADD_N)
    for block in (used, beside):
        allocator.copyin(block, pack([0] * 16, dtypes.int32))
    program(used, used, global_size=(16, 1, 1), vals=(0, 1))
    before = state.objects
    for _ in range(5 * MOST_MARKS):
        program(used, used, global_size=(16, 1, 1), vals=(0, 1))
        allocator.copyin(used if waits else beside, pack([0] * 16, dtypes.int32))
    assert state.objects - before <= (1 if waits else MOST_MARKS + 1)


@pytest.mark.drawn(4)
@needs_mock
@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_copies_and_kernels(seed: int) -> None:
    """Copies in and out, kernels, and copies between two devices: memory is as if they came one after the other.

    The mock does nothing before somebody waits for it: a wait that is missing would show.
    """
    choose = random.Random(seed)
    mock = MockDriver("sm_80", memory_bytes=1 << 30)
    driver = Driver(mock.functions().__getitem__)
    api.start(driver)
    allocators = [CUDAAllocator(f"CUDA:{n}", CUDAContext(driver, n)) for n in range(2)]
    programs = [CUDAProgram(allocator.context, "add_n", ADD_N) for allocator in allocators]
    blocks = [[allocator.alloc(64) for _ in range(4)] for allocator in allocators]
    known = [[[0] * 16 for _ in range(4)] for _ in range(2)]
    for device, allocator in enumerate(allocators):
        for block in blocks[device]:
            allocator.copyin(block, pack([0] * 16, dtypes.int32))
    for step in range(120):
        device, a, b = choose.randrange(2), choose.randrange(4), choose.randrange(4)
        allocator, mine, values = allocators[device], blocks[device], known[device]
        match choose.choice(["in", "in", "kernel", "kernel", "kernel", "peer", "out", "part"]):
            case "in":
                values[a] = [choose.randrange(1000) for _ in range(16)]
                allocator.copyin(mine[a], pack(values[a], dtypes.int32))
            case "kernel":
                programs[device](mine[b], mine[a], global_size=(16, 1, 1), vals=(0, step))
                values[b] = [v + step for v in values[a]]
            case "part":
                part = allocator.offset(mine[a], 16, 32)
                programs[device](part, part, global_size=(4, 1, 1), vals=(1, 0))
                values[a] = [*values[a][:8], *(v + 10 for v in values[a][8:12]), *values[a][12:]]
            case "peer":
                other = 1 - device
                source: Any = allocators[other]
                assert allocator.transfer(mine[a], blocks[other][b], 64, source)
                values[a] = list(known[other][b])
            case "out":
                host = bytearray(64)
                allocator.copyout(memoryview(host), mine[a])
                assert list(unpack(memoryview(host), dtypes.int32)) == values[a], f"step {step}"
    for device, allocator in enumerate(allocators):
        for block, expected in zip(blocks[device], known[device], strict=True):
            host = bytearray(64)
            allocator.copyout(memoryview(host), block)
            assert list(unpack(memoryview(host), dtypes.int32)) == expected


@needs_mock
def test_as_many_blocks_at_once_as_threads_and_memory_allow() -> None:
    """Of a kernel with shared memory and of one without: one more block would not fit."""
    _, context = fresh("sm_80")
    shared = ADD_N.replace(b"{", b"{ .shared .align 16 .b8 kept[20000];", 1)
    threads_of_all = memory_of_all = 0
    for code, nbytes in ((ADD_N, 0), (shared, 20_000)):
        program = CUDAProgram(context, "add_n", code)
        for threads in (1, 31, 64, 100, 513, 1024):
            count = program.blocks_at_once(threads)
            threads_of_all, memory_of_all = max(threads_of_all, count * threads), max(memory_of_all, count * nbytes)
            more = (count + 1) * threads > 2048 or (count + 1) * nbytes > 163 << 10 or count == 32
            assert count and more, (nbytes, threads, count)
        assert program.blocks_at_once(1025) == 0
    assert threads_of_all <= 2048 and memory_of_all <= 163 << 10


@needs_mock
def test_more_shared_memory_than_a_kernel_can_declare() -> None:
    """A square of 128 x 128 floats is turned in 66 KiB."""
    n = 128
    with Context(DEV="MOCK+CUDA:PTX"):
        device = Device["CUDA"]
        assert device.renderer is not None
        assert device.renderer.target.shared_bytes == 227 << 10
        x = ast.load(1, f32, ShapeTracker.from_shape((n, n)).permute((1, 0)))
        sink = kernel([(x, n * n)], [(f32, n * n)])
        text = "mark(i1, LOCAL); split(i0, 16, UPCAST); mark(i0, LOCAL); share(0, -)"
        actions = [parse_action(part) for part in text.split(";")]
        spec = compile_ast(sink, device.renderer, actions=actions)
        assert ".extern .shared" in spec.src
        runner = CompiledRunner(spec, device)
        assert isinstance(runner.program, CUDAProgram)
        assert runner.program.dynamic_bytes > 64 << 10
        assert runner.program.blocks_at_once(1024) == 2
        source = buffer_with("CUDA", [float(i) for i in range(n * n)], f32)
        out = Buffer("CUDA", n * n, f32).allocate()
        ExecItem(runner, [out, source]).run()
        graph = CUDAGraph([ExecItem(runner, [out, source])])
        graph([], {}, wait=True)
        got = unpack(out.copyout(memoryview(bytearray(4 * n * n))), f32)
        assert got == [float(i % n * n + i // n) for i in range(n * n)]
    _, context = fresh("sm_75")
    with pytest.raises(DeviceError, match=r"kernel k: 70000 bytes of shared memory; mock GPU 0 has 65536"):
        CUDAProgram(context, "k", b".version 7.0\n.target sm_75\n.address_size 64\n.extern .shared .align 16 .b8 s[];\n"
                                  b".visible .global .align 1 .b8 k_takes_70000_shared;\n.visible .entry k() { ret; }")


# graphs


def with_vectors(sink: LazyOp) -> CompiledRunner:
    """A runner whose kernel loads and stores four floats at once."""
    device = Device["CUDA"]
    assert device.renderer is not None
    runner = CompiledRunner(compile_ast(sink, device.renderer, actions=[parse_action("split(i0, 4, VECTOR)")]), device)
    assert isinstance(runner.program, CUDAProgram)
    assert runner.program.vectors
    return runner


def captured(count: int) -> tuple[list[ExecItem], list[Buffer], Buffer]:
    """x + y, then three times a + a: the items, their inputs, and the result."""
    shape = ShapeTracker.from_shape((count,))
    x, y = ast.load(1, f32, shape), ast.load(2, f32, shape)
    add = with_vectors(kernel([(ast.alu(Ops.ADD, x, y), count)], [(f32, count)] * 2))
    double = with_vectors(kernel([(ast.alu(Ops.ADD, x, x), count)], [(f32, count)]))
    inputs = [buffer_with("CUDA", [float(i) for i in range(count)], f32) for _ in range(2)]
    chain = [Buffer("CUDA", count, f32).allocate() for _ in range(4)]
    items = [ExecItem(add, [chain[0], *inputs])]
    items += [ExecItem(double, [chain[i + 1], chain[i]]) for i in range(3)]
    return items, inputs, chain[-1]


@needs_mock
def test_a_profile_shows_each_kernel_of_a_graph(tmp_path: Path) -> None:
    """With the times of each, in order; the graph itself is no span of the device."""
    with Context(DEV="MOCK+CUDA:PTX"):
        items, inputs, result = captured(SIZE)
        graph = CUDAGraph(items, inputs)
        with profile(tmp_path / "trace.json") as recorded:
            ExecItem(graph, [*inputs]).run()
        found = [event for event in recorded.events if event.category == "device"]
        assert [event.name for event in found] == [item.prg.name for item in items]
        assert all(event.end > event.start for event in found)
        assert all(first.end <= then.start for first, then in itertools.pairwise(found))
        assert "flops" in found[0].args
        assert unpack(result.as_buffer(), f32) == [16.0 * i for i in range(SIZE)]


@needs_mock
def test_a_kernel_of_a_graph_is_shown_no_longer_than_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the device's clock tells."""
    with Context(DEV="MOCK+CUDA:PTX"):
        items, inputs, _ = captured(SIZE)
        graph = CUDAGraph(items, inputs)
        told = iter([0.0, 1e-9, 3600.0, 1e-9])
        for runner in graph.runners:
            monkeypatch.setattr(runner, "launch", lambda *_: next(told))
        with profile(tmp_path / "trace.json") as recorded:
            begin = time.perf_counter_ns()
            ExecItem(graph, [*inputs]).run()
            end = time.perf_counter_ns()
        found = [event for event in recorded.events if event.category == "device"]
        assert all(begin <= event.start <= event.end <= end for event in found)
        assert [event.end - event.start for event in found[:2]] == [0, 1]
        assert found[2].start >= found[1].end


@needs_mock
def test_graph_replays_with_other_inputs() -> None:
    with Context(DEV="MOCK+CUDA:PTX"):
        items, inputs, result = captured(SIZE)
        graph = CUDAGraph(items, inputs)
        assert graph.edges == [[], [0], [1], [2]]
        assert graph.num_kernels == 4
        launches = mock("sm_90").launches
        for wait in (False, True):
            seconds = graph(inputs, {}, wait=wait)
            assert (seconds is not None) == wait
            assert unpack(result.as_buffer(), f32) == [16.0 * i for i in range(SIZE)]
        others = [buffer_with("CUDA", [1.0] * SIZE, f32), buffer_with("CUDA", [0.5] * SIZE, f32)]
        graph(others, {})
        assert unpack(result.as_buffer(), f32) == [12.0] * SIZE
        # the same buffer twice, and a part that begins where no vector may
        graph([others[0], others[0]], {})
        assert unpack(result.as_buffer(), f32) == [16.0] * SIZE
        wide = buffer_with("CUDA", [float(i) for i in range(2 * SIZE)], f32)
        graph([wide.view(SIZE, f32, 4), wide.view(SIZE, f32, 8)], {})
        assert unpack(result.as_buffer(), f32) == [8.0 * (2 * i + 3) for i in range(SIZE)]
        assert mock("sm_90").launches == launches + 4 * 5
        with pytest.raises(ValueError, match="graph of 4 kernels takes 2 buffers, got 1"):
            graph(others[:1], {})


@needs_mock
def test_graph_with_variables() -> None:
    """Values of variables, and the number of blocks that they decide."""
    with Context(DEV="MOCK+CUDA:PTX"):
        n = Variable("n", 1, 4096)
        x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((n,)))
        value = ast.alu(Ops.ADD, x, ast.symbol(n, dtypes.int32, (n,)))
        runner = get_runner(Device["CUDA"], kernel([(value, n)], [(dtypes.int32, 4096)], [4096]))
        source = buffer_with("CUDA", list(range(4096)), dtypes.int32)
        out = buffer_with("CUDA", [0] * 4096, dtypes.int32)
        graph = CUDAGraph([ExecItem(runner, [out, source])], [source], {n: 1})
        for number in (3, 4096, 17):
            graph([source], {n: number})
            assert unpack(out.as_buffer(), dtypes.int32)[:number] == [i + number for i in range(number)]


@needs_mock
def test_graph_refuses() -> None:
    with Context(DEV="MOCK+CUDA:PTX"):
        items, inputs, _ = captured(SIZE)
        numpy = Buffer("NUMPY", 8, f32).allocate()
        x = ast.load(1, f32, ShapeTracker.from_shape((8,)))
        stranger = get_runner(Device["NUMPY"], kernel([(x, 8)], [(f32, 8)]))
        with pytest.raises(DeviceError, match="is no kernel of a CUDA device"):
            CUDAGraph([*items, ExecItem(stranger, [numpy, numpy])], inputs)
        wide = Buffer("CUDA", 2 * SIZE, f32).allocate()
        runner = items[-1].prg
        with pytest.raises(DeviceError, match="begins at no multiple of 16 bytes"):
            CUDAGraph([ExecItem(runner, [wide.view(SIZE, f32, 4), inputs[0]])])
        assert CUDAGraph([])([], {}, wait=True) == 0.0


# opening


@needs_mock
def test_through_the_graph_of_tensors() -> None:
    with Context(DEV="MOCK+CUDA:PTX"):
        storage = Storage("CUDA", 6, f32, buffer_with("CUDA", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f32))
        x = LazyBuffer.from_storage(storage, (2, 3))
        total = x.alu(Ops.MUL, x).reduce(Ops.ADD, (1,))
        realize([total])
        assert total.storage is not None
        assert unpack(buffer_of(total.storage).as_buffer(), f32) == [14.0, 77.0]


@needs_mock
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DeviceUnavailable, match="the device CUDA:9 is not available .* the driver has 2 devices"):
        CUDADevice("CUDA:9", MOCK)
    with pytest.raises(DeviceUnavailable, match="of which DEV chooses 1"):
        CUDADevice("CUDA:1", DevEntry("CUDA", renderer="PTX", iface="MOCK", indices=(1,)))
    chosen = CUDADevice("CUDA", DevEntry("CUDA", renderer="PTX", iface="MOCK", indices=(1,)))
    assert chosen.context.name == "mock GPU 1"
    assert chosen.opened_facts().arch == "mock GPU 1 (sm_90)"


def test_what_an_entry_may_say() -> None:
    assert CUDADevice.unavailable(DevEntry("CUDA", renderer="LLVM")) == "it has no renderer LLVM; there are CUDA, PTX"
    assert CUDADevice.unavailable(DevEntry("CUDA", iface="KFD")) == "it has no interface KFD; there are DRIVER and MOCK"
    assert "ARCH is a compute capability" in str(CUDADevice.unavailable(DevEntry("CUDA", arch="gfx90a")))
    assert list(CUDADevice.facts(DevEntry("CUDA")).interfaces) == ["DRIVER", "MOCK"]


def problem_with(**variables: str) -> str:
    code = "from tg_runtime import Device; print(next(r.problem for r in Device.table() if r.name == 'CUDA'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_without_a_driver() -> None:
    assert problem_with(CUDA_LIBRARY="/nowhere/libcuda.so.1") == (
        "the library that CUDA_LIBRARY names cannot be loaded: /nowhere/libcuda.so.1"
    )


def test_a_driver_that_is_too_old(tmp_path: Path) -> None:
    """A library that is no CUDA driver, or one of long ago, lacks functions: the first of them is named."""
    libm = ctypes.util.find_library("m")
    if libm is None:
        pytest.skip("there is no math library to pretend with")
    assert problem_with(CUDA_LIBRARY=libm) == "the CUDA driver is older than 11.4: it lacks cuInit"

    def old(name: str) -> object:
        functions = MockDriver().functions()
        if name == "cuDriverGetVersion":

            def answer(version: object) -> int:
                version[0] = 11020  # type: ignore[index]
                return 0

            return ctypes.CFUNCTYPE(ctypes.c_int, *api.PROTOTYPES[name])(answer)
        return functions[name]

    with pytest.raises(DeviceError, match=r"the driver is for CUDA 11\.2; it must be for 11\.4 or later"):
        api.start(Driver(old))
    with pytest.raises(DeviceError, match="the driver library lacks cuGraphLaunch"):
        Driver(lambda name: MockDriver().functions()[name if name != "cuGraphLaunch" else ""])


@needs_mock
def test_a_device_that_is_lost_in_the_middle_of_a_graph() -> None:
    """The kernels before are done, those behind are not, and every later call says that the device is lost."""
    state = MockDriver("sm_80", memory_bytes=1 << 30)
    driver = Driver(state.functions().__getitem__)
    api.start(driver)
    context = CUDAContext(driver, 0)
    allocator = CUDAAllocator("CUDA", context)
    first, last = allocator.alloc(64), allocator.alloc(64)
    add, fails = CUDAProgram(context, "add_n", ADD_N), CUDAProgram(context, "fails", ADD_N)
    graph = driver.object("cuGraphCreate", 0)
    before: list[int] = []
    kept = []
    for program, bufs in ((add, (first, first)), (fails, ()), (add, (last, first))):
        arguments = Arguments(len(bufs), 2 * bool(bufs))
        arguments.set(bufs, (0, 5) if bufs else ())
        kept.append(arguments)
        pointers = ctypes.cast(arguments.pointers, ctypes.POINTER(ctypes.c_void_p))
        params = api.KernelNodeParams(program.function, 1, 1, 1, 1, 1, 1, 0, pointers)
        handles = (ctypes.c_void_p * max(len(before), 1))(*before[-1:])
        node = driver.object("cuGraphAddKernelNode", graph, handles, len(before[-1:]), ctypes.byref(params))
        before.append(node)
    allocator.copyin(first, memoryview(bytes(64)))
    allocator.copyin(last, memoryview(bytes(64)))
    context.order.before_kernel((first, last))
    driver.check(driver.cuGraphLaunch(driver.object("cuGraphInstantiateWithFlags", graph, 0), context.stream), "launch")
    with pytest.raises(DeviceError, match=r"LAUNCH_FAILED \(719\); the device is lost to this process"):
        context.synchronize()
    assert state.error == "kernel fails: it trapped"
    assert ctypes.string_at(first.address, 4) == b"\5\0\0\0"
    assert ctypes.string_at(last.address, 4) == bytes(4)
    with pytest.raises(DeviceError, match="the device is lost"):
        allocator.copyout(memoryview(bytearray(64)), first)
    allocator.free(first, 64)  # nothing is left to give back, and nothing is said
    allocator.free(last, 64)
    allocator.free_cache()


@needs_mock
@pytest.mark.parametrize("call", ["cuDeviceTotalMem_v2", "cuDeviceGet", "cuDevicePrimaryCtxRetain"])
def test_the_stand_in_has_no_other_devices(call: str) -> None:
    driver, _ = fresh()
    functions = driver.functions()
    for device in (-1, driver.devices, 99):
        result = functions[call].argtypes[0]._type_()
        assert functions[call](ctypes.byref(result), device) == api.INVALID_DEVICE
