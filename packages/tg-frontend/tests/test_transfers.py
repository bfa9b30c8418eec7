"""Elements go from every device to every other, and file tensors are read where they are wanted and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_runtime import Device, DeviceError, GlobalCounters

KINDS = ("CPU", "CL", "NUMPY", "HOSTQ", "NULL", "DISK", "SHM")
VALUES = [[1.5, -2.0, 3.25], [0.0, 5.5, -6.0]]


@pytest.fixture
def named(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A device of each kind that is here."""
    found = {kind: kind for kind in KINDS if kind in Device.available()}
    if "DISK" in found:
        found["DISK"] = f"DISK:{tmp_path / 'elements.bin'}"
    if "SHM" in found:
        found["SHM"] = f"SHM:tg-transfers-{os.getpid()}"
    yield found
    if "SHM" in found:
        (Path("/dev/shm") / found["SHM"].partition(":")[2]).unlink(missing_ok=True)


@pytest.mark.parametrize(("source", "target"), [pair for pair in product(KINDS, KINDS) if pair[0] != pair[1]])
def test_between_any_two_devices(source: str, target: str, named: dict[str, str]) -> None:
    for kind in (source, target):
        if kind not in named:
            pytest.skip(f"the device {kind} is not available here")
    here = Tensor(VALUES, device=named[source])
    there = here.to(named[target])
    assert there.device == named[target] and not there.is_realized
    back = there.realize().to("NUMPY")
    assert back.tolist() == (np.zeros((2, 3)).tolist() if "NULL" in (source, target) else VALUES)
    if source not in ("NULL", "DISK", "SHM"):
        part = (here * 2)[1:, ::2].to(named[target]).realize()
        assert part.to("NUMPY").tolist() == ([[0, 0]] if target == "NULL" else [[0.0, -12.0]])


def test_two_of_one_kind(tmp_path: Path) -> None:
    for kind in ("CPU", "NUMPY", "HOSTQ"):
        if kind in Device.available():
            assert Tensor(VALUES, device=kind).to(f"{kind}:1").realize().to("NUMPY").tolist() == VALUES
    a, b = f"DISK:{tmp_path / 'a'}", f"DISK:{tmp_path / 'b'}"
    Tensor(VALUES, device=a).to(b).realize()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "numbers.f32"
    np.arange(12, dtype=np.float32).tofile(path)
    t = Tensor.empty(3, 4, dtype="float32", device=f"DISK:{path}")
    assert t.to("NUMPY").tolist() == np.arange(12.0).reshape(3, 4).tolist() == t.tolist()
    assert t[1].to("NUMPY").tolist() == [4, 5, 6, 7]
    assert t.reshape(12)[8:].to("NUMPY").tolist() == [8, 9, 10, 11]
    assert t[1:].bitcast("uint32").to("NUMPY").tolist()[0][0] == 0x40800000
    assert (t.to("NUMPY") + 1).sum().item() == 78


def test_a_part_of_a_large_file_is_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 36)
        file.seek(1 << 35)
        file.write(b"hello")
    t = Tensor.empty(1 << 36, dtype="uint8", device=f"DISK:{path}")
    before = GlobalCounters.mem_used
    part = t[1 << 35 : (1 << 35) + 5].to("NUMPY").realize()
    assert bytes(part.data()) == b"hello" and GlobalCounters.mem_used - before < 100


def test_reading_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    t = Tensor.empty(4, dtype="uint8", device=f"DISK:{path}").realize()
    with pytest.raises(DeviceError, match="there is no file .*missing: reading does not make one"):
        t.tolist()
    with pytest.raises(DeviceError, match="there is no file"):
        t.to("NUMPY").realize()
    assert not path.exists()
    Tensor([1, 2, 3, 4], dtype="uint8", device="NUMPY").to(f"DISK:{path}").realize()
    assert path.read_bytes() == b"\1\2\3\4" and t.tolist() == [1, 2, 3, 4]


def test_a_read_only_file_is_read_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fixed"
    path.write_bytes(b"\1\2")
    real = os.open

    def forbidding(name: str, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY) and str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *rest)

    monkeypatch.setattr(os, "open", forbidding)
    t = Tensor.empty(2, dtype="uint8", device=f"DISK:{path}")
    assert t.tolist() == [1, 2]
    with pytest.raises(DeviceError, match="fixed is read-only"):
        Tensor([3, 4], dtype="uint8", device="NUMPY").to(f"DISK:{path}").realize()
    assert path.read_bytes() == b"\1\2"


def test_files_are_not_computed_with(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(8))
    t = Tensor.empty(2, dtype="float32", device=f"DISK:{path}")
    with pytest.raises(DeviceError, match="holds memory only"):
        (t + 1).realize()
