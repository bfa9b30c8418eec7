"""The WEBGPU device on whatever adapter the library finds."""

from __future__ import annotations

import _ctypes
import ast
import functools
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tg_codegen.conformance import Case, Expected, cases, encode_buffer
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.render.wgsl import MOST_GROUPS, WGSLRenderer
from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops
from tg_lazy.cost import LIMITS, Limits
from tg_runtime import CompileError, DevEntry, DeviceError, DeviceUnavailable, OutOfMemory
from tg_runtime.backends.webgpu import dawn, library
from tg_runtime.backends.webgpu.device import WebGPUDevice, target
from tg_runtime.backends.webgpu.driver import DRIVERS
from tg_runtime.backends.webgpu.memory import WebGPUAllocator, WebGPUMemory
from tg_runtime.backends.webgpu.program import WebGPUProgram, WGSLCompiler
from tg_runtime.device.allocator import BufferOptions
from tg_runtime.testing import DeviceConformance

LIBRARIES = tuple(DRIVERS)
ADD_N = """struct Args { n: i32, m: i32 }
@group(0) @binding(0) var<storage, read_write> result: array<i32>;
@group(0) @binding(1) var<storage, read_write> a: array<i32>;
@group(0) @binding(2) var<uniform> args: Args;
@compute @workgroup_size(4) fn add_n(@builtin(global_invocation_id) at: vec3<u32>) {
  result[at.x] = a[at.x] + args.n * 10 + args.m;
}"""
NUMBERS = b"".join(i.to_bytes(4, "little") for i in range(16))


@functools.cache
def opened(kind: str) -> WebGPUDevice:
    return WebGPUDevice("WEBGPU", DevEntry("WEBGPU", iface=kind))


def skip_without(kind: str) -> None:
    """Skips the test where there is no such library, or no adapter for it."""
    problem = library.problem(kind)
    if problem is not None:
        pytest.skip(f"WebGPU: {problem}")
    try:
        opened(kind)
    except DeviceUnavailable as error:
        pytest.skip(str(error))


class Bench:
    """A device, and short ways to use it."""

    def __init__(self, device: WebGPUDevice) -> None:
        self.device, self.queue, self.allocator = device, device.queue, device.allocator
        self.adapter = device.queue.driver.adapter

    def load(self, name: str, source: str) -> WebGPUProgram:
        return WebGPUProgram(self.queue, name, WGSLCompiler(self.queue).compile(source))

    def block(self, raw: bytes) -> WebGPUMemory:
        """Memory with this content."""
        memory: WebGPUMemory = self.allocator.alloc(len(raw))
        self.allocator.copyin(memory, memoryview(raw))
        return memory

    def content(self, memory: WebGPUMemory, nbytes: int) -> bytes:
        host = bytearray(nbytes)
        self.allocator.copyout(memoryview(host), memory)
        return bytes(host)

    def integers(self, memory: WebGPUMemory, count: int = 16) -> list[int]:
        return list(memoryview(self.content(memory, 4 * count)).cast("i"))

    def run(self, renderer: WGSLRenderer, case: Case) -> list[bytes]:
        program = self.load(case.name, renderer.render(case.name, case.uops))
        host = [bytes(raw) for raw in case.buffers()]
        memory = [self.block(raw) for raw in host]
        program(*memory, vals=case.vals)
        return [self.content(m, len(raw)) for m, raw in zip(memory, host, strict=True)]


@pytest.fixture(params=LIBRARIES)
def gpu(request: pytest.FixtureRequest) -> Bench:
    """The device of each library; a test is skipped where there is none."""
    skip_without(request.param)
    return Bench(opened(request.param))


@functools.cache
def device_cases(half: bool) -> dict[str, Case]:
    return {case.name: case for case in cases(WGSLRenderer(half=half), lanes=4, relaxed=1e-6)}


# Vectors are taken apart: of them, the smallest and the widest elements.
VECTORS = ("alu_boolx4", "alu_int64x4", "cast_uint8x4", "cast_float32x4")


# Collecting tests must not start drivers: these are the cases of any device.
@pytest.mark.parametrize("name", [n for n in device_cases(False) if not n.endswith("x4") or n in VECTORS])
def test_renderer_conforms(gpu: Bench, name: str) -> None:
    case = device_cases(False)[name]
    case.check(gpu.run(WGSLRenderer(buffers=gpu.adapter.buffers), case))


def test_float16_where_the_device_has_it(gpu: Bench) -> None:
    if not gpu.adapter.half:
        assert not gpu.device.renderer.supports_dtype(dtypes.float16)  # type: ignore[union-attr]
        return
    renderer = WGSLRenderer(half=True, cast_half=gpu.queue.driver.cast_half)
    for name in [name for name in device_cases(True) if "float16" in name]:
        device_cases(True)[name].check(gpu.run(renderer, device_cases(True)[name]))


class Conformance(DeviceConformance):
    """WGSL has no 64-bit floats."""

    __test__ = False
    device = "WEBGPU"
    dtypes = tuple(d for d in dtypes.all if d is not dtypes.float64)
    library = ""

    def setup_method(self) -> None:
        skip_without(self.library)
        super().setup_method()


class TestDawn(Conformance):
    __test__ = True
    dev = "DAWN+WEBGPU"
    library = "DAWN"


class TestWgpuNative(Conformance):
    __test__ = True
    dev = "WGPU+WEBGPU"
    library = "WGPU"


# launches


def test_launch(gpu: Bench) -> None:
    """Buffers, then the variables in order; with ``wait``, the time on the device."""
    out, a, program = gpu.block(bytes(64)), gpu.block(NUMBERS), gpu.load("add_n", ADD_N)
    assert program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(3, 4)) is None
    assert gpu.integers(out) == [i + 34 for i in range(16)]
    seconds = program(out, a, global_size=(4, 1, 1), local_size=(4, 1, 1), vals=(-5, 6), wait=True)
    assert seconds is not None
    assert 0 < seconds < 10
    assert gpu.integers(out) == [i - 44 for i in range(16)]


def test_more_work_takes_longer(gpu: Bench) -> None:
    """By the device's clock, which is no slower than the host's."""
    loop = "var x = a[at.x];\n  for (var i = 0; i < args.n; i++) { x = x * 1664525 + (x >> 7u); }\n  result[at.x] = x;"
    start = ADD_N.index("result[at.x]")
    source = ADD_N[:start].replace("add_n", "spin") + loop + "\n}"
    program, out, a = gpu.load("spin", source), gpu.block(bytes(64)), gpu.block(NUMBERS)
    few = min(program(out, a, vals=(1, 0), wait=True) or 0.0 for _ in range(3))
    begin = time.perf_counter()
    many = program(out, a, vals=(1 << 20, 0), wait=True) or 0.0
    assert few < many <= 2 * (time.perf_counter() - begin)
    assert many > 1e-4, "a million dependent multiplications"


def test_groups_are_within_every_limit(gpu: Bench) -> None:
    """Whichever of them is the smallest."""
    for items, sizes in ((256, (256, 256, 64)), (1024, (128, 256, 64)), (64, (64, 64, 512))):
        found = target(replace(gpu.adapter, group_items=items, group_sizes=sizes)).local_max
        assert 0 < found <= min(items, *sizes)


def test_without_timestamps(gpu: Bench) -> None:
    """The host measures."""
    other = Bench(WebGPUDevice("WEBGPU", DevEntry("WEBGPU", iface=gpu.queue.driver.kind)))
    other.queue.driver.adapter = replace(other.adapter, timestamps=False)
    out, a = other.block(bytes(64)), other.block(NUMBERS)
    seconds = other.load("add_n", ADD_N)(out, a, global_size=(4, 1, 1), vals=(3, 4), wait=True)
    assert seconds is not None
    assert 0 < seconds < 10


def test_many_launches_in_order(gpu: Bench) -> None:
    """More than are submitted together, and more values than the ring of them holds: each sees its own."""
    program, out = gpu.load("add_n", ADD_N), gpu.block(bytes(64))
    a, b = gpu.block(bytes(64)), out
    for n in range(601):
        a, b = b, a
        program(b, a, global_size=(4, 1, 1), vals=(0, n))
    assert gpu.integers(b) == [sum(range(601))] * 16


def test_a_part_may_begin_anywhere(gpu: Bench) -> None:
    """What the kernel writes is in the whole, and nothing else is touched."""
    allocator, program = gpu.allocator, gpu.load("add_n", ADD_N)
    out, a = gpu.block(bytes(64)), gpu.block(NUMBERS)
    for _ in range(2):
        program(allocator.offset(out, 16, 12), allocator.offset(a, 16, 4), global_size=(1, 1, 1), vals=(0, 100))
    assert gpu.integers(out) == [0, 0, 0, 101, 102, 103, 104, *([0] * 9)]


@pytest.mark.parametrize("begin", [1, 2, 3, 4])
def test_bytes_of_a_part(gpu: Bench, begin: int) -> None:
    """Bytes share words with neighbours that are not to change: in copies as in kernels."""
    k = LinearBuilder()
    to, of = k.param(0, dtypes.uint8), k.param(1, dtypes.uint8)
    with k.range(5) as i:
        k.store(to, i, k.alu(Ops.ADD, k.load(of, i), k.const(1, dtypes.uint8)))
    program = gpu.load("next", WGSLRenderer().render("next", k.uops))
    allocator = gpu.allocator
    out, a = gpu.block(bytes(range(200, 216))), gpu.block(bytes(range(16)))
    program(allocator.offset(out, 5, begin), allocator.offset(a, 5, 9))
    want = bytearray(range(200, 216))
    want[begin : begin + 5] = range(10, 15)
    assert gpu.content(out, 16) == bytes(want)
    part = allocator.offset(out, 3, begin)
    assert gpu.content(part, 3) == bytes(want[begin : begin + 3])
    allocator.copyin(part, memoryview(b"abc"))
    want[begin : begin + 3] = b"abc"
    assert gpu.content(out, 16) == bytes(want)


def test_bytes_of_different_work_items(gpu: Bench) -> None:
    """Every byte of a word is stored by another item, in another group, at the same time."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.uint8), k.param(1, dtypes.uint8)
    group, item = k.special("gidx0", 4096), k.special("lidx0", 2)
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, item, k.const(4096)), group)
    k.store(out, at, k.alu(Ops.MUL, k.load(a, at), k.const(3, dtypes.uint8)))
    source, memory = os.urandom(8192), gpu.block(b"\xa5" * 8192)
    program = gpu.load("thrice", WGSLRenderer().render("thrice", k.uops))
    for _ in range(5):
        program(memory, gpu.block(source), global_size=(4096, 1, 1))
    assert gpu.content(memory, 8192) == bytes(3 * byte % 256 for byte in source)


def test_one_buffer_twice(gpu: Bench) -> None:
    """A range may be read under two slots, and be read where another part of its buffer is written."""
    k = LinearBuilder()
    out, a, b = (k.param(slot, dtypes.int32) for slot in range(3))
    with k.range(4) as i:
        k.store(out, i, k.alu(Ops.ADD, k.load(a, i), k.load(b, i)))
    program = gpu.load("sums", WGSLRenderer().render("sums", k.uops))
    allocator, whole = gpu.allocator, gpu.block(NUMBERS)
    program(allocator.offset(whole, 16, 48), allocator.offset(whole, 16, 0), allocator.offset(whole, 16, 0))
    assert gpu.integers(whole) == [*range(12), 0, 2, 4, 6]
    program(allocator.offset(whole, 16, 0), allocator.offset(whole, 16, 16), allocator.offset(whole, 16, 24))
    assert gpu.integers(whole)[:4] == [10, 12, 14, 16]


def test_what_is_only_read_is_not_written_back(gpu: Bench) -> None:
    """Of two ranges that share bytes the kernel sees a copy of one, of which its results are not overwritten."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    with k.range(4) as i:
        k.store(out, i, k.alu(Ops.ADD, k.load(a, i), k.const(100)))
    program = gpu.load("more", WGSLRenderer().render("more", k.uops))
    whole = gpu.block(NUMBERS)
    program(gpu.allocator.offset(whole, 16, 0), gpu.allocator.offset(whole, 16, 8))
    assert gpu.integers(whole) == [102, 103, 104, 105, *range(4, 16)]


def test_more_buffers_than_a_shader_has(gpu: Bench) -> None:
    """The rest are packed into one, of every size of element, and what is written comes back."""
    kinds = (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.bool)
    k = LinearBuilder()
    outs = [k.param(slot, d) for slot, d in enumerate(kinds)]
    ins = [k.param(len(kinds) + slot, d) for slot, d in enumerate(kinds)]
    scale = k.variable("scale", 0, 9)
    with k.range(3) as i:
        for out, of, d in zip(outs, ins, kinds, strict=True):
            x = k.load(of, i)
            by = scale if d is dtypes.int32 else k.cast(scale, d)
            k.store(out, i, x if d is dtypes.bool else k.alu(Ops.MUL, x, by))
    rows = [[1, 0, 1] if d is dtypes.bool else [-1, 0, 1] for d in kinds]
    rows = [[abs(v) for v in row] if dtypes.is_unsigned(d) else row for row, d in zip(rows, kinds, strict=True)]
    want = [
        Expected(d.name, d, [(bool(v) if d is dtypes.bool else type(dtypes.as_const(0, d))(7 * v),) for v in row])
        for row, d in zip(rows, kinds, strict=True)
    ]
    inputs = [encode_buffer([dtypes.as_const(v, d) for v in row], d) for row, d in zip(rows, kinds, strict=True)]
    case = Case("scaled", k.uops, want, inputs, [7])
    for buffers in (3, 4, 8):
        text = WGSLRenderer(buffers=buffers).render("scaled", k.uops)
        assert text.count("var<storage") == buffers
        case.check(gpu.run(WGSLRenderer(buffers=buffers), case))


def test_more_groups_than_a_dimension_has(gpu: Bench) -> None:
    k = LinearBuilder()
    out = k.param(0, dtypes.int32)
    x, y = k.special("gidx0", MOST_GROUPS + 2), k.special("gidx1", 2)
    at = k.alu(Ops.ADD, k.alu(Ops.MUL, y, k.const(MOST_GROUPS + 2)), x)
    k.store(out, at, at)
    count = 2 * (MOST_GROUPS + 2)
    out_memory = gpu.block(b"\xff" * (4 * count + 64))
    program = gpu.load("numbers", WGSLRenderer().render("numbers", k.uops))
    program(out_memory, global_size=(MOST_GROUPS + 2, 2, 1))
    assert gpu.integers(out_memory, count + 16) == [*range(count), *([-1] * 16)]


def test_work_group_memory(gpu: Bench) -> None:
    """Work-items hand values to one another, bools and 64-bit integers too."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int64), k.param(1, dtypes.int64)
    item = k.special("lidx0", 16)
    tile = k.scratch("tile", dtypes.int64, 16, AddrSpace.LOCAL)
    odd = k.scratch("odd", dtypes.bool, 16, AddrSpace.LOCAL)
    x = k.load(a, item)
    one = k.const(1, dtypes.int64)
    k.store(tile, item, k.alu(Ops.MUL, x, x))
    k.store(odd, item, k.alu(Ops.CMPEQ, k.alu(Ops.AND, x, one), one))
    k.barrier()
    there = k.alu(Ops.SUB, k.const(15), item)
    value = k.load(k.after(tile), there)
    k.store(out, item, k.alu(Ops.WHERE, k.load(k.after(odd), there), value, k.alu(Ops.NEG, value)))
    numbers = [(i - 8) * 300_000_007 for i in range(16)]
    out_memory, program = gpu.block(bytes(128)), gpu.load("turned", WGSLRenderer().render("turned", k.uops))
    program(out_memory, gpu.block(bytes(encode_buffer(numbers, dtypes.int64))), local_size=(16, 1, 1))
    want = [n * n if n % 2 else -n * n for n in reversed(numbers)]
    assert list(memoryview(gpu.content(out_memory, 128)).cast("q")) == want


def test_copyin_takes_what_is_there_now(gpu: Bench) -> None:
    """The caller may change the memory as soon as copyin is back; what cannot be written can be read."""
    memory, source = gpu.block(bytes(4096)), bytearray(4096)
    for _ in range(20):
        source[:] = b"a" * 4096
        gpu.allocator.copyin(memory, memoryview(source))
        source[:] = b"b" * 4096
        assert gpu.content(memory, 4096) == b"a" * 4096
    big = bytes(range(256)) * 80_000  # more than one part of a read
    assert gpu.content(gpu.block(big), len(big)) == big


def test_transfer(gpu: Bench) -> None:
    """Between buffers of the device without the host; other ranges are left to the caller."""
    allocator = gpu.allocator
    a, b = gpu.block(NUMBERS), gpu.block(bytes(64))
    assert allocator.transfer(b, a, 64, allocator)
    assert gpu.content(b, 64) == NUMBERS
    assert not allocator.transfer(allocator.offset(b, 4, 1), allocator.offset(a, 4, 0), 4, allocator)


def test_threads_share_a_program(gpu: Bench) -> None:
    """Each launch has the arguments that it was called with."""
    program, results = gpu.load("add_n", ADD_N), {}

    def work(number: int) -> None:
        out, a = gpu.block(bytes(64)), gpu.block(bytes(64))
        for _ in range(20):
            program(out, a, global_size=(4, 1, 1), vals=(number, 0))
        results[number] = gpu.integers(out)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [10 * n] * 16 for n in range(4)}


def test_memory_is_given_back(gpu: Bench) -> None:
    """Also what bind groups name: the cache of freed blocks can be emptied."""
    program, allocator = gpu.load("add_n", ADD_N), gpu.allocator
    assert isinstance(allocator, WebGPUAllocator)
    for _ in range(3):
        out, a = allocator.alloc(4096), allocator.alloc(4096)
        program(out, a, vals=(1, 2))
        allocator.free(out, 4096)
        allocator.free(a, 4096)
        allocator.free_cache()
        named = {buffer for _, bindings in gpu.queue._groups for buffer, _, _ in bindings}
        assert not named & {out.handle, a.handle}
    assert allocator.cached == 0


# faults


def test_a_rejected_source_is_kept(gpu: Bench, cache_folder: Path) -> None:
    """The message has the line, and the file in which the source is."""
    source = "@compute @workgroup_size(1) fn broken() {\n  let x: i32 = missing;\n}"
    with pytest.raises(CompileError, match=r"(?s):2:16 .*missing|missing.*:2:16") as caught:
        WGSLCompiler(gpu.queue).compile(source)
    assert caught.value.path is not None
    assert caught.value.path in str(caught.value)
    assert Path(caught.value.path).read_text() == source


def test_refusals(gpu: Bench) -> None:
    """Errors name the kernel, and what there is."""
    allocator, adapter = gpu.allocator, gpu.adapter
    program, memory = gpu.load("add_n", ADD_N), gpu.block(bytes(64))
    with pytest.raises(DeviceError, match=r"kernel add_n: launch of \(70000, 1, 1\) .* more than 65535"):
        program(memory, gpu.block(bytes(64)), global_size=(70000, 1, 1), vals=(1, 2))
    with pytest.raises(DeviceError, match="add_n takes 2 buffers and some values; got 1 and 0"):
        program(memory)
    wide = ADD_N.replace("@workgroup_size(4)", "@workgroup_size(1024, 1024)")
    with pytest.raises(DeviceError, match=r"(?s)add_n: pipeline: .*1024"):
        gpu.load("add_n", wide)
    hungry = "var<workgroup> tile: array<u32, 60000>;\n" + ADD_N.replace("args.n * 10", "i32(tile[at.x])")
    if gpu.queue.driver.kind == "DAWN":  # wgpu-native leaves it to the driver
        with pytest.raises(DeviceError, match=r"(?s)add_n: pipeline: .*240000"):
            gpu.load("add_n", hungry)
    bindings = "".join(
        f"@group(0) @binding({i}) var<storage, read_write> b{i}: array<u32>;\n" for i in range(adapter.buffers + 1)
    )
    with pytest.raises(DeviceError, match=rf"many has {adapter.buffers + 1} storage buffers"):
        gpu.load("many", bindings + "@compute @workgroup_size(1) fn many() { b0[0] = 1u; }")
    with pytest.raises(ValueError, match="cannot allocate -1 bytes"):
        allocator.alloc(-1)
    with pytest.raises(OutOfMemory, match=rf"WEBGPU: out of memory: .* no more than {adapter.binding_bytes} bytes"):
        allocator.alloc(1 << 50)
    with pytest.raises(TypeError, match="cannot use memory of the host in place"):
        allocator.alloc(64, BufferOptions(external_ptr=4096))
    program(memory, gpu.block(NUMBERS), global_size=(4, 1, 1), vals=(0, 1))  # nothing of this broke anything
    assert gpu.integers(memory) == [i + 1 for i in range(16)]


def test_a_block_is_as_large_as_a_kernel_may_see_it_and_no_larger(gpu: Bench) -> None:
    allocator = WebGPUAllocator("WEBGPU", gpu.queue)
    assert allocator.largest == min(gpu.adapter.buffer_bytes, gpu.adapter.binding_bytes)
    most = allocator.largest = 3 * allocator.granularity  # as if the device had no more
    for nbytes in (1, most - 1, most):
        block = allocator.alloc(nbytes)
        raw = os.urandom(nbytes)
        allocator.copyin(block, memoryview(raw))
        assert gpu.content(block, nbytes) == raw
        allocator.free(block, nbytes)
    allocator.free_cache()
    for nbytes in (most + 1, 2 * most):
        with pytest.raises(OutOfMemory, match=f"no more than {most} bytes of a buffer"):
            allocator.alloc(nbytes)


def test_a_lost_device(gpu: Bench) -> None:
    """Every use says so, and another device is not concerned."""
    other = Bench(WebGPUDevice("WEBGPU", DevEntry("WEBGPU", iface=gpu.queue.driver.kind)))
    memory, driver = other.block(bytes(64)), other.queue.driver
    if driver.kind == "DAWN":
        driver.library.wgpuDeviceForceLoss(driver.device, dawn.DeviceLostReason_Unknown, driver.string(b"pulled out"))
    else:  # it can only be given up
        driver._on_lost(None, 1, driver.string(b"pulled out"))
    for use in (
        lambda: other.allocator.copyin(memory, memoryview(bytes(64))),
        lambda: other.allocator.copyout(memoryview(bytearray(64)), memory),
        lambda: other.allocator.alloc(1 << 16),
        other.device.synchronize,
    ):
        with pytest.raises(DeviceError, match=r"the device was lost .*: pulled out"):
            use()
    assert gpu.content(gpu.block(NUMBERS), 64) == NUMBERS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_after_a_fork(gpu: Bench) -> None:
    """The child cannot use its parent's device, and is told so; the parent goes on."""
    memory = gpu.block(NUMBERS)
    code = (
        "import os, warnings; warnings.simplefilter('ignore')\n"
        "from tg_runtime import DevEntry, DeviceError\n"
        "from tg_runtime.backends.webgpu.device import WebGPUDevice\n"
        f"device = WebGPUDevice('WEBGPU', DevEntry('WEBGPU', iface={gpu.queue.driver.kind!r}))\n"
        "block = device.allocator.alloc(64)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try:\n"
        "        device.allocator.copyin(block, memoryview(bytes(64)))\n"
        "    except DeviceError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "device.allocator.copyin(block, memoryview(bytes(64)))\n"
        "print('parent')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "WebGPU: the device was opened before a fork; open it in the process that uses it", "parent",
    ]  # fmt: skip
    assert gpu.content(memory, 64) == NUMBERS


def test_no_adapter(gpu: Bench) -> None:
    """Without a Vulkan driver there is none; the message says what to install."""
    if sys.platform != "linux":
        pytest.skip("the adapter is not Vulkan's on this system")
    code = (
        "from tg_runtime import DevEntry\nfrom tg_runtime.backends.webgpu.device import WebGPUDevice\n"
        f"try: WebGPUDevice('WEBGPU', DevEntry('WEBGPU', iface={gpu.queue.driver.kind!r}))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    nothing = {"VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **nothing}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("DeviceUnavailable WebGPU has no adapter here")
    assert "apt install libvulkan1 mesa-vulkan-drivers" in done.stdout


def test_facts_of_the_adapter(gpu: Bench) -> None:
    assert gpu.device.opened_facts().arch == gpu.adapter.name


def test_limits_of_the_scheduler(gpu: Bench) -> None:
    """Kernels are cut so that a shader's buffers suffice."""
    WebGPUDevice("WEBGPU", DevEntry("WEBGPU", iface=gpu.queue.driver.kind))
    assert LIMITS["WEBGPU"].buffers == min(gpu.adapter.buffers, Limits().buffers)


# what needs no library


def test_what_an_entry_may_say() -> None:
    said = WebGPUDevice.unavailable
    assert said(DevEntry("WEBGPU", renderer="LLVM")) == "it has no renderer LLVM; there is WGSL"
    assert said(DevEntry("WEBGPU", iface="KFD")) == "it has no interface KFD; there are DAWN and WGPU"
    assert said(DevEntry("WEBGPU", arch="gfx90a")) == "it has no ARCH 'gfx90a'"


def test_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing devices says why, and loads nothing."""
    monkeypatch.setenv("DAWN_LIBRARY", "/nowhere/libdawn.so")
    said = "the library that DAWN_LIBRARY names is not there: /nowhere/libdawn.so"
    assert WebGPUDevice.unavailable(DevEntry("WEBGPU")) == said
    with pytest.raises(DeviceUnavailable, match=said):
        WebGPUDevice("WEBGPU", DevEntry("WEBGPU"))


def test_facts() -> None:
    assert set(WebGPUDevice.facts(DevEntry("WEBGPU")).interfaces) == set(DRIVERS)


def test_listing_opens_nothing() -> None:
    code = (
        "import sys; from tg_runtime import Device; from tg_runtime.backends.webgpu import library; "
        "print(len(Device.table()) > 1, library.load.cache_info().misses, 'pydawn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0", "False"]


def test_a_library_of_another_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = tmp_path / "libdawn.so"
    text.write_text("no library")
    for path, said in ((_ctypes.__file__, r"has no wgpu\w+: another version is needed"), (str(text), "does not load")):
        monkeypatch.setenv("DAWN_LIBRARY", path)
        library.load.cache_clear()
        try:
            with pytest.raises(DeviceError, match=said):
                library.load("DAWN")
        finally:
            library.load.cache_clear()


@pytest.mark.parametrize("delta", ["dawn", "wgpu"])
def test_what_both_headers_say_is_written_once(delta: str) -> None:
    def names(module: str) -> set[str]:
        text = Path(dawn.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        body = [node for node in ast.parse(text).body if not isinstance(node, ast.ImportFrom)]
        classes = [node.name for node in body if isinstance(node, ast.ClassDef)]
        return {*classes, *(t.id for node in body if isinstance(node, ast.Assign) for t in node.targets)}  # type: ignore[attr-defined]

    shared, own = names("header"), names(delta)
    assert len(shared) > 40 and own and not shared & own


@pytest.mark.skipif(find_spec("ctypesgen") is None, reason="ctypesgen is not installed")
@pytest.mark.skipif(
    find_spec("pydawn") is None or find_spec("wgpu") is None, reason="WebGPU: no WebGPU library: both are compared"
)
def test_bindings_are_what_the_headers_say() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.webgpu", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
