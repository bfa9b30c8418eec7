"""The driver and its kernels on hostile cards; and cards that no packet tells to drop or to send what caches hold.

Each runs in a process of its own, whose devices nobody has opened yet.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
ARCHS = ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")
NAMES = ("test_gather", "test_two_reductions", "test_assign")
PLANTS = {
    "": "",
    "no packet sends stores on": "Dispatcher.write_back = lambda self: None",
    "no packet drops lines": "Dispatcher.invalidate = lambda self, **which: None",
}
PROGRAM = """
from tg_hcq.simulate.amd.processor.dispatch import Dispatcher
from tg_runtime.testing import DeviceConformance
{plant}
class OnCard(DeviceConformance):
    device, dev = "AMD", "MOCKKFD+AMD:LLVM:{arch}"
for name in {names}:
    test = OnCard()
    test.setup_method()
    getattr(test, name)()
    test.teardown_method()
"""


def right(arch: str, plant: str = "") -> bool:
    """Whether kernels give what they should."""
    program = PROGRAM.format(plant=PLANTS[plant], arch=arch, names=NAMES)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "AMD_HOSTILE": "3"}, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 or "Error" in done.stderr or "Fault" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_and_packets_of_the_driver(arch: str) -> None:
    assert right(arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant])
def test_a_card_that_is_told_nothing(plant: str, arch: str) -> None:
    assert not right(arch, plant)
