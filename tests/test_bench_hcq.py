"""The benchmark of submissions to hardware queues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import hcq
from bench.page import page
from bench.record import Record
from bench.submissions import GOALS_US, SHOWN


def test_what_it_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    few = hcq.measured(3)
    assert few.keys() == SHOWN.keys() and GOALS_US.keys() < SHOWN.keys() and min(few.values()) > 0
    path = tmp_path / "record.json"
    Record().save(path)
    for factor, verdict in ((0.5, 0), (1.5, 1)):
        figures = {name: factor * GOALS_US.get(name, 10.0) for name in SHOWN}
        said: list[str] = []
        monkeypatch.setattr(hcq, "measured", lambda figures=figures: figures)
        assert hcq.main(said.append, str(path)) == verdict
        assert json.loads(said[0]) == figures == Record.load(path).hcq
        shown = page(Record.load(path))
        assert all(what in shown for what in SHOWN.values()) and ("✗" in shown) == bool(verdict)


def test_nothing_is_shown_that_was_not_measured() -> None:
    assert "Hardware queues" not in page(Record())
