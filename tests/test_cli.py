"""The command `tinytg`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path


def tinytg(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tinytg.cli", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


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


def test_an_unknown_command_fails() -> None:
    done = tinytg("fly")
    assert done.returncode == 2 and "devices" in done.stderr
