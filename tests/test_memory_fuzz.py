"""A sample of the programs of views and writes, with fixed seeds. ``hatch run fuzz memory`` draws new ones."""

from __future__ import annotations

import pytest

import tg_frontend.memory.home
from tests.fuzz import memory
from tg_frontend.array.base import Base
from tg_lazy import Context
from tg_lazy.order.order import Ordering


@pytest.mark.parametrize(("device", "first", "count"), [("NUMPY", 0, 40), ("NUMPY", 40, 40), ("CPU", 1000, 4)])
def test_programs(device: str, first: int, count: int) -> None:
    with Context(DEV=device):
        for seed in range(first, first + count):
            finding = memory.attempt(seed)
            assert finding is None, f"\n{finding}"


def _found() -> memory.Finding:
    with Context(DEV="NUMPY"):
        return next(f for seed in range(400) if (f := memory.attempt(seed)) is not None)


def test_views_that_do_not_share_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Base, "_show", lambda self, out, function: out._part())
    assert len(_found().lines) <= 4


def test_results_that_share_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Base, "_share_with", lambda self, operands: None)
    assert len(_found().lines) <= 6


def test_holders_of_a_value_that_are_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tg_frontend.memory.home, "spare", lambda memory: None)
    assert len(_found().lines) <= 6


def test_a_step_that_overwrites_what_it_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ordering, "_detour", lambda self, step, root: None)
    assert "overwrites what it has yet to read" in _found().what
