"""Random functions under TinyJit: seeds that gate every run. ``hatch run fuzz records`` tries others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tg_frontend.jit import outside

SEEDS = range(30)
FOUND = (285452547, 763902386)
"""What a run from a new seed found."""
COMPILED = range(1000, 1003)


@pytest.fixture(scope="module")
def fuzz(repository: Path) -> ModuleType:
    """The program."""
    spec = importlib.util.spec_from_file_location("record_fuzz", repository / "tests" / "fuzz" / "records.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("first", range(0, len(SEEDS), 10))
def test_records_do_what_functions_do(fuzz: ModuleType, first: int) -> None:
    whole = 0
    for seed in SEEDS[first : first + 10]:
        finding, complete = fuzz.check(seed)
        assert finding is None, finding
        whole += complete
    assert whole >= 5  # most are recorded and replayed to their end


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found(fuzz: ModuleType, seed: int) -> None:
    assert fuzz.check(seed)[0] is None


def test_compiled_records_do_what_functions_do(fuzz: ModuleType) -> None:
    for seed in COMPILED:
        finding, _ = fuzz.check(seed, "CPU")
        assert finding is None, finding


def test_a_record_that_does_not_look_is_found(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside.Outside, "changed", lambda self: "")
    assert any(fuzz.problem_of(fuzz.drawn(seed), "NUMPY")[0] for seed in SEEDS)
