"""Buffer objects: memory that was allocated, where each GPU maps it, and the offset by which the host does."""

from __future__ import annotations

import errno
import itertools
from dataclasses import dataclass, field

from ...engine import Access, AddressSpace
from . import abi
from .cards import PAGE
from .events import refuse
from .pages import Pool


@dataclass(eq=False)
class Buffer:
    """One of them.

    Attributes:
      handle: by which user space names it.
      address: where GPUs see it.
      nbytes: its size, in whole pages.
      flags: as it was allocated.
      offset: for mmap of the render node.
      pool: whose pages it has; None for memory of the host's.
      place: the first page's offset in the pool, or the host's address.
      spaces: the GPUs that map it, by gpu_id.
    """

    handle: int
    address: int
    nbytes: int
    flags: int
    offset: int
    pool: Pool | None
    place: int
    spaces: dict[int, AddressSpace] = field(default_factory=dict)

    @property
    def access(self) -> Access:
        """What a GPU may do with it; reading is always allowed (``map_bo_to_gpuvm``)."""
        access = Access.READ
        if self.flags & abi.WRITABLE:
            access |= Access.WRITE
        if self.flags & abi.EXECUTABLE:
            access |= Access.EXECUTE
        if self.flags & abi.UNCACHED:
            access |= Access.UNCACHED
        if self.flags & (abi.COHERENT | abi.EXT_COHERENT):
            access |= Access.COHERENT
        return access

    def map(self, gpu_id: int, space: AddressSpace) -> None:
        """Has a GPU see it; a second time changes nothing.

        Raises:
          OSError: if something is mapped there (EINVAL).
        """
        if gpu_id in self.spaces:
            return
        try:
            if self.pool is None:
                space.map_host(self.address, self.place, self.nbytes, self.access)
            elif not self.flags & (abi.DOORBELL | abi.MMIO_REMAP):
                space.map(self.address, self.pool.memory, self.place, self.nbytes, self.access)
        except ValueError as error:
            raise refuse(errno.EINVAL, str(error)) from None
        self.spaces[gpu_id] = space

    def unmap(self, gpu_id: int) -> None:
        """Takes it from a GPU; a second time changes nothing."""
        space = self.spaces.pop(gpu_id, None)
        if space is not None and not self.flags & (abi.DOORBELL | abi.MMIO_REMAP):
            space.unmap(self.address)

    def release(self) -> None:
        """Gives its pages back."""
        if self.pool is not None and not self.flags & (abi.DOORBELL | abi.MMIO_REMAP):
            self.pool.give(self.place, self.nbytes)


class Buffers:
    """All buffers of a process on one GPU.

    Args:
      gpu_id: of the GPU.
      offsets: draws the offsets for mmap.
    """

    def __init__(self, gpu_id: int, offsets: itertools.count[int]) -> None:
        self.gpu_id, self._offsets = gpu_id, offsets
        self._numbers = itertools.count(1)
        self._buffers: dict[int, Buffer] = {}

    def add(self, address: int, nbytes: int, flags: int, pool: Pool | None, place: int) -> Buffer:
        """A buffer of pages that were taken."""
        handle = self.gpu_id << 32 | next(self._numbers)
        buffer = Buffer(handle, address, nbytes, flags, next(self._offsets), pool, place)
        self._buffers[handle] = buffer
        return buffer

    def find(self, handle: int, error: int) -> Buffer:
        """The buffer of a handle.

        Raises:
          OSError: if there is none: that error.
        """
        if handle not in self._buffers:
            raise refuse(error, f"no memory has the handle {handle:#x}")
        return self._buffers[handle]

    def remove(self, buffer: Buffer) -> None:
        """Frees a buffer.

        Raises:
          OSError: if a GPU maps it (EBUSY).
        """
        if buffer.spaces:
            raise refuse(errno.EBUSY, f"memory at {buffer.address:#x} is still mapped to {len(buffer.spaces)} GPUs")
        del self._buffers[buffer.handle]
        buffer.release()

    def at(self, address: int) -> Buffer | None:
        """The buffer that is mapped to this GPU and holds an address."""
        for buffer in self._buffers.values():
            if self.gpu_id in buffer.spaces and buffer.address <= address < buffer.address + buffer.nbytes:
                return buffer
        return None

    def exactly(self, what: str, address: int, nbytes: int) -> Buffer:
        """The buffer that is mapped at an address and has a size (``kfd_queue_buffer_get``).

        Raises:
          OSError: if there is none, or it begins or ends elsewhere (EINVAL).
        """
        buffer = self.at(address)
        if buffer is None:
            raise refuse(errno.EINVAL, f"the {what} at {address:#x} is not mapped to the GPU")
        if buffer.address != address // PAGE * PAGE or buffer.nbytes != nbytes:
            raise refuse(
                errno.EINVAL,
                f"the {what} is {nbytes:#x} bytes at {address:#x};"
                f" the mapping is {buffer.nbytes:#x} at {buffer.address:#x}",
            )
        return buffer

    def by_offset(self, offset: int) -> Buffer | None:
        """The buffer whose offset for mmap that is."""
        return next((buffer for buffer in self._buffers.values() if buffer.offset == offset), None)

    def all(self) -> list[Buffer]:
        """All of them."""
        return list(self._buffers.values())
