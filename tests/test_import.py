"""What `import tinytg` costs: a tenth of a second, and no heavy module that nobody used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ["asyncio", "importlib.metadata", "llvmlite", "numpy", "urllib.request"]


def in_a_new_process(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_import_takes_a_tenth_of_a_second() -> None:
    program = "import time; t = time.perf_counter(); import tinytg; print(time.perf_counter() - t)"
    seconds = min(float(in_a_new_process(program)) for _ in range(5))
    assert seconds <= 0.10


def test_import_leaves_heavy_modules_alone() -> None:
    program = f"import tinytg, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert in_a_new_process(program) == ""
