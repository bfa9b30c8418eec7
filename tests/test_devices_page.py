"""docs/devices.md: its tables say what the results say that are kept, of every group and device that there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tools import devices

from tg_runtime import Device, parse_dev
from tg_runtime.testing.conformance import groups


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(devices.RESULTS.read_text(encoding="utf-8"))
    return found


def test_the_page_is_what_the_results_say(results: dict[str, Any]) -> None:
    text = devices.PAGE.read_text(encoding="utf-8")
    assert devices.page(text, results) == text, "run python -m tools.devices --page"


def test_every_device_and_every_group_was_run(results: dict[str, Any]) -> None:
    assert [s.label for s in devices.SUBJECTS if "matrix" not in results.get(s.label, {})] == []
    for subject in devices.SUBJECTS:
        assert list(results[subject.label]["matrix"]) == list(groups()), subject.label
    assert set(results) == {s.label for s in devices.SUBJECTS}
    tests = {group: len(names) for group, names in groups().items()}
    for subject in devices.SUBJECTS:
        for group, outcome in results[subject.label]["matrix"].items():
            assert outcome["tests"] <= tests[group]
            whole = outcome["tests"] == tests[group]
            assert whole or outcome["detail"], f"{subject.label} {group}: run tools.devices again"


def test_every_device_that_executes_is_a_column() -> None:
    """A device that is added without a column would be claimed by nobody to pass."""
    known = {entry.device for s in devices.SUBJECTS for entry in parse_dev(s.dev)}
    ours = {name for name in Device.names() if Device.load(name).__module__.startswith(("tg_runtime", "tg_hcq"))}
    assert ours - known <= {"DISK", "SHM"}


def test_nothing_fails(results: dict[str, Any]) -> None:
    assert devices.failures(results) == []


def test_programs_learn_and_agree(results: dict[str, Any]) -> None:
    for subject in (s for s in devices.SUBJECTS if s.executes and s.programs):
        one = results[subject.label]
        assert one["mnist"]["last"] < one["mnist"]["first"] / 1.5, subject.label
        assert one["mnist"]["accuracy"] > 60, subject.label
        reference = results["CPU:LLVM"]["embed"]["cosines"]
        assert all(abs(a - b) < 0.002 for a, b in zip(one["embed"]["cosines"], reference, strict=True)), subject.label


def test_cells() -> None:
    notes: list[str] = []
    outcome = {"status": "absent", "tests": 0, "detail": "NUMPY has no graphs"}
    assert devices.cell(outcome, notes) == "– 1"
    assert devices.cell({**outcome, "status": "passed", "detail": "CL has no buffers: too large"}, notes) == "✓ 2"
    assert devices.cell({**outcome, "status": "FAILED"}, notes) == "**fails**"
    assert devices.cell(None, notes) == "?"
    assert notes == ["no graphs", "no buffers"]


def test_the_groups_of_the_page_are_told(results: dict[str, Any]) -> None:
    """Each group is in the table that says what the groups ask."""
    text = devices.PAGE.read_text(encoding="utf-8")
    told = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text.split("The columns:")[0], re.MULTILINE)
    assert {name.strip() for row in told for name in re.split(r", (?!\d)", row)} >= set(groups())


def test_a_page_without_its_places(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no place for the table subjects"):
        devices.page("nothing", {})
