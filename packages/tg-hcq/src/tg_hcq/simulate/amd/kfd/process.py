"""The requests of /dev/kfd, with the checks that ``kfd_chardev.c`` and ``kfd_queue.c`` make, in their order."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

from ....core.fileio import MMIO
from ..processor import Interrupt, Processor, QueueKind, Ring
from . import abi
from .buffers import Buffer
from .cards import PAGE
from .events import Events, refuse
from .gpu import DOORBELL_SLICE, Gpu, ProcessGpu, UserQueue
from .user import UserMemory

Values: TypeAlias = "dict[str, int]"

MOST_QUEUES = 127
"""Queues of a process on a GPU (``pqm_create_queue``, the limit of the firmware scheduler)."""


class Process:
    """A process that opened /dev/kfd.

    Args:
      gpus: of the machine.
      minor: version of the interface.
      log: the kernel's.
      render: the minor of the render node that a descriptor of the process was opened from, if it was from one.
      processor: makes what executes queues; called with the card and what takes interrupts.
      memory: a descriptor of the memory of a caller that is another process; its pages cannot be a GPU's.

    Attributes:
      process_id: whose it is; a forked child is another.
      events: its events.
      pdds: what it has on each GPU, by gpu_id.
    """

    def __init__(
        self, gpus: Iterable[Gpu], minor: int, log: Callable[[str], None], render: Callable[[int], int | None],
        processor: Callable[[Gpu, Callable[[Interrupt], None]], Processor], memory: int | None = None,
    ) -> None:  # fmt: skip
        self.process_id, self.minor, self._log, self._render = os.getpid(), minor, log, render
        self.user, self.events, self._elsewhere = UserMemory(memory), Events(), memory is not None
        self._lock = threading.RLock()
        self._queue_numbers: set[int] = set()
        self._enabled = False
        offsets = itertools.count(1 << 32, 1 << 32)  # DRM_FILE_PAGE_OFFSET_START; one for each buffer
        self.pdds: dict[int, ProcessGpu] = {}
        for gpu in gpus:
            made = processor(gpu, lambda what, gpu=gpu: self._interrupt(gpu, what))  # type: ignore[misc]
            self.pdds[gpu.gpu_id] = ProcessGpu.make(gpu, offsets, made)

    def request(self, number: int, data: bytes) -> bytes:
        """Executes a request; what the kernel writes back.

        Raises:
          OSError: as the kernel refuses it.
        """
        request = abi.KFD[number]
        values = request.layout.unpack(data[: request.layout.nbytes])
        serve: Callable[[Process, Values], None] = _SERVED[request.name]
        try:
            if request.name == "WAIT_EVENTS":  # sleeps without the lock
                serve(self, values)
            else:
                with self._lock:
                    serve(self, values)
        except OSError as error:
            self._log(f"kfd: {request.name}: {error.strerror or error}")
            raise
        return request.layout.pack(values)

    # the process and its GPUs

    def _pdd(self, gpu_id: int) -> ProcessGpu:
        if gpu_id not in self.pdds:
            raise refuse(errno.EINVAL, f"there is no GPU {gpu_id:#x}")
        return self.pdds[gpu_id]

    def _bound(self, gpu_id: int, error: int = errno.ENODEV) -> ProcessGpu:
        """``kfd_bind_process_to_device``."""
        pdd = self._pdd(gpu_id)
        if not pdd.drm_file:
            raise refuse(error, f"ACQUIRE_VM was not called for GPU {gpu_id:#x}")
        return pdd

    def _get_version(self, values: Values) -> None:
        values["major_version"], values["minor_version"] = 1, self.minor

    def _get_clock_counters(self, values: Values) -> None:
        pdd = self.pdds.get(values["gpu_id"])
        values["gpu_clock_counter"] = pdd.processor.clock() if pdd else 0
        values["cpu_clock_counter"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        values["system_clock_counter"] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        values["system_clock_freq"] = 1_000_000_000

    def _get_process_apertures_new(self, values: Values) -> None:
        if values["num_of_nodes"] == 0:
            values["num_of_nodes"] = len(self.pdds)
            return
        if values["num_of_nodes"] > len(self.pdds) + 1:
            raise refuse(errno.EINVAL, f"room for {values['num_of_nodes']} nodes")
        shown = list(self.pdds.values())[: values["num_of_nodes"]]
        data = b"".join(
            abi.APERTURES.pack({
                "lds_base": 1 << 48, "lds_limit": (1 << 48) + 0xFFFFFFFF, "scratch_base": 2 << 48,
                "scratch_limit": (2 << 48) + 0xFFFFFFFF, "gpuvm_base": 0x10000, "gpuvm_limit": (1 << 47) - 1,
                "gpu_id": pdd.gpu.gpu_id,
            })  # fmt: skip
            for pdd in shown
        )
        values["num_of_nodes"] = len(shown)
        self.user.write(values["kfd_process_device_apertures_ptr"], data)

    def _acquire_vm(self, values: Values) -> None:
        minor = self._render(values["drm_fd"])
        if minor is None:
            raise refuse(errno.EINVAL, f"descriptor {values['drm_fd']} is no open render node")
        pdd = self._pdd(values["gpu_id"])
        if pdd.drm_file:
            if pdd.drm_file != values["drm_fd"]:
                raise refuse(errno.EBUSY, "the process took this GPU's addresses from another file")
            return
        if minor != pdd.gpu.minor:
            raise refuse(errno.EINVAL, f"renderD{minor} is not the node of GPU {values['gpu_id']:#x}")
        pdd.drm_file = values["drm_fd"]

    def _set_policy(self, values: Values) -> None:
        for name in ("default_policy", "alternate_policy"):
            if values[name] > 1:
                raise refuse(errno.EINVAL, f"{name} {values[name]}")
        self._bound(values["gpu_id"], errno.ESRCH)

    def _bound_only(self, values: Values) -> None:
        self._bound(values["gpu_id"], errno.ESRCH)

    def _set_xnack_mode(self, values: Values) -> None:
        if values["xnack_enabled"] > 0:
            raise refuse(errno.EPERM, "no GPU here retries faults")
        values["xnack_enabled"] = 0

    def _available_memory(self, values: Values) -> None:
        pool = self._pdd(values["gpu_id"]).gpu.vram
        values["available"] = pool.memory.nbytes - pool.used

    def _runtime_enable(self, values: Values) -> None:
        if not values["mode_mask"] & 1:  # KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK
            if not self._enabled:
                raise refuse(errno.EBUSY, "the runtime is not enabled")
            self._enabled = False
            return
        if self._enabled:
            raise refuse(errno.EBUSY, "the runtime is enabled already")
        if any(pdd.queues for pdd in self.pdds.values()):
            raise refuse(errno.EEXIST, "there are queues already")
        self._enabled = True

    def _not_permitted(self, values: Values) -> None:
        raise refuse(errno.EPERM, "the old interface for debuggers is gone")

    # memory

    def _alloc_memory_of_gpu(self, values: Values) -> None:
        nbytes, flags, address = values["size"], values["flags"], values["va_addr"]
        if nbytes == 0:
            raise refuse(errno.EINVAL, "an allocation of nothing")
        pdd = self._pdd(values["gpu_id"])
        gpu = pdd.gpu
        if flags & abi.PUBLIC and flags & abi.VRAM and not gpu.large_bar:
            raise refuse(errno.EINVAL, "VRAM that the host sees, on a small BAR")
        self._bound(values["gpu_id"])
        kind = flags & (abi.VRAM | abi.GTT | abi.USERPTR | abi.DOORBELL | abi.MMIO_REMAP)
        if kind.bit_count() != 1:
            raise refuse(errno.EINVAL, f"the flags {flags:#x} say no kind of memory, or several")
        if flags & 0x007FFFE0:
            raise refuse(errno.EINVAL, f"the flags {flags:#x} have reserved bits")
        if flags & abi.AQL_QUEUE_MEM:
            raise refuse(errno.EINVAL, "memory that is mapped twice, which no card of these generations needs")
        if flags & abi.CONTIGUOUS and self.minor < 16:
            raise refuse(errno.EINVAL, "contiguous VRAM, which came with version 1.16")
        if address % PAGE or (address == 0 and kind != abi.VRAM) or address + nbytes > 1 << 47:
            raise refuse(errno.EINVAL, f"{nbytes:#x} bytes at {address:#x}")
        size = -(-nbytes // PAGE) * PAGE
        if kind == abi.DOORBELL:
            if nbytes != DOORBELL_SLICE:
                raise refuse(errno.EINVAL, f"{nbytes} bytes of doorbells; the process has {DOORBELL_SLICE}")
            buffer = pdd.buffers.add(address, size, flags, pdd.doorbells, 0)
        elif kind == abi.MMIO_REMAP:
            if nbytes != PAGE:
                raise refuse(errno.EINVAL, f"{nbytes} bytes of registers; there is one page")
            buffer = pdd.buffers.add(address, size, flags, gpu.flush, 0)
        elif kind == abi.USERPTR:
            buffer = self._user_pages(pdd, address, nbytes, flags, values["mmap_offset"])
        else:
            pool = gpu.vram if kind == abi.VRAM else gpu.system
            buffer = pdd.buffers.add(address, size, flags, pool, pool.take(nbytes))
            if flags & abi.VRAM and flags & abi.PUBLIC:
                gpu.window.open(buffer.place, size)
        values["handle"] = buffer.handle
        values["mmap_offset"] = buffer.offset
        if kind == abi.MMIO_REMAP:
            values["mmap_offset"] = _mmap_offset(abi.MMAP_MMIO, gpu.gpu_id)

    def _user_pages(self, pdd: ProcessGpu, address: int, nbytes: int, flags: int, host: int) -> Buffer:
        if self._elsewhere:
            raise refuse(errno.EOPNOTSUPP, "pages of a process that shares none with the software GPU's")
        if host == 0 or host % PAGE:
            raise refuse(errno.EINVAL, f"memory of the host's at {host:#x}")
        for page in range(host, host + nbytes, PAGE):
            self.user.read(page, 1)
        return pdd.buffers.add(address, -(-nbytes // PAGE) * PAGE, flags, None, host)

    def _free_memory_of_gpu(self, values: Values) -> None:
        if self.events.page_handle and self.events.page_handle == values["handle"]:
            raise refuse(errno.EPERM, "the event page is freed with the process")
        pdd = self._pdd(values["handle"] >> 32)
        buffer = pdd.buffers.find(values["handle"], errno.EINVAL)
        pdd.buffers.remove(buffer)
        if buffer.flags & abi.VRAM:
            pdd.gpu.window.shut(buffer.place)

    def _mapped_gpus(self, values: Values) -> Iterable[tuple[Buffer, ProcessGpu]]:
        """The buffer and the GPUs that a request names, from the first that was not successful."""
        if not values["n_devices"] or values["n_success"] > values["n_devices"]:
            raise refuse(errno.EINVAL, f"{values['n_success']} of {values['n_devices']} GPUs")
        raw = self.user.read(values["device_ids_array_ptr"], 4 * values["n_devices"])
        buffers = self._bound(values["handle"] >> 32).buffers
        buffer = buffers.find(values["handle"], errno.ENOMEM)
        for index in range(values["n_success"], values["n_devices"]):
            yield buffer, self._bound(int.from_bytes(raw[4 * index : 4 * index + 4], "little"))
            values["n_success"] = index + 1

    def _map_memory_to_gpu(self, values: Values) -> None:
        for buffer, pdd in self._mapped_gpus(values):
            peer = pdd.gpu.gpu_id != buffer.handle >> 32
            if peer and buffer.flags & abi.VRAM and not self.pdds[buffer.handle >> 32].gpu.large_bar:
                raise refuse(errno.EINVAL, "VRAM behind a small BAR is seen by no peer")
            buffer.map(pdd.gpu.gpu_id, pdd.space)

    def _unmap_memory_from_gpu(self, values: Values) -> None:
        for buffer, pdd in self._mapped_gpus(values):
            if any(buffer.handle in queue.buffers for queue in pdd.queues.values()):
                raise refuse(errno.EBUSY, f"a queue uses the memory at {buffer.address:#x}")
            buffer.unmap(pdd.gpu.gpu_id)

    # queues

    def _create_queue(self, values: Values) -> None:
        kind, size = values["queue_type"], values["ring_size"]
        if values["queue_percentage"] & 0xFF > 100:
            raise refuse(errno.EINVAL, f"a share of {values['queue_percentage'] & 0xFF} %")
        if values["queue_priority"] > 15:
            raise refuse(errno.EINVAL, f"priority {values['queue_priority']}")
        if size & (size - 1):
            raise refuse(errno.EINVAL, f"a ring of {size} bytes, which is no power of two")
        size = values["ring_size"] = max(size, 1024)  # KFD_MIN_QUEUE_RING_SIZE
        for name in ("read_pointer_address", "write_pointer_address"):
            if not 0 < values[name] < 1 << 47:
                raise refuse(errno.EFAULT, f"{name} {values[name]:#x}")
        kinds = [abi.COMPUTE, abi.SDMA, abi.COMPUTE_AQL, abi.SDMA_XGMI] + [abi.SDMA_BY_ENG_ID] * (self.minor >= 17)
        if kind not in kinds:
            raise refuse(524, f"queue type {kind}")  # ENOTSUPP
        self._pdd(values["gpu_id"])
        pdd = self._bound(values["gpu_id"], errno.ESRCH)
        card, compute = pdd.gpu.card, kind in (abi.COMPUTE, abi.COMPUTE_AQL)
        if kind == abi.SDMA_BY_ENG_ID and values["sdma_engine_id"] >= card.sdma_engines:
            raise refuse(errno.EINVAL, f"SDMA engine {values['sdma_engine_id']} of {card.sdma_engines}")
        used = self._queue_buffers(pdd, values, compute)
        if len(pdd.queues) >= (255 if card.version // 100 == 904 else MOST_QUEUES):
            raise refuse(errno.ENOSPC, f"{len(pdd.queues)} queues are all that there can be")
        if not compute and sum(not q.compute for q in pdd.queues.values()) >= card.sdma_engines * card.sdma_queues:
            raise refuse(errno.ENOMEM, "all SDMA queues are in use")
        doorbell = pdd.free_doorbell(compute)
        if doorbell is None:
            raise refuse(errno.EBUSY, "no doorbell is free")
        number = next(n for n in range(1024) if n not in self._queue_numbers)
        ring = Ring(
            f"{'SDMA' if not compute else 'AQL' if kind == abi.COMPUTE_AQL else 'PM4'} queue {number}",
            values["ring_base_address"], size, values["read_pointer_address"], values["write_pointer_address"],
            MMIO(pdd.doorbells.memory.address + 8 * doorbell, 8, "Q", pdd.doorbells),
        )  # fmt: skip
        which = QueueKind.SDMA if not compute else QueueKind.AQL if kind == abi.COMPUTE_AQL else QueueKind.PM4
        queue = pdd.processor.start(which, ring)
        self._queue_numbers.add(number)
        pdd.queues[number] = UserQueue(number, queue, doorbell, compute, used)
        values["queue_id"] = number
        values["doorbell_offset"] = _mmap_offset(abi.MMAP_DOORBELL, pdd.gpu.gpu_id) | 8 * doorbell

    def _queue_buffers(self, pdd: ProcessGpu, values: Values, compute: bool) -> tuple[int, ...]:
        """``kfd_queue_acquire_buffers``, of Linux 6.12; before, the kernel only looked at MES's write pointers."""
        card, buffers = pdd.gpu.card, pdd.buffers
        write, read = values["write_pointer_address"], values["read_pointer_address"]
        if self.minor < 17:
            if card.mes and ((found := buffers.at(write)) is None or found.nbytes > PAGE):
                raise refuse(errno.EINVAL, f"the write pointer at {write:#x} is not in a mapping of one page")
            return ()
        used = [
            buffers.exactly("write pointer", write, PAGE),
            buffers.exactly("read pointer", read, PAGE),
            buffers.exactly("ring", values["ring_base_address"], values["ring_size"]),
        ]
        if values["ring_base_address"] % PAGE:
            raise refuse(errno.EINVAL, f"the ring is at {values['ring_base_address']:#x}")
        if not compute:
            return tuple(buffer.handle for buffer in used)
        if values["eop_buffer_address"]:
            nbytes = values["eop_buffer_size"] & 0xFFFFFFFF
            if nbytes < PAGE:
                raise refuse(errno.EINVAL, f"an end-of-pipe buffer of {nbytes} bytes; {PAGE} are needed")
            used.append(buffers.exactly("end-of-pipe buffer", values["eop_buffer_address"], -(-nbytes // PAGE) * PAGE))
        if values["ctl_stack_size"] != card.ctl_stack_size:
            raise refuse(errno.EINVAL, f"a stack of {values['ctl_stack_size']:#x}, not {card.ctl_stack_size:#x}")
        if values["ctx_save_restore_size"] < card.cwsr_size:
            raise refuse(
                errno.EINVAL, f"a save area of {values['ctx_save_restore_size']:#x}, less than {card.cwsr_size:#x}"
            )
        total = -(-(values["ctx_save_restore_size"] + card.debug_size) * card.xccs // PAGE) * PAGE
        used.append(buffers.exactly("save area", values["ctx_save_restore_address"], total))
        return tuple(buffer.handle for buffer in used)

    def _queue(self, number: int) -> tuple[ProcessGpu, UserQueue]:
        for pdd in self.pdds.values():
            if number in pdd.queues:
                return pdd, pdd.queues[number]
        raise refuse(errno.EINVAL, f"there is no queue {number}")

    def _destroy_queue(self, values: Values) -> None:
        pdd, queue = self._queue(values["queue_id"])
        queue.queue.stop()
        del pdd.queues[queue.number]
        self._queue_numbers.discard(queue.number)

    def _update_queue(self, values: Values) -> None:
        _, queue = self._queue(values["queue_id"])
        if values["queue_percentage"] & 0xFF > 100 or values["queue_priority"] > 15:
            raise refuse(errno.EINVAL, f"{values['queue_percentage']} %, priority {values['queue_priority']}")
        queue.queue.pause(values["queue_percentage"] == 0 or values["ring_base_address"] == 0)

    # events

    def _create_event(self, values: Values) -> None:
        handle = values["event_page_offset"]
        if handle:
            if self.events.has_page():
                raise refuse(errno.EINVAL, "the event page was handed over already")
            buffer = self._bound(handle >> 32).buffers.find(handle, errno.EINVAL)
            if buffer.pool is None or buffer.flags & (abi.DOORBELL | abi.MMIO_REMAP):
                raise refuse(errno.EINVAL, "the event page is no memory of the kernel's")
            self.events.set_page(buffer.pool.memory.view[buffer.place : buffer.place + buffer.nbytes], handle)
        event = self.events.create(values["event_type"], values["auto_reset"] != 0)
        signal = values["event_type"] in (abi.SIGNAL_EVENT, abi.DEBUG_EVENT)
        values["event_page_offset"] = abi.MMAP_EVENTS << abi.MMAP_TYPE_SHIFT if signal else 0
        values["event_slot_index"] = event.number if signal else values["event_slot_index"]
        values["event_id"] = values["event_trigger_data"] = event.number

    def _destroy_event(self, values: Values) -> None:
        self.events.destroy(values["event_id"])

    def _set_event(self, values: Values) -> None:
        self.events.change(values["event_id"], True)

    def _reset_event(self, values: Values) -> None:
        self.events.change(values["event_id"], False)

    def _wait_events(self, values: Values) -> None:
        values["wait_result"] = abi.WAIT_FAIL
        values["wait_result"] = self.events.wait(
            self.user, values["events_ptr"], values["num_events"], values["wait_for_all"] != 0, values["timeout"]
        )

    # interrupts

    def _interrupt(self, gpu: Gpu, what: Interrupt) -> None:
        """The GPU has something to say; the text goes to the kernel's log."""
        if what.text:
            self._log(f"amdgpu {gpu.card.arch} {gpu.gpu_id:#x}: {what.text}")
        if what.context is not None:
            self.events.interrupt(what.context)
            return
        pdd = self.pdds[gpu.gpu_id]
        for queue in list(pdd.queues.values()):  # kfd_dqm_evict_pasid, or a reset
            queue.queue.evict()
        if what.refusal is not None:
            refusal = what.refusal
            self.events.exception(abi.MEMORY_EVENT, abi.MEMORY_EXCEPTION.pack({
                "not_present": int(refusal.unmapped), "read_only": int(refusal.write and not refusal.unmapped),
                "no_execute": int(refusal.execute and not refusal.unmapped), "va": refusal.address // PAGE * PAGE,
                "gpu_id": gpu.gpu_id,
            }))  # fmt: skip
        else:
            self.events.exception(abi.HW_EXCEPTION_EVENT, abi.HW_EXCEPTION.pack({
                "reset_type": 0, "reset_cause": 0, "memory_lost": 1, "gpu_id": gpu.gpu_id,
            }))  # fmt: skip

    def close(self) -> None:
        """The process ends: its queues, then its memory."""
        for pdd in self.pdds.values():
            pdd.close()
        self.user.close()


def _mmap_offset(kind: int, gpu_id: int) -> int:
    return kind << abi.MMAP_TYPE_SHIFT | (gpu_id & 0xFFFF) << abi.MMAP_GPU_ID_SHIFT


_SERVED: dict[str, Callable[[Process, Values], None]] = {
    "GET_VERSION": Process._get_version, "CREATE_QUEUE": Process._create_queue,
    "DESTROY_QUEUE": Process._destroy_queue, "SET_MEMORY_POLICY": Process._set_policy,
    "GET_CLOCK_COUNTERS": Process._get_clock_counters, "UPDATE_QUEUE": Process._update_queue,
    "CREATE_EVENT": Process._create_event, "DESTROY_EVENT": Process._destroy_event,
    "SET_EVENT": Process._set_event, "RESET_EVENT": Process._reset_event, "WAIT_EVENTS": Process._wait_events,
    "DBG_REGISTER": Process._not_permitted, "DBG_UNREGISTER": Process._not_permitted,
    "DBG_ADDRESS_WATCH": Process._not_permitted, "DBG_WAVE_CONTROL": Process._not_permitted,
    "SET_SCRATCH_BACKING_VA": Process._bound_only, "SET_TRAP_HANDLER": Process._bound_only,
    "GET_PROCESS_APERTURES_NEW": Process._get_process_apertures_new, "ACQUIRE_VM": Process._acquire_vm,
    "ALLOC_MEMORY_OF_GPU": Process._alloc_memory_of_gpu, "FREE_MEMORY_OF_GPU": Process._free_memory_of_gpu,
    "MAP_MEMORY_TO_GPU": Process._map_memory_to_gpu, "UNMAP_MEMORY_FROM_GPU": Process._unmap_memory_from_gpu,
    "SET_XNACK_MODE": Process._set_xnack_mode, "AVAILABLE_MEMORY": Process._available_memory,
    "RUNTIME_ENABLE": Process._runtime_enable,
}  # fmt: skip
