"""A process that runs workloads in one library, told what to do by lines of JSON on its standard input.

    python -m bench.worker LIBRARY THREADS

Answers are lines of JSON on what was its standard output; whatever a library prints goes to standard error. A process
for each library keeps their thread pools, allocators and signal handlers out of one another's way, and a crash in one
leaves the others alone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Case, Unsupported
from .turns import LibraryTurn, Turn, open_turn

RUNS = 5
BATCH_S = 100e-6
MOST_SAMPLES = 1000


def peak_bytes() -> int | None:
    """The greatest resident size since :func:`forget_peak`; None where the system does not say."""
    return _status("VmHWM:")


def resident_bytes() -> int | None:
    """The resident size; None where the system does not say."""
    return _status("VmRSS:")


def _status(field: str) -> int | None:
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def forget_peak() -> None:
    """Makes the present size the greatest so far."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def sample(call: Callable[[], Any], seconds: float, batch: int) -> tuple[list[float], list[float]]:
    """Calls again and again for about ``seconds``.

    Returns:
      seconds of a call, and seconds of processor time of a call in all threads; each the mean of ``batch`` calls.
    """
    samples, processor = [], []
    clock, used = time.perf_counter, time.process_time
    end = clock() + seconds
    while True:
        before, start = used(), clock()
        for _ in range(batch):
            call()
        now = clock()
        samples.append((now - start) / batch)
        processor.append((used() - before) / batch)
        if now >= end or len(samples) >= MOST_SAMPLES:
            return samples, processor


class Worker:
    """The library, and the workload that is open in it."""

    def __init__(self, library: str, threads: int) -> None:
        self.name, self.threads = library, threads
        self.turn: Turn | None = None
        self.case: Case | None = None

    def hello(self) -> dict[str, Any]:
        """Imports the library."""
        seconds = timed(self._import)
        assert self.turn is not None
        return {"version": self.turn.version, "import_s": seconds}

    def _import(self) -> None:
        self.turn = open_turn(self.name, self.threads)

    def open(self, workload: str, results: str = "") -> dict[str, Any]:
        """Builds a workload and runs it a few times.

        Args:
          workload: its name.
          results: the file that gets the values of the first and the last of these runs, or of all of them where the
            workload has a state; none if empty.

        Returns:
          ``build_s``, until there is something to run; ``first_s`` and ``warm_s``, of the first and the last run;
          ``mode``; ``peak_bytes``, by how much the process grew.
        """
        from .workloads import WORKLOADS

        self.close()
        if self.turn is None:
            self._import()
        assert self.turn is not None
        forget_peak()
        before = peak_bytes()
        start = time.perf_counter()
        case = self.turn.open(WORKLOADS[workload])
        built = time.perf_counter() - start
        seconds: list[float] = []
        kept: list[Any] = []
        for i in range(RUNS):
            start = time.perf_counter()
            out = case.run()
            seconds.append(time.perf_counter() - start)
            if results and (case.stateful or i in (0, RUNS - 1)):
                kept.append(np.array(case.host(out)))
        del out
        after = peak_bytes()
        if results:
            np.savez(results, *kept)
        self.case = case
        return {
            "build_s": built, "first_s": seconds[0], "warm_s": seconds[-1], "mode": case.mode,
            "peak_bytes": after - before if after is not None and before is not None else None,
        }  # fmt: skip

    def start(self, workload: str) -> dict[str, Any]:
        """Imports, builds and runs once: a cold start.

        Returns:
          ``import_s``, ``build_s``, ``first_s`` and ``second_s``, of the first two runs; ``first_cpu_s``, the processor
          time of the first in all threads.
        """
        from .workloads import WORKLOADS

        imported = timed(self._import)
        assert self.turn is not None
        start = time.perf_counter()
        case = self.turn.open(WORKLOADS[workload])
        built = time.perf_counter() - start
        used = time.process_time()
        first = timed(case.run)
        used = time.process_time() - used
        second = timed(case.run)
        return {"import_s": imported, "build_s": built, "first_s": first, "first_cpu_s": used, "second_s": second}

    def train(self, workload: str, steps: list[int], most_s: float) -> dict[str, Any]:
        """Imports, builds and runs again and again, in a process that does nothing else.

        Args:
          workload: its name.
          steps: after how many runs to look, in order.
          most_s: after as many seconds it has run often enough, if that was a few times.

        Returns:
          ``imported_bytes``, the resident size after the import; ``resident_bytes``, for each of ``steps`` that it came
          to; ``peak_bytes``, the most that it ever was; None where the system does not say. ``last_s``, of the last
          step.
        """
        from .workloads import WORKLOADS

        self._import()
        assert self.turn is not None
        imported = resident_bytes()
        case = self.turn.open(WORKLOADS[workload])
        sizes, seconds, end = [], 0.0, time.perf_counter() + most_s
        for done in range(1, steps[-1] + 1):
            seconds = timed(case.run)
            if done in steps:
                sizes.append(resident_bytes())
            if done >= RUNS and time.perf_counter() > end:
                break
        return {
            "imported_bytes": imported, "resident_bytes": sizes, "peak_bytes": peak_bytes(), "last_s": seconds,
        }  # fmt: skip

    def tensors(self, workload: str) -> dict[str, Any]:
        """The most that tensors took at once while a workload was built and run a few times: ``tensors_bytes``."""
        from .workloads import WORKLOADS

        self._import()
        turn = self.turn
        assert isinstance(turn, LibraryTurn)

        def run() -> None:
            case = turn.open(WORKLOADS[workload])
            for _ in range(RUNS):
                case.run()

        return {"tensors_bytes": turn.library.tensors(run)}

    def time(self, seconds: float) -> dict[str, Any]:
        """Runs the open workload for about ``seconds``.

        Returns:
          ``samples``, seconds of a run; ``processor``, processor time of a run in all threads, for each sample.
        """
        assert self.case is not None
        call = self.case.run
        once = timed(call)
        batch = max(1, min(10000, int(BATCH_S / max(once, 1e-9))))
        samples, processor = sample(call, seconds, batch)
        return {"samples": samples, "processor": processor}

    def close(self) -> dict[str, Any]:
        """Lets go of the open workload."""
        self.case = None
        gc.collect()
        return {}


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except Unsupported as reason:
            answer = {"unsupported": str(reason)}
        except ImportError as error:
            answer = {"absent": str(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
