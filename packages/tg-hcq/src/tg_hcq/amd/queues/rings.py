"""Which ring a queue's words go to."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ...core.queue import QueueDevice
from ...core.ring import Ring


@runtime_checkable
class Ringed(Protocol):
    """A device of this driver."""

    def hardware_ring(self, kind: str) -> Ring:
        """The ring of a kind of queue."""


def ring_of(device: QueueDevice, kind: str) -> Ring:
    """The ring of a device's queue.

    Raises:
      TypeError: if it is the device of another driver.
    """
    if not isinstance(device, Ringed):
        raise TypeError(f"submit: {device.device} is no AMD device")
    return device.hardware_ring(kind)
