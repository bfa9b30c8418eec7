"""What the kernel's interface and the packets' words are refused for."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable

import pytest

from tg_hcq.headers.amd import kfd_ioctl
from tg_hcq.simulate.amd.kfd import KfdSystem, abi
from tg_hcq.simulate.amd.processor import PacketFault
from tg_hcq.simulate.amd.processor.pm4 import packets
from tg_hcq.simulate.amd.testing.client import (
    DOORBELL,
    GTT,
    MMIO_REMAP,
    PUBLIC,
    SDMA,
    USERPTR,
    VRAM,
    WRITABLE,
    Client,
    call,
    packet3,
    release_mem,
    until,
    write_data,
)


def test_both_readings_of_the_header_agree() -> None:
    for request in abi.KFD.values():
        name = {"DBG_REGISTER": "dbg_register", "AVAILABLE_MEMORY": "get_available_memory"}.get(request.name)
        found = getattr(kfd_ioctl, f"kfd_ioctl_{name or request.name.lower()}_args", None)
        if found is not None:
            assert found.nbytes == request.layout.nbytes, request.name
            sample = {field: index + 1 for index, field in enumerate(request.layout.names)}
            assert found.unpack(request.layout.pack(sample)) == sample, request.name


@pytest.fixture
def machine() -> KfdSystem:
    return KfdSystem("gfx1100")


def fails(number: int, act: Callable[[], object]) -> None:
    with pytest.raises(OSError) as caught:
        act()
    assert caught.value.errno == number, caught.value


def test_addresses_are_taken_once_and_first(machine: KfdSystem) -> None:
    kfd, drm = machine.open("/dev/kfd", os.O_RDWR), machine.open("/dev/dri/renderD128", os.O_RDWR)
    gpu = int(machine.read_text("/sys/class/kfd/kfd/topology/nodes/1/gpu_id"))
    alloc = struct.pack("<QQQQII", 0x7F0000000000, 4096, 0, 0, gpu, GTT)
    fails(errno.ENODEV, lambda: call(kfd, 3, 0x16, alloc))
    fails(errno.EINVAL, lambda: call(kfd, 1, 0x15, struct.pack("<II", kfd.fd, gpu)))
    fails(errno.EINVAL, lambda: call(kfd, 1, 0x15, struct.pack("<II", drm.fd, gpu + 1)))
    call(kfd, 1, 0x15, struct.pack("<II", drm.fd, gpu))
    call(kfd, 1, 0x15, struct.pack("<II", drm.fd, gpu))
    other = machine.open("/dev/dri/renderD128", os.O_RDWR)
    fails(errno.EBUSY, lambda: call(kfd, 1, 0x15, struct.pack("<II", other.fd, gpu)))
    machine.close()


def test_memory_is_refused(machine: KfdSystem) -> None:
    client = Client(machine)
    fails(errno.EINVAL, lambda: client.alloc(GTT, 0))
    fails(errno.EINVAL, lambda: client.alloc(GTT | VRAM))
    fails(errno.EINVAL, lambda: client.alloc(GTT | 1 << 10))
    fails(errno.EINVAL, lambda: client.alloc(GTT, address=0x7F0000000123))
    fails(errno.EINVAL, lambda: client.alloc(DOORBELL, 4096))
    fails(errno.EINVAL, lambda: client.alloc(MMIO_REMAP, 8192))
    fails(errno.EINVAL, lambda: client.alloc(USERPTR, host=4097))
    fails(errno.EFAULT, lambda: client.alloc(USERPTR, host=4096))
    fails(errno.ENOMEM, lambda: client.alloc(VRAM, 1 << 36))
    hidden, shown = client.alloc(VRAM), client.alloc(VRAM | PUBLIC).map()
    fails(errno.EPERM, hidden.view)
    fails(errno.EBUSY, shown.free)
    taken = client.alloc(GTT, address=shown.address)
    fails(errno.EINVAL, taken.map)
    shown.unmap()
    shown.free()
    fails(errno.EINVAL, shown.free)
    fails(errno.EINVAL, shown.view)
    machine.close()
    small = KfdSystem("gfx1100", large_bar=False)
    client = Client(small)
    fails(errno.EINVAL, lambda: client.alloc(VRAM | PUBLIC))
    small.close()


def test_queues_are_refused(machine: KfdSystem) -> None:
    client = Client(machine)
    said, two = client.properties(), client.host(8192)
    for changed in (
        {"size": 3000}, {"size": 8192}, {"percentage": 101}, {"priority": 16}, {"gpu": 7},
        {"write": two.address}, {"read": two.address + 4096}, {"ring": two.address}, {"eop_size": 2048},
        {"stack": said["ctl_stack_size"] - 8}, {"save_size": said["cwsr_size"] - 4096},
        {"save_size": said["cwsr_size"] + 4096}, {"save": two.address},
    ):  # fmt: skip
        fails(errno.EINVAL, lambda changed=changed: client.queue(**changed))  # type: ignore[misc]
    fails(errno.EFAULT, lambda: client.queue(read=0))
    fails(524, lambda: client.queue(9))  # ENOTSUPP
    queue = client.queue()
    fails(errno.EBUSY, queue.ring_memory.unmap)
    fails(errno.EEXIST, lambda: call(client.kfd, 3, 0x25, struct.pack("<QII", 0, 1, 0)))
    fails(errno.EINVAL, lambda: client.kfd.mmap(0, 4096, 3, 1, (3 << 62 | client.gpu << 46) - (1 << 64)))
    queue.destroy()
    fails(errno.EINVAL, queue.destroy)
    call(client.kfd, 3, 0x25, struct.pack("<QII", 0, 1, 0))
    fails(errno.EBUSY, lambda: call(client.kfd, 3, 0x25, struct.pack("<QII", 0, 1, 0)))
    machine.close()


def test_versions_know_what_they_knew() -> None:
    for minor in (11, 14, 17):
        machine = KfdSystem("gfx1100", kfd=minor)
        client = Client(machine)
        assert struct.unpack("<II", call(client.kfd, 2, 1, bytes(8))) == (1, minor)
        assert ("cwsr_size" in client.properties()) == (minor == 17)
        if minor < 13:
            fails(errno.ENOTTY, lambda kfd=client.kfd: call(kfd, 3, 0x25, bytes(16)))  # type: ignore[misc]
        machine.close()


def test_a_request_of_another_size_or_a_bad_pointer_is_refused(machine: KfdSystem) -> None:
    client = Client(machine)
    fails(errno.EINVAL, lambda: call(client.kfd, 3, 0x16, bytes(48)))
    fails(errno.EINVAL, lambda: call(client.kfd, 1, 0x16, bytes(40)))
    fails(errno.EFAULT, lambda: client.kfd.ioctl(2 << 30 | 8 << 16 | ord("K") << 8 | 1, 64))
    fails(errno.ENOTTY, lambda: call(client.kfd, 3, 0x60, bytes(8)))
    machine.close()


def test_interrupts_set_events_and_faults_tell_addresses(machine: KfdSystem) -> None:
    client = Client(machine)
    page, memory, queue = client.alloc(GTT | WRITABLE, 32768).map(), client.host(), client.queue()
    new = "<QIIIIII"
    fails(errno.EINVAL, lambda: call(client.kfd, 3, 8, struct.pack(new, 0, 0, 0, 1, 0, 0, 0)))
    signal = struct.unpack(new, call(client.kfd, 3, 8, struct.pack(new, page.handle, 0, 0, 1, 0, 0, 0)))[5]
    fault = struct.unpack(new, call(client.kfd, 3, 8, struct.pack(new, 0, 0, 8, 0, 0, 0, 0)))[5]

    def wait(event: int, timeout: int) -> tuple[int, bytes]:
        data = bytearray(struct.pack("<40xII", event, 0))
        array = (ctypes.c_uint8 * 48).from_buffer(data)
        raw = call(client.kfd, 3, 0x0C, struct.pack("<QIIII", ctypes.addressof(array), 1, 0, timeout, 0))
        return struct.unpack("<QIIII", raw)[4], bytes(array)

    assert wait(signal, 0)[0] == 1
    queue.submit(*release_mem(page.address + 8 * signal, 1, interrupt=2, context=signal))
    assert wait(signal, 5000)[0] == 0
    assert wait(signal, 0)[0] == 1, "an event that resets itself was taken by the first wait"
    call(client.kfd, 1, 0x0A, struct.pack("<II", signal, 0))
    assert [wait(signal, 0)[0] for _ in range(2)] == [0, 1], "nobody waited when it was set: the next wait takes it"
    fails(errno.EINVAL, lambda: call(client.kfd, 1, 0x0A, struct.pack("<II", fault, 0)))
    queue.submit(*write_data(memory.address + 4096, 5))
    result, data = wait(fault, 5000)
    missing, _, _, _, address, gpu, _ = struct.unpack_from("<IIIIQII", data)
    assert (result, missing, address, gpu) == (0, 1, memory.address + 4096, client.gpu)
    fails(errno.EPERM, page.free)
    machine.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([0x40000000], "type 1"), ([0x80000001], "type 2"), ([0xC000EE00, 0], "opcode 0xee"),
        (packet3(0x37, 1 << 21, 0, 0, 0), "reserved bits: 21"), (packet3(0x37, 0, 0, 0, 0), "destination 0"),
        (packet3(0x37, 5 << 8, 2, 0x7F00, 0), "no multiple of 4"), (packet3(0x3F, 0, 0x7F00, 16), "not marked valid"),
        (packet3(0x49, 0x14 | 5 << 8 | 1 << 12, 0, 0, 0, 0, 0, 0), "GLM_WB without"),
        (packet3(0x49, 0x15 | 5 << 8, 0, 0, 0, 0, 0, 0), "event 0x15"),
        (packet3(0x76, 0x3FF, 0, 0), "registers from"), (packet3(0x76, 0x200, 1), "not for SET_SH_REG"),
        (packet3(0x76, 0x3F0, 1), "no known register"), ([0xC0053C00, 0], "were written"),
        ([0xC0001001, 0], "header"),
    ],
)  # fmt: skip
def test_a_packet_that_is_not_right_is_a_fault_that_says_where(
    machine: KfdSystem, words: list[int], why: str
) -> None:
    queue = Client(machine).queue()
    queue.submit(*packet3(0x10, 0), *words)
    until(lambda: bool(machine.log))
    assert "PM4 queue 0, offset 0x8" in machine.log[0] and why in machine.log[0]
    machine.close()


@pytest.mark.parametrize("major", [9, 10, 11, 12])
def test_every_bit_without_a_name_is_refused(major: int) -> None:
    checked = 0
    for form in packets(major).values():
        for index, word in enumerate(form.words):
            for bit in range(32):
                if not word.mask >> bit & 1:
                    body = [0] * len(form.words)
                    body[index] = 1 << bit
                    with pytest.raises(PacketFault, match=f"word {index + 1}: .* reserved bits: {bit}$"):
                        form.read(body)
                    checked += 1
    assert checked > 200


def test_a_bell_without_a_write_pointer_and_a_ring_that_overflows_are_faults(machine: KfdSystem) -> None:
    client = Client(machine)
    queue = client.queue()
    queue.put(*packet3(0x10, 0)).bell[0] = 2
    until(lambda: bool(machine.log))
    assert "the doorbell says 0x2, and the write pointer in memory is 0x0" in machine.log[0]
    copies = client.queue(SDMA)
    copies.count = 1025
    copies.ring_bell()
    until(lambda: len(machine.log) > 1)
    assert "the ring is 4096 bytes" in machine.log[1]
    machine.close()
