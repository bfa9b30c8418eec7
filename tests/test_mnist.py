"""Training at MNIST's size, with few of its images: the program that docs/devices.md shows on every device."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn's digits")


def test_handwriting_is_learnt(run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on the interpreter as on the processor, to the fourth digit of the loss."""
    losses = []
    for device, steps, tested in (("CPU", "80", "256"), ("NUMPY", "4", "16"), ("CPU", "4", "16")):
        options = ["--steps", steps, "--images", "2000", "--held-out", tested, "--batch", "32"]
        monkeypatch.setenv("DEV", device)
        done = run(repository, "python", "examples/mnist.py", *options)
        assert done.returncode == 0, done.stdout
        loss = re.search(r"^loss +([\d.]+) at first, ([\d.]+) at last", done.stdout, re.MULTILINE)
        accuracy = re.search(r"^accuracy +([\d.]+)%", done.stdout, re.MULTILINE)
        assert loss is not None and accuracy is not None, done.stdout
        losses.append((float(loss[1]), float(loss[2]), float(accuracy[1])))
    assert losses[0][1] < losses[0][0] / 2
    assert losses[0][2] > 60
    assert losses[1][:2] == pytest.approx(losses[2][:2], abs=2e-4)


def test_the_schedule_of_a_gpu_that_is_not_here_is_printed(
    run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/devices.md says."""
    monkeypatch.setenv("DEV", "NULL:CUDA:sm_90")
    monkeypatch.setenv("DEBUG", "5")
    done = run(repository, "python", "examples/mnist.py", "--steps", "2", "--images", "500", "--held-out", "16")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("__global__") > 20 and "images/s" not in done.stdout
