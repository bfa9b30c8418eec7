"""The benchmark of the engine of software GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import engine
from bench.instructions import GOALS_NS, SHOWN
from bench.page import page
from bench.record import Record


def test_what_it_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    few = engine.measured(4000)
    assert few.keys() == SHOWN.keys() and GOALS_NS.keys() < SHOWN.keys() and min(few.values()) > 0
    path = tmp_path / "record.json"
    Record().save(path)
    for factor, verdict in ((0.5, 0), (1.5, 1)):
        figures = {name: factor * GOALS_NS.get(name, 10.0) for name in SHOWN}
        said: list[str] = []
        monkeypatch.setattr(engine, "measured", lambda figures=figures: figures)
        assert engine.main(said.append, str(path)) == verdict
        assert json.loads(said[0]) == figures == Record.load(path).engine
        shown = page(Record.load(path))
        assert all(what in shown for what in SHOWN.values()) and ("✗" in shown) == bool(verdict)
    assert "Software GPUs" not in page(Record())
