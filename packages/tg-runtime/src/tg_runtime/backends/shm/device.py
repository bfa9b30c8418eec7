"""SHM: memory that processes share. ``SHM:name`` is the POSIX shared memory object of that name.

Whoever writes first makes it; everybody who opens ``SHM:name`` sees the same bytes. It is the object that
``multiprocessing.shared_memory.SharedMemory("name")`` opens, too. It stays until somebody unlinks it. Only its owner
may read and write it, and a symbolic link of that name is refused.
"""

from __future__ import annotations

import os
import re
import sys

from ...device.compiled import Compiled
from ...device.dev import DevEntry
from ...errors import DeviceError
from ...memory.files import FileAllocator

_FOLDER = "/dev/shm"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")


class ShmDevice(Compiled):
    """A shared memory object as a device that holds memory and runs nothing.

    Raises:
      DeviceError: if the device name has no name for the object, or one that is no file name.
    """

    named_memory = True
    architectures = False

    def __init__(self, device: str, entry: DevEntry) -> None:
        name = device.partition(":")[2]
        if not _NAME.fullmatch(name):
            raise DeviceError(f"{device!r}: the device SHM wants a name of letters, digits, '_', '.' and '-': SHM:name")
        self.path = os.path.join(_FOLDER, name)
        super().__init__(device, FileAllocator(device, self.path, 0o600, False), None, None, None)

    def unlink(self) -> None:
        """Removes the object; who has mapped it keeps what it mapped. Nothing happens if there is none."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs Linux's folder of shared memory objects."""
        if not os.path.isdir(_FOLDER):
            return f"there is no {_FOLDER} on {sys.platform}"
        return None
