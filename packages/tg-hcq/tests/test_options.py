"""What memory is asked to be, it is: each option is acted on by HOSTQ, and a device that ignores one is found out."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from tg_hcq import DeviceFault, HCQBuffer
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueDevice
from tg_hcq.hostq.memory import Access, HostMemory
from tg_runtime import BufferOptions

MIB = 1 << 20


def frames(buffer: HCQBuffer) -> list[tuple[int, int]]:
    assert isinstance(buffer.address, int)
    return MEMORY.frames(buffer.address)


def works(device: HostQueueDevice, buffer: HCQBuffer) -> bool:
    data = random.Random(3).randbytes(buffer.nbytes)
    device.allocator.copyin(buffer, memoryview(data))
    out = bytearray(buffer.nbytes)
    device.allocator.copyout(memoryview(out), buffer)
    return bytes(out) == data


def hidden(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(5000, BufferOptions(nolru=True))
    with pytest.raises(ValueError, match="cannot be reached by the host"):
        buffer.host_view()
    assert device.allocator.as_buffer(buffer, 8) is None and device.allocator.export(buffer, 8) is None
    assert works(device, buffer) and buffer.offset(8, 8).view is None


def seen(option: str) -> Callable[[HostQueueDevice], None]:
    def check(device: HostQueueDevice) -> None:
        buffer = device.allocator.alloc(64, BufferOptions(**{option: True, "nolru": True}))  # type: ignore[arg-type]
        buffer.host_view("I")[3] = 77
        out = bytearray(64)
        device.allocator.copyout(memoryview(out), buffer)
        view = device.allocator.as_buffer(buffer, 64)
        assert out[12] == 77 and view is not None and bytes(view) == out

    return check


def contiguous(device: HostQueueDevice) -> None:
    for pages in (1, 2, 3, 7, 300):
        options = BufferOptions(contiguous=True, nolru=True)
        buffer = device.allocator.alloc(pages * 4096, options)
        assert [nbytes for _, nbytes in frames(buffer)] == [pages * 4096] and works(device, buffer)
        device.allocator.free(buffer, pages * 4096, options)


def executable(device: HostQueueDevice) -> None:
    for wanted in (False, True):
        buffer = device.allocator.alloc(64, BufferOptions(executable=wanted, nolru=True))
        assert isinstance(buffer.address, int)
        assert (MEMORY.view(buffer.address, 64, Access.EXECUTE) is not None) == wanted


def read_only(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(64, BufferOptions(readonly=True, nolru=True))
    out = bytearray(64)
    device.allocator.copyout(memoryview(out), buffer)
    assert isinstance(buffer.address, int)
    done = device.new_signal()
    HostQueue().write(buffer.address + 8, [1]).signal(done, 1).submit(device)
    with pytest.raises(DeviceFault, match=r"WRITE: 4 bytes at 0x\w+ may not be written"):
        done.wait(1)
    device.reset()


CHECKS = {
    "host": seen("host"), "device_visible": seen("device_visible"), "contiguous": contiguous,
    "executable": executable, "readonly": read_only, "nothing": hidden,
}  # fmt: skip


@pytest.mark.parametrize("option", CHECKS)
def test_each_option_is_acted_on(device: HostQueueDevice, option: str) -> None:
    CHECKS[option](device)


@pytest.mark.parametrize("option", CHECKS)
def test_who_ignores_one_is_found_out(
    device: HostQueueDevice, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    plain = device.allocator._map
    changed = {"host": True} if option == "nothing" else {option: False}
    monkeypatch.setattr(
        device.allocator, "_map", lambda nbytes, options: plain(nbytes, options._replace(**changed))
    )
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        CHECKS[option](device)


def test_frames_are_each_in_one_place_and_given_back() -> None:
    memory, rng = HostMemory(), random.Random(11)
    empty = [bank.free_bytes for bank in memory._banks]
    held: dict[int, int] = {}
    for _ in range(300):
        if held and rng.random() < 0.4:
            address = rng.choice(list(held))
            memory.unmap(address, held.pop(address))
            with pytest.raises(KeyError):
                memory.frames(address)
        else:
            view = memory.allocate(rng.choice((1, 4096, 5000, 65536, MIB)), contiguous=rng.random() < 0.5)
            held[view.address] = view.nbytes
            ranges = memory.frames(view.address)
            assert sum(nbytes for _, nbytes in ranges) == view.nbytes
            assert all(start % 4096 == 0 and nbytes % 4096 == 0 and nbytes for start, nbytes in ranges)
        taken = sorted(part for address in held for part in memory.frames(address))
        assert all(a + n <= b for (a, n), (b, _) in pairwise(taken))
    for address, nbytes in held.items():
        memory.unmap(address, nbytes)
    assert [bank.free_bytes for bank in memory._banks] == empty


def test_memory_that_is_spread_is_in_several_ranges(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(8 * 4096)
    assert len(frames(buffer)) == 8
    joined = [a + n == b for (a, n), (b, _) in pairwise(frames(buffer))]
    assert not any(joined)
