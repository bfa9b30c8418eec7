"""Pages name what is there, and show what their programs print."""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

_NAME = re.compile(r"`((?:tg_\w+|tinytg)(?:\.\w+)*)`")
_PATH = re.compile(r"`((?:packages|docs|examples|tools|tests|bench|src)/[\w./-]+)`")


def found(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            here: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(here, part):
                return False
            here = getattr(here, part)
        return True
    return False


def test_every_module_and_every_file_that_a_page_names_is_there(repository: Path) -> None:
    pages = [*repository.glob("docs/**/*.md"), *repository.glob("packages/*/README.md"), *repository.glob("[RC]*.md")]
    missing = {}
    for page in pages:
        if page.name in ("CHANGELOG.md", "seed-names.md"):  # tells of what was; has a test of its own
            continue
        text = page.read_text(encoding="utf-8")
        names = [name for name in _NAME.findall(text) if not found(name)]
        paths = [path for path in _PATH.findall(text) if not (repository / path).exists()]
        # pages on one package write paths in its folder
        missing[page.name] = names + [path for path in paths if not any(repository.glob(f"packages/*/{path}"))]
    assert {page: names for page, names in missing.items() if names} == {}
    assert {"tour.md", "architecture.md", "CONTRIBUTING.md"} <= missing.keys()


def test_a_name_that_is_gone_is_noticed() -> None:
    assert found("tg_lazy.explain") and found("tg_codegen.nest.text.print_kernel") and found("tg_frontend.ops")
    assert not found("tg_lazy.explained") and not found("tg_codegen.nests") and not found("tg_nothing")


@pytest.mark.parametrize(
    ("shown", "passes"), [("a 1\nb\n", True), ("a ...\nb\n", True), ("a 2\nb\n", False), ("a 1\n", False)]
)
def test_a_block_after_a_program_is_what_it_prints(tree: Path, run: Run, shown: str, passes: bool) -> None:
    page = tree / "docs" / "planted.md"
    page.write_text(
        f'```python\nx = 1\n```\n\n```python\nprint("a", x)\nprint("b")\n```\n\n```text\n{shown}```\n', encoding="utf-8"
    )
    done = run(tree, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", page)
    assert (done.returncode == 0) == passes, done.stdout
    assert ("planted.md:5: the block prints something else" in done.stdout) != passes, done.stdout
