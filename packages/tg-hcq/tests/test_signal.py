"""Signals: values, time-outs that tell progress from standstill, slots that are used again."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from tg_hcq import DeviceFault, DeviceTimeout
from tg_hcq.hostq import HostQueueDevice


def test_slots_are_16_bytes_and_apart(device: HostQueueDevice) -> None:
    signals = [device.new_signal(i) for i in range(600)]  # more than a page of them
    addresses = sorted(int(s.slot.address) for s in signals)
    assert len(set(addresses)) == 600 and all(a % 16 == 0 for a in addresses)
    assert [s.value for s in signals] == list(range(600))
    signals[3].value = 2**64 - 1
    assert signals[3].value == 2**64 - 1 and signals[2].value == 2 and signals[3].timestamp == 0


def test_wait_is_at_least(device: HostQueueDevice) -> None:
    signal = device.new_signal(5)
    signal.wait(5, timeout_ms=0)
    signal.wait(1, timeout_ms=0)


def test_timeout_says_who_what_and_how_long(device: HostQueueDevice) -> None:
    signal = device.new_signal(3)
    begin = time.monotonic()
    with pytest.raises(DeviceTimeout, match=r"HOSTQ: signal at .* is 3 and 4 is waited for; .* limit 60 ms"):
        signal.wait(4, timeout_ms=60)
    assert 0.05 < time.monotonic() - begin < 5


def test_progress_keeps_a_wait_alive(device: HostQueueDevice) -> None:
    signal = device.new_signal()

    def count() -> None:
        for value in range(1, 21):
            time.sleep(0.05)
            signal.value = value

    thread = threading.Thread(target=count)
    thread.start()
    signal.wait(20, timeout_ms=800)  # a second in all, but never so long without a step
    thread.join()


def test_a_fault_ends_every_wait(device: HostQueueDevice) -> None:
    signal = device.new_signal()
    timer = threading.Timer(0.05, lambda: device.fail(DeviceFault("broken")))
    timer.start()
    with pytest.raises(DeviceFault, match="broken"):
        signal.wait(1, timeout_ms=10_000)
    timer.join()


def test_slots_return_once_the_device_is_past_them(device: HostQueueDevice) -> None:
    gate, other = device.new_signal(), device.new_signal()
    with device.submission() as queue:
        queue.wait(gate, 1).signal(other, 9)
    address = other.address
    del other, queue
    gc.collect()
    held = [device.new_signal() for _ in range(1000)]
    assert address not in [s.address for s in held]  # the device has yet to write there
    gate.value = 1
    device.synchronize()
    held += [device.new_signal() for _ in range(1000)]
    assert address in [s.address for s in held]
    pages = len(device._signal_pages)
    for _ in range(3000):
        device.new_signal()
    assert len(device._signal_pages) == pages
