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
    for device, steps in (("CPU", "80"), ("NUMPY", "4"), ("CPU", "4")):
        options = ["--steps", steps, "--images", "2000", "--held-out", "256", "--batch", "32"]
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
