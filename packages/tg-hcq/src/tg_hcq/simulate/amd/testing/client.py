"""A client of the kernel's interface, written from the headers: requests and packets as plain bytes."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from collections.abc import Callable

from ....core.fileio import MMIO, FileIO
from ..kfd import KfdSystem

PAGE = 4096
VRAM, GTT, USERPTR, DOORBELL, MMIO_REMAP = 1, 2, 4, 8, 16
WRITABLE, EXECUTABLE, PUBLIC, COHERENT, UNCACHED = 1 << 31, 1 << 30, 1 << 29, 1 << 26, 1 << 25
COMPUTE, SDMA, AQL = 0, 1, 2
SHARED = mmap.MAP_SHARED
BOTH = mmap.PROT_READ | mmap.PROT_WRITE


def request(direction: int, number: int, nbytes: int, kind: str = "K") -> int:
    """The number of a request (asm-generic/ioctl.h)."""
    return direction << 30 | nbytes << 16 | ord(kind) << 8 | number


def call(file: FileIO, direction: int, number: int, data: bytes, kind: str = "K") -> bytes:
    """Executes a request; what stands in its argument afterwards."""
    argument = (ctypes.c_uint8 * len(data)).from_buffer_copy(data)
    file.ioctl(request(direction, number, len(data), kind), argument)
    return bytes(argument)


class Memory:
    """Memory that was allocated."""

    def __init__(self, client: Client, handle: int, address: int, nbytes: int, offset: int) -> None:
        self.client, self.handle, self.address, self.nbytes, self.offset = client, handle, address, nbytes, offset

    def map(self, *gpus: int) -> Memory:
        """Has GPUs see it; the client's own if none is named."""
        ids = gpus or (self.client.gpu,)
        array = (ctypes.c_uint32 * len(ids))(*ids)
        call(self.client.kfd, 3, 0x18, struct.pack("<QQII", self.handle, ctypes.addressof(array), len(ids), 0))
        return self

    def unmap(self) -> None:
        """Takes it from the client's GPU."""
        array = (ctypes.c_uint32 * 1)(self.client.gpu)
        call(self.client.kfd, 3, 0x19, struct.pack("<QQII", self.handle, ctypes.addressof(array), 1, 0))

    def free(self) -> None:
        """Gives it back."""
        call(self.client.kfd, 1, 0x17, struct.pack("<Q", self.handle))

    def view(self, fmt: str = "I") -> MMIO:
        """It, as the host sees it."""
        at = self.client.drm.mmap(0, self.nbytes, BOTH, SHARED, self.offset)
        return MMIO(at, self.nbytes, fmt)  # type: ignore[arg-type]


class Client:
    """What a driver does, with nothing but bytes."""

    def __init__(self, machine: KfdSystem, index: int = 0) -> None:
        self.machine = machine
        self.kfd = machine.open("/dev/kfd", os.O_RDWR)
        self.gpu = int(machine.read_text(f"/sys/class/kfd/kfd/topology/nodes/{index + 1}/gpu_id"))
        self.drm = machine.open(f"/dev/dri/renderD{128 + index}", os.O_RDWR)
        call(self.kfd, 1, 0x15, struct.pack("<II", self.drm.fd, self.gpu))
        self._next = 0x7F00_0000_0000 + (index << 36)
        self._flush: MMIO | None = None

    def alloc(self, flags: int, nbytes: int = PAGE, host: int = 0, address: int | None = None) -> Memory:
        """Memory at an address of its own."""
        at = self._next if address is None else address
        data = call(self.kfd, 3, 0x16, struct.pack("<QQQQII", at, nbytes, 0, host, self.gpu, flags & 0xFFFFFFFF))
        self._next += -(-nbytes // PAGE) * PAGE + PAGE
        _, _, handle, offset, _, _ = struct.unpack("<QQQQII", data)
        if flags & PUBLIC and self._flush is None:
            page = self.alloc(MMIO_REMAP | WRITABLE | COHERENT, address=0x6F00_0000_0000)
            self._flush = MMIO(self.kfd.mmap(0, PAGE, BOTH, SHARED, page.offset), 4, "I")
        return Memory(self, handle, at, nbytes, offset)

    def flush(self) -> None:
        """Has what the host stored to the card's memory arrive there, if there is any that it sees."""
        if self._flush is not None:
            self._flush[0] = 0

    def host(self, nbytes: int = PAGE, more: int = 0) -> Memory:
        """Memory of the host's that the GPU sees."""
        return self.alloc(GTT | WRITABLE | COHERENT | more, nbytes).map()

    def properties(self, node: int = 1) -> dict[str, int]:
        """What sysfs says of the GPU."""
        text = self.machine.read_text(f"/sys/class/kfd/kfd/topology/nodes/{node}/properties")
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}

    def save_area(self) -> int:
        """Bytes of a queue's save area (kfd_queue_ctx_save_restore_size)."""
        said = self.properties()
        units = said["simd_count"] // said["simd_per_cu"] // said["num_xcc"]
        engines = said["array_count"] // said["simd_arrays_per_engine"] // said["num_xcc"]
        waves = 32 * units if said["gfx_target_version"] >= 100100 else min(40 * units, 512 * engines)
        debug = -(-32 * waves // 64) * 64
        return -(-(said["cwsr_size"] + debug) * said["num_xcc"] // PAGE) * PAGE

    def queue(self, kind: int = COMPUTE, ring: int = PAGE, **changed: int) -> ClientQueue:
        """A queue of a kind; ``changed`` are fields of the request."""
        return ClientQueue(self, kind, ring, changed)


QUEUE = "<QQQQIIIIIIQQQIIII"
FIELDS = (
    "ring", "write", "read", "doorbell", "size", "gpu", "kind", "percentage", "priority", "number", "eop", "eop_size",
    "save", "save_size", "stack", "engine", "pad",
)  # fmt: skip


class ClientQueue:
    """A queue, and what the host keeps of it."""

    def __init__(self, client: Client, kind: int, nbytes: int, changed: dict[str, int]) -> None:
        self.client = client
        self.ring_memory, self.pointers, self.read_memory = client.host(nbytes), client.host(), client.host()
        values = {
            "ring": self.ring_memory.address, "write": self.pointers.address, "read": self.read_memory.address,
            "size": nbytes, "gpu": client.gpu, "kind": kind, "percentage": 100, "priority": 7,
        }  # fmt: skip
        if kind != SDMA:
            said = client.properties()
            self.eop, self.save = client.alloc(VRAM | WRITABLE).map(), client.host(client.save_area())
            values |= {
                "eop": self.eop.address, "eop_size": PAGE, "save": self.save.address,
                "save_size": said["cwsr_size"], "stack": said["ctl_stack_size"],
            }  # fmt: skip
        values |= changed
        data = call(client.kfd, 3, 0x02, struct.pack(QUEUE, *(values.get(name, 0) for name in FIELDS)))
        said_back = dict(zip(FIELDS, struct.unpack(QUEUE, data), strict=True))
        self.number, offset = said_back["number"], said_back["doorbell"]
        slice_ = 8192
        page = client.kfd.mmap(0, slice_, BOTH, SHARED, (offset & -slice_) - (1 << 64))
        self.bell = MMIO(page + offset % slice_, 8, "Q")
        self.ring, self.write = self.ring_memory.view("I"), self.pointers.view("Q")
        self.read = self.read_memory.view("Q")
        self.unit = 4 if kind == SDMA else 1
        self.count = 0

    def put(self, *words: int) -> ClientQueue:
        """Stores words into the ring."""
        for word in words:
            self.ring[self.count % len(self.ring)] = word
            self.count += 1
        return self

    def ring_bell(self) -> ClientQueue:
        """Stores the write pointer, and rings."""
        self.client.flush()
        self.write[0] = self.count * self.unit
        self.bell[0] = self.count * self.unit
        return self

    def submit(self, *words: int) -> ClientQueue:
        """Stores words and rings."""
        return self.put(*words).ring_bell()

    def destroy(self) -> None:
        """Ends it."""
        call(self.client.kfd, 3, 0x03, struct.pack("<II", self.number, 0))


def until(ready: Callable[[], bool], seconds: float = 10) -> None:
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.001)


def packet3(opcode: int, *body: int) -> list[int]:
    """A packet of PM4's type 3."""
    return [3 << 30 | len(body) - 1 << 16 | opcode << 8, *body]


def write_data(address: int, *words: int) -> list[int]:
    """WRITE_DATA to memory, confirmed."""
    return packet3(0x37, 5 << 8 | 1 << 20, address & 0xFFFFFFFF, address >> 32, *words)


def release_mem(
    address: int, value: int, data: int = 2, interrupt: int = 0, context: int = 0, gcr: int = 0
) -> list[int]:
    """RELEASE_MEM at the end of the pipe; ``data`` 2 stores 64 bits, 3 the clock."""
    return packet3(
        0x49, 0x14 | 5 << 8 | gcr, interrupt << 24 | data << 29, address & 0xFFFFFFFF, address >> 32,
        value & 0xFFFFFFFF, value >> 32, context,
    )  # fmt: skip
