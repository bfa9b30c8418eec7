"""One whole way through the boundary: open, addresses, memory, a queue, packets, an event."""

from __future__ import annotations

import pytest

from tg_hcq.simulate.amd.kfd import CARDS, KfdSystem
from tg_hcq.simulate.amd.testing.client import Client, packet3, release_mem, until, write_data


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
