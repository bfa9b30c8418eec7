"""Queues of AQL packets on the software GPU of AMD, submitted as bytes that are written from the headers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING, assemble
from tg_hcq.simulate.amd.testing.client import (
    AQL,
    EXECUTABLE,
    PAGE,
    PUBLIC,
    VRAM,
    WRITABLE,
    Client,
    Memory,
    packet3,
    until,
    write_data,
)

WRITE, READ = 56, 128
BARRIER, ACQUIRE, RELEASE = 1 << 8, 2 << 9, 2 << 11
VENDOR, INVALID, DISPATCH, AND, OR = 0, 1, 2, 3, 5


class Queue:
    """A queue with its ``amd_queue_t`` in the page of the pointers; ``packets`` many places."""

    def __init__(self, client: Client, packets: int = 64) -> None:
        self.client, self.page = client, client.host()
        self.queue = client.queue(
            AQL, packets * 64, write=self.page.address + WRITE, read=self.page.address + READ)  # fmt: skip
        self.memory = self.page.view("I")
        ring = self.queue.ring_memory.address
        for at, word in ((8, ring & 0xFFFFFFFF), (12, ring >> 32), (24, packets), (READ + 8, READ)):
            self.memory[at // 4] = word
        self.packets, self.count = packets, 0
        for number in range(packets):
            self.queue.ring[16 * number] = INVALID

    def put(self, packet: bytes) -> None:
        """A packet, whose header is stored last, and rings."""
        at = self.count % self.packets * 16
        words = struct.unpack("<16I", packet)
        for index in range(15, -1, -1):
            self.queue.ring[at + index] = words[index]
        self.count += 1
        self.client.flush()
        self.memory[WRITE // 4] = self.count
        self.queue.bell[0] = self.count - 1

    def done(self) -> int:
        """How many packets were executed."""
        return int(self.memory[READ // 4])


class Signals:
    """Signals of a page."""

    def __init__(self, client: Client, value: int = 1) -> None:
        self.memory = client.host()
        self.view = self.memory.view("Q")
        for number in range(8):
            self.view[8 * number] = 1
            self.view[8 * number + 1] = value

    def at(self, number: int) -> int:
        """The address of one."""
        return self.memory.address + 64 * number

    def value(self, number: int) -> int:
        """What it holds."""
        return int(self.view[8 * number + 1])


def barrier(kind: int, signals: list[int], completion: int, header: int = BARRIER) -> bytes:
    """A barrier packet."""
    padded = [*signals, *[0] * (5 - len(signals))]
    return struct.pack("<HHI5QQQ", kind | header, 0, 0, *padded, 0, completion)


def dispatch(kernel: int, grid: tuple[int, int, int], size: tuple[int, int, int], kernarg: int, completion: int,
             header: int = BARRIER | ACQUIRE | RELEASE, private: int = 0, group: int = 0) -> bytes:  # fmt: skip
    """A kernel's dispatch."""
    return struct.pack("<HHHHHHIIIIIQQQQ", DISPATCH | header, 3, *size, 0, *grid, private, group, kernel, kernarg, 0,
                       completion)  # fmt: skip


@pytest.fixture(params=["gfx942", "gfx1100"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    machine = KfdSystem(request.param)
    yield Client(machine)
    assert machine.log == []
    machine.close()


def test_barriers_wait_for_signals(client: Client) -> None:
    """All of them, or one; the completion signal is counted down, with times, and the slot is free again."""
    queue, signals = Queue(client), Signals(client)
    queue.put(barrier(AND, [signals.at(0), signals.at(1)], signals.at(2)))
    signals.view[1] = 0
    assert signals.value(2) == 1 and queue.done() == 0
    signals.view[9] = 0
    until(lambda: signals.value(2) == 0)
    assert 0 < signals.view[16 + 4] <= signals.view[16 + 5]
    queue.put(barrier(OR, [signals.at(3), signals.at(4)], signals.at(5)))
    assert signals.value(5) == 1
    signals.view[8 * 4 + 1] = 0
    until(lambda: signals.value(5) == 0)
    until(lambda: queue.done() == 2)
    assert [queue.queue.ring[16 * n] & 0xFF for n in range(2)] == [INVALID, INVALID]


def test_a_ring_goes_round(client: Client) -> None:
    queue, signals = Queue(client), Signals(client, 100)
    for number in range(130):
        until(lambda: queue.count - queue.done() < 64)
        queue.put(barrier(AND, [], signals.at(number % 2)))
    until(lambda: queue.done() == 130)
    assert [signals.value(n) for n in range(2)] == [35, 35]


def vendor(buffer: Memory, words: int, completion: int) -> bytes:
    """A call of PM4 packets."""
    jump = packet3(0x3F, buffer.address & 0xFFFFFFFF, buffer.address >> 32, words | 1 << 23)
    return struct.pack("<HH4II32xQ", VENDOR | BARRIER, 1, *jump, 10, completion)


def test_vendor_packets_call_pm4_and_choose_dies(client: Client) -> None:
    """Of eight dies, each executes a packet unless it is told which one shall; one of them stands for itself."""
    queue, signals, target, code = Queue(client), Signals(client), client.host(), client.host()
    words = write_data(target.address, 7)
    words += packet3(0x23, len(write_data(0, 1)) | 1 << 24) + write_data(target.address + 4, 8)
    words += packet3(0x23, len(write_data(0, 1)) | 1 << 31) + write_data(target.address + 8, 9)
    words += write_data(target.address + 12, 10)
    view = code.view("I")
    for index, word in enumerate(words):
        view[index] = word
    queue.put(vendor(code, len(words), signals.at(0)))
    until(lambda: signals.value(0) == 0)
    eight = client.properties()["num_xcc"] == 8
    assert [int(target.view("I")[n]) for n in range(4)] == [7, 8, 9 if eight else 0, 10]


@pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
def test_a_kernel_is_dispatched_from_its_descriptor(client: Client) -> None:
    """A grid whose last workgroups are not whole: each thread adds one to a word of its own."""
    arch = "gfx942" if client.properties()["num_xcc"] == 8 else "gfx1100"
    lanes = 64 if arch == "gfx942" else 32
    code = assemble(arch, """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_and_b32 v1, 0x3ff, v0
        s_mul_i32 s6, s2, 80
        v_add_u32 v1, s6, v1
        v_lshlrev_b32 v1, 2, v1
        v_mov_b32 v2, 1
        s_waitcnt lgkmcnt(0)
        global_atomic_add v1, v2, s[4:5]
        s_endpgm
    """ if arch == "gfx942" else """
        s_load_b64 s[4:5], s[0:1], 0x0
        v_and_b32 v1, 0x3ff, v0
        s_mul_i32 s6, s2, 80
        v_add_nc_u32 v1, s6, v1
        v_lshlrev_b32 v1, 2, v1
        v_mov_b32 v2, 1
        s_waitcnt lgkmcnt(0)
        global_atomic_add_u32 v1, v2, s[4:5]
        s_endpgm
    """)
    image = client.alloc(VRAM | WRITABLE | EXECUTABLE | PUBLIC).map()
    wave32 = 1 << 10 if lanes == 32 else 0
    descriptor = struct.pack("<III4xQ20xIIIHH4x", 0, 0, 8, 256, 0, 0xF0000, 2 << 1 | 1 << 7, 1 << 3 | wave32, 0)
    view = image.view("I")
    for index, word in enumerate(struct.unpack(f"<{(256 + len(code)) // 4}I", descriptor.ljust(256, b"\0") + code)):
        view[index] = word
    queue, signals, data, arguments = Queue(client), Signals(client), client.host(), client.host()
    arguments.view("Q")[0] = data.address
    queue.put(dispatch(image.address, (200, 1, 1), (80, 1, 1), arguments.address, signals.at(0)))
    queue.put(dispatch(image.address, (161, 1, 1), (80, 1, 1), arguments.address, signals.at(1)))
    until(lambda: signals.value(1) == 0 or bool(client.machine.log))
    assert [int(data.view("I")[n]) for n in range(210)] == [2] * 161 + [1] * 39 + [0] * 10


@pytest.mark.parametrize(("packet", "why"), [
    (struct.pack("<H62x", 4), "type 4"), (struct.pack("<H62x", DISPATCH | 1 << 13), "reserved bits"),
    (struct.pack("<H62x", AND | 3 << 9), "fence of scope 3"),
    (struct.pack("<HHH58x", DISPATCH, 0, 1), "dimensions"),
    (struct.pack("<HHHHHHIII40x", DISPATCH, 1, 8, 1, 1, 0, 0, 1, 1), "in a grid of"),
    (struct.pack("<HHHHHHIII40x", DISPATCH, 1, 8, 2, 1, 0, 8, 2, 1), "a size in another"),
    (struct.pack("<HH60x", VENDOR, 2), "only PM4"), (barrier(AND, [64], 0), "reads"),
    (barrier(AND, [], 8), "multiple of 64"),
])  # fmt: skip
def test_what_is_not_known_is_refused(packet: bytes, why: str) -> None:
    machine = KfdSystem("gfx942")
    queue = Queue(Client(machine))
    queue.put(packet)
    until(lambda: bool(machine.log))
    assert why in " ".join(machine.log) and queue.done() == 0
    machine.close()


def test_the_queue_is_found_from_the_read_pointer() -> None:
    """What stands behind it says where the rest is; a ring that is another's is refused."""
    for at, value, why in ((READ + 8, 64, "read_dispatch_id_field"), (8, 0, "base_address"), (24, 1, "hsa_queue.size")):
        machine = KfdSystem("gfx942")
        queue = Queue(Client(machine))
        queue.memory[at // 4] = value
        queue.put(dispatch(PAGE, (8, 1, 1), (8, 1, 1), 0, 0))
        until(lambda machine=machine: bool(machine.log))  # type: ignore[misc]
        assert why in " ".join(machine.log)
        machine.close()
