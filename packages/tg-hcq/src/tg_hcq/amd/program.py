"""AMDProgram: a kernel of a code object, and the registers that launch it."""

from __future__ import annotations

from math import prod
from typing import Final, Protocol, runtime_checkable

from tg_runtime import DeviceError
from tg_runtime.host.elf import ELFError, parse
from tg_shape import sint

from ..core.args import ArgsLayout, HCQArgsState
from ..core.compiled import HCQCompiled
from ..core.program import HCQProgram
from ..core.queue import Dims
from ..core.relocations import MACHINES
from ..core.scratch import ADDRESS
from ..core.upload import UploadedCode
from ..headers.amd import aql, pm4
from .architecture import Architecture
from .code_object import Kernel, args_layout, check_file, kernel, metadata, refuse_bundle
from .kfd.topology import Node
from .queues.aql import AQLQueue
from .queues.compute import ComputeQueue

_LARGEST_GROUP: Final = 1024
_DWORDS: Final = 20
"""FORMAT of a buffer descriptor: BUF_FMT_32_UINT (RDNA 2 Instruction Set Architecture, "Buffer Image Format Table")."""
_MOST_GROUPS: Final = (((1 << 32) - 1) // _LARGEST_GROUP, 65535, 65535)
"""Those whose work-items a dispatch packet can say, whatever their size."""
_PACKET: Final = "packet."
"""What names of a dispatch packet's fields begin with, in the block of arguments that it lies in."""


@runtime_checkable
class ProgramDevice(Protocol):
    """A device of this driver, as far as programs ask it."""

    def describe_queue(self) -> int:
        """Where an ``amd_queue_t`` lies."""

    def give_scratch(self, lane: int, wave: int, counted: int, nbytes: int) -> None:
        """Makes the scratch large enough."""


class AMDProgram(HCQProgram):
    """A kernel that is loaded on a card.

    Attributes:
      kernel: what its descriptor says.
      descriptor: where that is.

    Args:
      device: the device.
      architecture: its architecture.
      card: what the topology says of it.
      name: the kernel's symbol.
      lib: the code object.
      xnack: whether this process' accesses are tried again after a fault.

    Raises:
      ELFError: if the code object is damaged, for another architecture, or asks for what the card has not; nothing
        was sent then.
      OutOfMemory: if there is no memory for it.
    """

    def __init__(
        self, device: HCQCompiled, architecture: Architecture, card: Node, name: str, lib: bytes, *, xnack: bool = False
    ) -> None:  # fmt: skip
        refuse_bundle(lib)
        layout = parse(lib, MACHINES)
        check_file(layout.file, architecture, sramecc=card.sramecc, xnack=xnack)
        told = metadata(layout.file).get(name, {})
        self._code = UploadedCode(device.allocator, lib, machines=MACHINES)
        symbol = f"{name}.kd"
        self.kernel: Kernel = kernel(name, self._code.content(symbol), architecture, card.lds or 1 << 16)
        self._entry = self._code.entry(symbol) + self.kernel.entry
        start, nbytes = self.code()
        if not start <= self._entry < start + nbytes or self._entry % 256:
            raise ELFError(f"{name} begins at {self._entry:#x}, which is no place for a kernel in {nbytes} bytes")
        self.descriptor = self._code.entry(symbol)
        args: ArgsLayout | None = args_layout(name, told, self.kernel.kernarg) if told else None
        super().__init__(device, name, args)
        self._architecture = architecture
        self._tmpring = self._scratch(card)
        self._queue, self._packet = self._asked_for({what for what, _ in self.kernel.sgprs})

    def _asked_for(self, asked: set[str]) -> tuple[int, bool]:
        """Where the description of its queue lies that a kernel asks for, and whether it asks for its packet."""
        packet = "ENABLE_SGPR_DISPATCH_PTR" in asked
        if packet:
            self.most_groups = _MOST_GROUPS
        return self._device().describe_queue() if "ENABLE_SGPR_QUEUE_PTR" in asked else 0, packet

    def _device(self) -> ProgramDevice:
        device: object = self.device
        assert isinstance(device, ProgramDevice)
        return device

    def layout_of(self, buffers: int, scalars: int) -> ArgsLayout:
        """The layout of a call's argument block; a kernel that asks for its dispatch packet finds it behind them."""
        layout = super().layout_of(buffers, scalars)
        return _with_packet(layout, self.kernel.kernarg) if self._packet else layout

    def code(self) -> tuple[int, int]:
        """Where the kernel's code object lies."""
        memory = self._code.memory
        assert isinstance(memory.address, int)
        return memory.address, memory.nbytes

    def _scratch(self, card: Node) -> int:
        """Makes the device's scratch large enough; what TMPRING_SIZE is."""
        if not self.kernel.scratch:
            return 0
        architecture = self._architecture
        lanes = 32 if self.kernel.wave32 else 64
        unit = architecture.scratch_unit
        wave = -(-self.kernel.scratch * lanes // unit) * unit
        waves = card.compute_units // card.xccs * (card["max_slots_scratch_cu"] or 32)
        counted = waves // card.engines if architecture.scratch_per_engine else waves
        most = (1 << architecture.registers.COMPUTE_TMPRING_SIZE.fields["WAVES"][1]) - 1
        if counted > most:
            counted, waves = most, most * (card.engines if architecture.scratch_per_engine else 1)
        self._device().give_scratch(self.kernel.scratch, wave // unit, counted, wave * waves * card.xccs)
        size: int = architecture.registers.COMPUTE_TMPRING_SIZE.encode(WAVES=counted, WAVESIZE=wave // unit)
        return size

    def _begin(self, args: HCQArgsState, groups: Dims, items: Dims) -> None:
        """Looks at the sizes of a launch, and tells them to a kernel that asks in hidden arguments.

        Source: LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Metadata": the kinds of arguments.
        """
        args.tell({
            "hidden_grid_dims": 3,
            **{f"hidden_block_count_{axis}": count for axis, count in zip("xyz", groups, strict=True)},
            **{f"hidden_group_size_{axis}": size for axis, size in zip("xyz", items, strict=True)},
        })  # fmt: skip
        known = [size for size in items if isinstance(size, int)]
        if prod(known) > _LARGEST_GROUP or max(known, default=0) > _LARGEST_GROUP:
            raise DeviceError(f"{self.name}: groups of {items} work-items; {self.device.device} runs {_LARGEST_GROUP}")

    def dispatch(self, queue: ComputeQueue, args: HCQArgsState, groups: Dims, items: Dims) -> None:
        """Appends the registers of a launch, and the dispatch.

        Raises:
          DeviceError: if a group is larger than the card can run.
        """
        self._begin(args, groups, items)
        architecture, kernel = self._architecture, self.kernel
        if self._packet:
            self._fill_packet(args, groups, items)
        registers = architecture.registers
        rsrc1, rsrc2, rsrc3 = kernel.rsrc
        rsrc2 |= -(-kernel.lds // architecture.lds_unit) << registers.COMPUTE_PGM_RSRC2.fields["LDS_SIZE"][0]
        entry = self._entry >> 8
        queue.set_registers(registers.COMPUTE_PGM_LO, entry & 0xFFFFFFFF, entry >> 32)
        queue.set_registers(registers.COMPUTE_PGM_RSRC1, rsrc1, rsrc2)
        queue.set_registers(registers.COMPUTE_PGM_RSRC3, rsrc3)
        queue.set_registers(registers.COMPUTE_TMPRING_SIZE, self._tmpring)
        if kernel.scratch:
            self.device.scratch.use(queue)
        if kernel.scratch and architecture.flat_scratch:
            queue.packet(pm4.PACKET3_SET_SH_REG, 3)
            queue.put(registers.COMPUTE_DISPATCH_SCRATCH_BASE_LO.address - pm4.PACKET3_SET_SH_REG_START)
            queue.put64(ADDRESS // 256)
        queue.set_registers(registers.COMPUTE_RESTART_X, 0, 0, 0)
        queue.set_registers(registers.COMPUTE_RESOURCE_LIMITS, 0)
        if kernel.user_sgprs:
            queue.packet(pm4.PACKET3_SET_SH_REG, 1 + kernel.user_sgprs)
            queue.put(registers.COMPUTE_USER_DATA_0.address - pm4.PACKET3_SET_SH_REG_START)
            for what, count in kernel.sgprs:
                if what == "ENABLE_SGPR_KERNARG_SEGMENT_PTR":
                    queue.put64(args.memory.address)
                elif what == "ENABLE_SGPR_DISPATCH_PTR":
                    queue.put64(args.memory.address + args.layout.hidden[f"{_PACKET}header"][0])
                elif what == "ENABLE_SGPR_QUEUE_PTR":
                    queue.put64(self._queue)
                elif what == "ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER" and kernel.scratch:
                    _describe_scratch(queue, kernel.wave32)
                elif what == "ENABLE_SGPR_FLAT_SCRATCH_INIT" and kernel.scratch:
                    queue.put64(ADDRESS)
                elif what == "ENABLE_SGPR_PRIVATE_SEGMENT_SIZE":
                    queue.put(kernel.scratch)
                else:  # of no use without private memory, or 0 for the first and only dispatch of a packet
                    queue.put(*[0] * count)
            queue.put(*[0] * (kernel.user_sgprs - sum(count for _, count in kernel.sgprs)))
        queue.set_registers(registers.COMPUTE_START_X, 0, 0, 0, *items)
        queue.packet(pm4.PACKET3_DISPATCH_DIRECT, 4)
        queue.put(*groups)
        initiator = registers.COMPUTE_DISPATCH_INITIATOR
        lanes = {"CS_W32_EN": 1} if kernel.wave32 else {}
        queue.put(initiator.encode(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, **lanes))

    def _fill_packet(self, args: HCQArgsState, groups: Dims, items: Dims) -> None:
        fields: dict[str, sint] = {
            "header": aql.HEADER.encode(type=aql.PACKET_TYPE_KERNEL_DISPATCH), "setup": 3,
            **{f"workgroup_size_{axis}": size for axis, size in zip("xyz", items, strict=True)},
            **{f"grid_size_{axis}": n * size for axis, n, size in zip("xyz", groups, items, strict=True)},
            "private_segment_size": self.kernel.scratch, "group_segment_size": self.kernel.lds,
            "kernel_object": self.descriptor, "kernarg_address": args.memory.address,
        }  # fmt: skip
        args.tell({_PACKET + field: value for field, value in fields.items()})


def _with_packet(layout: ArgsLayout, nbytes: int) -> ArgsLayout:
    """A block of arguments with room for a dispatch packet behind them, whose fields a launch fills in.

    A queue of PM4 has no packet that a kernel could be told of. What LLVM's kernels read there are sizes.

    Source: LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State": the pointer to the dispatch packet;
    tinygrad makes such a packet in the same place (``ops_amd.py``, ``AMDComputeQueue.exec``).
    """
    start = -(-max(layout.nbytes, nbytes) // aql.PACKET_NBYTES) * aql.PACKET_NBYTES
    sizes = {"H": 2, "I": 4, "Q": 8}
    places = aql.kernel_dispatch_packet.fields.items()
    fields = {_PACKET + name: (start + at, sizes[code]) for name, (at, code) in places}
    return ArgsLayout(
        layout.buffers, layout.scalars, layout.prefix, places=layout.places, offsets=layout.offsets,
        hidden=layout.hidden | fields, nbytes=start + aql.PACKET_NBYTES, alignment=max(layout.alignment, 64),
    )  # fmt: skip


class PacketProgram(AMDProgram):
    """A kernel that packets of AQL launch. The firmware reads the rest from its descriptor, and may give it all."""

    most_groups = _MOST_GROUPS

    def _asked_for(self, asked: set[str]) -> tuple[int, bool]:
        return 0, False

    def dispatch(self, queue: ComputeQueue, args: HCQArgsState, groups: Dims, items: Dims) -> None:
        """Appends the packet.

        Raises:
          DeviceError: if a group is larger than the card can run.
        """
        self._begin(args, groups, items)
        assert isinstance(queue, AQLQueue)
        kernel = self.kernel
        queue.launch(
            self.descriptor, args.memory.address, groups, items, private=kernel.scratch, group=kernel.lds
        )


def _describe_scratch(queue: ComputeQueue, wave32: bool) -> None:
    """The buffer descriptor of scratch: each lane's dwords lie between those of the others of its wave.

    Source: *RDNA 2 Instruction Set Architecture*, "Buffer Resource Descriptor": bits 0 to 47 the address, 63 swizzling,
    64 to 95 the size, 96 to 107 which component goes where, 108 to 114 the format, 117 and 118 the lanes that lie side
    by side, 119 that a lane's number is its index, 120 is 1, 124 and 125 that accesses are not compared with the size.
    """
    swizzled, stride = 1 << 63, 2 if wave32 else 3  # 32 or 64 lanes
    identity = 4 | 5 << 3 | 6 << 6 | 7 << 9
    queue.put64(ADDRESS + swizzled)
    queue.put(0xFFFFFFFF, identity | _DWORDS << 12 | stride << 21 | 1 << 23 | 1 << 24 | 2 << 28)
