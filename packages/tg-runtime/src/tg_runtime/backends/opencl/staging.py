"""Pinned chunks between host and device: while one is copied by the device, the other is filled or emptied."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

from . import api
from .memory import BufferMemory, create_buffer
from .queue import Queue

CHUNK_BYTES = 4 << 20


@dataclass
class _Chunk:
    """A piece of host memory that the device reaches by itself.

    Attributes:
      handle: the ``cl_mem`` that keeps it.
      address: where it is mapped.
      event: of the last copy that uses it; 0 if there is none.
    """

    handle: int
    address: int
    event: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)

    def wait(self, queue: Queue) -> None:
        """Waits for the copy."""
        event = self.event
        if event.value:
            code = queue.wait(event)
            self.event = ctypes.c_void_p()  # only now: if the wait was interrupted, the copy goes on
            api.library().clReleaseEvent(event)
            if code:
                raise queue.failed(code, "waiting for a copy")


class Staging:
    """Two chunks, used in turns; made on first use.

    Args:
      queue: of the device.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self._chunks: list[_Chunk] = []
        self._lock = Lock()

    def _pair(self) -> list[_Chunk]:
        if not self._chunks:
            self._chunks = [self._make(), self._make()]
        return self._chunks

    def _make(self) -> _Chunk:
        queue, status = self.queue, ctypes.c_int32()
        handle = create_buffer(queue, CHUNK_BYTES, api.MEM_READ_WRITE | api.MEM_ALLOC_HOST_PTR)
        address = api.library().clEnqueueMapBuffer(
            queue.handle, handle, True, api.MAP_READ_WRITE, 0, CHUNK_BYTES, 0, None, None, ctypes.byref(status)
        )
        api.check(status.value, "mapping pinned memory")
        return _Chunk(handle, address)

    @staticmethod
    def _pieces(nbytes: int) -> Iterator[tuple[int, int, int]]:
        """Number of the chunk, first byte and size of each piece."""
        for number, begin in enumerate(range(0, nbytes, CHUNK_BYTES)):
            yield number % 2, begin, min(CHUNK_BYTES, nbytes - begin)

    def write(self, dest: BufferMemory, address: int, nbytes: int) -> None:
        """Copies from the host; the host's memory may change when this returns, the device may still be copying."""
        with self._lock:
            chunks = self._pair()
            for number, begin, size in self._pieces(nbytes):
                chunk = chunks[number]
                chunk.wait(self.queue)
                ctypes.memmove(chunk.address, address + begin, size)
                self._enqueue_write(dest, begin, chunk, size)

    def read(self, src: BufferMemory, address: int, nbytes: int) -> None:
        """Copies to the host: the device fills a chunk while the one before is emptied."""
        with self._lock:
            chunks = self._pair()
            waiting: list[tuple[_Chunk, int, int]] = []
            for number, begin, size in self._pieces(nbytes):
                chunk = chunks[number]
                chunk.wait(self.queue)
                self._enqueue_read(self.queue, src, begin, chunk, size)
                waiting.append((chunk, begin, size))
                if len(waiting) == 2:
                    self._empty(*waiting.pop(0), address)
            for piece in waiting:
                self._empty(*piece, address)

    def _empty(self, chunk: _Chunk, begin: int, size: int, address: int) -> None:
        chunk.wait(self.queue)
        ctypes.memmove(address + begin, chunk.address, size)

    def transfer(self, dest: BufferMemory, src: BufferMemory, nbytes: int, source: Queue) -> None:
        """Copies from another device: it fills a chunk while this one takes the chunk before."""
        with self._lock:
            chunks = self._pair()
            for number, begin, size in self._pieces(nbytes):
                chunk = chunks[number]
                chunk.wait(self.queue)
                self._enqueue_read(source, src, begin, chunk, size)
                chunk.wait(source)
                self._enqueue_write(dest, begin, chunk, size)
            source.done = max(source.done, src.root.used if src.root.used <= source.sequence else 0)

    def _enqueue_write(self, dest: BufferMemory, begin: int, chunk: _Chunk, size: int) -> None:
        queue, event = self.queue, ctypes.c_void_p()
        code = api.library().clEnqueueWriteBuffer(
            queue.handle, dest.handle, False, dest.begin + begin, size, chunk.address, 0, None, ctypes.byref(event)
        )
        if code:
            raise queue.failed(code, f"copying {size} bytes to the device")
        chunk.event = event
        api.library().clFlush(queue.handle)

    @staticmethod
    def _enqueue_read(queue: Queue, src: BufferMemory, begin: int, chunk: _Chunk, size: int) -> None:
        event = ctypes.c_void_p()
        code = api.library().clEnqueueReadBuffer(
            queue.handle, src.handle, False, src.begin + begin, size, chunk.address, 0, None, ctypes.byref(event)
        )
        if code:
            raise queue.failed(code, f"copying {size} bytes from the device")
        chunk.event = event
        api.library().clFlush(queue.handle)

    def __del__(self) -> None:
        if self._chunks and self.queue.alive:
            for chunk in self._chunks:
                api.library().clReleaseMemObject(chunk.handle)
