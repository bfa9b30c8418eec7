"""A run that is saved, and resumed by a new process, ends in the same bits as one that was not interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.drawn(1)
@pytest.mark.parametrize("jit", [False, True])
def test_bits(jit: bool, run: Callable[..., Any], repository: Path, tmp_path: Path) -> None:
    def train(out: str, jit: bool, *more: str) -> bytes:
        program = repository / "tests" / "programs" / "resume.py"
        done = run(repository, "python", program, tmp_path / out, *more, *(["--jit"] if jit else []))
        assert done.returncode == 0, done.stdout
        return (tmp_path / out).read_bytes()

    saved = str(tmp_path / "saved.safetensors")
    whole = train("whole", jit, "--save-at", "7", "--save-to", saved)
    for jit_again in {jit, False}:
        assert whole == train("again", jit_again, "--resume", saved), f"with jit={jit_again}"
    assert whole != Path(saved).read_bytes()
