"""Memory of an OpenCL device: buffers and sub-buffers, or, where host and device share it, plain pointers (SVM)."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod

from ...errors import DeviceError
from . import api
from .queue import Queue

_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.restype = ctypes.py_object
_from_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ_WRITE = 0x200
_ALWAYS = 1 << 62  # for memory that others use as well: work may always be queued on it


class CLMemory(ABC):
    """A block of the device's memory, or a range of one.

    Attributes:
      nbytes: its size.
      owner: the block that it is a part of.
      parent: the block or range that it was taken from.
      detached: whether a launch works on a copy, which :meth:`attach` writes back.
      used: number of what was queued last that uses the block.
      generation: how often the block was given back.
    """

    __slots__ = ("__weakref__", "detached", "generation", "nbytes", "owner", "parent", "used")

    def __init__(self, nbytes: int, owner: CLMemory | None = None) -> None:
        self.nbytes = nbytes
        self.owner = self.parent = owner
        self.detached = False
        self.used = self.generation = 0

    @property
    def root(self) -> CLMemory:
        """The whole block."""
        return self if self.owner is None else self.owner

    def idle(self, queue: Queue) -> bool:
        """Whether nothing that is queued uses the block."""
        return self.root.used <= queue.done

    def must_detach(self, queue: Queue) -> bool:
        """Whether a launch must work on a copy of it."""
        return False

    @abstractmethod
    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        """Makes it an argument of a kernel; returns the status."""

    def attach(self, queue: Queue) -> None:
        """Queues the copy back that must follow a launch on a detached range.

        Raises:
          DeviceError: if memory of this kind is never detached.
        """
        raise DeviceError(f"{self!r} is never detached")

    @abstractmethod
    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        """Queues a copy from the host, behind everything; with ``blocking``, waits for it."""

    @abstractmethod
    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        """Copies to the host, after all that is queued."""

    @abstractmethod
    def write_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        """Copies from the host to memory that is idle, while the device computes."""

    @abstractmethod
    def read_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        """Copies memory that is idle to the host, while the device computes."""

    @abstractmethod
    def copy_to(self, queue: Queue, dest: CLMemory, nbytes: int) -> bool:
        """Queues a copy to other memory of the device; False where there is no such copy."""

    def copy_from(self, queue: Queue, src: BufferMemory) -> bool:
        """Queues a copy of a buffer; False where there is no such copy."""
        return False

    @abstractmethod
    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> CLMemory:
        """A range of a whole block."""

    def range(self, queue: Queue, nbytes: int, byte_offset: int) -> CLMemory:
        """A range of a block or of a range."""
        found = self.root.part(queue, nbytes, self.first_byte + byte_offset)
        found.parent = self
        return found

    @property
    def first_byte(self) -> int:
        """Where it begins in the whole block."""
        return 0

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

    __slots__ = ("_argument", "_queue", "begin", "handle")

    def __init__(self, queue: Queue, handle: int, nbytes: int, owner: CLMemory | None = None, begin: int = 0) -> None:
        super().__init__(nbytes, owner)
        self._queue, self.handle, self.begin = queue, handle, begin
        self._argument: ctypes.c_void_p | None = ctypes.c_void_p(handle) if owner is None else None

    @classmethod
    def allocate(cls, queue: Queue, nbytes: int) -> BufferMemory:
        return cls(queue, create_buffer(queue, nbytes), nbytes)

    @classmethod
    def adopt(cls, queue: Queue, handle: int, nbytes: int) -> BufferMemory:
        """A buffer that another library made; it is retained.

        Raises:
          CLError: if it is no buffer.
          ValueError: if it belongs to another context, or is smaller than ``nbytes``.
        """
        check_foreign(queue, handle, nbytes)
        found = cls(queue, handle, nbytes)
        found.used = _ALWAYS
        return found

    @property
    def first_byte(self) -> int:
        return self.begin

    def must_detach(self, queue: Queue) -> bool:
        return self.owner is not None and self.begin % queue.alignment != 0

    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        if self._argument is None:
            self._argument = ctypes.c_void_p(self._sub_buffer(queue))
        if self.detached:
            self._copy(queue, self.handle, self._argument.value, self.begin, 0, self.nbytes)
        status: int = api.library().clSetKernelArg(kernel, index, 8, ctypes.byref(self._argument))
        return status

    def _sub_buffer(self, queue: Queue) -> int:
        if self.must_detach(queue):
            self.detached = True
            return create_buffer(queue, self.nbytes)
        region = (ctypes.c_size_t * 2)(self.begin, max(self.nbytes, 1))
        status = ctypes.c_int32()
        handle: int = api.library().clCreateSubBuffer(
            self.handle, api.MEM_READ_WRITE, api.BUFFER_CREATE_TYPE_REGION, region, ctypes.byref(status)
        )
        api.check(status.value, f"a part of {self.nbytes} bytes at byte {self.begin}")
        return handle

    def attach(self, queue: Queue) -> None:
        assert self._argument is not None
        self._copy(queue, self._argument.value, self.handle, 0, self.begin, self.nbytes)

    def _copy(
        self, queue: Queue, src: int | None, dest: int | None, src_begin: int, dest_begin: int, nbytes: int
    ) -> None:
        status = api.library().clEnqueueCopyBuffer(
            queue.handle, src, dest, src_begin, dest_begin, nbytes, 0, None, None
        )
        if status:
            raise queue.failed(status, f"copying {nbytes} bytes on the device")

    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        self._write(queue, queue.handle, address, nbytes, blocking)

    def write_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        self._write(queue, queue.copies, address, nbytes, True)

    def _write(self, queue: Queue, on: int, address: int, nbytes: int, blocking: bool) -> None:
        status = api.library().clEnqueueWriteBuffer(
            on, self.handle, blocking, self.begin, nbytes, address, 0, None, None
        )
        if status:
            raise queue.failed(status, f"copying {nbytes} bytes to the device")

    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        self._read(queue, queue.handle, address, nbytes)

    def read_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        self._read(queue, queue.copies, address, nbytes)

    def _read(self, queue: Queue, on: int, address: int, nbytes: int) -> None:
        status = api.library().clEnqueueReadBuffer(on, self.handle, True, self.begin, nbytes, address, 0, None, None)
        if status:
            raise queue.failed(status, f"copying {nbytes} bytes from the device")

    def copy_to(self, queue: Queue, dest: CLMemory, nbytes: int) -> bool:
        if not isinstance(dest, BufferMemory):
            return dest.copy_from(queue, self)
        if dest.handle == self.handle:
            return False
        self._copy(queue, self.handle, dest.handle, self.begin, dest.begin, nbytes)
        return True

    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> BufferMemory:
        return BufferMemory(queue, self.handle, nbytes, self, byte_offset)

    def release(self, queue: Queue) -> None:
        handle, self.handle = self.handle, 0
        self.generation += 1
        if handle and queue.alive:
            api.library().clReleaseMemObject(handle)

    def __del__(self) -> None:
        # What a range made for kernels is freed with it; whole blocks return through the allocator.
        if self.owner is not None and self._argument is not None and self._queue.alive:
            api.library().clReleaseMemObject(self._argument)


def check_foreign(queue: Queue, handle: int, nbytes: int) -> None:
    """Checks and retains a ``cl_mem`` that another library made.

    Raises:
      CLError: if it is no ``cl_mem``.
      ValueError: if it belongs to another context, or is smaller than ``nbytes``.
    """
    size = api.info_number("clGetMemObjectInfo", (handle,), api.MEM_SIZE)
    if api.info_number("clGetMemObjectInfo", (handle,), api.MEM_CONTEXT) != queue.context:
        raise ValueError(f"the cl_mem {handle:#x} does not belong to the context of {queue.physical.name}")
    if size < nbytes:
        raise ValueError(f"the cl_mem {handle:#x} has {size} bytes; {nbytes} are asked for")
    api.check(api.library().clRetainMemObject(handle), f"a reference to the cl_mem {handle:#x}")


def create_buffer(queue: Queue, nbytes: int, flags: int = api.MEM_READ_WRITE) -> int:
    """A new ``cl_mem``.

    Raises:
      MemoryError: if there is not so much.
    """
    status = ctypes.c_int32()
    handle: int = api.library().clCreateBuffer(queue.context, flags, max(nbytes, 1), None, ctypes.byref(status))
    if status.value in api.NO_MEMORY:
        raise MemoryError(f"clCreateBuffer: {status.value}")
    api.check(status.value, f"a buffer of {nbytes} bytes")
    return handle


class SharedMemory(CLMemory):
    """Fine-grained shared virtual memory: a pointer that means the same to host and device."""

    __slots__ = ("address", "begin")

    def __init__(self, address: int, nbytes: int, owner: CLMemory | None = None, begin: int = 0) -> None:
        super().__init__(nbytes, owner)
        self.address, self.begin = address, begin

    @classmethod
    def allocate(cls, queue: Queue, nbytes: int) -> SharedMemory:
        flags = api.MEM_READ_WRITE | api.MEM_SVM_FINE_GRAIN_BUFFER
        address = api.library().clSVMAlloc(queue.context, flags, max(nbytes, 1), 0)
        if not address:
            raise MemoryError(f"clSVMAlloc refuses {nbytes} bytes")
        return cls(address, nbytes)

    @property
    def first_byte(self) -> int:
        return self.begin

    def bind(self, queue: Queue, kernel: int, index: int) -> int:
        status: int = api.library().clSetKernelArgSVMPointer(kernel, index, self.address)
        return status

    def write(self, queue: Queue, address: int, nbytes: int, blocking: bool) -> None:
        self._copy(queue, self.address, address, nbytes, blocking)

    def read(self, queue: Queue, address: int, nbytes: int) -> None:
        self._copy(queue, address, self.address, nbytes, True)

    def write_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        queue.require()
        ctypes.memmove(self.address, address, nbytes)

    def read_beside(self, queue: Queue, address: int, nbytes: int) -> None:
        queue.require()
        ctypes.memmove(address, self.address, nbytes)

    def _copy(self, queue: Queue, dest: int, src: int, nbytes: int, blocking: bool) -> None:
        status = api.library().clEnqueueSVMMemcpy(queue.handle, blocking, dest, src, nbytes, 0, None, None)
        if status:
            raise queue.failed(status, f"copying {nbytes} bytes")

    def copy_to(self, queue: Queue, dest: CLMemory, nbytes: int) -> bool:
        if not isinstance(dest, SharedMemory) or dest.root is self.root:
            return False
        self._copy(queue, dest.address, self.address, nbytes, False)
        return True

    def part(self, queue: Queue, nbytes: int, byte_offset: int) -> SharedMemory:
        return SharedMemory(self.address + byte_offset, nbytes, self, byte_offset)

    def release(self, queue: Queue) -> None:
        address, self.address = self.address, 0
        self.generation += 1
        if address and queue.alive:
            if not self.idle(queue):
                queue.drain()  # clSVMFree does not wait for kernels that still use the memory
            api.library().clSVMFree(queue.context, address)

    def host_view(self) -> memoryview:
        view: memoryview = _from_memory(self.address, self.nbytes, _READ_WRITE)
        return view
