"""PM4: the packets of compute queues, and what each does.

Opcodes and fields are those of ``nvd.h`` (gfx10 and later) and ``soc15d.h`` (gfx9) of Linux 6.12; words that those
leave out are from the structures in ``kfd_pm4_headers_ai.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from ....core.fileio import MMIO
from ...engine import Access
from .bus import Bus, aligned
from .compare import COMPARISONS
from .dispatch import Dies, Dispatcher, Grid
from .faults import Interrupt, PacketFault
from .formats import Packet, packet
from .queue import Queue, Ring
from .registers import SH_BASE, SH_END, Registers

NOP, DISPATCH_DIRECT, PRED_EXEC, WRITE_DATA, WAIT_REG_MEM, INDIRECT_BUFFER, COPY_DATA = (
    0x10, 0x15, 0x23, 0x37, 0x3C, 0x3F, 0x40,
)  # fmt: skip
EVENT_WRITE, RELEASE_MEM, DMA_DATA, ACQUIRE_MEM, SET_SH_REG, SET_UCONFIG_REG = 0x46, 0x49, 0x50, 0x58, 0x76, 0x79
THROUGH_L2: Final = 3
"""Where DMA_DATA finds its source and target: in memory, as the shared cache of a die has it."""

CS_PARTIAL_FLUSH, CACHE_FLUSH_AND_INV_TS, BOTTOM_OF_PIPE_TS = 0x07, 0x14, 0x28
"""Events (``enum VGT_EVENT_TYPE`` in the headers of enumerations)."""

_ADDRESS = ("address_lo", "address_hi@0:16")

_COMMON: Final = {
    NOP: packet("NOP", more=True),
    DISPATCH_DIRECT: packet("DISPATCH_DIRECT", "dim_x", "dim_y", "dim_z", "initiator"),
    PRED_EXEC: packet("PRED_EXEC", "exec_count@0:14 virtual_xcc_id_select@24:8"),
    WRITE_DATA: packet(
        "WRITE_DATA", "dst_sel@8:4 addr_incr@16 resume_vf@19 wr_confirm@20 cache_policy@25:2 engine_sel@30:2",
        *_ADDRESS, more=True,
    ),
    WAIT_REG_MEM: packet(
        "WAIT_REG_MEM", "function@0:3 mem_space@4:2 operation@6:2 engine_sel@8:2", *_ADDRESS, "reference", "mask",
        "poll_interval@0:16",
    ),
    INDIRECT_BUFFER: packet(
        "INDIRECT_BUFFER", *_ADDRESS,
        "size@0:20 chain@20 offload_polling@21 valid@23 vmid@24:4 cache_policy@28:2 priv@31",
    ),
    COPY_DATA: packet(
        "COPY_DATA", "src_sel@0:4 dst_sel@8:4 src_cache_policy@13:2 count_sel@16 wr_confirm@20 dst_cache_policy@25:2"
        " pq_exe_status@29", "source_lo", "source_hi", "address_lo", "address_hi@0:16",
    ),
    DMA_DATA: packet(
        "DMA_DATA", "engine_sel@0 src_cache_policy@13:2 dst_sel@20:2 dst_cache_policy@25:2 src_sel@29:2 cp_sync@31",
        "source_lo", "source_hi@0:16", *_ADDRESS, "count@0:26 sas@26 das@27 saic@28 daic@29 raw_wait@30",
    ),
    EVENT_WRITE: packet("EVENT_WRITE", "event_type@0:6 event_index@8:4"),
    SET_SH_REG: packet("SET_SH_REG", "offset@0:16 index@28:4", more=True),
}  # fmt: skip

_RELEASE_REST: Final = (
    "dst_sel@16:2 int_sel@24:3 data_sel@29:3", "address_lo", "address_hi@0:16", "data_lo", "data_hi", "context",
)  # fmt: skip
_RELEASE: Final = {
    9: "event_type@0:6 event_index@8:4 tcl1_vol@12 tc_vol@13 tc_wb@15 tcl1@16 tc@17 tc_nc@19 tc_wc@20 tc_md@21"
    " cache_policy@25:2 pq_exe_status@28",
    10: "event_type@0:6 event_index@8:4 glm_wb@12 glm_inv@13 glv_inv@14 gl1_inv@15 gl2_us@16 gl2_range@17:2"
    " gl2_discard@19 gl2_inv@20 gl2_wb@21 seq@22:2 cache_policy@25:2 pq_exe_status@28",
}
_ACQUIRE_RANGE: Final = ("size_lo", "size_hi@0:24", "base_lo", "base_hi@0:24", "poll_interval@0:16")
_ACQUIRE: Final = {
    9: packet(
        "ACQUIRE_MEM", "tc_nc@3 tc_wc@4 tc_inv_metadata@5 tcl1_vol@15 tc_wb@18 tcl1@22 tc@23 cb@25 db@26 kcache@27"
        " kcache_vol@28 icache@29 kcache_wb@30", *_ACQUIRE_RANGE,
    ),
    10: packet(
        "ACQUIRE_MEM", "engine@31", *_ACQUIRE_RANGE,
        "gli_inv@0:2 gl1_range@2:2 glm_wb@4 glm_inv@5 glk_wb@6 glk_inv@7 glv_inv@8 gl1_inv@9 gl2_us@10 gl2_range@11:2"
        " gl2_discard@13 gl2_inv@14 gl2_wb@15 seq@16:2 range_is_pa@18",
    ),
}  # fmt: skip


def packets(major: int) -> dict[int, Packet]:
    """The packets of a generation, by opcode."""
    since = 9 if major == 9 else 10
    return _COMMON | {
        RELEASE_MEM: packet("RELEASE_MEM", _RELEASE[since], *_RELEASE_REST),
        ACQUIRE_MEM: _ACQUIRE[since],
    }


def _address(fields: dict[str, int]) -> int:
    return fields["address_lo"] | fields["address_hi"] << 32


class ComputeQueue(Queue):
    """A queue of PM4 packets; pointers count words.

    Args:
      ring: of the queue.
      bus: the way to memory.
      major: the generation.
      dispatcher: launches waves.
      clock: the GPU's counter.
      interrupt: takes what the kernel is told.
      dies: how many execute the queue together.
    """

    pointer_nbytes = 4  # "gfx9 hardware is 32bit rptr" (gfx_v9_0_ring_get_rptr_compute)

    def __init__(
        self, ring: Ring, bus: Bus, major: int, dispatcher: Dispatcher, clock: Callable[[], int],
        interrupt: Callable[[Interrupt], None], dies: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(ring, bus, 4, interrupt)
        self._all = self._chosen = (1 << dies) - 1
        self._chosen_words = 0
        self.registers, self._dispatcher, self._clock = Registers(major), dispatcher, clock
        self._packets, self._major = packets(major), major
        self._name, self._inside = "", ""
        self._serve: dict[int, Callable[[dict[str, int], list[int]], None]] = {
            NOP: lambda fields, body: None, DISPATCH_DIRECT: self._dispatch, WRITE_DATA: self._write_data,
            WAIT_REG_MEM: self._wait_reg_mem, INDIRECT_BUFFER: self._indirect_buffer, COPY_DATA: self._copy_data,
            EVENT_WRITE: self._event_write, RELEASE_MEM: self._release_mem, ACQUIRE_MEM: self._acquire_mem,
            SET_SH_REG: self._set_sh_reg, PRED_EXEC: self._pred_exec, DMA_DATA: self._dma_data,
        }  # fmt: skip

    def place(self) -> str:
        """Where it is, for faults."""
        return f"{super().place()}{self._inside}{f', {self._name}' if self._name else ''}"

    def execute(self, write: int) -> None:
        """Executes packets from ``read`` to a write pointer."""
        words = self.words(4 * self.read, write - self.read)
        at = 0
        while at < len(words):
            at += self._packet(words, at)
            self.read = write - len(words) + at
            self._dispatcher.meanwhile(self.advance)
        self._name = ""
        self._dispatcher.finish(self.advance)

    def wait(self, ready: Callable[[], bool], word: MMIO | None = None) -> None:
        """As of a queue; what was launched goes on meanwhile."""
        while not self._stop[0] and not ready() and self._dispatcher.step():
            pass
        super().wait(ready, word)

    def _packet(self, words: list[int], at: int) -> int:
        """Executes the packet at an index; how many words it has."""
        header, self._name = words[at], ""
        kind = header >> 30
        if kind == 2:
            if header != 0x80000000:
                raise PacketFault(f"a packet of type 2 is {header:#010x}, not 0x80000000", 0)
            return 1
        if kind != 3:
            raise PacketFault(f"{header:#010x} is a packet of type {kind}, which compute queues do not know", 0)
        opcode, count = header >> 8 & 0xFF, header >> 16 & 0x3FFF
        form = self._packets.get(opcode)
        if form is None:
            raise PacketFault(f"{header:#010x}: no known packet has opcode {opcode:#04x}", 0)
        self._name = form.name
        if header & 0xFD:  # bit 1 says compute, the predicate bit 0 is not played
            raise PacketFault(f"header {header:#010x} sets reserved bits", 0)
        if opcode == NOP and count == 0x3FFF:
            return 1
        body = words[at + 1 : at + 2 + count]
        if len(body) != count + 1:
            raise PacketFault(f"{form.name} has {count + 1} words after its header; {len(body)} were written", 0)
        fields = form.read(body)
        if opcode not in self._serve:
            raise PacketFault(f"{form.name} is not played")
        if self._chosen:
            self._serve[opcode](fields, body)
        if self._chosen_words and opcode != PRED_EXEC:
            self._chosen_words -= count + 2
            if self._chosen_words < 0:
                raise PacketFault("it is longer than what PRED_EXEC counted")
            self._chosen = self._chosen if self._chosen_words else self._all
        return count + 2

    def _pred_exec(self, fields: dict[str, int], body: list[int]) -> None:
        """The words that follow are executed by some of the dies only."""
        if self._chosen_words or not fields["exec_count"]:
            raise PacketFault(f"{fields['exec_count']} words, after {self._chosen_words} of another", 1)
        self._chosen_words = fields["exec_count"]
        self._chosen = fields["virtual_xcc_id_select"] & self._all

    def _write_data(self, fields: dict[str, int], body: list[int]) -> None:
        if fields["dst_sel"] not in (2, 5):  # through L2, memory
            raise PacketFault(f"destination {fields['dst_sel']}: only memory (5) and L2 (2) are played", 1)
        if fields["engine_sel"] or fields["resume_vf"]:
            raise PacketFault("an engine or virtual function is chosen, which compute queues have not", 1)
        data = body[3:]
        if not data:
            raise PacketFault("no data")
        address = _address(fields)
        aligned(address, 4, "WRITE_DATA")
        if fields["addr_incr"]:
            for value in data:
                self.bus.store(address, value, "WRITE_DATA")
        else:
            self.bus.write(address, struct.pack(f"<{len(data)}I", *data), "WRITE_DATA")

    def _wait_reg_mem(self, fields: dict[str, int], body: list[int]) -> None:
        if fields["mem_space"] != 1:
            raise PacketFault(f"space {fields['mem_space']}: only memory (1) is played", 1)
        if fields["operation"] or fields["engine_sel"]:
            raise PacketFault(f"operation {fields['operation']}, engine {fields['engine_sel']}: only 0 is played", 1)
        compare = COMPARISONS.get(fields["function"])
        if compare is None:
            raise PacketFault(f"function {fields['function']} is reserved", 1)
        address, mask, reference = _address(fields), fields["mask"], fields["reference"]
        self.report()
        self.wait(lambda: compare(self.bus.word(address, "WAIT_REG_MEM") & mask, reference))

    def _indirect_buffer(self, fields: dict[str, int], body: list[int]) -> None:
        if not fields["valid"]:
            raise PacketFault("the buffer is not marked valid (bit 23)", 3)
        if fields["chain"] or fields["priv"] or fields["offload_polling"] or fields["vmid"]:
            raise PacketFault("chained, privileged, polled and other processes' buffers are not played", 3)
        if self._inside:
            raise PacketFault("a buffer inside of a buffer")
        address = _address(fields)
        aligned(address, 4, "INDIRECT_BUFFER")
        data = self.bus.read(address, 4 * fields["size"], "INDIRECT_BUFFER")
        words, at = list(struct.unpack(f"<{fields['size']}I", data)), 0
        while at < len(words):
            self._inside = f", word {at} of the buffer at {address:#x}"
            at += self._packet(words, at)
            self._dispatcher.meanwhile(self.advance)
        self._inside = ""

    def _copy_data(self, fields: dict[str, int], body: list[int]) -> None:
        nbytes = 8 if fields["count_sel"] else 4
        source, chosen = fields["source_lo"] | fields["source_hi"] << 32, fields["src_sel"]
        if chosen in (1, 2):
            value = self.bus.word(source, "COPY_DATA", nbytes)
        elif chosen == 5:
            value = source
        elif chosen == 9:
            value = self._clock()
        else:
            raise PacketFault(f"source {chosen}: only memory (1, 2), the data (5) and the clock (9) are played", 1)
        if fields["dst_sel"] not in (2, 5):
            raise PacketFault(f"destination {fields['dst_sel']}: only memory (5) and L2 (2) are played", 1)
        self.bus.store(_address(fields), value, "COPY_DATA", nbytes)

    def _dma_data(self, fields: dict[str, int], body: list[int]) -> None:
        """Copies bytes, as L2 has them, and leaves them there."""
        if fields["src_sel"] != THROUGH_L2 or fields["dst_sel"] != THROUGH_L2 or fields["engine_sel"]:
            raise PacketFault("a source or target but memory through L2 (3), or another engine, is not played", 1)
        if not fields["cp_sync"]:
            raise PacketFault("a copy that nothing waits for (CP_SYNC is 0) is not played", 1)
        if any(fields[name] for name in ("sas", "das", "saic", "daic", "raw_wait")):
            raise PacketFault("registers, addresses that do not grow, and waits for a copy before are not played", 6)
        source, target, nbytes = fields["source_lo"] | fields["source_hi"] << 32, _address(fields), fields["count"]
        if not nbytes or abs(source - target) < nbytes:
            raise PacketFault(f"{nbytes} bytes, from {source:#x} to {target:#x}: none, or some that it overwrites", 6)
        data = self.bus.read(source, nbytes, "DMA_DATA")
        self.bus.check(target, nbytes, Access.WRITE, "DMA_DATA")
        dies = Dies(self._chosen, self._all.bit_length())
        if not self._dispatcher.copy(dies, source, target, nbytes):
            self.bus.write(target, data, "DMA_DATA")

    def _event_write(self, fields: dict[str, int], body: list[int]) -> None:
        if (fields["event_type"], fields["event_index"]) != (CS_PARTIAL_FLUSH, 4):
            raise PacketFault(f"event {fields['event_type']:#x} with index {fields['event_index']} is not played", 1)
        self._settle()

    def _release_mem(self, fields: dict[str, int], body: list[int]) -> None:
        if fields["event_type"] not in (CACHE_FLUSH_AND_INV_TS, BOTTOM_OF_PIPE_TS) or fields["event_index"] != 5:
            raise PacketFault(f"event {fields['event_type']:#x} with index {fields['event_index']} is not played", 1)
        if fields.get("glm_wb") and not fields["glm_inv"]:
            raise PacketFault("GLM_WB without GLM_INV, which must be set with it (gfx_v10_0_ring_emit_fence)", 1)
        if fields["dst_sel"] > 1:
            raise PacketFault(f"destination {fields['dst_sel']}: only memory (0) and L2 (1) are played", 2)
        if fields.get("tc_wb") and not (fields["tc"] or fields["tc_nc"]):
            raise PacketFault("TC_WB with neither TC nor TC_NC, which no source uses (Mesa, si_emit_cache_flush)", 1)
        chosen, interrupts = fields["data_sel"], fields["int_sel"]
        if chosen > 3 or interrupts > 3:
            raise PacketFault(f"data {chosen} and interrupt {interrupts}: only up to 3 are played", 2)
        self._settle()
        self._invalidate(fields)
        address = _address(fields)
        if chosen:
            value = self._clock() if chosen == 3 else fields["data_lo"] | fields["data_hi"] << 32
            self.bus.store(address, value, "RELEASE_MEM", 4 if chosen == 1 else 8)
        if interrupts in (1, 2):
            self.interrupt(Interrupt(context=fields["context"]))

    def _acquire_mem(self, fields: dict[str, int], body: list[int]) -> None:
        if fields.get("gl1_range") == 1 or fields.get("range_is_pa"):
            raise PacketFault("a reserved range, or physical addresses", 7)
        self._invalidate(fields)
        if fields.get("gli_inv") or fields.get("icache"):
            self._dispatcher.drop_code()

    def _settle(self) -> None:
        """What an event of a packet does first: it happens when all that was launched before is over."""
        self._dispatcher.finish(self.advance)

    def _invalidate(self, fields: dict[str, int]) -> None:
        """Writes back and invalidates what the bits of a packet say, one die after the other."""
        shared = bool(fields.get("gl2_inv") or fields.get("tc"))
        for die in Dies(self._chosen, self._all.bit_length()).apart():
            if fields.get("gl2_wb") or fields.get("tc_wb"):
                self._dispatcher.write_back(die)
            elif shared:
                self._dispatcher.lose(die)
            self._dispatcher.invalidate(
                die, vectors=bool(fields.get("glv_inv") or fields.get("tcl1")), arrays=bool(fields.get("gl1_inv")),
                scalars=bool(fields.get("glk_inv") or fields.get("kcache")), shared=shared,
            )  # fmt: skip

    def _set_sh_reg(self, fields: dict[str, int], body: list[int]) -> None:
        first, values = SH_BASE + fields["offset"], body[1:]
        if fields["index"]:
            raise PacketFault(f"index {fields['index']} is not played", 1)
        if not values or first + len(values) > SH_END:
            raise PacketFault(f"{len(values)} registers from {first:#x} on", 1)
        for index, value in enumerate(values):
            self.registers.write(first + index, value, index + 2)

    def _dispatch(self, fields: dict[str, int], body: list[int]) -> None:
        if self._chosen != self._all:
            raise PacketFault("a dispatch on some of the dies is not played")
        groups = Grid((fields["dim_x"], fields["dim_y"], fields["dim_z"]))
        self._dispatcher.launch(self.registers, groups, fields["initiator"], self.advance)

    def advance(self) -> None:
        """Called between the steps of a launch.

        Raises:
          Stopped: if the queue is destroyed or evicted meanwhile.
        """
        self.wait(lambda: not self._stop[0])
