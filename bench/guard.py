"""The regression guard: workloads of every kind beside what the machine itself does, in one process and in turns.

    python -m bench guard             # fails where one takes 1.3 times what it should
    python -m bench guard --most 2    # fails where one takes twice what it should: on a host that others share
    python -m bench guard --record    # writes what each should take: on a quiet machine, of code that is fast

A workload's cost is counted in the machine's own work: how many multiply-adds in registers, or bytes read or copied,
the machine does on the same threads in the time that the workload takes. Both take turns, so a machine that is slow or
busy is so for both. What the cost should be is recorded for machines of one kind: processor, lanes of a vector and
threads. On others a workload may take 2.6 times what was recorded first. What is too slow is opened and measured again
after everything else: a neighbour on the same host may slow down what its caches hold for seconds, and nothing else.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tg_runtime.host.arch import CPUArch
from tg_runtime.host.processor import core_count

from .case import Case
from .libraries.with_numpy import Numpy
from .libraries.with_tinytg import TinyTG
from .limits import Machine
from .measure import difference
from .processor import processor
from .workloads import WORKLOADS

RECORD = Path(__file__).with_name("guard.json")
MOST = 1.3
"""How many times what it should a workload may take, on a quiet machine."""
ELSEWHERE = 2.6
"""How many times at least it may take on a machine of a kind for which nothing was recorded: what is, is of another."""
TURNS = 9
TURN_S = 0.05
ATTEMPTS = 8
ROUNDS = 3
"""How often what is too slow is opened and measured again, after everything else."""
PAUSE_S = 20
CHECKED = ("matrix products", "convolutions", "attention", "memory")
"""Groups whose results numpy computes fast enough to compare with."""
GUARDED = (
    "sgemm 512",
    "sgemm 1000x1001x999",
    "sgemm 1024 A.T @ B",
    "conv 3x3, 8x64x56x56 -> 64",
    "conv 7x7 stride 2, 8x3x224x224 -> 64",
    "attention 4x8x512x64",
    "softmax 4096x4096",
    "layernorm 8192x1024",
    "4 elementwise operations on 16M",
    "sum of 64M",
    "200 kernels replayed, per kernel",
    "MLP train step, batch 128",
    "digits convnet train step, batch 64",
    "decode 135M, 4-bit blocks",
)


@dataclass
class Measured:
    """A workload and the machine, taking turns.

    Attributes:
      run: does the workload once.
      machine: does the machine's own work once.
      work: how much that is, in operations or bytes.
    """

    run: Callable[[], object]
    machine: Callable[[], object]
    work: float

    def cost(self) -> float:
        """The machine's work in the time of one run: the median of some turns."""
        return statistics.median(seconds(self.run) * self.work / seconds(self.machine) for _ in range(TURNS))


def seconds(call: Callable[[], object]) -> float:
    """The fastest call of those that fit in a turn."""
    end = time.perf_counter() + TURN_S
    found = float("inf")
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        found = min(found, now - start)
        if now >= end:
            return found


def opened(name: str, ours: TinyTG, machine: Machine) -> Measured:
    """A workload, warm, whose result was compared with numpy's where that is quick.

    Raises:
      ValueError: the result is wrong.
    """
    workload = WORKLOADS[name]
    case: Case = workload.build(ours)
    for _ in range(4):
        found = case.host(case.run())
    if not np.isfinite(found).all():
        raise ValueError(f"{name}: the result is not finite")
    if workload.group in CHECKED:
        reference: Case = workload.build(Numpy(0))
        apart = difference([found], [reference.host(reference.run())])
        if apart > workload.tolerance:
            raise ValueError(f"{name}: differs from numpy's result by {apart:.1e} of the greatest value")
    limit = machine.open(workload)
    return Measured(case.run, limit.run, float(limit.run()))


def kind() -> str:
    """What machines have in common on which a workload costs about the same."""
    threads = core_count()
    return f"{processor()}, {CPUArch().target(threads).vector_bytes} bytes a vector, {threads} threads"


def recorded() -> dict[str, dict[str, float]]:
    """What each workload should cost, by kind of machine."""
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))) if RECORD.exists() else {}


def main(record: bool = False, most: float = MOST) -> int:
    """Prints a line a workload; 1 if one is too slow in every round, or what it should cost is unknown.

    Args:
      record: write what each should cost instead.
      most: how many times that it may.
    """
    table, here = recorded(), kind()
    should = table.get(here, {})
    if not should and table and not record:
        other, should = next(iter(table.items()))
        most = max(most, ELSEWHERE)
        print(f"nothing was recorded on machines of {here}: compared with {other}, at most {most:g} times")
    if not record and (missing := [name for name in GUARDED if name not in should]):
        print(f"{RECORD.name} does not say what {missing[0]} should cost: "
              "`python -m bench guard --record` on a quiet machine")  # fmt: skip
        return 1
    ours, machine = TinyTG(0), Machine(core_count())
    if record:
        for name in GUARDED:
            workload = opened(name, ours, machine)
            should[name] = float(f"{statistics.median(workload.cost() for _ in range(5)):.4g}")
            print(f"{name:40s} {should[name]:.4g}", flush=True)
        RECORD.write_text(json.dumps({**table, here: should}, indent=2) + "\n", encoding="utf-8")
        return 0
    slow: Sequence[str] = GUARDED
    for round in range(ROUNDS):
        if round and slow:
            print(f"again, after {PAUSE_S} s: a neighbour may have been busy", flush=True)
            time.sleep(PAUSE_S)
        slow = [name for name in slow if not fast(name, opened(name, ours, machine), most * should[name], should[name])]
    return int(bool(slow))


def fast(name: str, workload: Measured, most: float, should: float) -> bool:
    """Whether a workload costs no more than the most in one of some attempts; prints the best of them."""
    found = float("inf")
    for _ in range(ATTEMPTS):
        found = min(found, workload.cost())
        if found <= most:
            break
    print(f"{name:40s} {found / should:5.2f} times what it should: {'ok' if found <= most else 'TOO SLOW'}", flush=True)
    return found <= most


if __name__ == "__main__":
    sys.exit(main())
