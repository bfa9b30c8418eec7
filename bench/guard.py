"""The regression guard: five kernels beside numpy, in one process and in turns. Ratios, never absolute times.

    python -m bench guard

A kernel that became several times slower fails, on a fast machine and on a slow one, on a busy one and on an idle one.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Array, normal
from .libraries.with_numpy import Numpy
from .libraries.with_tinytg import TinyTG

TURNS = 9
TURN_S = 0.03
ATTEMPTS = 3


@dataclass(frozen=True)
class Kernel:
    """A kernel that is guarded.

    Attributes:
      name: what it is.
      arrays: its inputs.
      fn: called with a library and its tensors.
      most: how many times numpy's time it may take.
    """

    name: str
    arrays: Callable[[], list[Array]]
    fn: Callable[..., Any]
    most: float


KERNELS = (
    Kernel("sgemm 512", lambda: [normal(512, 512, seed=1), normal(512, 512, seed=2)],
           lambda lib, a, b: lib.matmul(a, b), 4.0),
    Kernel("softmax 1024x1024", lambda: [normal(1024, 1024)], lambda lib, x: lib.softmax(x), 1.0),
    Kernel("layernorm 1024x1024", lambda: [normal(1024, 1024, seed=1), normal(1024, seed=2), normal(1024, seed=3)],
           lambda lib, x, w, b: lib.layernorm(x, w, b), 1.0),
    Kernel("4 elementwise operations on 1M", lambda: [normal(1 << 20)],
           lambda lib, x: lib.relu(x * 1.5 + 0.25) - 0.5, 1.0),
    Kernel("row sums of 1024x4096", lambda: [normal(1024, 4096)], lambda lib, x: x.sum(1), 2.0),
)  # fmt: skip


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


def ratio(kernel: Kernel, ours: TinyTG, numpy: Numpy) -> float:
    """How many times numpy's time a kernel takes.

    Raises:
      ValueError: the results differ.
    """
    arrays = kernel.arrays()
    mine, theirs = (lib.case(lambda *tensors, lib=lib: kernel.fn(lib, *tensors), arrays) for lib in (ours, numpy))
    for _ in range(4):
        found, right = mine.host(mine.run()), theirs.host(theirs.run())
        if not np.allclose(found, right, rtol=1e-3, atol=1e-3 * float(np.abs(right).max())):
            raise ValueError(f"{kernel.name}: the result is wrong")
    return statistics.median(seconds(mine.run) / seconds(theirs.run) for _ in range(TURNS))


def main() -> int:
    """Prints a line a kernel; 1 if one is too slow in each of a few attempts."""
    ours, numpy = TinyTG(0), Numpy(0)
    failed = False
    for kernel in KERNELS:
        found = ratio(kernel, ours, numpy)
        for _ in range(ATTEMPTS - 1):
            if found <= kernel.most:
                break
            found = min(found, ratio(kernel, ours, numpy))
        verdict = "ok" if found <= kernel.most else "TOO SLOW"
        failed = failed or found > kernel.most
        print(f"{kernel.name:32s} {found:6.2f} x numpy's time, at most {kernel.most:g}: {verdict}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
