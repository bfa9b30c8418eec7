"""Quotients and square roots of float16 on hostile cards, whose own instructions come near them only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tg_runtime.compilers import comgr

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
PROGRAM = """
import numpy as np
from tinytg import Tensor, dtypes
{plant}
numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
# quotients that lie as near to the middle of two numbers as they can: m * b = a * 2**12 + 1 or - 1, m of 12 bits, odd
b = np.arange(1025, 2048, 2)
m = np.array([pow(int(n), -1, 1 << 12) for n in b])
m, b, rest = np.concatenate([m, 4096 - m]), np.concatenate([b, b]), np.repeat([1, -1], len(b))
hard = (m * b - rest >> 12).astype(np.float16), b.astype(np.float16)
drawn = np.random.default_rng(3).integers(0, 1 << 16, (2, 1 << 14), np.uint16).view(np.float16)
above, below = (np.concatenate([h, d]) for h, d in zip(hard, drawn))
x, one = Tensor(numbers, device="AMD"), Tensor(1.0, dtype=dtypes.float16, device="AMD")
wrong = []
with np.errstate(all="ignore"):
    reciprocals, roots = 1 / numbers.astype(np.float64), np.sqrt(numbers.astype(np.float64))
    quotients = above.astype(np.float64) / below.astype(np.float64)
    for name, found, wanted, given in (
        ("reciprocal", x.reciprocal(), reciprocals, numbers), ("quotient", one / x, reciprocals, numbers),
        ("negated", -1 / x, -reciprocals, numbers), ("root", x.sqrt(), roots, numbers),
        ("divided", Tensor(above, device="AMD") / Tensor(below, device="AMD"), quotients, above),
    ):
        got, right = found.numpy(), wanted.astype(np.float16)
        same = (got.view(np.uint16) == right.view(np.uint16)) | (np.isnan(got) & np.isnan(right))
        if not same.all():
            wrong.append(f"{{name}} of {{given[~same][0]}}: {{got[~same][0]}}, not {{right[~same][0]}}")
print(*wrong, sep="\\n")
"""
PLANTS = {
    "LLVM": """
import dataclasses
from tg_codegen.render.llvm import amdgpu
amdgpu.AMDGPU_DIALECT = dataclasses.replace(amdgpu.AMDGPU_DIALECT, alu=lambda text, u: None)
""",
    "HIP": """
import dataclasses
from tg_codegen.render.c import hip
from tg_codegen.render.c.dialect import call
from tg_lazy import Ops
half = dtypes.float16
plain = {(Ops.SQRT, half): lambda terms, dtype, v: f"(_Float16)__ocml_sqrt_f32((float){v[0]})"}
kept = {key: form for key, form in hip.DIALECT.builtins.items() if key not in ((Ops.RECIP, half), (Ops.FDIV, half))}
hip.HIPRenderer.dialect = dataclasses.replace(hip.DIALECT, builtins=kept | plain)
""",
}
"""What takes away what makes them exact."""
DEVICES = [f"LLVM:{arch}" for arch in ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")]
HIP = pytest.param("HIP:gfx1030", marks=pytest.mark.skipif(
    comgr.missing() is not None, reason=f"COMGR: {comgr.missing()}"))  # fmt: skip


def said(device: str, cache: Path, plant: str = "") -> str:
    """What the program prints, with a cache of kernels of its own."""
    settings = {"DEV": f"MOCKKFD+AMD:{device}", "AMD_HOSTILE": "5", "HCQ_TIMEOUT_MS": "300000", "CACHEDIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(plant=plant)], env=os.environ | settings, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.drawn(2)
@pytest.mark.slow
@pytest.mark.parametrize("device", [*DEVICES, HIP])
def test_every_half_is_rounded_correctly(device: str, tmp_path: Path) -> None:
    assert said(device, tmp_path) == ""


@pytest.mark.drawn(1)
@pytest.mark.slow
@pytest.mark.parametrize("device", ["LLVM:gfx1100", "LLVM:gfx942", HIP])
def test_the_instructions_alone_are_not_enough(device: str, tmp_path: Path) -> None:
    """LLVM 22 makes one instruction of reciprocals and roots; LLVM 15, in COMGR 2, divides with too few steps."""
    compiler = device.partition(":")[0]
    words = {line.split()[0] for line in said(device, tmp_path, PLANTS[compiler]).splitlines()}
    assert words >= ({"divided"} if compiler == "HIP" else {"reciprocal", "quotient", "negated", "root"})
