"""Software cards leave no file open: neither those that are closed, nor those that nobody refers to any more."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from tg_hcq.amd import AMDDevice
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.kfd.remote import RemoteKfd
from tg_runtime import BufferOptions, DevEntry

TIMES = 50


def opened() -> Counter[str]:
    """The files of this process, by what they are."""
    found = Counter[str]()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{fd}").split(":")[0]] += 1
        except OSError:  # the list's own
            pass
    return found


def use(system: KfdSystem | RemoteKfd, close: bool) -> None:
    """Opens a card, has it store a word, and closes the device."""
    device = AMDDevice("AMD", DevEntry("AMD", arch="gfx1100"), system=system)
    memory, done = device.allocator.alloc(64, BufferOptions(host=True)), device.new_signal()
    device.compute_queue().write(memory.address, [42]).signal(done, 1).submit(device)
    done.wait(1, timeout_ms=20_000)
    assert memory.host_view("I")[0] == 42
    device.close()
    if close:
        system.close()


PROGRAM = """
from tg_hcq.amd import AMDDevice
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_runtime import DevEntry
device = AMDDevice("AMD", DevEntry("AMD", arch="gfx1100"), system=KfdSystem("gfx1100"))
signal = device.new_signal()
"""


@pytest.mark.parametrize("end", ["", "device.close()"])
def test_a_program_ends_without_a_word(end: str) -> None:
    """Whether or not it closes the device, and though nothing of it was used."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + end], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize(("make", "times"), [(KfdSystem, TIMES), (RemoteKfd, 2)])
def test_no_file_stays_open(make: Callable[[], KfdSystem | RemoteKfd], times: int, close: bool) -> None:
    use(make(), close)
    gc.collect()
    before = opened()
    for _ in range(times):
        use(make(), close)
        if not close:
            gc.collect()  # a device and its system refer to one another
    assert opened() - before == Counter()
