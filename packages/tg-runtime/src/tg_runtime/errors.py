"""What can go wrong between a graph and a machine, in words for the person who typed."""

from __future__ import annotations


class DeviceError(RuntimeError):
    """A device cannot be opened or does not do what is asked of it."""


class UnknownDevice(DeviceError):
    """No installed package offers a device of that name. The message lists those that there are."""


class DeviceUnavailable(DeviceError):
    """The device is known, but this machine lacks what it needs. The message says what."""


class DevSyntaxError(ValueError):
    """The ``DEV`` setting breaks its grammar."""


class OutOfMemory(MemoryError):
    """An allocation failed. The message says how much was asked, and how much is held and by whom."""


class CompileError(RuntimeError):
    """A kernel's source was rejected by its compiler.

    Attributes:
      path: file in which the source was kept, or None where no folder could be written.
      source: the source.
      line: number of the line that the compiler names first, from 1; None if it names none.
    """

    def __init__(self, message: str, source: str = "", path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.source, self.path, self.line = source, path, line
