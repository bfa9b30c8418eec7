"""Saving and loading, whatever happens to the file meanwhile."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tg_frontend import Tensor
from tg_frontend.nn.state import safe_load, safe_load_metadata, safe_save
from tg_runtime import Device, DeviceError


def save(path: Path, value: float, count: int = 3) -> None:
    safe_save({"a": Tensor(np.full(count, value, np.float32))}, path)


def saved(path: Path) -> list[float]:
    found: list[float] = safe_load(path)["a"].tolist()
    return found


def test_many_threads_save_to_one_path(tmp_path: Path) -> None:
    """One of them wins, and the file is whole at every moment."""
    path, errors, ended = tmp_path / "x", [], threading.Event()
    save(path, -1.0, 1000)

    def work(value: int) -> None:
        try:
            for _ in range(15):
                save(path, float(value), 1000 + 100 * value)
        except BaseException as error:
            errors.append(error)

    def look() -> None:
        while not ended.is_set():
            values = saved(path)
            if len(set(values)) != 1 or (values[0] >= 0 and len(values) != 1000 + 100 * values[0]):
                errors.append(AssertionError(values[:3]))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    looking = threading.Thread(target=look)
    for thread in (looking, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    looking.join()
    assert not errors, errors[0]
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_permissions_and_links_stay(tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unnamed:
        monkeypatch.setattr("tg_runtime.memory.drafts._UNNAMED", 0)
    real, link = tmp_path / "real", tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to("../real")
    before = os.umask(0o027)
    try:
        save(link, 1.0)  # the link leads nowhere yet
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o400 | 0o200):
            real.chmod(mode)
            save(link, 2.0)
            assert stat.S_IMODE(real.stat().st_mode) == mode
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert saved(real) == saved(link) == [2.0] * 3
    assert sorted(os.listdir(tmp_path)) == ["folder", "real"]
    assert os.listdir(link.parent) == ["link"]


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    fifo, folder, circle = tmp_path / "fifo", tmp_path / "folder", tmp_path / "circle"
    os.mkfifo(fifo)
    folder.mkdir()
    circle.symlink_to("circle")
    (tmp_path / "null").symlink_to("/dev/null")
    for path, message in (
        (fifo, "this is a FIFO"), (folder, "this is a directory"), (circle, "symbolic links"),
        (tmp_path / "null", "this is a device"), (Path("/dev/full"), "this is a device"),
    ):  # fmt: skip
        with pytest.raises(OSError, match=message):
            save(path, 1.0)
    for path in (fifo, folder, tmp_path / "null"):
        for reader in (safe_load, safe_load_metadata):
            searched = path is folder and reader is safe_load  # for the shards of a model
            with pytest.raises(OSError, match="no safetensors file" if searched else "wants a regular file"):
                reader(path)
    assert sorted(os.listdir(tmp_path)) == ["circle", "fifo", "folder", "null"]
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_long_names_and_bare_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x" * 250, "y"):
        save(Path(name), 1.0)
        assert saved(Path(name)) == [1.0] * 3


LIMITED = """
import resource, sys
import numpy as np
from tg_frontend import Tensor, nn
path, count = sys.argv[1], int(sys.argv[2])
x = Tensor(np.zeros(count, np.float32)).realize()
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    if path.startswith("DISK:"):
        Tensor.empty(count, dtype="float32", device=path).assign(x)
    else:
        nn.state.safe_save({"a": x}, path)
except OSError as error:
    print(type(error).__name__, error.errno)
"""


@pytest.mark.parametrize("count", [100_000, 1 << 14])
def test_no_room_is_an_error_and_the_old_file_stays(tmp_path: Path, count: int) -> None:
    path = tmp_path / "x"
    save(path, 1.0)
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path), str(count)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "OSError 27\n"), done.stderr
    assert saved(path) == [1.0] * 3
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("before", [None, b"", bytes(400_000)])
def test_no_room_for_a_file_that_is_written_in_place(tmp_path: Path, before: bytes | None) -> None:
    """An error, and no signal; a file that was to be made is not."""
    path = tmp_path / "x"
    if before is not None:
        path.write_bytes(before)
    done = subprocess.run([sys.executable, "-c", LIMITED, f"DISK:{path}", "100000"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "OSError 27\n"), done.stderr
    assert (path.read_bytes() if path.exists() else None) == before


SAVES = """
import os, sys
import numpy as np
import tg_runtime.memory.drafts
from tg_frontend import Tensor, nn
if sys.argv[2] == "named":
    tg_runtime.memory.drafts._UNNAMED = 0
x = Tensor(np.zeros(1 << 20, np.float32)).realize()
print("ready", flush=True)
while True:
    nn.state.safe_save({"a": x}, sys.argv[1])
"""


@pytest.mark.parametrize("kind", ["unnamed", "named"])
def test_a_killed_save_leaves_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    save(path, 1.0)
    process = subprocess.Popen([sys.executable, "-c", SAVES, str(path), kind], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(random.uniform(0.02, 0.05))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(saved(path)) in (3, 1 << 20)
    save(path, 2.0)  # sweeps what has no name of its own
    assert os.listdir(tmp_path) == ["x"]


def test_a_draft_that_is_being_written_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tg_runtime.memory.drafts import replacing

    monkeypatch.setattr("tg_runtime.memory.drafts._UNNAMED", 0)
    with replacing(str(tmp_path / "a"), "a test") as file:
        file.write(b"first")
        save(tmp_path / "b", 1.0)
        file.write(b" and last")
    assert (tmp_path / "a").read_bytes() == b"first and last"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


# loading


def test_what_was_read_is_ours(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "x"
    save(path, 1.0, 10_000)
    loaded = safe_load(path)["a"].realize()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 30_000)
    os.truncate(path, 0)
    assert loaded.tolist() == [1.0] * 10_000


@pytest.mark.parametrize("device", ["CPU", "NUMPY", "HOSTQ"])
@pytest.mark.parametrize("how", ["cut", "overwritten"])
def test_a_file_that_changes_in_place_before_it_is_read_is_an_error(tmp_path: Path, device: str, how: str) -> None:
    if device not in Device.names():
        pytest.skip(f"the device {device} is not available here")
    path = tmp_path / "x"
    save(path, 1.0, 10_000)
    loaded = safe_load(path, device=device)["a"]
    os.utime(path, ns=(0, 0))
    loaded = safe_load(path, device=device)["a"]
    if how == "cut":
        os.truncate(path, 100)
    else:
        path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(DeviceError, match="was written to since it was opened|are asked for"):
        loaded.tolist()


def test_a_file_may_be_replaced_or_removed_before_it_is_read(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "x"
    save(path, 1.0)
    loaded = safe_load(path)["a"]
    save(path, 2.0)
    other = safe_load(path)["a"]
    path.unlink()
    assert (loaded.tolist(), other.tolist()) == ([1.0] * 3, [2.0] * 3)


def test_memory_that_is_loaded_from_may_change(backend: str, tmp_path: Path) -> None:
    save(tmp_path / "x", 1.0)
    raw = bytearray((tmp_path / "x").read_bytes())
    loaded = safe_load(memoryview(raw))["a"]
    raw[:] = bytes(len(raw))
    assert loaded.tolist() == [1.0] * 3


def test_files_are_closed(tmp_path: Path) -> None:
    save(tmp_path / "x", 1.0)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        safe_load(tmp_path / "x")
        safe_load(tmp_path / "x")["a"].realize()
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before


# memory that processes share


def test_shared_memory_is_its_owners_and_no_link_is_followed(tmp_path: Path) -> None:
    name = f"tinytg-test-{os.getpid()}-{random.randrange(1 << 30)}"
    path = Path("/dev/shm") / name
    if not path.parent.is_dir():
        pytest.skip("there is no /dev/shm on this system")
    before = os.umask(0)
    try:
        Tensor([1.0, 2.0]).to(f"SHM:{name}").realize()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.unlink()
        (tmp_path / "mine").write_bytes(bytes(8))
        path.symlink_to(tmp_path / "mine")
        with pytest.raises(DeviceError, match="symbolic links"):
            Tensor([1.0, 2.0]).to(f"SHM:{name}").realize()
        with pytest.raises(DeviceError, match="symbolic links"):
            Tensor.empty(2, dtype="float32", device=f"SHM:{name}").tolist()
        assert (tmp_path / "mine").read_bytes() == bytes(8)
    finally:
        os.umask(before)
        path.unlink(missing_ok=True)
