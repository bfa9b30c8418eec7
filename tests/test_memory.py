"""Memory over many training steps, and beside torch where that is installed."""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.crew import environment

from tg_codegen.uop import UOp
from tg_lazy import LazyOp, template
from tg_lazy.lazybuffer import _nodes
from tg_lazy.row import _rows
from tg_runtime import Device, DeviceError, GlobalCounters
from tg_shape import Interned
from tg_shape.expr import _nodes as _expressions
from tinytg import Tensor, TinyJit, nn

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def cpu() -> None:
    try:
        if Device["CPU"].renderer is None:
            pytest.skip("CPU has no renderer")
    except DeviceError as error:
        pytest.skip(str(error))


def training(batch: int = 4, width: int = 16, layers: int = 1) -> Callable[[], Tensor]:
    """A step of a small network."""
    hidden = [nn.Linear(width if n else 8, width) for n in range(layers)]
    last = nn.Linear(width, 4)
    optimizer = nn.optim.Adam(nn.state.get_parameters([hidden, last]), lr=1e-3)
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((batch, 8)).astype(np.float32)).realize()
    y = Tensor(rng.integers(0, 4, batch).astype(np.int32)).realize()

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            h = x
            for layer in hidden:
                h = layer(h).relu()
            loss = last(h).sparse_categorical_crossentropy(y)
            loss.backward()
            optimizer.step()
            return loss.detach().realize()

    return step


def resident_bytes() -> int:
    """What the process has in memory."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        pytest.skip("the system does not tell how large a process is")


def sizes() -> list[int]:
    """How large every table is that lives as long as the process."""
    tables: list[Interned[Any]] = [_nodes, _rows, _expressions, LazyOp._interned, UOp._interned]
    for table in tables:
        table.sweep()
    rest = [len(template._templates), len(Device["CPU"].programs), GlobalCounters.mem_used]
    return [*(len(table) for table in tables), *rest]


@pytest.mark.parametrize("jitted", [False, True])
def test_nothing_grows_over_a_thousand_steps(jitted: bool) -> None:
    step = training()
    run = TinyJit(step) if jitted else step
    for _ in range(50):
        run()
    gc.collect()
    before, blocks, resident = sizes(), sys.getallocatedblocks(), resident_bytes()
    GlobalCounters.reset()
    for _ in range(1000):
        run()
    gc.collect()
    after = sizes()
    # what tests before this one left may go
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
    assert sys.getallocatedblocks() - blocks < 500, "objects: less than one every second step"
    assert resident_bytes() - resident < 1 << 20
    assert GlobalCounters.mem_peak - GlobalCounters.mem_used < 1 << 16


def test_a_recorded_step_takes_no_more_at_once_than_it_must() -> None:
    step = TinyJit(training(64, 256, 6))
    for _ in range(2):
        step()
    memory = step.memory
    assert memory is not None and memory.buffers > 2
    assert memory.arena_nbytes <= 1.1 * memory.peak_nbytes < memory.nbytes


_PEAK = """
import sys, json
from bench.worker import Worker
answer = Worker(sys.argv[1], 1).open(sys.argv[2])
print(json.dumps(answer["peak_bytes"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["MLP train step, batch 128", "CNN train step, batch 128"])
def test_the_peak_of_a_training_step_beside_torch(workload: str) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    with tempfile.TemporaryDirectory() as cache:
        env = environment(1, Path(cache))

        def peak(library: str) -> int:
            done = subprocess.run(
                [sys.executable, "-c", _PEAK, library, workload], env=env, cwd=ROOT, capture_output=True, text=True,
                timeout=300, check=True,
            )  # fmt: skip
            found: int = json.loads(done.stdout.splitlines()[-1])
            return found

        peak("tinytg")  # compiling is no part of a step
        assert peak("tinytg") <= 1.2 * peak("torch")
