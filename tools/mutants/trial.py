"""A mutant on trial: planted in a copy of the tree, before the tests that cover it."""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .mutations import Mutant

PARTS = ("packages", "src", "tools", "bench", "docs", "examples", "tests", "conftest.py", "pyproject.toml",
         ".importlinter", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "mkdocs.yml")  # fmt: skip


FIRST = 40
"""Tests that run before the others: most mutants die of one of them, before the files of the rest are collected."""


@dataclass(frozen=True)
class Verdict:
    """How a mutant fared.

    Attributes:
      mutant: which.
      status: ``killed``; ``survived`` all tests that cover it, or those for which there was time; ``not covered``;
        ``harmless`` where somebody has judged that no test can notice it.
      by: the test that killed it, or the judgement.
      tests: how many were run at most, of how many that cover it.
      seconds: how long it took.
    """

    mutant: Mutant
    status: Literal["killed", "survived", "not covered", "harmless"]
    by: str = ""
    tests: tuple[int, int] = (0, 0)
    seconds: float = 0.0

    def __str__(self) -> str:
        ran, of = self.tests
        more = f"  ({self.by})" if self.by else f"  ({ran} of {of} tests)" if self.status == "survived" else ""
        return f"{self.status:11s} {self.mutant}{more}"


def ordered(tests: list[str], durations: dict[str, float], package: str, budget_s: float) -> list[str]:
    """The package's own tests first; one of each function before its siblings; the quick before the slow; in time."""
    own, seen = f"packages/{package.replace('_', '-')}/", dict[str, int]()
    ranked = []
    for test in sorted(tests, key=lambda t: durations.get(t, 0.0)):
        function = test.partition("[")[0]
        seen[function] = seen.get(function, 0) + 1
        ranked.append((not test.startswith(own), seen[function] > 1, durations.get(test, 0.0), test))
    chosen: list[str] = []
    for _, _, duration, test in sorted(ranked):
        if chosen and duration > budget_s:
            continue
        budget_s -= duration
        chosen.append(test)
    return chosen


class Court:
    """A copy of the tree in which mutants are planted, one after the other."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.tree = folder / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir(parents=True)
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", "dist", "site")
        for name in PARTS:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, self.tree / name, ignore=unwanted)
            elif source.exists():
                shutil.copy2(source, self.tree / name)
        for folder in self.tree.glob("packages/*/src"):  # what is not changed is compiled once, for all runs
            compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)

    def try_(self, mutant: Mutant, tests: list[str], covering: int, timeout_s: float) -> Verdict:
        """Plants a mutant, runs tests until one fails, and takes it out again.

        The tests up to the one that failed run once more without the mutant: one that fails then, too, be it for want
        of time, of a terminal, or after another test only, tells nothing, and is left out.
        """
        path, began, ran = self.tree / mutant.path, time.monotonic(), 0
        original = path.read_text(encoding="utf-8")
        for left in (tests[:FIRST], tests[FIRST:]):
            while left:
                try:
                    path.write_text(mutant.source, encoding="utf-8")
                    status, by, test = self._run(left, timeout_s)
                finally:
                    path.write_text(original, encoding="utf-8")
                if not status:
                    ran += len(left)
                    break
                suspects = left[: left.index(test) + 1] if test in left else left
                failed, _, test = self._run(suspects, timeout_s)
                if not failed:
                    seconds = time.monotonic() - began
                    return Verdict(mutant, "killed", by, (ran + len(left), covering), seconds)
                wrong = [test] if test in suspects else suspects
                left = [other for other in left if other not in wrong]
        seconds = time.monotonic() - began
        return Verdict(mutant, "survived" if ran else "not covered", tests=(ran, covering), seconds=seconds)

    def _run(self, tests: list[str], timeout_s: float) -> tuple[int, str, str]:
        """Runs tests until one fails: the status, what pytest says of the one that failed, and its name."""
        chosen = self.tree / "chosen"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        sources = [str(p) for p in (*sorted(self.tree.glob("packages/*/src")), self.tree / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header",
                   "-m", "not dense", f"--timeout={timeout_s:.0f}", f"@{chosen}"]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.tree, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return 1, "the time was up", ""
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        by = failed[0] if failed else f"pytest ended with {done.returncode}"
        return done.returncode, by[:160], by.partition(" ")[2].partition(" - ")[0]
