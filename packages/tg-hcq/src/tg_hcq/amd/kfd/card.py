"""Card: one card as a process holds it: its address space, its memory, its queues, its clock."""

from __future__ import annotations

import ctypes
import mmap
import os
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from tg_runtime import DeviceUnavailable

from ...core.fileio import MMIO, FileIO
from ...core.system import System
from ...headers.amd import amdgpu_drm, aql, kfd_ioctl
from .driver import Driver, refused
from .topology import Node

VRAM: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_VRAM
GTT: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_GTT
USERPTR: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
MMIO_REMAP: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP
WRITABLE: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE & 0xFFFFFFFF
EXECUTABLE: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
PUBLIC: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC
NO_SUBSTITUTE: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
COHERENT: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
UNCACHED: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED
CONTIGUOUS: Final = kfd_ioctl.KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS

DOORBELLS: Final = 8192
"""Bytes of a process' doorbells on a card: 1024 of 8 bytes; the kernel maps all of them or none."""

_IDS: Final = ("read_dispatch_id", "write_dispatch_id")
_FIXED: Final = 0x10
_LARGE: Final = 2 << 20


class Memory(NamedTuple):
    """A piece of memory that the card addresses.

    Attributes:
      address: for the card, and for the host where it sees it.
      nbytes: its size, in whole pages.
      handle: how ioctls name it.
      reserved: whether its addresses were reserved here, and are given back with it.
      gpu_id: the card that it was taken through.
    """

    address: int
    nbytes: int
    handle: int
    reserved: bool
    gpu_id: int


class QueueParts(NamedTuple):
    """A queue of the hardware, and the memory that it needs.

    Attributes:
      number: how ioctls name it.
      words: the ring.
      read: its read pointer.
      write: its write pointer.
      doorbell: its doorbell.
      page: the page that its pointers lie in; of AQL queues it begins with an ``amd_queue_t``.
      memories: what is freed with it.
    """

    number: int
    words: MMIO
    read: MMIO
    write: MMIO
    doorbell: MMIO
    page: MMIO
    memories: tuple[Memory, ...]


class Card:
    """A card that this process has acquired.

    Attributes:
      driver: the kfd file.
      node: what the topology says of it.
      clock_khz: how fast its timestamps count.

    Args:
      system: what everything is asked of.
      driver: the kfd file.
      node: the card.
      device: the device's name, for messages.

    Raises:
      DeviceUnavailable: if its render node may not be opened, or the kernel refuses to hand the card out.
    """

    def __init__(self, system: System, driver: Driver, node: Node, device: str) -> None:
        self._system, self.driver, self.node, self._device = system, driver, node, device
        path = f"/dev/dri/renderD{node['drm_render_minor']}"
        try:
            self._render: FileIO = system.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            why = f"cannot open {path}: {os.strerror(error.errno or 0)}; the group render may"
            raise DeviceUnavailable.here(device, why) from None
        try:
            driver.ioctl(kfd_ioctl.IOC_ACQUIRE_VM, drm_fd=self._render.fd, gpu_id=node.gpu_id)
        except OSError as error:
            raise DeviceUnavailable.here(device, str(refused(device, "its address space", error))) from None
        self.clock_khz = self._clock()
        self._doorbells: MMIO | None = None
        self._flush: int | None = None
        self._queues: list[int] = []

    def allocate(self, nbytes: int, flags: int, *, visible: bool, pointer: int = 0) -> Memory:
        """Takes memory and maps it for the card; also for the host, at the same address, if ``visible``.

        Args:
          nbytes: how much; whole pages are taken.
          flags: kind and attributes, as ALLOC_MEMORY_OF_GPU has them.
          visible: whether the host sees it.
          pointer: memory of this process that is to be it, for USERPTR.

        Raises:
          MemoryError: if there is not so much.
          OSError: if the kernel refuses for another reason.
        """
        page = self._system.page_nbytes
        start = pointer // page * page
        size = -(-(max(nbytes, 1) + pointer - start) // page) * page
        address = start or self._system.reserve(size, _LARGE if size >= _LARGE else page)
        handle = 0
        try:
            found = self.driver.ioctl(
                kfd_ioctl.IOC_ALLOC_MEMORY_OF_GPU, va_addr=address, size=size, gpu_id=self.node.gpu_id,
                flags=flags, mmap_offset=start,
            )  # fmt: skip
            handle = found["handle"]
            if visible and not pointer:
                prot, shared = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED
                self._render.mmap(address, size, prot, shared, found["mmap_offset"])
            self.map(handle, [self.node.gpu_id])
        except OSError as error:
            if handle:
                self.driver.ioctl(kfd_ioctl.IOC_FREE_MEMORY_OF_GPU, handle=handle)
            if not pointer:
                self._system.unmap(address, size)
            if error.errno == 12:
                raise MemoryError(f"{self._device}: {nbytes} bytes: {error.strerror}") from None
            raise
        return Memory(address, size, handle, not pointer, self.node.gpu_id)

    def map(self, handle: int, gpu_ids: Sequence[int]) -> None:
        """Lets cards address memory."""
        ids = array("I", gpu_ids)
        self.driver.ioctl(
            kfd_ioctl.IOC_MAP_MEMORY_TO_GPU, handle=handle, device_ids_array_ptr=ids.buffer_info()[0],
            n_devices=len(ids),
        )  # fmt: skip

    def unmap(self, handle: int, gpu_ids: Sequence[int]) -> None:
        """Undoes :meth:`map`."""
        ids = array("I", gpu_ids)
        self.driver.ioctl(
            kfd_ioctl.IOC_UNMAP_MEMORY_FROM_GPU, handle=handle, device_ids_array_ptr=ids.buffer_info()[0],
            n_devices=len(ids),
        )  # fmt: skip

    def free(self, memory: Memory) -> None:
        """Gives memory back."""
        self.unmap(memory.handle, [self.node.gpu_id])
        self.driver.ioctl(kfd_ioctl.IOC_FREE_MEMORY_OF_GPU, handle=memory.handle)
        if memory.reserved:
            self._system.unmap(memory.address, memory.nbytes)

    def flush_register(self) -> int:
        """Where a store has what the host stored to the card's memory arrive there; 0 if it has no such register.

        Between the host and the card's memory is the host data path, which keeps stores for a while
        (``amdgpu_device_flush_hdp``). The kernel shows the register in a page that it makes of several.
        """
        if self._flush is None:
            self._flush = 0
            page = self._system.page_nbytes
            address = self._system.reserve(page, page)
            try:
                found = self.driver.ioctl(
                    kfd_ioctl.IOC_ALLOC_MEMORY_OF_GPU, va_addr=address, size=page, gpu_id=self.node.gpu_id,
                    flags=MMIO_REMAP | WRITABLE | COHERENT,
                )  # fmt: skip
                prot, shared = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED
                self.driver.file.mmap(address, page, prot, shared, found["mmap_offset"])
                self._flush = address + kfd_ioctl.KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL
            except OSError:
                self._system.unmap(address, page)
        return self._flush

    def create_queue(self, kind: int, ring_nbytes: int) -> QueueParts:
        """A queue of the hardware.

        Args:
          kind: one of KFD_IOC_QUEUE_TYPE.
          ring_nbytes: size of its ring, a power of two.

        Raises:
          MemoryError: if there is no memory for it.
          OSError: if the kernel refuses.
        """
        memories: list[Memory] = []

        def take(nbytes: int, flags: int, *, visible: bool = True) -> Memory:
            memories.append(self.allocate(nbytes, flags, visible=visible))
            return memories[-1]

        shared = GTT | WRITABLE | COHERENT | NO_SUBSTITUTE
        try:
            ring = take(ring_nbytes, shared | UNCACHED | EXECUTABLE)
            pointers = take(self._system.page_nbytes, shared | UNCACHED)
            packets = kind == kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
            # the firmware finds an amd_queue_t from where the read pointer is
            read, write = (aql.amd_queue_t.fields[name][0] for name in _IDS) if packets else (0, 64)
            page = MMIO(pointers.address, pointers.nbytes)
            if packets:
                page.write(0, self.described(ring.address, ring_nbytes))
            fields = {
                "ring_base_address": ring.address, "ring_size": ring_nbytes, "gpu_id": self.node.gpu_id,
                "queue_type": kind, "queue_percentage": 100, "queue_priority": 7,
                "write_pointer_address": pointers.address + write, "read_pointer_address": pointers.address + read,
            }  # fmt: skip
            if packets or kind == kfd_ioctl.KFD_IOC_QUEUE_TYPE_COMPUTE:
                area = self.node.save_area
                eop = take(self._system.page_nbytes, VRAM | WRITABLE | EXECUTABLE | NO_SUBSTITUTE, visible=False)
                saved = take(area.nbytes, shared | EXECUTABLE)
                self._describe_save_area(saved)
                fields |= {
                    "eop_buffer_address": eop.address, "eop_buffer_size": eop.nbytes,
                    "ctx_save_restore_address": saved.address, "ctx_save_restore_size": area.save,
                    "ctl_stack_size": area.control_stack,
                }  # fmt: skip
            made = self.driver.ioctl(kfd_ioctl.IOC_CREATE_QUEUE, fields)
        except (OSError, MemoryError):
            for memory in memories:
                self.free(memory)
            raise
        self._queues.append(made["queue_id"])
        doorbell = self._doorbell(made["doorbell_offset"])
        words = MMIO(ring.address, ring_nbytes, "I")
        return QueueParts(
            made["queue_id"], words, page.view(read, 8, "Q"), page.view(write, 8, "Q"), doorbell, page, tuple(memories)
        )  # fmt: skip

    def described(self, ring: int = 0, nbytes: int = 0) -> bytearray:
        """The ``amd_queue_t`` of a queue; nothing has private memory yet.

        Args:
          ring: where its packets of AQL lie; 0 for a queue that takes none.
          nbytes: of the ring.

        Raises:
          OSError: if the kernel refuses to tell the apertures.
        """
        apertures = self._apertures()
        return aql.amd_queue_t.pack(
            {
                "hsa_queue.features": int(ring != 0), "hsa_queue.base_address": ring,
                "hsa_queue.size": nbytes // aql.PACKET_NBYTES,
            },
            group_segment_aperture_base_hi=apertures["lds_base"] >> 32,
            private_segment_aperture_base_hi=apertures["scratch_base"] >> 32,
            max_cu_id=self.node.compute_units - 1,
            max_wave_id=max(1, self.node["max_waves_per_simd"] * self.node["simd_per_cu"]) - 1,
            read_dispatch_id_field_base_byte_offset=aql.amd_queue_t.fields["read_dispatch_id"][0],
            queue_properties=aql.QUEUE_PROPERTIES.encode(is_ptr64=1),
        )  # fmt: skip

    def _apertures(self) -> dict[str, int]:
        """Where generic addresses mean local and private memory.

        Raises:
          OSError: if the kernel refuses.
        """
        layout = kfd_ioctl.kfd_process_device_apertures
        most = self.driver.ioctl(kfd_ioctl.IOC_GET_PROCESS_APERTURES_NEW)["num_of_nodes"]
        place = (ctypes.c_ubyte * (most * layout.nbytes))()
        told = self.driver.ioctl(
            kfd_ioctl.IOC_GET_PROCESS_APERTURES_NEW, kfd_process_device_apertures_ptr=ctypes.addressof(place),
            num_of_nodes=most,
        )  # fmt: skip
        data = bytearray(place)
        rows = [layout.unpack(data[layout.nbytes * n : layout.nbytes * (n + 1)]) for n in range(told["num_of_nodes"])]
        return next((row for row in rows if row["gpu_id"] == self.node.gpu_id), layout.unpack(bytearray(layout.nbytes)))

    def destroy_queue(self, queue: QueueParts) -> None:
        """Ends a queue, whatever it is doing, and frees its memory."""
        self.driver.ioctl(kfd_ioctl.IOC_DESTROY_QUEUE, queue_id=queue.number)
        for memory in queue.memories:
            self.free(memory)

    def _describe_save_area(self, memory: Memory) -> None:
        """Its header, which a debugger reads."""
        area, layout = self.node.save_area, kfd_ioctl.kfd_context_save_area_header
        header = layout.pack(debug_offset=area.debug_offset, debug_size=area.debug)
        MMIO(memory.address, layout.nbytes).write(0, header)

    def _doorbell(self, offset: int) -> MMIO:
        if self._doorbells is None:
            prot, base = mmap.PROT_READ | mmap.PROT_WRITE, offset & ~(DOORBELLS - 1)
            address = self.driver.file.mmap(0, DOORBELLS, prot, mmap.MAP_SHARED, base)
            self._doorbells = MMIO(address, DOORBELLS)
        return self._doorbells.view(offset & DOORBELLS - 1, 8, "Q")

    def ticks(self) -> int:
        """What the clock of timestamps shows now.

        Raises:
          OSError: if the kernel refuses.
        """
        found = self.driver.ioctl(kfd_ioctl.IOC_GET_CLOCK_COUNTERS, gpu_id=self.node.gpu_id)
        return found["gpu_clock_counter"]

    def _clock(self) -> int:
        """The rate of timestamps in kHz, from the card's render node; 100 MHz where it does not say."""
        answer = bytearray(amdgpu_drm.drm_amdgpu_info_device.nbytes)
        place = (ctypes.c_ubyte * len(answer)).from_buffer(answer)
        question = amdgpu_drm.drm_amdgpu_info.pack(
            return_pointer=ctypes.addressof(place), return_size=len(answer), query=amdgpu_drm.AMDGPU_INFO_DEV_INFO
        )
        try:
            self._render.ioctl(amdgpu_drm.IOC_INFO, (ctypes.c_ubyte * len(question)).from_buffer(question))
        except OSError:
            return 100_000
        return amdgpu_drm.drm_amdgpu_info_device.get(answer, "gpu_counter_freq") or 100_000

    def close(self) -> None:
        """Closes the render node; the kernel takes back what is left when the kfd file is closed, too."""
        self._render.close()
