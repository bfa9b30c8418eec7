"""Files as memory: mapped when they are touched, and opened for writing only when they are written."""

from __future__ import annotations

import errno
import mmap
import os

from .allocator import Allocator, BufferOptions
from .errors import DeviceError

_MOST_BYTES = 1 << 30  # of one call to read
_NO_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY)


class FileMapping:
    """The first ``nbytes`` bytes of a file.

    Attributes:
      path: the file.
      nbytes: how much of it.
    """

    def __init__(self, path: str, nbytes: int) -> None:
        self.path, self.nbytes = path, nbytes
        self._read: memoryview | None = None
        self._written: memoryview | None = None
        self._held = not hasattr(os, "preadv")  # whether the bytes are to be had through the mapping only

    @classmethod
    def of(cls, view: memoryview, name: str) -> FileMapping:
        """Bytes that are mapped already, or in memory; they may be read only."""
        self = cls(name, view.nbytes)
        self._read, self._held = view.toreadonly(), True
        return self

    def check(self) -> None:
        """Looks whether the file, if it is there, is long enough; opens nothing.

        Raises:
          DeviceError: it is not.
        """
        try:
            self._check_length(os.stat(self.path).st_size)
        except OSError:
            return  # not there yet, or not to be seen: whoever reads or writes it is told

    def reading(self) -> memoryview:
        """The bytes, to be read. Nothing is created, and nothing is opened for writing.

        Raises:
          DeviceError: the file is not there, is shorter, or cannot be read.
        """
        if self._written is not None:
            return self._written.toreadonly()
        if self._read is None:
            try:
                self._read = self._map(os.O_RDONLY, mmap.ACCESS_READ)
            except FileNotFoundError:
                raise DeviceError(f"there is no file {self.path}: reading does not make one") from None
            except (OSError, ValueError) as error:
                raise DeviceError(f"cannot map {self.nbytes} bytes of {self.path}: {error}") from error
        return self._read

    def writing(self) -> memoryview:
        """The bytes, to be written. A file that is missing or empty is made as long as this mapping.

        Raises:
          DeviceError: the file is read-only, is shorter, or cannot be made.
        """
        if self._written is None:
            try:
                self._written = self._map(os.O_RDWR | os.O_CREAT, mmap.ACCESS_WRITE)
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in _NO_WRITING:
                    raise DeviceError(f"{self.path} is read-only: {error.strerror}") from error
                raise DeviceError(f"cannot map {self.nbytes} bytes of {self.path}: {error}") from error
        return self._written

    def read_into(self, dest: memoryview, start: int) -> None:
        """Reads bytes of the file from ``start`` on; what has been mapped is not touched, and a file may shrink.

        Raises:
          DeviceError: the file is not there, ends before, or cannot be read.
        """
        if self._held:
            dest[:] = self.reading()[start : start + dest.nbytes]
            return
        try:
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            try:
                done = 0
                while done < dest.nbytes:
                    count = os.preadv(handle, [dest[done : done + _MOST_BYTES]], start + done)
                    if count == 0:
                        present, asked = os.fstat(handle).st_size, start + dest.nbytes
                        raise DeviceError(f"{self.path} has {present} bytes; {asked} are asked for")
                    done += count
            finally:
                os.close(handle)
        except FileNotFoundError:
            raise DeviceError(f"there is no file {self.path}: reading does not make one") from None
        except OSError as error:
            raise DeviceError(f"cannot read {dest.nbytes} bytes of {self.path}: {error}") from error

    def _map(self, flags: int, access: int) -> memoryview:
        handle = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            present = os.fstat(handle).st_size
            if present == 0 and access == mmap.ACCESS_WRITE:
                os.truncate(handle, self.nbytes)
            elif present < self.nbytes:
                raise DeviceError(f"{self.path} has {present} bytes; {self.nbytes} are asked for")
            return memoryview(mmap.mmap(handle, self.nbytes, access=access))
        finally:
            os.close(handle)

    def _check_length(self, present: int) -> None:
        if 0 < present < self.nbytes:
            raise DeviceError(f"{self.path} has {present} bytes; {self.nbytes} are asked for")


class FileMemory:
    """A range of a mapped file.

    Attributes:
      mapping: the file.
      start: where the range begins in it, in bytes.
      nbytes: its length.
    """

    __slots__ = ("mapping", "nbytes", "start")

    def __init__(self, mapping: FileMapping, start: int, nbytes: int) -> None:
        self.mapping, self.start, self.nbytes = mapping, start, nbytes

    def reading(self, nbytes: int) -> memoryview:
        """The first ``nbytes`` bytes, to be read."""
        return self.mapping.reading()[self.start : self.start + nbytes]

    def writing(self, nbytes: int) -> memoryview:
        """The first ``nbytes`` bytes, to be written."""
        return self.mapping.writing()[self.start : self.start + nbytes]


class FileAllocator(Allocator[FileMemory]):
    """Maps one file. Pages are read when they are touched, and written back by the system.

    Copies to memory that the host reaches are read by calls, which is as fast and survives a file that shrinks; other
    devices read the mapping. Reading past the system's cache (``O_DIRECT``) does not pay: ``python -m bench.files``.

    Args:
      device: the device's name, for messages.
      path: the file.
    """

    supports_offset = True
    counted = False
    reads_into = True

    def __init__(self, device: str, path: str) -> None:
        super().__init__(device)
        self.path = path

    def _alloc(self, nbytes: int, options: BufferOptions) -> FileMemory:
        """Describes the file's first ``nbytes`` bytes; nothing is opened yet.

        Raises:
          DeviceError: the file is shorter, and not empty.
        """
        if options.external_ptr is not None:
            raise TypeError(f"{self.device} cannot use memory that it did not map")
        mapping = FileMapping(self.path, nbytes)
        mapping.check()
        return FileMemory(mapping, 0, nbytes)

    def copyin(self, dest: FileMemory, src: memoryview) -> None:
        """Writes to the file, which is made if it is missing.

        Raises:
          DeviceError: the file is read-only, or cannot be made.
        """
        dest.writing(src.nbytes)[:] = src

    def copyout(self, dest: memoryview, src: FileMemory) -> None:
        """Reads from the file.

        Raises:
          DeviceError: there is no such file, or it cannot be read.
        """
        src.mapping.read_into(dest, src.start)

    def as_buffer(self, opaque: FileMemory, nbytes: int) -> memoryview:
        """The mapping itself, to be read."""
        return opaque.reading(nbytes)

    def as_writable(self, opaque: FileMemory, nbytes: int) -> memoryview:
        """The mapping itself, to be written."""
        return opaque.writing(nbytes)

    def offset(self, opaque: FileMemory, nbytes: int, byte_offset: int) -> FileMemory:
        """A range of the mapping."""
        return FileMemory(opaque.mapping, opaque.start + byte_offset, nbytes)
