"""AQLQueue: launches are packets of HSA, everything else is PM4 that vendor packets refer to.

A card of several compute dies (XCCs) runs one queue on all of them: each reads every packet. The work-groups of a
launch are shared out; but each die executes the PM4 of a vendor packet by itself. That PM4 does all that concerns
caches, as on a queue of PM4, so that packets have no fences of their own. By its barrier bit a launch waits for the
vendor packet before it, and a vendor packet for all before it; launches side by side run together.

What is to happen once is done by the first die alone, and what is to happen after everything before it, after the dies
have met: each has written back its caches and then stored the meeting's number, and the first waits for all numbers.

Sources: *HSA Runtime Programmer's Reference Manual* 1.2, "Architected Queuing Language packets"; ``PRED_EXEC`` as AMD's
profiler of queues (ROCm/rocm-systems, aqlprofile, pm4) writes it: the words it is for, and in the upper byte the dies.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from tg_runtime import BufferOptions
from tg_shape import Variable, sint, upper

from ...core.buffer import HCQBuffer
from ...core.fileio import MMIO
from ...core.queue import Dims, QueueDevice
from ...core.replay import Counter
from ...headers.amd import aql, pm4
from ..architecture import Architecture
from .compute import GEQUAL, ComputeQueue, header

WORDS: Final = aql.PACKET_NBYTES // 4
INVALID: Final = aql.PACKET_TYPE_INVALID
"""The first word of an entry that holds no packet."""

BESIDE: Final = aql.HEADER.encode(type=aql.PACKET_TYPE_KERNEL_DISPATCH)
"""The header of a launch that begins when the one before it has begun."""
DISPATCH: Final = aql.HEADER.encode(type=aql.PACKET_TYPE_KERNEL_DISPATCH, barrier=1)
VENDOR: Final = aql.HEADER.encode(type=aql.PACKET_TYPE_VENDOR_SPECIFIC, barrier=1)
_LEFT: Final = 10
"""``dw_cnt_remain`` of a vendor packet: the words behind the jump."""
_LONGEST_PM4: Final = (1 << 20) - 1
_LINE: Final = 64
MEETINGS: Final = Variable("xcc_meetings", 0, 2**31 - 1)
_LAST: Final = Variable("xcc_last_meeting", 0, 2**31 - 1)


class Dies(NamedTuple):
    """What the dies of a card meet by.

    Attributes:
      number: how many they are.
      memory: a line of 64 bytes for each, where it stores the number of the last meeting, and one that says which of
        them is over.
      meetings: how many there were in what was submitted.
    """

    number: int
    memory: HCQBuffer | None
    meetings: Counter

    @classmethod
    def of(cls, count: int, alloc: Callable[[int, BufferOptions], HCQBuffer], options: BufferOptions) -> Dies:
        """For a card with so many; a single one meets nobody."""
        memory = alloc(_LINE * (count + 1), options) if count > 1 else None
        if memory is not None:
            memory.host_view("Q").write(0, array("Q", [0]) * (_LINE * (count + 1) // 8))
        return cls(count, memory, Counter())


class AQLQueue(ComputeQueue):
    """Packets for an AQL queue.

    Its PM4 lies in memory of the queue's own, as that of a bound queue; what goes into the ring is packets.

    Args:
      architecture: whose packets they are.
      dies: of the card.
    """

    def __init__(self, architecture: Architecture, dies: Dies) -> None:
        super().__init__(architecture)
        self._dies = dies
        self._packets = array("I")
        self._jumps: list[tuple[int, int, int]] = []  # where the packet is, first word of its PM4, number of words
        self._begun = self._met = 0
        self._space = self.add_space(MMIO.of(bytearray(4), "I"))  # the packets', which are not all there yet
        self.count(MEETINGS, dies.meetings, 0)

    # launches

    def launch(
        self, descriptor: int, kernargs: sint, groups: Dims, items: Dims, *, private: int, group: int
    ) -> None:
        """Appends a dispatch packet.

        Args:
          descriptor: where the kernel's descriptor is.
          kernargs: where its arguments are.
          groups: work-groups along x, y and z.
          items: work-items of a group.
          private: bytes of private memory of a work-item.
          group: bytes of local memory of a work-group.

        Raises:
          ValueError: if there may be more than 2**32 - 1 work-items along a dimension.
        """
        self._refer()
        at = 4 * len(self._packets)
        beside = at and (not self._jumps or self._jumps[-1][0] != len(self._packets) - WORDS)
        sizes = [upper(size) for size in items]
        fields = {f"workgroup_size_{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
        packet = aql.kernel_dispatch_packet.pack(
            header=BESIDE if beside else DISPATCH, setup=3, private_segment_size=private, group_segment_size=group,
            kernel_object=descriptor, **fields,
        )  # fmt: skip
        self._packets.frombytes(bytes(packet))
        for axis, group_count, size in zip("xyz", groups, sizes, strict=True):
            self._set(at, f"grid_size_{axis}", group_count * size, 4)
        self._set(at, "kernarg_address", kernargs, 8)

    def _set(self, at: int, field: str, value: sint, nbytes: int) -> None:
        offset = at + aql.kernel_dispatch_packet.fields[field][0]
        if not isinstance(value, int):
            if nbytes == 4 and value.vmax >= 1 << 32:
                raise ValueError(f"{field}: {value.render()} may be more than {(1 << 32) - 1}")
            self._patches.add_bytes(value, self._space, offset, nbytes)
            return
        if not 0 <= value < 1 << 8 * nbytes:
            raise ValueError(f"{field}: {value} does not fit in {8 * nbytes} bits")
        for word in range(nbytes // 4):
            self._packets[offset // 4 + word] = value >> 32 * word & 0xFFFFFFFF

    # PM4

    @contextmanager
    def _only(self, mask: int) -> Iterator[None]:
        """What the block appends is executed by these dies, a bit for each; by all where there is one."""
        if self._dies.number == 1:
            yield
            return
        self.packet(pm4.PACKET3_PRED_EXEC, 1)
        at = len(self._words)
        self.put(mask << 24)
        yield
        self._words[at] |= len(self._words) - at - 1

    def _meet(self) -> sint:
        """Has the first die wait until all are here, with caches written back; returns the meeting's number."""
        memory = self._dies.memory
        assert memory is not None
        self._met += 1
        number = MEETINGS + self._met
        for die in range(self._dies.number):
            with self._only(1 << die):
                super()._release(memory.address + _LINE * die, 2, number)
        with self._only(1):
            for die in range(self._dies.number):
                self._wait_memory(GEQUAL, memory.address + _LINE * die, number, 0xFFFFFFFF)
        return number

    def _together(self) -> None:
        """As :meth:`_meet`, and nobody goes on before the first does."""
        memory = self._dies.memory
        if memory is None:
            return
        number, go = self._meet(), memory.address + _LINE * self._dies.number
        with self._only(1):
            super().write(go, [number])
        self._wait_memory(GEQUAL, go, number, 0xFFFFFFFF)

    def _release(self, address: sint, data: int, value: sint) -> None:
        if self._dies.number > 1:
            self._meet()
        with self._only(1):
            super()._release(address, data, value)

    def memory_barrier(self) -> Self:
        """Waits for the launches before it on all dies, and has every cache forget what it holds."""
        self._together()
        self._acquire()
        return self

    def copy(self, dest: sint, src: sint, nbytes: sint) -> Self:
        """Copies bytes between addresses, in pieces of at most 64 MiB.

        Raises:
          ValueError: if the number of bytes is symbolic and may be larger than a piece.
        """
        self._together()
        with self._only(1):
            super().copy(dest, src, nbytes)
        self._together()
        return self

    def write(self, dest: sint, words: Sequence[sint]) -> Self:
        """Stores 32-bit words at an address."""
        with self._only(1):
            super().write(dest, words)
        return self

    # what goes into the ring

    def _refer(self) -> None:
        """Appends the packet that refers to the PM4 since the last one, if there is any."""
        count = len(self._words) - self._begun
        if count == 0:
            return
        if count > _LONGEST_PM4:
            raise ValueError(f"{count} words of PM4 between launches; there are at most {_LONGEST_PM4}")
        self._jumps.append((len(self._packets), self._begun, count))
        self._packets.extend([0] * WORDS)
        self._begun = len(self._words)

    def _end(self) -> None:
        self._refer()
        self.count(_LAST, self._dies.meetings, self._met)

    def _complete(self, device: QueueDevice) -> None:
        self._bind(device)

    def _jump(self, address: int, count: int) -> Sequence[int]:
        for at, first, length in self._jumps:
            where = address + 4 * first
            jump = header(pm4.PACKET3_INDIRECT_BUFFER, 3), where & 0xFFFFFFFF, where >> 32
            words = {f"ib_jump_cmd[{i}]": word for i, word in enumerate((*jump, length | pm4.INDIRECT_BUFFER_VALID))}
            packet = aql.pm4_ib_packet.pack(
                words, header=VENDOR, ven_hdr=aql.VENDOR_FORMAT_PM4_IB, dw_cnt_remain=_LEFT
            )
            self._packets[at : at + WORDS] = array("I", bytes(packet))
        return self._packets

    def _seal(self, device: QueueDevice, words: MMIO, sent: array[int]) -> None:
        self._spaces[self._space - 1] = MMIO.of(memoryview(sent), "I")
        super()._seal(device, words, sent)


def entry_text(words: Sequence[int]) -> tuple[int, str]:
    """What an entry of the ring is: its length, and its name with what matters of it."""
    data = array("I", words[:WORDS]).tobytes().ljust(aql.PACKET_NBYTES, b"\0")
    kind = words[0] & 0xFF
    if kind == aql.PACKET_TYPE_KERNEL_DISPATCH:
        fields = aql.kernel_dispatch_packet.unpack(data)
        sizes = " x ".join(str(fields[f"grid_size_{axis}"]) for axis in "xyz")
        group = " x ".join(str(fields[f"workgroup_size_{axis}"]) for axis in "xyz")
        return WORDS, f"KERNEL_DISPATCH {fields['kernel_object']:#x} of {sizes} in groups of {group}"
    if kind == aql.PACKET_TYPE_VENDOR_SPECIFIC:
        fields = aql.pm4_ib_packet.unpack(data)
        where = fields["ib_jump_cmd[1]"] | fields["ib_jump_cmd[2]"] << 32
        return WORDS, f"PM4 at {where:#x}, {fields['ib_jump_cmd[3]'] & _LONGEST_PM4} words"
    return WORDS, f"packet of type {kind}"


