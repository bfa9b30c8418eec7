"""A GPT with a cache of keys and values: what it generates is what it would generate without."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinytg import Context, Tensor

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def chargpt(repository: Path) -> Any:
    spec = importlib.util.spec_from_file_location("chargpt", repository / "examples" / "chargpt.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cache_changes_nothing(chargpt: Any) -> None:
    Tensor.manual_seed(3)
    model = chargpt.GPT(vocabulary=29, context=21, width=12, heads=3, layers=1)
    model.characters.weight *= 3  # so that what is likeliest depends on what came before
    generator, prompt = chargpt.Generator(model), [7, 1, 28]
    made = generator(prompt, 18)
    assert len(made) == 18 and len(set(made)) > 3
    assert generator.without_cache(prompt, 18) == made
    assert generator(prompt, 18) == made  # over what the cache holds from before
    assert generator.next_of_one.cnt == generator.next_of_all.cnt == 2
    with Context(JIT=0), Tensor.no_grad():
        assert int(model(Tensor([prompt + made[:-1]], dtype="int32"))[0, -1].argmax().item()) == made[-1]


@pytest.mark.slow
def test_a_text_is_learnt_and_continued(run: Run, repository: Path) -> None:
    done = run(repository, "python", "examples/chargpt.py", "--steps", "120", "--context", "33", "--width", "36")
    assert done.returncode == 0, done.stdout
    loss = re.search(r"^loss +([\d.]+) at first, ([\d.]+) at last; ([\d.]+) is a guess", done.stdout, re.MULTILINE)
    made = re.search(r"^continued +'A record (.+)'$", done.stdout, re.MULTILINE)
    assert loss is not None and made is not None, done.stdout
    assert float(loss[2]) < 2.8 < float(loss[3]) < float(loss[1]) < 5
    assert len(set(made[1])) > 3
    assert "same uncached True" in done.stdout, done.stdout
