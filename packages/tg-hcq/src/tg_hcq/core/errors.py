"""What goes wrong on a hardware queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_runtime import DeviceError

if TYPE_CHECKING:
    from .fault import FaultReport


class DeviceFault(DeviceError):
    """The device stopped on a command that it could not execute. It accepts no work until it is reset.

    Attributes:
      report: what is known of it; None if nobody asked.
    """

    report: FaultReport | None = None

    def __str__(self) -> str:
        return _told(super().__str__(), self.report)


class DeviceTimeout(DeviceError):
    """A signal did not move for the whole of the time allowed.

    Attributes:
      report: what is known of the device that stands still; None if nobody asked.
    """

    report: FaultReport | None = None

    def __str__(self) -> str:
        return _told(super().__str__(), self.report)


class DeviceLost(DeviceError):
    """The device cannot be used any more by this process; no reset helps. The message says why."""


class ContentLost(DeviceError):
    """Memory whose content was lost in a reset. Whoever asks for it gets this error, and never what happens to lie
    there."""


def _told(message: str, report: FaultReport | None) -> str:
    """The message, then what the report adds to it."""
    return message if report is None else "\n".join([message, *report.text().split("\n")[1:]])
