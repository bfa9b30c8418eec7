"""Errors between a graph and a machine, in words for the user."""

from __future__ import annotations


class DeviceError(RuntimeError):
    """A device cannot be opened or does not do what is asked of it."""


class UnknownDevice(DeviceError):
    """No installed package offers a device of that name. The message lists the devices that exist."""


class DeviceUnavailable(DeviceError):
    """The device is known, but this machine lacks what it needs. The message says what."""

    @classmethod
    def here(cls, device: str, problem: str) -> DeviceUnavailable:
        """The error for a device that cannot be opened on this machine, with the reason in words."""
        return cls(f"the device {device} is not available on this machine: {problem}")


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


class AnomalyError(RuntimeError):
    """In anomaly mode, a kernel wrote a NaN, or an infinity, that an operation made of operands without one.

    Attributes:
      op: the operation, as ``LOG``.
      method: what the user's program called, as ``Tensor.log``; empty if it is not known.
      line: file and line of that call.
      gradient_of: for a gradient, its function, and file and line where that was applied; else None.
      shape: the shape of the operation's result.
      index: the first element that was found.
      count: how many elements there are.
    """

    def __init__(
        self, message: str, op: str, method: str, line: tuple[str, int],
        gradient_of: tuple[str, tuple[str, int]] | None, shape: tuple[int, ...], index: tuple[int, ...], count: int,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.op, self.method, self.line, self.gradient_of = op, method, line, gradient_of
        self.shape, self.index, self.count = shape, index, count
