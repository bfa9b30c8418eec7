"""Forked and spawned processes, pools of them, more threads than cores, and none at all: see ``docs/processes.md``."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinytg import Context, Tensor

sys.path.append(str(Path(__file__).parent))  # a spawned process imports these functions by name
processes: Any = importlib.import_module("processes")
matrix, product, sample = processes.matrix, processes.product, processes.sample
total, trained = processes.total, processes.trained

METHODS = [
    pytest.param(method, marks=[pytest.mark.slow] if method == "spawn" else [])  # each process imports and loads anew
    for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def in_child(work: Callable[[], object]) -> int:
    """Forks, works in the child, and tells how it ended: 0 if well; the end is waited for a minute."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    timer = threading.Timer(60, os.kill, (child, 9))
    timer.start()
    try:
        return os.waitpid(child, 0)[1]
    finally:
        timer.cancel()


def check(seed: int) -> None:
    assert product(seed) < 1e-3
    assert trained(seed) == [seed + 10.0] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_computes() -> None:
    """The workers of the pool are the parent's; the child starts its own, and both go on."""
    check(1)
    a = matrix(5)
    x = Tensor(a).realize()
    pending = x + 1

    def work() -> None:
        check(2)
        assert np.allclose(pending.numpy(), a + 1)
        assert in_child(lambda: check(3)) == 0

    assert in_child(work) == 0
    check(4)
    assert np.allclose(pending.numpy(), a + 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_in_the_middle_of_the_work_of_threads() -> None:
    stop, errors = threading.Event(), []

    def busy() -> None:
        seed = 0
        while not stop.is_set():
            seed += 1
            try:
                assert product(seed) < 1e-3
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for seed in range(5):
            assert in_child(lambda seed=seed: check(seed)) == 0  # type: ignore[misc]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors, errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_pools_of_processes(method: str) -> None:
    """Two processes, each with as many threads as there are cores, finish and are right; data comes back as arrays."""
    assert product(0) < 1e-3
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert max(pool.map(product, range(1, 7), chunksize=1)) < 1e-3
        assert pool.map(trained, [1, 2]) == [[11.0] * 4, [12.0] * 4]
        assert [batch.tolist() for batch in pool.imap(sample, range(4))] == [[2.0 * n] * 8 for n in range(4)]
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        tensors = list(executor.map(total, [Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]))
    assert [t.item() for t in tensors] == [3.0, 7.0]


def test_more_threads_than_cores() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(product, range(16))) < 1e-3


def test_threads_have_devices_of_their_own() -> None:
    """A ``Context`` is the thread's that entered it."""
    turns = threading.Barrier(2)
    found: dict[str, set[str]] = {}

    def work(name: str) -> None:
        with Context(DEV=name):
            for _ in range(10):
                turns.wait()
                found.setdefault(name, set()).add((Tensor([1.0]) + 1).device)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("CPU", "NUMPY")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"CPU": {"CPU"}, "NUMPY": {"NUMPY"}}
    with Context(DEV="NUMPY"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(copy_context().run, lambda: Tensor([1.0]).device).result() == "NUMPY"


RACE = 200


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_racing_assignments_leave_one_of_the_values(device: str) -> None:
    x = Tensor([0.0] * 64, device=device).realize()
    errors: list[BaseException] = []
    looks: list[list[float]] = []

    def work(value: float) -> None:
        try:
            for n in range(RACE):
                x.assign(Tensor([value] * 64, device=device))
                if n % 3 == 0:
                    x.realize()
                elif n % 7 == 0:
                    looks.append(x.tolist())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(value),)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    looks.append(x.tolist())
    for values in looks:
        assert len(set(values)) == 1 and values[0] in (1.0, 2.0, 3.0, 4.0), values


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("device", ["CPU", "NUMPY"])
def test_racing_updates_leave_the_tensor_readable(device: str) -> None:
    """``x.assign(x + 1)`` reads and writes in two steps: some of the updates may be lost, the tensor is not."""
    x = Tensor([0.0] * 8, device=device).realize()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(RACE):
                x.assign(x + 1)
                x.realize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    values = x.tolist()
    assert len(set(values)) == 1
    assert 1 <= values[0] <= 3 * RACE


THREADLESS = """
from tg_codegen.search import beam, descent
from tinytg import Context, Tensor
from tg_runtime import DeviceError
from tg_runtime.kernels import beam as measured
descent.PATIENCE, beam.MOST_NEIGHBOURS, measured._TURNS_S = 5, 8, 0.1  # a short search has threads, too
x = Tensor.arange(90000, dtype="float32").reshape(300, 300) % 7
product = x @ x
assert product[3].tolist() == [sum(((900 + k) % 7) * ((300 * k + j) % 7) for k in range(300)) for j in range(300)]
assert abs(x.softmax().sum().item() - 300) < 0.1
with Context(BEAM=1):
    assert (x[:4] + 3).sum().item() == sum(n % 7 + 3 for n in range(1200))
try:
    (Tensor([1.0], device="HOSTQ") + 1).tolist()
except DeviceError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit of a stack is POSIX's")
def test_where_no_thread_can_be_started_one_does_the_work(tmp_path: Path) -> None:
    """The system refuses stacks of 64 TB: so none of C's threads starts, and none of Python's."""
    done = subprocess.run(
        ["sh", "-c", f'ulimit -s {1 << 36} && exec "$0" -c "$1"', sys.executable, THREADLESS],
        capture_output=True, text=True, timeout=100,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "DEV": "CPU", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no thread can be started to execute it: can't start new thread" in done.stdout
