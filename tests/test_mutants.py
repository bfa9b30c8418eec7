"""The tool that plants mutants: what it changes, what it leaves alone, and that tests decide."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tools.mutants.__main__ import harmless, killed, known, summary
from tools.mutants.cover import Record
from tools.mutants.mutations import Mutant, changed_texts, drawn, is_python, mutants_of
from tools.mutants.trial import Court, Verdict, ordered

SOURCE = '''
"""A docstring with 1 + 1."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LIMIT = 3

def clamp(x: int | None, low: int = 0) -> int:
    """At least 0 < 1."""
    if x is None or x < low:
        raise ValueError(f"{x + 1} is less than {low}")
    return min(x + 2, 10)
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of one package, with a test."""
    folder = tmp_path / "packages/tg-planted"
    (folder / "src/tg_planted").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "src/tg_planted/__init__.py").touch()
    (folder / "src/tg_planted/clamp.py").write_text(SOURCE, encoding="utf-8")
    (folder / "tests/test_clamp.py").write_text(
        textwrap.dedent("""
        from tg_planted.clamp import clamp

        def test_values():
            assert [clamp(x) for x in (0, 1, 20)] == [2, 3, 10]

        def test_wrong():
            raise AssertionError("as it is, too")

        def test_first():
            clamp.first = True

        def test_second():
            assert not hasattr(clamp, "first"), "as it is, too, but not alone"
        """),
        encoding="utf-8",
    )
    return tmp_path


def test_every_change_is_one_of_meaning(root: Path) -> None:
    found = mutants_of(root, root / "packages/tg-planted/src/tg_planted/clamp.py")
    assert {(m.kind, m.before, m.after) for m in found} == {
        ("constant", "0", "1"),
        ("condition", "x is None or x < low", "True"),
        ("condition", "x is None or x < low", "False"),
        ("and, or", "x is None or x < low", "(x is None and x < low)"),
        ("guard left out", "x is None or x < low", "(x < low)"),
        ("guard left out", "x is None or x < low", "(x is None)"),
        ("comparison", "x is None", "(x is not None)"),
        ("comparison", "x < low", "(x <= low)"),
        ("statement left out", 'raise ValueError(f"{x + 1} is less than {low}")', "pass"),
        ("min, max, any, all", "min(x + 2, 10)", "max(x + 2, 10)"),
        ("arithmetic", "x + 2", "(x - 2)"),
        ("constant", "2", "3"),
        ("constant", "10", "11"),
    }
    for mutant in found:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(SOURCE))


def test_a_seed_draws_the_same_ones_each_once(root: Path) -> None:
    every = [str(m) for m in drawn(root, "tg_planted", 100, 1)]
    assert len(every) == len(set(every)) == 13
    assert every == [str(m) for m in drawn(root, "tg_planted", 100, 1)]
    assert every != [str(m) for m in drawn(root, "tg_planted", 100, 2)]
    assert every[:4] == [str(m) for m in drawn(root, "tg_planted", 4, 1)]


def test_tests_decide(root: Path, tmp_path: Path) -> None:
    """But for one that fails without the change, too, if only after another."""
    court = Court(root, tmp_path / "court")
    found = {(m.before, m.after): m for m in mutants_of(root, root / "packages/tg-planted/src/tg_planted/clamp.py")}
    names = ("values", "wrong", "first", "second")
    values, wrong, first, second = (f"packages/tg-planted/tests/test_clamp.py::test_{name}" for name in names)
    (court.tree / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts=['--import-mode=importlib']\n")
    killed = court.try_(found["x + 2", "(x - 2)"], [wrong, values], 2, 60)
    assert killed.status == "killed" and "test_values" in killed.by and killed.tests == (1, 2)
    alive = court.try_(found["x is None or x < low", "(x < low)"], [values, first, second], 3, 60)
    assert alive.status == "survived" and alive.tests == (2, 3)
    assert court.try_(found["2", "3"], [], 0, 60).status == "not covered"
    assert (court.tree / "packages/tg-planted/src/tg_planted/clamp.py").read_text(encoding="utf-8") == SOURCE


def test_the_changes_that_once_survived_are_still_to_be_made(repository: Path) -> None:
    found = known(repository)
    assert len(found) >= 9
    for mutant in found:
        compile(mutant.source, mutant.path, "exec")


def test_a_list_of_changes_that_is_empty_is_an_error(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "none.toml").write_text("", encoding="utf-8")
    monkeypatch.setattr("tools.mutants.__main__.KNOWN", tmp_path / "none.toml")
    with pytest.raises(SystemExit, match="names no change"):
        known(repository)


def test_what_is_harmless_is_a_change_that_the_tool_makes(repository: Path) -> None:
    judged = list(harmless(repository))
    for path in {place[0] for place in judged}:
        lines = [text.strip() for text in (repository / path).read_text(encoding="utf-8").splitlines()]
        made = {(path, lines[m.line - 1], m.before, m.after): m for m in changed_texts(repository, repository / path)}
        for place in judged:
            assert place[0] != path or is_python(made[place]), place


def test_what_is_harmless_does_not_count() -> None:
    mutant = Mutant("a.py", 1, "constant", "0", "1", "")
    verdicts = [Verdict(mutant, "killed"), Verdict(mutant, "harmless", "because"), Verdict(mutant, "survived")]
    assert killed(verdicts) == 0.5 and killed(verdicts[:2]) == 1 and killed([]) == 1
    assert "because" in summary("a", verdicts)


def test_which_test_runs_which_line(root: Path, tmp_path: Path, repository: Path) -> None:
    """In a process of its own, as the packages are imported anew."""
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts=['--import-mode=importlib']\n")
    (root / "packages/tg-planted/tests/test_clamp.py").write_text(
        textwrap.dedent("""
        import pytest
        from tg_planted.clamp import clamp

        def test_values():
            assert [clamp(x) for x in (0, 1, 20)] == [2, 3, 10]

        def test_error():
            with pytest.raises(ValueError):
                clamp(None)

        def test_nothing():
            pass
        """), encoding="utf-8")  # fmt: skip
    sources = f"{root / 'packages/tg-planted/src'}:{repository}"
    program = "import sys; from pathlib import Path; from tools.mutants.cover import measure; measure({}, 0, 60.0, [])"
    folders = f"Path({str(root)!r}), Path({str(tmp_path / 'record')!r})"
    environment = {**os.environ, "PYTHONPATH": sources}
    subprocess.run([sys.executable, "-c", program.format(folders)], env=environment, check=False)
    record, path = Record(tmp_path / "record"), "packages/tg-planted/src/tg_planted/clamp.py"
    lines = SOURCE.splitlines()
    places = ("if x is None", "raise", "return", "LIMIT = 3")
    at = {text: number for number, line in enumerate(lines, 1) for text in places if text in line}
    names = {text: [test.rpartition("::")[2] for test in record.tests(path, line)] for text, line in at.items()}
    assert names["if x is None"] == ["test_error", "test_values"]
    assert names["raise"] == ["test_error"] and names["return"] == ["test_values"]
    assert names["LIMIT = 3"] == ["test_error", "test_values"], "whatever runs a line of the file"
    assert {test.rpartition("::")[2] for test in record.durations} == {"test_values", "test_error", "test_nothing"}


def test_the_quick_and_the_near_go_first() -> None:
    durations = {"packages/tg-a/t.py::f[1]": 3.0, "packages/tg-a/t.py::f[2]": 2.0, "packages/tg-a/t.py::g": 5.0,
                 "packages/tg-b/t.py::h": 0.1, "packages/tg-b/t.py::slow": 90.0}  # fmt: skip
    names = ordered(list(durations), durations, "tg_a", 15.0)
    assert [n.rpartition("::")[2] for n in names] == ["f[2]", "g", "f[1]", "h"]
