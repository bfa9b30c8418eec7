"""Diffusion by a UNet: what is made of noise has the statistics of what was learnt."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
NUMBER = r"(-?[\d.]+)"


@pytest.mark.slow
def test_digits_are_made_of_noise(run: Run, repository: Path) -> None:
    pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    options = ["--steps", "120", "--width", "16", "--noise-steps", "12", "--batch", "32", "--samples", "64"]
    done = run(repository, "python", "examples/diffusion.py", *options)
    assert done.returncode == 0, done.stdout
    loss = re.search(rf"^loss +{NUMBER} at first, {NUMBER} at last", done.stdout, re.MULTILINE)
    samples = rf"^samples +mean {NUMBER}, deviation {NUMBER}, from {NUMBER} to {NUMBER}"
    made = re.search(samples, done.stdout, re.MULTILINE)
    data = re.search(rf"^data +mean {NUMBER}, deviation {NUMBER}", done.stdout, re.MULTILINE)
    assert loss is not None and made is not None and data is not None, done.stdout
    assert float(loss[2]) < 0.35 < 0.8 < float(loss[1])
    assert abs(float(made[1]) - float(data[1])) < 0.15 and abs(float(made[2]) - float(data[2])) < 0.2
    assert -1.3 < float(made[3]) < -0.8 and 0.8 < float(made[4]) < 1.3
