"""DISK: a file as memory. ``DISK:/path/to/file`` is a device whose buffer is the file."""

from __future__ import annotations

from ...device.compiled import Compiled
from ...device.dev import DevEntry
from ...errors import DeviceError
from ...memory.files import FileAllocator


class DiskDevice(Compiled):
    """A file as a device that holds memory and runs nothing.

    Reading never creates the file, nor opens it for writing; what is written to it is made if it is missing. It is read
    and written in place: to have the old content or the new one, whatever happens, is for ``safe_save``.

    Raises:
      DeviceError: if the device name has no path.
    """

    named_memory = True
    architectures = False

    def __init__(self, device: str, entry: DevEntry) -> None:
        path = device.partition(":")[2]
        if not path:
            raise DeviceError("the device DISK wants a file: DISK:/path/to/file")
        super().__init__(device, FileAllocator(device, path), None, None, None)
