"""DISK: a file as memory. ``DISK:/path/to/file`` is a device whose buffer is the file, mapped, not read."""

from __future__ import annotations

import mmap
import os

from ..allocator import Allocator, BufferOptions
from ..compiled import Compiled
from ..dev import DevEntry
from ..errors import DeviceError


class FileMemory:
    """A mapped range of a file.

    Attributes:
      view: the bytes; read-only if the file is.
    """

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view


class DiskAllocator(Allocator[FileMemory]):
    """Maps one file. Pages are read when they are touched, and written back by the system."""

    supports_offset = True
    counted = False

    def __init__(self, device: str, path: str) -> None:
        super().__init__(device)
        self.path = path

    def _alloc(self, nbytes: int, options: BufferOptions) -> FileMemory:
        """Maps the file's first ``nbytes`` bytes; a file that is missing or empty is made that long.

        Raises:
          DeviceError: the file is shorter, or cannot be opened.
        """
        if options.external_ptr is not None:
            raise TypeError(f"{self.device} cannot use memory that it did not map")
        if nbytes == 0:
            return FileMemory(memoryview(b""))
        try:
            try:
                handle, access = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), mmap.ACCESS_WRITE
            except PermissionError:
                handle, access = os.open(self.path, os.O_RDONLY), mmap.ACCESS_READ
            try:
                present = os.fstat(handle).st_size
                if present == 0 and access == mmap.ACCESS_WRITE:
                    os.truncate(handle, nbytes)
                elif present < nbytes:
                    raise DeviceError(f"{self.path} has {present} bytes; {nbytes} are asked for")
                return FileMemory(memoryview(mmap.mmap(handle, nbytes, access=access)))
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot map {nbytes} bytes of {self.path}: {error}") from error

    def copyin(self, dest: FileMemory, src: memoryview) -> None:
        """Writes to the file.

        Raises:
          DeviceError: the file is read-only.
        """
        if dest.view.readonly:
            raise DeviceError(f"{self.path} is read-only")
        dest.view[: src.nbytes] = src

    def copyout(self, dest: memoryview, src: FileMemory) -> None:
        """Reads from the file."""
        dest[:] = src.view[: dest.nbytes]

    def as_buffer(self, opaque: FileMemory, nbytes: int) -> memoryview:
        """The mapping itself."""
        return opaque.view[:nbytes]

    def offset(self, opaque: FileMemory, nbytes: int, byte_offset: int) -> FileMemory:
        """A range of the mapping."""
        return FileMemory(opaque.view[byte_offset : byte_offset + nbytes])


class DiskDevice(Compiled):
    """A file as a device that holds memory and runs nothing.

    Raises:
      DeviceError: the device name has no path.
    """

    def __init__(self, device: str, entry: DevEntry) -> None:
        path = device.partition(":")[2]
        if not path:
            raise DeviceError("the device DISK wants a file: DISK:/path/to/file")
        super().__init__(device, DiskAllocator(device, path), None, None, None)
