"""Which test runs which line: a plugin of pytest that measures it, and the questions that are asked of the record."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

FOLDER = "TINYTG_MUTANTS"
"""Names the folder of the record while the plugin runs."""


class Covering:
    """The plugin: each test is a context of coverage, and has a duration."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.durations: dict[str, float] = {}
        self.path = folder / f"durations.{worker}.json"
        self.coverage = coverage.Coverage(
            data_file=str(folder / f"coverage.{worker}"), include=["*/packages/*/src/*"], config_file=False
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        self.path.write_text(json.dumps(self.durations), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get(FOLDER)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if folder and (worker or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Covering(Path(folder), worker or "main"), "mutants-covering")


class Record:
    """What :func:`measure` wrote.

    Attributes:
      durations: seconds of each test.
    """

    def __init__(self, folder: Path) -> None:
        self.data = coverage.CoverageData(str(folder / "coverage"))
        self.data.read()
        self.durations: dict[str, float] = json.loads((folder / "durations.json").read_text(encoding="utf-8"))
        self._files = {Path(name).as_posix().rpartition("/packages/")[2]: name for name in self.data.measured_files()}

    def tests(self, path: str, line: int) -> list[str]:
        """The tests that run a line; of a line that runs on import, those that run any line of the file."""
        name = self._files.get(path.partition("packages/")[2])
        if name is None:
            return []
        lines = self.data.contexts_by_lineno(name)
        here = {test for test in lines.get(line, ()) if test}
        if not here and line in lines:
            here = {test for tests in lines.values() for test in tests if test}
        return sorted(here)


def measure(root: Path, folder: Path, jobs: int, arguments: list[str]) -> int:
    """Runs the suite once with the plugin."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutants.cover", "-n", str(jobs), *arguments]
    status = subprocess.run(command, cwd=root, env={**os.environ, FOLDER: str(folder)}, check=False).returncode
    whole = coverage.Coverage(data_file=str(folder / "coverage"), config_file=False)
    whole.combine([str(path) for path in sorted(folder.glob("coverage.*"))])
    whole.save()
    durations: dict[str, float] = {}
    for path in sorted(folder.glob("durations.*.json")):
        durations |= json.loads(path.read_text(encoding="utf-8"))
    (folder / "durations.json").write_text(json.dumps(durations), encoding="utf-8")
    return status
