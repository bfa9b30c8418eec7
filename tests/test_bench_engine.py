"""The benchmark of the engine of software GPUs."""

from __future__ import annotations

import json

import pytest
from bench import engine


def test_what_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    few = engine.measured(4000)
    assert {"wave64_mix_ns", "wave32_mix_ns", *engine.KINDS} == few.keys() and min(few.values()) > 0
    for mix, verdict in ((engine.GOAL_NS - 1, 0), (engine.GOAL_NS + 1, 1)):
        said: list[str] = []
        monkeypatch.setattr(engine, "measured", lambda mix=mix: {"wave64_mix_ns": mix})
        assert engine.main(said.append) == verdict
        assert json.loads(said[0]) == {"wave64_mix_ns": mix}
