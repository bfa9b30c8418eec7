"""Memory of a WebGPU device: buffers, and ranges of them. Sizes are rounded up to whole words of 4 bytes."""

from __future__ import annotations

from ...device.allocator import BufferOptions, LRUAllocator
from .queue import Queue


class WebGPUMemory:
    """A range of a buffer.

    Attributes:
      handle: ``WGPUBuffer``.
      begin: first byte.
      nbytes: its size.
      owner: the block that it is a part of.
    """

    __slots__ = ("__weakref__", "begin", "handle", "nbytes", "owner")

    def __init__(self, handle: int, nbytes: int, begin: int = 0, owner: WebGPUMemory | None = None) -> None:
        self.handle, self.nbytes, self.begin, self.owner = handle, nbytes, begin, owner


def words(nbytes: int) -> int:
    """Rounds bytes up to whole words; at least one, as no buffer is empty."""
    return max((nbytes + 3) & ~3, 4)


class WebGPUAllocator(LRUAllocator[WebGPUMemory]):
    """Buffers that kernels can read and write.

    Args:
      device: the device's name.
      queue: its queue.
    """

    supports_offset = True

    def __init__(self, device: str, queue: Queue) -> None:
        super().__init__(device)
        self.queue = queue
        adapter = queue.driver.adapter
        self.largest = min(adapter.buffer_bytes, adapter.binding_bytes)

    def _alloc(self, nbytes: int, options: BufferOptions) -> WebGPUMemory:
        if options.external_ptr is not None:
            raise TypeError(f"{self.device} cannot use memory of the host in place; copy it in")
        if nbytes > self.largest:
            raise MemoryError(f"a kernel sees no more than {self.largest} bytes of a buffer on this device")
        return WebGPUMemory(self.queue.driver.create_buffer(words(nbytes), self.queue.storage_usage), nbytes)

    def _free(self, opaque: WebGPUMemory, options: BufferOptions) -> None:
        self.queue.free(opaque.handle)

    def free_cache(self) -> None:
        """Gives every cached block back to the device."""
        super().free_cache()
        self.queue.collect()

    def copyin(self, dest: WebGPUMemory, src: memoryview) -> None:
        """Copies host memory to the device; it may be changed as soon as this returns."""
        self.queue.upload(dest.handle, dest.begin, src, keep=dest.owner is not None)

    def copyout(self, dest: memoryview, src: WebGPUMemory) -> None:
        """Copies device memory to the host, after all that is queued."""
        self.queue.download(dest, src.handle, src.begin)

    def offset(self, opaque: WebGPUMemory, nbytes: int, byte_offset: int) -> WebGPUMemory:
        """A part of a block."""
        return WebGPUMemory(opaque.handle, nbytes, opaque.begin + byte_offset, opaque)

    def transfer(self, dest: WebGPUMemory, src: WebGPUMemory, nbytes: int, source: object) -> bool:
        """Copies from memory of the same device where both ranges are whole words; False elsewhere."""
        whole = not (dest.begin | src.begin | nbytes) & 3
        if source is not self or not whole or dest.handle == src.handle:
            return False
        self.queue.copy(dest.handle, dest.begin, src.handle, src.begin, nbytes)
        return True
