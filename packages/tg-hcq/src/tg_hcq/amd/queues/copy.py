"""CopyQueue: packets of the copy engines, SDMA 4 and later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from tg_shape import Expr, sint

from ...core.args import HCQArgsState
from ...core.queue import Dims, HWQueue, Launchable, QueueDevice
from ...core.ring import Ring
from ...headers.layout import Packet
from ..architecture import Architecture
from .rings import ring_of

_GEQUAL, _EQUAL = 5, 3
_UNCACHED: Final = 3  # MTYPE_UC
_ENTRY: Final = 8
"""Words that a submission is a multiple of: a jump must end there."""


class CopyQueue(HWQueue):
    """Words for a copy queue.

    Args:
      architecture: whose packets they are.
      kind: which of the device's copy queues it is for.
    """

    def __init__(self, architecture: Architecture, kind: str = "copy") -> None:
        super().__init__()
        self.architecture, self.kind, self._sdma = architecture, kind, architecture.sdma

    def _signal(self, address: sint, value: sint) -> None:
        # the upper word of a signal stays 0: its values have 31 bits
        uncached = {"mtype": _UNCACHED} if "mtype" in self._sdma.FENCE.fields else {}  # SDMA 4 goes by the page alone
        self._head("FENCE", self._sdma.SDMA_OP_FENCE, **uncached)
        self.put64(address)
        self.put(value)

    def _head(self, name: str, op: int, **fields: int) -> None:
        """The first word of a packet."""
        packet: Packet = getattr(self._sdma, name)
        self.put(packet.encode(op=op, **fields)[0])

    def _wait(self, address: sint, value: sint) -> None:
        self._poll(_GEQUAL, address, value, 0xFFFFFFFF)

    def _poll(self, function: int, address: sint, value: sint, mask: int) -> None:
        self._head("POLL_REGMEM", self._sdma.SDMA_OP_POLL_REGMEM, func=function, mem_poll=1)
        self.put64(address)
        self.put(value, mask, 4 | 0xFFF << 16)  # interval, and as many retries as there can be: for ever

    def _timestamp(self, address: sint) -> None:
        sdma = self._sdma
        self._head("TIMESTAMP_GET_GLOBAL", sdma.SDMA_OP_TIMESTAMP, sub_op=sdma.SDMA_SUBOP_TIMESTAMP_GET_GLOBAL)
        self.put64(address)

    def memory_barrier(self) -> Self:
        """Does nothing: the engine reads and writes memory behind its caches, which releases wrote back."""
        return self

    def copy(self, dest: sint, src: sint, nbytes: sint) -> Self:
        """Copies bytes between addresses, in pieces of what a packet can say.

        Raises:
          ValueError: if the number of bytes is symbolic and may be more than a packet can say.
        """
        most = 1 << self._sdma.COPY_LINEAR.fields["count"][2]
        if isinstance(nbytes, Expr):
            if nbytes.vmin < 1 or nbytes.vmax > most:
                raise ValueError(f"copy: {nbytes.render()} bytes are not always 1 to {most}")
            self._copy(dest, src, nbytes)
            return self
        for start in range(0, nbytes, most):
            self._copy(dest + start, src + start, min(most, nbytes - start))
        return self

    def _copy(self, dest: sint, src: sint, nbytes: sint) -> None:
        self._head("COPY_LINEAR", self._sdma.SDMA_OP_COPY, sub_op=self._sdma.SDMA_SUBOP_COPY_LINEAR)
        self.put(nbytes - 1, 0)
        self.put64(src, dest)

    def write(self, dest: sint, words: Sequence[sint]) -> Self:
        """Stores 32-bit words at an address."""
        self._head("WRITE_UNTILED", self._sdma.SDMA_OP_WRITE, sub_op=self._sdma.SDMA_SUBOP_WRITE_LINEAR)
        self.put64(dest)
        self.put(len(words) - 1, *words)
        return self

    def poll(self, address: sint, value: sint, mask: int = 0xFFFFFFFF) -> Self:
        """Holds the queue until the 32-bit word at an address, under ``mask``, equals ``value``."""
        self._poll(_EQUAL, address, value, mask)
        return self

    def _exec(self, program: Launchable, args: HCQArgsState, global_size: Dims, local_size: Dims) -> None:
        raise TypeError(f"exec: {program.name} cannot run on a copy queue")

    def _end(self) -> None:
        self.put(*[0] * (-len(self) % _ENTRY))  # each a NOP of one word

    def _ring(self, device: QueueDevice) -> Ring:
        return ring_of(device, self.kind)

    def _jump(self, address: int, count: int) -> Sequence[int]:
        packet: Packet = self._sdma.INDIRECT
        words = packet.encode(
            op=self._sdma.SDMA_OP_INDIRECT, ib_base_31_0=address & 0xFFFFFFFF, ib_base_63_32=address >> 32,
            ib_size=count,
        )  # fmt: skip
        return [0] * (_ENTRY - len(words)) + words
