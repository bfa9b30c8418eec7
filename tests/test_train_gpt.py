"""The example that trains a GPT: what is resumed is what would have been without a stop."""

from __future__ import annotations

import argparse
import collections
import importlib.util
import math
import random
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics
from types import ModuleType
from typing import Any

import pytest

from tinytg import Tensor

Run = Callable[..., subprocess.CompletedProcess[str]]
TEXT = bytes(random.Random(1).choices(b"abc \xc3\xa4", k=211))


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """``examples/train_gpt.py`` as a module."""
    path = Path(__file__).parents[1] / "examples" / "train_gpt.py"
    spec = importlib.util.spec_from_file_location("train_gpt_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(steps: int, **more: int) -> argparse.Namespace:
    """A small model, with the schedule of seven steps."""
    small = {"context": 9, "width": 6, "heads": 2, "layers": 1, "batch": 2, "lr": 0.01, "warmup": 2}
    return argparse.Namespace(**{**small, "steps": steps, **more})


def test_what_is_resumed_goes_on_with_the_same_numbers(example: ModuleType, tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    first.mkdir()
    other.mkdir()
    Tensor.manual_seed(5)
    whole = example.Training(TEXT, options(7))
    whole.run(first, every=3, look=3)
    Tensor.manual_seed(5)
    stopped = example.Training(TEXT, options(7))
    saved: Callable[[Path], None] = stopped.save

    def save(file: Path) -> None:
        saved(file)
        if len(stopped.losses) == 3:
            raise KeyboardInterrupt

    stopped.save = save
    with pytest.raises(KeyboardInterrupt):  # once while it trains, and once more while it saves because of that
        stopped.run(other, every=3, look=3)
    Tensor.manual_seed(99)
    resumed = example.Training(TEXT, options(7))
    resumed.load(other / "checkpoint.safetensors")
    assert resumed.losses == whole.losses[:3]
    resumed.run(other, every=100, look=3)
    assert resumed.losses == whole.losses and resumed.checks == whole.checks
    assert [step for step, _ in whole.checks] == [3, 6, 7]


def test_a_checkpoint_of_another_shape_is_refused(example: ModuleType, tmp_path: Path) -> None:
    example.Training(TEXT, options(1)).save(tmp_path / "c.safetensors")
    with pytest.raises(ValueError, match=r"is of .*'width': 6.*, not of .*'width': 12"):
        example.Training(TEXT, options(1, width=12)).load(tmp_path / "c.safetensors")
    with pytest.raises(ValueError, match="19 bytes of text are too few for a context of 9"):
        example.Training(TEXT[:19], options(1))


def test_the_curve_shows_every_loss(example: ModuleType) -> None:
    losses = [5.5, 4.0, 2.5, 2.0]
    root = ET.fromstring(example.curve(losses, [(2, 4.2), (4, 2.4)]))
    tag = "{http://www.w3.org/2000/svg}"
    lines: list[Any] = root.findall(f"{tag}polyline")
    heights = [float(point.split(",")[1]) for point in lines[0].attrib["points"].split()]
    assert len(lines) == 2 and heights == sorted(heights) and len(heights) == 4  # y grows downwards
    assert len(root.findall(f"{tag}circle")) == 2
    assert example.curve([], []).startswith("<svg")


def entropy(text: bytes) -> float:
    """The loss, in nats, of who knows how often each byte comes, and nothing of the bytes before it."""
    return -sum(n / len(text) * math.log(n / len(text)) for n in collections.Counter(text).values())


@pytest.mark.slow
def test_text_is_learnt(run: Run, repository: Path, tmp_path: Path) -> None:
    """On Python's own manual, which comes with it: our documentation is another text with each commit."""
    shape = "--width 33 --heads 3 --layers 2 --context 65 --batch 8 --steps 150 --out".split()
    text = Path(topics.__file__)
    done = run(repository, "python", "examples/train_gpt.py", *shape, tmp_path, "--text", text)
    assert done.returncode == 0, done.stdout
    found = [float(number) for number in re.findall(r"held out ([\d.]+)", done.stdout)]
    assert len(found) == 3 and found == sorted(found, reverse=True), done.stdout
    assert found[-1] < entropy(text.read_bytes()[-text.stat().st_size // 10 :]) - 0.3, done.stdout
    again = run(repository, "python", "examples/train_gpt.py", *shape, tmp_path)
    assert again.returncode != 0 and "--resume goes on with it" in again.stdout
