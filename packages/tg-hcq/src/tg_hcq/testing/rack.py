"""FaultRack: what a device of hardware queues must do when it is lost, hangs, or is asked for what cannot be done."""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar, NoReturn

from tg_runtime import BufferOptions, DevEntry, Device, DeviceError, OutOfMemory, parse_dev
from tg_runtime.testing.base import Absent

from ..core.buffer import HCQBuffer
from ..core.compiled import HCQCompiled
from ..core.errors import ContentLost, DeviceFault, DeviceLost, DeviceTimeout
from ..core.queue import HWQueue
from ..core.system import systems_apart

_SIZE = 10_007
_TIMEOUT_MS = 2000
_HUNG_MS = 100
_UNLISTED = BufferOptions(nolru=True)

_OTHER = """
import sys
from tg_hcq.testing.rack import opened, works
device = opened({opener!r})
print("open", flush=True)
for line in sys.stdin:
    for seed in range(3):
        assert works(device, seed)
    print("done", flush=True)
device.close()
"""


def opened(opener: str) -> HCQCompiled:
    """A new device.

    Args:
      opener: the name of a function without arguments, ``"package.module:function"``; or what ``DEV`` would say:
        ``"DEV=MOCKKFD+AMD"``.
    """
    setting, _, dev = opener.partition("DEV=")
    if dev:
        (entry,) = parse_dev(dev)
        make: Callable[[str, DevEntry], HCQCompiled] = Device.load(entry.device)  # type: ignore[assignment]
        device = make(entry.device, entry)
    else:
        module, _, name = setting.partition(":")
        device = getattr(importlib.import_module(module), name)()
    device.timeout_ms = _TIMEOUT_MS
    return device


def copies(device: HCQCompiled) -> AbstractContextManager[HWQueue]:
    """A submission of copies: to the queue that is for them, where the device has one."""
    return device.timeline.submission((device.copy_queue or device.compute_queue)())


def works(device: HCQCompiled, seed: int = 0) -> bool:
    """Whether work runs: bytes go to the device, from one buffer to another there, and come back."""
    data = random.Random(seed).randbytes(_SIZE)
    source, dest = device.allocator.alloc(_SIZE), device.allocator.alloc(_SIZE)
    device.allocator.copyin(source, memoryview(data))
    with copies(device) as queue:
        queue.copy(dest.address, source.address, _SIZE)
        queue.writes.append(dest)
    out = bytearray(_SIZE)
    device.allocator.copyout(memoryview(out), dest)
    for buffer in (source, dest):
        device.allocator.free(buffer, _SIZE)
    return out == data


class FaultRack:
    """Tests for one kind of device. Subclass it, say how the hardware is made to fail, and let pytest collect it.

    A driver runs it on its software hardware; each test opens a device of its own.

    Attributes:
      opener: ``"package.module:function"``, which opens a device, or ``"DEV=…"``; other processes open it so, too.
      shared: whether two processes may have the device at the same time.
      survives: whether device memory keeps its content in a reset.
      tells_access: whether a fault on memory that is not mapped says how it was accessed.

    Example:
      >>> from tg_hcq.testing import FaultRack
      >>> class TestHostQueue(FaultRack):
      ...     opener = "tg_hcq.hostq:HostQueueDevice"
    """

    opener: ClassVar[str] = ""
    shared: ClassVar[bool] = True
    survives: ClassVar[bool] = True
    tells_access: ClassVar[bool] = True

    # what a driver supplies

    def bad_packet(self, queue: HWQueue) -> None:
        """Appends words that are no command."""
        self.absent("packet that the hardware refuses")

    def lose(self, device: HCQCompiled) -> Callable[[], None]:
        """Makes the device such that no reset brings it back; returns what undoes that at the end of the test."""
        self.absent("way to be lost")

    # the rest

    def setup_method(self) -> None:
        """Begins without open devices; software hardware is its own, since a reset is felt by all who have it."""
        self._open: list[HCQCompiled] = []
        self._apart = systems_apart()
        self._apart.__enter__()

    def teardown_method(self) -> None:
        """Closes what the test opened."""
        try:
            for device in self._open:
                device.close()
        finally:
            self._apart.__exit__(None, None, None)

    def device(self) -> HCQCompiled:
        """A new device, closed at the end of the test."""
        device = opened(self.opener)
        self._open.append(device)
        return device

    def absent(self, what: str) -> NoReturn:
        """Skips a test that is about something the device has not.

        Raises:
          Absent: if it is called.
        """
        raise Absent(f"{self.opener} has no {what}")

    def hold(self, device: HCQCompiled) -> Callable[[], None]:
        """Submits a wait that nothing ends; returns what ends it."""
        device.synchronize()
        gate = device.new_signal()
        with device.submission() as queue:
            queue.wait(gate, 1)
        return lambda: setattr(gate, "value", 1)

    def filled(self, device: HCQCompiled, data: bytes) -> HCQBuffer:
        """A buffer that holds some bytes."""
        buffer = device.allocator.alloc(len(data))
        device.allocator.copyin(buffer, memoryview(data))
        device.synchronize()
        return buffer

    def content(self, device: HCQCompiled, buffer: HCQBuffer, nbytes: int) -> bytes:
        """What a buffer holds."""
        out = bytearray(nbytes)
        device.allocator.copyout(memoryview(out), buffer)
        return bytes(out)

    def raises(self, kind: type[Exception], work: Callable[[], object]) -> str:
        """The message of the error that ``work`` ends with."""
        try:
            work()
        except kind as error:
            return str(error)
        raise AssertionError(f"{kind.__name__} was expected")

    def test_it_works(self) -> None:
        """Bytes go there and back."""
        device = self.device()
        assert all(works(device, seed) for seed in range(5))

    # bad commands

    def test_a_bad_packet(self) -> None:
        """Words that are no command are a fault, with the ring's last packets in the report; then a reset helps."""
        device = self.device()
        device.synchronize()
        with device.submission() as queue:
            self.bad_packet(queue)
        self._stopped(device, DeviceFault)
        error = device.error_state
        assert isinstance(error, DeviceFault) and error.report is not None
        assert any(tail.value.packets for tail in error.report.rings), error
        self._comes_back(device)

    def test_a_bad_address(self) -> None:
        """A store to memory that is not the device's names the address, how it was accessed, and what lies near it."""
        device = self.device()
        buffer = self.filled(device, b"b" * 64)
        with device.submission() as queue:
            queue.write(0x1000, [1])
        self._stopped(device, DeviceFault)
        error = device.error_state
        assert isinstance(error, DeviceFault) and (report := error.report) is not None
        assert report.address is not None and report.address.value // 4096 == 1 and report.address.source
        if self.tells_access:
            assert report.access is not None and report.access.value == "write"
        assert report.near is not None and report.near.value.allocated
        self._comes_back(device)
        if self.survives:
            assert self.content(device, buffer, 64) == b"b" * 64

    def test_memory_that_was_freed(self) -> None:
        """A store to memory that was given back is a fault that says by whom."""
        device = self.device()
        buffer = device.allocator.alloc(1 << 20, _UNLISTED)
        address = buffer.address
        device.allocator.free(buffer, 1 << 20, _UNLISTED)
        device.synchronize()
        with device.submission() as queue:
            queue.write(address + 4096, [1])
        self._stopped(device, DeviceFault)
        assert isinstance(device.error_state, DeviceFault) and device.error_state.report is not None
        near = device.error_state.report.near
        assert near is not None and near.value.distance == 0 and near.value.freed
        self._comes_back(device)

    # hung and lost

    def test_a_queue_that_hangs(self) -> None:
        """A wait that nothing ends is a time-out, with the packets that hang; then a reset helps."""
        device = self.device()
        buffer = self.filled(device, b"h" * 64)
        self.hold(device)
        device.timeout_ms = _HUNG_MS
        self._stopped(device, DeviceTimeout)
        assert isinstance(device.error_state, DeviceTimeout) and device.error_state.report is not None
        assert any(tail.value.packets for tail in device.error_state.report.rings)
        device.timeout_ms = _TIMEOUT_MS
        self._comes_back(device)
        if self.survives:
            assert self.content(device, buffer, 64) == b"h" * 64

    def test_a_lost_device(self) -> None:
        """What no reset brings back says so, whatever it is asked, and goes on saying so."""
        device = self.device()
        undo = self.lose(device)
        try:
            for _ in range(2):
                self.raises(DeviceLost, device.reset)
                self.raises(DeviceLost, device.synchronize)
                self.raises(DeviceError, lambda: works(device))
        finally:
            undo()

    # memory

    def test_out_of_memory(self) -> None:
        """What is too much is refused, and nothing is lost by that; when there is room again it is used."""
        device = self.device()
        buffer = self.filled(device, b"m" * 64)
        self.raises(OutOfMemory, lambda: device.allocator.alloc(1 << 60))
        device.allocator.limit = device.allocator.used + device.allocator.cached + (8 << 20)
        taken: list[HCQBuffer] = []

        def fill() -> None:
            while len(taken) < 1000:
                taken.append(device.allocator.alloc(1 << 20, _UNLISTED))

        message = self.raises(OutOfMemory, fill)
        assert taken and "out of memory" in message
        for block in taken:
            device.allocator.free(block, 1 << 20, _UNLISTED)
        device.synchronize()
        assert self.content(device, buffer, 64) == b"m" * 64 and works(device)

    # reset

    def test_resets_of_an_idle_device(self) -> None:
        """They change nothing that the device remembers, and leave nothing behind."""
        device = self.device()
        buffer = self.filled(device, b"r" * 64)
        for seed in range(device.allocator.staging_slots):  # each takes a slot that is not there yet
            assert works(device, seed)
        used = device.allocator.used
        for seed in range(10):
            device.reset()
            assert works(device, seed)
        device.synchronize()
        assert device.generation == 10 and device.allocator.used == used
        if self.survives:
            assert self.content(device, buffer, 64) == b"r" * 64
        else:
            self.raises(ContentLost, lambda: self.content(device, buffer, 64))

    def test_a_reset_in_the_middle_of_a_copy(self) -> None:
        """What was being written raises on every use; it can be freed, and new work runs."""
        device = self.device()
        kept, lost = self.filled(device, b"k" * 64), device.allocator.alloc(64)
        self.hold(device)
        with copies(device) as queue:
            queue.copy(lost.address, kept.address, 64)
            queue.writes.append(lost)
        device.reset()
        for use in (
            lambda: self.content(device, lost, 64), lambda: lost.address,
            lambda: device.allocator.copyin(lost, memoryview(b"x")), lambda: device.allocator.as_buffer(lost, 1),
        ):  # fmt: skip
            self.raises(ContentLost, use)
        if self.survives:
            assert self.content(device, kept, 64) == b"k" * 64
        device.allocator.free(lost, 64)
        assert works(device)

    # processes

    def test_a_fork(self) -> None:
        """A child is told that the device is its parent's, by whatever it asks; the parent's goes on."""
        if not hasattr(os, "fork"):
            self.absent("processes that fork")
        device = self.device()
        buffer = self.filled(device, b"f" * 64)
        asks: list[Callable[[], object]] = [
            lambda: works(device), device.synchronize, device.reset, lambda: self.content(device, buffer, 1),
            lambda: device.allocator.alloc(1 << 20, _UNLISTED),
        ]  # fmt: skip
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a wait that has no end ends the child
            told = b"?"
            try:
                silent = [i for i, ask in enumerate(asks) if "forked" not in self.raises(DeviceError, ask)]
                gc.collect()
                told = str(silent).encode()
            finally:
                os.write(writing, told)
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            assert answer.read() == "[]"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert self.content(device, buffer, 64) == b"f" * 64 and works(device)

    def test_two_processes(self) -> None:
        """Both work at the same time, or the second one is told who has the device."""
        device = self.device()
        other = self._other()
        try:
            if not self.shared:
                _, error = other.communicate(timeout=60)
                assert other.returncode != 0 and f"process {os.getpid()}" in error, error
                assert works(device)
                return
            assert other.stdin is not None and other.stdout is not None
            assert other.stdout.readline() == "open\n"
            other.stdin.write("go\n")
            other.stdin.flush()
            assert all(works(device, seed) for seed in range(10))
            device.reset()  # is this device's alone
            assert other.stdout.readline() == "done\n"
            other.stdin.write("go\n")
            _, error = other.communicate(timeout=60)
            assert other.returncode == 0, error
        finally:
            other.kill()
            other.wait()
        assert works(device)

    def test_a_process_that_is_killed(self) -> None:
        """It takes nobody with it, and the device can be opened after it."""
        other = self._other()
        assert other.stdin is not None and other.stdout is not None and other.stdout.readline() == "open\n"
        device = self.device() if self.shared else None
        other.stdin.write("go\n")
        other.stdin.flush()
        time.sleep(0.01)
        other.kill()
        other.communicate()
        device = self.device() if device is None else device
        assert works(device)

    def _other(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        code = _OTHER.format(opener=self.opener)
        return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def _stopped(self, device: HCQCompiled, kind: type[DeviceError]) -> None:
        """The device says what stopped it, once and again, and takes no work."""
        first = self.raises(kind, device.synchronize)
        assert self.raises(kind, device.synchronize) == first
        self.raises(kind, lambda: works(device))

    def _comes_back(self, device: HCQCompiled) -> None:
        device.reset()
        assert device.error_state is None
        device.synchronize()
        assert all(works(device, seed) for seed in range(3))
