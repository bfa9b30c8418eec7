"""A sample of the fuzzers with fixed seeds, and that they know every method. ``hatch run fuzz`` draws new programs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import programs
from tests.fuzz.methods import NOT_A_COMPUTATION, NOT_DRAWN, RANDOM, RANDOM_TESTS, ROWS
from tg_frontend.keywords import other_names
from tg_lazy import Context
from tinytg import Tensor


def test_every_method_is_fuzzed_or_it_is_said_why_not() -> None:
    public = {name for name in dir(Tensor) if not name.startswith("_")} - set(other_names(Tensor))
    assert public - set(ROWS) - NOT_A_COMPUTATION - RANDOM == set()
    assert (set(ROWS) | NOT_A_COMPUTATION | RANDOM) - public == set()


def test_what_is_not_fuzzed_is_asked_by_the_test_that_is_named() -> None:
    root = Path(__file__).parent.parent
    for path, names in (*NOT_DRAWN.values(), *RANDOM_TESTS.items()):
        words = set(re.findall(r"\w+", (root / path).read_text(encoding="utf-8")))
        assert set(names.split()) - words == set(), path


@pytest.mark.drawn(4)
@pytest.mark.parametrize("device", ["NUMPY", "CPU"])
@pytest.mark.parametrize("seed", range(16))
def test_programs(device: str, seed: int) -> None:
    with Context(DEV=device):
        finding = programs.attempt(seed)
    assert finding is None, f"\n{finding}"


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Tensor, *order: int) -> Tensor:
        return original(self, *order).flip(0) if self.ndim == 3 else original(self, *order)

    def meets_it(seed: int) -> bool:
        steps = programs.program_of(seed)[0].steps
        calls = [s.call for s in steps if isinstance(s, programs.Step)]
        return any(call.name == "permute" and len(call.args[1]) == 3 for call in calls)

    original = Tensor.permute
    monkeypatch.setattr(Tensor, "permute", wrong)
    with Context(DEV="NUMPY"):
        found = next(f for seed in range(10_000) if meets_it(seed) and (f := programs.attempt(seed)) is not None)
    assert "wrong" in found.problem and found.program.count(" = t") == 1, found


def test_what_cancels_leaves_rounding() -> None:
    """A mean that is 0 but for rounding is right; one that is off by more is not."""
    mean = np.array([2e-16])
    assert "wrong" in programs.apart(mean / 2, mean, "float64", 64.0)
    assert programs.apart(mean / 2, mean, "float64", 64.0, 1.0) == ""
    assert "wrong" in programs.apart(mean + 1e-9, mean, "float64", 64.0, 1.0)
