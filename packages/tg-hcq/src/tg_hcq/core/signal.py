"""HCQSignal: a counter in memory that host and devices write and wait for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from tg_runtime import DeviceError
from tg_shape import sint

from .buffer import HCQBuffer
from .errors import DeviceFault, DeviceTimeout

_SPINS: Final = 200


class SignalOwner(Protocol):
    """What a signal asks of the device that it belongs to."""

    device: str
    ticks_per_us: float
    timeout_ms: int
    error_state: DeviceError | None
    generation: int

    def sleep(self, waited_ms: float) -> None:
        """Passes a little time, until something may have changed. ``waited_ms`` is how long the caller has waited."""

    def raise_error_state(self) -> None:
        """Raises what stopped the device, if it is stopped."""

    def release_signal(self, slot: HCQBuffer) -> None:
        """Takes a slot back."""


class HCQSignal:
    """A 64-bit value that only grows, and the time at which a device last wrote it.

    The slot is 16 bytes: the value at 0, the device's clock at 8, both unsigned 64-bit.

    Attributes:
      slot: the memory; the host must see it.
      owner: the device whose memory it is.
    """

    SIZE: Final = 16
    TIMESTAMP_OFFSET: Final = 8

    __slots__ = ("__weakref__", "_words", "owner", "slot")

    def __init__(self, slot: HCQBuffer, owner: SignalOwner, value: int = 0) -> None:
        self.slot, self.owner = slot, owner
        self._words = slot.host_view("Q")
        self._words[0], self._words[1] = value, 0

    @property
    def address(self) -> sint:
        """Where devices find the value."""
        return self.slot.address

    @property
    def value(self) -> int:
        """The value now."""
        return self._words[0]

    @value.setter
    def value(self, new: int) -> None:
        self._words[0] = new

    @property
    def timestamp(self) -> float:
        """The device's clock, in microseconds, as last written by ``HWQueue.timestamp``."""
        return self._words[1] / self.owner.ticks_per_us

    def wait(self, value: int, timeout_ms: int | None = None) -> None:
        """Returns once the signal is at least ``value``.

        Args:
          value: what to wait for.
          timeout_ms: give up when the signal has not moved for so long; the owner's ``timeout_ms`` if None.

        Raises:
          DeviceTimeout: if it did not move for ``timeout_ms``.
          DeviceFault: if the device is stopped, or is reset meanwhile.
        """
        generation = self.owner.generation
        for _ in range(_SPINS):
            if self._words[0] >= value:
                return self._require(generation)
        limit = self.owner.timeout_ms if timeout_ms is None else timeout_ms
        begin = moved = time.monotonic()
        seen = self._words[0]
        while (now := self._words[0]) < value:
            self.owner.raise_error_state()
            self._require(generation)
            clock = time.monotonic()
            if now != seen:
                seen, moved = now, clock
            elif (clock - moved) * 1000 >= limit:
                raise DeviceTimeout(
                    f"{self.owner.device}: signal at {self.slot!r} is {now} and {value} is waited for; it has not moved"
                    f" for {(clock - moved) * 1000:.0f} ms ({(clock - begin) * 1000:.0f} ms waited, limit {limit} ms)"
                )
            self.owner.sleep((clock - begin) * 1000)
        self._require(generation)

    def _require(self, generation: int) -> None:
        """Raises if the device was reset since: what was waited for was dropped."""
        if self.owner.generation != generation:
            raise DeviceFault(f"{self.owner.device} was reset while the signal at {self.slot!r} was waited for")

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_words") and not ends():  # when the interpreter ends, nobody wants the slot any more
            self.owner.release_signal(self.slot)

    def __repr__(self) -> str:
        return f"<HCQSignal {self.value} of {self.owner.device} at {self.slot!r}>"
