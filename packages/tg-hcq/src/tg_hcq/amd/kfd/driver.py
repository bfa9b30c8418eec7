"""Driver: the open kfd file of a process, its version, and its ioctls."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping
from typing import Final

from tg_runtime import DeviceError, DeviceUnavailable

from ...core.system import System
from ...headers.amd import kfd_ioctl

PATH: Final = "/dev/kfd"

VERSIONS: Final[Mapping[str, tuple[int, int]]] = {
    # the comment at the top of linux/kfd_ioctl.h, and linux/kfd_ioctl.h at the kernel that brought the ioctl
    "memory in compute virtual address spaces": (1, 0),  # AMDKFD_IOC_ALLOC_MEMORY_OF_GPU: Linux 4.17
    "available memory": (1, 9),
    "runtime enable": (1, 13),
    "ages of events": (1, 14),
    "contiguous VRAM": (1, 16),
    "copy queues of a chosen engine": (1, 17),
}
"""The version of KFD that brought each feature."""

OLDEST: Final = (1, 11)
"""Below it, the driver was never tried, not even against software: Linux 6.1 has it."""

ENOTSUPP: Final = 524
"""An error that the kernel has beside those of ``errno.h``."""

_NAMES: Final = {number: name for name, number in vars(kfd_ioctl).items() if name.startswith("IOC_")}


class Driver:
    """The kfd file.

    Attributes:
      file: the open file.
      version: of the interface: major and minor.

    Args:
      system: where it is opened.
      device: the device's name, for messages.

    Raises:
      DeviceUnavailable: if there is none, it may not be opened, or it is too old.
    """

    def __init__(self, system: System, device: str) -> None:
        try:
            self.file = system.open(PATH, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise DeviceUnavailable.here(device, f"it {why_not(error)}") from None
        told = self.ioctl(kfd_ioctl.IOC_GET_VERSION)
        self.version = told["major_version"], told["minor_version"]
        if self.version < OLDEST or self.version[0] != OLDEST[0]:
            self.file.close()
            found, least = (".".join(map(str, version)) for version in (self.version, OLDEST))
            raise DeviceUnavailable.here(
                device, f"the kernel's KFD has version {found}, and {least} is needed: Linux 6.1 or later has it"
            )

    def has(self, feature: str) -> bool:
        """Whether this version has a feature of :data:`VERSIONS`."""
        return self.version >= VERSIONS[feature]

    def ioctl(self, request: int, values: Mapping[str, int] | None = None, /, **fields: int) -> dict[str, int]:
        """Asks the kernel.

        Args:
          request: one of the ``IOC_`` numbers.
          values: fields of its argument whose names are no identifiers.
          fields: the others; those that are not named are 0.

        Returns:
          the argument's fields as the kernel left them.

        Raises:
          OSError: if it refuses; the message names the ioctl.
        """
        layout = kfd_ioctl.ARGUMENTS[request]
        data = layout.pack(values, **fields)
        argument = (ctypes.c_ubyte * len(data)).from_buffer(data)
        try:
            self.file.ioctl(request, argument)
        except OSError as error:
            name = _NAMES.get(request, f"{request:#x}").removeprefix("IOC_")
            code = error.errno or errno.EIO
            raise OSError(code, f"KFD refuses {name}: {os.strerror(code)}") from None
        return layout.unpack(data)


def why_not(error: OSError) -> str:
    """Why the kfd file cannot be opened, and what helps."""
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"needs {PATH}, which the kernel's amdgpu module makes for a card that it knows"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"may not open {PATH}: add the user to the group render (and in a container pass {PATH} and /dev/dri)"
    return f"cannot open {PATH}: {os.strerror(error.errno or 0)}"


def refused(device: str, what: str, error: OSError) -> DeviceError:
    """What the kernel said, as an error of the device."""
    hints = {
        errno.EBUSY: "another library of this process holds the card",
        errno.EPERM: "the process lacks a permission",
        errno.ENOMEM: "there is no memory for it",
        errno.ENODEV: "the card is gone",
        errno.EIO: "the card is being reset",
        errno.EOPNOTSUPP: "this kernel cannot share memory of the process with the card",
        ENOTSUPP: "this kernel has none for this card",
    }
    hint = hints.get(error.errno or 0)
    return DeviceError(f"{device}: {what}: {error.strerror or error}" + (f" ({hint})" if hint else ""))
