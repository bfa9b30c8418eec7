"""Every name of the documents that tinytg began with is here, and does what they say of it."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_codegen import ProgramSpec
from tg_dtype import dtypes
from tg_lazy import Context, LazyOp, Ops, ast
from tg_runtime import (
    Buffer,
    BufferOptions,
    Compiled,
    CompiledASTRunner,
    Compiler,
    Device,
    ExecItem,
    GlobalCounters,
    Interpreted,
    InterpretedASTRunner,
    JITRunner,
    LRUAllocator,
    capture,
    get_runner,
    lower_schedule,
    uncaptured,
    update_stats,
)
from tg_runtime.backends.cpu.program import CPUProgram
from tg_shape import ShapeTracker, Variable
from tinytg import Tensor

_ROW = re.compile(r"^\| (?P<theirs>.+?) \| `(?P<here>[\w.]+)` \|", re.MULTILINE)

WANTED = """
Compiled Compiled.synchronize Compiled.get_linearizer Compiled.to_program Compiled.get_runner
Allocator Allocator.alloc Allocator.free Allocator.copyin Allocator.copyout
LRUAllocator LRUAllocator.alloc LRUAllocator.free LRUAllocator.free_cache
Buffer Buffer.copyin Buffer.fromCPU Buffer.toCPU
CPUProgram CPUProgram.__call__ CPUProgram.fxn CPUProgram.mem CPUProgram.helper_handle
Compiler Compiler.compile Compiler.compile_cached Compiler.disassemble Compiler.cachekey
Interpreted Interpreted.fxn_for_op Interpreted.synchronize Interpreted.codegen Interpreted.graph Interpreted.get_runner
JITRunner JITRunner.exec CompiledASTRunner
InterpretedASTRunner InterpretedASTRunner.fxn InterpretedASTRunner.op_estimate InterpretedASTRunner.mem_estimate
update_stats LazyBuffer ScheduleItem ScheduleItem.ast ScheduleItem.bufs lower_schedule ExecItem ExecItem.run
Tensor.from_blob dtypes.imagef _from_torch_dtype
""".split()


def rows(repository: Path) -> list[tuple[str, str]]:
    text = (repository / "docs" / "seed-names.md").read_text(encoding="utf-8")
    return [(found["theirs"], found["here"]) for found in _ROW.finditer(text)]


def imported(name: str) -> tuple[object, list[str]]:
    """The module of a dotted name, and what is left of the name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            return importlib.import_module(".".join(parts[:length])), parts[length:]
        except ModuleNotFoundError:
            continue
    raise AssertionError(f"{name}: no such module")


def test_the_page_has_every_name(repository: Path) -> None:
    theirs = {name for cell, _ in rows(repository) for name in re.findall(r"`([\w.]+)`", cell)}
    assert set(WANTED) <= theirs


def test_every_name_of_the_page_is_there(repository: Path, kernel: LazyOp) -> None:
    compiled, interpreted = Device["CPU"], Device["NUMPY"]
    runner = get_runner(compiled, kernel)
    assert isinstance(runner, CompiledASTRunner)
    # attributes that only objects have
    examples: dict[object, object] = {
        Compiled: compiled,
        Interpreted: interpreted,
        Compiler: compiled.compiler,
        CPUProgram: runner.program,
        InterpretedASTRunner: get_runner(interpreted, kernel),
    }
    found = rows(repository)
    assert len(found) > 80
    for _, name in found:
        here, rest = imported(name)
        for part in rest:
            assert hasattr(here, part) or (isinstance(here, type) and hasattr(examples.get(here), part)), name
            here = getattr(here, part, None)


@pytest.fixture
def kernel() -> LazyOp:
    """The sum of six numbers."""
    total = ast.reduce(ast.load(1, dtypes.float32, ShapeTracker.from_shape((6,))), Ops.ADD, (0,))
    buffers = (ast.BufferArg(dtypes.float32, 1), ast.BufferArg(dtypes.float32, 6))
    return ast.sink((ast.store(0, ShapeTracker.from_shape((1,)), total),), buffers)


@pytest.fixture(params=["CPU", "NUMPY"])
def summed(request: pytest.FixtureRequest) -> Iterator[Callable[[JITRunner], float]]:
    """Executes a runner of the kernel on the device that the parameter names; returns the sum."""

    def execute(runner: JITRunner) -> float:
        source = Buffer.fromCPU(request.param, np.arange(6, dtype=np.float32))
        out = Buffer(request.param, 1, dtypes.float32)
        seconds = runner.exec([out, source])
        assert isinstance(seconds, float) and seconds >= 0
        return float(out.toCPU()[0])

    execute.device = request.param  # type: ignore[attr-defined]
    with Context(DEV=""):
        yield execute


def test_get_runner_is_cached_and_executes(kernel: LazyOp, summed: Any) -> None:
    device = Device[summed.device]
    runner = device.get_runner(kernel)
    assert runner is device.get_runner(kernel)
    assert isinstance(runner, JITRunner)
    assert isinstance(runner, InterpretedASTRunner if isinstance(device, Interpreted) else CompiledASTRunner)
    assert summed(runner) == 15


def test_exec_takes_the_values_of_variables() -> None:
    n = Variable("n", 1, 6)
    part = ast.load(1, dtypes.float32, ShapeTracker.from_shape((6,)).shrink(((0, n),)))
    buffers = (ast.BufferArg(dtypes.float32, 1), ast.BufferArg(dtypes.float32, 6))
    store = ast.store(0, ShapeTracker.from_shape((1,)), ast.reduce(part, Ops.ADD, (0,)))
    runner = Device["CPU"].get_runner(ast.sink((store,), buffers))
    source, out = Buffer.fromCPU("CPU", np.arange(6, dtype=np.float32)), Buffer("CPU", 1, dtypes.float32)
    for size in (1, 4, 6):
        runner.exec([out, source], {n: size})
        assert out.toCPU()[0] == sum(range(size))


def test_exec_is_collected_and_can_be_replayed(kernel: LazyOp) -> None:
    source, out = Buffer.fromCPU("CPU", np.arange(6, dtype=np.float32)), Buffer("CPU", 1, dtypes.float32)
    runner = Device["CPU"].get_runner(kernel)
    items: list[ExecItem] = []
    with capture(items):
        runner.exec([out, source])
        with uncaptured():
            runner.exec([out, source])
    runner.exec([out, source])
    (item,) = items
    assert item.prg is runner and item.bufs == [out, source]
    source.copyin(np.ones(6, np.float32).data.cast("B"))
    item.run()
    assert out.toCPU()[0] == 6


@pytest.mark.parametrize("settings", [{}, {"NOOPT": 1}])
def test_to_program_of_get_linearizer_is_what_get_runner_makes(kernel: LazyOp, settings: dict[str, int]) -> None:
    device = Device["CPU"]
    with Context(**settings):
        linear = device.get_linearizer(kernel)
        assert isinstance(linear, ProgramSpec)
        assert linear.uops and linear.src and bool(linear.actions) == (not settings)
        program, runner = device.to_program(linear), device.get_runner(kernel)
    assert isinstance(program, CompiledASTRunner) and isinstance(runner, CompiledASTRunner)
    assert program is not runner and program.spec.src == runner.spec.src
    source, out = Buffer.fromCPU("CPU", np.arange(6, dtype=np.float32)), Buffer("CPU", 1, dtypes.float32)
    program.exec([out, source])
    assert out.toCPU()[0] == 15


def test_an_interpreted_device(kernel: LazyOp) -> None:
    device = Device["NUMPY"]
    assert isinstance(device, Interpreted)
    assert device.codegen is None and device.graph is None
    device.synchronize()  # returns, and that is all
    runner = device.get_runner(kernel)
    assert isinstance(runner, InterpretedASTRunner)
    assert runner.op_estimate == 6 and runner.mem_estimate == 28
    out, source = np.zeros(4, np.uint8), np.arange(6, dtype=np.float32).view(np.uint8)
    runner.fxn([out, source], {})
    assert out.view(np.float32)[0] == 15
    assert device.fxn_for_op[Ops.ADD](np.float32(1), np.float32(2)) == 3


def test_runners_have_both_names() -> None:
    assert issubclass(CompiledASTRunner, JITRunner) and issubclass(InterpretedASTRunner, JITRunner)


@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_from_and_to_the_cpu(device: str) -> None:
    numbers = np.arange(12, dtype=np.int16).reshape(3, 4)
    buffer = Buffer.fromCPU(device, numbers)
    assert (buffer.device, buffer.size, buffer.dtype) == (device, 12, dtypes.int16)
    assert buffer.toCPU().tolist() == list(range(12))
    assert buffer.copyin(numbers[::-1].copy().data.cast("B")) is buffer
    assert buffer.toCPU().reshape(3, 4).tolist() == numbers[::-1].tolist()
    shares = buffer.toCPU()
    buffer.copyin(memoryview(bytes(24)))
    assert shares.tolist() == [0] * 12, "no copy is made where the host can reach the memory"


class Blocks(LRUAllocator[bytearray]):
    """An allocator of a little memory, that notes what it takes and gives back."""

    def __init__(self, nbytes: int) -> None:
        super().__init__("BLOCKS")
        self.left, self.freed = nbytes, 0

    def _alloc(self, nbytes: int, options: BufferOptions) -> bytearray:
        if nbytes > self.left:
            raise MemoryError("no more")
        self.left -= nbytes
        return bytearray(nbytes)

    def _free(self, opaque: bytearray, options: BufferOptions) -> None:
        self.left += len(opaque)
        self.freed += 1

    def copyin(self, dest: bytearray, src: memoryview) -> None:
        dest[: src.nbytes] = src

    def copyout(self, dest: memoryview, src: bytearray) -> None:
        dest[:] = src[: dest.nbytes]


def test_an_lru_allocator_keeps_what_is_freed_until_memory_ends() -> None:
    allocator = Blocks(256)
    block = allocator.alloc(128)
    allocator.copyin(block, memoryview(b"abcd"))
    back = bytearray(4)
    allocator.copyout(memoryview(back), block)
    assert back == b"abcd"
    allocator.free(block, 128)
    assert allocator.freed == 0 and allocator.alloc(128) is block
    allocator.free(block, 128)
    large = allocator.alloc(192)  # does not fit beside the cached block
    assert allocator.freed == 1
    allocator.free(large, 192)
    allocator.free_cache()
    assert allocator.freed == 2 and allocator.left == 256 and allocator.cached == 0
    with Context(LRU=0):
        allocator.free(allocator.alloc(64), 64)
    assert allocator.freed == 3
    with pytest.raises(MemoryError):
        allocator.alloc(512)


def test_a_program_of_the_cpu() -> None:
    device = Device["CPU"]
    compiler = device.compiler
    assert compiler is not None
    add = Tensor([1.0, 2.0], device="CPU").realize() + 1
    (item,) = add.schedule()
    runner = device.get_runner(item.ast)
    assert isinstance(runner, CompiledASTRunner)
    program = runner.program
    assert isinstance(program, CPUProgram)
    assert isinstance(program.mem, mmap.mmap) and len(program.mem) > 0
    assert ctypes.cast(program.fxn, ctypes.c_void_p).value == program.address
    if Path("/lib/x86_64-linux-gnu/libgcc_s.so.1").exists():
        assert CPUProgram.helper_handle["__clear_cache"] and program.helper_handle["__clear_cache"]
    blocks = [device.allocator.alloc(8) for _ in range(2)]
    device.allocator.copyin(blocks[1], np.array([4.0, 5.0], np.float32).data.cast("B"))
    seconds = program(*blocks, vals=(), wait=True)
    assert seconds is not None and program(*blocks) is None
    out = bytearray(8)
    device.allocator.copyout(memoryview(out), blocks[0])
    assert np.frombuffer(out, np.float32).tolist() == [5.0, 6.0]


class Upper(Compiler):
    def __init__(self, cachekey: str | None) -> None:
        super().__init__(cachekey)
        self.calls = 0

    def compile(self, src: str) -> bytes:
        self.calls += 1
        return src.upper().encode()

    def disassemble(self, lib: bytes) -> str:
        return lib.decode().lower()


def test_a_compiler_keeps_binaries_under_its_key(tmp_path: Path) -> None:
    with Context(CACHEDIR=str(tmp_path)):
        compiler = Upper("upper-1")
        assert compiler.cachekey == "upper-1"
        assert compiler.compile_cached("abc") == compiler.compile_cached("abc") == b"ABC" and compiler.calls == 1
        assert Upper("upper-1").compile_cached("abc") == b"ABC"
        other, none = Upper("upper-2"), Upper(None)
        assert other.compile_cached("abc") == b"ABC" and other.calls == 1
        assert none.compile_cached("abc") == none.compile_cached("abc") == b"ABC" and none.calls == 2
    assert compiler.disassemble(b"ABC") == "abc"


def test_update_stats_counts_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    n = Variable("n", 1, 8)
    GlobalCounters.reset()
    update_stats("quiet", 10, 20, None, None, 2)
    assert capsys.readouterr().out == ""
    with Context(DEBUG=2):
        update_stats("sum_of_n", n * 3, n * 4, {n: 5}, 0.5, 3, jit=True, num_kernels=2, lra={"global_size": (4, 1, 1)})
    line = capsys.readouterr().out
    assert "sum_of_n" in line and "jit" in line and "3 bufs" in line and "global_size=(4, 1, 1)" in line
    assert GlobalCounters.global_ops == 25 and GlobalCounters.global_mem == 40
    assert GlobalCounters.kernel_count == 3 and GlobalCounters.time_sum_s == 0.5
    GlobalCounters.reset()


def test_a_schedule_is_lowered_and_run() -> None:
    x = Tensor([1.0, 2.0, 3.0], device="CPU").realize()
    items = (x * 2).schedule()
    assert [item.ast.op for item in items] == [Ops.SINK] and len(items[0].bufs) == 2
    (step,) = lower_schedule(items)
    assert isinstance(step.run(wait=True), float)
    out = step.bufs[0]
    assert out is not None and out.toCPU().tolist() == [2.0, 4.0, 6.0]
