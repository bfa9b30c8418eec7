"""What the README says of somebody else's code object, done as it says: its files, its commands, what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
FILES = {"c": "square.cl", "python no-test": "step.py"}


def blocks() -> dict[str, str]:
    """The blocks after the sentence that the section begins with, by their kind."""
    section = README.read_text(encoding="utf-8").partition("A code object that somebody else compiled")[2]
    found = dict[str, str]()
    for kind, text in re.findall(r"^```([\w -]*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        found.setdefault(kind, text)
    return found


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
def test_somebody_elses_code_object(tmp_path: Path) -> None:
    parts = blocks()
    for kind, name in FILES.items():
        (tmp_path / name).write_text(parts[kind], encoding="utf-8")
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listing = run("sh", "-e", "-c", parts["sh"])
    assert "v_mul_f32" in listing and "s_endpgm" in listing
    assert run(sys.executable, "step.py") == parts["text"]
