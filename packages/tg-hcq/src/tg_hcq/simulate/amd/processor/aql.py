"""AQL: queues of packets of 64 bytes, and what beside the ring the firmware reads of such a queue.

Packets: HSA Runtime Programmer's Reference Manual 1.2, section 2.9; "HSA Platform System Architecture" 1.2, 2.8.
``amd_queue_t``, ``amd_signal_t``, the vendor packet: ``amd_hsa_queue.h``, ``amd_hsa_signal.h`` and the AQL profile of
ROCm/ROCR-Runtime. Registers that a dispatch begins with: LLVM, "User Guide for AMDGPU Backend", "Kernel Descriptor".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....headers.amd import aql
from ....headers.layout import Struct
from .bus import Bus
from .dispatch import ALL, Dispatcher, Grid
from .faults import Interrupt, PacketFault
from .pm4 import INDIRECT_BUFFER, ComputeQueue
from .queue import Ring
from .registers import Registers

PACKET: Final = aql.PACKET_NBYTES
SIGNAL: Final = Struct("amd_signal_t", 64, {
    "kind": (0, "Q"), "value": (8, "Q"), "event_mailbox_ptr": (16, "Q"), "event_id": (24, "I"), "start_ts": (32, "Q"),
    "end_ts": (40, "Q"),
})  # fmt: skip
USER_SIGNAL: Final = 1
"""``AMD_SIGNAL_KIND_USER``: the only kind that packets have."""
DESCRIPTOR: Final = Struct("amdhsa_kernel_descriptor_t", 64, {
    "group_segment_fixed_size": (0, "I"), "private_segment_fixed_size": (4, "I"), "kernarg_size": (8, "I"),
    "kernel_code_entry_byte_offset": (16, "Q"), "compute_pgm_rsrc3": (44, "I"), "compute_pgm_rsrc1": (48, "I"),
    "compute_pgm_rsrc2": (52, "I"), "kernel_code_properties": (56, "H"), "kernarg_preload": (58, "H"),
})  # fmt: skip
READ_ID: Final = 128
"""The offset of ``read_dispatch_id`` in ``amd_queue_t``; behind it stands by how much to go back from there."""
REST: Final = 10
"""``dw_cnt_remain`` of a vendor packet: words that follow."""
_SHADER_EN, _START_AT_000, _WAVES_OF_32 = 1, 4, 1 << 15
LOCAL_UNIT: Final = 512
"""Bytes that COMPUTE_PGM_RSRC2.LDS_SIZE counts."""


class AqlQueue(ComputeQueue):
    """A queue of AQL packets; pointers count packets, the doorbell says which was the last one.

    Args:
      ring: of the queue.
      bus: the way to memory.
      major: the generation.
      dispatcher: launches waves.
      clock: the GPU's counter.
      interrupt: takes what the kernel is told.
      dies: how many execute the queue together.
    """

    pointer_nbytes = 8
    idle = (1 << 64) - 1

    def __init__(
        self, ring: Ring, bus: Bus, major: int, dispatcher: Dispatcher, clock: Callable[[], int],
        interrupt: Callable[[Interrupt], None], dies: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(ring, bus, major, dispatcher, clock, interrupt, dies)
        self.unit, self._major, self._number = PACKET, major, 0
        self._run_packet: dict[int, Callable[[bytes], None]] = {
            aql.PACKET_TYPE_BARRIER_AND: self._barrier_and, aql.PACKET_TYPE_BARRIER_OR: self._barrier_or,
            aql.PACKET_TYPE_VENDOR_SPECIFIC: self._vendor,
        }  # fmt: skip

    def _to(self, write: int) -> None:
        """Executes packets up to that which the doorbell names."""
        stored = self.bus.word(self.ring.write_pointer, "write_dispatch_id", 8)
        if stored <= write:
            raise PacketFault(f"the doorbell says packet {write}, and write_dispatch_id is {stored}")
        if stored - self.read > self.ring.nbytes // PACKET:
            raise PacketFault(f"{stored - self.read} packets of a ring of {self.ring.nbytes // PACKET}")
        self.execute(write + 1)

    def execute(self, write: int) -> None:
        """Executes packets from ``read`` to a write pointer, each as soon as it is valid."""
        while self.read < write:
            first = self.read
            order = [first]
            if first + 1 < write and self._is_beside(first + 1) and self._dispatcher.overtakes():
                order = [first + 1, first]
            for self._number in order:
                self._name = ""
                self.wait(self._is_valid)
                self._one(self.bus.read(self._at, PACKET, "a packet"))
                self.bus.write(self._at, aql.PACKET_TYPE_INVALID.to_bytes(2, "little"), "a packet's header")
            self.read = first + len(order)
            self.report()
        self._dispatcher.finish(self.advance)

    @property
    def _at(self) -> int:
        """Where the packet is that is executed."""
        return self.ring.address + self._number * PACKET % self.ring.nbytes

    def _is_valid(self) -> bool:
        return self.bus.word(self._at, "a packet") & 0xFF != aql.PACKET_TYPE_INVALID

    def _is_beside(self, number: int) -> bool:
        """Whether a packet is a launch that may run beside the packet before it: its barrier bit is not set."""
        at = self.ring.address + number * PACKET % self.ring.nbytes
        header = aql.HEADER.decode(self.bus.word(at, "a packet") & aql.HEADER.known)
        return header["type"] == aql.PACKET_TYPE_KERNEL_DISPATCH and not header["barrier"]

    def _one(self, packet: bytes) -> None:
        word = int.from_bytes(packet[:2], "little")
        if word & ~aql.HEADER.known:
            raise PacketFault(f"header {word:#06x} sets reserved bits", 0)
        header = aql.HEADER.decode(word)
        kind = header["type"]
        if kind != aql.PACKET_TYPE_KERNEL_DISPATCH and kind not in self._run_packet:
            raise PacketFault(f"packets of type {kind} are not played", 0)
        for which in ("acquire", "release"):
            if header[f"{which}_fence_scope"] > aql.FENCE_SCOPE_SYSTEM:
                raise PacketFault(f"{which} fence of scope {header[f'{which}_fence_scope']}", 0)
        acquired, released = header["acquire_fence_scope"], header["release_fence_scope"]
        launches = kind == aql.PACKET_TYPE_KERNEL_DISPATCH
        if header["barrier"]:  # it begins when all before it are over
            self._dispatcher.finish(self.advance)
        if launches:
            self._acquire(acquired)
        start = self._clock()
        signal = int.from_bytes(packet[56:64], "little")
        if signal:
            self._signal(signal)

        def over() -> None:
            if released == aql.FENCE_SCOPE_SYSTEM:
                self._dispatcher.write_back()
            if not launches:  # a barrier acquires when it is over
                self._acquire(acquired)
            if signal:
                self._complete(signal, start)

        if launches:
            self._kernel(packet, over)
        else:
            self._run_packet[kind](packet)
            over()

    def _acquire(self, scope: int) -> None:
        if scope:
            system = scope == aql.FENCE_SCOPE_SYSTEM
            self._dispatcher.invalidate(ALL, vectors=True, arrays=True, scalars=True, shared=system)
            self._dispatcher.drop_code()

    def _queue(self) -> dict[str, int]:
        """``amd_queue_t``, found as the firmware does: from the read pointer back."""
        offset = self.bus.word(self.ring.read_pointer + 8, "read_dispatch_id_field_base_byte_offset")
        if offset != READ_ID:
            raise PacketFault(f"read_dispatch_id_field_base_byte_offset is {offset}, not {READ_ID}")
        data = self.bus.read(self.ring.read_pointer - offset, aql.amd_queue_t.nbytes, "amd_queue_t")
        found = aql.amd_queue_t.unpack(data)
        if found["hsa_queue.base_address"] != self.ring.address:
            raise PacketFault(f"hsa_queue.base_address is {found['hsa_queue.base_address']:#x}, not the ring's")
        if found["hsa_queue.size"] * PACKET != self.ring.nbytes:
            raise PacketFault(f"hsa_queue.size is {found['hsa_queue.size']}; the ring has {self.ring.nbytes} bytes")
        return found

    def _kernel(self, packet: bytes, over: Callable[[], None]) -> None:
        self._name = "KERNEL_DISPATCH"
        fields = aql.kernel_dispatch_packet.unpack(packet)
        if not 1 <= fields["setup"] <= 3:
            raise PacketFault(f"setup {fields['setup']:#x}: 1 to 3 dimensions are possible", 0)
        if any(packet[10:12]) or any(packet[48:56]):
            raise PacketFault("a reserved field is not zero")
        size = fields["workgroup_size_x"], fields["workgroup_size_y"], fields["workgroup_size_z"]
        threads = fields["grid_size_x"], fields["grid_size_y"], fields["grid_size_z"]
        if 0 in size or 0 in threads:
            raise PacketFault(f"workgroups of {size} threads in a grid of {threads}")
        if any(size[i] > 1 or threads[i] > 1 for i in range(fields["setup"], 3)):
            raise PacketFault(f"{fields['setup']} dimensions, and a size in another one")
        queue = self._queue()
        data = self.bus.read(fields["kernel_object"], DESCRIPTOR.nbytes, "the kernel descriptor")
        descriptor = DESCRIPTOR.unpack(data)
        registers = Registers(self._major)
        self._registers(registers, fields, descriptor, queue, packet)
        lanes = _WAVES_OF_32 if descriptor["kernel_code_properties"] >> 10 & 1 else 0
        if lanes and self._major == 9:
            raise PacketFault("the descriptor wants waves of 32 lanes")
        grid = Grid(tuple(-(-n // of) for n, of in zip(threads, size, strict=True)), threads)  # type: ignore[arg-type]
        self._dispatcher.launch(registers, grid, _SHADER_EN | _START_AT_000 | lanes, self.advance, over)

    def _registers(
        self, registers: Registers, fields: dict[str, int], descriptor: dict[str, int], queue: dict[str, int],
        packet: bytes,
    ) -> None:  # fmt: skip
        """What a dispatch's registers are told, by the packet and the descriptor."""
        entry = fields["kernel_object"] + descriptor["kernel_code_entry_byte_offset"]
        entry %= 1 << 64
        if entry % 256:
            raise PacketFault(f"the kernel's code begins at {entry:#x}, which is no multiple of 256")
        if fields["group_segment_size"] < descriptor["group_segment_fixed_size"]:
            raise PacketFault(f"{fields['group_segment_size']} bytes of local memory are less than the kernel's own")
        if fields["private_segment_size"] < descriptor["private_segment_fixed_size"]:
            raise PacketFault(f"{fields['private_segment_size']} bytes of private memory are less than the kernel has")
        local = -(-fields["group_segment_size"] // LOCAL_UNIT)
        second = descriptor["compute_pgm_rsrc2"]
        if registers.split("COMPUTE_PGM_RSRC2", second, 0)["LDS_SIZE"]:
            raise PacketFault("the descriptor says how much local memory there is, which only the packet may")
        put = registers.put
        put("COMPUTE_PGM_LO", entry >> 8 & 0xFFFFFFFF)
        put("COMPUTE_PGM_HI", entry >> 40)
        put("COMPUTE_PGM_RSRC1", descriptor["compute_pgm_rsrc1"])
        put("COMPUTE_PGM_RSRC2", second | registers.encode("COMPUTE_PGM_RSRC2", LDS_SIZE=local))
        for axis in "xyz":
            put(f"COMPUTE_NUM_THREAD_{axis.upper()}", fields[f"workgroup_size_{axis}"])
            put(f"COMPUTE_START_{axis.upper()}", 0)
        if registers.split("COMPUTE_PGM_RSRC2", second, 0)["SCRATCH_EN"]:
            ring, base = queue["compute_tmpring_size"], queue["scratch_backing_memory_location"]
            put("COMPUTE_TMPRING_SIZE", ring)
            put("COMPUTE_DISPATCH_SCRATCH_BASE_LO", base >> 8 & 0xFFFFFFFF)
            put("COMPUTE_DISPATCH_SCRATCH_BASE_HI", base >> 40)
            lane = self._dispatcher.wave_scratch(registers) // (64 if self._major == 9 else 32)
            if lane < fields["private_segment_size"]:
                raise PacketFault(f"{fields['private_segment_size']} bytes of private memory; the queue has {lane}")
        user = self._user(fields, descriptor, queue)
        wanted = registers.split("COMPUTE_PGM_RSRC2", second, 0)["USER_SGPR"]
        if len(user) != wanted:
            raise PacketFault(f"the descriptor counts {wanted} user SGPRs, and asks for {len(user)}")
        for index, value in enumerate(user):
            put(f"COMPUTE_USER_DATA_{index}", value)

    def _user(self, fields: dict[str, int], descriptor: dict[str, int], queue: dict[str, int]) -> list[int]:
        """The user SGPRs that the descriptor asks for, in order."""
        properties = descriptor["kernel_code_properties"]
        if properties & ~0xC7F:
            raise PacketFault(f"kernel_code_properties {properties:#x} has reserved bits")
        object_ = self.ring.read_pointer - READ_ID
        pairs = {1: self._at, 2: object_, 3: fields["kernarg_address"], 4: self._number, 5: 0}
        words: list[int] = []
        if properties & 1:
            words += [queue[f"scratch_resource_descriptor[{n}]"] for n in range(4)]
        for bit, value in pairs.items():
            if properties >> bit & 1:
                if bit == 5:
                    raise PacketFault("an initial flat scratch is not played")
                words += [value & 0xFFFFFFFF, value >> 32]
        if properties >> 6 & 1:
            words.append(fields["private_segment_size"])
        length, offset = descriptor["kernarg_preload"] & 0x7F, descriptor["kernarg_preload"] >> 7
        if length:
            data = self.bus.read(fields["kernarg_address"] + 4 * offset, 4 * length, "preloaded arguments")
            words += [int.from_bytes(data[4 * n : 4 * n + 4], "little") for n in range(length)]
        return words

    def _barrier_and(self, packet: bytes) -> None:
        self._name = "BARRIER_AND"
        self._depend(packet, all)

    def _barrier_or(self, packet: bytes) -> None:
        self._name = "BARRIER_OR"
        self._depend(packet, any)

    def _depend(self, packet: bytes, enough: Callable[[list[bool]], bool]) -> None:
        fields = aql.barrier_packet.unpack(packet)
        if any(packet[2:8]) or any(packet[48:56]):
            raise PacketFault("a reserved field is not zero")
        signals = [fields[f"dep_signal[{n}]"] for n in range(5) if fields[f"dep_signal[{n}]"]]
        for signal in signals:
            self._signal(signal)
        if signals:
            self.wait(lambda: enough([self.bus.word(signal + 8, "a signal", 8) == 0 for signal in signals]))

    def _vendor(self, packet: bytes) -> None:
        """A call of a buffer of PM4 packets, which all dies execute."""
        self._name = "vendor packet"
        fields = aql.pm4_ib_packet.unpack(packet)
        if fields["ven_hdr"] != aql.VENDOR_FORMAT_PM4_IB or fields["dw_cnt_remain"] != REST or any(packet[24:56]):
            raise PacketFault(f"format {fields['ven_hdr']:#x}, {fields['dw_cnt_remain']} words: only PM4 is played")
        words = [fields[f"ib_jump_cmd[{n}]"] for n in range(4)]
        if words[0] >> 8 & 0xFF != INDIRECT_BUFFER:
            raise PacketFault(f"{words[0]:#010x} is no INDIRECT_BUFFER", 1)
        self._packet(words, 0)

    def _settle(self) -> None:
        """An event of a vendor packet waits for no launch of other packets: only its barrier bit is said to."""

    def _signal(self, address: int) -> None:
        """Checks that there is a signal."""
        if address % 64:
            raise PacketFault(f"the signal {address:#x} is no multiple of 64")
        kind = self.bus.word(address, "a signal", 8)
        if kind != USER_SIGNAL:
            raise PacketFault(f"the signal at {address:#x} is of kind {kind}, not a user's")

    def _complete(self, address: int, start: int) -> None:
        """Takes one from a signal, and tells who waits for its event."""
        data = SIGNAL.unpack(self.bus.read(address, SIGNAL.nbytes, "a signal"))
        self.bus.store(address + 32, start, "a signal", 8)
        self.bus.store(address + 40, self._clock(), "a signal", 8)
        self.bus.store(address + 8, data["value"] - 1, "a signal", 8)
        if data["event_mailbox_ptr"]:
            self.bus.store(data["event_mailbox_ptr"], data["event_id"], "a signal's mailbox", 8)
            self.interrupt(Interrupt(context=data["event_id"]))
