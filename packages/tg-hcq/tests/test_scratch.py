"""Scratch that grows: recorded queues follow it, and its old memory lives as long as somebody uses it."""

from __future__ import annotations

import pytest

from tg_hcq import HCQBuffer
from tg_hcq.core.scratch import ADDRESS, NBYTES, Scratch
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import BufferOptions, OutOfMemory

VISIBLE = BufferOptions(device_visible=True)


def test_recorded_queues_follow_it(device: HostQueueDevice) -> None:
    seen: list[int] = []
    scratch = device.scratch
    program = HostQueueProgram.from_callable(device, "spill", seen.append, 1)
    sizes, queue = device.allocator.alloc(64, VISIBLE), HostQueue()
    assert isinstance(sizes.address, int)
    with device.timeline.recording(queue):
        scratch.use(queue)
        args = program.fill_args((HCQBuffer(ADDRESS, 0),), (), device.allocator.alloc(64, VISIBLE))
        queue.write(sizes.address, [NBYTES % 2**31]).exec(program, args)
    queue.bind(device)
    asked = (4096, 4097, 100, 1_000_003, 1_000_004)
    expected = []
    for nbytes in asked:
        scratch.ensure(nbytes)
        expected.append(scratch._address.value)
        device.timeline.replay(queue)
        device.synchronize()
        assert sizes.host_view("I")[0] == scratch.nbytes >= nbytes
    assert seen == expected and len(set(seen)) == 3


def test_the_old_memory_lives_while_it_is_used(device: HostQueueDevice) -> None:
    scratch = device.scratch
    scratch.ensure(1)
    old, gate = scratch._address.value, device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1).write(old, [1])
    scratch.ensure(10_000)
    device.allocator.reap()
    assert MEMORY.view(old, 4096) is not None and scratch._address.value != old
    gate.value = 1
    device.synchronize()
    assert MEMORY.view(old, 4096) is None


def test_what_cannot_be_had_changes_nothing(device: HostQueueDevice) -> None:
    scratch = Scratch(device.allocator, device.timeline)
    scratch.ensure(5000)
    before = scratch._address.value, scratch.nbytes
    with pytest.raises(OutOfMemory):
        scratch.ensure(1 << 60)
    scratch.ensure(0)
    assert (scratch._address.value, scratch.nbytes) == before == (before[0], 8192)


def test_it_grows_after_a_reset(device: HostQueueDevice) -> None:
    device.scratch.ensure(4096)
    device.reset()
    device.scratch.ensure(9000)
    device.synchronize()
    assert device.scratch.nbytes == 12288
