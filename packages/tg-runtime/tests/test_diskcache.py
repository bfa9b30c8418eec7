"""The cache on disk: shared, checksummed, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tg_lazy import Context
from tg_runtime import diskcache

KEY = diskcache.digest("some", b"thing")


def only_file(folder: Path) -> Path:
    (found,) = (p for p in folder.rglob("*") if p.is_file())
    return found


def test_round_trip(cache_folder: Path) -> None:
    assert diskcache.get("t", KEY) is None
    assert diskcache.put("t", KEY, b"payload")
    assert diskcache.get("t", KEY) == b"payload"
    assert diskcache.get("other", KEY) is None
    assert diskcache.put("t", KEY, b"")
    assert diskcache.get("t", KEY) == b""
    diskcache.delete("t", KEY)
    diskcache.delete("t", KEY)
    assert diskcache.get("t", KEY) is None


def test_digest_separates_its_parts() -> None:
    assert diskcache.digest("ab", "c") != diskcache.digest("a", "bc")
    assert diskcache.digest("ab") == diskcache.digest(b"ab")


@pytest.mark.parametrize("kept", [0, 3, 4, 20, 35, 36, 40])
def test_truncated_file_is_dropped(cache_folder: Path, kept: int) -> None:
    diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    path.write_bytes(path.read_bytes()[:kept])
    assert diskcache.get("t", KEY) is None
    assert not path.exists()
    assert diskcache.put("t", KEY, b"payload")
    assert diskcache.get("t", KEY) == b"payload"


@pytest.mark.parametrize("at", [0, 4, 20, 36, 42])
def test_damaged_file_is_dropped(cache_folder: Path, at: int) -> None:
    diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert diskcache.get("t", KEY) is None
    assert not path.exists()


def test_two_processes_write_at_once(cache_folder: Path) -> None:
    code = """
import sys
from tg_runtime import diskcache
me = sys.argv[1].encode() * 50_000
print(flush=True)
sys.stdin.readline()
for i in range(300):
    key = diskcache.digest(str(i % 5))
    assert diskcache.put("t", key, me)
    found = diskcache.get("t", key)
    assert found is not None and len(found) == 50_000 and len(set(found)) == 1
"""
    environment = dict(os.environ, CACHEDIR=str(cache_folder))
    writers = [
        subprocess.Popen([sys.executable, "-c", code, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env=environment)
        for name in "ab"
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    assert all(not p.name.startswith(".new-") for p in cache_folder.rglob("*"))


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Context(CACHEDIR=str(tmp_path / "file" / "cache")):
        assert not diskcache.put("t", KEY, b"payload")
        assert diskcache.get("t", KEY) is None


def test_turned_off(cache_folder: Path) -> None:
    diskcache.put("t", KEY, b"payload")
    with Context(CCACHE=0):
        assert diskcache.get("t", KEY) is None
        assert not diskcache.put("t", KEY, b"other")
    assert diskcache.get("t", KEY) == b"payload"


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(CACHEDIR=""):
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert diskcache.cache_folder() == "/somewhere/tinytg"
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "/home/someone")
        assert diskcache.cache_folder() == "/home/someone/.cache/tinytg"
    with Context(CACHEDIR="/elsewhere"):
        assert diskcache.cache_folder() == "/elsewhere"
