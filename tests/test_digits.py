"""The demonstration: real handwriting learnt through every layer."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn's digits")

FIRST = re.compile(r"^epoch +1/\d+ +(loss [\d.]+ +held out [\d.]+)", re.MULTILINE)


def accuracy(printed: str) -> float:
    """The share, in per cent, that the summary states."""
    found = re.search(r"^accuracy +([\d.]+)%", printed, re.MULTILINE)
    assert found is not None, printed
    return float(found[1])


@pytest.fixture(scope="module")
def whole(run: Run, repository: Path) -> str:
    """What the program prints that is called as the README says."""
    done = run(repository, "python", "examples/digits.py")
    assert done.returncode == 0, done.stdout
    return done.stdout


@needs_sklearn
def test_the_held_out_fifth_is_learnt(whole: str) -> None:
    assert accuracy(whole) >= 97.0
    lines = whole.splitlines()
    assert sum(line.startswith("epoch ") for line in lines) == 12
    for name in ("speed", "kernels", "compile time", "whole run"):
        assert any(line.startswith(name) for line in lines), name


@pytest.fixture(scope="module")
def required(run: Run, repository: Path) -> str:
    """What it prints with another seed, whose first epoch is not as exact as is required."""
    done = run(repository, "python", "examples/digits.py", "--epochs", "1", "--seed", "1", "--require", "99.9")
    assert done.returncode == 1, done.stdout
    return done.stdout


@needs_sklearn
def test_a_required_accuracy_that_is_not_reached_fails(required: str) -> None:
    assert "below the required 99.9%" in required, required


@needs_sklearn
def test_a_seed_makes_it_reproducible(whole: str, interrupted: str, required: str) -> None:
    """The first epoch is the same however many come after it: that of the seed 0, which is the default."""
    first, again, other = map(FIRST.findall, (whole, interrupted, required))
    assert first == again != other
    assert len(first) == len(other) == 1


@pytest.fixture(scope="module")
def interrupted(repository: Path) -> str:
    """What it prints that is interrupted in its third epoch."""
    sources = [str(path) for path in (*sorted(repository.glob("packages/*/src")), repository / "src")]
    process = subprocess.Popen(
        [sys.executable, "-u", "examples/digits.py", "--epochs", "1000"],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    try:
        for line in process.stdout:
            printed += line
            if line.startswith("epoch  2"):
                process.send_signal(signal.SIGINT)
                break
        printed += process.communicate(timeout=60)[0]
    finally:
        process.kill()
    assert process.returncode == 0, printed
    return printed


@needs_sklearn
def test_ctrl_c_prints_the_summary(interrupted: str) -> None:
    assert "stopped" in interrupted and accuracy(interrupted) > 50


def test_without_scikit_learn_it_says_what_to_install(run: Run, repository: Path) -> None:
    hidden = "import sys; sys.modules['sklearn'] = sys.modules['sklearn.datasets'] = None; sys.argv = ['digits.py']; "
    code = hidden + "import runpy; runpy.run_path('examples/digits.py', run_name='__main__')"
    done = run(repository, "python", "-c", code)
    assert done.returncode == 1
    assert "pip install scikit-learn" in done.stdout


def test_help_names_the_options(run: Run, repository: Path) -> None:
    done = run(repository, "python", "examples/digits.py", "--help")
    assert done.returncode == 0
    assert all(option in done.stdout for option in ("--epochs", "--batch", "--lr", "--seed"))
