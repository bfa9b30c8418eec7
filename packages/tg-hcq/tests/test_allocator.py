"""Device memory: staging copies, sub-buffers, transfers, the cache, the argument ring."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
import time
from collections.abc import Callable

import pytest

from tg_hcq import HCQAllocator, HCQBuffer, KernargsRing
from tg_hcq.hostq import MEMORY, HostQueue, HostQueueAllocator, HostQueueDevice, HostQueueProgram
from tg_hcq.hostq.executor import Opcode
from tg_runtime import BufferOptions, DeviceError, OutOfMemory

VISIBLE = BufferOptions(device_visible=True)

STAGING = HostQueueAllocator.staging_nbytes


@pytest.mark.parametrize("nbytes", [0, 1, 63, STAGING - 1, STAGING, STAGING + 1, 7 * STAGING + 5])
def test_copies_through_staging(device: HostQueueDevice, nbytes: int) -> None:
    data = random.Random(nbytes).randbytes(nbytes)
    buffer = device.allocator.alloc(nbytes, VISIBLE)
    scratch = bytearray(data)
    device.allocator.copyin(buffer, memoryview(scratch))
    scratch[:] = bytes(nbytes)  # the source may change as soon as copyin returns
    out = bytearray(nbytes)
    device.allocator.copyout(memoryview(out), buffer)
    assert out == data
    assert device.executor("copy").executed[Opcode.COPY] == 2 * -(-nbytes // STAGING)


def test_copies_wait_for_kernels(device: HostQueueDevice) -> None:
    def slow(address: int) -> None:
        time.sleep(0.05)
        ctypes.memset(address, 7, 64)

    program = HostQueueProgram.from_callable(device, "slow", slow, 1)
    buffer = device.allocator.alloc(64, VISIBLE)
    program(buffer)
    out = bytearray(64)
    device.allocator.copyout(memoryview(out), buffer)
    assert out == b"\7" * 64
    program(buffer)
    device.allocator.copyin(buffer, memoryview(b"\1" * 64))
    view = device.allocator.as_buffer(buffer, 64)
    assert view is not None and view == b"\1" * 64


def test_the_host_copies_where_there_is_no_copy_queue(device: HostQueueDevice) -> None:
    device.allocator.attach(device.timeline, HostQueue, None)
    buffer = device.allocator.alloc(100, VISIBLE)
    device.allocator.copyin(buffer, memoryview(bytes(range(100))))
    out = bytearray(100)
    device.allocator.copyout(memoryview(out), buffer)
    assert out == bytes(range(100)) and device.executor("copy").write_pointer == 0


def test_sizes_that_do_not_match(device: HostQueueDevice) -> None:
    buffer = device.allocator.alloc(64, VISIBLE)
    with pytest.raises(ValueError, match="copyin: 65 bytes"):
        device.allocator.copyin(buffer, memoryview(bytes(65)))
    with pytest.raises(ValueError, match="copyout: 65 bytes"):
        device.allocator.copyout(memoryview(bytearray(65)), buffer)
    for start, nbytes in ((-1, 4), (60, 5), (65, 0)):
        with pytest.raises(ValueError, match="outside of a buffer of 64"):
            buffer.offset(start, nbytes)


def test_sub_buffers_share_memory(device: HostQueueDevice) -> None:
    whole = device.allocator.alloc(256, VISIBLE)
    part = device.allocator.offset(device.allocator.offset(whole, 100, 64), 10, 32)
    device.allocator.copyin(part, memoryview(b"0123456789"))
    view = device.allocator.as_buffer(whole, 256)
    assert view is not None and bytes(view[96:106]) == b"0123456789"
    assert part.base is whole and part.address == whole.offset(96).address


def test_peers_copy_without_the_host(device: HostQueueDevice, make_device: Callable[..., HostQueueDevice]) -> None:
    other = make_device("HOSTQ:1")
    ours, theirs = device.allocator.alloc(128, VISIBLE), other.allocator.alloc(128, VISIBLE)
    for round_ in range(20):
        data = bytes([round_] * 128)
        device.allocator.copyin(ours, memoryview(data))
        assert other.allocator.transfer(theirs, ours, 128, device.allocator)
        device.allocator.copyin(ours, memoryview(bytes(128)))  # the source waits for the transfer
        out = bytearray(128)
        other.allocator.copyout(memoryview(out), theirs)  # and so does who reads the destination
        assert out == data
    assert device.allocator.transfer(ours, device.allocator.alloc(128, VISIBLE), 128, device.allocator)
    device.synchronize()
    assert bytes(ours.host_view().bytes()) == bytes(128)


def test_strangers_are_left_to_the_host(device: HostQueueDevice, make_device: Callable[..., HostQueueDevice]) -> None:
    class Stranger(HostQueueAllocator):
        peer_group = "elsewhere"

    buffer = device.allocator.alloc(64, VISIBLE)
    assert not device.allocator.transfer(buffer, buffer, 64, Stranger("X"))
    with pytest.raises(DeviceError, match="X: the allocator is not attached"):
        Stranger("X").copyin(buffer, memoryview(bytes(1)))


def test_freed_memory_serves_again_unless_somebody_looks_at_it(device: HostQueueDevice) -> None:
    allocator = device.allocator
    first = allocator.alloc(5000, VISIBLE)
    address = first.address
    allocator.free(first, 5000, VISIBLE)
    again = allocator.alloc(5000, VISIBLE)
    assert again.address == address
    view = allocator.export(again, 5000)
    assert view is not None
    view[:3] = b"abc"
    allocator.free(again, 5000, VISIBLE)
    del first, again
    gc.collect()
    other = allocator.alloc(5000, VISIBLE)
    assert other.address != address
    assert bytes(view[:3]) == b"abc"


def test_memory_is_unmapped_when_it_is_given_back(device: HostQueueDevice) -> None:
    options = BufferOptions(nolru=True)
    buffer = device.allocator.alloc(100, options)
    assert isinstance(buffer.address, int) and MEMORY.view(buffer.address, 100) is not None
    device.allocator.free(buffer, 100, options)
    device.synchronize()
    assert MEMORY.view(buffer.address, 100) is None


def test_memory_given_back_stays_mapped_while_the_device_uses_it(device: HostQueueDevice) -> None:
    options = BufferOptions(nolru=True)
    buffer, gate = device.allocator.alloc(4096, options), device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1).write(buffer.address, range(1000))
    device.allocator.free(buffer, 4096, options)  # returns at once
    device.allocator.free(device.allocator.alloc(64, options), 64, options)
    assert isinstance(buffer.address, int) and MEMORY.view(buffer.address, 4096) is not None
    gate.value = 1
    device.synchronize()  # no fault
    assert MEMORY.view(buffer.address, 4096) is None


class Scarce(HostQueueAllocator):
    """Has memory for one large block at a time."""

    room = 1 << 20

    def _map(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        if nbytes > self.room:
            raise MemoryError("scarce")
        self.room -= nbytes
        return super()._map(nbytes, options)

    def _unmap(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        self.room += opaque.nbytes
        super()._unmap(opaque, options)


def test_memory_pressure_waits_for_what_was_given_back(device: HostQueueDevice) -> None:
    allocator = Scarce("HOSTQ")
    allocator.attach(device.timeline, HostQueue, None)
    gate = device.new_signal()
    buffer = allocator.alloc(900_000, VISIBLE)
    with device.submission() as queue:
        queue.wait(gate, 1).write(buffer.address, range(1000))
    allocator.free(buffer, 900_000, VISIBLE)
    threading.Timer(0.05, lambda: setattr(gate, "value", 1)).start()
    assert allocator.alloc(800_000, VISIBLE)  # the cache is emptied, and then the device waited for
    with pytest.raises(OutOfMemory, match=r"781\.25 KiB held"):
        allocator.alloc(800_000, VISIBLE)


def test_memory_of_the_caller(device: HostQueueDevice) -> None:
    memory = (ctypes.c_uint8 * 100)(*range(100))
    options = BufferOptions(external_ptr=ctypes.addressof(memory))
    buffer = device.allocator.alloc(100, options)
    out = bytearray(100)
    device.allocator.copyout(memoryview(out), buffer)
    assert out == bytes(range(100))
    device.allocator.free(buffer, 100, options)
    device.synchronize()
    assert MEMORY.view(ctypes.addressof(memory), 100) is None


def test_out_of_memory() -> None:
    device = HostQueueDevice("HOSTQ:9", memory_limit=16 << 20)
    with pytest.raises(OutOfMemory, match=r"HOSTQ:9: out of memory: 32.00 MiB asked"):
        device.allocator.alloc(32 << 20, VISIBLE)
    kept = device.allocator.alloc(8 << 20, VISIBLE)
    device.allocator.free(kept, 8 << 20)
    assert device.allocator.alloc(9 << 20, VISIBLE)  # the cache is given back first
    device.close()


def test_argument_blocks_are_not_overwritten_in_flight(device: HostQueueDevice) -> None:
    allocator: HCQAllocator = device.allocator
    ring = KernargsRing(allocator.alloc(4096, BufferOptions(host=True)), device.timeline)
    gate = device.new_signal()
    addresses = []
    for i in range(64):  # 64 blocks of 64 bytes fill it once
        with device.submission() as queue:
            block = ring.alloc(40)
            addresses.append(block.address)
            if i == 0:
                queue.wait(gate, 1)
    assert len(set(addresses)) == 64
    device.timeout_ms = 50
    with pytest.raises(DeviceError, match="is waited for"):
        ring.alloc(8)
    device.timeout_ms = 2000
    gate.value = 1
    assert ring.alloc(8).address == addresses[0]
    with pytest.raises(DeviceError, match="5000 bytes; at most 1024"):
        ring.alloc(5000)
