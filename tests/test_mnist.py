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
    """The same on the interpreter as on the processor, to the fourth digit of the first losses, of a replay, too."""
    losses, said = {}, {}
    for device, steps, tested in (("CPU", 80, 256), ("NUMPY", 3, 16)):
        options = ["--steps", steps, "--images", 2000, "--held-out", tested, "--batch", 32, "--every", 1]
        monkeypatch.setenv("DEV", device)
        done = run(repository, "python", "examples/mnist.py", *map(str, options))
        assert done.returncode == 0, done.stdout
        losses[device] = [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+)$", done.stdout, re.MULTILINE)]
        assert len(losses[device]) == steps, done.stdout
        said[device] = done.stdout
    found = re.search(r"^loss +([\d.]+) at first, ([\d.]+) at last", said["CPU"], re.MULTILINE)
    accuracy = re.search(r"^accuracy +([\d.]+)%", said["CPU"], re.MULTILINE)
    assert found is not None and accuracy is not None, said["CPU"]
    assert float(found[2]) < float(found[1]) / 2
    assert float(accuracy[1]) > 60
    assert losses["CPU"][:3] == pytest.approx(losses["NUMPY"], abs=2e-4)


def test_the_schedule_of_a_gpu_that_is_not_here_is_printed(
    run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/devices.md says."""
    monkeypatch.setenv("DEV", "NULL:CUDA:sm_90")
    monkeypatch.setenv("DEBUG", "5")
    done = run(repository, "python", "examples/mnist.py", "--steps", "2", "--images", "500", "--held-out", "16")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("__global__") > 20 and "images/s" not in done.stdout
