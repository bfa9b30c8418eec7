"""Kernels on disk in their rendered form, and many kernels made at once."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tg_codegen import ProgramSpec, Renderer
from tg_codegen.ir.uop import UOp
from tg_dtype import dtypes
from tg_lazy import Context, LazyBuffer, LazyOp, Ops, ast
from tg_runtime import (
    Buffer,
    Compiled,
    CompileError,
    Compiler,
    Device,
    GlobalCounters,
    LRUAllocator,
    buffer_of,
    realize,
)
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.cache import content as cachecontent
from tg_runtime.cache import diskcache
from tg_runtime.kernels import generate, speccache
from tg_runtime.kernels import programs as kernels
from tg_runtime.kernels.compile_ahead import compile_ahead, foreseeing, foreseen, settle
from tg_runtime.kernels.generate import make_spec
from tg_runtime.kernels.programs import get_runner
from tg_runtime.telemetry import progress
from tg_runtime.testing.kernels import kernel
from tg_shape import ShapeTracker, Variable


def square(size: int) -> LazyOp:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((size,)))
    return kernel([(ast.alu(Ops.MUL, x, x), size)], [(dtypes.float32, size)])


def test_text_form_is_exact() -> None:
    for setting, awake in (("NULL:CL", 0), ("NULL:LLVM", 0), ("NULL:LLVM", 3), ("NULL:CUDA", 0)):
        with Context(DEV=setting, CCACHE=0):
            spec = make_spec(Device["NULL"], square(3000), awake)
        assert [len(b.shares) for b in spec.buffers] == [awake] * 2
        data = speccache.dump(spec)
        assert data is not None
        again = speccache.load(data)
        for field in ("name", "src", "buffers", "vars", "global_size", "local_size", "threads", "estimates", "actions"):
            assert getattr(again, field) == getattr(spec, field), field


@pytest.mark.fallbacks
def test_a_plan_that_failed_is_told_again_by_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain kernel in its place is right, but it is not kept on disk, from where nobody would tell."""
    def heuristic(nest: object, target: object) -> list[object]:
        raise RuntimeError("nothing is fast")

    ast = square(3001)
    with Context(DEV="NULL:CL", CCACHE=1, FALLBACK=1):
        monkeypatch.setattr("tg_codegen.compile.heuristic", heuristic)
        told = [make_spec(Device["NULL"], ast).fallback for _ in range(2)]
        assert told == ["RuntimeError: nothing is fast\nactions: none"] * 2
        monkeypatch.undo()
        assert not make_spec(Device["NULL"], ast).fallback


def total(n: Variable) -> LazyOp:
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((n,)))
    return kernel([(ast.reduce(x, Ops.ADD, (0,)), 1)], [(dtypes.float32, n.vmax)])


def test_kernels_with_variables_are_kept_with_their_bounds(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, real = [], generate._generate

    def counting(renderer: Renderer, sink: LazyOp) -> ProgramSpec:
        made.append(sink)
        return real(renderer, sink)

    monkeypatch.setattr(generate, "_generate", counting)
    ten, more = (total(Variable("n", 1, most)) for most in (10, 20))
    assert ten.key != more.key and ten.key != total(Variable("n", 2, 10)).key
    with Context(DEV="NULL"):
        first = make_spec(Device["NULL"], ten)
        again = make_spec(Device["NULL"], ten)
        assert len(made) == 1
        for field in ("name", "src", "buffers", "vars", "global_size", "local_size", "threads", "estimates", "actions"):
            assert getattr(again, field) == getattr(first, field), field
        assert again.vars == (Variable("n", 1, 10),)
        make_spec(Device["NULL"], more)
        assert len(made) == 2


def test_variables_whose_bounds_are_no_numbers_are_not_kept() -> None:
    n = Variable("n", 1, 10)
    sink = total(Variable("m", 1, n))
    with Context(DEV="NULL"):
        assert speccache.dump(make_spec(Device["NULL"], sink)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"k",
        b"k\n1\t1\t1\n1 1\n1\n0\t0\t0\n\n\n\nsrc",
        b"k\n1 1 1\n1 1 1\n1\n0\t0\t0\n\n\n\nsrc",
        b"k\n1\t1\t1\n1 1 1\nx\n0\t0\t0\n\n\n\nsrc",
        b"k\n1\t1\t1\n1 1 1\n1\n0\t0\t0\n0,1,1,1,float33\n\n\nsrc",
        b"k\n1\t1\t1\n1 1 1\n1\n0\t0\t0\n\n\nvar n 1 4;add #0 1\nsrc",
        b"k\n1\t1\t1\n1 1 1\n1\n0\t0\t0\n\n\nvar n 1\nsrc",
        b"\xff\xfe",
    ],
)
def test_other_forms_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        speccache.load(data)


def test_generated_once(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counting(renderer: Renderer, sink: LazyOp) -> ProgramSpec:
        made.append(sink)
        return real(renderer, sink)

    real = generate._generate
    monkeypatch.setattr(generate, "_generate", counting)
    with Context(DEV="NULL"):
        first = make_spec(Device["NULL"], square(77))
        again = make_spec(Device["NULL"], square(77))
        assert len(made) == 1
        assert again == first and first.uops == (), "none are kept, whether it was made or found"
        with Context(DEBUG=6):
            assert make_spec(Device["NULL"], square(77)).uops
        with Context(NOOPT=1):
            assert make_spec(Device["NULL"], square(77)).actions == ()
        with Context(CCACHE=0):
            make_spec(Device["NULL"], square(77))
        assert len(made) == 4
        for path in (cache_folder / "kernel").rglob("*"):
            if path.is_file():
                path.unlink()
        make_spec(Device["NULL"], square(77))
        assert len(made) == 5
    with Context(DEV="NULL:CL"):
        make_spec(Device["NULL"], square(77))
    assert len(made) == 6


def test_generator_identity_follows_the_code() -> None:
    identity = speccache.generator_identity()
    for part in ("compile.py", "ops.py", "view.py", "simplify.py"):
        assert f"{os.sep}{part}:" in identity


def test_prune(cache_folder: Path) -> None:
    for i in range(8):
        diskcache.put("t", diskcache.digest(str(i)), bytes(1 << 18))
        path = cache_folder / "t" / diskcache.digest(str(i))[:2] / diskcache.digest(str(i))[2:]
        os.utime(path, (i, i))
    assert diskcache.get("t", diskcache.digest("1")) is not None  # that is used again
    with Context(CACHEMB=2):
        cachecontent.prune()
        assert sum(path.is_file() for path in cache_folder.rglob("*")) == 5
        assert diskcache.get("t", diskcache.digest("0")) is None
        assert diskcache.get("t", diskcache.digest("1")) is not None
        assert diskcache.get("t", diskcache.digest("7")) is not None


class Slow(Compiler):
    """Rejects what a test says."""

    def __init__(self, reject: str = "nothing") -> None:
        super().__init__()
        self.reject, self.seen = reject, 0

    def compile(self, src: str) -> bytes:
        self.seen += 1
        if self.reject in src:
            raise CompileError("no")
        return src.encode()


def test_compile_ahead_makes_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        compiler = Slow()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        present = get_runner(device, square(5))
        GlobalCounters.reset()
        compile_ahead([(device, square(size)) for size in (5, 6, 7, 7, 8)])
        assert compiler.seen == 4
        assert GlobalCounters.compile_count == 3
        assert get_runner(device, square(5)) is present
        get_runner(device, square(7))
        assert compiler.seen == 4
        compile_ahead([(device, square(9))])
        assert compiler.seen == 4  # one alone gains nothing


def test_kernels_of_a_graph_are_compiled_before_the_first_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In other threads than the one that generates them."""

    class Seen(Slow):
        def compile(self, src: str) -> bytes:
            order.append(threading.current_thread())
            return super().compile(src)

    def run(*args: object, **options: object) -> float:
        order.append("run")
        return 0.0

    order: list[object] = []
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        monkeypatch.setattr(device, "compiler", Seen())
        monkeypatch.setattr(device, "programs", {})
        monkeypatch.setattr(device, "runtime", lambda name, binary: run)
        y = LazyBuffer.iota(7, dtypes.int32, "NULL")
        for size in (11, 13, 17):
            y = y.alu(Ops.MUL, y).contiguous().reduce(Ops.ADD, (0,)).contiguous().expand((size,))
        realize([y := y.contiguous()])
    kernels = order.count("run")
    assert kernels > 3 and order[-kernels:] == ["run"] * kernels
    assert len(order) > kernels and threading.main_thread() not in order


def test_compilers_have_their_turn_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watching(Slow):
        def compile(self, src: str) -> bytes:
            turns.append(sys.getswitchinterval())
            return super().compile(src)

    turns: list[float] = []
    before = sys.getswitchinterval()
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        monkeypatch.setattr(device, "compiler", Watching())
        monkeypatch.setattr(device, "programs", {})
        compile_ahead([(device, square(size)) for size in (80, 81)])
    assert len(turns) == 2 and max(turns) < before / 2
    assert sys.getswitchinterval() == before and gc.isenabled()


def test_an_interrupt_stops_the_compilers(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was generated by then is on disk."""

    class Stopping(Slow):
        def compile(self, src: str) -> bytes:
            started.set()
            time.sleep(0.3)
            return super().compile(src)

    with Context(DEV="NULL"):
        device, started, real = Device["NULL"], threading.Event(), generate.make_spec
        compiler = Stopping()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        asked: list[LazyOp] = []

        def interrupted(device: Compiled, sink: LazyOp, awake: int, entries: list[tuple[str, bytes]]) -> ProgramSpec:
            asked.append(sink)
            if len(asked) == 6:
                started.wait(5)
                raise KeyboardInterrupt
            return real(device, sink, awake, entries)

        monkeypatch.setattr(generate, "make_spec", interrupted)
        before = threading.active_count()
        with pytest.raises(KeyboardInterrupt):
            compile_ahead([(device, square(size)) for size in range(30, 50)])
        assert threading.active_count() == before
        assert len(asked) == 6 and compiler.seen == 1 and not device.programs
        assert sum(path.is_file() for path in (cache_folder / "kernel").rglob("*")) == 5


class Held(Slow):
    """Compiles when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let = threading.Event(), threading.Event()

    def compile(self, src: str) -> bytes:
        self.begun.set()
        assert self.let.wait(60)
        return super().compile(src)


def test_an_interrupt_while_kernels_are_written_stops_the_compilers(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take no other kernel, and what was not written yet is written then."""
    with Context(DEV="NULL"):
        device, compiler, real = Device["NULL"], Held(), generate.keep_on_disk
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        interrupts, before = [KeyboardInterrupt], threading.active_count()

        def interrupted(entries: list[tuple[str, bytes]]) -> None:
            assert compiler.begun.wait(60)
            if interrupts:
                real(entries[:2])
                raise interrupts.pop()
            real(entries)
            compiler.let.set()

        monkeypatch.setattr(generate, "keep_on_disk", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compile_ahead([(device, square(size)) for size in range(130, 138)])
        assert threading.active_count() == before
        assert compiler.seen == 1 and not device.programs
        assert sum(path.is_file() for path in (cache_folder / "kernel").rglob("*")) == 8


def test_foreseen_kernels_are_compiled_before_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0):
        device, compiler = Device["NULL"], Held()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        threads, interval = threading.active_count(), sys.getswitchinterval()
        foreseen([(device, square(90))])
        with foreseeing(False):
            foreseen([(device, square(90))])
        assert threading.active_count() == threads, "nobody said that they will be wanted"
        GlobalCounters.reset()
        with foreseeing(True), foreseeing(False):
            foreseen([(device, square(size)) for size in (90, 91, 91)])
            assert compiler.begun.wait(60) and not device.programs, "while the program goes on"
            with Context(STRICT=1):
                foreseen([(device, square(90))])
        compiler.let.set()
        compile_ahead([(device, square(size)) for size in (90, 91, 92)])
        assert compiler.seen == GlobalCounters.compile_count == len(device.programs) == 4
        assert threading.active_count() == threads and sys.getswitchinterval() == interval
        kept = [get_runner(device, square(size)) for size in (90, 91, 92)]
        with Context(STRICT=1):
            kept.append(get_runner(device, square(90)))
        assert compiler.seen == 4 and len(set(kept)) == 4
        with foreseeing(True):
            foreseen([(device, square(size)) for size in (90, 93)])
        settle()
        assert compiler.seen == 5 and len(device.programs) == 5
        settle()


def test_all_cores_compile_once_nothing_is_generated_any_more(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then one generates; and what is generated goes to the disk, once."""
    most = []

    class Parallel(Held):
        parallel = 3

        def compile(self, src: str) -> bytes:
            begun.release()
            return super().compile(src)

    with Context(DEV="NULL"):
        device, compiler, begun = Device["NULL"], Parallel(), threading.Semaphore(0)
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        ready: list[threading.Thread] = []
        monkeypatch.setattr(device, "ready", lambda: ready.append(threading.current_thread()))
        with foreseeing(True):
            foreseen([(device, square(size)) for size in range(110, 118)])
        assert begun.acquire(timeout=60) and begun.acquire(timeout=60) and not begun.acquire(timeout=0.05)

        def let() -> None:
            most.append(begun.acquire(timeout=60))
            most.append(begun.acquire(timeout=0.05))
            compiler.let.set()

        letting = threading.Thread(target=let)
        letting.start()
        settle()
        letting.join()
        assert most == [True, False], "a third one, and no fourth"
        assert compiler.seen == len(device.programs) == 8
        assert ready and threading.current_thread() not in ready
        assert sum(path.is_file() for path in (cache_folder / "kernel").rglob("*")) == 8


@pytest.mark.parametrize("setting", [{"BEAM": 1}, {"DEBUG": 3}])
def test_where_the_order_matters_nothing_is_foreseen(setting: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0, **setting), foreseeing(True):
        device, compiler = Device["NULL"], Slow()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        foreseen([(device, square(size)) for size in (94, 95)])
        settle()
        assert compiler.seen == 0


def test_a_failure_that_was_foreseen_comes_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        monkeypatch.setattr(device, "compiler", Slow(reject=make_spec(device, square(1800)).name))
        monkeypatch.setattr(device, "programs", {})
        with foreseeing(True):
            foreseen([(device, square(size)) for size in (1800, 97)])
        settle()
        assert len(device.programs) == 1
        with pytest.raises(CompileError):
            get_runner(device, square(1800))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_fork_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose locks a child would find taken for ever; what the parent has foreseen both of them make."""
    with Context(DEV="NULL", CCACHE=0):
        device, compiler = Device["NULL"], Held()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        with foreseeing(True):
            foreseen([(device, square(size)) for size in range(100, 108)])
        assert compiler.begun.wait(60)
        threading.Timer(0.2, compiler.let.set).start()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                settle()
                os._exit(0 if compiler.seen == len(device.programs) == 8 else 1)
            finally:
                os._exit(2)
        settle()
        assert compiler.seen == len(device.programs) == 8
        assert os.waitpid(child, 0)[1] == 0


def test_who_never_asks_need_not_wait_at_the_end() -> None:
    program = """
import time
from tg_dtype import dtypes
from tg_lazy import Context, Ops, ast
from tg_runtime import Compiler, Device, foreseeing
from tg_runtime.kernels.compile_ahead import foreseen
from tg_runtime.testing.kernels import kernel
from tg_shape import ShapeTracker

class Slow(Compiler):
    def compile(self, src):
        time.sleep(0.5)
        return src.encode()

def square(size):
    x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((size,)))
    return kernel([(ast.alu(Ops.MUL, x, x), size)], [(dtypes.float32, size)])

with Context(DEV="NULL", CCACHE=0), foreseeing(True):
    Device["NULL"].compiler = Slow()
    foreseen([(Device["NULL"], square(size)) for size in range(3, 503)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr


def test_what_a_batch_leaves_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Resting(Slow):
        rested = 0

        def rest(self) -> None:
            assert not device.programs, "before the programs take memory"
            assert len(UOp._interned) <= before, "nothing is left of what they were generated by"
            self.rested += 1

    with Context(DEV="NULL", CCACHE=0):
        device, compiler = Device["NULL"], Resting()
        monkeypatch.setattr(device, "compiler", compiler)
        monkeypatch.setattr(device, "programs", {})
        gc.collect()
        UOp.sweep()
        before = len(UOp._interned)
        compile_ahead([(device, square(size)) for size in (70, 71)])
        assert compiler.rested == 1 and len(device.programs) == 2
        compile_ahead([(device, square(size)) for size in (70, 71)])
        assert compiler.rested == 1, "there was nothing to make"


@pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")
def test_the_compiler_gets_the_room_that_the_cache_takes(cache_folder: Path) -> None:
    with Context(DEV="CPU"):
        device = Device["CPU"]
        assert isinstance(device.allocator, LRUAllocator)
        made: list[int] = []
        for _ in range(2):
            device.allocator.free_cache()
            Buffer("CPU", 1 << 20, dtypes.float32).allocate().deallocate()
            assert device.allocator.cached == 4 << 20
            make_spec(device, square(79))
            made.append(device.allocator.cached)
        assert made == [0, 4 << 20], "but what is found on the disk needs none"


def test_a_device_keeps_no_more_runners_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        monkeypatch.setattr(device, "programs", {})
        monkeypatch.setattr(kernels, "CAPACITY", 3)
        made = [get_runner(device, square(size)) for size in range(60, 65)]
        assert list(device.programs.values()) == made[-3:]


class Terminal(io.StringIO):
    def __init__(self, real: bool) -> None:
        super().__init__()
        self.real = real

    def isatty(self) -> bool:
        return self.real


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize("after_s", [0.0, 100.0])
def test_progress_is_told_on_terminals_after_a_while(
    real: bool, after_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "AFTER_S", after_s)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    stream = Terminal(real)
    with progress.Progress("compiling kernels", 12, stream) as told:
        for n in (9, 10):
            told.tell(n)
    text = stream.getvalue()
    assert text == ("\rcompiling kernels: 9 of 12\rcompiling kernels: 10 of 12\r" + 27 * " " + "\r"
                    if real and not after_s else "")


def test_compile_ahead_leaves_failures_to_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(DEV="NULL", CCACHE=0):
        device = Device["NULL"]
        bad = make_spec(device, square(17)).name
        monkeypatch.setattr(device, "compiler", Slow(f"@{bad}("))
        monkeypatch.setattr(device, "programs", {})
        compile_ahead([(device, square(size)) for size in (16, 17, 1800)])
        assert len(device.programs) == 2
        with pytest.raises(CompileError):
            get_runner(device, square(17))


@pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")
def test_a_schedule_of_many_kernels() -> None:
    with Context(DEV="CPU", CCACHE=0):
        index = LazyBuffer.iota(40, dtypes.int32, "CPU")
        x = index
        outputs = []
        for step in range(1, 6):
            x = x.alu(Ops.ADD, LazyBuffer.const(step, dtypes.int32, (40,), "CPU")).gather(index)
            outputs.append(x)
        realize(outputs)
        for n, out in enumerate(outputs):
            assert out.storage is not None
            got = buffer_of(out.storage).as_buffer().cast("i").tolist()
            assert got == [i + (n + 1) * (n + 2) // 2 for i in range(40)]
