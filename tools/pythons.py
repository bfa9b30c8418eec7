"""The Pythons that a release is tried on, and where each of them is on this machine.

    python -m tools.pythons            # each version with its interpreter, or why there is none

The versions are those of ``tool.pythons`` in the root's ``pyproject.toml``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.installer import uv

ROOT = Path(__file__).resolve().parents[1]
_DOWNLOAD_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Python:
    """A version of Python, such as 3.13, and its interpreter here; without one, ``missing`` says why."""

    version: str
    path: Path | None
    missing: str = ""


def wanted(root: Path = ROOT) -> list[str]:
    """The versions that a release is tried on, oldest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pythons"]
    return [str(version) for version in settings["versions"]]


def running() -> str:
    """The version of the interpreter that runs this.

    >>> running().startswith("3.")
    True
    """
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _candidates(version: str) -> Iterator[Path]:
    """Where an interpreter of a version may be: this one, on the path, of pyenv, of uv."""
    if version == running():
        yield Path(sys.executable)
    if found := shutil.which(f"python{version}"):
        yield Path(found)
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(versions.glob(f"{version}.*/bin/python{version}"))
    managed = subprocess.run(
        [uv(), "python", "find", "--managed-python", "--no-python-downloads", version],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if managed.returncode == 0:
        yield Path(managed.stdout.strip())


def _runs(path: Path, version: str) -> bool:
    """Whether an interpreter starts and is of that version: a shim of pyenv may name one that is not active."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", program], capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str, *, download: bool = True) -> Python:
    """The interpreter of a version: one that is installed, or one that uv can download."""
    for path in _candidates(version):
        if _runs(path, version):
            return Python(version, path)
    if not download:
        return Python(version, None, "not installed")
    try:
        done = subprocess.run(
            [uv(), "python", "install", "--no-progress", version],
            capture_output=True,
            text=True,
            timeout=_DOWNLOAD_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return Python(version, None, f"not installed; its download took more than {_DOWNLOAD_TIMEOUT_S} s")
    if done.returncode != 0:
        cause = (done.stderr.strip().splitlines() or ["no reason given"])[-1].strip().removeprefix("cause: ")
        return Python(version, None, f"not installed, and uv cannot download it ({cause})")
    return find(version, download=False)


def main() -> int:
    for version in wanted():
        python = find(version)
        print(f"{version}: {python.path or f'skipped: {python.missing}'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
