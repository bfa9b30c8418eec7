"""Fault reports: every field with where it was read, completed by what the process knows."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq import DeviceFault, DeviceTimeout, FaultReport, HCQBuffer, Known, Ring, System
from tg_hcq.core.allocations import Allocations
from tg_hcq.core.fault import Near, RingTail
from tg_hcq.core.ring import tail_of
from tg_hcq.hostq import HostQueue, HostQueueDevice, HostQueueProgram
from tg_runtime import BufferOptions

FILE = __file__


def fault_of(device: HostQueueDevice) -> FaultReport:
    with pytest.raises(DeviceFault) as caught:
        device.synchronize()
    assert caught.value.report is not None
    return caught.value.report


def at(buffer: HCQBuffer) -> int:
    assert isinstance(buffer.address, int)
    return buffer.address


def test_a_store_to_nowhere(device: HostQueueDevice) -> None:
    device.allocator.alloc(4096)
    with device.submission() as queue:
        queue.write(0x1000, [1, 2])
    report = fault_of(device)
    assert report.address is not None and report.access is not None and report.near is not None
    assert (report.address.value, report.access.value, report.near.value.distance < 0) == (0x1000, "write", True)
    assert report.address.source == "fault record of the HOSTQ compute queue"
    assert report.near.source == "allocations noted by this process"
    text = report.text()
    assert "  nearest memory: " in text and "HOSTQ: WRITE: 8 bytes at" in text
    assert "  ring HOSTQ compute queue: read " in text and "\n    WRITE 1000 0 1 2\n" in text
    assert report.kernel is None and report.pc is None
    assert [tail.source for tail in report.rings] == ["memory of the ring"] * 2
    with pytest.raises(DeviceFault, match=r"fault at word 6: WRITE: 8 bytes(.|\n)*nearest memory: ") as again:
        device.synchronize()
    assert again.value.report is report


def test_memory_that_was_freed_says_by_whom(device: HostQueueDevice) -> None:
    memory = device.allocator.alloc(1 << 20, BufferOptions(nolru=True))
    address = at(memory)
    device.allocator.free(memory, 1 << 20, BufferOptions(nolru=True))
    device.synchronize()
    with device.submission() as queue:
        queue.write(address + 64, [1])
    near = fault_of(device).near
    assert near is not None and near.value.distance == 0 and near.value.address == address
    assert near.value.allocated.startswith(f"{FILE}:") and near.value.freed.startswith(f"{FILE}:")
    assert "MainThread" in near.value.freed
    assert "inside of 1048576 bytes" in str(near) and ", freed by " in str(near)


def test_a_kernel_is_named_by_its_code(device: HostQueueDevice) -> None:
    def broken(value: int) -> None:
        raise ZeroDivisionError("no")

    program = HostQueueProgram.from_callable(device, "broken", broken, 0, (dtypes.int32,))
    other = HostQueueProgram.from_callable(device, "other", lambda: None, 0)
    program(vals=(1,))
    report = fault_of(device)
    assert report.kernel is not None and report.pc is not None and other.name == "other"
    assert (report.kernel.value, report.kernel.source) == ("broken", "code uploaded by this process")
    assert report.pc.value == program.entry and f"pc: {program.entry:#x}" in report.text()
    assert report.registers is not None and set(report.registers.value) == {"read", "header"}


def test_a_device_that_hangs_is_reported_too(make_device: Callable[..., HostQueueDevice]) -> None:
    device = make_device(timeout_ms=50)
    gate = device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1)
    with pytest.raises(DeviceTimeout, match=r"limit 50 ms(.|\n)*ring HOSTQ compute queue: read ") as caught:
        device.synchronize()
    assert caught.value.report is not None
    assert "no progress [signals in memory]" in caught.value.report.text()
    packets = caught.value.report.rings[0].value.packets
    assert [packet.split()[0] for packet in packets] == ["WAIT", "BARRIER", "WAIT", "SIGNAL"]
    gate.value = 1


def test_the_hook_is_asked_on_every_wait(device: HostQueueDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def collect() -> DeviceFault | None:
        asked.append(1)
        return DeviceFault("planted") if len(asked) > 3 else None

    monkeypatch.setattr(device, "collect_fault", collect)
    with pytest.raises(DeviceFault, match="^planted$"):
        device.new_signal().wait(1)
    assert len(asked) == 4 and device.error_state is not None


def block(address: int, nbytes: int = 64) -> HCQBuffer:
    return HCQBuffer(address, nbytes)


def test_the_nearest_allocation() -> None:
    log = Allocations()
    assert log.nearest(0x1000) is None
    kept = [block(0x1000), block(0x2000)]
    for one in kept:
        log.taken(one, 64, BufferOptions())
    cases = [(0x1000, 0x1000, 0), (0x103F, 0x1000, 0), (0x1040, 0x1000, 1), (0xFF0, 0x1000, -16), (0x1FFF, 0x2000, -1)]
    for address, owner, distance in cases:
        near = log.nearest(address)
        assert near is not None and (near.address, near.distance, near.freed) == (owner, distance, "")
    log.given(0x1000)
    log.given(0x1000)  # what is not known is not an error
    gone = log.nearest(0x1010)
    assert gone is not None and gone.distance == 0 and gone.freed
    log.taken(block(0x1000), 128, BufferOptions())
    used = log.nearest(0x1010)
    assert used is not None and not used.freed and used.nbytes == 128
    for i in range(3000):
        log.taken(block(0x100000 + 64 * i), 64, BufferOptions())
        log.given(0x100000 + 64 * i)
    assert len(log._freed) == 1024 and len(log.live()) == 2
    del kept
    gc.collect()
    assert len(log.live()) == 2


def test_near_reads_well() -> None:
    assert str(Near(16, 8, 0, "a.py:1 on T", "")) == "inside of 8 bytes at 0x10, allocated by a.py:1 on T, in use"
    assert str(Near(16, 8, -3, "a", "b")).startswith("3 bytes before 8 bytes")
    assert str(Near(16, 8, 3, "a", "b")) == "3 bytes after the end of 8 bytes at 0x10, allocated by a, freed by b"


def ring(words: int) -> Ring:
    memory = System().allocate(4 * words + 64)
    read, write, bell = (memory.view(4 * words + 8 * i, 8, "Q") for i in range(3))
    return Ring("r", memory.view(0, 4 * words, "I"), read, write, bell, System())


def test_the_tail_of_a_ring_has_whole_packets() -> None:
    def text(words: object) -> tuple[int, str]:
        assert isinstance(words, list)
        return 1 + words[0], f"packet of {words[0]}"

    one = ring(10)
    for round_trip in range(30):
        size = round_trip % 3
        one.submit(array("I", [size, *[99] * size]), 0)
        one.read[0] = one.write[0]
        packets = tail_of(one, text).packets
        assert packets[-1] == f"packet of {size}" and all(packet.startswith("packet of") for packet in packets)
    assert tail_of(ring(8), text) == RingTail("r", 0, 0, ())


def test_a_report_says_only_what_is_known() -> None:
    whole = FaultReport(
        "AMD", Known("fault", "event"), Known(4, "event"), Known("write", "event"), Known(8, "wave"),
        Known("k", "code"), Known({"pc": 8}, "wave"), Known(Near(0, 8, 0, "a", ""), "log"),
        (Known(RingTail("q", 1, 2, ("NOP",)), "ring"),),
    )  # fmt: skip
    assert whole.text().split("\n") == [
        "AMD: fault [event]", "  address: 0x4 [event]", "  pc: 0x8 [wave]", "  access: write [event]",
        "  kernel: k [code]", "  nearest memory: inside of 8 bytes at 0x0, allocated by a, in use [log]",
        "  registers: pc 0x8 [wave]", "  ring q: read 1, written 2 [ring]", "    NOP",
    ]  # fmt: skip
    assert FaultReport("AMD", Known("fault", "event")).text() == "AMD: fault [event]"
    assert HostQueue().writes == []
