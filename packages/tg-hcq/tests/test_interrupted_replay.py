"""A replay that cannot be sent: rings that stay full, Ctrl-C, lost devices. The timeline counts only what was sent."""

from __future__ import annotations

import _thread
import threading
import time
from array import array
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq import DeviceFault, DeviceTimeout, HCQSignal
from tg_hcq.core import native as code
from tg_hcq.core import replay as replays
from tg_hcq.hostq import HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import BufferOptions
from tg_shape import Variable

VISIBLE = BufferOptions(device_visible=True)

N = Variable("n", 0, 10_000)
BOTH = pytest.mark.parametrize("native", [True, False], ids=["native", "python"])


class Recorded:
    """A device with a small ring, a recorded queue that notes a number, and a gate that holds all."""

    def __init__(self, device: HostQueueDevice, bound: bool) -> None:
        self.device, self.log = device, list[int]()
        program = HostQueueProgram.from_callable(device, "note", self.log.append, 0, (dtypes.int32,))
        self.queue = HostQueue()
        with device.timeline.recording(self.queue):
            self.queue.exec(program, program.fill_args((), (N,), device.allocator.alloc(64, VISIBLE)))
        if bound:
            self.queue.bind(device)

    def hold(self) -> HCQSignal:
        gate, there = self.device.new_signal(), self.device.new_signal()
        with self.device.submission() as queue:
            queue.signal(there, 1).wait(gate, 1)
        there.wait(1)
        time.sleep(0.01)  # the read pointer follows
        return gate

    def fill_the_ring(self) -> int:
        """Submits writes until there is no room for a replay; returns how many."""
        ring, count = self.device.ring("compute"), 0
        while ring.room() >= 16:
            with self.device.submission():
                count += 1
        return count

    def works(self) -> None:
        before = self.device.timeline.value
        self.log.clear()
        for i in range(5):
            self.device.timeline.replay(self.queue, {N: i})
        self.device.synchronize()
        assert self.log == [0, 1, 2, 3, 4] and self.device.timeline.value == before + 5


def choose(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(replays, "native_replay", lambda: None)
    elif code.native_replay() is None:
        pytest.skip("no LLVM")


@BOTH
@pytest.mark.parametrize("bound", [False, True], ids=["loose", "bound"])
def test_a_ring_that_stays_full(
    make_device: Callable[..., HostQueueDevice], native: bool, bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(native, monkeypatch)
    one = Recorded(make_device(timeout_ms=1000, ring_words=128), bound)
    gate = one.hold()
    one.fill_the_ring()
    while one.device.ring("compute").room() >= 4:  # a jump is short
        one.device.ring("compute").submit(array("I", [0]), 100)
    before = one.device.timeline.value
    one.device.timeout_ms = 30
    with pytest.raises(DeviceTimeout, match="ring of 128 words has been full for 30 ms"):
        one.device.timeline.replay(one.queue, {N: 7})
    assert one.device.timeline.value == before
    one.device.timeout_ms = 1000
    gate.value = 1
    one.device.synchronize()
    assert one.log == []
    one.works()


@BOTH
@pytest.mark.parametrize("wait_for", ["ring", "fence"])
def test_ctrl_c_while_a_replay_waits(
    make_device: Callable[..., HostQueueDevice], native: bool, wait_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(native, monkeypatch)
    one = Recorded(make_device(timeout_ms=20_000, ring_words=128), bound=wait_for == "fence")
    gate = one.hold()
    if wait_for == "ring":
        one.fill_the_ring()
    else:
        one.device.timeline.replay(one.queue, {N: 99})
    before = one.device.timeline.value
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        one.device.timeline.replay(one.queue, {N: 7})
    timer.join()
    assert one.device.timeline.value == before
    gate.value = 1
    one.device.synchronize()
    assert one.log == ([99] if wait_for == "fence" else [])
    one.works()


@BOTH
def test_ctrl_c_at_any_moment(
    make_device: Callable[..., HostQueueDevice], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(native, monkeypatch)
    one = Recorded(make_device(ring_words=128), bound=True)
    sent = 0
    for i in range(60):
        timer = threading.Timer(0.0001 * i, _thread.interrupt_main)
        try:
            timer.start()
            while True:
                one.device.timeline.replay(one.queue, {N: sent})
                sent += 1
        except KeyboardInterrupt:
            timer.join()
        # the replay was sent, or was not: the timeline knows
        assert one.device.timeline.value - 1 in (sent, sent + 1)
        sent = one.device.timeline.value - 1
    one.device.synchronize()
    assert len(one.log) == sent
    one.works()


@BOTH
def test_a_device_that_is_lost_while_a_replay_waits(
    make_device: Callable[..., HostQueueDevice], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(native, monkeypatch)
    one = Recorded(make_device(timeout_ms=20_000, ring_words=128), bound=True)
    gate = one.hold()
    with one.device.submission() as queue:
        queue.write(0x10, [1])  # not mapped
    one.device.timeline.replay(one.queue, {N: 99})
    before = one.device.timeline.value

    def open_the_gate() -> None:
        gate.value = 1

    timer = threading.Timer(0.05, open_the_gate)
    timer.start()
    with pytest.raises(DeviceFault, match="WRITE"):
        one.device.timeline.replay(one.queue, {N: 7})
    timer.join()
    assert one.device.timeline.value == before
    one.device.reset()
    assert one.device.timeline.value == 1 and one.log == []
    one.works()
