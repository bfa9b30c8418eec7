"""AMDDevice: a Radeon or Instinct card through KFD."""

from __future__ import annotations

import errno
import struct
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from tg_codegen import Renderer
from tg_codegen.machine.amdgpu import amd_target
from tg_codegen.render.c.hip import HIPRenderer
from tg_codegen.render.llvm.amdgpu import AMDLLVMRenderer
from tg_lazy.cost import LIMITS, Limits
from tg_runtime import Compiler, DevEntry, DeviceError, DeviceFacts, DeviceUnavailable
from tg_runtime.compilers import comgr, llvm
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.compilers.comgr import HIPCompiler

from ..core.allocator import HOST_OPTIONS
from ..core.buffer import HCQBuffer
from ..core.compiled import HCQCompiled
from ..core.errors import DeviceFault, DeviceLost
from ..core.graph import HCQGraph
from ..core.queue import QueueMemory
from ..core.ring import Ring
from ..core.system import System, software_interfaces, system_for
from ..headers.amd import kfd_ioctl
from ..headers.amd.aql import amd_queue_t
from .architecture import NAMES, Architecture, architecture
from .kfd.card import Card, Memory, QueueParts
from .kfd.driver import ENOTSUPP, refused
from .kfd.presence import listed, missing, wanted
from .kfd.topology import Node, nodes
from .memory import AMDAllocator
from .process import Process, process_of
from .program import AMDProgram, PacketProgram
from .queues import aql
from .queues.compute import ComputeQueue, packet_text
from .queues.copy import CopyQueue
from .queues.pool import QueuePool

_RESIDENT: Final = 2048
"""Work-items of a compute unit that hide the latency of memory: 32 waves of 64."""


_NO_ENGINE: Final = (errno.ENOMEM, errno.EOPNOTSUPP, ENOTSUPP)
"""How the kernel says that no copy engine has a queue left, or that the card has none."""


class AMDDevice(HCQCompiled):
    """A card.

    Attributes:
      node: what the kernel's topology says of it.
      architecture: what its queues and kernels look like.
      packets: whether its compute queue takes packets of AQL: that of a card with several compute dies does.
    """

    allocator: AMDAllocator
    numbered = True

    def __init__(
        self, device: str = "AMD", entry: DevEntry | None = None, *, ring_nbytes: int = 1 << 20,
        system: System | None = None,
    ) -> None:  # fmt: skip
        """Opens a card.

        Args:
          device: its name.
          entry: how the setting ``DEV`` asks for it.
          ring_nbytes: size of each ring, a power of two from 4096 on.
          system: where the card is; the one that ``entry`` chooses if None.

        Raises:
          DeviceUnavailable: if there is no such card, or it may not be used; the message says what helps.
        """
        entry = entry or DevEntry(device.partition(":")[0].upper())
        system = system or system_for(entry)
        self._process: Process = process_of(system, device)
        self.node = _choose(system, device, entry)
        try:
            self.architecture: Architecture = architecture(self.node.version)
        except DeviceError as error:
            raise DeviceUnavailable.here(device, str(error)) from None
        card = self._process.card(self.node, device)
        self.packets = self.node.xccs > 1
        self._xnack = self.node.version < 100000 and self._process.xnack()
        renderer, compiler = _code_generation(entry.renderer, self.architecture, self.node)
        LIMITS[device.partition(":")[0]] = Limits(units=self.node.compute_units * _RESIDENT)
        self._rings: dict[str, Ring] = {}
        self._parts: dict[str, QueueParts] = {}
        self._ring_nbytes, self._card, self._known_faults = ring_nbytes, card, 0
        allocator = AMDAllocator(device, card, self._process)
        dies = aql.Dies.of(self.node.xccs, allocator.alloc, HOST_OPTIONS)
        self._lane_nbytes, self._scratch_fields = 0, dict[str, int]()
        self._pool = QueuePool(allocator.alloc)
        self._queue_description: HCQBuffer | None = None
        self._close = weakref.finalize(self, _close, self._process, system, card, self._parts, allocator.held)
        chosen, packets = self.architecture, self.packets

        def compute() -> ComputeQueue:
            return aql.AQLQueue(chosen, dies) if packets else ComputeQueue(chosen)

        super().__init__(
            device,
            allocator,
            renderer,
            compiler,
            None if compiler is None else self.program,
            compute_queue=compute,
            copy_queue=lambda: CopyQueue(chosen) if "copy" in self._rings else compute(),
            ticks_per_us=card.clock_khz / 1000,
            graph=HCQGraph,
            system=system,
        )
        self._start()

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """LLVM IR through llvmlite, and HIP C++ through COMGR."""
        return {"LLVM": None if llvm.available() else llvm.MISSING, "HIP": comgr.missing()}

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs the kernel's KFD with a card that the driver knows, or a software one; and what compiles kernels."""
        if entry.arch and entry.arch not in NAMES:
            return f"its ARCH is one of {', '.join(sorted(NAMES))}, not {entry.arch!r}"
        if entry.iface not in ("", "KFD", *software_interfaces("AMD")):
            return f"it has no interface {entry.iface}"
        problem = _no_renderer(cls.renderers(), entry.renderer)
        if problem is not None or entry.iface in software_interfaces("AMD"):
            return problem
        return missing(system_for(entry), entry)

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """What it is known for without being opened."""
        problem = cls.unavailable(DevEntry("AMD", iface="KFD"))
        interfaces = {"KFD": problem, **dict.fromkeys(software_interfaces("AMD"))}
        return DeviceFacts(entry.arch, None, interfaces)

    def opened_facts(self) -> DeviceFacts:
        """The card as the kernel calls it."""
        name = f"{self.architecture.name} ({self.node.name})" if self.node.name else self.architecture.name
        return DeviceFacts(name, self.node.memory or None)

    def raise_error_state(self) -> None:
        """Raises what stopped the device, if it is stopped or closed."""
        super().raise_error_state()
        if not self._close.alive:
            raise DeviceError(f"{self.device} is closed")

    def program(self, name: str, lib: bytes) -> AMDProgram:
        """A kernel of a code object, loaded.

        Raises:
          ELFError: if the code object is damaged, or for another card; nothing was sent then.
          OutOfMemory: if there is no memory for it.
        """
        make = PacketProgram if self.packets else AMDProgram
        return make(self, self.architecture, self.node, name, lib, xnack=self._xnack)

    @property
    def queue_memory(self) -> QueueMemory:
        """Memory for bound queues; packet queues bind every submission."""
        return self._pool if self.packets else self.allocator

    def hardware_ring(self, kind: str) -> Ring:
        """The ring of a kind of queue."""
        return self._rings[kind]

    def rings(self) -> Sequence[Ring]:
        """That of each queue."""
        return list(self._rings.values())

    def packet_text(self, words: Sequence[int]) -> tuple[int, str]:
        """The packet of AQL or PM4 that some words begin with."""
        return aql.entry_text(words) if self.packets else packet_text(words)

    def collect_fault(self) -> DeviceFault | None:
        """What the kernel tells of a memory fault, or of a reset of the card."""
        return self._process.fault(self.device, self.node.gpu_id, self._known_faults)

    def read_clock(self) -> int | None:
        """What the card's clock shows now, in nanoseconds, as the kernel reads it; None if it does not."""
        try:
            return round(self._card.ticks() * 1000 / self.ticks_per_us)
        except OSError:
            return None

    def _require_running(self) -> None:
        self.check_fault()
        self.raise_error_state()

    def _start(self) -> None:
        """Creates the queues, which faults before do not stop."""
        self._known_faults = len(self._process.faults.get(self.node.gpu_id, ()))
        compute = kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL if self.packets else kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE
        for kind, number in (("compute", compute), ("copy", kfd_ioctl.KFD_IOC_QUEUE_TYPE_SDMA)):
            try:
                parts = self._parts[kind] = self._card.create_queue(number, self._ring_nbytes)
            except OSError as error:
                if kind == "copy" and error.errno in _NO_ENGINE:
                    continue  # the compute queue copies, too
                self._close()
                raise refused(self.device, f"a {kind} queue", error) from None
            make = partial(
                Ring, f"{self.device} {kind} queue", parts.words, parts.read, parts.write, parts.doorbell, self.system,
                flush=self.allocator.flush, check=self._require_running,
            )  # fmt: skip
            if kind == "copy":
                ring = make(scale=4)
            elif self.packets:
                ring = make(entry_words=aql.WORDS, invalid=aql.INVALID, behind=1)
            else:
                ring = make(read_wraps=True)
            self._rings[kind] = ring
        self._tell_scratch()

    def give_scratch(self, lane: int, wave: int, counted: int, nbytes: int) -> None:
        """Makes the scratch large enough for a kernel; an AQL queue's firmware is told where it is.

        Args:
          lane: bytes of a work-item.
          wave: ``WAVESIZE`` of COMPUTE_TMPRING_SIZE.
          counted: ``WAVES`` of it.
          nbytes: of all waves.

        Raises:
          OutOfMemory: if there is not so much memory.
        """
        self.scratch.ensure(nbytes)
        if self.packets and lane > self._lane_nbytes:
            self.synchronize()  # what runs has what it was told
            self._lane_nbytes = lane
            size = self.architecture.registers.COMPUTE_TMPRING_SIZE
            self._scratch_fields = {
                "compute_tmpring_size": size.encode(WAVES=counted, WAVESIZE=wave),
                "scratch_backing_memory_location": self.scratch.address,
                "scratch_backing_memory_byte_size": self.scratch.nbytes,
                "scratch_wave64_lane_byte_size": lane,
            }
            self._tell_scratch()

    def describe_queue(self) -> int:
        """Where an ``amd_queue_t`` lies that says where generic addresses mean local and private memory.

        Raises:
          OutOfMemory: if there is no memory for it.
          OSError: if the kernel refuses to tell the apertures.
        """
        if self.packets:
            return self._parts["compute"].page.address
        if self._queue_description is None:
            memory = self.allocator.alloc(amd_queue_t.nbytes, HOST_OPTIONS)
            memory.host_view("B").write(0, self._card.described())
            self._queue_description = memory
        address = self._queue_description.address
        assert isinstance(address, int)
        return address

    def _tell_scratch(self) -> None:
        if self.packets:
            page = self._parts["compute"].page
            for name, value in self._scratch_fields.items():
                offset, code = amd_queue_t.fields[name]
                page.write(offset, struct.pack(f"<{code}", value))

    def _reset(self) -> bool:
        """Ends the queues and creates others. Memory keeps its content, unless the kernel reset the card and says not.

        Raises:
          DeviceLost: if the kernel refuses.
        """
        if not self._close.alive:
            raise DeviceLost(f"{self.device} is closed")
        try:
            for kind in list(self._parts):
                self._card.destroy_queue(self._parts.pop(kind))
            self._start()
        except (OSError, DeviceError, MemoryError) as error:
            raise DeviceLost(f"{self.device}: {error}; only a new process can go on") from None
        kept = self.node.gpu_id not in self._process.forgetful
        self._process.forgetful.discard(self.node.gpu_id)
        return kept

    def close(self) -> None:
        """Ends the queues, and gives the memory back; what is queued is not executed."""
        self._close()


def _choose(system: System, device: str, entry: DevEntry) -> Node:
    found = nodes(system)
    chosen = wanted(found, entry)
    number = device.partition(":")[2] or "0"
    if not number.isdigit():
        raise DeviceUnavailable(f"the device {device} wants a number: AMD or AMD:1")
    if int(number) >= len(chosen):
        raise DeviceUnavailable.here(device, listed(system, found, entry))
    return chosen[int(number)]


def _no_renderer(found: Mapping[str, str | None], name: str) -> str | None:
    """Why there is no such renderer, or none at all if the name is empty."""
    if not name:
        return "; ".join(filter(None, found.values())) if all(found.values()) else None
    return found[name] if name in found else f"it has no renderer {name}; there are {' and '.join(found)}"


def _code_generation(name: str, chosen: Architecture, card: Node) -> tuple[Renderer | None, Compiler | None]:
    """What writes and compiles kernels; nothing where no compiler is there and none was asked for.

    Raises:
      DeviceUnavailable: if the one that was asked for makes no code for the card.
    """
    target = amd_target(chosen.name, units=card.compute_units, shared_bytes=card.lds)
    if name == "HIP" or (not name and not llvm.available() and comgr.missing() is None):
        return HIPRenderer(chosen.name, target), HIPCompiler(chosen.name)
    if not llvm.available():
        return None, None
    return AMDLLVMRenderer(chosen.name, target), AMDGPUCompiler(chosen.name)


def _close(
    process: Process, system: System, card: Card, parts: dict[str, QueueParts], held: dict[int, Memory]
) -> None:
    if system.process_id != process.id:  # the queues are the parent's
        return
    try:
        for kind in list(parts):
            card.destroy_queue(parts.pop(kind))
        for handle in list(held):
            process.unshare(held[handle])
            card.free(held.pop(handle))
    except OSError:
        pass  # the card is gone, and the kernel takes back what it had
