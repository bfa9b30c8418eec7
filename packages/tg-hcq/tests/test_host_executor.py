"""The command processor: ring wrap-around, back-pressure, and faults on everything that is wrong."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_hcq import ArgsLayout, DeviceFault, DeviceTimeout, HCQBuffer
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.executor import Opcode
from tg_hcq.hostq.memory import HostMemory
from tg_runtime import BufferOptions

VISIBLE = BufferOptions(device_visible=True)


def at(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address


def test_the_ring_wraps_around(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(ring_words=37)  # no packet fits evenly, so that packets are cut by the end of the ring
    memory, done = device.allocator.alloc(64, VISIBLE), device.new_signal()
    for i in range(1, 300):
        queue = HostQueue().write(at(memory), [i, i + 1, i + 2]).copy(at(memory) + 16, at(memory), 12)
        queue.signal(done, i).submit(device)
    done.wait(299)
    assert memory.host_view("I").read(0, 8) == [299, 300, 301, 0, 299, 300, 301, 0]
    executor = device.executor("compute")
    assert executor.read_pointer == executor.write_pointer == 299 * 18 > 37
    assert executor.ring_words == 37


def test_a_full_ring_holds_the_submitter(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(ring_words=32, timeout_ms=100)
    gate, done = device.new_signal(), device.new_signal()
    HostQueue().wait(gate, 1).submit(device)
    for i in range(1, 6):
        HostQueue().signal(done, i).submit(device)
    with pytest.raises(DeviceTimeout, match="ring of 32 words has been full for 100 ms"):
        HostQueue().signal(done, 6).submit(device)
    gate.value = 1
    done.wait(5)
    HostQueue().signal(done, 6).submit(device)
    done.wait(6)


def test_more_words_than_the_ring_holds_want_binding(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(ring_words=64)
    memory, done = device.allocator.alloc(1024, VISIBLE), device.new_signal()

    def long_queue() -> HostQueue:
        return HostQueue().write(at(memory), range(200)).signal(done, 1)

    with pytest.raises(ValueError, match=r"208 words do not fit in a ring of 64; bind"):
        long_queue().submit(device)
    bound = long_queue().bind(device).submit(device)
    done.wait(1)
    assert memory.host_view("I").read(0, 200) == list(range(200)) and bound


UNMAPPED = 0x1000


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda q: q.put(0xFF), "unknown command 0xff"),
        (lambda q: q.put(0x10, 0, 0), r"unknown command 0x10"),
        (lambda q: q.put(Opcode.SIGNAL | 4 << 8, 0), "SIGNAL is cut off: 4 words announced, 1 there"),
        (lambda q: q.put(Opcode.SIGNAL | 2 << 8, 0, 0), "SIGNAL with 2 words"),
        (lambda q: q.put(Opcode.WRITE | 1 << 8, 0), "WRITE with 1 words"),
        (lambda q: q.write(UNMAPPED, [1]), "WRITE: 4 bytes at 0x1000 are not mapped"),
        (lambda q: q.copy(UNMAPPED, UNMAPPED, 8), "COPY from: 8 bytes at 0x1000"),
        (lambda q: q.poll(UNMAPPED, 1), "POLL: 4 bytes"),
        (lambda q: q._wait(UNMAPPED, 1), "WAIT: 8 bytes"),
        (lambda q: q._signal(UNMAPPED, 1), "SIGNAL: 8 bytes"),
        (lambda q: q.put(Opcode.INDIRECT | 3 << 8, UNMAPPED, 0, 5), "INDIRECT: 20 bytes"),
        (lambda q: q.put(Opcode.EXEC | 10 << 8, *[UNMAPPED, 0] * 2, *[1] * 6), "EXEC descriptor: 20 bytes"),
    ],
)
def test_faults(device: HostQueueDevice, build: Callable[[HostQueue], object], message: str) -> None:
    queue, done = HostQueue(), device.new_signal()
    build(queue)
    queue.submit(device)
    with pytest.raises(DeviceFault, match=rf"HOSTQ compute queue: fault at word 0: .*{message}"):
        done.wait(1)
    with pytest.raises(DeviceFault, match=message):
        device.synchronize()
    with pytest.raises(DeviceFault):
        HostQueue().signal(done, 1).submit(device)
    assert isinstance(device.error_state, DeviceFault)
    device.reset()
    device.synchronize()
    HostQueue().signal(done, 1).submit(device)
    done.wait(1)


def test_a_misaligned_signal_is_a_fault(device: HostQueueDevice) -> None:
    memory = device.allocator.alloc(64, VISIBLE)
    queue = HostQueue()
    queue._signal(at(memory) + 4, 1)
    queue.submit(device)
    with pytest.raises(DeviceFault, match="whole units of 8"):
        device.new_signal().wait(1)


def test_a_fault_in_a_bound_queue_says_where(device: HostQueueDevice) -> None:
    memory = device.allocator.alloc(64, VISIBLE)
    queue = HostQueue().write(at(memory), [1]).write(UNMAPPED, [1]).bind(device).submit(device)
    with pytest.raises(DeviceFault, match=r"bound queue at 0x[0-9a-f]+, word 4: WRITE: 4 bytes at 0x1000"):
        device.new_signal().wait(1)
    assert memory.host_view("I")[0] == 1
    assert queue.bound is not None
    nested = HostQueue()
    nested.put(Opcode.INDIRECT | 3 << 8, 0, 0, 1)
    device.reset()
    nested.bind(device).submit(device)
    with pytest.raises(DeviceFault, match="INDIRECT inside of INDIRECT"):
        device.new_signal().wait(1)


def test_a_kernel_that_raises_is_a_fault_with_its_cause(device: HostQueueDevice) -> None:
    def broken(value: int) -> None:
        raise ZeroDivisionError(f"at {value}")

    program = HostQueueProgram.from_callable(device, "broken", broken, 0, (dtypes.int32,))
    with pytest.raises(DeviceFault, match="EXEC: ZeroDivisionError: at 3") as caught:
        program(vals=(3,), wait=True)
    causes = []
    error: BaseException | None = caught.value
    while error is not None:
        causes.append(type(error))
        error = error.__cause__
    assert ZeroDivisionError in causes


def test_a_fault_on_one_queue_ends_waits_of_the_other(device: HostQueueDevice) -> None:
    done = device.new_signal()
    HostQueue("compute").wait(done, 1).submit(device)
    HostQueue("copy").copy(UNMAPPED, UNMAPPED, 4).submit(device)
    with pytest.raises(DeviceFault, match="copy queue"):
        done.wait(1)
    device.reset()  # also stops the compute queue, which is still held


def test_kernels_with_a_bad_buffer_or_grid(device: HostQueueDevice) -> None:
    program = HostQueueProgram.from_callable(device, "f", lambda a: None, 1)
    with pytest.raises(DeviceFault, match=r"EXEC buffer 0: .* at 0x1000"):
        program(HCQBuffer(UNMAPPED, 4), wait=True)
    device.reset()
    with pytest.raises(DeviceFault, match="no grid was launched on 2 x 1"):
        program(device.allocator.alloc(64, VISIBLE), global_size=(2, 1, 1), wait=True)


def test_a_core_id_counts_the_work_groups(device: HostQueueDevice) -> None:
    seen: list[tuple[int, int]] = []
    program = HostQueueProgram.from_callable(
        device, "f", lambda value, core: seen.append((value, core)), 0, (dtypes.int8,), core_id=True
    )
    program(global_size=(3, 1, 1), vals=(-7,), wait=True)
    assert seen == [(-7, 0), (-7, 1), (-7, 2)]


def test_scalars_of_every_dtype(device: HostQueueDevice) -> None:
    seen: list[float] = []
    kinds = (dtypes.int8, dtypes.float64, dtypes.uint16, dtypes.float32, dtypes.int64, dtypes.uint8, dtypes.uint64)
    program = HostQueueProgram.from_callable(device, "f", lambda *values: seen.extend(values), 1, kinds)
    buffer = device.allocator.alloc(64, VISIBLE)
    values: Any = (-5, 1.25, 65535, 0.5, -(2**63), 255, 2**64 - 1)  # programs promise to take integers; this one more
    program(buffer, vals=values, wait=True)
    assert seen == [at(buffer), *values]
    with pytest.raises(ValueError, match="cannot be float16"):
        HostQueueProgram.from_callable(device, "f", print, 0, (dtypes.float16,))


def test_c_functions_run_too(device: HostQueueDevice) -> None:
    libc = ctypes.CDLL(None)
    entry = ctypes.cast(libc.memset, ctypes.c_void_p).value
    assert entry is not None
    memset = HostQueueProgram(device, "memset", entry, ArgsLayout(1, (dtypes.int32, dtypes.uint64)))
    buffer = device.allocator.alloc(64, VISIBLE)
    memset(buffer, vals=(0xAB, 10), wait=True)
    assert bytes(buffer.host_view().bytes()[:12]) == b"\xab" * 10 + b"\0\0"


def test_closing_ends_queues_that_are_held(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device()
    never = device.new_signal()
    assert isinstance(never.address, int) and MEMORY.view(never.address, 8) is not None
    HostQueue("compute").wait(never, 1).submit(device)
    HostQueue("copy").wait(never, 1).submit(device)
    device.close()
    with pytest.raises(RuntimeError, match="HOSTQ is closed"):
        device.synchronize()
    assert MEMORY.view(never.address, 8) is None
    device.close()


def test_address_space() -> None:
    memory = HostMemory()
    a, b = memory.allocate(1), memory.allocate(10_000)
    assert memory.view(b.address + 9_999, 1) is not None and memory.view(a.address, 0) is not None
    assert memory.view(a.address - 1, 2) is None and memory.view(b.address, b.nbytes + 1) is None
    inner = bytearray(16)
    memory.map(b.address + 64, 64)
    assert memory.view(b.address + 100, 200) is not None and inner  # the wider range holds it
    memory.unmap(b.address + 64, 64)
    memory.unmap(b.address, b.nbytes)
    assert memory.view(b.address, 1) is None
    with pytest.raises(ValueError, match="are not mapped"):
        memory.unmap(b.address, b.nbytes)
    with pytest.raises(MemoryError):
        memory.allocate(1 << 62)


def test_words_are_an_array_of_32_bits() -> None:
    queue = HostQueue()
    queue.put(1, -1)
    assert array("I", [1, 0xFFFFFFFF]) == queue._words


def test_a_ring_holds_a_submission() -> None:
    for words in (-1, 0, 15):
        with pytest.raises(ValueError, match=f"a ring of {words} words; it has at least 16"):
            HostQueueDevice("HOSTQ", ring_words=words)
    device = HostQueueDevice("HOSTQ", ring_words=16)
    with device.timeline.submission(HostQueue()):
        pass
    device.synchronize()
    device.close()


ENDLESS = """
import time
from tg_hcq import ArgsLayout
from tg_hcq.hostq import executor
from tg_hcq.hostq import HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import DeviceError

executor._STOP_S = 0.2  # how long the thread is waited for, which does not end
device = HostQueueDevice("HOSTQ")
def endless(address):
    while True:
        time.sleep(0.001)
program = HostQueueProgram.from_callable(device, "endless", endless, 1)
memory = device.allocator.alloc(64)
with device.timeline.submission(HostQueue()) as queue:
    queue.exec(program, program.fill_args([memory]), (1, 1, 1), (1, 1, 1))
time.sleep(0.1)
try:
    device.reset()
except DeviceError as error:
    print(error, flush=True)
"""


def test_an_endless_kernel_holds_neither_a_reset_nor_the_exit() -> None:
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "HOSTQ: a kernel on the HOSTQ compute queue does not end; only the process can\n"
