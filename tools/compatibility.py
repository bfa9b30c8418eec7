"""Test the packages on the oldest and on the newest Python that can be had here.

    python -m tools.compatibility [PYTEST_ARGUMENT ...]

It runs one test in thirty-two of every file, one at the least, the same ones each time, and every page that runs. The
Python that runs this is left out: every other task runs on it. A Python that cannot be had is told, and is no failure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools import wheels
from tools.installer import uv
from tools.pythons import find, running, wanted

_TEST_TOOLS = [
    "gguf>=0.17",
    "hypothesis>=6.100",
    "jinja2>=3.1",
    "mpmath>=1.3",
    "pytest>=8.3",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "scikit-learn>=1.5",
    "z3-solver>=4.13",
]
_SELECTION = ["--sample", "32", "packages", "docs", "README.md"]


def chosen(found: list[tuple[str, Path | None]]) -> list[tuple[str, Path]]:
    """The oldest and the newest of the versions that have an interpreter.

    >>> chosen([("3.11", Path("a")), ("3.12", Path("b")), ("3.13", Path("c")), ("3.14", None)])
    [('3.11', PosixPath('a')), ('3.13', PosixPath('c'))]
    >>> chosen([("3.11", None), ("3.12", Path("b"))])
    [('3.12', PosixPath('b'))]
    """
    present = [(version, path) for version, path in found if path is not None]
    return [entry for place, entry in enumerate(present) if place in (0, len(present) - 1)]


def test(interpreter: Path, arguments: list[str]) -> bool:
    """Install every package, editable, for an interpreter, and run the chosen tests; whether they pass."""
    with tempfile.TemporaryDirectory(prefix="tinytg-python-") as scratch:
        wheels.run(uv(), "venv", "--quiet", "--python", interpreter, Path(scratch) / "env")
        python = Path(scratch) / "env" / "bin" / "python"
        editable = [part for home in wheels.homes() for part in ("--editable", str(home))]
        wheels.run(uv(), "pip", "install", "--quiet", "--python", python, *_TEST_TOOLS, *editable)
        try:
            command = ("-m", "pytest", "-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider")
            wheels.run(python, *command, *_SELECTION, *arguments)
        except subprocess.CalledProcessError:
            return False
    return True


def main(arguments: list[str]) -> int:
    pythons = [find(version) for version in wanted()]
    for python in pythons:
        print(f"Python {python.version}: {python.path or f'skipped, {python.missing}'}", flush=True)
    passed = True
    for version, path in chosen([(python.version, python.path) for python in pythons]):
        if version == running():
            print(f"Python {version} runs every other task: not tested again", flush=True)
        else:
            passed = test(path, arguments) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
