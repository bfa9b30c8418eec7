"""Elements go from every device to every other, and file tensors are read where they are wanted and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
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


@pytest.mark.parametrize("target", [kind for kind in KINDS if kind not in ("NULL", "DISK", "SHM")])
def test_a_part_of_a_file_in_another_dtype(target: str, named: dict[str, str], tmp_path: Path) -> None:
    if target not in named:
        pytest.skip(f"the device {target} is not available here")
    path = tmp_path / "bytes"
    raw = np.random.default_rng(0).integers(0, 256, 64, dtype=np.uint8)
    raw.tofile(path)
    t = Tensor.empty(64, dtype="uint8", device=f"DISK:{path}")
    for dtype, start, count in (("int16", 3, 7), ("int32", 5, 3), ("int64", 8, 2), ("int64", 13, 3), ("int8", 1, 9)):
        size = np.dtype(dtype).itemsize
        part = t[start : start + count * size].bitcast(dtype).to(named[target])
        want = np.frombuffer(raw.tobytes()[start : start + count * size], dtype).tolist()
        assert part.to("NUMPY").tolist() == want, (dtype, start)


@pytest.mark.usefixtures("collected")
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

    def forbidding(name: str, flags: int, *rest: int, **where: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY) and str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *rest, **where)

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


# writing to files


def _file(tmp_path: Path, count: int = 6) -> tuple[Path, Tensor]:
    path = tmp_path / "written.f32"
    np.arange(count, dtype=np.float32).tofile(path)
    return path, Tensor.empty(count, dtype="float32", device=f"DISK:{path}")


def _floats(path: Path) -> list[float]:
    return [float(x) for x in np.fromfile(path, np.float32)]


@pytest.mark.parametrize("source", ["CPU", "CL", "NUMPY", "HOSTQ", "SHM", "other file"])
def test_a_file_is_assigned_to_from_every_device(source: str, named: dict[str, str], tmp_path: Path) -> None:
    named["other file"] = f"DISK:{tmp_path / 'other'}"
    if source not in named:
        pytest.skip(f"the device {source} is not available here")
    path, t = _file(tmp_path)
    x = Tensor([9.0, 8.0, 7.0, 6.0, 5.0, 4.0], device="NUMPY").to(named[source])
    assert t.assign(x) is t and _floats(path) == [9, 8, 7, 6, 5, 4] == t.tolist()
    t[2:4] = Tensor([1.0, 2.0], device="NUMPY").to(named[source])
    assert _floats(path) == [9, 8, 1, 2, 5, 4] == t.tolist()
    t[1:3].assign(x[4:])
    assert _floats(path) == [9, 5, 4, 2, 5, 4] and path.stat().st_size == 24


def test_values_of_every_kind_go_to_a_file(tmp_path: Path) -> None:
    path, t = _file(tmp_path)
    x = Tensor([1.0, 2.0], device="NUMPY")
    t[2:4] = x + 10  # not computed yet
    t[0] = 5
    t[4:] = [7, 8.5]
    assert _floats(path) == [5, 1, 11, 12, 7, 8.5]
    t.reshape(2, 3)[1] = x.sum()  # a number fills
    assert _floats(path) == [5, 1, 11, 3, 3, 3]
    t.reshape(3, 2)[1:] = np.array([[1, 2], [3, 4]], dtype=np.int32)
    assert _floats(path) == [5, 1, 1, 2, 3, 4]
    t.assign(0)
    t[:0] = 3
    assert _floats(path) == [0] * 6
    t[::-1][:0] = 1
    t.assign(Tensor.arange(6, device="NUMPY", dtype="int16").flip(0))
    assert _floats(path) == [5, 4, 3, 2, 1, 0]
    t.assign(Tensor.full((6,), 2.0, device=t.device))
    assert _floats(path) == [2] * 6


def test_a_copy_to_the_file_itself_is_the_assignment(tmp_path: Path) -> None:
    path, t = _file(tmp_path)
    x = Tensor([9.0, 8.0], device="NUMPY")
    t[2:4] = x.to(t.device)
    assert _floats(path) == [0, 1, 9, 8, 4, 5], "the copy is not made at the beginning of the file"
    t[4:].assign((x + 1).to(t.device))
    t[:2] = t[4:]
    assert _floats(path) == [10, 9, 9, 8, 10, 9]
    t[1:5] = t[:4]
    assert _floats(path) == [10, 10, 9, 9, 8, 9]


def test_what_reads_a_file_reads_it_before_it_is_written(tmp_path: Path) -> None:
    path, t = _file(tmp_path, 2)
    before, sum_before = t.to("NUMPY"), t.to("NUMPY").sum() + 5
    t.assign(Tensor([7.0, 8.0], device="NUMPY"))
    after = t.to("NUMPY")
    assert before.tolist() == [0, 1] and sum_before.item() == 6 and after.tolist() == [7, 8] == t.tolist()
    t.assign(t.to("NUMPY") * 2)
    assert _floats(path) == [14, 16] == t.to("NUMPY").tolist()


def test_a_missing_file_is_made_and_a_short_one_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "new"
    t = Tensor.empty(4, dtype="float32", device=f"DISK:{path}")
    t[1:3] = [1.0, 2.0]
    assert _floats(path) == [0, 1, 2, 0]
    longer = Tensor.empty(8, dtype="float32", device=f"DISK:{path}")
    with pytest.raises(DeviceError, match="has 16 bytes; 32 are asked for"):
        longer[:2] = 9
    assert _floats(path) == [0, 1, 2, 0]


def test_what_a_file_refuses_leaves_it_as_it_was(tmp_path: Path) -> None:
    path, t = _file(tmp_path)
    x = Tensor([9.0, 8.0, 7.0], device="NUMPY")
    positions = Tensor([0, 1, 2], device="NUMPY")
    grid = t.reshape(2, 3)
    attempts: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: t.assign(x), ValueError, r"shape \(3,\) into a tensor of shape \(6,\)"),
        (lambda: t[:3].assign(x.cast("float64")), TypeError, "float64 into a tensor of float32"),
        (lambda: t[::2].assign(x), ValueError, "only a contiguous range"),
        (lambda: grid.T.assign(grid.T.to("NUMPY")), ValueError, "only a contiguous range"),
        (lambda: t.__setitem__(slice(None, None, 2), x), ValueError, "only a contiguous range"),
        (lambda: grid.__setitem__((slice(None), 1), 5.0), ValueError, "only a contiguous range"),
        (lambda: t.__setitem__(positions, x), ValueError, "no tensors, lists or bools"),
        (lambda: t.__setitem__([0, 1, 2], x), ValueError, "no tensors, lists or bools"),
        (lambda: t.__setitem__((True, 0), x), ValueError, "no tensors, lists or bools"),
        (lambda: t.__setitem__(slice(0, 2), x), ValueError, "do not broadcast"),
        (lambda: t.__setitem__(slice(0, 2), x.to(t.device)[:2]), ValueError, "take the part first"),
        (lambda: t.__setitem__(slice(0, 3), x.to(t.device) + 1), ValueError, r"use .to\(\) first"),
        (lambda: t.__setitem__(9, 1.0), IndexError, "9"),
        (lambda: t[:3].assign((x + 0).requires_grad_(True) * 2), RuntimeError, "requires a gradient"),
    ]
    for attempt, error, message in attempts:
        with pytest.raises(error, match=message):
            attempt()
        assert _floats(path) == [0, 1, 2, 3, 4, 5], message


def test_a_read_only_file_is_not_assigned_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, t = _file(tmp_path)
    real = os.open

    def forbidding(name: str, flags: int, *rest: int, **where: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY) and str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *rest, **where)

    monkeypatch.setattr(os, "open", forbidding)
    for attempt in (lambda: t.assign(1.0), lambda: t.__setitem__(slice(2, 4), [1.0, 2.0])):
        with pytest.raises(DeviceError, match="written.f32 is read-only"):
            attempt()
    assert t.tolist() == [0, 1, 2, 3, 4, 5] == _floats(path)


def test_a_jit_does_not_write_files(tmp_path: Path) -> None:
    path, t = _file(tmp_path)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        y = (x + 1).realize()
        t.assign(y)
        return y

    x = Tensor.ones(6, device="NUMPY").contiguous().realize()
    step(x)
    with pytest.raises(RuntimeError, match="while TinyJit records"):
        step(x)
    assert _floats(path) == [2] * 6


BITS: list[tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = [
    (lambda t: t[8:24].bitcast("uint32"), lambda a: a[8:24].view(np.uint32)),
    (lambda t: t[7:23].bitcast("float32"), lambda a: a[7:23].copy().view(np.float32)),
    (lambda t: t[8:24].reshape(2, 8).bitcast("int32"), lambda a: a[8:24].reshape(2, 8).view(np.int32)),
    (lambda t: t.bitcast("int32")[2:5], lambda a: a.view(np.int32)[2:5]),
    (lambda t: t[8:40].bitcast("int32")[2:6].bitcast("int16"), lambda a: a[8:40].view(np.int32)[2:6].view(np.int16)),
    (lambda t: t.bitcast("int32").bitcast("float32")[5:9], lambda a: a.view(np.float32)[5:9]),
    (lambda t: t.bitcast("int64")[1:3].bitcast("uint8"), lambda a: a[8:24]),
]


@pytest.mark.parametrize("case", range(len(BITS)))
@pytest.mark.parametrize("device", ["NUMPY", "CPU", ""])
def test_parts_of_a_file_are_taken_as_other_types(tmp_path: Path, case: int, device: str) -> None:
    ours, numpys = BITS[case]
    raw = np.random.default_rng(case).integers(0, 100, 96).astype(np.uint8)
    raw.tofile(tmp_path / "raw")
    part = ours(Tensor.empty(96, dtype="uint8", device=f"DISK:{tmp_path / 'raw'}"))
    found, wanted = (part.to(device) if device else part).numpy(), numpys(raw)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
