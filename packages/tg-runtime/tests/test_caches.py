"""Caches: what a system tells of them, on Linux and on macOS, and what is taken where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tg_runtime.host import caches
from tg_runtime.host.arch import MACHINES, CPUArch, this_machine
from tg_runtime.host.caches import Caches, from_sysctl, from_sysfs

USUAL = Caches(l1_bytes=1000, l1_ways=2, l2_bytes=5000, l2_ways=3, last_bytes=7, line_bytes=11)
ZEN5 = {
    "index0": {"level": "1", "type": "Data", "size": "48K", "ways_of_associativity": "12", "shared_cpu_list": "0",
               "coherency_line_size": "64"},
    "index1": {"level": "1", "type": "Instruction", "size": "32K", "ways_of_associativity": "8",
               "coherency_line_size": "128"},
    "index2": {"level": "2", "type": "Unified", "size": "1024K", "ways_of_associativity": "16", "shared_cpu_list": "0"},
    "index3": {"level": "3", "type": "Unified", "size": "32M", "ways_of_associativity": "16", "shared_cpu_list": "0-7"},
}  # fmt: skip


def folder(path: Path, described: dict[str, dict[str, str]]) -> Path:
    """A folder like Linux's."""
    for index, files in described.items():
        (path / index).mkdir()
        for name, text in files.items():
            (path / index / name).write_text(text + "\n", encoding="ascii")
    (path / "uevent").touch()
    return path


def test_what_linux_tells(tmp_path: Path) -> None:
    found = from_sysfs(folder(tmp_path, ZEN5), USUAL)
    assert found == Caches(48 << 10, 12, 1 << 20, 16, 32 << 20, 64)


@pytest.mark.parametrize(
    ("siblings", "cluster", "share"),
    [("0", "0-3", 256), ("0,4", "0,4", 1024), ("0-1", "0-7", 256), ("0", "0-63", 96), ("", "", 1024)],
    ids=["a cluster", "two threads of a core", "a cluster of threads", "all, it says", "nothing said"],
)
def test_a_cache_that_cores_share_is_divided(tmp_path: Path, siblings: str, cluster: str, share: int) -> None:
    described = {name: dict(files) for name, files in ZEN5.items()}
    described["index0"]["shared_cpu_list"], described["index2"]["shared_cpu_list"] = siblings, cluster
    found = from_sysfs(folder(tmp_path, described), USUAL)
    assert found.l2_bytes == share << 10 and found.l1_bytes == 48 << 10 and found.last_bytes == 32 << 20


@pytest.mark.parametrize(("sharers", "last"), [("0-1", 64), ("0-51", 260), ("", 32)], ids=["a guest", "its host", "-"])
def test_a_guest_has_a_part_of_its_hosts_last_cache(tmp_path: Path, sharers: str, last: int) -> None:
    described = {name: dict(files) for name, files in ZEN5.items()}
    described["index3"].update(size="266240K", shared_cpu_list=sharers)
    assert from_sysfs(folder(tmp_path, described), USUAL).last_bytes == last << 20


def test_nothing_told_is_what_is_usual(tmp_path: Path) -> None:
    assert from_sysfs(tmp_path / "none", USUAL) == USUAL
    assert from_sysfs(folder(tmp_path, {"index0": {}, "index1": {"level": "2"}}), USUAL) == USUAL


@pytest.mark.parametrize("size", ["", "K", "48k bytes", "-1K", "0K"])
def test_a_size_that_is_none_is_what_is_usual(tmp_path: Path, size: str) -> None:
    found = from_sysfs(folder(tmp_path, {"index0": {**ZEN5["index0"], "size": size}}), USUAL)
    assert found == USUAL


def test_ways_that_are_not_told(tmp_path: Path) -> None:
    """As on some guests: a larger cache has more ways, each of the usual size."""
    silent = {"level": "1", "type": "Data", "size": "4000", "ways_of_associativity": "unknown"}
    found = from_sysfs(folder(tmp_path, {"index0": silent}), USUAL)
    assert (found.l1_bytes, found.l1_ways, found.line_bytes) == (4000, 8, 11)
    assert (found.l2_bytes, found.l2_ways, found.last_bytes) == (5000, 3, 7)


def test_what_macos_tells() -> None:
    m1 = {"hw.perflevel0.l1dcachesize": 128 << 10, "hw.l1dcachesize": 64 << 10, "hw.perflevel0.l2cachesize": 12 << 20,
          "hw.perflevel0.cpusperl2": 4, "hw.cachelinesize": 128}  # fmt: skip
    usual = MACHINES["aarch64"].caches
    assert from_sysctl(lambda name: m1.get(name, 0), usual) == Caches(128 << 10, 8, 3 << 20, usual.l2_ways, 0, 128)
    intel = {"hw.l1dcachesize": 32 << 10, "hw.l2cachesize": 1 << 18, "hw.l3cachesize": 6 << 20, "hw.cachelinesize": 64}
    assert from_sysctl(lambda name: intel.get(name, 0), Caches()) == Caches(32 << 10, 8, 256 << 10, 16, 6 << 20, 64)
    assert from_sysctl(lambda name: 0, usual) == usual


def test_a_target_has_this_machines_caches_or_the_usual_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "SYSFS", folder(tmp_path, ZEN5))
    monkeypatch.setattr("sys.platform", "linux")
    caches.this_machine.cache_clear()
    try:
        here = CPUArch().target(3)
        assert (here.l1_bytes, here.l1_ways, here.line_bytes) == (48 << 10, 12, 64)
        assert (here.l2_bytes, here.l2_ways, here.last_bytes) == (1 << 20, 16, 32 << 20)
        other = next(name for name in MACHINES if name != this_machine())
        there, usual = CPUArch.parse(other).target(3), MACHINES[other].caches
        assert (there.l1_bytes, there.l1_ways, there.l2_bytes, there.l2_ways) == usual[:4] and there.last_bytes == 0
    finally:
        caches.this_machine.cache_clear()


def test_the_period_of_strides_is_a_way_of_the_cache() -> None:
    assert CPUArch.parse("aarch64").target(1).period_bytes == 16384 or this_machine() == "aarch64"
    assert CPUArch.parse("x86_64").target(1).period_bytes == 4096 or this_machine() == "x86_64"
