"""ComputeQueue: PM4, as a compute queue executes it."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Final, Protocol, Self, runtime_checkable

from tg_shape import sint

from ...core.args import HCQArgsState
from ...core.queue import Dims, HWQueue, Launchable, QueueDevice
from ...core.ring import Ring
from ...headers.amd import events, pm4, pm4_gfx9
from ...headers.layout import Register
from ..architecture import Architecture
from .rings import ring_of

GEQUAL, EQUAL = 5, 3  # WAIT_REG_MEM_FUNCTION
_TIMES, _BOTH_WORDS, _CLOCK = 0x0A, 2, 3  # POLL_INTERVAL; RELEASE_MEM_DATA_SEL: 64 bits, the GPU's clock
_TO_MEMORY: Final = 5 << pm4.WRITE_DATA_DST_SEL__SHIFT
_LARGEST_DMA: Final = (1 << 26) - 32



def _flush_and_timestamp(packets: ModuleType) -> int:
    """The event of a release: it happens when everything before it is done, and caches are written back."""
    event: int = events.CACHE_FLUSH_AND_INV_TS_EVENT
    if packets is pm4_gfx9:
        return event << pm4_gfx9.EVENT_TYPE__SHIFT | 5 << pm4_gfx9.EVENT_INDEX__SHIFT
    return event << pm4.PACKET3_RELEASE_MEM_EVENT_TYPE__SHIFT | 5 << pm4.PACKET3_RELEASE_MEM_EVENT_INDEX__SHIFT


# What a release makes visible to everybody: dirty lines of L2 are written back, and of the metadata's cache
RELEASE: Final = (
    _flush_and_timestamp(pm4)
    | pm4.PACKET3_RELEASE_MEM_GCR_SEQ
    | pm4.PACKET3_RELEASE_MEM_GCR_GL2_WB
    | pm4.PACKET3_RELEASE_MEM_GCR_GLM_INV
    | pm4.PACKET3_RELEASE_MEM_GCR_GLM_WB
    | 3 << pm4.PACKET3_RELEASE_MEM_CACHE_POLICY__SHIFT
)
RELEASE_GFX9: Final = (
    _flush_and_timestamp(pm4_gfx9)
    | pm4_gfx9.EOP_TC_ACTION_EN
    | pm4_gfx9.EOP_TC_WB_ACTION_EN
    | pm4_gfx9.EOP_TC_MD_ACTION_EN
)
# What an acquire forgets: every cache between waves and memory
ACQUIRE: Final = (
    1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GLI_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GLK_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GLV_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GL1_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_WB__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GL2_INV__SHIFT
    | 1 << pm4.PACKET3_ACQUIRE_MEM_GCR_CNTL_GL2_WB__SHIFT
)
ACQUIRE_GFX9: Final = (
    1 << pm4_gfx9.PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_SH_ICACHE_ACTION_ENA__SHIFT
    | 1 << pm4_gfx9.PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_SH_KCACHE_ACTION_ENA__SHIFT
    | 1 << pm4_gfx9.PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TC_ACTION_ENA__SHIFT
    | 1 << pm4_gfx9.PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TCL1_ACTION_ENA__SHIFT
    | 1 << pm4_gfx9.PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TC_WB_ACTION_ENA__SHIFT
)


def header(opcode: int, count: int) -> int:
    """The first word of a packet of type 3 with ``count`` words behind it."""
    return pm4.PACKET_TYPE3 << 30 | count - 1 << 16 | opcode << 8


@runtime_checkable
class Dispatchable(Protocol):
    """A program of an AMD device."""

    def dispatch(self, queue: ComputeQueue, args: HCQArgsState, groups: Dims, items: Dims) -> None:
        """Appends what launches it."""


class ComputeQueue(HWQueue):
    """Words for a compute queue.

    Args:
      architecture: whose registers a launch sets.
    """

    kind = "compute"

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture

    def packet(self, opcode: int, count: int) -> None:
        """Begins a packet with ``count`` words behind its header."""
        self.put(header(opcode, count))

    def set_registers(self, first: Register, *values: sint) -> None:
        """Sets registers that follow one another."""
        self.packet(pm4.PACKET3_SET_SH_REG, 1 + len(values))
        self.put(first.address - pm4.PACKET3_SET_SH_REG_START, *values)

    def _release(self, address: sint, data: int, value: sint) -> None:
        old = self.architecture.pm4 is pm4_gfx9
        self.packet(pm4.PACKET3_RELEASE_MEM, 7)
        self.put(RELEASE_GFX9 if old else RELEASE, data << pm4.PACKET3_RELEASE_MEM_DATA_SEL__SHIFT)
        self.put64(address, value)
        self.put(0)

    def _signal(self, address: sint, value: sint) -> None:
        self._release(address, _BOTH_WORDS, value)

    def _timestamp(self, address: sint) -> None:
        self._release(address, _CLOCK, 0)

    def _wait(self, address: sint, value: sint) -> None:
        self._wait_memory(GEQUAL, address, value, 0xFFFFFFFF)

    def _wait_memory(self, function: int, address: sint, value: sint, mask: int) -> None:
        self.packet(pm4.PACKET3_WAIT_REG_MEM, 6)
        self.put(function << pm4.WAIT_REG_MEM_FUNCTION__SHIFT | 1 << pm4.WAIT_REG_MEM_MEM_SPACE__SHIFT)
        self.put64(address)
        self.put(value, mask, 4)

    def memory_barrier(self) -> Self:
        """Waits for the launches before it, and has every cache forget what it holds."""
        self.packet(pm4.PACKET3_EVENT_WRITE, 1)
        self.put(events.CS_PARTIAL_FLUSH << pm4.EVENT_TYPE__SHIFT | 4 << pm4.EVENT_INDEX__SHIFT)
        self._acquire()
        return self

    def _acquire(self) -> None:
        if self.architecture.pm4 is pm4_gfx9:
            self.packet(pm4_gfx9.PACKET3_ACQUIRE_MEM, 6)
            self.put(ACQUIRE_GFX9, 0xFFFFFFFF, 0xFFFFFF, 0, 0, _TIMES)
        else:
            self.packet(pm4.PACKET3_ACQUIRE_MEM, 7)
            self.put(0, 0xFFFFFFFF, 0xFFFFFF, 0, 0, _TIMES, ACQUIRE)

    def copy(self, dest: sint, src: sint, nbytes: sint) -> Self:
        """Copies bytes between addresses, in pieces of at most 64 MiB.

        Raises:
          ValueError: if the number of bytes is symbolic and may be larger than a piece.
        """
        if not isinstance(nbytes, int):
            if nbytes.vmax > _LARGEST_DMA:
                raise ValueError(f"copy: {nbytes.render()} bytes may be more than {_LARGEST_DMA}")
            self._dma(dest, src, nbytes)
            return self
        for start in range(0, nbytes, _LARGEST_DMA):
            self._dma(dest + start, src + start, min(_LARGEST_DMA, nbytes - start))
        return self

    def _dma(self, dest: sint, src: sint, nbytes: sint) -> None:
        through_l2 = 3
        self.packet(pm4.PACKET3_DMA_DATA, 6)
        self.put(
            through_l2 << pm4.PACKET3_DMA_DATA_DST_SEL__SHIFT
            | through_l2 << pm4.PACKET3_DMA_DATA_SRC_SEL__SHIFT
            | pm4.PACKET3_DMA_DATA_CP_SYNC & 0xFFFFFFFF
        )
        self.put64(src, dest)
        self.put(nbytes)

    def write(self, dest: sint, words: Sequence[sint]) -> Self:
        """Stores 32-bit words at an address."""
        self.packet(pm4.PACKET3_WRITE_DATA, 3 + len(words))
        self.put(_TO_MEMORY | pm4.WR_CONFIRM)
        self.put64(dest)
        self.put(*words)
        return self

    def poll(self, address: sint, value: sint, mask: int = 0xFFFFFFFF) -> Self:
        """Holds the queue until the 32-bit word at an address, under ``mask``, equals ``value``."""
        self._wait_memory(EQUAL, address, value, mask)
        return self

    def _exec(self, program: Launchable, args: HCQArgsState, global_size: Dims, local_size: Dims) -> None:
        if not isinstance(program, Dispatchable):
            raise TypeError(f"exec: {program!r} is no program of an AMD device")
        program.dispatch(self, args, global_size, local_size)

    def _ring(self, device: QueueDevice) -> Ring:
        return ring_of(device, self.kind)

    def _jump(self, address: int, count: int) -> Sequence[int]:
        if count >= 1 << 20:
            raise ValueError(f"{count} words are bound; an indirect buffer has at most {(1 << 20) - 1}")
        first = header(pm4.PACKET3_INDIRECT_BUFFER, 3)
        return first, address & 0xFFFFFFFF, address >> 32, count | pm4.INDIRECT_BUFFER_VALID


def packet_text(words: Sequence[int]) -> tuple[int, str]:
    """What packet some words begin with: how many words it has, and its name with what follows the header."""
    first = words[0]
    if first >> 30 != pm4.PACKET_TYPE3:
        return 1, f"{first:#010x}"
    count = (first >> 16 & 0x3FFF) + 2
    name = OPCODES.get(first >> 8 & 0xFF, f"opcode {first >> 8 & 0xFF:#x}")
    return count, " ".join([name, *(f"{word:#x}" for word in words[1:count])])


OPCODES: Final = {
    getattr(pm4, f"PACKET3_{name}"): name
    for name in (
        "NOP DISPATCH_DIRECT WRITE_DATA WAIT_REG_MEM INDIRECT_BUFFER EVENT_WRITE RELEASE_MEM ACQUIRE_MEM DMA_DATA "
        "SET_SH_REG"
    ).split()
}
