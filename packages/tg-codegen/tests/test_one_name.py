"""One word is one thing: a name at the top of a module of the code generator stands in no other module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tg_codegen

ROLES = {
    "DIALECT",  # of a language of the C family: what its renderer is made of
    "proposed",  # of a module of an action: where the heuristic wants it
}
"""Names that say what a module has to offer, the same in each that has it."""


def defined(source: str) -> Iterator[str]:
    """What a module defines at its top and does not keep to itself."""
    for line in ast.parse(source).body:
        found: list[str] = []
        if isinstance(line, ast.FunctionDef | ast.ClassDef):
            found = [line.name]
        elif isinstance(line, ast.Assign):
            found = [target.id for target in line.targets if isinstance(target, ast.Name)]
        elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            found = [line.target.id]
        yield from (name for name in found if not name.startswith("_"))


def twice(folder: Path) -> dict[str, list[str]]:
    """The names that several modules under a folder define, and which do."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for name in dict.fromkeys(defined(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(str(path.relative_to(folder)))
    return {name: where for name, where in found.items() if len(where) > 1}


def test_a_name_is_defined_in_one_module() -> None:
    found = twice(Path(tg_codegen.__file__).parent)
    assert found.keys() == ROLES, f"one name in several modules: {({n: w for n, w in found.items() if n not in ROLES})}"


def test_a_name_that_stands_twice_is_seen(tmp_path: Path) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "one.py").write_text("def cut(): ...\nSIZE: int = 1\n_OWN = 2\n", encoding="utf-8")
    (tmp_path / "rooms" / "two.py").write_text("SIZE = 3\ncut = 4\n_OWN = 5\n", encoding="utf-8")
    assert twice(tmp_path) == {"cut": ["one.py", "rooms/two.py"], "SIZE": ["one.py", "rooms/two.py"]}
