"""Every instruction that the software cards execute is executed by a test, on every architecture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.amd_instructions import ARCHS, executed

from tg_hcq.simulate.amd.testing import reached

HERE = Path(__file__).parents[1] / "packages" / "tg-hcq" / "tests" / "simulate"
FILES = [HERE / f"test_amd_{name}.py" for name in (
    "buffers", "crossing", "lanes", "matrices", "memory", "programs", "scalars", "small_floats", "waves", "hostile",
    "scaled", "to_shared",
)]  # fmt: skip
PLUGIN = reached.__name__


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_instruction_is_executed_by_a_test(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", PLUGIN, "--reached", str(tmp_path)]
    done = subprocess.run([*command, *map(str, FILES)], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    found, missing = reached.read(tmp_path), dict[str, list[str]]()
    for arch in ARCHS:
        wanted = {name for name, _, does in executed(arch) if does}
        missing[arch] = sorted(wanted - found[arch])
        print(f"{arch}: {len(wanted & found[arch])} of {len(wanted)} instructions are executed by tests")
    assert not any(missing.values()), missing
