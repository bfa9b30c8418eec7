"""How far functions are off on hostile cards of AMD, whose own functions are anywhere inside the manuals' bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools import accuracy

from tg_dtype import dtypes
from tg_runtime.compilers import comgr

pytest.importorskip("llvmlite", reason="LLVM compiles the handlers")
ROOT = Path(__file__).parents[1]
POINTS = {"float32": 200, "float64": 200, "float16": 0, "bfloat16": 0}
"""How many numbers; of 16 bits all of them, which takes many minutes."""
WHOLE = ("float16", "bfloat16")
OF_THE_CARDS_EXPONENTIAL = {"sigmoid": 3.5}
"""1 / (1 + exp(-x)): near -2 the 2 units by which a card's exponential of float32 may be off, and half of one for the
sum, are 3 of the result's, and the quotient is rounded."""
PROGRAM = """
import os, sys
from tg_dtype import dtypes
from tools import accuracy
kind, points = getattr(dtypes, sys.argv[1]), int(sys.argv[2])
for function in accuracy.FUNCTIONS:
    worst = accuracy.measure(function, kind, (os.environ["DEV"],), points)[os.environ["DEV"]]
    print(function.name, worst.error, *worst.at)
"""


def measured(device: str, kind: str, cache: Path) -> dict[str, float]:
    """By how much each function is off at most; where, is printed."""
    settings = {"DEV": f"MOCKKFD+AMD:{device}", "AMD_HOSTILE": "7", "HCQ_TIMEOUT_MS": "300000", "CACHEDIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM, kind, str(POINTS[kind])]
    done = subprocess.run(command, env=os.environ | settings, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}


def bounds(kind: str) -> dict[str, float]:
    """The greatest errors that are allowed."""
    return {function.name: function.bound(getattr(dtypes, kind)) for function in accuracy.FUNCTIONS}


@pytest.mark.timeout(1800)
@pytest.mark.skipif(comgr.missing() is not None, reason=f"COMGR: {comgr.missing()}")
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.dense if k in WHOLE else pytest.mark.slow) for k in POINTS])
def test_functions_of_device_libraries_keep_their_bounds(kind: str, tmp_path: Path) -> None:
    """HIP calls AMD's, which use the card's own; what is made of them is made as for other devices."""
    found = measured("HIP:gfx1030", kind, tmp_path)
    allowed = bounds(kind) | (OF_THE_CARDS_EXPONENTIAL if kind == "float32" else {})
    assert found.keys() == allowed.keys()
    assert [name for name, most in allowed.items() if found[name] > most] == []


@pytest.mark.dense
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_functions_by_llvm_keep_their_bounds(arch: str, tmp_path: Path) -> None:
    found = measured(f"LLVM:{arch}", "float32", tmp_path)
    assert [name for name, most in bounds("float32").items() if found[name] > most] == []
