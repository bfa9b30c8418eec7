"""The bytes that a loader reads: of an open file, or in memory."""

from __future__ import annotations

import os

from tg_dtype import DType
from tg_lazy import LazyBuffer, Storage
from tg_runtime import Buffer
from tg_runtime.memory.files import FileMemory, OpenFile
from tg_shape import prod

from ..host import transfer


class Source:
    """Where the bytes come from: a file that is open, or memory.

    Attributes:
      what: the operation and the file, for messages.
      nbytes: how many there are.

    Args:
      operation: the function that reads.

    Raises:
      OSError: if the file cannot be read, or is no regular one.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes | bytearray | memoryview, operation: str) -> None:
        self.bytes: memoryview | None = None
        self.file: OpenFile | None = None
        self.what = operation
        if isinstance(source, (bytes, bytearray, memoryview)):
            # what may change is copied
            self.bytes = memoryview(source if isinstance(source, bytes) else bytes(source))
            self.nbytes = self.bytes.nbytes
        else:
            path = os.fspath(source)
            self.file = OpenFile(path, self.what)
            self.what, self.nbytes = f"{operation} {path}", self.file.nbytes

    def read(self, begin: int, end: int) -> bytes:
        """Some of the bytes."""
        if self.bytes is not None:
            return bytes(self.bytes[begin:end])
        assert self.file is not None
        out = bytearray(end - begin)
        self.file.read_into(memoryview(out), begin)
        return bytes(out)

    def tensor(self, begin: int, end: int, dtype: DType, shape: tuple[int, ...], device: str) -> LazyBuffer:
        """Some of the bytes as a tensor on a device."""
        if self.bytes is not None:
            return transfer.upload(self.bytes[begin:end], dtype, shape, device, borrow=True)
        assert self.file is not None
        size = prod(shape)
        assert isinstance(size, int)
        disk = f"DISK:{self.file.path}"
        buffer = Buffer(disk, size, dtype, opaque=FileMemory(self.file, begin, end - begin))
        return LazyBuffer.from_storage(Storage(disk, size, dtype, buffer), shape).copy_to(device)
