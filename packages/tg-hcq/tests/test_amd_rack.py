"""The driver of AMD's cards passes the rack of faults, on the software card."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from tg_hcq import HCQCompiled, HWQueue
from tg_hcq.amd import AMDDevice
from tg_hcq.amd.kfd.driver import Driver
from tg_hcq.simulate.amd.kfd import RemoteKfd
from tg_hcq.testing import FaultRack
from tg_hcq.testing.rack import opened, works
from tg_lazy import Context


class TestAMD(FaultRack):
    opener = "DEV=MOCKKFD+AMD::gfx1100"
    tells_access = False  # KFD's event says of a page that it is not there, and no more

    def bad_packet(self, queue: HWQueue) -> None:
        queue.put(3 << 30 | 0xEE << 8, 0)

    def lose(self, device: HCQCompiled) -> Callable[[], None]:
        """The kernel has the card no more."""
        assert isinstance(device, AMDDevice)
        driver: Driver = device._process.driver

        def gone(*_: object, **__: object) -> NoReturn:
            raise OSError(errno.ENODEV, "KFD refuses everything: No such device")

        driver.ioctl = gone  # type: ignore[method-assign]
        return lambda: driver.__dict__.pop("ioctl")


class TestSeveralDies(TestAMD):
    """The same, on a card whose queue takes packets of AQL."""

    opener = "DEV=MOCKKFD+AMD::gfx942"

    def bad_packet(self, queue: HWQueue) -> None:
        queue.put(3 << 30 | 0xEE << 8, 0)


class TestElsewhere(TestAMD):
    """The same, on a card that a process of its own plays: a fork, two processes, one that is killed among it."""

    @pytest.fixture(autouse=True)
    def _elsewhere(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch, Context(AMD_PROCESS=1):
            patch.setenv("AMD_PROCESS", "1")  # for the other processes of a test
            yield

    def device(self) -> HCQCompiled:
        """As of the rack."""
        found = super().device()
        assert isinstance(found.system, RemoteKfd)
        return found


def test_who_breaks_a_card_breaks_no_other_ones() -> None:
    """A reset ends all that a process has on a card; the cards of the rack are its own."""
    rack = TestAMD()
    device = opened(rack.opener)
    try:
        rack.setup_method()
        try:
            rack.test_a_bad_packet()
        finally:
            rack.teardown_method()
        assert works(device) and device.error_state is None
    finally:
        device.close()
