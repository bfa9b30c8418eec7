"""``Tensor.to`` between any two devices that are here, whole tensors and parts of them, and files."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_hcq import HCQGraph
from tg_lazy import Context
from tg_runtime import BufferXfer, Device, parse_dev
from tinytg import Tensor, TinyJit, dtypes

SETTINGS = ("CPU", "CL", "MOCK+CUDA:PTX", "WEBGPU", "HOSTQ", "NUMPY", "CPU:1", "CUDA:1")
NAMES = [setting.rpartition("+")[2].replace(":PTX", "") for setting in SETTINGS]


def missing(name: str) -> str | None:
    """Why a device cannot be opened here."""
    base = name.partition(":")[0]
    (entry,) = parse_dev(next(s for s in SETTINGS if s.rpartition("+")[2].startswith(base)).replace("CPU:1", "CPU"))
    return Device.load(base).unavailable(entry)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """The interfaces that the devices are opened with."""
    with Context(DEV="CPU;CL;MOCK+CUDA:PTX"):
        yield


def there(*names: str) -> None:
    """Skips the test where a device is not here."""
    for name in names:
        problem = missing(name)
        if problem is not None:
            pytest.skip(f"{'WebGPU' if name == 'WEBGPU' else name}: {problem}")


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_to(source: str, target: str) -> None:
    there(source, target)
    x = Tensor([[float(i * j) for i in range(7)] for j in range(5)], device=source)
    y = x.to(target)
    assert y.device == target
    assert ((y + 1).tolist(), x.tolist()) == ([[v + 1 for v in row] for row in x.tolist()], y.to(source).tolist())
    assert (x * 2)[1:4, ::2].to(target).tolist() == [[2.0 * i * j for i in range(0, 7, 2)] for j in range(1, 4)]


@pytest.mark.parametrize("name", NAMES)
def test_parts_that_begin_anywhere(name: str) -> None:
    """Bytes and bools at odd places, realised before they are sent."""
    there(name)
    for dtype in (dtypes.uint8, dtypes.bool, dtypes.int16):
        values = [i % 2 if dtype is dtypes.bool else i % 200 for i in range(1003)]
        x = Tensor(values, dtype=dtype, device=name).realize()
        part = x[3:1000]
        assert part.to("NUMPY").tolist() == x.tolist()[3:1000]
        assert part.to("CPU").to(name)[:5].tolist() == x.tolist()[3:8]


@pytest.mark.parametrize("name", NAMES)
def test_files(name: str, tmp_path: Path) -> None:
    there(name)
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(256)) * 5)
    x = Tensor.empty(1280, dtype=dtypes.uint8, device=f"DISK:{path}")
    assert x[7:300].to(name).tolist() == (list(range(256)) * 5)[7:300]
    Tensor.arange(16, dtype=dtypes.float32, device=name).to(f"DISK:{tmp_path / 'out'}").realize()
    assert memoryview((tmp_path / "out").read_bytes()).cast("f").tolist() == [float(i) for i in range(16)]


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_is_that_of_every_device(name: str) -> None:
    """Sums by work-groups, two in one kernel: what an item keeps across a barrier is still there after it."""
    there(name)
    weights = [[[math.sin(12 * i + 1.7 * j + 0.3 * k) for k in range(9)] for j in range(8)] for i in range(8)]
    x = Tensor.zeros(8, 6, 3, device=name).contiguous().realize().requires_grad_()
    (x.interpolate((8, 9), mode="linear", align_corners=True) * Tensor(weights, device=name)).sum().backward()
    rows, columns = _linear(6, 8), _linear(3, 9)
    assert x.grad is not None
    for i, plane in enumerate(x.grad.tolist()):
        for j, row in enumerate(plane):
            for k, got in enumerate(row):
                want = sum(weights[i][n][m] * rows[n][j] * columns[m][k] for n in range(8) for m in range(9))
                assert got == pytest.approx(want, abs=1e-5)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["CPU", "CL", "CUDA", "HOSTQ"])
def test_no_compiler_takes_for_ever_for_a_long_division(name: str) -> None:
    """Of doubles in a kernel with a masked end, of which PoCL's compiler looked at every path."""
    there(name)
    x, y = [1e9 * i + 0.5 for i in range(1003)], [1.0 + i % 7 for i in range(1003)]
    a, b = (Tensor(v, dtype=dtypes.float64, device=name) for v in (x, y))
    assert a.fmod(b).tolist() == [math.fmod(i, j) for i, j in zip(x, y, strict=True)]


def _linear(old: int, new: int) -> list[list[float]]:
    """The weights with which linear interpolation takes the old elements, for each new one."""
    places = [i * (old - 1) / (new - 1) for i in range(new)]
    return [[max(0.0, 1 - abs(place - j)) for j in range(old)] for place in places]


def test_a_record_of_two_devices_is_one_graph() -> None:
    """Kernels of both, and the copies between them."""
    there("HOSTQ")

    @TinyJit
    def squares(x: Tensor) -> Tensor:
        doubled = (x * 2).contiguous().to("HOSTQ:1")
        return ((doubled * doubled).contiguous().to("HOSTQ") + x).realize()

    for i in range(8):
        result = squares(Tensor([float(i), float(-i), 3.0], device="HOSTQ"))
        assert result.tolist() == [4.0 * i * i + i, 4.0 * i * i - i, 39.0]
    graphs = [graph for graph in gc.get_objects() if isinstance(graph, HCQGraph)]
    copying = [graph for graph in graphs if any(isinstance(item.prg, BufferXfer) for item in graph.items)]
    assert [graph.num_kernels for graph in copying] == [5]
