"""NULL and DISK, and BEAM on the CPU."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from tg_codegen import beam_search
from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, Ops, Storage, ast
from tg_runtime import (
    Buffer,
    BufferCopy,
    BufferOptions,
    CompiledRunner,
    DevEntry,
    Device,
    DeviceError,
    DeviceUnavailable,
    DevSyntaxError,
    GlobalCounters,
    buffer_of,
    get_runner,
    realize,
)
from tg_runtime.backends.cpu.device import CPUDevice
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.backends.shm.device import ShmDevice
from tg_runtime.cache import diskcache
from tg_runtime.compilers import llvm
from tg_runtime.kernels import beam
from tg_runtime.kernels.beam import result_key
from tg_runtime.testing.kernels import buffer_with, kernel, unpack
from tg_shape import ShapeTracker


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("NULL", "define void @"),
        ("NULL:LLVM", "define void @"),
        ("NULL:CLANG", "void "),
        ("NULL:CLANG:znver2", "void "),
        ("NULL:CL", "__kernel"),
        ("NULL:CUDA", "__global__"),
        ("NULL:CUDA:sm_90", "__global__"),
        ("NULL:CUDA:sm_100a", "__global__"),
        ("NULL:PTX", ".target sm_80"),
        ("NULL:PTX:sm_90", ".target sm_90"),
        ("NULL:LLVM:gfx1100", "define amdgpu_kernel void @"),
        ("NULL:LLVM:gfx942", "define amdgpu_kernel void @"),
        ("NULL:MSL", "kernel void"),
        ("NULL:WGSL", "@compute"),
        ("NULL:LLVM:aarch64,neoverse-v2", "define void @"),
    ],
)
def test_null_compiles_for_every_renderer(setting: str, text: str) -> None:
    with Context(DEV=setting):
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((64, 64)))
        sink = kernel([(ast.reduce(ast.alu(Ops.MUL, x, x), Ops.ADD, (1,)), 64)], [(dtypes.float32, 4096)])
        runner = get_runner(Device["NULL"], sink)
        assert isinstance(runner, CompiledRunner)
        assert text in runner.spec.src
        assert runner.lib.decode() == runner.spec.src
        assert Device["NULL"].compiler is not None
        assert Device["NULL"].compiler.disassemble(runner.lib) == runner.spec.src


needs_llvm = pytest.mark.skipif(not llvm.available(), reason="llvmlite is not here")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("NULL:MSL:apple9", "MSL has no architectures"),
        ("NULL:CL:foo", "CL has no architectures"),
        ("NULL:WGSL:x", "WGSL has no architectures"),
        ("NULL:CUDA:gfx", "'gfx' is not an architecture"),
        ("NULL:CUDA:sm_9999", "'sm_9999' is not an architecture"),
        ("NULL:PTX:sm_50", "'sm_50' is not an architecture from sm_75 on"),
        pytest.param("NULL:LLVM:nonsense", "no processor nonsense", marks=needs_llvm),
        pytest.param("NULL:CLANG:aarch64,+nonsense", "no feature nonsense", marks=needs_llvm),
        ("NULL:LLVM:a b", "'a b' names no processor"),
    ],
)
def test_null_refuses_an_architecture_that_there_is_not(setting: str, text: str) -> None:
    with Context(DEV=setting), pytest.raises(DevSyntaxError, match=text):
        Device["NULL"]


def test_null_realises_and_holds_nothing() -> None:
    with Context(DEV="NULL"):
        storage = Storage("NULL", 1 << 40, dtypes.float32)
        x = LazyBuffer.from_storage(storage, (1 << 40,))
        before = GlobalCounters.kernel_count
        y = x.alu(Ops.ADD, x)
        realize([y])
        assert GlobalCounters.kernel_count == before + 1
        part = Buffer("NULL", 16, dtypes.uint8).view(4, dtypes.uint8, 4)
        assert part.copyin(memoryview(b"abcd")).tobytes() == bytes(4)


def disk(path: Path, size: int) -> Buffer:
    return Buffer(f"DISK:{path}", size, dtypes.uint8)


def test_disk_reads_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "Some File.bin"
    disk(path, 10).copyin(memoryview(b"0123456789"))
    assert path.read_bytes() == b"0123456789"
    buffer = disk(path, 10)
    assert buffer.view(2, dtypes.uint16, 4).tobytes() == b"4567"
    buffer.as_buffer()[0] = 0  # a copy: a file that shrinks would end who reads a mapping
    assert path.read_bytes() == b"0123456789"
    buffer.view(1, dtypes.uint8, 0).copyin(memoryview(b"x"))
    assert path.read_bytes() == b"x123456789"
    assert disk(path, 4).tobytes() == b"x123"


@pytest.mark.usefixtures("collected")
def test_disk_counts_no_memory_and_reads_what_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    before = GlobalCounters.mem_used
    buffer = disk(path, 1 << 34)
    assert buffer.view(4, dtypes.uint8, (1 << 34) - 4).tobytes() == bytes(4)
    assert GlobalCounters.mem_used == before


def test_disk_copies_to_a_device(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(64)))
    x = LazyBuffer.from_storage(Storage(f"DISK:{path}", 64, dtypes.uint8), (64,))
    part = x.copy_to("NUMPY")
    realize([part])
    assert part.storage is not None
    assert buffer_of(part.storage).tobytes() == bytes(range(64))


def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    """Reading it as it was does not end the process, as touching its mapping would."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(200)) * 100)
    buffer = disk(path, 20_000)
    target = Buffer("NUMPY", 20_000, dtypes.uint8).allocate()
    copy = BufferCopy(20_000, "NUMPY", buffer.device)
    copy([target, buffer], {})
    assert target.tobytes() == bytes(range(200)) * 100
    path.write_bytes(b"short")
    with pytest.raises(DeviceError, match="weights has 5 bytes; 20000 are asked for"):
        copy([target, buffer], {})
    with pytest.raises(DeviceError, match="weights has 5 bytes; 300 are asked for"):
        buffer.view(100, dtypes.uint8, 200).tobytes()


COPIES = """
import sys
from tg_dtype import dtypes
from tg_runtime import Buffer, BufferCopy, Device
def held():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))
path, device, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
source = Buffer(f"DISK:{path}", size, dtypes.uint8)
target = Buffer(device, size, dtypes.uint8).allocate()
target.view(16, dtypes.uint8, 0).copyin(memoryview(bytes(16)))
Device[device].synchronize()
before = held()
BufferCopy(size, device, source.device)([target, source], {})
Device[device].synchronize()
print(held() - before)
part = bytes(target.view(1 << 16, dtypes.uint8, size - (1 << 16)).tobytes())
assert part == bytes(range(256)) * 256
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is told by Linux's /proc")
@pytest.mark.parametrize("setting", ["CPU", "CL", "CL::buffers", "MOCK+CUDA:PTX", "DAWN+WEBGPU"])
def test_a_file_goes_to_a_device_without_a_copy_in_the_host(setting: str, tmp_path: Path) -> None:
    """What the process holds grows by the device's memory (which is the host's here) and by chunks, not by the file."""
    import os
    import subprocess
    import sys

    from tg_runtime import parse_dev

    (entry,) = parse_dev(setting)
    problem = Device.load(entry.device).unavailable(entry)
    if problem is not None:
        pytest.skip(f"{'WebGPU' if entry.device == 'WEBGPU' else entry.device}: {problem}")
    size = 48 << 20
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * (size >> 8))
    done = subprocess.run(
        [sys.executable, "-c", COPIES, str(path), entry.device, str(size)], capture_output=True, text=True, timeout=100,
        env={**os.environ, "DEV": setting}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < size + (20 << 20)


def test_disk_refuses(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"abc")
    with pytest.raises(DeviceError, match="short has 3 bytes; 4 are asked for"):
        disk(short, 4).allocate()
    with pytest.raises(DeviceError, match=r"cannot write 4 bytes of .*missing"):
        disk(tmp_path / "missing" / "file", 4).copyin(memoryview(b"abcd"))
    with pytest.raises(DeviceError, match="wants a file"):
        Device["DISK"]
    assert disk(short, 0).tobytes() == b""


def test_disk_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "fixed"
    path.write_bytes(b"abcd")
    real = os.open

    def forbidding(name: str, flags: int, *rest: int, **where: Any) -> int:
        if flags & os.O_RDWR and str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *rest, **where)

    monkeypatch.setattr(os, "open", forbidding)
    buffer = disk(path, 4)
    assert buffer.tobytes() == b"abcd"
    with pytest.raises(DeviceError, match="fixed is read-only"):
        buffer.copyin(memoryview(b"wxyz"))


def test_reading_a_file_neither_makes_nor_opens_it_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    opened: list[int] = []
    real = os.open

    def noting(name: str, flags: int, *rest: int, **where: Any) -> int:
        opened.append(flags & os.O_ACCMODE)
        return real(name, flags, *rest, **where)

    monkeypatch.setattr(os, "open", noting)
    missing = disk(tmp_path / "missing", 4).allocate()
    with pytest.raises(DeviceError, match="there is no file .*missing: reading does not make one"):
        missing.tobytes()
    with pytest.raises(DeviceError, match="there is no file"):
        missing.as_buffer()
    assert not (tmp_path / "missing").exists()
    (tmp_path / "there").write_bytes(b"0123")
    source = disk(tmp_path / "there", 4)
    target = Buffer("NUMPY", 4, dtypes.uint8).allocate()
    BufferCopy(4, "NUMPY", source.device)([target, source], {})
    assert target.tobytes() == b"0123" and set(opened) == {os.O_RDONLY}
    (tmp_path / "empty").touch()
    with pytest.raises(DeviceError, match="has 0 bytes; 4 are asked for"):
        disk(tmp_path / "empty", 4).tobytes()
    missing.copyin(memoryview(b"abcd"))
    assert missing.tobytes() == b"abcd" == (tmp_path / "missing").read_bytes()


def test_a_file_is_written_in_place_from_a_device(tmp_path: Path) -> None:
    source = Buffer("NULL", 64, dtypes.uint8).allocate()
    target = disk(tmp_path / "out", 64)
    BufferCopy(64, target.device, "NULL")([target, source], {})
    assert (tmp_path / "out").read_bytes() == bytes(64)
    with pytest.raises(DeviceError, match="memory is read-only"):
        fixed = Buffer("NUMPY", 64, dtypes.uint8, options=BufferOptions(readonly=True)).allocate()
        BufferCopy(64, "NUMPY", "NULL")([fixed, source], {})


def test_processes_share_memory() -> None:
    import os
    import subprocess
    import sys
    from multiprocessing.resource_tracker import unregister
    from multiprocessing.shared_memory import SharedMemory

    if ShmDevice.unavailable(DevEntry("SHM")) is not None:
        pytest.skip("there is no shared memory here")
    name = f"tg-test-{os.getpid()}"
    device = ShmDevice(f"SHM:{name}", DevEntry("SHM"))
    allocator = device.allocator
    block = allocator.alloc(4)
    try:
        allocator.copyin(block, memoryview(b"abcd"))
        program = f"""
from tg_runtime import DevEntry
from tg_runtime.backends.shm.device import ShmDevice
memory = ShmDevice("SHM:{name}", DevEntry("SHM")).allocator
block = memory.alloc(4)
print(bytes(memory.as_buffer(block, 4)))
memory.copyin(block, memoryview(b"wxyz"))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.stdout == "b'abcd'\n", done.stderr
        view = allocator.as_buffer(block, 4)
        assert view is not None and bytes(view) == b"wxyz"
        theirs = SharedMemory(name)
        unregister(f"/{theirs.name}", "shared_memory")
        seen: memoryview | None = theirs.buf
        assert seen is not None and bytes(seen[:4]) == b"wxyz"
        theirs.close()
    finally:
        device.unlink()
        device.unlink()
    for wrong in ("SHM", "SHM:../x", "SHM:"):
        with pytest.raises(DeviceError, match="wants a name"):
            ShmDevice(wrong, DevEntry("SHM"))


needs_compiler = pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")


@needs_compiler
def test_beam_finds_and_remembers(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beam, "beam_search", functools.partial(beam_search, max_rounds=1))
    monkeypatch.setattr("tg_codegen.search.descent.PATIENCE", 5)
    monkeypatch.setattr("tg_codegen.search.beam.MOST_NEIGHBOURS", 8)
    monkeypatch.setattr(beam, "_TURNS_S", 0.1)  # whichever is the fastest
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((2, 12)))
    sink = kernel([(ast.reduce(x, Ops.ADD, (1,)), 2)], [(dtypes.float32, 24)])
    values = [float(i % 7) for i in range(24)]
    want = [sum(values[i * 12 : (i + 1) * 12]) for i in range(2)]
    with Context(DEV="CPU", BEAM=1, DEBUG=2):
        device = Device["CPU"]
        device.programs.clear()
        runner = get_runner(device, sink)
        assert "BEAM round 1" in capsys.readouterr().out
        device.programs.clear()
        again = get_runner(device, sink)
        assert "BEAM" not in capsys.readouterr().out
    assert isinstance(runner, CompiledRunner)
    assert isinstance(again, CompiledRunner)
    assert again.spec.actions == runner.spec.actions
    out, source = Buffer("CPU", 2, dtypes.float32), buffer_with("CPU", values, dtypes.float32)
    again.exec([out, source])
    assert unpack(out.as_buffer(), dtypes.float32) == want
    # what an older version wrote is not trusted
    for path in (cache_folder / "beam").rglob("*"):
        if path.is_file():
            path.unlink()
    assert device.renderer is not None
    key = result_key(device, device.renderer, sink, 1)
    illegal = b"split(r0, 4, LANES)\nsplit(r0, 4, LANES)"
    monkeypatch.setattr(beam, "beam_search", functools.partial(beam_search, max_rounds=0))
    for planted in (b"no such action", b"\xff\xfe", b"split(i7, 4, UPCAST)", illegal):
        diskcache.put("beam", key, planted)
        with Context(DEV="CPU", BEAM=1):
            device.programs.clear()
            get_runner(device, sink)
        assert diskcache.get("beam", key) not in (planted, None)
    device.programs.clear()


@needs_compiler
def test_settings_have_kernels_of_their_own() -> None:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((999,)))
    sink = kernel([(ast.alu(Ops.ADD, x, x), 999)], [(dtypes.float32, 999)])
    with Context(DEV="CPU"):
        tuned = get_runner(Device["CPU"], sink)
        assert get_runner(Device["CPU"], sink) is tuned
        with Context(NOOPT=1):
            plain = get_runner(Device["CPU"], sink)
        assert plain is not tuned
        assert isinstance(plain, CompiledRunner)
        assert plain.spec.actions == ()
        assert get_runner(Device["CPU"], sink) is tuned


def test_one_compiler_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in ({"A": None, "B": "no B"}, {"A": "no A", "B": None}, {"A": None, "B": None}):
        monkeypatch.setattr(CPUDevice, "renderers", lambda found=found: found)
        assert CPUDevice.unavailable(DevEntry("CPU")) is None
    monkeypatch.setattr(CPUDevice, "renderers", lambda: {"A": "no A", "B": "no B"})
    assert str(CPUDevice.unavailable(DevEntry("CPU"))).startswith("no A; no B; or use")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "available", lambda: False)
    with Context(DEV="CPU:LLVM:native,-fma"), pytest.raises(DeviceUnavailable, match="llvmlite is not installed"):
        Device["CPU"]
