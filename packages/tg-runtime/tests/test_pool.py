"""The worker pool: every part of a job is run once, whatever else goes on."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from tg_dtype import dtypes
from tg_lazy import Context
from tg_runtime import Buffer, Device, DeviceError
from tg_runtime.backends.cpu import native
from tg_runtime.backends.cpu import pool as pools
from tg_runtime.backends.cpu.pool import Pool, ir_compiler, pool
from tg_runtime.backends.cpu.program import CPUProgram
from tg_runtime.host import processor as host
from tg_runtime.host.processor import core_count

pytestmark = pytest.mark.skipif(
    not native.supported() or ir_compiler() is None, reason="the worker pool wants Linux, and llvmlite or clang"
)

# adds n to element core, slowly
SLOW = """
define void @slow(ptr %p, i32 %n, i32 %core) {
entry:
  %i = sext i32 %core to i64
  %q = getelementptr i32, ptr %p, i64 %i
  br label %loop
loop:
  %j = phi i32 [ 0, %entry ], [ %j.next, %loop ]
  %old = load volatile i32, ptr %q
  %new = add i32 %old, 1
  store volatile i32 %new, ptr %q
  %j.next = add i32 %j, 1
  %more = icmp slt i32 %j.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def slow() -> CPUProgram:
    compiler = ir_compiler()
    assert compiler is not None
    return CPUProgram("slow", compiler.compile_cached(SLOW))


def zeros(count: int) -> Buffer:
    return Buffer("CPU", count, dtypes.int32).copyin(memoryview(bytes(4 * count)))


def read(buffer: Buffer) -> list[int]:
    return buffer.as_buffer(allow_zero_copy=False).cast("i").tolist()


def hammer(program: CPUProgram, seed: int, seconds: float, failures: list[str]) -> None:
    """Launches with random sizes and pauses, and compares."""
    r = random.Random(seed)
    buffer, expected = zeros(64), [0] * 64
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        threads, n = r.randint(2, 12), r.choice((1, 1, 1, 10, 100, 5000))
        program(buffer.opaque, global_size=(threads, 1, 1), vals=(n,))
        for core in range(threads):
            expected[core] += n
        if r.random() < 0.02:
            time.sleep(r.random() * 0.002)
            if read(buffer) != expected:
                failures.append(f"{read(buffer)} instead of {expected}")
                return
    if read(buffer) != expected:
        failures.append(f"{read(buffer)} instead of {expected}")



def test_it_is_made_when_a_compiler_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many threads it has is known before."""
    made: list[Pool] = []
    monkeypatch.setattr(pools, "_pools", made)
    cpu = Device["CPU"]
    count = cpu.steps_apart
    assert not made
    cpu.ready()
    cpu.ready()
    assert [one.threads for one in made] == [count]


@pytest.mark.parametrize(("threads", "spin", "callers"), [(2, 2000, 1), (5, 0, 1), (5, 2000, 3), (3, 0, 3)])
def test_every_part_runs_once(threads: int, spin: int, callers: int) -> None:
    compiler = ir_compiler()
    assert compiler is not None
    program = slow()
    with Context(CPU_SPIN=spin):
        program.pool = own = Pool(compiler, threads)
    failures: list[str] = []
    hammers = [threading.Thread(target=hammer, args=(program, i, 0.4, failures)) for i in range(callers)]
    for one in hammers:
        one.start()
    for one in hammers:
        one.join()
    own.close()
    assert failures == []


def test_workers_spin_for_a_time() -> None:
    compiler = ir_compiler()
    assert compiler is not None
    own = Pool(compiler, 2)
    assert own.turns(0) == 0

    def seconds(turns: int) -> float:
        start = time.perf_counter()
        own.pauses(turns)
        return time.perf_counter() - start

    assert 0.5e-3 < min(seconds(own.turns(1000)) for _ in range(20)) < 2e-3  # what others take only makes it longer


def tasks() -> set[str]:
    """The threads of this process; others than the pool's may come and go."""
    return set(os.listdir("/proc/self/task"))


def test_close_and_start_again() -> None:
    compiler = ir_compiler()
    assert compiler is not None
    program, buffer = slow(), zeros(8)
    program.pool = own = Pool(compiler, 3)
    assert not own.started
    for _ in range(3):
        before = tasks()
        program(buffer.opaque, global_size=(8, 1, 1), vals=(1,))
        assert own.started
        started = tasks() - before
        assert len(started) >= 2
        own.close()
        own.close()
        end = time.monotonic() + 5  # a thread that was joined may still be listed for a moment
        while len(tasks() & started) > len(started) - 2 and time.monotonic() < end:
            time.sleep(0.001)
        assert len(tasks() & started) <= len(started) - 2
    assert read(buffer) == [3] * 8


def test_forked_child_has_threads_of_its_own() -> None:
    program, buffer = slow(), zeros(8)
    program(buffer.opaque, global_size=(8, 1, 1), vals=(1,))
    child = os.fork()
    if child == 0:
        program(buffer.opaque, global_size=(8, 1, 1), vals=(1,))
        own = program.pool is not None and len(tasks()) >= program.pool.threads
        os._exit(0 if read(buffer) == [2] * 8 and own else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    program(buffer.opaque, global_size=(8, 1, 1), vals=(1,))
    assert read(buffer) == [2] * 8  # the parent's own memory and threads


def test_fork_while_another_thread_launches() -> None:
    program = slow()
    stop = threading.Event()

    def launch() -> None:
        buffer = zeros(8)
        while not stop.is_set():
            program(buffer.opaque, global_size=(8, 1, 1), vals=(2000,))

    busy = threading.Thread(target=launch)
    busy.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                buffer = zeros(8)
                program(buffer.opaque, global_size=(8, 1, 1), vals=(5,))
                os._exit(0 if read(buffer) == [5] * 8 else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        busy.join()


def test_process_ends_with_its_workers() -> None:
    code = (
        "from tg_runtime.backends.cpu.pool import pool\n"
        "one = pool(); one.start(); print(len(one._workers))\n"
        "import atexit; atexit.register(lambda: print('left'))"
    )
    environment = dict(os.environ, CPU_COUNT="4")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=30, check=True
    )
    assert done.stdout == "3\nleft\n"
    assert done.stderr == ""


def test_workers_do_not_take_signals() -> None:
    code = (
        "import signal, os, time\nfrom tg_runtime.backends.cpu.pool import pool\n"
        "pool().start()\n"
        "try:\n  os.kill(os.getpid(), signal.SIGINT); time.sleep(5); print('slept')\n"
        "except KeyboardInterrupt:\n  print('interrupted')"
    )
    environment = dict(os.environ, CPU_COUNT="4")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=30)
    assert done.stdout == "interrupted\n"


@pytest.mark.parametrize("arity", [0, 1, 6, 7, 24, 25, 60])
def test_arguments_travel(arity: int) -> None:
    """Registers, the stack, and thunks that are made when first wanted."""
    compiler = ir_compiler()
    assert compiler is not None
    parameters = ", ".join(["ptr %out", *(f"i32 %a{i}" for i in range(arity)), "i32 %core"])
    lines = ["%s0 = add i32 0, 0"]
    lines += [f"%m{i} = mul i32 %a{i}, {i + 1}\n%s{i + 1} = add i32 %s{i}, %m{i}" for i in range(arity)]
    body = "\n".join(lines)
    text = (
        f"define void @sum({parameters}) {{\n%i = sext i32 %core to i64\n%q = getelementptr i32, ptr %out, i64 %i\n"
        f"{body}\nstore i32 %s{arity}, ptr %q\nret void\n}}"
    )
    program, buffer = CPUProgram("sum", compiler.compile_cached(text)), zeros(5)
    values = [(-1) ** i * (i + 3) for i in range(arity)]
    program(buffer.opaque, global_size=(5, 1, 1), vals=values)
    assert read(buffer) == [sum((i + 1) * v for i, v in enumerate(values))] * 5
    program.pool = None  # as where nothing compiles the pool: one after the other
    program(buffer.opaque, global_size=(5, 1, 1), vals=[0] * arity)
    assert read(buffer) == [0] * 5


def test_core_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with Context(CPU_COUNT=0):
        available = core_count()
        assert 1 <= available <= len(os.sched_getaffinity(0))
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert core_count() == 1
        monkeypatch.setenv("OMP_NUM_THREADS", "1000,2")
        assert core_count() == available
        monkeypatch.setenv("OMP_NUM_THREADS", "many")
        assert core_count() == available
    with Context(CPU_COUNT=7):
        assert core_count() == 7


def test_affinity_is_respected() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from tg_runtime.host.processor import core_count; print(core_count())"
    environment = {k: v for k, v in os.environ.items() if k not in ("CPU_COUNT", "OMP_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1\n"


def test_pool_is_one() -> None:
    assert pool() is pool()


def test_sizes_of_a_launch() -> None:
    """A word holds how many threads there are: beyond 16 bits the job never ended; other sizes were not looked at."""
    program, buffer = slow(), zeros(4)
    for groups, items in [((65536, 1, 1), (1, 1, 1)), ((1, 2, 1), (1, 1, 1)), ((2, 1, 0x10000), (1, 1, 1)),
                          ((1, 1, 1), (2, 1, 1)), ((-1, 1, 1), (1, 1, 1))]:  # fmt: skip
        with pytest.raises(DeviceError, match="CPU: kernel slow: launch of "):
            program(buffer.opaque, global_size=groups, local_size=items, vals=(1,))
    assert program(buffer.opaque, global_size=(0, 1, 1), vals=(1,), wait=True) == 0.0
    assert read(buffer) == [0] * 4
    program(buffer.opaque, global_size=(3, 1, 1), vals=(5,))
    assert read(buffer) == [5, 5, 5, 0]


@pytest.mark.parametrize(("cpus", "want"), [(3, 3), (None, 1)])
def test_core_count_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch, cpus: int | None, want: int) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    monkeypatch.setattr("tg_runtime.host.processor._quota", lambda: None)
    with Context(CPU_COUNT=0):
        assert core_count() == want


@pytest.mark.parametrize(
    ("told", "want"),
    [("400000 100000", 4), ("250000 100000", 3), ("20000 100000", 1), ("max 100000", 8), ("", 8)],
)
def test_core_count_where_a_container_has_a_quota(monkeypatch: pytest.MonkeyPatch, told: str, want: int) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(host, "open", lambda path, encoding: io.StringIO(told), raising=False)
    with Context(CPU_COUNT=0):
        assert core_count() == want
    quota = host._quota()
    assert quota == (want if want < 8 else None)
