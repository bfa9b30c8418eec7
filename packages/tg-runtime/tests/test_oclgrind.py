"""The kernels of the conformance class under oclgrind: no access outside of a buffer, no race."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tg_dtype import dtypes

_FOLDERS = ("/usr/lib/oclgrind", "/usr/local/lib/oclgrind", "/usr/lib")
_LIBRARY = next((p for p in (Path(f) / "liboclgrind-rt.so" for f in _FOLDERS) if p.is_file()), None)
_TOOL = shutil.which("oclgrind")
pytestmark = pytest.mark.skipif(
    _TOOL is None or _LIBRARY is None, reason="oclgrind is not installed (Debian: apt install oclgrind)"
)
# What only refuses or repeats would be slow here, and say nothing of kernels.
GROUPS = (
    "sub-buffers", "all ops", "casts", "reductions", "views", "odd shapes", "symbolic sizes", "31 buffers",
    "local memory", "images", "schedules", "graph replay",
)  # fmt: skip

PLANTED = """
from tg_runtime import Device
from tg_runtime.backends.opencl.program import CLCompiler, CLProgram
cl = Device["CL"]
def load(name, source):
    return CLProgram(cl.queue, name, CLCompiler(cl.queue).compile(source))
block = cl.allocator.alloc(64)
cl.allocator.copyin(block, memoryview(bytes(64)))
kind = KIND
if kind == "race":
    load("race", "__kernel void race(__global int* x) { x[0] = get_global_id(0) + x[1]; x[1] = 2; }")(
        block, global_size=(2, 1, 1), local_size=(4, 1, 1), wait=True)
elif kind == "outside":
    load("outside", "__kernel void outside(__global int* x) { x[get_global_id(0)] = 1; }")(
        block, global_size=(17, 1, 1), wait=True)
else:
    load("right", "__kernel void right(__global int* x) { x[get_global_id(0)] = 1; }")(
        block, global_size=(16, 1, 1), wait=True)
"""

# The last product has the tiles that (96, 128, 80) has, with a twelfth of its work.
CONFORMANCE = """
from tg_runtime.testing import DeviceConformance, report
from tg_runtime.testing.report import outcomes
DeviceConformance.products, DeviceConformance.replays = ((5, 7, 3), (33, 65, 17), (40, 48, 40)), 3
claimed = report.claimed
report.claimed = lambda device: tuple(dtype for dtype in claimed(device) if dtype.name in NAMES)
for outcome in outcomes("CL", lambda group: group in GROUPS):
    print(outcome.group, outcome.status, *outcome.detail.splitlines(), flush=True)
"""


def under_oclgrind(*command: str) -> tuple[int, str]:
    """Exit status of a command, and all that it and oclgrind say."""
    assert _TOOL is not None
    environment = {**os.environ, "OPENCL_LIBRARY": str(_LIBRARY), "DEV": "CL"}
    # Unoptimised: oclgrind has no code for some of what its compiler makes, such as the shift of two 64-bit words.
    tool = [_TOOL, "--build-options", "-cl-opt-disable"]
    tool += ["--data-races", "--check-api", "--max-errors", "5", "--num-threads", "1"]
    told = subprocess.PIPE
    done = subprocess.run(
        [*tool, *command], stdout=told, stderr=subprocess.STDOUT, text=True, timeout=280, env=environment, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("kind", "words"), [("race", "data race"), ("outside", "Invalid write"), ("right", "")]
)
def test_what_is_planted_is_found(kind: str, words: str) -> None:
    _, told = under_oclgrind(sys.executable, "-c", PLANTED.replace("KIND", repr(kind)))
    assert words in told
    assert bool(told) == bool(words), told


def test_conformance_kernels(drawn: Callable[[Sequence[str], int], tuple[str, ...]]) -> None:
    """In one process, which starts and loads the compiler once. What a kernel touches depends on how wide its elements
    are: a run of the whole suite draws dtypes, one of each width among them."""
    widths: dict[int, list[str]] = {}
    for dtype in dtypes.all:
        widths.setdefault(dtype.itemsize, []).append(dtype.name)
    names = ["bool", "float32", *(name for own in widths.values() for name in drawn(own, 1))]
    program = CONFORMANCE.replace("GROUPS", repr(GROUPS)).replace("NAMES", repr(names))
    status, told = under_oclgrind(sys.executable, "-c", program)
    assert status == 0, told
    assert told.split("\n") == [*(f"{group} passed" for group in GROUPS), ""], told
