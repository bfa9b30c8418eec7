"""Which test runs which line: a plugin of pytest that measures it, and the questions that are asked of the record.

A tracer of lines makes a suite several times as slow. Here the packages are imported with a store before each of their
statements, which notes that it ran: tests take little longer than without.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

FOLDER = "TINYTG_MUTANTS"
"""Names the folder of the record while the plugin runs."""
SECONDS = "TINYTG_MUTANTS_SECONDS"
"""For how long tests are begun, while the plugin runs."""
RAN = "__tinytg_ran__"
"""A byte for each statement, 1 if it ran in the current test; a builtin, so that every module finds it."""
MOST = 1 << 20
"""Statements in all."""


class Noting(ast.NodeTransformer):
    """Puts a store before each statement of a module.

    Attributes:
      spans: the first and the last line of each statement; of one with a body, the last line before that.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.spans: list[tuple[int, int]] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [new for statement in block for new in self.noted(statement)])
        for name in ("handlers", "cases"):
            for inner in getattr(node, name, []):
                self.generic_visit(inner)
        return node

    def noted(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """A statement and the store before it; what must come first in a file stays there."""
        body = getattr(statement, "body", None)
        end = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno or statement.lineno
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not text and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            place = ast.Subscript(ast.Name(RAN, ast.Load()), ast.Constant(self.first + len(self.spans)), ast.Store())
            self.spans.append((statement.lineno, max(end, statement.lineno)))
            yield ast.fix_missing_locations(ast.copy_location(ast.Assign([place], ast.Constant(1)), statement))
        self.generic_visit(statement)
        yield statement


class Covering:
    """The plugin: it notes which statements each test runs, and how long it takes."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.path = folder / f"ran.{worker}.json"
        self.durations: dict[str, float] = {}
        self.files: dict[str, tuple[int, list[tuple[int, int]]]] = {}
        self.tests: dict[str, str] = {}
        self.count = 0
        self.until = time.monotonic() + float(os.environ.get(SECONDS, "inf"))
        self.ran = bytearray(MOST)
        setattr(builtins, RAN, self.ran)
        sys.pycache_prefix = str(folder / f"compiled.{worker}")
        covering, plain = self, SourceFileLoader.source_to_code

        def source_to_code(loader: SourceFileLoader, data: Any, path: Any, **options: Any) -> Any:
            name = Path(os.fsdecode(path)).as_posix().rpartition("/packages/")[2]
            if "/src/" not in name or "/packages/" not in Path(os.fsdecode(path)).as_posix():
                return plain(loader, data, path, **options)
            return compile(covering.noting(name, ast.parse(data)), path, "exec", dont_inherit=True)

        SourceFileLoader.source_to_code = source_to_code  # type: ignore[assignment, method-assign]

    def noting(self, name: str, tree: ast.Module) -> ast.Module:
        """A module that notes what runs."""
        notes = Noting(self.count)
        notes.generic_visit(tree)
        self.files[name] = (self.count, notes.spans)
        self.count += len(notes.spans)
        return tree

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """One test of each function before its siblings, in case there is no time for all."""
        first: dict[str, pytest.Item] = {}
        for item in items:
            first.setdefault(item.nodeid.partition("[")[0], item)
        items.sort(key=lambda item: first[item.nodeid.partition("[")[0]] is not item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.ran[:] = bytes(MOST)
        try:
            return (yield)
        finally:
            bits = int(self.ran[: self.count].translate(bytes([48, 49]) + bytes(254))[::-1] or b"0", 2)
            self.tests[item.nodeid] = zlib.compress(bits.to_bytes(-(-self.count // 8), "little")).hex()
            if time.monotonic() > self.until:
                item.session.shouldstop = "the time is up"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if not self.tests:
            return  # workers have run them
        found = {"files": self.files, "tests": self.tests, "durations": self.durations}
        self.path.write_text(json.dumps(found), encoding="utf-8")


# made when pytest loads this file: what it loads next imports the packages
_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
_covering = Covering(Path(os.environ[FOLDER]), _worker) if FOLDER in os.environ else None


def pytest_configure(config: pytest.Config) -> None:
    if _covering is not None:
        config.pluginmanager.register(_covering, "mutants-covering")


class Record:
    """What :func:`measure` wrote.

    Attributes:
      durations: seconds of each test.
    """

    def __init__(self, folder: Path) -> None:
        self.durations: dict[str, float] = {}
        self._workers: list[tuple[dict[str, Any], dict[str, bytes]]] = []
        for path in sorted(folder.glob("**/ran.*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            self.durations |= found["durations"]
            ran = {test: zlib.decompress(bytes.fromhex(bits)) for test, bits in found["tests"].items()}
            self._workers.append((found["files"], ran))
        if not self._workers:
            raise SystemExit(f"{folder} holds no record; make one with: python -m tools.mutants cover")

    def tests(self, path: str, line: int) -> list[str]:
        """The tests that run a line; of a line that runs on import, those that run any line of the file."""
        here: set[str] = set()
        near: set[str] = set()
        for files, ran in self._workers:
            first, spans = files.get(path.partition("packages/")[2], (0, []))
            within = [(end - start, -n) for n, (start, end) in enumerate(spans) if start <= line <= end]
            number = first - min(within)[1] if within else -1
            for test, bits in ran.items():
                if number >= 0 and number // 8 < len(bits) and bits[number // 8] >> number % 8 & 1:
                    here.add(test)
                elif any(bits[n // 8] >> n % 8 & 1 for n in range(first, min(first + len(spans), 8 * len(bits)))):
                    near.add(test)
        return sorted(here or near)


def measure(root: Path, folder: Path, jobs: int, seconds: float, arguments: list[str]) -> int:
    """Runs the suite, or the tests that ``arguments`` choose, once with the plugin; for some seconds if need be."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutants.cover", "-n", str(jobs), *arguments]
    environment = {**os.environ, FOLDER: str(folder), SECONDS: str(seconds)}
    status = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    for compiled in folder.glob("compiled.*"):
        shutil.rmtree(compiled)
    return status
