"""Files as memory: read and written by calls when they are wanted, and opened for writing only when they are written.

Calls tell what goes wrong: a file that shrinks, or a file system that is full, is an error. Of memory that is mapped it
would be a signal, which ends the process.
"""

from __future__ import annotations

import errno
import os
import stat

from ..device.allocator import Allocator, BufferOptions
from ..errors import DeviceError

_MOST_BYTES = 1 << 30  # of one call to read or write
_NO_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY)
# a FIFO does not keep us waiting for its other end
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)

_KINDS = {
    stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a symbolic link",
}  # fmt: skip


def require_regular(found: os.stat_result, path: str, what: str) -> None:
    """Does nothing where a file is a regular one.

    Args:
      found: what ``stat`` tells of it.
      path: its name, for the message.
      what: the operation, likewise.

    Raises:
      IsADirectoryError: if it is a directory.
      OSError: if it is a FIFO, a device or a socket.
    """
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        number = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise OSError(number, f"{what} wants a regular file, this is {kind}", path)


def read_exactly(handle: int, dest: memoryview, start: int, path: str) -> None:
    """Fills ``dest`` from an open file.

    Raises:
      DeviceError: if the file ends before.
      OSError: if it cannot be read.
    """
    done = 0
    while done < dest.nbytes:
        part = dest[done : done + _MOST_BYTES]
        if hasattr(os, "preadv"):
            count = os.preadv(handle, [part], start + done)
        else:
            os.lseek(handle, start + done, os.SEEK_SET)
            data = os.read(handle, part.nbytes)
            count = len(data)
            part[:count] = data
        if count == 0:
            raise DeviceError(f"{path} has {os.fstat(handle).st_size} bytes; {start + dest.nbytes} are asked for")
        done += count


def write_exactly(handle: int, src: memoryview, start: int) -> None:
    """Writes all of ``src`` to an open file.

    Raises:
      OSError: if it cannot be written; no space is left, for one.
    """
    done = 0
    while done < src.nbytes:
        part = src[done : done + _MOST_BYTES]
        if hasattr(os, "pwrite"):
            done += os.pwrite(handle, part, start + done)
        else:
            os.lseek(handle, start + done, os.SEEK_SET)
            done += os.write(handle, part)


class File:
    """The first ``nbytes`` bytes of whatever file has a name when they are wanted.

    Attributes:
      path: its name.
      nbytes: how much of it.

    Args:
      mode: the permissions of a file that is made.
      follow: whether the name may be that of a symbolic link.
    """

    def __init__(self, path: str, nbytes: int, mode: int = 0o666, follow: bool = True) -> None:
        self.path, self.nbytes = path, nbytes
        self._mode, self._flags = mode, _FLAGS | (0 if follow else getattr(os, "O_NOFOLLOW", 0))

    def check(self) -> None:
        """Looks whether the file, if it is there, is long enough; opens nothing.

        Raises:
          DeviceError: if it is not, or it is no regular file.
        """
        try:
            found = os.stat(self.path)
        except OSError:
            return  # not there yet, or not to be seen: whoever reads or writes it is told
        self._check(found)

    def _require_regular(self, found: os.stat_result) -> None:
        try:
            require_regular(found, self.path, "DISK")
        except OSError as error:
            raise DeviceError(f"{self.path}: {error.strerror}") from None

    def _check(self, found: os.stat_result) -> None:
        self._require_regular(found)
        if 0 < found.st_size < self.nbytes:
            raise DeviceError(f"{self.path} has {found.st_size} bytes; {self.nbytes} are asked for")

    def read_into(self, dest: memoryview, start: int) -> None:
        """Reads bytes of the file from ``start`` on. Nothing is created, and nothing is opened for writing.

        Raises:
          DeviceError: if the file is not there, ends before, or cannot be read.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | self._flags)
            try:
                self._require_regular(os.fstat(handle))
                read_exactly(handle, dest, start, self.path)
            finally:
                os.close(handle)
        except FileNotFoundError:
            raise DeviceError(f"there is no file {self.path}: reading does not make one") from None
        except OSError as error:
            raise DeviceError(f"cannot read {dest.nbytes} bytes of {self.path}: {error}") from error

    def write_from(self, src: memoryview, start: int) -> None:
        """Writes bytes of the file from ``start`` on. A file that is missing or empty is made as long as this one.

        Raises:
          DeviceError: if the file is read-only, is shorter, or cannot be made.
          OSError: if it cannot be written: no space is left, or a limit is reached. A file that was to be made is not.
        """
        try:
            handle, made = self._open_to_write()
        except OSError as error:
            if error.errno in _NO_WRITING:
                raise DeviceError(f"{self.path} is read-only: {error.strerror}") from error
            raise DeviceError(f"cannot write {src.nbytes} bytes of {self.path}: {error}") from error
        try:
            found = os.fstat(handle)
            self._check(found)
            try:
                if found.st_size == 0:
                    self._reserve(handle)
                write_exactly(handle, src, start)
            except OSError as error:
                if made:
                    os.unlink(self.path)
                elif found.st_size == 0:
                    os.ftruncate(handle, 0)
                raise OSError(error.errno, f"cannot write {src.nbytes} bytes: {error.strerror}", self.path) from None
        finally:
            os.close(handle)

    def _open_to_write(self) -> tuple[int, bool]:
        """The open file, and whether it was made."""
        while True:
            try:
                return os.open(self.path, os.O_RDWR | self._flags), False
            except FileNotFoundError:
                pass
            try:
                return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | self._flags, self._mode), True
            except FileExistsError:
                if os.path.islink(self.path):  # that leads nowhere
                    return os.open(self.path, os.O_RDWR | os.O_CREAT | self._flags, self._mode), False

    def _reserve(self, handle: int) -> None:
        """Takes the space of the whole file, so that a part that is written later finds some."""
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(handle, 0, self.nbytes)
                return
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
        os.ftruncate(handle, self.nbytes)

    def mapped(self) -> memoryview:
        """The bytes, mapped, to be read by devices that copy from nowhere else; the file must not shrink meanwhile.

        Raises:
          DeviceError: if the file is not there, is shorter, or cannot be read.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | self._flags)
            try:
                return self._map(handle)
            finally:
                os.close(handle)
        except FileNotFoundError:
            raise DeviceError(f"there is no file {self.path}: reading does not make one") from None
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot map {self.nbytes} bytes of {self.path}: {error}") from error

    def _map(self, handle: int) -> memoryview:
        import mmap  # not for the start of every program

        found = os.fstat(handle)
        self._check(found)
        if found.st_size < self.nbytes:
            raise DeviceError(f"{self.path} has {found.st_size} bytes; {self.nbytes} are asked for")
        return memoryview(mmap.mmap(handle, self.nbytes, access=mmap.ACCESS_READ))


class OpenFile(File):
    """A file that was opened for reading: what it holds then, even if its name becomes another file's, or nobody's.

    Raises:
      OSError: if it cannot be opened, or is no regular file.
    """

    def __init__(self, path: str, what: str) -> None:
        self._handle = -1
        handle = os.open(path, os.O_RDONLY | _FLAGS)
        self._handle = handle
        found = os.fstat(handle)
        require_regular(found, path, what)
        super().__init__(path, found.st_size)
        self._stamp = found.st_size, found.st_mtime_ns

    def check(self) -> None:
        """Does nothing: the file is open."""

    def read_into(self, dest: memoryview, start: int) -> None:
        """Reads bytes of the file from ``start`` on.

        Raises:
          DeviceError: if the file was written to since it was opened, or cannot be read.
        """
        try:
            read_exactly(self._handle, dest, start, self.path)
            self._require_unchanged()
        except OSError as error:
            raise DeviceError(f"cannot read {dest.nbytes} bytes of {self.path}: {error}") from error

    def _require_unchanged(self) -> None:
        found = os.fstat(self._handle)
        if (found.st_size, found.st_mtime_ns) != self._stamp:
            raise DeviceError(f"{self.path} was written to since it was opened, and not all of it had been read")

    def write_from(self, src: memoryview, start: int) -> None:
        """Raises.

        Raises:
          DeviceError: on every call.
        """
        raise DeviceError(f"{self.path} was opened for reading")

    def mapped(self) -> memoryview:
        """The bytes, mapped, to be read; the file must not shrink meanwhile.

        Raises:
          DeviceError: if the file was written to since it was opened, or cannot be mapped.
        """
        try:
            self._require_unchanged()
            return self._map(self._handle)
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot map {self.nbytes} bytes of {self.path}: {error}") from error

    def __del__(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


class FileMemory:
    """A range of a file.

    Attributes:
      file: the file.
      start: where the range begins in it, in bytes.
      nbytes: its length.
    """

    __slots__ = ("file", "nbytes", "start")

    def __init__(self, file: File, start: int, nbytes: int) -> None:
        self.file, self.start, self.nbytes = file, start, nbytes


class FileAllocator(Allocator[FileMemory]):
    """One file. It is read and written by calls, which is as fast as by a mapping; only devices that cannot copy to a
    part of their memory read a mapping. Reading past the system's cache (``O_DIRECT``) does not pay:
    ``python -m bench.files``.

    Args:
      device: the device's name, for messages.
      path: the file.
      mode: the permissions of a file that is made.
      follow: whether the path may be that of a symbolic link.
    """

    supports_offset = True
    counted = False
    reads_into = True

    def __init__(self, device: str, path: str, mode: int = 0o666, follow: bool = True) -> None:
        super().__init__(device)
        self.path, self._mode, self._follow = path, mode, follow

    def _alloc(self, nbytes: int, options: BufferOptions) -> FileMemory:
        """Describes the file's first ``nbytes`` bytes; nothing is opened yet.

        Raises:
          DeviceError: if the file is shorter, and not empty; or it is no regular file.
        """
        if options.external_ptr is not None:
            raise TypeError(f"{self.device} cannot use memory that it did not map")
        file = File(self.path, nbytes, self._mode, self._follow)
        file.check()
        return FileMemory(file, 0, nbytes)

    def copyin(self, dest: FileMemory, src: memoryview) -> None:
        """Writes to the file, which is made if it is missing.

        Raises:
          DeviceError: if the file is read-only, or cannot be made.
          OSError: if it cannot be written: no space is left, or a limit is reached.
        """
        dest.file.write_from(src, dest.start)

    def copyout(self, dest: memoryview, src: FileMemory) -> None:
        """Reads from the file.

        Raises:
          DeviceError: if there is no such file, or it cannot be read.
        """
        src.file.read_into(dest, src.start)

    def as_buffer(self, opaque: FileMemory, nbytes: int) -> memoryview:
        """A mapping of the file, to be read at once: see :meth:`File.mapped`."""
        return opaque.file.mapped()[opaque.start : opaque.start + nbytes]

    def as_writable(self, opaque: FileMemory, nbytes: int) -> memoryview | None:
        """None: a file system that is full would end who writes to a mapping."""
        return None

    def export(self, opaque: FileMemory, nbytes: int) -> memoryview | None:
        """None: a file that shrinks would end who reads a mapping."""
        return None

    def offset(self, opaque: FileMemory, nbytes: int, byte_offset: int) -> FileMemory:
        """A range of the file."""
        return FileMemory(opaque.file, opaque.start + byte_offset, nbytes)
