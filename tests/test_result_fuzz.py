"""Results that share memory, with a record and without: seeds that gate every run. ``hatch run fuzz`` tries others."""

from __future__ import annotations

import pytest

from tests.fuzz import complex_results, results
from tg_frontend.jit import outcome

SEEDS = range(1100, 1160)
FOUND = (794191822, 285452706, 285453073, 1065122162)
"""What runs from new seeds found."""


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found(seed: int) -> None:
    assert results.attempt(seed) is None


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, 20))
def test_results_share_what_they_share_without_a_record(first: int) -> None:
    for seed in range(first, first + 20):
        finding = results.attempt(seed)
        assert finding is None, finding


def test_results_that_are_made_apart_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome.Outcome, "_sharing", lambda self, *given: {})
    assert any(results.attempt(seed) is not None for seed in SEEDS)


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, 20))
def test_complex_results_share_what_they_share_without_a_record(first: int) -> None:
    for seed in range(first, first + 20):
        finding = complex_results.attempt(seed)
        assert finding is None, finding


def test_complex_results_that_are_made_apart_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome.Outcome, "_sharing", lambda self, *given: {})
    assert any(complex_results.attempt(seed) is not None for seed in SEEDS)
