"""Queues of other kinds than HOSTQ's, in software: packets with headers, and words that a call of the system takes."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import pytest

from tg_dtype import dtypes
from tg_hcq import MMIO, DeviceFault, FileIO, HCQBuffer, Ring, SoftwareSystem, System
from tg_hcq.core import replay as replays
from tg_hcq.core.args import HCQArgsState
from tg_hcq.core.native import Outcome, native_replay, source
from tg_hcq.core.patch import PatchTable
from tg_hcq.core.queue import Dims, Launchable, QueueDevice
from tg_hcq.core.replay import Replay
from tg_hcq.core.watch import Until, watch
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.executor import HostExecutor, Opcode
from tg_runtime import BufferOptions, DeviceError
from tg_runtime.compilers.llvm import LLVMCompiler
from tg_runtime.host.execmem import ExecutableMemory
from tg_runtime.host.libc import PROT_READ, libc
from tg_shape import Variable, sint

VISIBLE = BufferOptions(device_visible=True)
PACKET, INVALID = 16, 0xFFFFFFFF


class PacketQueue(HostQueue):
    """HOSTQ's commands, each in a packet of 64 bytes."""

    def _fill(self) -> None:
        left = -len(self) % PACKET
        if left:
            super()._packet(Opcode.NOP, left - 1)
            self.put(*[0] * (left - 1))

    def _signal(self, address: sint, value: sint) -> None:
        super()._signal(address, value)
        self._fill()

    def _wait(self, address: sint, value: sint) -> None:
        super()._wait(address, value)
        self._fill()

    def memory_barrier(self) -> Self:
        super().memory_barrier()
        self._fill()
        return self

    def copy(self, dest: sint, src: sint, nbytes: sint) -> Self:
        super().copy(dest, src, nbytes)
        self._fill()
        return self

    def write(self, dest: sint, words: Sequence[sint]) -> Self:
        for at in range(0, len(words), 12):
            super().write(dest + 4 * at, words[at : at + 12])
            self._fill()
        return self

    def _exec(self, program: Launchable, args: HCQArgsState, global_size: Dims, local_size: Dims) -> None:
        super()._exec(program, args, global_size, local_size)
        self._fill()

    def _jump(self, address: int, count: int) -> Sequence[int]:
        words = [*super()._jump(address, count)]
        return words + [0] * (PACKET - len(words))


class PacketProcessor(HostExecutor):
    """Looks at headers: an entry is there as soon as it has one, whatever the pointers say."""

    def _run(self) -> None:
        ring, at = self._ring, self._read[0]
        while True:
            start = at * PACKET % len(ring)
            if not watch(ring.view(4 * start, 4, "I"), Until.DIFFERENT, INVALID, self._stop):
                return
            try:
                if self._packet(self._fetch, start, start + PACKET, nested=False) < 0:
                    return
            except Exception as error:
                self._report(start, error)
                return
            ring[start] = INVALID
            at += 1
            self._read[0] = at


class PacketDevice(HostQueueDevice):
    """HOSTQ with rings of packets."""

    def __init__(self, device: str = "HOSTQ") -> None:
        super().__init__(device, ring_words=64 * PACKET)
        self.compute_queue, self.copy_queue = PacketQueue, lambda: PacketQueue("copy")
        self.allocator.attach(self.timeline, self.compute_queue, self.copy_queue, self)
        self.queues = {"compute": self.compute_queue, "copy": self.copy_queue}

    def _new_ring(self, kind: str, ring_words: int) -> Ring:
        plain = super()._new_ring(kind, ring_words)
        return Ring(
            plain.name, plain.words, plain.read, plain.write, plain.doorbell, self.system, entry_words=PACKET,
            invalid=INVALID, check=self._require_running,
        )  # fmt: skip

    def _start(self) -> None:
        super()._start()
        for kind, ring in self._rings.items():
            self._executors[kind] = PacketProcessor(ring.name, MEMORY, ring.words, ring.read, ring.doorbell)


class Kernel(FileIO):
    """The file of a kernel's driver: what is asked of it is executed in order, on a ring that only it knows."""

    def __init__(self, path: str, device: Callable[[], HostQueueDevice]) -> None:
        super().__init__(path)
        self._device, self.asked, self.refusals = device, 0, 0

    def _open(self, path: str, flags: int) -> int:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def command(self, kind: str, address: int, count: int) -> None:
        """Executes words at an address, which is the process's or the device's."""
        if self.refusals:
            self.refusals -= 1
            raise OSError(5, os.strerror(5))
        self.asked += 1
        words = array("I", MMIO(address, 4 * count, "I").read(0, count))
        HostQueueDevice.ring(self._device(), kind).submit(words, 1000)


class AskingQueue(HostQueue):
    """Words that a call of the system takes."""

    def _ring(self, device: QueueDevice) -> None:  # type: ignore[override]
        return None

    def _hand_over(self, device: QueueDevice, words: MMIO, memory: HCQBuffer | None) -> None:
        assert isinstance(device, AskingDevice)
        try:
            device.file.command(self.kind, words.address, len(self))
        except OSError as error:
            raise DeviceError(f"{device.device}: the kernel refuses a submission: {error}") from error
        device.bound_seen += memory is not None


class AskingDevice(HostQueueDevice):
    """HOSTQ, whose rings only its kernel driver knows."""

    def __init__(self, device: str = "HOSTQ") -> None:
        machine = SoftwareSystem()
        machine.put_node("/dev/queues", lambda path, flags: Kernel(path, lambda: self))
        self.bound_seen = 0
        super().__init__(device, system=machine)
        file = self.system.open("/dev/queues", os.O_RDWR)
        assert isinstance(file, Kernel)
        self.file = file
        self.compute_queue, self.copy_queue = AskingQueue, lambda: AskingQueue("copy")
        self.allocator.attach(self.timeline, self.compute_queue, self.copy_queue, self)

    def ring(self, kind: str) -> Ring:
        raise AssertionError("a driver was given the ring")


@pytest.fixture(params=[(PacketDevice, True), (PacketDevice, False), (AskingDevice, True), (AskingDevice, False)],
                ids=["packets-native", "packets-python", "asking-native", "asking-python"])  # fmt: skip
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostQueueDevice]:
    make, native = request.param
    if not native:
        monkeypatch.setattr(replays, "native_replay", lambda: None)
    elif native_replay() is None:
        pytest.skip("no LLVM")
    device = make()
    device.timeout_ms = 2000
    yield device
    device.close()


def add(device: HostQueueDevice) -> HostQueueProgram:
    def run(out: int, source: int, value: int) -> None:
        words = (ctypes.c_int32 * 8).from_address(source)
        (ctypes.c_int32 * 8).from_address(out)[:] = [word + value for word in words]

    return HostQueueProgram.from_callable(device, "add", run, 2, (dtypes.int32,))


def test_copies_and_launches(other: HostQueueDevice) -> None:
    rng, program = random.Random(5), add(other)
    source, dest = other.allocator.alloc(32), other.allocator.alloc(32)
    for _ in range(200):  # the ring of packets goes round many times
        values, value = [rng.randrange(1 << 20) for _ in range(8)], rng.randrange(-1000, 1000)
        other.allocator.copyin(source, memoryview(array("i", values)).cast("B"))
        program(dest, source, vals=(value,))
        out = bytearray(32)
        other.allocator.copyout(memoryview(out), dest)
        assert list(array("i", bytes(out))) == [word + value for word in values]


@pytest.mark.parametrize("bind", [False, True], ids=["loose", "bound"])
def test_recorded_queues(other: HostQueueDevice, bind: bool) -> None:
    memory, n, to = other.allocator.alloc(4096, VISIBLE), Variable("n", 0, 1 << 30), Variable("to", 0, 2**63)
    assert isinstance(memory.address, int)
    queue = other.compute_queue()
    with other.timeline.recording(queue):
        queue.write(to, [n, n + 1, *range(20)])
    if bind:
        queue.bind(other)
    for i in range(300):
        other.timeline.replay(queue, {n: i, to: memory.address + 4 * (i % 100)})
        if i % 50 == 49:
            other.synchronize()
            assert memory.host_view("I").read(i % 100, 4) == [i, i + 1, 0, 1]
    with pytest.raises(ValueError, match="n"):
        other.timeline.replay(queue, {n: -1, to: memory.address})
    other.synchronize()


def test_faults_and_resets(other: HostQueueDevice) -> None:
    with other.submission() as queue:
        queue.write(64, [1])
    with pytest.raises(DeviceFault, match="WRITE: 4 bytes at 0x40 are not mapped"):
        other.synchronize()
    other.reset()
    test_copies_and_launches(other)


def test_many_threads(other: HostQueueDevice) -> None:
    memory = other.allocator.alloc(4096, VISIBLE)
    assert isinstance(memory.address, int)
    base = memory.address

    def work(which: int) -> None:
        for i in range(100):
            with other.submission() as queue:
                queue.write(base + 4 * which, [i + 1])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.synchronize()
    assert memory.host_view("I").read(0, 4) == [100] * 4


def test_what_the_system_refuses_was_not_submitted() -> None:
    device = AskingDevice()
    memory = device.allocator.alloc(64, VISIBLE)
    assert isinstance(memory.address, int)
    queue, n = AskingQueue(), Variable("n", 0, 100)
    with device.timeline.recording(queue):
        queue.write(memory.address, [n])
    queue.bind(device)
    device.timeline.replay(queue, {n: 1})
    value, device.file.refusals = device.timeline.value, 2
    with pytest.raises(DeviceError, match="the kernel refuses a submission: .*Input/output error"):
        device.timeline.replay(queue, {n: 2})
    with pytest.raises(DeviceError, match="refuses"), device.submission() as other:
        other.write(memory.address, [7])
    assert device.timeline.value == value
    device.synchronize()  # waits for nothing that was refused
    assert memory.host_view("I")[0] == 1 and device.bound_seen == 1
    device.timeline.replay(queue, {n: 3})  # nor does the fence of the queue
    device.timeline.replay(queue, {n: 4})
    device.synchronize()
    assert memory.host_view("I")[0] == 4
    device.close()


def test_a_ring_with_headers_takes_no_filler() -> None:
    words, pointer = MMIO.of(bytearray(1024), "I"), MMIO.of(bytearray(8), "Q")
    with pytest.raises(ValueError, match="not filled up by single words"):
        Ring("r", words, pointer, pointer, pointer, System(), entry_words=16, filler=0, invalid=1)


@pytest.mark.skipif(native_replay() is None or not hasattr(os, "fork"), reason="no LLVM")
@pytest.mark.parametrize("right", [True, False], ids=["right", "planted"])
def test_headers_are_stored_after_everything_else(right: bool) -> None:
    """A process dies where it stores the last packet's body: until then no packet may have a header."""
    text = source()
    if not right:  # each packet at once, its header with it
        for line, wrong in (
            ("%rest = sub i64 %step, 1", "%rest = sub i64 %step, 0"),
            ("%b_behind = add i64 %b_place, 1", "%b_behind = add i64 %b_place, 0"),
            ("%b_second = add i64 %b, 1", "%b_second = add i64 %b, 0"),
        ):
            assert text.count(line) == 1
            text = text.replace(line, wrong)
    made, shared = ExecutableMemory(LLVMCompiler().compile(text)), mmap.mmap(-1, 4 * mmap.PAGESIZE)
    words = MMIO.of(memoryview(shared), "I")
    read, write, doorbell = (MMIO.of(bytearray(8), "Q") for _ in range(3))
    ring = Ring("packets", words, read, write, doorbell, System(), entry_words=PACKET, invalid=INVALID)
    replay = Replay(PatchTable(), [])
    replay._native = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(made.function("replay"))
    replay.send(ring, array("I", range(len(words))))
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        libc().mprotect(words.address + 3 * mmap.PAGESIZE, mmap.PAGESIZE, PROT_READ)
        replay({})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV
    assert words.read(1, PACKET - 1) == [*range(1, PACKET)]  # the first body is there
    headers = {words[at] for at in range(0, len(words), PACKET)}
    assert (headers == {INVALID}) == right
    if right:
        assert replay({}) is Outcome.DONE
        assert words.read(0, len(words)) == [*range(len(words))] and write[0] == len(words) // PACKET
