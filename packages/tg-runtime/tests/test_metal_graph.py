"""Graphs of the METAL device, indirect command buffers, and its profiles, on a stand-in for Metal."""

from __future__ import annotations

import gc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_lazy import Ops, ast
from tg_lazy.cost import LIMITS
from tg_runtime import DeviceError, profile
from tg_runtime.backends.metal.device import MetalDevice
from tg_runtime.backends.metal.graph import MetalGraph
from tg_runtime.device.registry import Device
from tg_runtime.execution.item import ExecItem
from tg_runtime.kernels.programs import get_runner
from tg_runtime.memory.buffer import Buffer
from tg_runtime.testing.kernels import buffer_with, kernel, unpack
from tg_shape import ShapeTracker, Variable

f32, i32 = dtypes.float32, dtypes.int32


@pytest.fixture(autouse=True)
def fake(checked_metal: Any) -> Any:
    """The stand-in; what is against its rules fails the test."""
    return checked_metal


@pytest.fixture
def device(metal: MetalDevice) -> MetalDevice:
    """The default device, of the registry."""
    return metal


def items_of(device: MetalDevice, size: int = 64) -> tuple[list[ExecItem], list[Buffer], Buffer]:
    """x + y, and independent of it x * y; then their sum, twice."""
    shape = ShapeTracker.from_shape((size,))
    x, y = ast.load(1, i32, shape), ast.load(2, i32, shape)

    def runner(op: Ops) -> Any:
        return get_runner(device, kernel([(ast.alu(op, x, y), size)], [(i32, size)] * 2))

    inputs = [buffer_with(device.device, list(range(size)), i32) for _ in range(2)]
    total, product, once, twice = (Buffer(device.device, size, i32).allocate() for _ in range(4))
    items = [ExecItem(runner(Ops.ADD), [total, *inputs]), ExecItem(runner(Ops.MUL), [product, *inputs])]
    items += [ExecItem(runner(Ops.ADD), [once, total, product]), ExecItem(runner(Ops.ADD), [twice, once, once])]
    return items, inputs, twice


def expected(x: list[int], y: list[int]) -> list[int]:
    return [2 * (a + b + a * b) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("name", ["METAL", "METAL:1"])
def test_graph(name: str, device: MetalDevice, fake: Any) -> None:
    """Replays with other inputs; a barrier stands only where one is needed."""
    opened = Device[name]
    assert isinstance(opened, MetalDevice)
    items, inputs, result = items_of(opened)
    graph = MetalGraph(items, inputs)
    assert [command.barrier for command in graph.commands] == [False, False, True, True]
    numbers = list(range(64))
    for wait in (False, True):
        seconds = graph(inputs, {}, wait=wait)
        assert (seconds is not None) == wait
        assert unpack(result.as_buffer(), i32) == expected(numbers, numbers)
    others = [buffer_with(name, [3] * 64, i32), buffer_with(name, [n * n for n in numbers], i32)]
    graph(inputs, {})
    graph(others, {})
    assert unpack(result.as_buffer(), i32) == expected([3] * 64, [n * n for n in numbers])
    wide = buffer_with(name, list(range(128)), i32)
    graph([wide.view(64, i32, 4), wide.view(64, i32, 8)], {})
    assert unpack(result.as_buffer(), i32) == expected(list(range(1, 65)), list(range(2, 66)))
    with pytest.raises(ValueError, match="graph of 4 kernels takes 2 buffers, got 1"):
        graph(others[:1], {})


def test_graphs_and_kernels_wait_for_one_another(device: MetalDevice) -> None:
    """Of one encoder, commands of an indirect buffer may overtake what is before them, and be overtaken."""
    items, inputs, result = items_of(device)
    graph, (first, *_) = MetalGraph(items, inputs), items
    x, other = inputs
    for item in (items[-1], first):  # the device is busy with the former: the latter is recorded only
        item.run()
    ExecItem(first.prg, [x, x, other]).run()
    graph(inputs, {})
    ExecItem(first.prg, [x, result, other]).run()
    graph(inputs, {})
    graph(inputs, {})
    before = [2 * n for n in range(64)]
    now = [r + n for r, n in zip(expected(before, list(range(64))), range(64), strict=True)]
    assert unpack(x.as_buffer(), i32) == now
    assert unpack(result.as_buffer(), i32) == expected(now, list(range(64)))


def test_a_graph_gives_back_what_it_made(device: MetalDevice, fake: Any) -> None:
    n = Variable("n", 1, 64)
    x = ast.load(1, i32, ShapeTracker.from_shape((n,)))
    runner = get_runner(device, kernel([(ast.alu(Ops.ADD, x, ast.symbol(n, i32, (n,))), n)], [(i32, 64)], [64]))
    items, inputs, _ = items_of(device)
    out = Buffer("METAL", 64, i32).allocate()
    device.synchronize()
    counts = []
    for _ in range(3):
        for graph in (MetalGraph(items, inputs), MetalGraph([ExecItem(runner, [out, inputs[0]])], inputs, {n: 1})):
            graph(inputs, {n: 5})
            device.synchronize()
        del graph
        gc.collect()
        counts.append(fake.living)
    assert counts[1:] == counts[:-1]


def test_as_many_buffers_as_a_kernel_may_have_and_a_variable(device: MetalDevice) -> None:
    count, n = LIMITS["METAL"].buffers, Variable("n", 1, 8)
    total = ast.symbol(n, i32, (n,))
    for slot in range(1, count):
        total = ast.alu(Ops.ADD, total, ast.load(slot, i32, ShapeTracker.from_shape((n,))))
    runner = get_runner(device, kernel([(total, n)], [(i32, 8)] * (count - 1), [8]))
    inputs = [buffer_with("METAL", [slot + i for i in range(8)], i32) for slot in range(1, count)]
    out = Buffer("METAL", 8, i32).allocate()
    ExecItem(runner, [out, *inputs]).run({n: 5}, wait=True)
    assert unpack(out.as_buffer(), i32)[:5] == [5 + sum(s + i for s in range(1, count)) for i in range(5)]


def test_graph_with_variables(device: MetalDevice) -> None:
    """Values of variables, and the number of threadgroups that they decide, also none."""
    n = Variable("n", 0, 4096)
    x = ast.load(1, i32, ShapeTracker.from_shape((n,)))
    value = ast.alu(Ops.ADD, x, ast.symbol(n, i32, (n,)))
    runner = get_runner(device, kernel([(value, n)], [(i32, 4096)], [4096]))
    source, out = buffer_with("METAL", list(range(4096)), i32), buffer_with("METAL", [0] * 4096, i32)
    graph = MetalGraph([ExecItem(runner, [out, source])], [source], {n: 1})
    for number in (3, 4096, 17, 0):
        graph([source], {n: number}, wait=number == 17)
        assert unpack(out.as_buffer(), i32)[:number] == [i + number for i in range(number)]


def test_the_time_of_kernels_that_go_one_by_one_is_their_sum(device: MetalDevice, tmp_path: Path) -> None:
    """Beside a kernel that has nothing to do, and where the times of each are recorded."""
    n = Variable("n", 0, 64)
    none = get_runner(device, kernel([(ast.load(1, i32, ShapeTracker.from_shape((n,))), n)], [(i32, 64)], [64]))
    items, inputs, result = items_of(device)
    empty = ExecItem(none, [Buffer("METAL", 64, i32).allocate(), inputs[0]])
    graph = MetalGraph([*items, empty], inputs, {n: 1})
    assert (graph(inputs, {n: 0}, wait=True) or 0.0) > 0
    with profile(tmp_path / "trace.json") as recorded:
        seconds = ExecItem(graph, [*inputs]).run({n: 0}, wait=True)
    times = [event.times() for event in recorded.events if event.process == "METAL"]
    assert len(times) == len(items)
    assert seconds == pytest.approx(sum(end - begin for begin, end in times) * 1e-9, rel=0, abs=1e-8)
    assert unpack(result.as_buffer(), i32) == expected(list(range(64)), list(range(64)))


def test_graph_refuses(device: MetalDevice, fake: Any) -> None:
    items, inputs, _ = items_of(device)
    numpy = Buffer("NUMPY", 8, f32).allocate()
    x = ast.load(1, f32, ShapeTracker.from_shape((8,)))
    stranger = get_runner(Device["NUMPY"], kernel([(x, 8)], [(f32, 8)]))
    with pytest.raises(DeviceError, match="is no kernel of a Metal device"):
        MetalGraph([*items, ExecItem(stranger, [numpy, numpy])], inputs)
    assert MetalGraph([])([], {}, wait=True) == 0.0
    fake.set("no indirect", 1)
    with pytest.raises(DeviceError, match="Fake M1 gives no indirect command buffer for graph of 4 kernels"):
        MetalGraph(items, inputs)(inputs, {})


def test_a_graph_that_fails(device: MetalDevice, fake: Any) -> None:
    """The device goes on after it was lost in the middle of a graph."""
    items, inputs, result = items_of(device)
    graph = MetalGraph(items, inputs)
    fake.set("fail", 1)
    graph(inputs, {})
    with pytest.raises(DeviceError, match="Metal: Fake M1: graph of 4 kernels: Caused GPU Timeout Error"):
        device.synchronize()
    fake.set("fail", 0)
    graph(inputs, {})
    assert unpack(result.as_buffer(), i32) == expected(list(range(64)), list(range(64)))


def test_a_graph_may_be_dropped_while_it_runs(device: MetalDevice) -> None:
    items, inputs, result = items_of(device)
    graph = MetalGraph(items, inputs)
    graph(inputs, {})
    del graph, items
    gc.collect()
    assert unpack(result.as_buffer(), i32) == expected(list(range(64)), list(range(64)))


def test_profile(device: MetalDevice, tmp_path: Path) -> None:
    """Kernels lie on the device's track, within the time in which the host waited for them."""
    items, _, _ = items_of(device)
    with profile(tmp_path / "trace.json") as recorded:
        for item in items:
            item.run()
        items[0].run(wait=True)
        device.synchronize()
    spans = [event for event in recorded.events if event.process == "METAL"]
    assert len(spans) == 5
    for earlier, later in pairwise(spans):
        assert earlier.times()[0] <= earlier.times()[1] <= later.times()[0] + 1000




def test_a_profile_shows_each_kernel_of_a_graph(device: MetalDevice, tmp_path: Path) -> None:
    """With the times of each, in order; the graph itself is no span of the device."""
    items, inputs, result = items_of(device)
    graph = MetalGraph(items, inputs)
    with profile(tmp_path / "trace.json") as recorded:
        ExecItem(graph, [*inputs]).run()
    spans = [event for event in recorded.events if event.process == "METAL"]
    assert [event.name for event in spans] == [item.prg.name for item in items]
    assert "flops" in spans[0].args
    assert unpack(result.as_buffer(), i32) == expected(list(range(64)), list(range(64)))
