"""Handlers of signals that raise at random instructions: see ``storm.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "storm.py"


def storm(what: str, seconds: float, device: str, seed: int, jit: int = 1) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), what, str(seconds), str(seed)],
        capture_output=True, text=True, timeout=60, env={**os.environ, "DEV": device, "JIT": str(jit)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("what", ["updates", "swaps", "replays", "modes"])
def test_a_handler_that_raises_leaves_before_or_after(what: str) -> None:
    storm(what, 1.0, "CPU", 0)


def test_a_replay_in_several_launches_is_one_step() -> None:
    storm("replays", 1.0, "CPU", 0, jit=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("device", ["CPU", "NUMPY", "HOSTQ"])
@pytest.mark.parametrize("what", ["updates", "swaps", "replays"])
def test_a_long_storm(what: str, device: str, seed: int) -> None:
    storm(what, 8.0, device, seed)
