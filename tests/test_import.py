"""What `import tinytg` costs: little time, and no heavy module that nobody used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["asyncio", "importlib.metadata", "llvmlite", "numpy", "urllib.request"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled modules, empty at first: each module is compiled once in this file."""
    return tmp_path_factory.mktemp("bytecode")


def in_a_new_process(program: str, cache: Path) -> str:
    """What a program prints, run with compiled modules kept in ``cache``."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "PYTHONPYCACHEPREFIX": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_import_takes_little_time(cache: Path) -> None:
    """Beside modules of Python's own, which are read and executed as these are: 3.6 times as long is usual."""
    program = """
import time
start = time.process_time()
import tinytg
taken, start = time.process_time() - start, time.process_time()
import asyncio, http.server, logging.config, unittest, xml.dom.minidom
print(taken / (time.process_time() - start))
"""
    in_a_new_process(program, cache)  # which compiles them
    assert any(float(in_a_new_process(program, cache)) <= 5 for _ in range(6))


def test_import_leaves_heavy_modules_alone(cache: Path) -> None:
    program = f"import tinytg, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert in_a_new_process(program, cache) == ""


def test_what_is_imported_late_is_there_for_whoever_does_not_name_it(cache: Path) -> None:
    """numpy and programs for any library of arrays ask a tensor, not the module."""
    for package, asked in (
        ("tinytg", "x.__array_namespace__().sum(x).backward()"),
        ("tinytg", "import numpy; numpy.sum(x).backward()"),
        ("tg_frontend", "import numpy; numpy.concatenate([x, numpy.ones(2)]).sum().backward()"),
    ):
        program = f"from {package} import Tensor; x = Tensor([1.0, 2.0], requires_grad=True); {asked}; print(x.grad)"
        assert in_a_new_process(program, cache) == "Tensor([1., 1.])", asked


def test_what_is_imported_late_is_listed_before(cache: Path) -> None:
    """Completion and tools for documentation go by ``dir``."""
    for package in ("tinytg", "tg_frontend"):
        program = f"import {package} as m; print(*sorted({{*m.__all__}} - {{*dir(m)}}))"
        assert in_a_new_process(program, cache) == "", package
