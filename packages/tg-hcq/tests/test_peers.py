"""Peers: memory of one device mapped for others, once for each, and undone when it is freed."""

from __future__ import annotations

import pytest

from tg_hcq import HCQBuffer
from tg_hcq.hostq import HostQueue, HostQueueAllocator, HostQueueDevice
from tg_runtime import BufferOptions, DeviceError

VISIBLE = BufferOptions(device_visible=True)


class Noting(HostQueueAllocator):
    """Notes what is mapped for its device."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.notes: list[tuple[str, object, str]] = []

    def _map(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        found = super()._map(nbytes, options)
        found.mappings.clear()
        return found

    def _map_peer(self, opaque: HCQBuffer, owner: HostQueueAllocator) -> None:  # type: ignore[override]
        self.notes.append(("map", opaque.address, owner.device))

    def _unmap_peer(self, opaque: HCQBuffer, owner: HostQueueAllocator) -> None:  # type: ignore[override]
        self.notes.append(("unmap", opaque.address, owner.device))


@pytest.fixture
def pair() -> tuple[Noting, Noting]:
    """Allocators of two devices of a group, which are not attached."""
    return Noting("HOSTQ"), Noting("HOSTQ:1")


def test_once_for_each_device_and_undone(pair: tuple[Noting, Noting]) -> None:
    one, two = pair
    options = BufferOptions(nolru=True)
    buffer = one.alloc(4096, options)
    address = buffer.address
    one.map_for(buffer, one)
    assert not one.notes
    for _ in range(3):
        one.map_for(buffer, two)
        one.map_for(buffer.offset(64, 64), two)
    assert two.notes == [("map", address, "HOSTQ")] and buffer.mappings == {"HOSTQ:1"}
    one.free(buffer, 4096, options)
    assert two.notes == [("map", address, "HOSTQ"), ("unmap", address, "HOSTQ")] and not one.notes


def test_cached_memory_stays_mapped(pair: tuple[Noting, Noting]) -> None:
    one, two = pair
    buffer = one.alloc(4096)
    one.map_for(buffer, two)
    one.free(buffer, 4096)
    again = one.alloc(4096)
    one.map_for(again, two)
    assert again is buffer and len(two.notes) == 1
    one.free(again, 4096)
    one.free_cache()
    assert [note[0] for note in two.notes] == ["map", "unmap"]


def test_devices_of_other_groups(pair: tuple[Noting, Noting]) -> None:
    one, two = pair
    two.peer_group = "elsewhere"  # found out when a device is opened
    buffer = one.alloc(64)
    with pytest.raises(DeviceError, match="HOSTQ:1 cannot address memory of HOSTQ: they are no peers"):
        one.map_for(buffer, two)
    assert one.peer_group == "HOSTQ" and not two.transfer(two.alloc(64), buffer, 64, one)


def test_several_copy_queues() -> None:
    device = HostQueueDevice("HOSTQ:2", copy_queues=3)
    assert list(device.queues) == ["compute", "copy", "copy1", "copy2"]
    memory, signals = device.allocator.alloc(64, VISIBLE), [device.new_signal() for _ in range(3)]
    queues = [device.queues[name]() for name in ("copy", "copy1", "copy2")]
    assert isinstance(memory.address, int)
    # each waits for the one after it: they can only be executed side by side
    for i, queue in enumerate(queues):
        assert isinstance(queue, HostQueue)
        if i < 2:
            queue.wait(signals[i + 1], 1)
        queue.write(memory.address + 4 * i, [i + 1]).signal(signals[i], 1).submit(device)
    signals[0].wait(1)
    assert memory.host_view("I").read(0, 3) == [1, 2, 3]
    assert [ring.name for ring in device.rings()][2:] == ["HOSTQ:2 copy1 queue", "HOSTQ:2 copy2 queue"]
    device.reset()
    device.close()
    with pytest.raises(ValueError, match="0 copy queues"):
        HostQueueDevice("HOSTQ:2", copy_queues=0)
