"""One card of the machine, and what a process has on it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ...engine import AddressSpace
from ..processor import Processor, Queue
from .buffers import Buffers
from .cards import PAGE, Card
from .pages import Pool
from .window import Window

DOORBELL_SLICE = 8 * 1024
"""Doorbells of a process, 8 bytes each (``kfd_doorbell_process_slice``; MES has as many)."""


class Gpu:
    """A card.

    Args:
      card: which.
      gpu_id: by which requests name it.
      minor: of its render node.
      large_bar: whether the host can map all of VRAM.

    Attributes:
      vram: its memory.
      system: memory of the host's that the kernel gives to the GPU.
      flush: the page whose first word flushes the host data path.
      window: what the host sees of the memory.
    """

    def __init__(self, card: Card, gpu_id: int, minor: int, large_bar: bool) -> None:
        self.card, self.gpu_id, self.minor, self.large_bar = card, gpu_id, minor, large_bar
        self.vram, self.system, self.flush = Pool(card.vram), Pool(16 << 30), Pool(PAGE)
        self.window = Window(self.vram.memory, self.flush)

    def close(self) -> None:
        """Gives all memory back that is not mapped any more."""
        self.window.close()
        for pool in (self.vram, self.system, self.flush):
            pool.close()


@dataclass(eq=False)
class UserQueue:
    """A queue of a process.

    Attributes:
      number: its id.
      queue: what executes it.
      doorbell: the index of its doorbell.
      compute: whether it is no SDMA queue.
      buffers: handles of the buffers that it uses, which cannot be freed from under it.
    """

    number: int
    queue: Queue
    doorbell: int
    compute: bool
    buffers: tuple[int, ...] = ()


@dataclass(eq=False)
class ProcessGpu:
    """What a process has on a GPU (``struct kfd_process_device``).

    Attributes:
      gpu: the card.
      space: its addresses.
      buffers: its memory.
      doorbells: the pages of its doorbells.
      processor: executes its queues.
      drm_file: the render node's file that its addresses were taken from; 0 before.
      queues: those that exist.
    """

    gpu: Gpu
    space: AddressSpace
    buffers: Buffers
    doorbells: Pool
    processor: Processor
    drm_file: int = 0
    queues: dict[int, UserQueue] = field(default_factory=dict)

    @classmethod
    def make(cls, gpu: Gpu, offsets: itertools.count[int], processor: Processor) -> ProcessGpu:
        """An empty one."""
        doorbells = Pool(DOORBELL_SLICE)
        return cls(gpu, processor.space, Buffers(gpu.gpu_id, offsets), doorbells, processor)

    def free_doorbell(self, compute: bool) -> int | None:
        """A doorbell that no queue has; SDMA's begin at 256 (``sdma_doorbell_idx``)."""
        used = {queue.doorbell for queue in self.queues.values()}
        return next((n for n in (range(256) if compute else range(256, 512)) if n not in used), None)

    def close(self) -> None:
        """Ends the queues."""
        for queue in self.queues.values():
            queue.queue.stop()
        self.queues.clear()
        self.processor.close()
        self.doorbells.close()


