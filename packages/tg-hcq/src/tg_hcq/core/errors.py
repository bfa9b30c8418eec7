"""What goes wrong on a hardware queue."""

from __future__ import annotations

from tg_runtime import DeviceError


class DeviceFault(DeviceError):
    """The device stopped on a command that it could not execute. It accepts no work until it is reset."""


class DeviceTimeout(DeviceError):
    """A signal did not move for the whole of the time allowed."""
