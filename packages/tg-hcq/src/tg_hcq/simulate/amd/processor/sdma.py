"""SDMA: the packets of copy queues, by generation, and what each does. Their fields are the headers'."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Final

from ....headers.amd import sdma_v4, sdma_v5, sdma_v6
from ....headers.layout import Packet
from .bus import Bus, aligned
from .compare import COMPARISONS
from .faults import Interrupt, PacketFault
from .queue import Queue, Ring

_HEADERS: Final[dict[int, ModuleType]] = {9: sdma_v4, 10: sdma_v5, 11: sdma_v6, 12: sdma_v6}

NOP, COPY, WRITE, INDIRECT, FENCE, TRAP, POLL_REGMEM, ATOMIC, CONST_FILL, TIMESTAMP, GCR_REQ = (
    0, 1, 2, 4, 5, 6, 8, 10, 11, 13, 17,
)  # fmt: skip
_NAMES: Final = {
    (NOP, 0): "NOP", (COPY, 0): "COPY_LINEAR", (WRITE, 0): "WRITE_UNTILED", (INDIRECT, 0): "INDIRECT",
    (FENCE, 0): "FENCE", (TRAP, 0): "TRAP", (POLL_REGMEM, 0): "POLL_REGMEM", (CONST_FILL, 0): "CONSTANT_FILL",
    (TIMESTAMP, 2): "TIMESTAMP_GET_GLOBAL", (GCR_REQ, 0): "GCR_REQ", (GCR_REQ, 1): "GCR_REQ", (ATOMIC, 0): "ATOMIC",
}  # fmt: skip
"""The packets that are played, by opcode and sub-opcode; what users ask of caches has a sub-opcode of its own
(SDMA_SUBOP_USER_GCR of ROCR-Runtime's sdma_registers.h)."""

ADD_64: Final = 47
"""The only atomic that is played: TC_OP_ATOMIC_ADD_RTN_64 (``enum TC_OP`` in the headers of enumerations)."""

_MUST_BE_ZERO: Final = ("encrypt", "tmz", "cpv", "backwards", "broadcast", "dst_sw", "src_sw", "sw", "vmid", "priv")
_FOREVER: Final = 0xFFF


class CopyQueue(Queue):
    """A queue of SDMA packets; pointers count bytes.

    Args:
      ring: of the queue.
      bus: the way to memory.
      major: the generation.
      clock: the GPU's counter.
      interrupt: takes what the kernel is told.
    """

    def __init__(
        self, ring: Ring, bus: Bus, major: int, clock: Callable[[], int], interrupt: Callable[[Interrupt], None]
    ) -> None:
        super().__init__(ring, bus, 1, interrupt)
        self._clock, self._name, self._inside = clock, "", ""
        known = vars(_HEADERS[major])
        self._packets: dict[tuple[int, int], Packet] = {
            key: known[name] for key, name in _NAMES.items() if name in known and (major, name) != (9, "GCR_REQ")
        }
        self._serve: dict[str, Callable[[dict[str, int], list[int]], None]] = {
            "NOP": lambda fields, more: None, "COPY_LINEAR": self._copy, "WRITE_UNTILED": self._write,
            "INDIRECT": self._indirect, "FENCE": self._fence, "TRAP": self._trap, "POLL_REGMEM": self._poll,
            "CONSTANT_FILL": self._fill, "TIMESTAMP_GET_GLOBAL": self._timestamp,
            "GCR_REQ": lambda fields, more: None, "ATOMIC": self._atomic,
        }  # fmt: skip

    def place(self) -> str:
        """Where it is, for faults."""
        return f"{super().place()}{self._inside}{f', {self._name}' if self._name else ''}"

    def execute(self, write: int) -> None:
        """Executes packets from ``read`` to a write pointer."""
        if write % 4:
            raise PacketFault(f"write pointer {write:#x} is no multiple of 4 bytes")
        words, at = self.words(self.read, (write - self.read) // 4), 0
        while at < len(words):
            at += self._packet(words, at)
            self.read = write - 4 * (len(words) - at)
        self._name = ""

    def _packet(self, words: list[int], at: int) -> int:
        """Executes the packet at an index; how many words it has."""
        header, self._name = words[at], ""
        key = header & 0xFF, header >> 8 & 0xFF
        form = self._packets.get(key)
        if form is None:
            raise PacketFault(f"{header:#010x}: no known packet has opcode {key[0]} and sub-opcode {key[1]}", 0)
        self._name = form.name
        fixed = 1 if form.name == "NOP" else 4 if form.name == "WRITE_UNTILED" else form.nwords
        body = words[at : at + fixed]
        if len(body) < fixed:
            raise PacketFault(f"{form.name} has {fixed} words; {len(body)} were written", 0)
        for index, word in enumerate(body):
            if word & ~form.known(index):
                raise PacketFault(f"{word:#010x} sets reserved bits {word & ~form.known(index):#x}", index)
        fields = form.decode(body + [0] * (form.nwords - fixed))
        for name in _MUST_BE_ZERO:
            if fields.get(name):
                raise PacketFault(f"{name} is {fields[name]}, which is not played")
        count = fields["count"] if form.name == "NOP" else fields["count"] + 1 if form.name == "WRITE_UNTILED" else 0
        more = words[at + fixed : at + fixed + count]
        if len(more) < count:
            raise PacketFault(f"{form.name} says that {count} words follow; {len(more)} were written", 0)
        self._serve[form.name](fields, more)
        return fixed + count

    def _copy(self, fields: dict[str, int], more: list[int]) -> None:
        source = fields["src_addr_31_0"] | fields["src_addr_63_32"] << 32
        target = fields["dst_addr_31_0"] | fields["dst_addr_63_32"] << 32
        self.bus.write(target, self.bus.read(source, fields["count"] + 1, self._name), self._name)

    def _write(self, fields: dict[str, int], more: list[int]) -> None:
        address = fields["dst_addr_31_0"] | fields["dst_addr_63_32"] << 32
        aligned(address, 4, self._name)
        self.bus.write(address, struct.pack(f"<{len(more)}I", *more), self._name)

    def _fill(self, fields: dict[str, int], more: list[int]) -> None:
        address, nbytes = fields["dst_addr_31_0"] | fields["dst_addr_63_32"] << 32, fields["count"] + 1
        if fields["fillsize"] not in (0, 2):
            raise PacketFault(f"fillsize {fields['fillsize']}: only bytes (0) and words (2) are played", 0)
        unit = 4 if fields["fillsize"] == 2 else 1
        aligned(address, unit, self._name)
        if nbytes % unit:
            raise PacketFault(f"{nbytes} bytes are filled by words", 4)
        self.bus.write(address, fields["src_data_31_0"].to_bytes(4, "little")[:unit] * (nbytes // unit), self._name)

    def _fence(self, fields: dict[str, int], more: list[int]) -> None:
        if fields.get("gpa"):
            raise PacketFault("a physical address, which is not a user's", 0)
        self.bus.store(fields["addr_31_0"] | fields["addr_63_32"] << 32, fields["data"], self._name)

    def _atomic(self, fields: dict[str, int], more: list[int]) -> None:
        if fields["atomic_op"] != ADD_64 or fields["loop"]:
            raise PacketFault(f"atomic {fields['atomic_op']}: only ADD_64 ({ADD_64}), once, is played", 0)
        address, by = (fields[f"{name}_31_0"] | fields[f"{name}_63_32"] << 32 for name in ("addr", "src_data"))
        self.bus.store(address, self.bus.word(address, self._name, 8) + by, self._name, 8)

    def _trap(self, fields: dict[str, int], more: list[int]) -> None:
        self.interrupt(Interrupt(context=fields["int_context"]))

    def _poll(self, fields: dict[str, int], more: list[int]) -> None:
        if not fields["mem_poll"] or fields["hdp_flush"]:
            raise PacketFault("registers are polled, or a flush is asked for; only memory is played", 0)
        if fields["retry_count"] != _FOREVER:
            raise PacketFault(f"{fields['retry_count']} tries: a poll that gives up orders nothing", 5)
        compare = COMPARISONS.get(fields["func"])
        if compare is None:
            raise PacketFault(f"function {fields['func']} is reserved", 0)
        address, mask, value = fields["addr_31_0"] | fields["addr_63_32"] << 32, fields["mask"], fields["value"]
        self.report()
        self.wait(lambda: compare(self.bus.word(address, self._name) & mask, value))

    def _timestamp(self, fields: dict[str, int], more: list[int]) -> None:
        address = fields["write_addr_31_3"] << 3 | fields["write_addr_63_32"] << 32
        self.bus.store(address, self._clock(), self._name, 8)

    def _indirect(self, fields: dict[str, int], more: list[int]) -> None:
        if self._inside:
            raise PacketFault("a buffer inside of a buffer")
        address, size = fields["ib_base_31_0"] | fields["ib_base_63_32"] << 32, fields["ib_size"]
        aligned(address, 32, "INDIRECT")  # sdma_v6_0_ring_emit_ib clears the low 5 bits
        words, at = list(struct.unpack(f"<{size}I", self.bus.read(address, 4 * size, "INDIRECT"))), 0
        while at < len(words):
            self._inside = f", word {at} of the buffer at {address:#x}"
            at += self._packet(words, at)
        self._inside = ""
