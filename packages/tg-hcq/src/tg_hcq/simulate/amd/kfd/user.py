"""The memory of the process that calls, as the kernel reaches it: by address, refusing what is not mapped."""

from __future__ import annotations

import errno
import os


class UserMemory:
    """Memory of a process.

    Args:
      descriptor: of another process' ``/proc/self/mem``, which is kept; of this process without one.

    Example:
      >>> import ctypes
      >>> word = ctypes.c_uint32(7)
      >>> UserMemory().read(ctypes.addressof(word), 4)
      b'\\x07\\x00\\x00\\x00'
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._fd = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC) if descriptor is None else os.dup(descriptor)

    def read(self, address: int, nbytes: int) -> bytes:
        """``copy_from_user``.

        Raises:
          OSError: if a byte is not mapped (EFAULT).
        """
        try:
            data = os.pread(self._fd, nbytes, address) if address < 1 << 63 else b""
        except OSError:
            data = b""
        if len(data) != nbytes:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT), f"{nbytes} bytes at {address:#x}")
        return data

    def write(self, address: int, data: bytes) -> None:
        """``copy_to_user``.

        Raises:
          OSError: if a byte is not mapped (EFAULT).
        """
        try:
            done = os.pwrite(self._fd, data, address) if address < 1 << 63 else 0
        except OSError:
            done = 0
        if done != len(data):
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT), f"{len(data)} bytes at {address:#x}")

    def close(self) -> None:
        """Lets go of it. Closing twice does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
