"""The allocator of an OpenCL device: which kind of memory, and the shortest way of every copy."""

from __future__ import annotations

import ctypes
from typing import Any

from ...device.allocator import Allocator, BufferOptions, LRUAllocator
from .image import ImageMemory
from .memory import BufferMemory, CLMemory, SharedMemory
from .queue import Queue
from .staging import CHUNK_BYTES, Staging

_STAGED_BYTES = 1 << 20  # copies up to this size do not wait for the device


def host_address(view: memoryview) -> int:
    """Where the bytes of a contiguous view lie. The view must outlive the address."""
    if view.readonly:
        raw = ctypes.py_object(view)
        buffer = _PyBuffer()
        if ctypes.pythonapi.PyObject_GetBuffer(raw, ctypes.byref(buffer), 0) != 0:
            raise BufferError("the memory cannot be read")
        address = int(buffer.buf or 0)
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
        return address
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


class _PyBuffer(ctypes.Structure):
    """``Py_buffer`` of the C API."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


ctypes.pythonapi.PyObject_GetBuffer.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
ctypes.pythonapi.PyBuffer_Release.argtypes = (ctypes.c_void_p,)
ctypes.pythonapi.PyBuffer_Release.restype = None


class CLAllocator(LRUAllocator[CLMemory]):
    """Memory of one OpenCL device.

    A copy of memory that no queued work uses does not wait for that work. Large copies to and from a device that is
    not the host's processor go through pinned memory.

    Args:
      device: the device's name, for messages.
      queue: its queue.
      shared: use memory that host and device share.
      limit: bytes that the device has.
      largest: bytes of the largest single block, 0 if the device does not say.

    Attributes:
      pinned: whether large copies go through pinned memory.
    """

    supports_offset = True

    def __init__(self, device: str, queue: Queue, shared: bool, limit: int, largest: int) -> None:
        super().__init__(device, limit or None)
        self.queue, self.shared, self.largest = queue, shared, largest
        self.pinned = not queue.physical.is_cpu
        self.staging = Staging(queue)

    def _alloc(self, nbytes: int, options: BufferOptions) -> CLMemory:
        image = options.image
        if image is not None and self.queue.physical.images:
            if options.external_ptr is not None:
                return ImageMemory.adopt(self.queue, options.external_ptr, image)
            return ImageMemory.allocate(self.queue, image)
        if options.external_ptr is not None:
            return BufferMemory.adopt(self.queue, options.external_ptr, nbytes)
        if self.largest and nbytes > self.largest:
            raise MemoryError(f"the device gives no more than {self.largest} bytes at once")
        return (SharedMemory if self.shared else BufferMemory).allocate(self.queue, nbytes)

    def _free(self, opaque: CLMemory, options: BufferOptions) -> None:
        opaque.release(self.queue)

    def copyin(self, dest: CLMemory, src: memoryview) -> None:
        """Copies host memory to the device. Copies to memory in use are staged, if they are small, and do not wait."""
        queue, nbytes = self.queue, src.nbytes
        idle = dest.idle(queue)
        if nbytes <= _STAGED_BYTES and not (idle and isinstance(dest, SharedMemory)):
            staged = (ctypes.c_char * nbytes).from_buffer_copy(src)
            dest.write(queue, ctypes.addressof(staged), nbytes, blocking=False)
            dest.root.used = max(queue.queued(), dest.root.used)
            queue.keep(staged)
        elif idle:
            dest.write_beside(queue, host_address(src), nbytes)
        elif self.pinned and isinstance(dest, BufferMemory):
            self.staging.write(dest, host_address(src), nbytes)
            dest.root.used = max(queue.queued(), dest.root.used)
        else:
            reached = queue.sequence
            queue.settle()
            dest.write(queue, host_address(src), nbytes, blocking=True)
            queue.done = max(queue.done, reached)

    def copyout(self, dest: memoryview, src: CLMemory) -> None:
        """Copies device memory to the host, after what is queued and uses it."""
        queue = self.queue
        if src.idle(queue):
            src.read_beside(queue, host_address(dest), dest.nbytes)
            return
        reached = queue.sequence
        if self.pinned and isinstance(src, BufferMemory) and dest.nbytes > CHUNK_BYTES:
            self.staging.read(src, host_address(dest), dest.nbytes)
        else:
            queue.settle()
            src.read(queue, host_address(dest), dest.nbytes)
        queue.done = max(queue.done, reached)

    def transfer(self, dest: CLMemory, src: CLMemory, nbytes: int, source: Allocator[Any]) -> bool:
        """Copies on the device; between devices whose memory the host does not reach, through pinned chunks."""
        if source is self:
            if not src.copy_to(self.queue, dest, nbytes):
                return False
            number = self.queue.queued()
            src.root.used = max(number, src.root.used)
            dest.root.used = max(number, dest.root.used)
            return True
        if not isinstance(source, CLAllocator) or not isinstance(src, BufferMemory):
            return False
        if not isinstance(dest, BufferMemory):
            return False
        self.staging.transfer(dest, src, nbytes, source.queue)
        dest.root.used = max(self.queue.queued(), dest.root.used)
        return True

    def as_buffer(self, opaque: CLMemory, nbytes: int) -> memoryview | None:
        """The memory itself, where host and device share it."""
        view = opaque.host_view()
        return None if view is None else view[:nbytes]

    def export(self, opaque: CLMemory, nbytes: int) -> memoryview | None:
        """None: a block may serve again while an exported view lives."""
        return None

    def offset(self, opaque: CLMemory, nbytes: int, byte_offset: int) -> CLMemory:
        """A part of a block."""
        return opaque.part(self.queue, nbytes, byte_offset)
