"""AMD's own runtime as a client of the software card: Debian's ``libhsa-runtime64-1`` and ``rocminfo``, unchanged."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _has(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _has("libhsa-runtime64.so.1"), reason="libhsa-runtime64-1 is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler, for what is preloaded"),
]
KERNEL = """
__kernel void k(__global unsigned *out, __global const unsigned *in, unsigned n) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  out[i] = in[i] * n + i;
}
"""


def client(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on a gfx1030 that a process of its own plays."""
    arguments = [sys.executable, "-m", "tools.amd_client", *command]
    root = Path(__file__).parents[1]
    return subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=200, cwd=root)


@pytest.mark.skipif(shutil.which("rocminfo") is None, reason="rocminfo is not installed")
def test_rocminfo_lists_the_card() -> None:
    done = client("rocminfo")
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert "amdgcn-amd-amdhsa--gfx1030" in words and "*** Done ***" in done.stdout
    assert "Chip ID:                 29631(0x73bf)" in done.stdout


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
@pytest.mark.parametrize("wrong", [False, True])
def test_a_kernel_by_a_packet_and_copies_by_the_copy_engine(wrong: bool, tmp_path: Path) -> None:
    """One that clang compiled; with another sum, the client finds it wrong."""
    source, code = tmp_path / "k.cl", tmp_path / "k.co"
    source.write_text(KERNEL.replace("+ i;", "- i;") if wrong else KERNEL, encoding="ascii")
    target = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-mcode-object-version=4", "-nogpulib", "-O2"]
    subprocess.run(["clang-19", "-x", "cl", "-cl-std=CL2.0", *target, str(source), "-o", str(code)], check=True)
    done = client(sys.executable, "-m", "tools.amd_client.kernel", str(code))
    said = done.stdout.splitlines()
    assert said[:3] == ["copied to the card", "loaded", "dispatched"], done.stdout + done.stderr
    assert (said[3:] == ["copied back: as it should be"], done.returncode == 0) == (not wrong, not wrong), done.stderr
