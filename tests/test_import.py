"""What `import tinytg` costs: a tenth of a second, and no heavy module that nobody used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ["asyncio", "importlib.metadata", "llvmlite", "numpy", "urllib.request"]


def in_a_new_process(program: str, cache: Path) -> str:
    """What a program prints, run with compiled modules kept in ``cache``."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "PYTHONPYCACHEPREFIX": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_import_takes_a_tenth_of_a_second(tmp_path: Path) -> None:
    # Processor time: the other processes of a busy machine are no cost of ours.
    program = "import time; t = time.process_time(); import tinytg; print(time.process_time() - t)"
    assert min(float(in_a_new_process(program, tmp_path)) for _ in range(6)) <= 0.10


def test_import_leaves_heavy_modules_alone(tmp_path: Path) -> None:
    program = f"import tinytg, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert in_a_new_process(program, tmp_path) == ""
