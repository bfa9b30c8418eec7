"""The conformance class itself: groups that cover it, and tests that fail when they should."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tg_lazy import Context
from tg_runtime import Device
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.base import Absent, Group
from tg_runtime.testing.conformance import groups
from tg_runtime.testing.report import ABSENT, FAILED, PASSED, claimed, outcomes
from tg_runtime.testing.shapes import Views


def test_every_test_is_in_one_group() -> None:
    found = [name for names in groups().values() for name in names]
    assert sorted(found) == sorted(name for name in dir(DeviceConformance) if name.startswith("test_"))
    assert len(found) == len(set(found))


def test_no_group_hides_a_helper_of_another() -> None:
    parts = [vars(part) for part in DeviceConformance.__mro__ if issubclass(part, Group)]
    names = [n for part in parts for n in part if not n.startswith("__") and n != "group" and not n.startswith("_abc")]
    assert len(names) == len(set(names)), sorted(n for n in set(names) if names.count(n) > 1)


def test_outcomes() -> None:
    found = {outcome.group: outcome for outcome in outcomes("NUMPY", lambda group: group in ("views", "graph replay"))}
    assert found["views"].status == PASSED
    assert found["views"].tests == len(groups()["views"])
    assert found["graph replay"].status == ABSENT
    assert found["graph replay"].detail == "NUMPY has no graphs"


def test_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Views, "test_iota", lambda self: self.check("iota", [1, 2], [1, 3]))
    (found,) = outcomes("NUMPY", lambda group: group == "views")
    assert found.status == FAILED
    assert found.detail == "test_iota: NUMPY iota: element 1 is 2, 3 was expected"


def subject() -> DeviceConformance:
    made = DeviceConformance()
    made.launches = 500
    made.setup_method()
    return made


def test_what_a_launch_leaves_behind_is_seen() -> None:
    one, left = subject(), []
    try:
        with pytest.raises(AssertionError, match="left .* behind"):
            one._grows_not(lambda: left.append([bytearray(8192)]))
        one._grows_not(lambda: bytearray(8192))
    finally:
        one.teardown_method()


def test_a_device_that_executes_nothing_compares_nothing() -> None:
    one = DeviceConformance()
    one.device = "NULL"
    with Context(DEV="NULL"):
        one.check("nothing", [1], [2])
        with pytest.raises(Absent, match="NULL has no memory"):
            one.test_copies()


def test_claimed_dtypes() -> None:
    with Context(DEV="NULL:WGSL"):
        assert "float64" not in [d.name for d in claimed(Device["NULL"])]
        assert "bfloat16" in [d.name for d in claimed(Device["NULL"])]


def test_the_program() -> None:
    command = [sys.executable, "-m", "tg_runtime.testing", "--json", "--group", "views", "NUMPY"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == PASSED
    done = subprocess.run([*command, "NOSUCH"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "NOSUCH" in done.stderr
