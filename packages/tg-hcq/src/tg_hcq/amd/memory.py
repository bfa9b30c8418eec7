"""AMDAllocator: memory of a card, and memory of the host that it addresses."""

from __future__ import annotations

from array import array

from tg_runtime import BufferOptions, DeviceError

from ..core.allocator import HCQAllocator
from ..core.buffer import HCQBuffer
from ..core.fileio import MMIO
from .kfd.card import (
    COHERENT,
    CONTIGUOUS,
    EXECUTABLE,
    GTT,
    NO_SUBSTITUTE,
    PUBLIC,
    UNCACHED,
    USERPTR,
    VRAM,
    WRITABLE,
    Card,
    Memory,
)
from .kfd.driver import refused
from .process import Process


class AMDAllocator(HCQAllocator):
    """Memory of one card.

    Args:
      device: the device's name.
      card: the card.
      process: what the process holds of KFD.

    Attributes:
      flush: one word: the address of the register that flushes what the host stored to memory of the card, while it
        sees any; else 0.
    """

    staging_slots = 8

    def __init__(self, device: str, card: Card, process: Process) -> None:
        super().__init__(device, card.node.memory or None)
        self.card, self._process = card, process
        self.peer_group = "AMD"
        self.held: dict[int, Memory] = {}
        self.flush = array("Q", [0])
        self._windows: set[int] = set()

    def flags(self, options: BufferOptions) -> int:
        """What ALLOC_MEMORY_OF_GPU is told of a kind of memory."""
        flags = 0 if options.readonly else WRITABLE
        flags |= EXECUTABLE if options.executable else 0
        flags |= UNCACHED if options.uncached else 0
        flags |= COHERENT if options.coherent or options.host else 0
        if options.external_ptr is not None:
            return flags | USERPTR | COHERENT | NO_SUBSTITUTE
        if options.host or (options.device_visible and not self._has_window()):
            return flags | GTT | COHERENT | NO_SUBSTITUTE
        if options.contiguous and self.card.driver.has("contiguous VRAM"):
            flags |= CONTIGUOUS
        return flags | VRAM | NO_SUBSTITUTE | (PUBLIC if options.device_visible else 0)

    def _has_window(self) -> bool:
        """Whether the host sees the card's memory: all of it, for a small window shows nothing of what is taken; and as
        it is, which takes a way to flush what it stored."""
        return self.card.node.large_bar and self.card.flush_register() != 0

    def _map(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        visible = options.host or options.device_visible
        pointer, flags = options.external_ptr or 0, self.flags(options)
        try:
            memory = self.card.allocate(nbytes, flags, visible=visible, pointer=pointer)
            if options.host:
                self._process.share(memory)
        except OSError as error:
            raise refused(self.device, f"{nbytes} bytes of memory", error) from None
        self.held[memory.handle] = memory
        if flags & PUBLIC:
            self._windows.add(memory.handle)
            self.flush[0] = self.card.flush_register()
        address = pointer or memory.address
        view = MMIO(address, nbytes) if visible or pointer else None
        return HCQBuffer(address, nbytes, view, memory, mappings={self.device})

    def _unmap(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        memory = opaque.meta
        assert isinstance(memory, Memory)
        if self.held.pop(memory.handle, None) is not None:  # not after the device was closed
            self._windows.discard(memory.handle)
            if not self._windows:
                self.flush[0] = 0
            self._process.unshare(memory)
            self.card.free(memory)

    def _map_peer(self, opaque: HCQBuffer, owner: HCQAllocator) -> None:
        memory = opaque.meta
        assert isinstance(memory, Memory)
        try:
            self.card.map(memory.handle, [self.card.node.gpu_id])
        except OSError as error:
            raise DeviceError(
                f"{self.device} cannot address memory of {owner.device}: {error.strerror}; cards reach one another "
                "over xGMI, or PCIe where all of the memory is visible to the host"
            ) from None

    def _unmap_peer(self, opaque: HCQBuffer, owner: HCQAllocator) -> None:
        memory = opaque.meta
        assert isinstance(memory, Memory)
        self.card.unmap(memory.handle, [self.card.node.gpu_id])
