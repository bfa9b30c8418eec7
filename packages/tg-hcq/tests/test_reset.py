"""A reset in the middle of each operation: waiters get errors, lost content raises, everything else goes on."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tg_dtype import dtypes
from tg_hcq import ContentLost, DeviceFault, DeviceLost, HCQBuffer, HCQCompiled
from tg_hcq.core.buffer import LostBuffer
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import Buffer, BufferOptions, Device, DeviceError
from tg_shape import Variable

VISIBLE = BufferOptions(device_visible=True)

MIB = 1 << 20


def at(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address


def put(device: HostQueueDevice, data: bytes) -> HCQBuffer:
    buffer = device.allocator.alloc(len(data), VISIBLE)
    device.allocator.copyin(buffer, memoryview(data))
    return buffer


def get(device: HostQueueDevice, buffer: HCQBuffer, nbytes: int) -> bytes:
    out = bytearray(nbytes)
    device.allocator.copyout(memoryview(out), buffer)
    return bytes(out)


def add_one(device: HostQueueDevice) -> HostQueueProgram:
    """dest[i] = src[i] + 1 for n bytes."""

    def function(dest: int, src: int, n: int) -> None:
        data = ctypes.string_at(src, n)
        ctypes.memmove(dest, bytes((byte + 1) % 256 for byte in data), n)

    program = HostQueueProgram.from_callable(device, "add_one", function, 2, (dtypes.int32,))
    program.outs = (0,)
    return program


@contextmanager
def held(device: HostQueueDevice) -> Iterator[None]:
    """The device is held before whatever the block submits, and is reset at its end."""
    device.synchronize()
    gate = device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1)
    yield
    device.reset()


class Waiter:
    """A thread that runs into the reset."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        time.sleep(0.05)
        assert self._thread.is_alive()  # it waits

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error

    def ended(self) -> BaseException:
        self._thread.join(10)
        assert not self._thread.is_alive() and self.error is not None
        return self.error


def works(device: HostQueueDevice) -> bool:
    """Whether new work runs: copies and a kernel."""
    source, dest = put(device, bytes(range(100))), device.allocator.alloc(100, VISIBLE)
    add_one(device)(dest, source, vals=(100,), wait=True)
    return get(device, dest, 100) == bytes(range(1, 101))


def assert_lost(device: HostQueueDevice, buffer: HCQBuffer) -> None:
    program = add_one(device)
    other = device.allocator.alloc(64, VISIBLE)
    uses: list[Callable[[], object]] = [
        lambda: buffer.address, lambda: buffer.offset(0, 1), buffer.host_view, lambda: buffer.lend(1),
        lambda: get(device, buffer, 1), lambda: device.allocator.copyin(buffer, memoryview(b"x")),
        lambda: device.allocator.as_buffer(buffer, 1), lambda: device.allocator.export(buffer, 1),
        lambda: program(other, buffer, vals=(1,)), lambda: program(buffer, other, vals=(1,)),
        lambda: device.allocator.transfer(other, buffer, 1, device.allocator),
        lambda: device.allocator.transfer(buffer, other, 1, device.allocator),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ContentLost, match="the content was lost: HOSTQ.* was reset while it was being written"):
            use()
    assert "bytes at 0x" in repr(buffer)


def test_during_a_copy_to_the_device(device: HostQueueDevice) -> None:
    whole, part = put(device, b"a" * 64), put(device, b"b" * (8 * MIB))
    with held(device):
        waiter = Waiter(lambda: device.allocator.copyin(part, memoryview(bytes(8 * MIB))))
    assert isinstance(waiter.ended(), DeviceFault)
    assert get(device, whole, 64) == b"a" * 64 and works(device)
    assert_lost(device, part)


def test_during_a_small_copy_that_nobody_waits_for(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(64, VISIBLE)
    with held(device):
        device.allocator.copyin(buffer, memoryview(b"c" * 64))
    assert_lost(device, buffer)
    assert works(device)


def test_during_a_copy_to_the_host(device: HostQueueDevice) -> None:
    buffer = put(device, bytes(range(256)) * 4096)
    with held(device):
        waiter = Waiter(lambda: get(device, buffer, MIB))
    assert isinstance(waiter.ended(), DeviceFault)
    assert get(device, buffer, MIB) == bytes(range(256)) * 4096 and works(device)


def test_before_a_kernel(device: HostQueueDevice) -> None:
    source, dest = put(device, b"x" * 64), device.allocator.alloc(64, VISIBLE)
    part = dest.offset(8, 8)
    with held(device):
        add_one(device)(dest, source, vals=(64,))
    assert get(device, source, 64) == b"x" * 64
    assert_lost(device, dest)
    assert_lost(device, part)
    assert works(device)


def test_before_a_kernel_that_writes_nobody_knows_what(device: HostQueueDevice) -> None:
    source, dest = put(device, b"x" * 64), put(device, b"y" * 64)
    program = add_one(device)
    program.outs = None
    with held(device):
        program(dest.offset(0, 32), source, vals=(32,))
    assert_lost(device, source)
    assert_lost(device, dest)


def test_while_a_kernel_runs(device: HostQueueDevice) -> None:
    begun = threading.Event()
    device.synchronize()

    def slow(dest: int) -> None:
        begun.set()
        time.sleep(0.1)

    program = HostQueueProgram.from_callable(device, "slow", slow, 1)
    dest = device.allocator.alloc(64, VISIBLE)
    program(dest)
    assert begun.wait(10)
    device.reset()
    assert works(device)
    assert_lost(device, dest)


def test_what_was_done_is_kept(device: HostQueueDevice) -> None:
    source, dest = put(device, b"x" * 64), device.allocator.alloc(64, VISIBLE)
    add_one(device)(dest, source, vals=(64,))
    device.synchronize()
    device.reset()
    assert get(device, dest, 64) == b"y" * 64 and get(device, source, 64) == b"x" * 64


@pytest.mark.parametrize("which", [0, 1], ids=["destination", "source"])
def test_during_a_transfer(make_device: Callable[..., HostQueueDevice], which: int) -> None:
    devices = make_device("HOSTQ"), make_device("HOSTQ:1")
    there, here = devices
    dest, src = put(there, b"d" * 64), put(here, b"s" * 64)
    here.synchronize()
    gate = here.new_signal()
    with here.submission() as queue:
        queue.wait(gate, 1)
    assert there.allocator.transfer(dest, src, 64, here.allocator)
    devices[which].reset()
    if which == 0:
        gate.value = 1
    for device in devices:  # the other one goes on, or is told
        device.synchronize()
    assert get(here, src, 64) == b"s" * 64
    with pytest.raises(ContentLost):
        get(there, dest, 64)
    assert works(there) and works(here)


def test_memory_that_a_peer_still_writes_to_serves_nobody_else(make_device: Callable[..., HostQueueDevice]) -> None:
    there, here = make_device("HOSTQ"), make_device("HOSTQ:1")
    src, gate = put(here, b"s" * MIB), here.new_signal()
    dest, cached = there.allocator.alloc(MIB), there.allocator.alloc(2 * MIB)
    address, other = at(dest), at(cached)
    with here.submission() as queue:
        queue.wait(gate, 1)
    assert there.allocator.transfer(dest, src, MIB, here.allocator)
    assert there.allocator.transfer(cached, src, MIB, here.allocator)
    there.allocator.free(cached, 2 * MIB)
    there.reset()
    there.allocator.free(dest, MIB)
    del dest, cached
    gc.collect()
    there.synchronize()
    again = there.allocator.alloc(2 * MIB)
    assert MEMORY.view(address, MIB) is not None and at(again) != other
    gate.value = 1
    here.synchronize()  # its copies meet no fault
    there.synchronize()
    assert MEMORY.view(address, MIB) is None and works(there) and works(here)


def test_a_freed_buffer_that_was_being_written_serves_nobody(device: HostQueueDevice) -> None:
    with held(device):
        buffer = device.allocator.alloc(MIB)
        device.allocator.copyin(buffer, memoryview(bytes(64)))
        device.allocator.free(buffer, MIB)
        del buffer
    again = device.allocator.alloc(MIB)
    device.allocator.copyin(again, memoryview(b"w" * 64))
    assert get(device, again, 64) == b"w" * 64


def test_while_a_signal_is_waited_for(device: HostQueueDevice) -> None:
    mine = device.new_signal()
    with held(device):
        with device.submission() as queue:
            queue.signal(mine, 1)
        waiters = [Waiter(lambda: mine.wait(1)), Waiter(device.synchronize), Waiter(device.timeline.synchronize)]
    assert all(isinstance(waiter.ended(), DeviceFault) for waiter in waiters)
    assert mine.value == 0 and works(device)


def test_a_wait_that_sleeps_through_a_reset(device: HostQueueDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is gone when the waiter looks, but what it waits for was dropped."""
    point = device.timeline.signal
    monkeypatch.setattr(device, "sleep", lambda waited: device.reset())
    with pytest.raises(DeviceFault, match="was reset while the signal"):
        point.wait(1)


def test_while_a_ring_is_full(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(ring_words=32)
    gate, done = device.new_signal(), device.new_signal()
    HostQueue().wait(gate, 1).submit(device)
    for i in range(5):
        HostQueue().signal(done, i).submit(device)
    waiter = Waiter(lambda: HostQueue().signal(done, 6).submit(device))
    device.reset()
    assert isinstance(waiter.ended(), DeviceFault) and done.value == 0
    assert works(device)


def test_while_a_bound_queue_waits_for_its_last_submission(device: HostQueueDevice) -> None:
    memory, n = put(device, bytes(64)), Variable("n", 0, 100)
    queue = HostQueue().write(at(memory), [n]).bind(device)
    with held(device):
        device.timeline.submission(HostQueue())
        gate = device.new_signal()
        HostQueue().wait(gate, 1).submit(device)
        queue.submit(device, {n: 1})
        waiter = Waiter(lambda: queue.submit(device, {n: 2}))
    assert isinstance(waiter.ended(), DeviceFault)
    queue.submit(device, {n: 3})
    done = device.new_signal()
    HostQueue().signal(done, 1).submit(device)
    done.wait(1)
    assert memory.host_view("I")[0] == 3


def test_a_recorded_queue_does_not_read_what_was_lost(device: HostQueueDevice) -> None:
    program = add_one(device)
    dest, other = device.allocator.alloc(64, VISIBLE), device.allocator.alloc(64, VISIBLE)
    source = put(device, b"x" * 64)

    def recorded(dest: HCQBuffer, source: HCQBuffer) -> HostQueue:
        queue = HostQueue()
        with device.timeline.recording(queue):
            queue.exec(program, program.fill_args((dest, source), (64,), device.allocator.alloc(64, VISIBLE)))
        return queue.bind(device)

    first, second, harmless = recorded(dest, source), recorded(other, dest), recorded(other, source)
    with held(device):
        device.timeline.replay(first)
    for _ in range(2):
        for queue in (first, second):
            with pytest.raises(ContentLost):
                device.timeline.replay(queue)
    device.timeline.replay(harmless)
    assert get(device, other, 64) == b"y" * 64


def test_buffers_that_a_replay_names_are_lost_too(device: HostQueueDevice) -> None:
    program, address = add_one(device), Variable("address", 0, 2**64 - 1)
    source, dest = put(device, b"x" * 64), put(device, b"z" * 64)
    queue = HostQueue()
    with device.timeline.recording(queue):
        block = device.allocator.alloc(64, VISIBLE)
        queue.exec(program, program.fill_args((HCQBuffer(address, 64), source), (64,), block))
    with held(device):
        device.timeline.replay(queue.bind(device), {address: at(dest)}, writes=[dest])
    assert_lost(device, dest)


def test_while_counting_begins_again(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(timeline_limit=3)
    program = add_one(device)
    source, dest = put(device, b"x" * 64), device.allocator.alloc(64, VISIBLE)
    device.synchronize()
    for repeat in range(3):
        gate = device.new_signal()
        with device.submission() as queue:
            queue.wait(gate, 1)

        waiter = Waiter(lambda into=dest: [program(into, source, vals=(64,)) for _ in range(8)])  # type: ignore[misc]
        device.reset()
        assert isinstance(waiter.ended(), DeviceFault)
        device.allocator.free(dest, 64)
        dest = device.allocator.alloc(64, VISIBLE)
        program(dest, source, vals=(64,))
        assert get(device, dest, 64) == b"y" * 64, repeat


def test_with_argument_blocks_in_use(device: HostQueueDevice) -> None:
    program = add_one(device)
    source = put(device, b"x" * 64)
    blocks = device.kernargs._segment_nbytes // 64
    with held(device):
        for _ in range(blocks // 8):
            program(device.allocator.alloc(64, VISIBLE), source, vals=(64,))
    for _ in range(blocks // 8):
        program(device.allocator.alloc(64, VISIBLE), source, vals=(64,))
    assert works(device)


def test_with_memory_on_its_way_back(device: HostQueueDevice) -> None:
    options = BufferOptions(nolru=True)
    freed = device.allocator.alloc(MIB, options)
    address = at(freed)
    with held(device):
        with device.submission() as queue:
            queue.write(address, [1])
        device.allocator.free(freed, MIB, options)
        assert MEMORY.view(address, MIB) is not None
    device.synchronize()
    assert MEMORY.view(address, MIB) is None and works(device)


def test_lost_memory_can_be_freed_and_is_not_used_again(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(4096, VISIBLE)
    address = at(buffer)
    with held(device):
        device.allocator.copyin(buffer, memoryview(bytes(4096)))
    assert isinstance(buffer, LostBuffer) and MEMORY.view(address, 4096) is not None
    held_before = device.allocator.blocks
    device.allocator.free(buffer, 4096)
    device.synchronize()
    assert MEMORY.view(address, 4096) is None and device.allocator.blocks == held_before - 1


def test_buffers_of_the_runtime_are_told() -> None:
    device = Device["HOSTQ:5"]
    assert isinstance(device, HostQueueDevice)
    lost, kept = (Buffer("HOSTQ:5", 64, dtypes.uint8).allocate() for _ in range(2))
    kept.copyin(memoryview(b"k" * 64))
    device.synchronize()
    view, address = lost.view(8, dtypes.uint8, 8), at(lost.opaque)
    _ = view.opaque
    with held(device):
        lost.copyin(memoryview(b"l" * 64))
    for one in (lost, view):
        with pytest.raises(DeviceError, match="is half written: HOSTQ:5 was reset while it was being written"):
            one.tobytes()
    assert kept.tobytes() == b"k" * 64
    device.synchronize()
    assert MEMORY.view(address, 64) is None  # nobody else would give it back
    device.close()


class Forgetful(HostQueueDevice):
    """A device whose memory does not survive a reset."""

    def _reset(self) -> bool:
        super()._reset()
        return False


def test_a_device_that_forgets_its_memory() -> None:
    device = Forgetful("HOSTQ:9")
    first = put(device, b"1" * 64)
    host = device.allocator.alloc(64, BufferOptions(host=True))
    host.host_view()[0] = 7
    device.synchronize()
    device.reset()
    with pytest.raises(ContentLost, match="HOSTQ:9 was reset, and forgot its memory"):
        get(device, first, 64)
    assert host.host_view()[0] == 7 and works(device)
    device.close()


def test_a_device_that_cannot_be_reset(device: HostQueueDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostQueueDevice, "_reset", HCQCompiled._reset)
    for _ in range(2):
        with pytest.raises(DeviceLost, match="HOSTQ cannot be reset: only a new process can go on"):
            device.reset()
        with pytest.raises(DeviceLost, match="only a new process"):
            device.synchronize()
    monkeypatch.undo()
    device.reset()
    assert works(device)


def test_a_closed_device_is_not_brought_back(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device("HOSTQ:4")
    device.close()
    with pytest.raises(DeviceError, match="HOSTQ:4 is closed"):
        device.reset()


def test_resets_at_any_moment_of_any_work(make_device: Callable[..., HostQueueDevice]) -> None:
    """Whoever gets an answer gets the right one; whoever gets none is told."""
    device = make_device(timeline_limit=50, timeout_ms=5000)
    wrong: list[object] = []
    done = [0, 0]
    stop = threading.Event()

    def worker(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            try:
                n = rng.choice((1, 63, 64, 1000, 3 * MIB // 2))
                data = rng.randbytes(n)
                source, dest = put(device, data), device.allocator.alloc(n, VISIBLE)
                if n <= 1000:
                    add_one(device)(dest, source, vals=(n,))
                    expected = bytes((byte + 1) % 256 for byte in data)
                else:
                    with device.timeline.submission(HostQueue("copy")) as queue:
                        queue.copy(at(dest), at(source), n)
                        queue.writes.append(dest)
                    expected = data
                if get(device, dest, n) != expected or get(device, source, n) != data:
                    wrong.append(n)
                done[0] += 1
                device.allocator.free(source, n)
                device.allocator.free(dest, n)
            except DeviceError:
                done[1] += 1
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=worker, args=(seed,), daemon=True) for seed in range(2)]
    for thread in threads:
        thread.start()
    rng = random.Random(3)
    for _ in range(60):
        time.sleep(rng.random() * 0.02)
        device.reset()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert done[0] > 0 and done[1] > 0 and works(device)
    gc.collect()
