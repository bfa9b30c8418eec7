"""Recordings: random steps on two devices against the same steps one by one; failures leave nothing half done."""

from __future__ import annotations

import ctypes
import gc
import random
import struct
import time
from array import array
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq import ContentLost, DeviceTimeout, HCQBuffer
from tg_hcq.core import native as code
from tg_hcq.core import recording as recordings
from tg_hcq.core import replay as replays
from tg_hcq.core.dependences import Use
from tg_hcq.core.recording import Copy, Kernel, Recording
from tg_hcq.hostq import MEMORY, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.executor import Opcode
from tg_runtime import BufferOptions
from tg_shape import Variable

VISIBLE = BufferOptions(device_visible=True)

MakeDevice = Callable[..., HostQueueDevice]
SEED = Variable("seed", 0, 1000)
BLOCKS, INTS = 4, 16
MIB = 1 << 20


def at(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address


def use(buffer: HCQBuffer, writes: bool) -> Use:
    return Use("memory", 0, at(buffer), at(buffer) + buffer.nbytes, writes)


class World:
    """Blocks of memory on two devices, a kernel for each, and random steps on parts of the blocks."""

    def __init__(self, devices: list[HostQueueDevice], rng: random.Random, slow: bool) -> None:
        self.devices, self.rng = devices, rng
        self.blocks = [[device.allocator.alloc(4 * INTS, VISIBLE) for _ in range(BLOCKS)] for device in devices]
        self.steps: list[Kernel | Copy] = []
        self.model: list[tuple[int, ...]] = []

        def mix(dest: int, src: int, count: int, seed: int) -> None:
            if slow and seed % 3 == 0:
                time.sleep(0.0005)
            target, source = ((ctypes.c_uint32 * count).from_address(where) for where in (dest, src))
            for i in range(count):
                target[i] = (target[i] * 31 + source[i] + seed) & 0xFFFFFFFF

        scalars = (dtypes.int32, dtypes.int32)
        self.programs = [HostQueueProgram.from_callable(device, "mix", mix, 2, scalars) for device in devices]

    def add(self, number: int) -> None:
        rng = self.rng
        count = rng.choice([4, 8, INTS])
        (d, b, o), (e, c, p) = (
            (rng.randrange(len(self.devices)), rng.randrange(BLOCKS), rng.randrange(0, INTS - count + 1, 4))
            for _ in range(2)
        )
        copies = rng.random() < 0.4
        if not copies:
            e = d
        dest = self.blocks[d][b].offset(4 * o, 4 * count)
        src = self.blocks[e][c].offset(4 * p, 4 * count)
        if copies and d == e and b == c:
            return
        uses = [use(dest, True), use(src, False)]
        if copies:
            self.steps.append(Copy(self.devices[e], self.devices[d], dest, src, uses))
        else:
            vals = (count, SEED + number)
            self.steps.append(Kernel(self.programs[d], [dest, src], vals, (1, 1, 1), (1, 1, 1), uses))
        self.model.append((copies, d, b, o, e, c, p, count, number))

    def expect(self, memory: list[list[list[int]]], seed: int) -> None:
        for copies, d, b, o, e, c, p, count, number in self.model:
            for i in range(count):
                value = memory[e][c][p + i]
                old = memory[d][b][o + i]
                memory[d][b][o + i] = value if copies else (old * 31 + value + seed + number) & 0xFFFFFFFF

    def read(self) -> list[list[list[int]]]:
        return [[block.host_view("I").read(0, INTS) for block in blocks] for blocks in self.blocks]

    def synchronize(self) -> None:
        for device in self.devices:
            device.synchronize()


@pytest.mark.parametrize("seed", range(12))
def test_random_steps_do_what_they_do_one_by_one(
    make_device: MakeDevice, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3 == 0:
        monkeypatch.setattr(replays, "native_replay", lambda: None)
    if seed % 2:
        monkeypatch.setattr(recordings, "_MOST_SIGNALS", 60)  # turns begin again
    rng = random.Random(seed)
    limit = 13 if seed % 4 == 1 else 2**31 - 1
    devices = [make_device(f"HOSTQ:{i}", timeline_limit=limit) for i in range(1 + (seed > 1))]
    world = World(devices, rng, slow=seed % 2 == 0)
    for number in range(rng.randint(1, 20)):
        world.add(number)
    if not any(isinstance(step, Kernel) for step in world.steps):
        return
    for blocks in world.blocks:
        for block in blocks:
            block.host_view("I").write(0, struct.pack(f"{INTS}I", *(rng.getrandbits(32) for _ in range(INTS))))
    expected = world.read()
    recording = Recording(world.steps)
    for turn in range(30):
        recording.submit({SEED: turn})
        world.expect(expected, turn)
        if rng.random() < 0.2:  # other work comes between
            device = rng.choice(range(len(devices)))
            with devices[device].submission() as queue:
                queue.write(at(world.blocks[device][0]), [turn])
            expected[device][0][0] = turn
        if rng.random() < 0.2:
            world.synchronize()
            assert world.read() == expected
    world.synchronize()
    assert world.read() == expected


def test_no_barrier_where_nothing_depends(make_device: MakeDevice) -> None:
    device = make_device()
    program = HostQueueProgram.from_callable(device, "nothing", lambda *_: None, 1)
    buffers = [device.allocator.alloc(64, VISIBLE) for _ in range(5)]
    steps = [Kernel(program, [b], (), (1, 1, 1), (1, 1, 1), [use(b, True)]) for b in buffers + buffers]
    recording = Recording(steps)
    recording.submit({})
    device.synchronize()
    executed = device.executor("compute").executed
    assert executed[Opcode.EXEC] == 10 and executed[Opcode.BARRIER] == 2  # before everything, and before the sixth
    assert executed[Opcode.SIGNAL] == 2 and device.executor("copy").executed[Opcode.SIGNAL] == 0


def test_copies_overlap_kernels(make_device: MakeDevice) -> None:
    device = make_device()
    a, b, c = (device.allocator.alloc(64, VISIBLE) for _ in range(3))
    b.host_view("I")[0] = 7

    def until_copied(address: int) -> None:
        end = time.monotonic() + 1
        while c.host_view("I")[0] != 7 and time.monotonic() < end:
            time.sleep(0.0001)
        ctypes.c_uint32.from_address(address).value = c.host_view("I")[0]

    program = HostQueueProgram.from_callable(device, "until_copied", until_copied, 1)
    copy = Copy(device, device, c, b, [use(c, True), use(b, False)])
    kernel = Kernel(program, [a], (), (1, 1, 1), (1, 1, 1), [use(a, True)])
    Recording([kernel, copy]).submit({})
    device.synchronize()
    assert a.host_view("I")[0] == 7


def two_devices(make_device: MakeDevice) -> tuple[World, Recording]:
    devices = [make_device(f"HOSTQ:{i}", ring_words=64, timeout_ms=1000) for i in range(2)]
    return recorded(devices)


def recorded(devices: list[HostQueueDevice]) -> tuple[World, Recording]:
    world = World(devices, random.Random(5), slow=False)
    while len(world.steps) < 12:
        world.add(len(world.steps))
    return world, Recording(world.steps)


@pytest.mark.parametrize("native", [True, False], ids=["native", "python"])
def test_one_full_ring_holds_all_back(make_device: MakeDevice, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(replays, "native_replay", lambda: None)
    elif code.native_replay() is None:
        pytest.skip("no LLVM")
    world, recording = two_devices(make_device)
    expected = world.read()
    recording.submit({SEED: 1})
    world.expect(expected, 1)
    world.synchronize()
    device = world.devices[1]
    gate = device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1)
    time.sleep(0.02)
    ring = device.ring("compute")
    while ring.room() >= 4:
        ring.submit(array("I", [0]), 100)
    before = [one.timeline.value for one in world.devices]
    device.timeout_ms = 30
    with pytest.raises(DeviceTimeout, match="full"):
        recording.submit({SEED: 2})
    device.timeout_ms = 1000
    assert [one.timeline.value for one in world.devices] == before
    gate.value = 1
    world.synchronize()
    assert world.read() == expected
    recording.submit({SEED: 3})
    world.expect(expected, 3)
    world.synchronize()
    assert world.read() == expected


def test_a_refused_value_sends_nothing(make_device: MakeDevice) -> None:
    world, recording = two_devices(make_device)
    expected = world.read()
    for values in ({}, {SEED: 1001}):
        with pytest.raises(ValueError, match="seed"):
            recording.submit(values)
    world.synchronize()
    assert [one.timeline.value for one in world.devices] == [1, 1] and world.read() == expected


def test_after_a_reset_of_both_devices_it_works_again(make_device: MakeDevice) -> None:
    world, recording = two_devices(make_device)
    expected = world.read()
    recording.submit({SEED: 1})
    world.expect(expected, 1)
    world.synchronize()
    interrupted, dropped = recorded(world.devices)
    gate = world.devices[0].new_signal()
    with world.devices[0].submission() as queue:
        queue.wait(gate, 1)
    dropped.submit({SEED: 2})
    for device in world.devices:
        device.reset()
    with pytest.raises(ContentLost):
        dropped.submit({SEED: 3})
    with pytest.raises(ContentLost):
        interrupted.read()
    for turn in (4, 5):
        recording.submit({SEED: turn})
        world.expect(expected, turn)
    world.synchronize()
    assert world.read() == expected


def test_memory_that_a_graph_still_writes_to_serves_nobody_else(make_device: MakeDevice) -> None:
    """One of two devices is reset while the other is about to copy into its memory."""
    there, here = (make_device(f"HOSTQ:{i}", timeout_ms=1000) for i in range(2))
    dest, src = there.allocator.alloc(MIB), here.allocator.alloc(MIB)
    address, gate = dest.address, here.new_signal()
    assert isinstance(address, int)
    recording = Recording([Copy(here, there, dest, src, [use(dest, True), use(src, False)])])
    with here.submission() as queue:
        queue.wait(gate, 1)
    recording.submit({})
    there.reset()
    there.allocator.free(dest, MIB)
    del recording, dest
    gc.collect()
    there.synchronize()
    assert MEMORY.view(address, MIB) is not None
    gate.value = 1
    here.synchronize()  # its copy meets no fault
    there.synchronize()
    assert MEMORY.view(address, MIB) is None


def test_the_times_of_each_step(make_device: MakeDevice) -> None:
    world, _ = two_devices(make_device)
    recording = Recording(world.steps, stamped=True)
    first = recording.submit_stamped({SEED: 1})
    second = recording.submit_stamped({SEED: 2})
    early, late = first(), second()
    assert len(early) == len(late) == len(world.steps)
    assert all(0 < start <= stop for start, stop in early + late)
    assert max(stop for _, stop in early) <= min(start for start, _ in late)
    tracks = {recording.tracks[i] for i, step in enumerate(world.steps) if isinstance(step, Copy)}
    assert {name for _, name in tracks} == {"copy queue"}
