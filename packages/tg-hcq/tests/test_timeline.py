"""The timeline: order over queues, wrap-around, points, submissions that fail half-way."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq import DeviceTimeout, System, Timeline
from tg_hcq.hostq import HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import BufferOptions, DeviceError
from tg_shape import Variable

VISIBLE = BufferOptions(device_visible=True)


def test_submissions_to_two_queues_happen_in_order(device: HostQueueDevice) -> None:
    log: list[int] = []
    program = HostQueueProgram.from_callable(device, "note", log.append, 0, (dtypes.int32,))
    for i in range(200):
        with device.timeline.submission(HostQueue("copy" if i % 3 else "compute")) as queue:
            queue.exec(program, program.fill_args((), (i,)))
    device.synchronize()
    assert log == list(range(200))
    assert device.timeline.value == 201 and device.timeline.signal.value == 200


def test_counting_begins_again_at_the_limit(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(timeline_limit=7)
    log: list[int] = []
    program = HostQueueProgram.from_callable(device, "note", log.append, 0, (dtypes.int32,))
    first, signals, points = device.timeline.point(), set(), []
    for i in range(50):
        program(vals=(i,))
        signals.add(device.timeline.signal)
        assert 1 <= device.timeline.value <= 8
        points.append(device.timeline.point())
    device.synchronize()
    assert log == list(range(50)) and len(signals) == 2
    assert device.timeline.reached(first) and all(device.timeline.reached(point) for point in points)
    for point in points:
        device.timeline.wait(point, timeout_ms=0)


def test_recorded_queues_replay_across_the_limit(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(timeline_limit=5)
    log: list[int] = []
    n = Variable("n", 0, 1000)
    program = HostQueueProgram.from_callable(device, "note", log.append, 0, (dtypes.int32,))
    queue = HostQueue()
    with device.timeline.recording(queue):
        queue.exec(program, program.fill_args((), (n,), device.allocator.alloc(64, VISIBLE)))
    queue.bind(device)
    for i in range(0, 40, 2):
        device.timeline.replay(queue, {n: i})
        program(vals=(i + 1,))
    device.synchronize()
    assert log == list(range(40))


def test_an_exception_in_the_block_submits_nothing(device: HostQueueDevice) -> None:
    with pytest.raises(KeyError), device.submission() as queue:
        queue.write(0, [1])
        raise KeyError("user")
    assert device.timeline.value == 1 and device.executor("compute").write_pointer == 0
    with device.submission():
        pass
    device.synchronize()
    assert device.timeline.signal.value == 1


def test_points_tell_what_is_done(device: HostQueueDevice) -> None:
    gate = device.new_signal()
    with device.submission():
        pass
    before = device.timeline.point()
    with device.submission() as queue:
        queue.wait(gate, 1)
    after = device.timeline.point()
    device.timeline.wait(before)
    assert device.timeline.reached(before) and not device.timeline.reached(after)
    with pytest.raises(DeviceTimeout):
        device.timeline.wait(after, timeout_ms=30)
    gate.value = 1
    device.timeline.wait(after)
    assert device.timeline.reached(after)


def test_many_threads_submit_at_once(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(timeline_limit=64, ring_words=1024)
    counts = [0] * 4
    lock = threading.Lock()

    def bump(which: int) -> None:
        with lock:
            counts[which] += 1

    program = HostQueueProgram.from_callable(device, "bump", bump, 0, (dtypes.int32,))
    errors: list[BaseException] = []

    def work(which: int) -> None:
        try:
            for i in range(100):
                program(vals=(which,), wait=i % 25 == 0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    device.synchronize()
    assert not errors and counts == [100] * 4


@pytest.mark.parametrize("limit", [0, -1, 2**31])
def test_limits_that_cannot_be(device: HostQueueDevice, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        Timeline(device, limit)


class Elsewhere(System):
    """A system that says which process this is."""

    number = 17

    @property
    def process_id(self) -> int:
        return self.number


def test_whose_process_it_is_the_system_says() -> None:
    system = Elsewhere()
    device = HostQueueDevice("HOSTQ", system=system)
    device.synchronize()
    system.number = 18
    with pytest.raises(DeviceError, match="opened before this process was forked"):
        device.synchronize()
    system.number = 17
    device.synchronize()
    device.close()
