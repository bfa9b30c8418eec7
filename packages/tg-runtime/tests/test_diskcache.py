"""The cache on disk: shared, checksummed, and never in the way."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from contextvars import copy_context
from pathlib import Path

import pytest

from tg_lazy import Context
from tg_runtime.cache import content as cachecontent
from tg_runtime.cache import diskcache
from tg_runtime.cache import folder as cachefolder

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


@pytest.mark.parametrize("kept", [0, 3, 4, 20, 35, 36, 40, 100, 109])
def test_truncated_file_is_dropped(cache_folder: Path, kept: int) -> None:
    diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    path.write_bytes(path.read_bytes()[:kept])
    assert diskcache.get("t", KEY) is None
    assert not path.exists()
    assert diskcache.put("t", KEY, b"payload")
    assert diskcache.get("t", KEY) == b"payload"


@pytest.mark.parametrize("at", [0, 4, 20, 36, 42, 105])
def test_damaged_file_is_dropped(cache_folder: Path, at: int) -> None:
    diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert diskcache.get("t", KEY) is None
    assert not path.exists()


def test_an_entry_in_the_place_of_another_is_dropped(cache_folder: Path) -> None:
    other = diskcache.digest("other")
    for table, key, payload in (("t", KEY, b"mine"), ("t", other, b"another's"), ("u", KEY, b"of another table")):
        diskcache.put(table, key, payload)
    mine = cache_folder / "t" / KEY[:2] / KEY[2:]
    for stranger in (cache_folder / "t" / other[:2] / other[2:], cache_folder / "u" / KEY[:2] / KEY[2:]):
        mine.write_bytes(stranger.read_bytes())
        assert diskcache.get("t", KEY) is None
        assert not mine.exists()


def test_files_are_for_their_owner_alone(cache_folder: Path) -> None:
    before = os.umask(0)
    try:
        diskcache.put("t", KEY, b"payload")
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (cache_folder, *cache_folder.rglob("*")))


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(
    cache_folder: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning says so once, and what to do: a folder that was made under another mask would never be used."""
    monkeypatch.setattr(cachefolder, "_told", set())
    diskcache.put("t", KEY, b"payload")
    cache_folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"is not used: others may write there .*; chmod go-w") as told:
        assert diskcache.get("t", KEY) is None
        assert not diskcache.put("t", KEY, b"other")
    assert len(told) == 1
    cache_folder.chmod(0o755)
    assert diskcache.get("t", KEY) == b"payload"


def test_what_somebody_else_owns_is_not_used(
    cache_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cachefolder, "_told", set())
    diskcache.put("t", KEY, b"payload")
    with monkeypatch.context() as patch, Context(DEBUG=1):
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert diskcache.get("t", KEY) is None
        assert not diskcache.put("t", KEY, b"other")
    assert "somebody else owns it" in capsys.readouterr().out
    assert diskcache.get("t", KEY) == b"payload"


def test_what_is_no_regular_file_is_dropped_and_not_waited_for(cache_folder: Path, tmp_path: Path) -> None:
    diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    good = path.read_bytes()
    aside = tmp_path / "aside"
    aside.write_bytes(good)
    path.unlink()
    path.symlink_to(aside)
    assert diskcache.get("t", KEY) is None
    assert not path.is_symlink() and aside.read_bytes() == good
    os.mkfifo(path)
    assert diskcache.get("t", KEY) is None
    assert not path.exists()
    os.mkfifo(path)
    assert diskcache.put("t", KEY, b"payload")
    assert diskcache.get("t", KEY) == b"payload"
    path.unlink()
    path.mkdir()
    assert diskcache.get("t", KEY) is None
    assert not diskcache.put("t", KEY, b"payload")


def test_a_link_in_the_place_of_the_folder_is_not_followed(cache_folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    cache_folder.symlink_to(elsewhere)
    assert not diskcache.put("t", KEY, b"payload")
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("depth", [0, 1])
def test_a_link_that_leads_nowhere_is_no_folder(cache_folder: Path, tmp_path: Path, depth: int) -> None:
    """As where a table was moved to a disk that is not there today."""
    assert diskcache.put("t", KEY, b"payload")
    path = only_file(cache_folder)
    path.unlink()
    path.parents[0].rmdir()
    if depth:
        path.parents[1].rmdir()
    path.parents[depth].symlink_to(tmp_path / "nowhere")
    assert not diskcache.put("t", KEY, b"payload")
    assert diskcache.get("t", KEY) is None


def test_only_what_is_of_the_cache_is_deleted(cache_folder: Path) -> None:
    cache_folder.mkdir()
    others = [cache_folder / "letter.txt", cache_folder / "work" / "ab" / "thesis", cache_folder / "failed" / "notes"]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    diskcache.put("t", KEY, b"payload")
    diskcache.keep("failed", "0123456789abcdef.c", b"void")
    assert {share.table: share.entries for share in cachecontent.shares()} == {"failed": 1, "t": 1}
    with Context(CACHEMB=0):
        cachecontent.prune()
    assert cachecontent.shares() == []
    diskcache.put("t", KEY, b"payload")
    assert cachecontent.clear() == 1
    assert all(path.read_text() == "precious" for path in others)


def test_what_was_left_half_written_goes(cache_folder: Path) -> None:
    diskcache.put("t", KEY, b"payload")
    old, new = (only_file(cache_folder).parent / f".new-{number}-abc" for number in range(2))
    old.touch()
    os.utime(old, (1, 1))
    new.touch()
    cachecontent.prune()
    assert not old.exists() and new.exists()


def test_an_entry_that_keeps_its_times_is_found(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def refused(handle: int) -> None:
        asked.append(handle)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    diskcache.put("t", KEY, b"payload")
    os.utime(only_file(cache_folder), (1, 1))
    monkeypatch.setattr(os, "utime", refused)
    monkeypatch.setattr(os, "supports_fd", {refused})
    assert diskcache.get("t", KEY) == b"payload"
    assert asked


def test_an_entry_that_cannot_be_opened_for_a_moment_stays(cache_folder: Path) -> None:
    key = diskcache.digest("stays")
    assert diskcache.put("table", key, b"value")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(name) for name in os.listdir("/proc/self/fd"))
    for free in range(5):  # handles: none for the folder, then none for what is in it
        taken = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 8, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            for handle in [taken.pop() for _ in range(free)]:
                os.close(handle)
            assert diskcache.get("table", key) in (None, b"value")
        finally:
            for handle in taken:
                os.close(handle)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert diskcache.get("table", key) == b"value"


def test_the_limit_is_for_all_tables(cache_folder: Path) -> None:
    with Context(CACHEMB=1):
        for number in range(64):
            diskcache.put("tu"[number % 2], diskcache.digest(str(number)), bytes(1 << 16))
        assert sum(share.nbytes for share in cachecontent.shares()) <= (1 << 20) + (1 << 18)


WRITER = """
import sys
from tg_runtime.cache import content as cachecontent, diskcache
me = sys.argv[1].encode() * 50_000
print(flush=True)
sys.stdin.readline()
for i in range(100):
    key = diskcache.digest(str(i % 5))
    stored = diskcache.put("t", key, me)
    found = diskcache.get("t", key)
    assert stored or sys.argv[2:]
    assert found is None if found is None and sys.argv[2:] else len(found) == 50_000 and len(set(found)) == 1
    if sys.argv[2:] and i % 3 == 0:
        cachecontent.clear() if i % 2 else cachecontent.prune()
"""


@pytest.mark.parametrize("cleared", [False, True])
def test_processes_write_at_once(cache_folder: Path, cleared: bool) -> None:
    environment = dict(os.environ, CACHEDIR=str(cache_folder))
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, name, *(["clear"] if cleared else [])], env=environment,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in "abc"
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


def test_the_folder_is_opened_once_for_a_block_and_its_threads(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    descriptor = cachefolder._descriptor

    def counted(path: str, make: bool) -> int:
        looked.append(path)
        return descriptor(path, make)

    monkeypatch.setattr(cachefolder, "_descriptor", counted)

    def work(name: str) -> None:
        for n in range(3):
            key = diskcache.digest(name, str(n))
            assert diskcache.get("t", key) is None
            assert diskcache.put("t", key, name.encode()) and diskcache.get("t", key) == name.encode()

    with diskcache.held():
        threads = [threading.Thread(target=copy_context().run, args=(work, name)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        work("c")
        for thread in threads:
            thread.join()
    assert looked == [str(cache_folder)]
    for name in ("a", "b", "c"):
        assert diskcache.get("t", diskcache.digest(name, "2")) == name.encode()
    assert len(looked) == 4, "afterwards it is opened each time"


def test_a_block_sees_another_folder_and_one_that_goes(cache_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with diskcache.held():
        assert diskcache.put("t", KEY, b"payload")
        with Context(CACHEDIR=str(other)):
            assert diskcache.get("t", KEY) is None
            assert diskcache.put("t", KEY, b"elsewhere") and diskcache.get("t", KEY) == b"elsewhere"
        assert diskcache.get("t", KEY) == b"payload"
        shutil.rmtree(cache_folder)
        assert diskcache.get("t", KEY) is None and not diskcache.put("t", KEY, b"lost")
    assert diskcache.put("t", KEY, b"again") and diskcache.get("t", KEY) == b"again"
    with Context(CACHEDIR=str(tmp_path / "third"), CCACHE=0), diskcache.held():
        assert not diskcache.put("t", KEY, b"payload")
    assert not (tmp_path / "third").exists()


def test_a_thread_that_goes_on_after_a_block_writes_nowhere_else(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a compiler's does after a second Ctrl-C: what it has begun it ends in the folder, then it opens it anew."""
    begun, ended = threading.Event(), threading.Event()
    found: list[bool] = []
    make = cachefolder.Folder.open

    def slowly(folder: cachefolder.Folder, name: str, *flags: int) -> int:
        if not begun.is_set():
            begun.set()
            ended.wait(30)
        return make(folder, name, *flags)

    def work() -> None:
        found.extend([diskcache.put("t", KEY, b"begun"), diskcache.put("t", KEY[::-1], b"later")])

    monkeypatch.setattr(cachefolder.Folder, "open", slowly)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(KeyboardInterrupt), diskcache.held():
        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        assert begun.wait(30)
        raise KeyboardInterrupt
    other = tmp_path / "other"
    other.mkdir()
    taken = [os.open(other, os.O_RDONLY) for _ in range(4)]  # the first descriptor that is free, if any is
    try:
        ended.set()
        thread.join()
    finally:
        for handle in taken:
            os.close(handle)
    assert found == [True, True] and not list(other.iterdir())
    assert diskcache.get("t", KEY) == b"begun" and diskcache.get("t", KEY[::-1]) == b"later"
    assert len(os.listdir("/dev/fd")) == before, "nobody keeps it open"


def test_what_is_written_in_part_is_not_put_in_place(cache_folder: Path) -> None:
    """A full disk takes a part of a file before it refuses the rest."""
    whole = diskcache._MAGIC + bytes(5000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
        assert not diskcache.put("t", KEY, whole)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not [path for path in cache_folder.rglob("*") if path.is_file()]
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
        monkeypatch.setenv("XDG_CACHE_HOME", "some/where")
        monkeypatch.setenv("HOME", "/home/someone")
        assert diskcache.cache_folder() == "/home/someone/.cache/tinytg"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert diskcache.cache_folder() == "/home/someone/.cache/tinytg"
    with Context(CACHEDIR="/elsewhere"):
        assert diskcache.cache_folder() == "/elsewhere"


@pytest.mark.parametrize("chosen", ["", "relative/folder"])
def test_without_an_absolute_path_there_is_none(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cachefolder, "_told", set())
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "home")
    monkeypatch.chdir(tmp_path)
    with Context(CACHEDIR=chosen, DEBUG=1):
        assert diskcache.cache_folder() == ""
        assert not diskcache.put("t", KEY, b"payload")
        assert diskcache.get("t", KEY) is None
        assert cachecontent.clear() == 0
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().out.count("is not used") == 1
