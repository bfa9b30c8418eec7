"""Reciprocals and square roots of every float16 on hostile cards, whose own instructions come near them only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
PROGRAM = """
import numpy as np
from tinytg import Tensor, dtypes
from tg_codegen.render.llvm import amdgpu
{plant}
numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
x, one = Tensor(numbers, device="AMD"), Tensor(1.0, dtype=dtypes.float16, device="AMD")
wrong = []
with np.errstate(all="ignore"):
    reciprocals, roots = 1 / numbers.astype(np.float64), np.sqrt(numbers.astype(np.float64))
    for name, found, wanted in (
        ("reciprocal", x.reciprocal(), reciprocals), ("quotient", one / x, reciprocals),
        ("negated", -1 / x, -reciprocals), ("root", x.sqrt(), roots),
    ):
        got, right = found.numpy(), wanted.astype(np.float16)
        same = (got.view(np.uint16) == right.view(np.uint16)) | (np.isnan(got) & np.isnan(right))
        if not same.all():
            wrong.append(f"{{name}} of {{numbers[~same][0]}}: {{got[~same][0]}}, not {{right[~same][0]}}")
print(*wrong, sep="\\n")
"""
PLANT = """
import dataclasses
amdgpu.AMDGPU = dataclasses.replace(amdgpu.AMDGPU, alu=lambda text, u: None)
"""


def said(arch: str, cache: Path, plant: str = "") -> str:
    """What the program prints, with a cache of kernels of its own."""
    settings = {"DEV": f"MOCKKFD+AMD:LLVM:{arch}", "AMD_HOSTILE": "5", "HCQ_TIMEOUT_MS": "300000",
                "CACHEDIR": str(cache)}  # fmt: skip
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(plant=plant)], env=os.environ | settings, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950"])
def test_every_half_is_rounded_correctly(arch: str, tmp_path: Path) -> None:
    assert said(arch, tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_the_instructions_alone_are_not_enough(arch: str, tmp_path: Path) -> None:
    """With the cards' own instructions for them, reciprocals and roots are wrong."""
    words = {line.split()[0] for line in said(arch, tmp_path, PLANT).splitlines()}
    assert words == {"reciprocal", "quotient", "negated", "root"}
