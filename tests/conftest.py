"""Fixtures of the end-to-end tests: a scratch copy of the repository, and a way to run a command in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_PARTS = (
    "packages", "src", "tools", "bench", "docs", "examples", "tests", "conftest.py", "pyproject.toml", ".importlinter",
)  # fmt: skip
_FILES = ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "mkdocs.yml")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository under test."""
    return _ROOT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the repository, to be damaged."""
    return _copied(tmp_path / "tree")


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a copy of the repository that several tests damage together."""
    return lambda: _copied(tmp_path_factory.mktemp("copy") / "tree")


def _copied(copy: Path) -> Path:
    copy.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", "dist", "site")
    for name in (*_PARTS, *_FILES):
        source = _ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=unwanted)
        else:
            shutil.copy2(source, copy / name)
    return copy


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a program in a folder whose packages come first on the import path; returns the completed process.

    ``run(folder, "name", *arguments)``: a program is looked up beside this interpreter, then on the path; ``python`` is
    this interpreter. Standard output and error come back as one text. Hatch makes its environments in the folder, and
    finds only what they hold.
    """

    def run_in(folder: Path, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        sources = [str(path) for path in (*sorted(folder.glob("packages/*/src")), folder / "src")]
        if program == "hatch":
            variables = {"HATCH_DATA_DIR": str(folder / ".hatch"), "PYTHONPATH": ""}
        else:
            variables = {"PYTHONPATH": os.pathsep.join(sources)}
        beside = Path(sys.executable).with_name(program)
        command = sys.executable if program == "python" else str(beside) if beside.exists() else program
        return subprocess.run(
            [command, *(str(argument) for argument in arguments)],
            cwd=folder,
            env={**os.environ, **variables, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )

    return run_in
