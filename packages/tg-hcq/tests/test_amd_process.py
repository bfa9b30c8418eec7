"""The software GPU in a process of its own, with nothing between but descriptors, bytes and shared pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tg_hcq.amd import AMDDevice
from tg_hcq.simulate.amd.kfd import RemoteKfd
from tg_runtime import BufferOptions, DevEntry, DeviceError

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
SOME = ("test_gather", "test_two_reductions", "test_assign", "test_iota")
CONFORMANCE = """
from tg_hcq.simulate.amd.kfd import KfdSystem, RemoteKfd
from tg_runtime import Device
from tg_runtime.testing import DeviceConformance
KfdSystem.__init__ = None  # this process cannot play a card itself
class OnCard(DeviceConformance):
    device, dev = "AMD", "MOCKKFD+AMD:LLVM:{arch}"
for name in {names}:
    test = OnCard()
    test.setup_method()
    assert isinstance(Device["AMD"].system, RemoteKfd)
    getattr(test, name)()
    test.teardown_method()
"""
WHOLE = """
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.report import outcomes
KfdSystem.__init__ = None  # this process cannot play a card itself
DeviceConformance.launches = 50
found = list(outcomes("MOCKKFD+AMD:LLVM:{arch}"))
failed = [one for one in found if one.status == "FAILED"]
for one in failed:
    print(one.group, one.detail)
raise SystemExit(bool(failed) or len(found) < 10)
"""
ENVIRONMENT = {**os.environ, "AMD_PROCESS": "1"}


def python(program: str, *, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs a program whose cards are played by another process."""
    return subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, check=False, capture_output=True, text=True, timeout=timeout
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_kernels_are_executed_elsewhere(arch: str) -> None:
    done = python(CONFORMANCE.format(arch=arch, names=SOME))
    assert done.returncode == 0, done.stderr


def opened() -> tuple[RemoteKfd, AMDDevice]:
    """A card that another process plays."""
    machine = RemoteKfd("gfx1100")
    return machine, AMDDevice("AMD", DevEntry("AMD", arch="gfx1100", iface="MOCKKFD"), system=machine)


def test_a_store_of_the_card_is_seen_and_closing_leaves_no_process() -> None:
    machine, device = opened()
    memory, done = device.allocator.alloc(64, BufferOptions(host=True)), device.new_signal()
    device.compute_queue().write(memory.address, [42]).signal(done, 1).submit(device)
    done.wait(1)
    assert memory.host_view("I")[0] == 42
    device.close()
    machine.close()
    assert machine.server.returncode == 0


def test_memory_of_the_process_cannot_be_the_cards() -> None:
    """No other process shares it afterwards: the error says so, and the card goes on."""
    machine, device = opened()
    pages = device.system.allocate(4096)
    with pytest.raises(
        DeviceError, match="16 bytes of memory: KFD refuses .*this kernel cannot share memory of the process"
    ):
        device.allocator.alloc(16, BufferOptions(external_ptr=pages.address, nolru=True))
    memory, done = device.allocator.alloc(64, BufferOptions(host=True)), device.new_signal()
    device.compute_queue().write(memory.address, [42]).signal(done, 1).submit(device)
    done.wait(1)
    assert memory.host_view("I")[0] == 42
    device.close()
    machine.close()


def test_a_process_that_dies_is_a_card_that_is_gone() -> None:
    machine, device = opened()
    device.timeout_ms = 20000
    done, begun = device.new_signal(), time.monotonic()
    device.compute_queue().wait(done, 1).submit(device)
    machine.server.kill()
    machine.server.wait()
    with pytest.raises(DeviceError, match="the kernel does not answer any more.*No such device"):
        done.wait(1)
    assert time.monotonic() - begun < 10
    with pytest.raises(DeviceError):
        device.allocator.alloc(1 << 22, BufferOptions(nolru=True))
    device.close()
    machine.close()


WAITS = """
import sys
from tg_hcq.simulate.amd.kfd import RemoteKfd
from tg_hcq.amd import AMDDevice
from tg_runtime import DevEntry
machine = RemoteKfd("gfx1100")
device = AMDDevice("AMD", DevEntry("AMD", arch="gfx1100", iface="MOCKKFD"), system=machine)
device.timeout_ms = 60000
print(machine.server.pid, flush=True)
device.new_signal().wait(1)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_both_processes_end_together(how: signal.Signals) -> None:
    """Ctrl-C is sent to both, as a terminal does; a killed process leaves no orphan."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as client:  # fmt: skip
        assert client.stdout is not None
        server = int(client.stdout.readline())
        time.sleep(0.2)
        if how is signal.SIGINT:
            os.killpg(client.pid, how)
        else:
            client.kill()
        assert client.wait(20) != 0
    end = time.monotonic() + 10
    while time.monotonic() < end and runs(server):
        time.sleep(0.02)
    assert not runs(server)


def runs(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.drawn(1)
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_conformance_whole(arch: str) -> None:
    done = python(WHOLE.format(arch=arch), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
