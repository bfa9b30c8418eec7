"""`examples/runtime`: each program runs, prints what it promises, and loads nothing above tg-runtime."""

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
print("above:", [name for name in ("tg_frontend", "tinytg") if name in sys.modules])
"""

PRINTED = {
    "allocate.py": "through the view: [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -4.0]",
    "copies.py": "all right",
    "files.py": "read [0.25, 0.5, 0.75], 12 bytes of memory held",
    "foreign.py": "[20.0, 4.0, 6.0, 8.0]",
    "graph.py": "norm of 3.0s 96.0",
    "kernel.py": "NUMPY: sums of squares [14.0, 77.0]",
    "launch.py": "[24.0, 27.0, 0.0, 0.0]",
    "measure.py": "10 launches counted",
    "opencl.py": "CL: ",
    "shared.py": "[2.0, 4.0, 6.0, 8.0]",
    "trace.py": "bytes of trace",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example(run: Run, repository: Path, name: str) -> None:
    done = run(repository, "python", "-c", PROGRAM.format(path=f"examples/runtime/{name}"))
    assert done.returncode == 0, done.stdout
    assert PRINTED[name] in done.stdout and done.stdout.endswith("above: []\n"), done.stdout


def test_every_example_is_tested_and_listed(repository: Path) -> None:
    folder = repository / "examples" / "runtime"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in folder.glob("*.py")}
    assert names == PRINTED.keys() and len(names) >= 10
    assert all(f"`{name}`" in listed for name in names)
