"""The command `tinytg`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


def tinytg(*arguments: str, dev: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tinytg", *arguments], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "DEV": dev},
    )  # fmt: skip


def test_version(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tinytg("--version").stdout == f"tinytg {project['version']}\n"


def test_devices_are_listed_with_their_state() -> None:
    done = tinytg("devices")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert {"CPU", "CL", "NUMPY", "NULL", "DISK", "HOSTQ"} <= set(lines)
    assert "available" in lines["NULL"] and "tg-runtime" in lines["NULL"]
    assert "tg-hcq" in lines["HOSTQ"]
    assert "tg_runtime" not in done.stdout and "1 threads" not in done.stdout


def test_listing_opens_nothing_and_is_quick() -> None:
    program = """
import sys, time
start, x = time.process_time(), 1
for _ in range(100_000):  # what the machine's speed is measured by
    x = x * 3 % 1_000_003
yard = time.process_time() - start
from tinytg.cli import main
main(["devices"])
from tg_runtime import Device
print("opened:", Device.opened(), "heavy:", [name for name in ("llvmlite", "numpy") if name in sys.modules])
print("yards:", (time.process_time() - start) / yard)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *lines, opened, yards = done.stdout.splitlines()
    assert opened == "opened: [] heavy: []" and float(yards.partition(": ")[2]) < 150
    assert lines[0].split() == ["device", "interface", "renderers", "arch", "memory", "offered", "by", "state"]


def test_why_a_device_is_not_available() -> None:
    env = {**os.environ, "OPENCL_LIBRARY": "/nowhere/libOpenCL.so", "PATH": "/nowhere", "CC": ""}
    done = subprocess.run(
        [sys.executable, "-m", "tinytg.cli", "devices"], capture_output=True, text=True, timeout=60, env=env
    )
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "the library that OPENCL_LIBRARY names cannot be loaded" in lines["CL"]
    assert "(CLANG)" in lines["CPU"] and "CPU:CLANG: no clang on the PATH" in done.stdout


def test_a_device_that_is_named_is_opened() -> None:
    done = tinytg("devices", "cpu", "NULL")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "iB" in lines["CPU"] and lines["CPU"].endswith("open") and lines["NULL"].endswith("open")
    done = tinytg("devices", "DISK", "WARP")
    assert done.returncode == 1 and "wants a file" in done.stdout and "there is no device WARP" in done.stdout


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("dev", "complaint"),
    [
        ("FOO", "DEV='FOO': there is no device FOO. There are:"),
        ("CPU;FOO", "DEV='CPU;FOO': there is no device FOO. There are:"),
        (";;", "DEV=';;': DEV has an empty entry; entries are separated by ';'"),
        ("CPU:0", "DEV='CPU:0': DEV entry 'CPU:0': '0' is not the name of a renderer"),
        ("CPU:LLVM:foo", "DEV='CPU:LLVM:foo': CPU: CPU arch: LLVM knows no processor foo"),
        ("NULL:MSL:x", "DEV='NULL:MSL:x': NULL: DEV entry 'NULL:MSL:x': the renderer MSL has no architectures"),
        ("NUMPY:X", "DEV='NUMPY:X': NUMPY: it has no renderer X; it has none"),
    ],
)
def test_a_wrong_setting_is_told_once_above_the_table(dev: str, complaint: str) -> None:
    done = tinytg("devices", dev=dev)
    assert done.returncode == 1 and not done.stderr
    first, head, *rest = done.stdout.splitlines()
    assert first.startswith(complaint) and head.startswith("device ")
    assert "no device FOO" not in "".join(rest)
    lines = {line.split()[0]: line for line in rest}
    assert "LLVM" in lines["CPU"] and "iB" in lines["CPU"]
    named = dev.partition(":")[0]
    for name in ("NUMPY", "NULL", "CPU"):
        assert lines[name].endswith("not as DEV asks" if name == named and f": {name}: " in first else "available")


def test_a_device_that_is_named_under_a_wrong_setting() -> None:
    done = tinytg("devices", "NULL", "CPU:CLANG", dev="FOO")
    assert done.returncode == 1 and done.stdout.startswith("DEV='FOO': ")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["NULL"].endswith("open") and "after CPU: comes a number" in lines["CPU:CLANG"]


def test_the_cache_is_shown_and_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    env = {**os.environ, "CACHEDIR": str(folder), "DEV": ""}
    program = "from tinytg import Tensor; print((Tensor([1, 2, 3]).contiguous() + 1).tolist())"

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, env=env, check=True)
        return done.stdout

    shown = run("-m", "tinytg", "cache").splitlines()
    assert shown[0].startswith(f"{folder} (at most 1024 MiB") and shown[-1].split() == ["all", "0", "0", "B"]
    assert run("-c", program) == "[2, 3, 4]\n"
    shown = run("-m", "tinytg", "cache", "show").splitlines()
    entries = {name: int(count) for name, count, _ in (re.split(r"\s{2,}", line) for line in shown[2:])}
    assert entries["generated kernels"] >= 1
    assert entries["all"] == sum(path.is_file() for path in folder.rglob("*"))
    assert run("-m", "tinytg", "cache", "clear") == f"{folder}: {entries['all']} entries deleted\n"
    assert not any(path.is_file() for path in folder.rglob("*"))
    folder.chmod(0o777)
    assert "not used, others may write there" in run("-m", "tinytg", "cache")


def test_an_unknown_command_fails() -> None:
    done = tinytg("fly")
    assert done.returncode == 2 and "devices" in done.stderr
