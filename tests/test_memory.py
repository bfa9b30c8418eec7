"""Memory over many training steps, and beside torch where that is installed."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import footprint
from bench.crew import Crew
from bench.workloads import WORKLOADS

from tg_codegen.ir.uop import UOp
from tg_frontend.memory.realization import LIVE
from tg_lazy import LazyOp
from tg_lazy.graph.label import _labels
from tg_lazy.graph.lazybuffer import _nodes
from tg_lazy.scheduler import template
from tg_runtime import Device, DeviceError, GlobalCounters
from tg_shape import Interned
from tg_shape.expr import _nodes as _expressions
from tinytg import Tensor, TinyJit, nn


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
    tables: list[Interned[Any]] = [_nodes, _labels, _expressions, LazyOp._interned, UOp._interned]
    for table in tables:
        table.sweep()
    LIVE.sweep()
    rest = [len(LIVE), len(template._templates), len(Device["CPU"].programs), GlobalCounters.mem_used]
    return [*(len(table) for table in tables), *rest]


def fewest_blocks(run: Callable[[], object]) -> int:
    """Blocks of memory that Python has: the fewest after one of a few steps, as some wait for a later one to go."""
    found = []
    for _ in range(8):
        run()
        gc.collect()
        sizes()
        found.append(sys.getallocatedblocks())
    return min(found)


def growth_over(steps: int, run: Callable[[], object]) -> int:
    """By how many bytes the process grows over so many steps."""
    resident = resident_bytes()
    for _ in range(steps):
        run()
    return resident_bytes() - resident


@pytest.mark.drawn(1)
@pytest.mark.parametrize("steps", [120, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("jitted", [False, True])
def test_nothing_grows_over_many_steps(jitted: bool, steps: int) -> None:
    step = training()
    run = TinyJit(step) if jitted else step
    for _ in range(50):
        run()
    blocks = fewest_blocks(run)
    before = sizes()
    GlobalCounters.reset()
    grew = growth_over(steps, run)
    more = fewest_blocks(run) - blocks
    after = sizes()
    # what tests before this one left may go
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
    # what grows, grows each time; pages that the system had taken from idle parts come back once, and caches are full
    blocks += more
    again = min(growth_over(steps, run) for _ in range(3)) if grew >= 1024 * steps or more >= steps / 2 else 0
    assert again < 1024 * steps
    assert min(more, fewest_blocks(run) - blocks) < steps / 2, "objects: less than one every second step"
    assert GlobalCounters.mem_peak - GlobalCounters.mem_used < 1 << 16


def test_a_recorded_step_takes_no_more_at_once_than_it_must() -> None:
    step = TinyJit(training(64, 256, 6))
    for _ in range(2):
        step()
    memory = step.memory
    assert memory is not None and memory.buffers > 2
    assert memory.arena_nbytes <= 1.1 * memory.peak_nbytes < memory.nbytes


@pytest.mark.usefixtures("collected")
def test_a_recorded_step_keeps_no_gradients_that_are_forgotten() -> None:
    def made(forget: bool) -> tuple[int, int]:
        layers = [nn.Linear(64, 64) for _ in range(6)]
        optimizer = nn.optim.Adam(nn.state.get_parameters(layers))
        x = Tensor(np.ones((4, 64), np.float32)).realize()

        def update() -> Tensor:
            optimizer.zero_grad()
            h = x
            for layer in layers:
                h = layer(h).relu()
            out, changed = h.sum().backward(), optimizer.schedule_step()
            if forget:
                optimizer.zero_grad()
            return out.realize(*changed)

        before = GlobalCounters.mem_used
        step = TinyJit(update)
        for _ in range(3):
            step()
        parameters = 6 * (64 * 64 + 64) * 4
        return GlobalCounters.mem_used - before, parameters

    kept, parameters = made(False)
    forgotten, _ = made(True)
    assert kept - forgotten > 0.8 * parameters


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["MLP train step, batch 128", "CNN train step, batch 128"])
def test_the_memory_of_training_beside_torch(workload: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    crew = Crew(1, sys.executable, tmp_path)
    found = {library: footprint.probe(crew, WORKLOADS[workload], library) for library in ("tinytg", "torch")}
    ratios = footprint.ratios(found)
    assert set(ratios) == {"cold", "warm", "tensors"} and max(ratios.values()) <= footprint.GOAL, found
