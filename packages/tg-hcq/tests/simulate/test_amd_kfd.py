"""One whole way through the boundary: open, addresses, memory, a queue, packets, an event."""

from __future__ import annotations

import pytest

from tg_hcq.simulate.amd.kfd import CARDS, KfdSystem
from tg_hcq.simulate.amd.testing.client import (
    PUBLIC,
    SDMA,
    VRAM,
    WRITABLE,
    Client,
    packet3,
    release_mem,
    until,
    write_data,
)


@pytest.mark.parametrize("arch", CARDS)
def test_packets_reach_memory(arch: str) -> None:
    machine = KfdSystem(arch)
    client = Client(machine)
    memory, queue = client.host(), client.queue()
    view = memory.view("Q")
    queue.submit(
        *packet3(0x10, 0xDEAD), *write_data(memory.address, 1, 2), *release_mem(memory.address + 8, 0x1_0000_0007)
    )
    until(lambda: view[1] != 0)
    assert view[0] == 0x2_0000_0001 and view[1] == 0x1_0000_0007
    until(lambda: queue.read[0] == queue.count)
    queue.destroy()
    machine.close()
    assert machine.log == []


@pytest.mark.parametrize("arch", CARDS)
def test_sdma_copies_fills_waits_and_tells(arch: str) -> None:
    machine = KfdSystem(arch)
    client = Client(machine)
    source, target, flag = client.host(8192), client.alloc(VRAM | WRITABLE | PUBLIC, 8192).map(), client.host()
    words, copied, flags = source.view("I"), target.view("I"), flag.view("I")
    queue = client.queue(SDMA)
    for index in range(1024):
        words[index] = index * 3
    low, high = target.address & 0xFFFFFFFF, target.address >> 32
    here, there = (flag.address & 0xFFFFFFFF, flag.address >> 32), (source.address & 0xFFFFFFFF, source.address >> 32)
    queue.submit(
        3 << 28 | 1 << 31 | 8, *here, 1, 0xFFFFFFFF, 0xFFF << 16 | 4,  # POLL_REGMEM until equal
        1, 4095, 0, *there, low, high,  # COPY_LINEAR
        2, low + 4096, high, 1, 0xAAAA, 0xBBBB,  # WRITE of two words
        2 << 30 | 11, low + 4104, high, 0x5A5A5A5A, 7,  # CONST_FILL of two words
        47 << 25 | 10, here[0] + 8, here[1], 0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 0,  # ATOMIC: adds -1
        5, here[0] + 4, here[1], 77,  # FENCE
    )  # fmt: skip
    flags[2], flags[3] = 0, 1
    until(lambda: queue.read[0] == 0)
    assert flags[1] == 0
    flags[0] = 1
    until(lambda: flags[1] == 77)
    assert flags.read(2, 2) == [0xFFFFFFFF, 0]
    assert copied.read(0, 1024) == [index * 3 for index in range(1024)]
    assert copied.read(1024, 5) == [0xAAAA, 0xBBBB, 0x5A5A5A5A, 0x5A5A5A5A, 0]
    until(lambda: queue.read[0] == queue.count * 4)
    queue.submit(1 << 20 | 5, *here, 1, 1 << 18 | 1, 0, 0, *there, low, high)
    until(lambda: len(machine.log) == 1)
    reserved = "SDMA queue 0, offset" if arch in ("gfx942", "gfx950") else "COPY_LINEAR: tmz is 1"
    assert reserved in machine.log[0]
    machine.close()
