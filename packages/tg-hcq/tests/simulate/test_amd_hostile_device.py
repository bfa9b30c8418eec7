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


WHOLE = """
from tg_hcq.simulate.engine import Dispatch, HostileMachine
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.report import outcomes
DeviceConformance.launches = 200
machines, begin = set(), Dispatch.__init__
def begun(dispatch, machine, launch):
    machines.add(type(machine))
    begin(dispatch, machine, launch)
Dispatch.__init__ = begun
failed = [found for found in outcomes("MOCKKFD+AMD:LLVM:{arch}") if found.status == "FAILED"]
assert machines and all(issubclass(machine, HostileMachine) for machine in machines)
for found in failed:
    print(found.group, found.detail)
raise SystemExit(bool(failed))
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on hostile cards, which take their time: a signal may stand still for long."""
    settings = {"AMD_HOSTILE": "3", "HCQ_TIMEOUT_MS": "300000"}
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **settings}, check=False, capture_output=True, text=True
    )


def right(arch: str, plant: str = "") -> bool:
    """Whether kernels give what they should."""
    done = run(PROGRAM.format(plant=PLANTS[plant], arch=arch, names=NAMES))
    assert done.returncode == 0 or "Error" in done.stderr or "Fault" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.drawn(1)
@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_and_packets_of_the_driver(arch: str) -> None:
    assert right(arch)


@pytest.mark.drawn(1)
@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_conformance_whole(arch: str) -> None:
    done = run(WHOLE.format(arch=arch))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.drawn(1)
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant])
def test_a_card_that_is_told_nothing(plant: str, arch: str) -> None:
    assert not right(arch, plant)
