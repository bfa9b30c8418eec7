"""Memory of a Metal device: buffers in shared storage, which the host reads and writes in place."""

from __future__ import annotations

import ctypes
import mmap

from ...device.allocator import Allocator, BufferOptions, LRUAllocator
from ...memory.mapped import MappedMemory
from . import api
from .context import Context
from .queue import Queue

_GIVEN_BACK = 0


class MetalMemory(MappedMemory):
    """A buffer, or a range of one.

    Attributes:
      handle: ``MTLBuffer``.
      begin: where the range begins in it, in bytes.
      address: where the range begins for the host.
      nbytes: its size.
      owner: the block that it is a part of, None for a whole one.
      used: of a whole block: the number of the last command buffer that uses it.
      kept: what keeps memory of somebody else's alive.
    """

    __slots__ = ("begin", "context", "handle", "kept", "owner", "used")

    def __init__(
        self, context: Context, handle: int, address: int, nbytes: int, begin: int = 0,
        owner: MetalMemory | None = None, kept: object = None,
    ) -> None:  # fmt: skip
        self.context, self.handle, self.address, self.nbytes = context, handle, address, nbytes
        self.begin, self.owner, self.kept = begin, owner, kept
        self.used = 0
        self._exports = ()

    @property
    def block(self) -> MetalMemory:
        """The whole block."""
        return self if self.owner is None else self.owner

    def moved(self) -> MetalMemory:
        """Moves the buffer to a new object; this one is left empty."""
        handle, self.handle = self.handle, _GIVEN_BACK
        found = MetalMemory(self.context, handle, self.address, self.nbytes, self.begin)
        found.used = self.used
        return found

    def release(self) -> None:
        """Gives the buffer back. The device keeps it until it is done with it."""
        handle, self.handle = self.handle, _GIVEN_BACK
        if handle and self.owner is None and self.context.mine:
            self.context.objc.send(handle, "release")

    def __del__(self) -> None:
        if getattr(self, "owner", self) is None:
            self.release()


class MetalAllocator(LRUAllocator[MetalMemory]):
    """Memory of one Metal device.

    ``external_ptr`` is an address of the host's: its pages become a buffer, with no copy. Metal wants memory that was
    mapped (``mmap``, ``vm_allocate``) and refuses what ``malloc`` gave.

    Args:
      device: the device's name, for messages.
      queue: of the device.
    """

    supports_offset = True

    def __init__(self, device: str, queue: Queue) -> None:
        super().__init__(device, queue.context.memory_bytes or None)
        self.queue, self.context, self.objc = queue, queue.context, queue.objc
        self.largest = self.context.largest_bytes

    def _alloc(self, nbytes: int, options: BufferOptions) -> MetalMemory:
        self.context.enter()
        if options.external_ptr is not None:
            return self._adopt(options.external_ptr, nbytes, options)
        if nbytes > self.largest:
            raise MemoryError(f"the device has no buffers of more than {self.largest} bytes")
        handle = self.objc.send(self.context.handle, "newBufferWithLength:options:", max(nbytes, 1), api.STORAGE_SHARED)
        if not handle:
            raise MemoryError("Metal gives no more memory")
        return MetalMemory(self.context, handle, self.objc.send(handle, "contents"), nbytes)

    def _adopt(self, address: int, nbytes: int, options: BufferOptions) -> MetalMemory:
        page = mmap.PAGESIZE
        begin = address % page
        length = -(-(begin + max(nbytes, 1)) // page) * page
        selector = "newBufferWithBytesNoCopy:length:options:deallocator:"
        handle = self.objc.send(
            self.context.handle, selector, address - begin, length, api.STORAGE_SHARED, None
        )
        if not handle:
            raise api.MetalError(
                f"Metal: {self.context.name} cannot use {nbytes} bytes at {address:#x} in place: it takes pages that "
                "were mapped as one (mmap, vm_allocate), not what malloc gave; copy them"
            )
        return MetalMemory(self.context, handle, address, nbytes, begin, kept=options)

    def _free(self, opaque: MetalMemory, options: BufferOptions) -> None:
        if options.external_ptr is not None:
            self.queue.wait(opaque.used)  # its owner may unmap it now
        if not opaque.exported:
            opaque.release()

    def recycle(self, opaque: MetalMemory) -> MetalMemory | None:
        """The block's buffer, unless a view of it is in other hands."""
        return None if opaque.exported else opaque.moved()

    def copyin(self, dest: MetalMemory, src: memoryview) -> None:
        """Copies host memory, once the device is done with what used the block."""
        self.queue.wait(dest.block.used)
        dest.view(src.nbytes)[:] = src

    def copyout(self, dest: memoryview, src: MetalMemory) -> None:
        """Copies to host memory, once the device is done with what used the block."""
        self.queue.wait(src.block.used)
        dest[:] = src.view(dest.nbytes)

    def as_buffer(self, opaque: MetalMemory, nbytes: int) -> memoryview:
        """The memory itself, once the device is done with what used the block."""
        self.queue.wait(opaque.block.used)
        return opaque.view(nbytes)

    def export(self, opaque: MetalMemory, nbytes: int) -> memoryview:
        """The memory itself, kept from others while the view lives."""
        self.queue.wait(opaque.block.used)
        return opaque.export(nbytes)

    def offset(self, opaque: MetalMemory, nbytes: int, byte_offset: int) -> MetalMemory:
        """A part of a block, which it keeps alive."""
        return MetalMemory(
            self.context, opaque.handle, opaque.address + byte_offset, nbytes, opaque.begin + byte_offset, opaque.block
        )

    def transfer(self, dest: MetalMemory, src: MetalMemory, nbytes: int, source: Allocator[object]) -> bool:
        """Copies from memory of a Metal device: on the device if it is this one, else on the host, which sees both."""
        if not isinstance(source, MetalAllocator):
            return False
        if source.queue is self.queue:
            with self.queue.lock:
                dest.block.used = src.block.used = self.queue.number
                self.queue.copy((dest.handle, dest.begin), (src.handle, src.begin), nbytes)
            return True
        source.queue.wait(src.block.used)
        self.queue.wait(dest.block.used)
        ctypes.memmove(dest.address, src.address, nbytes)
        return True
