"""A sample of the programs of writes and gradients, with fixed seeds. ``hatch run fuzz gradients`` draws new ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz import gradients
from tests.fuzz.lines import Finding
from tg_frontend.array import writing
from tg_frontend.autograd.functions import Became, Seen
from tg_frontend.memory.home import Bits, Memory
from tg_lazy import Context


@pytest.mark.parametrize(("device", "first", "count"), [("NUMPY", 0, 60), ("NUMPY", 1000, 60), ("CPU", 2000, 3)])
def test_programs(device: str, first: int, count: int) -> None:
    with Context(DEV=device):
        for seed in range(first, first + count):
            finding = gradients.attempt(seed)
            assert finding is None, f"\n{finding}"


def _found() -> Finding:
    with Context(DEV="NUMPY"):
        return next(f for seed in range(400) if (f := gradients.attempt(seed)) is not None)


def test_views_whose_whole_is_not_found_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_viewed", lambda x: x)
    assert "the derivative is" in _found().what


def test_bits_that_are_no_longer_those_of_their_memory_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bits, "take", Memory.take)
    assert any(".bitcast(" in line for line in _found().lines)


def test_writes_as_data_that_are_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_root(x: Any, line: Any, *rest: Any) -> Any:
        return kept(x, line, *rest) if line.node is None else line.node

    kept = writing._as_root
    monkeypatch.setattr(writing, "_as_root", as_root)
    assert "is [" in _found().what


def test_what_is_detached_and_gives_gradients_to_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "lineage", lambda x: x._memory())
    assert any(".detach()" in line for line in _found().lines)


@pytest.mark.parametrize("kind", [Became, Seen])
def test_users_of_what_was_before_are_found(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "renewed", False)
    assert "derivative" in _found().what or "gradient" in _found().what


def test_results_that_would_be_refused_are_no_findings() -> None:
    lines = ["a0 = leaf(0)", "v0 = a0 * 1.5", "v1 = v0.sin()", "with no_grad(): v0[0] = 0.5"]
    with Context(DEV="NUMPY"):
        assert gradients.model(lines) is not None and gradients.wrong(lines) == ""
        assert gradients.wrong([*lines, "v0[9] = 1.0"]) == ""
