"""The stack used from the middle: each example runs, and loads nothing of the layers over the ones it shows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = """
import runpy, sys
sys.argv[:] = [{path!r}]
runpy.run_path({path!r}, run_name="__main__")
print("above:", [name for name in {above!r} if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("name", "above", "printed"),
    [
        (
            "codegen_only.py",
            ["tg_runtime", "tg_hcq", "tg_frontend", "tinytg", "llvmlite", "numpy"],
            ["__kernel", "__global__", "define "],
        ),
        ("runtime_only.py", ["tg_hcq", "tg_frontend", "tinytg", "numpy"], ["CPU"]),
    ],
)
def test_an_example_of_a_lower_layer(
    run: Run, repository: Path, name: str, above: list[str], printed: list[str]
) -> None:
    done = run(repository, "python", "-c", PROGRAM.format(path=f"examples/{name}", above=above))
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("above: []\n"), done.stdout
    assert all(text in done.stdout for text in printed), done.stdout


def test_every_example_is_tested(repository: Path) -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (repository / "tests").glob("test_*.py"))
    for example in (repository / "examples").iterdir():
        if not example.name.startswith((".", "__")):
            assert example.name in tests, f"no test names examples/{example.name}"
