"""``Tensor.to`` between any two devices that are here, whole tensors and parts of them, and files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_lazy import Context
from tg_runtime import Device, parse_dev
from tinytg import Tensor, dtypes

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
