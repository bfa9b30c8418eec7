"""The boundary to the operating system: files with ioctl and mmap, and typed views of memory at an address.

A :class:`~tg_hcq.core.system.System` hands them out. A software device puts a subclass of ``FileIO`` in its place,
whose ioctl is a function, and the driver does not know. An ``MMIO`` is always memory: nobody is called when it is
stored to.
"""

from __future__ import annotations

import ctypes
import os
import sys
from array import array
from typing import Final, Literal, Self, TypeAlias

Format: TypeAlias = Literal["B", "H", "I", "Q"]

_ITEMSIZE: Final[dict[Format, int]] = {"B": 1, "H": 2, "I": 4, "Q": 8}
_WRITABLE: Final = 0x200  # PyBUF_WRITE

_view_of_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of_memory.restype = ctypes.py_object
_view_of_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def memory_at(address: int, nbytes: int) -> memoryview:
    """The ``nbytes`` bytes at ``address``, writable. The caller keeps the memory alive.

    Raises:
      ValueError: if ``nbytes`` is negative, or the address is null while there are bytes.
    """
    if nbytes < 0 or (address == 0 and nbytes):
        raise ValueError(f"no view of {nbytes} bytes at address {address:#x}")
    view: memoryview = _view_of_memory(address, nbytes, _WRITABLE)
    return view


class MMIO:
    """Memory at an address, read and written in units of 1, 2, 4 or 8 bytes, each with one access.

    Attributes:
      address: of the first byte.
      nbytes: size in bytes.
      fmt: ``"B"``, ``"H"``, ``"I"`` or ``"Q"``: unsigned, in the machine's byte order.

    Example:
      >>> memory = bytearray(16)
      >>> registers = MMIO.of(memory, "I")
      >>> registers[1] = 0x12345678
      >>> bytes(memory[4:8]), len(registers), hex(registers.view(4, 2, "H")[0])
      (b'xV4\\x12', 4, '0x5678')
    """

    __slots__ = ("_memory", "_owner", "address", "fmt", "nbytes")

    def __init__(self, address: int, nbytes: int, fmt: Format = "B", owner: object = None) -> None:
        """A view of ``nbytes`` bytes; ``owner`` is kept alive with it.

        Raises:
          ValueError: if the format is unknown, or the address or size is no multiple of its unit.
        """
        unit = _ITEMSIZE.get(fmt)
        if unit is None:
            raise ValueError(f"MMIO: format {fmt!r} is none of {', '.join(_ITEMSIZE)}")
        if address % unit or nbytes % unit:
            raise ValueError(f"MMIO: {nbytes} bytes at {address:#x} are not whole units of {unit} bytes")
        self.address, self.nbytes, self.fmt, self._owner = address, nbytes, fmt, owner
        self._memory: memoryview[int] = memory_at(address, nbytes).cast(fmt)

    @classmethod
    def of(cls, buffer: bytearray | memoryview | ctypes.Array[ctypes.c_uint8], fmt: Format = "B") -> Self:
        """A view of a writable Python buffer, which it keeps alive."""
        nbytes = memoryview(buffer).nbytes
        anchor = (ctypes.c_char * nbytes).from_buffer(buffer)
        return cls(ctypes.addressof(anchor), nbytes, fmt, anchor)

    def __len__(self) -> int:
        return len(self._memory)

    def __getitem__(self, index: int) -> int:
        value: int = self._memory[index]
        return value

    def __setitem__(self, index: int, value: int) -> None:
        self._memory[index] = value

    def read(self, start: int, count: int) -> list[int]:
        """``count`` units from index ``start``."""
        units: list[int] = self._memory[start : start + count].tolist()
        return units

    def write(self, start: int, units: bytes | bytearray | memoryview | array[int]) -> None:
        """Stores bytes, whole units of them, from index ``start`` on."""
        source = memoryview(units).cast("B")
        self._memory.cast("B")[start * self._memory.itemsize :][: len(source)] = source

    def view(self, offset: int = 0, nbytes: int | None = None, fmt: Format | None = None) -> Self:
        """The part from byte ``offset`` on, as another format where one is given.

        Raises:
          ValueError: if the part reaches outside.
        """
        size = self.nbytes - offset if nbytes is None else nbytes
        if offset < 0 or size < 0 or offset + size > self.nbytes:
            raise ValueError(f"MMIO: {size} bytes at {offset} of {self.nbytes}")
        return type(self)(self.address + offset, size, fmt or self.fmt, self)

    def bytes(self) -> memoryview:
        """The memory as plain bytes; the view must outlive it."""
        return self._memory.cast("B")

    def __repr__(self) -> str:
        return f"<MMIO {self.nbytes} bytes at {self.address:#x} as {self.fmt}>"


class FileIO:
    """A file, device node or directory of the operating system.

    Attributes:
      path: what was opened.
      fd: the descriptor, -1 once closed.

    Example:
      >>> with FileIO("/dev/null", os.O_RDWR) as null:
      ...     null.write(b"nothing"), null.read(4)
      (7, b'')
    """

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        """Opens ``path``.

        Raises:
          OSError: if it cannot be opened.
        """
        self.path, self.fd = path, -1
        self.fd = self._open(path, flags)

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)

    def ioctl(self, request: int, argument: ctypes.Structure | ctypes.Array[ctypes.c_uint8] | int = 0) -> int:
        """Calls ioctl; a ctypes argument is passed by address and changed in place.

        Returns:
          what the call returned, never negative.

        Raises:
          OSError: if the call fails; the message holds the path and the request.
        """
        from fcntl import ioctl  # not on every system

        try:
            if isinstance(argument, int):
                result: int = ioctl(self.fd, request, argument)
                return result
            if ctypes.sizeof(argument) <= 1024:
                result = ioctl(self.fd, request, argument, True)
                return result
            # the module copies no more than 1024 bytes; beyond that the call itself must write to the memory
            return self._raw_ioctl(request, ctypes.addressof(argument))
        except OSError as error:
            raise OSError(error.errno, f"ioctl {request:#x}: {error.strerror}", self.path) from None

    def _raw_ioctl(self, request: int, address: int) -> int:
        result: int = _libc().ioctl(self.fd, ctypes.c_ulong(request), ctypes.c_void_p(address))
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def mmap(self, address: int, nbytes: int, prot: int, flags: int, offset: int = 0) -> int:
        """Maps ``nbytes`` bytes of the file from ``offset`` on; ``address`` is a hint, or binding with MAP_FIXED.

        Returns:
          the address of the mapping.

        Raises:
          OSError: if it cannot be mapped.
        """
        return _mmap(address, nbytes, prot, flags, self.fd, offset, self.path)

    def read(self, nbytes: int, offset: int | None = None) -> bytes:
        """At most ``nbytes`` bytes: from ``offset``, or from where the last read ended."""
        return os.read(self.fd, nbytes) if offset is None else os.pread(self.fd, nbytes, offset)

    def write(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> int:
        """Writes at ``offset``, or where the last write ended; returns how many bytes were taken."""
        return os.write(self.fd, data) if offset is None else os.pwrite(self.fd, data, offset)

    def close(self) -> None:
        """Closes the file. Closing twice does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "fd", -1) >= 0:
            self.close()

    def __repr__(self) -> str:
        return f"<FileIO {self.path} fd {self.fd}>"


_MAP_ANONYMOUS: Final = 0x1000 if sys.platform == "darwin" else 0x20


def map_pages(address: int, nbytes: int, prot: int, flags: int) -> int:
    """Maps ``nbytes`` bytes that belong to no file, zeroed; returns their address.

    Raises:
      OSError: if there is no memory.
    """
    return _mmap(address, nbytes, prot, flags | _MAP_ANONYMOUS, -1, 0, "anonymous memory")


def unmap_pages(address: int, nbytes: int) -> None:
    """Takes a mapping back.

    Raises:
      OSError: if the range is none.
    """
    if _libc().munmap(ctypes.c_void_p(address), ctypes.c_size_t(nbytes)) != 0:
        raise OSError(ctypes.get_errno(), f"munmap: {os.strerror(ctypes.get_errno())}", f"{address:#x}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mmap(address: int, nbytes: int, prot: int, flags: int, fd: int, offset: int, what: str) -> int:
    call = _libc().mmap
    call.restype = ctypes.c_void_p
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    found: int | None = call(address, nbytes, prot, flags, fd, offset)
    if found is None or found == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, f"mmap of {nbytes} bytes at offset {offset}: {os.strerror(error)}", what)
    return found
