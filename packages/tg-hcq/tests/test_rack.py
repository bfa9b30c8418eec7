"""HOSTQ passes the rack of faults; and the rack finds devices that should not."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tg_hcq import MMIO, ContentLost, HCQBuffer, HCQCompiled, HWQueue
from tg_hcq.hostq import HostQueueDevice, HostQueueProgram, executor
from tg_hcq.testing import FaultRack, rack


class TestHostQueue(FaultRack):
    opener = "tg_hcq.hostq:HostQueueDevice"

    def bad_packet(self, queue: HWQueue) -> None:
        queue.put(0x10 | 2 << 8, 7, 7)

    def lose(self, device: HCQCompiled) -> Callable[[], None]:
        """A kernel that does not end: nothing stops a thread, however long it is waited for."""
        assert isinstance(device, HostQueueDevice)
        end, begun = threading.Event(), threading.Event()

        def endless() -> None:
            begun.set()
            end.wait(60)

        HostQueueProgram.from_callable(device, "endless", endless, 0)()
        assert begun.wait(10)
        patch = pytest.MonkeyPatch()
        patch.setattr(executor, "_STOP_S", 0.2)

        def undo() -> None:
            end.set()
            patch.undo()

        return undo


class Amnesiac(HostQueueDevice):
    """Forgets to tell what was lost."""

    def _reset(self) -> bool:
        self.timeline.pending._log.clear()
        return super()._reset()


class Silent(HostQueueDevice):
    """Forgets its memory, and tells nobody."""

    def reset(self) -> None:
        for allocation in self.allocator.allocations.live():
            opaque = allocation.opaque()
            if opaque is not None and not allocation.options.host:
                assert isinstance(opaque.address, int)
                MMIO(opaque.address, 1)[0] = ord("?")
        super().reset()


def run(device: type[HostQueueDevice], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rack, "opened", lambda opener: device("HOSTQ:3"))
    case = TestHostQueue()
    case.setup_method()
    try:
        getattr(case, test)()
    finally:
        case.teardown_method()


@pytest.mark.parametrize(
    ("device", "test"),
    [(Amnesiac, "test_a_reset_in_the_middle_of_a_copy"), (Silent, "test_resets_of_an_idle_device")],
)
def test_the_rack_finds_who_does_wrong(
    device: type[HostQueueDevice], test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(HostQueueDevice, test, monkeypatch)
    with pytest.raises(AssertionError):
        run(device, test, monkeypatch)


def test_lost_is_lost_for_good(device: HostQueueDevice) -> None:
    buffer: HCQBuffer = device.allocator.alloc(64)
    buffer.lose("planted")
    buffer.lose("again")
    with pytest.raises(ContentLost, match="planted"):
        buffer.host_view()
