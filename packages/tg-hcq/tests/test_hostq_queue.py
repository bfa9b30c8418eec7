"""Queues on the host-thread device: what commands do, sealing, binding, replay with patched values."""

from __future__ import annotations

import ctypes
import gc
import struct
import time
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq import DeviceTimeout, HCQBuffer
from tg_hcq.core.queue import SERIAL
from tg_hcq.hostq import HostQueue, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.executor import Opcode
from tg_runtime import BufferOptions
from tg_shape import Variable

VISIBLE = BufferOptions(device_visible=True)

ADDRESS = 2**64 - 1


def ints(buffer: HCQBuffer) -> list[int]:
    view = buffer.host_view("I")
    return view.read(0, len(view))


def at(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address


def scale(device: HostQueueDevice) -> HostQueueProgram:
    """dest[i] = factor * src[i] for i < n, on int32."""

    def function(dest: int, src: int, n: int, factor: int) -> None:
        source = (ctypes.c_int32 * n).from_address(src)
        target = (ctypes.c_int32 * n).from_address(dest)
        for i in range(n):
            target[i] = factor * source[i]

    return HostQueueProgram.from_callable(device, "scale", function, 2, (dtypes.int32, dtypes.int32))


def test_every_command(device: HostQueueDevice) -> None:
    a, b = device.allocator.alloc(64, VISIBLE), device.allocator.alloc(64, VISIBLE)
    done, clock = device.new_signal(), device.new_signal()
    a.host_view("I").write(0, struct.pack("16I", *range(16)))
    queue = HostQueue().memory_barrier().copy(at(b) + 4, at(a), 32).write(at(b) + 40, (7, 0xFFFFFFFF))
    queue.poll(at(b) + 40, 0x7, mask=0xF).timestamp(clock).signal(done, 2**40)
    queue.submit(device)
    done.wait(2**40)
    assert ints(b)[1:9] == list(range(8)) and ints(b)[10:12] == [7, 0xFFFFFFFF]
    assert clock.timestamp > 0
    executed = device.executor("compute").executed
    assert all(executed[op] == 1 for op in (Opcode.BARRIER, Opcode.COPY, Opcode.WRITE, Opcode.POLL, Opcode.SIGNAL))


def test_poll_holds_until_the_bits_match(device: HostQueueDevice) -> None:
    flag, done = device.allocator.alloc(64, VISIBLE), device.new_signal()
    HostQueue().poll(at(flag), 0x20, mask=0xF0).signal(done, 1).submit(device)
    flag.host_view("I")[0] = 0x1F
    with pytest.raises(DeviceTimeout):
        done.wait(1, timeout_ms=30)
    flag.host_view("I")[0] = 0x2F
    done.wait(1)


def test_timestamps_are_monotonic_and_in_microseconds(device: HostQueueDevice) -> None:
    clocks = [device.new_signal() for _ in range(50)]
    with device.submission() as queue:
        for clock in clocks:
            queue.timestamp(clock)
    device.synchronize()
    times = [clock.timestamp for clock in clocks]
    assert times == sorted(times) and times[0] > 0

    def nap() -> None:
        time.sleep(0.02)

    seconds = HostQueueProgram.from_callable(device, "nap", nap, 0)(wait=True)
    assert seconds is not None and 0.02 <= seconds < 1


def test_two_queues_play_ping_pong(device: HostQueueDevice) -> None:
    ping, pong = device.new_signal(), device.new_signal()
    log: list[str] = []
    left = HostQueueProgram.from_callable(device, "left", lambda: log.append("left"), 0)
    right = HostQueueProgram.from_callable(device, "right", lambda: log.append("right"), 0)
    rounds = 100
    one, two = HostQueue("compute"), HostQueue("copy")
    for i in range(1, rounds + 1):
        one.wait(pong, i - 1).exec(left, left.fill_args(())).signal(ping, i)
        two.wait(ping, i).exec(right, right.fill_args(())).signal(pong, i)
    two.submit(device)
    one.submit(device)
    pong.wait(rounds)
    assert log == ["left", "right"] * rounds


def test_queues_of_two_devices_wait_for_each_other(
    device: HostQueueDevice, make_device: Callable[..., HostQueueDevice]
) -> None:
    other = make_device("HOSTQ:1")
    a, b = device.allocator.alloc(64, VISIBLE), other.allocator.alloc(64, VISIBLE)
    first, second = device.new_signal(), other.new_signal()
    b_queue = HostQueue().wait(first, 1).copy(at(b), at(a), 64).signal(second, 1).submit(other)
    a_queue = HostQueue().write(at(a), range(16)).signal(first, 1).wait(second, 1).write(at(a), [99])
    a_queue.signal(first, 2).submit(device)
    first.wait(2)
    assert ints(b) == list(range(16)) and ints(a)[0] == 99 and b_queue


def test_a_queue_is_executed_in_order(device: HostQueueDevice) -> None:
    memory, done = device.allocator.alloc(4096, VISIBLE), device.new_signal()
    queue = HostQueue()
    for i in range(1000):
        queue.write(at(memory), [i]).copy(at(memory) + 4, at(memory), 4)
    queue.write(at(memory), [5000]).signal(done, 1).submit(device)
    done.wait(1)
    assert ints(memory)[:2] == [5000, 999]


def test_words_that_do_not_fit(device: HostQueueDevice) -> None:
    queue = HostQueue()
    for bad in (2**32, -(2**31) - 1, Variable("x", 0, 2**32), Variable("y", -(2**33), 0)):
        with pytest.raises(ValueError, match="32 bits"):
            queue.put(bad)
    for bad in (2**64, -(2**63) - 1, Variable("x", 0, 2**64)):
        with pytest.raises(ValueError, match="64 bits"):
            queue.put64(bad)
    assert len(queue) == 0
    queue.put(-1)
    with pytest.raises(ValueError, match="4 bits"):
        queue.put_field(0, 16, 4, 4)


def test_fields_of_a_word(device: HostQueueDevice) -> None:
    n, memory = Variable("n", 0, 15), device.allocator.alloc(64, VISIBLE)
    queue = HostQueue().write(at(memory), [0xABCD0000])
    queue.put_field(len(queue) - 1, n, 4, 4)
    queue.put_field(len(queue) - 1, 5, 8, 4)
    for value in (9, 15, 0):
        done = HostQueue()
        queue.submit(device, {n: value})
        signal = device.new_signal()
        done.signal(signal, 1).submit(device)
        signal.wait(1)
        assert ints(memory)[0] == 0xABCD0500 | value << 4


@pytest.mark.parametrize("bind", [False, True], ids=["loose", "bound"])
def test_replay_a_thousand_times_with_other_addresses_and_scalars(device: HostQueueDevice, bind: bool) -> None:
    program = scale(device)
    dest, src = Variable("dest", 0, ADDRESS), Variable("src", 0, ADDRESS)
    n, factor = Variable("n", 1, 8), Variable("factor", -1000, 1000)
    inputs, outputs = [[device.allocator.alloc(64, VISIBLE) for _ in range(3)] for _ in range(2)]
    for k, buffer in enumerate(inputs):
        buffer.host_view("I").write(0, struct.pack("8i", *(10 * k + i for i in range(8))))
    block = device.allocator.alloc(program.layout_of(2, 2).nbytes, VISIBLE)
    args = program.fill_args((HCQBuffer(dest, 64), HCQBuffer(src, 64)), (n, factor * 2), block)
    queue = HostQueue()
    with device.timeline.recording(queue):
        queue.exec(program, args)
    if bind:
        queue.bind(device)
        assert queue.bound is not None
    for i in range(1000):
        target, source = outputs[i % 3], inputs[i // 2 % 3]
        count = i % 8 + 1
        values = {dest: at(target), src: at(source), n: count, factor: i - 500}
        device.timeline.replay(queue, values)
        device.synchronize()
        start = 10 * (i // 2 % 3)
        got = struct.unpack("8i", bytes(target.host_view().bytes()[:32]))[:count]
        assert got == tuple((2 * i - 1000) * (start + j) for j in range(count))
    executed = device.executor("compute").executed
    assert executed[Opcode.EXEC] == 1000 and executed[Opcode.INDIRECT] == (1000 if bind else 0)


def test_replays_in_flight_do_not_see_one_anothers_values(device: HostQueueDevice) -> None:
    seen: list[int] = []
    gate, value = device.new_signal(), Variable("value", 0, 10_000)
    program = HostQueueProgram.from_callable(device, "note", seen.append, 0, (dtypes.int32,))
    args = program.fill_args((), (value,), device.allocator.alloc(64, VISIBLE))
    queue = HostQueue().wait(gate, 1).exec(program, args).bind(device)
    queue.submit(device, {value: 1})
    device.timeout_ms = 60
    with pytest.raises(DeviceTimeout):  # the first one is still held, and its words must not change
        queue.submit(device, {value: 2})
    device.timeout_ms = 2000
    gate.value = 1
    for i in range(2, 300):
        queue.submit(device, {value: i})
    end = device.new_signal()
    HostQueue().signal(end, 1).submit(device)
    end.wait(1)
    assert seen == list(range(1, 300))


def test_only_changed_words_are_patched(device: HostQueueDevice) -> None:
    memory = device.allocator.alloc(64, VISIBLE)
    a, b = Variable("a", 0, 2**31), Variable("b", 0, 2**31)
    queue = HostQueue().write(at(memory), (a, b, 3)).bind(device)
    queue.submit(device, {a: 1, b: 2})
    changed = queue.patches.resolve({a: 1, b: 7, SERIAL: 2})
    assert [queue.patches.exprs[i] for i in changed] == [b, SERIAL]


def test_a_refused_submit_sends_nothing(device: HostQueueDevice) -> None:
    memory, n = device.allocator.alloc(64, VISIBLE), Variable("n", 0, 5)
    queue = HostQueue().write(at(memory), [n])
    with pytest.raises(ValueError, match="no value for variable n"):
        queue.submit(device)
    with pytest.raises(ValueError, match="n is 6, outside"):
        queue.submit(device, {n: 6})
    assert device.executor("compute").write_pointer == 0
    queue.submit(device, {n: 4})
    device.synchronize()
    end = device.new_signal()
    HostQueue().signal(end, 1).submit(device)
    end.wait(1)
    assert ints(memory)[0] == 4


def test_a_sealed_queue_is_closed(device: HostQueueDevice, make_device: Callable[..., HostQueueDevice]) -> None:
    memory = device.allocator.alloc(64, VISIBLE)
    queue = HostQueue().write(at(memory), [1]).submit(device)
    with pytest.raises(ValueError, match="submitted or bound to HOSTQ"):
        queue.write(at(memory), [2])
    with pytest.raises(ValueError, match="nothing can be appended"):
        queue.bind(device)
    other = make_device("HOSTQ:1")
    with pytest.raises(ValueError, match="belongs to HOSTQ, not HOSTQ:1"):
        queue.submit(other)


def test_a_queue_may_be_submitted_again(device: HostQueueDevice) -> None:
    count: list[int] = []
    program = HostQueueProgram.from_callable(device, "count", lambda: count.append(1), 0)
    loose = HostQueue().exec(program, program.fill_args(()))
    bound = HostQueue().exec(program, program.fill_args((), (), device.allocator.alloc(64, VISIBLE))).bind(device)
    for _ in range(20):
        loose.submit(device)
        bound.submit(device)
    end = device.new_signal()
    HostQueue().signal(end, 1).submit(device)
    end.wait(1)
    assert len(count) == 40


def test_a_bound_queue_may_be_dropped_in_flight(device: HostQueueDevice) -> None:
    done, memory = device.new_signal(), device.allocator.alloc(64, VISIBLE)
    for i in range(50):
        queue = HostQueue()
        for _ in range(20):
            queue.write(at(memory), [i])
        queue.signal(done, i + 1).bind(device).submit(device)
        del queue
    done.wait(50)
    assert device.error_state is None and ints(memory)[0] == 49


def test_the_collector_may_run_on_the_devices_own_thread(device: HostQueueDevice) -> None:
    # Finalisers of queues, programs, signals and memory run inside of a kernel: one that waited would wait for itself.
    def collect() -> None:
        rubbish.clear()
        gc.collect()

    gc.collect()  # what earlier tests left behind is not what is collected here, and takes its time
    rubbish: list[object] = []
    program = HostQueueProgram.from_callable(device, "collect", collect, 0)
    for i in range(4):
        gate = device.new_signal()
        dying = HostQueueProgram.from_callable(device, "dying", lambda: None, 0)
        queue = HostQueue()
        with device.timeline.recording(queue):
            queue.wait(gate, 1).exec(dying, dying.fill_args((), (), device.allocator.alloc(64, VISIBLE)))
        device.timeline.replay(queue.bind(device))
        rubbish += [queue, dying, device.new_signal()]
        gate.value = 1
        del queue, dying, gate
        seconds = program(wait=True)
        assert seconds is not None and seconds < 1, i
    assert device.error_state is None


def test_programs_of_other_devices_are_refused(device: HostQueueDevice) -> None:
    class Stranger:
        name = "stranger"

    args = HostQueueProgram.from_callable(device, "x", lambda: None, 0).fill_args(())
    with pytest.raises(TypeError, match="no program of a host-thread device"):
        HostQueue().exec(Stranger(), args)
