"""Memory of an OpenCL device: buffers and sub-buffers, or, where host and device share it, plain pointers (SVM)."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod

from ..allocator import BufferOptions, LRUAllocator
from . import api
from .queue import Queue

_STAGED_BYTES = 1 << 20  # copies up to this size do not wait for the device

_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.restype = ctypes.py_object
_from_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ_WRITE = 0x200


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


class CLMemory(ABC):
    """A range of a device's memory.

    Attributes:
      nbytes: its size.
      owner: the block that it is a part of.
      detached: whether a launch works on a copy, which :meth:`attach` writes back.
    """

    __slots__ = ("__weakref__", "detached", "nbytes", "owner")

    def __init__(self, nbytes: int, owner: CLMemory | None = None) -> None:
        self.nbytes = nbytes
        self.owner = owner
        self.detached = False

    @abstractmethod
    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        """Makes it an argument of a kernel; returns the status."""

    @abstractmethod
    def attach(self, queue: Queue) -> None:
        """Queues what a launch on a detached range must be followed by."""

    @abstractmethod
    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        """Queues a copy from the host."""

    @abstractmethod
    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        """Copies to the host, after all that is queued."""

    @abstractmethod
    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> CLMemory:
        """A range of a whole block."""

    @abstractmethod
    def release(self, queue: Queue) -> None:
        """Gives the memory back."""

    def host_view(self) -> memoryview | None:
        """The bytes themselves, where the host can reach them."""
        return None


class BufferMemory(CLMemory):
    """A ``cl_mem``, or a range of one.

    For a kernel a range is a sub-buffer where the device's alignment allows one to begin there. Elsewhere the kernel
    is given a copy, which is written back after it.
    """

    __slots__ = ("_argument", "begin", "handle")

    def __init__(self, handle: int, nbytes: int, owner: CLMemory | None = None, begin: int = 0) -> None:
        super().__init__(nbytes, owner)
        self.handle, self.begin = handle, begin
        self._argument: ctypes.c_void_p | None = ctypes.c_void_p(handle) if owner is None else None

    @classmethod
    def allocate(cls, queue: Queue, nbytes: int) -> BufferMemory:
        return cls(_create_buffer(queue, nbytes), nbytes)

    @classmethod
    def adopt(cls, queue: Queue, handle: int, nbytes: int) -> BufferMemory:
        """A buffer of somebody else's, of which a reference is taken.

        Raises:
          CLError: it is no buffer.
          ValueError: it belongs to another context, or is smaller than ``nbytes``.
        """
        size = api.info_number("clGetMemObjectInfo", (handle,), api.MEM_SIZE)
        if api.info_number("clGetMemObjectInfo", (handle,), api.MEM_CONTEXT) != queue.context:
            raise ValueError(f"the cl_mem {handle:#x} does not belong to the context of {queue.physical.name}")
        if size < nbytes:
            raise ValueError(f"the cl_mem {handle:#x} has {size} bytes; {nbytes} are asked for")
        api.check(api.library().clRetainMemObject(handle), f"a reference to the cl_mem {handle:#x}")
        return cls(handle, nbytes)

    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        if self._argument is None:
            self._argument = ctypes.c_void_p(self._sub_buffer(queue))
        if self.detached:
            self._copy(queue, self.handle, self._argument.value, self.begin, 0)
        status: int = api.library().clSetKernelArg(kernel, index, 8, ctypes.byref(self._argument))
        return status

    def _sub_buffer(self, queue: Queue) -> int:
        if self.begin % queue.alignment:
            self.detached = True
            return _create_buffer(queue, self.nbytes)
        region = (ctypes.c_size_t * 2)(self.begin, max(self.nbytes, 1))
        status = ctypes.c_int32()
        handle: int = api.library().clCreateSubBuffer(
            self.handle, api.MEM_READ_WRITE, api.BUFFER_CREATE_TYPE_REGION, region, ctypes.byref(status)
        )
        api.check(status.value, f"a part of {self.nbytes} bytes at byte {self.begin}")
        return handle

    def attach(self, queue: Queue) -> None:
        assert self._argument is not None
        self._copy(queue, self._argument.value, self.handle, 0, self.begin)

    def _copy(self, queue: Queue, src: int | None, dest: int | None, src_begin: int, dest_begin: int) -> None:
        status = api.library().clEnqueueCopyBuffer(
            queue.handle, src, dest, src_begin, dest_begin, self.nbytes, 0, None, None
        )
        api.check(status, f"copying {self.nbytes} bytes on the device")

    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        status = api.library().clEnqueueWriteBuffer(
            queue.handle, self.handle, blocking, self.begin, nbytes, address, 0, None, None
        )
        api.check(status, f"copying {nbytes} bytes to the device")

    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        status = api.library().clEnqueueReadBuffer(
            queue.handle, self.handle, True, self.begin, nbytes, address, 0, None, None
        )
        api.check(status, f"copying {nbytes} bytes from the device")

    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> BufferMemory:
        return BufferMemory(self.handle, nbytes, self, byte_offset)

    def release(self, queue: Queue) -> None:
        handle, self.handle = self.handle, 0
        if handle:
            api.library().clReleaseMemObject(handle)

    def __del__(self) -> None:
        # What a range made for kernels goes with it; whole blocks go back through the allocator.
        if self.owner is not None and self._argument is not None:
            api.library().clReleaseMemObject(self._argument)


def _create_buffer(queue: Queue, nbytes: int) -> int:
    status = ctypes.c_int32()
    handle: int = api.library().clCreateBuffer(
        queue.context, api.MEM_READ_WRITE, max(nbytes, 1), None, ctypes.byref(status)
    )
    if status.value in api.NO_MEMORY:
        raise MemoryError(f"clCreateBuffer: {status.value}")
    api.check(status.value, f"a buffer of {nbytes} bytes")
    return handle


class SharedMemory(CLMemory):
    """Fine-grained shared virtual memory: a pointer that means the same to host and device."""

    __slots__ = ("address",)

    def __init__(self, address: int, nbytes: int, owner: CLMemory | None = None) -> None:
        super().__init__(nbytes, owner)
        self.address = address

    @classmethod
    def allocate(cls, queue: Queue, nbytes: int) -> SharedMemory:
        flags = api.MEM_READ_WRITE | api.MEM_SVM_FINE_GRAIN_BUFFER
        address = api.library().clSVMAlloc(queue.context, flags, max(nbytes, 1), 0)
        if not address:
            raise MemoryError(f"clSVMAlloc refuses {nbytes} bytes")
        return cls(address, nbytes)

    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        status: int = api.library().clSetKernelArgSVMPointer(kernel, index, self.address)
        return status

    def attach(self, queue: Queue) -> None:
        """Nothing: a range is never detached."""

    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        self._copy(queue, self.address, address, nbytes, blocking)

    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        self._copy(queue, address, self.address, nbytes, True)

    def _copy(self, queue: Queue, dest: int, src: int, nbytes: int, blocking: bool) -> None:
        status = api.library().clEnqueueSVMMemcpy(queue.handle, blocking, dest, src, nbytes, 0, None, None)
        api.check(status, f"copying {nbytes} bytes")

    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> SharedMemory:
        return SharedMemory(self.address + byte_offset, nbytes, self)

    def release(self, queue: Queue) -> None:
        address, self.address = self.address, 0
        if address:
            queue.finish()  # clSVMFree does not wait for kernels that still use the memory
            api.library().clSVMFree(queue.context, address)

    def host_view(self) -> memoryview:
        view: memoryview = _from_memory(self.address, self.nbytes, _READ_WRITE)
        return view


class CLAllocator(LRUAllocator[CLMemory]):
    """Memory of one OpenCL device.

    Args:
      device: the device's name, for messages.
      queue: its queue.
      shared: use memory that host and device share.
      limit: bytes that the device has.
      largest: bytes of the largest single block, 0 if the device does not say.
    """

    supports_offset = True

    def __init__(self, device: str, queue: Queue, shared: bool, limit: int, largest: int) -> None:
        super().__init__(device, limit or None)
        self.queue, self.shared, self.largest = queue, shared, largest

    def _alloc(self, nbytes: int, options: BufferOptions) -> CLMemory:
        if options.external_ptr is not None:
            return BufferMemory.adopt(self.queue, options.external_ptr, nbytes)
        if self.largest and nbytes > self.largest:
            raise MemoryError(f"the device gives no more than {self.largest} bytes at once")
        return (SharedMemory if self.shared else BufferMemory).allocate(self.queue, nbytes)

    def _free(self, opaque: CLMemory, options: BufferOptions) -> None:
        opaque.release(self.queue)

    def copyin(self, dest: CLMemory, src: memoryview) -> None:
        """Copies host memory to the device. Small copies are staged and do not wait."""
        if src.nbytes <= _STAGED_BYTES:
            staged = (ctypes.c_char * src.nbytes).from_buffer_copy(src)
            dest.write(self.queue, ctypes.addressof(staged), src.nbytes, blocking=False)
            self.queue.keep(staged)
        else:
            dest.write(self.queue, host_address(src), src.nbytes, blocking=True)

    def copyout(self, dest: memoryview, src: CLMemory) -> None:
        """Copies device memory to the host, after all that is queued."""
        src.read(self.queue, host_address(dest), dest.nbytes)

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
