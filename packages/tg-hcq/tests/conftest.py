"""Devices for the tests, closed when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tg_hcq.core.timeline import LIMIT
from tg_hcq.hostq import HostQueueDevice

MakeDevice = Callable[..., HostQueueDevice]


@pytest.fixture
def make_device() -> Iterator[MakeDevice]:
    """Opens HOSTQ devices that give up waiting after two seconds."""
    opened: list[HostQueueDevice] = []

    def make(
        name: str = "HOSTQ", timeout_ms: int = 2000, ring_words: int = 1 << 14, timeline_limit: int = LIMIT
    ) -> HostQueueDevice:
        device = HostQueueDevice(name, ring_words=ring_words, timeline_limit=timeline_limit)
        device.timeout_ms = timeout_ms
        opened.append(device)
        return device

    yield make
    for device in opened:
        device.close()


@pytest.fixture
def device(make_device: MakeDevice) -> HostQueueDevice:
    """One device."""
    return make_device()
