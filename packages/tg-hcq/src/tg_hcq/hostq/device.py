"""HOSTQ: a queue-driven device whose command processors are threads of this process.

It is there to prove what hardware drivers stand on, with every mechanism that they use: rings, doorbells, signals,
indirect words, address checks and faults. Kernels are functions of this process: those that the CPU device compiles, or
any C function.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from tg_codegen import Renderer
from tg_dtype import DType, dtypes
from tg_lazy.cost import LIMITS, Limits
from tg_runtime import BufferOptions, Compiler, DevEntry, DeviceError, DeviceFacts
from tg_runtime.backends.cpu.device import CPUDevice
from tg_runtime.host.elf import Layout
from tg_runtime.host.execmem import host_machines, make_executable
from tg_runtime.host.libc import address_of
from tg_shape import sint

from ..core.allocator import HOST_OPTIONS, HCQAllocator
from ..core.args import ArgsLayout, HCQArgsState
from ..core.buffer import HCQBuffer
from ..core.compiled import HCQCompiled
from ..core.errors import DeviceFault, DeviceLost
from ..core.fault import FaultReport, Known
from ..core.fileio import MMIO
from ..core.graph import HCQGraph
from ..core.program import HCQProgram
from ..core.queue import Dims, HWQueue, Launchable, QueueDevice
from ..core.ring import Ring
from ..core.system import System, real_system, software_interfaces, system_for
from ..core.timeline import LIMIT
from ..core.upload import UploadedCode
from .executor import (
    LEAST_RING_WORDS,
    PASS_CORE_ID,
    SCALARS,
    HostExecutor,
    Opcode,
    note_exception,
    packet_text,
)
from .memory import Access, HostMemory

QueueKind = str
"""``"compute"``, ``"copy"``, and ``"copy1"`` and so on where a device has several."""

# One address space for all devices of the kind: they are one another's peers.
MEMORY = HostMemory()

_SCALAR_CODES = {
    dtypes.int8: 0,
    dtypes.uint8: 1,
    dtypes.int16: 2,
    dtypes.uint16: 3,
    dtypes.int32: 4,
    dtypes.uint32: 5,
    dtypes.int64: 6,
    dtypes.uint64: 7,
    dtypes.float32: 8,
    dtypes.float64: 9,
}


class HostQueue(HWQueue):
    """Words for a :class:`~tg_hcq.hostq.executor.HostExecutor`."""

    def __init__(self, kind: QueueKind = "compute") -> None:
        super().__init__()
        self.kind: QueueKind = kind

    def _packet(self, opcode: Opcode, payload_words: int) -> None:
        self.put(opcode | payload_words << 8)

    def _signal(self, address: sint, value: sint) -> None:
        self._packet(Opcode.SIGNAL, 4)
        self.put64(address, value)

    def _wait(self, address: sint, value: sint) -> None:
        self._packet(Opcode.WAIT, 4)
        self.put64(address, value)

    def _timestamp(self, address: sint) -> None:
        self._packet(Opcode.TIMESTAMP, 2)
        self.put64(address)

    def memory_barrier(self) -> HostQueue:
        """Makes writes before it, by whomever, visible to what comes after it."""
        self._packet(Opcode.BARRIER, 0)
        return self

    def copy(self, dest: sint, src: sint, nbytes: sint) -> HostQueue:
        """Copies bytes between addresses."""
        self._packet(Opcode.COPY, 6)
        self.put64(dest, src, nbytes)
        return self

    def write(self, dest: sint, words: Sequence[sint]) -> HostQueue:
        """Stores 32-bit words at an address."""
        self._packet(Opcode.WRITE, 2 + len(words))
        self.put64(dest)
        self.put(*words)
        return self

    def poll(self, address: sint, value: sint, mask: int = 0xFFFFFFFF) -> HostQueue:
        """Holds the queue until the 32-bit word at an address, under ``mask``, equals ``value``."""
        self._packet(Opcode.POLL, 4)
        self.put64(address)
        self.put(value, mask)
        return self

    def _exec(self, program: Launchable, args: HCQArgsState, global_size: Dims, local_size: Dims) -> None:
        if not isinstance(program, HostQueueProgram):
            raise TypeError(f"exec: {program!r} is no program of a host-thread device")
        self._packet(Opcode.EXEC, 10)
        self.put64(program.descriptor(args.layout).address, args.memory.address)
        self.put(*global_size, *local_size)

    def _ring(self, device: QueueDevice) -> Ring:
        if not isinstance(device, HostQueueDevice):
            raise TypeError(f"submit: {device.device} is no host-thread device")
        return device.ring(self.kind)

    def _jump(self, address: int, count: int) -> Sequence[int]:
        return Opcode.INDIRECT | 3 << 8, address & 0xFFFFFFFF, address >> 32, count


class HostQueueAllocator(HCQAllocator):
    """Pages of this process."""

    peer_group = "HOSTQ"
    staging_slots = 4
    staging_nbytes = 1 << 20

    def __init__(self, device: str = "", limit: int | None = None, system: System | None = None) -> None:
        super().__init__(device, limit)
        self._system = system or real_system()
        self.mapped: Counter[tuple[int, int]] = Counter()

    def _map(self, nbytes: int, options: BufferOptions) -> HCQBuffer:
        access = Access.READ if options.readonly or options.executable else Access.READ | Access.WRITE
        access |= Access.EXECUTE if options.executable else Access(0)
        if options.external_ptr is not None:
            view = MMIO(options.external_ptr, nbytes)
            MEMORY.map(view.address, nbytes, view, access)
        else:
            view = MEMORY.allocate(nbytes, self._system, access, options.contiguous)
        meta = view.address, view.nbytes
        self.mapped[meta] += 1
        # as a card's: the host sees what was asked for with that, and else nothing
        seen = options.host or options.device_visible or options.external_ptr is not None
        window = view.view(0, nbytes) if seen else None
        return HCQBuffer(view.address, nbytes, window, meta, mappings={self.peer_group})

    def _unmap(self, opaque: HCQBuffer, options: BufferOptions) -> None:
        meta = opaque.meta
        assert isinstance(meta, tuple)
        if self.mapped[meta] > 0:  # not after the device was closed
            self.mapped[meta] -= 1
            MEMORY.unmap(*meta)

    def load_code(self, opaque: HCQBuffer, image: bytes, layout: Layout) -> None:
        """Writes code, which nobody can write to from then on.

        Raises:
          OSError: if the system allows no executable memory.
        """
        assert isinstance(opaque.address, int)
        MMIO(opaque.address, len(image)).write(0, image)
        make_executable(layout, opaque.address)


class HostQueueProgram(HCQProgram):
    """A C function ``void f(T *buffer, …, S scalar, …[, int32_t core_id])``.

    With ``core_id``, it is called once for each value below ``global_size[0]``.
    """

    def __init__(
        self,
        device: HostQueueDevice,
        name: str,
        entry: int,
        layout: ArgsLayout | None = None,
        core_id: bool = False,
        keep: object = None,
    ) -> None:
        """Loads the function at address ``entry``; ``keep`` is kept alive with it.

        Raises:
          ValueError: if a scalar is of a dtype that C functions do not take.
        """
        super().__init__(device, name, layout)
        for dtype in () if layout is None else layout.scalars:
            _scalar_code(name, dtype)
        self.entry, self.core_id, self._keep = entry, core_id, keep
        self._allocator = device.allocator
        # what was not uploaded is code of this process, which the device may call from now on
        self._code = None
        if not isinstance(keep, UploadedCode):
            self._foreign = BufferOptions(external_ptr=entry, executable=True, nolru=True)
            self._code = device.allocator.alloc(1, self._foreign)
        self._descriptors: dict[tuple[int, int], HCQBuffer] = {}

    def code(self) -> tuple[int, int]:
        """Where the function begins; how long it is, nobody knows."""
        return self.entry, 1

    def descriptor(self, layout: ArgsLayout) -> HCQBuffer:
        """What the command processor reads of the function, for a call with arguments of this layout."""
        key = layout.buffers, len(layout.scalars)
        found = self._descriptors.get(key)
        if found is None:
            codes = [_scalar_code(self.name, dtype) for dtype in layout.scalars]
            flags = PASS_CORE_ID if self.core_id else 0
            words = array("I", (self.entry & 0xFFFFFFFF, self.entry >> 32, *key, flags, *codes))
            found = self._descriptors[key] = self._allocator.alloc(4 * len(words), HOST_OPTIONS)
            found.host_view("I").write(0, words.tobytes())
        return found

    @classmethod
    def from_callable(
        cls,
        device: HostQueueDevice,
        name: str,
        function: Callable[..., object],
        buffers: int,
        scalars: Sequence[DType] = (),
        core_id: bool = False,
    ) -> HostQueueProgram:
        """Loads a Python function, called with the buffers' addresses and the scalars. An exception becomes a fault."""

        def call(*arguments: int | float) -> None:
            try:
                function(*arguments)
            except Exception as error:
                note_exception(error)

        types = [ctypes.c_uint64] * buffers + [SCALARS[_scalar_code(name, dtype)] for dtype in scalars]
        types += [ctypes.c_int32] if core_id else []
        pointer = ctypes.CFUNCTYPE(None, *types)(call)
        entry = ctypes.cast(pointer, ctypes.c_void_p).value
        assert entry is not None
        return cls(device, name, entry, ArgsLayout(buffers, scalars), core_id, pointer)

    @classmethod
    def from_object(cls, device: HostQueueDevice, name: str, lib: bytes) -> HostQueueProgram:
        """Loads a function of an object file, as the CPU device's compilers make them.

        Raises:
          ELFError: if the object is damaged, or does not define the function.
        """
        code = UploadedCode(device.allocator, lib, address_of, host_machines())
        return cls(device, name, code.entry(name), keep=code)

    def __del__(self) -> None:
        # launches in flight read the descriptor and run the function; what was uploaded looks after itself
        for descriptor in getattr(self, "_descriptors", {}).values():
            self._allocator.retire(descriptor, HOST_OPTIONS)
        code = getattr(self, "_code", None)
        if code is not None:
            self._allocator.retire(code, self._foreign, keep=self._keep)


class HostQueueDevice(HCQCompiled):
    """The device HOSTQ: a compute queue and a copy queue, each with a thread of its own."""

    allocator: HostQueueAllocator
    default_ring_words: ClassVar[int] = 1 << 14

    def __init__(
        self,
        device: str = "HOSTQ",
        entry: DevEntry | None = None,
        *,
        ring_words: int = default_ring_words,
        timeline_limit: int = LIMIT,
        copy_queues: int = 1,
        memory_limit: int | None = None,
        system: System | None = None,
    ) -> None:
        """Opens the device. A queue's thread starts with the first submission.

        Args:
          device: its name.
          entry: how the setting ``DEV`` asks for it.
          ring_words: size of each ring, in 32-bit words; at least 16.
          timeline_limit: see :class:`~tg_hcq.core.timeline.Timeline`.
          copy_queues: number of copy queues.
          memory_limit: most bytes that buffers may hold; None for what the system has.
          system: where its memory is from; the one that ``entry`` chooses if None.
        """
        if copy_queues < 1:
            raise ValueError(f"{device}: {copy_queues} copy queues")
        entry = entry or DevEntry(device.partition(":")[0].upper())
        system = system or system_for(entry)
        renderer, compiler = _code_generation(entry)
        LIMITS[device.partition(":")[0]] = Limits().of_threads(1)
        self._executors: dict[str, HostExecutor] = {}
        allocator = HostQueueAllocator(device, memory_limit, system)
        self._close = weakref.finalize(self, _close, system, system.process_id, self._executors, allocator.mapped)
        super().__init__(
            device,
            allocator,
            renderer,
            compiler,
            None if compiler is None else lambda name, lib: HostQueueProgram.from_object(self, name, lib),
            compute_queue=HostQueue,
            copy_queue=lambda: HostQueue("copy"),
            ticks_per_us=1000.0,
            timeline_limit=timeline_limit,
            graph=HCQGraph,
            system=system,
        )
        for kind in (f"copy{number}" for number in range(1, copy_queues)):
            self.queues[kind] = partial(HostQueue, kind)
        self._rings = {kind: self._new_ring(kind, ring_words) for kind in self.queues}
        self._start()

    @classmethod
    def renderers(cls) -> Mapping[str, str | None]:
        """Those of the CPU device."""
        return CPUDevice.renderers()

    @classmethod
    def unavailable(cls, entry: DevEntry) -> str | None:
        """Needs what the CPU device needs; constructed directly, the device works without, and runs callables only."""
        return CPUDevice.unavailable(entry)

    @classmethod
    def facts(cls, entry: DevEntry) -> DeviceFacts:
        """Those of the CPU device; each queue is one thread."""
        return CPUDevice.facts(entry)._replace(interfaces=dict.fromkeys(software_interfaces("HOSTQ")))

    def raise_error_state(self) -> None:
        """Raises what stopped the device, if it is stopped or closed."""
        super().raise_error_state()
        if not self._close.alive:
            raise DeviceError(f"{self.device} is closed")

    def _new_ring(self, kind: str, ring_words: int) -> Ring:
        name = f"{self.device} {kind} queue"
        if ring_words < LEAST_RING_WORDS:
            raise ValueError(f"{name}: a ring of {ring_words} words; it has at least {LEAST_RING_WORDS}")
        words = self.system.allocate(4 * ring_words).view(0, 4 * ring_words, "I")
        pointers = self.system.allocate(3 * 64)
        # each in a line of the cache of its own, for different threads store to them
        read, write, doorbell = (pointers.view(at, 8, "Q") for at in (0, 64, 128))
        return Ring(name, words, read, write, doorbell, self.system, check=self._require_running)

    def _require_running(self) -> None:
        self.check_fault()
        self.raise_error_state()

    def collect_fault(self) -> DeviceFault | None:
        """What a queue that stopped left in its record."""
        for executor in self._executors.values():
            record = executor.fault
            if record is not None:
                source = f"fault record of the {executor.name}"
                error = DeviceFault(f"{executor.name}: fault at word {record.word}: {record.message}")
                address = None if record.address is None else Known(record.address, source)
                access = None if record.address is None else Known(record.access, source)
                pc = None if record.pc is None else Known(record.pc, source)
                registers = {"read": record.word, "header": record.header}
                error.report = FaultReport(
                    self.device, Known(record.message, source), address, access, pc, registers=Known(registers, source)
                )
                error.__cause__ = record.cause
                return error
        return None

    def rings(self) -> Sequence[Ring]:
        """That of each kind of queue."""
        return list(self._rings.values())

    def packet_text(self, words: Sequence[int]) -> tuple[int, str]:
        """The command's name and its payload, as hexadecimal numbers."""
        return packet_text(words)

    def _start(self) -> None:
        for kind, ring in self._rings.items():
            ring.restart()
            self._executors[kind] = HostExecutor(ring.name, MEMORY, ring.words, ring.read, ring.doorbell)

    def executor(self, kind: QueueKind) -> HostExecutor:
        """The command processor behind a kind of queue."""
        return self._executors[kind]

    def ring(self, kind: QueueKind) -> Ring:
        """The ring of a kind of queue, which is executed from now on.

        Raises:
          DeviceError: if the system gives no thread to execute it.
        """
        self._executors[kind].start()
        return self._rings[kind]

    def _reset(self) -> bool:
        """Starts the queues again. Memory keeps its content.

        Raises:
          DeviceLost: if a kernel does not end: nothing can stop a thread in the middle of a function.
        """
        if not self._close.alive:
            raise DeviceLost(f"{self.device} is closed")
        running = _stop(self._executors)
        if running:
            raise DeviceLost(f"{self.device}: a kernel on the {running[0]} does not end; only the process can")
        self._start()
        return True

    def close(self) -> None:
        """Stops the threads and unmaps the memory; what is queued is not executed."""
        self._close()


def _scalar_code(name: str, dtype: DType) -> int:
    code = _SCALAR_CODES.get(dtype)
    if code is None:
        raise ValueError(f"{name}: a scalar argument of a host function cannot be {dtype.name}")
    return code


def _code_generation(entry: DevEntry) -> tuple[Renderer | None, Compiler | None]:
    if CPUDevice.unavailable(entry) is not None:
        return None, None
    cpu = CPUDevice("CPU", entry)
    assert cpu.renderer is not None
    # a queue has one thread
    return type(cpu.renderer)(replace(cpu.renderer.target, threads=1)), cpu.compiler


def _close(
    system: System, process: int, executors: dict[str, HostExecutor], mapped: Counter[tuple[int, int]]
) -> None:
    if system.process_id != process:  # the threads are the parent's, and so is what they left locked
        return
    if _stop(executors):
        return  # what a kernel uses stays
    for address, nbytes in mapped.elements():
        MEMORY.unmap(address, nbytes)
    mapped.clear()


def _stop(executors: dict[str, HostExecutor]) -> list[str]:
    """Stops queues; the names of those that are in the middle of a kernel, which stay."""
    for kind, executor in list(executors.items()):
        if executor.stop():
            del executors[kind]
    return [executor.name for executor in executors.values()]
