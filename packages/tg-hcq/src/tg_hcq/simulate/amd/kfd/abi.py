"""The requests of /dev/kfd and of a render node, read by hand from ``include/uapi/linux/kfd_ioctl.h`` and
``include/uapi/drm/amdgpu_drm.h`` of Linux 6.12: what crosses the boundary is bytes in these layouts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

WRITE: Final = 1
READ: Final = 2
BOTH: Final = 3
"""Directions of a request (asm-generic/ioctl.h): the kernel reads, writes, or does both to the argument."""


@dataclass(frozen=True)
class Layout:
    """Fields of a structure, in order and without gaps.

    Args:
      text: pairs of a name and a format letter of :mod:`struct`: ``"gpu_id:I pad:I"``.

    Example:
      >>> layout = Layout("size:Q gpu_id:I flags:I")
      >>> layout.unpack(layout.pack({"size": 4096, "gpu_id": 7}))
      {'size': 4096, 'gpu_id': 7, 'flags': 0}
    """

    text: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the fields."""
        return tuple(field.partition(":")[0] for field in self.text.split())

    @cached_property
    def format(self) -> str:
        """Of :mod:`struct`, little-endian."""
        return "<" + "".join(field.partition(":")[2] for field in self.text.split())

    @property
    def nbytes(self) -> int:
        """Its size."""
        return struct.calcsize(self.format)

    def unpack(self, data: bytes) -> dict[str, int]:
        """The fields; those that the bytes do not reach to are 0."""
        return dict(zip(self.names, struct.unpack(self.format, data.ljust(self.nbytes, b"\0")), strict=True))

    def pack(self, values: Mapping[str, int]) -> bytes:
        """The bytes; fields without a value are 0."""
        return struct.pack(self.format, *(values.get(name, 0) for name in self.names))


@dataclass(frozen=True)
class Request:
    """A request of a file.

    Attributes:
      name: without the header's prefix.
      number: ``_IOC_NR``.
      direction: who writes the argument.
      layout: of the argument.
      since: the first minor version of the interface that has it.
      earlier: sizes that the argument had in earlier versions.
    """

    name: str
    number: int
    direction: int
    layout: Layout
    since: int = 0
    earlier: tuple[int, ...] = ()


def _request(
    name: str, number: int, direction: int, text: str, since: int = 0, earlier: tuple[int, ...] = ()
) -> Request:
    return Request(name, number, direction, Layout(text), since, earlier)


APERTURES: Final = Layout(
    "lds_base:Q lds_limit:Q scratch_base:Q scratch_limit:Q gpuvm_base:Q gpuvm_limit:Q gpu_id:I pad:I"
)
_DEPRECATED = "content_ptr:Q gpu_id:I buf_size_in_bytes:I"

KFD: Final = {
    request.number: request
    for request in (
        _request("GET_VERSION", 0x01, READ, "major_version:I minor_version:I"),
        _request(
            "CREATE_QUEUE", 0x02, BOTH,
            "ring_base_address:Q write_pointer_address:Q read_pointer_address:Q doorbell_offset:Q ring_size:I gpu_id:I"
            " queue_type:I queue_percentage:I queue_priority:I queue_id:I eop_buffer_address:Q eop_buffer_size:Q"
            " ctx_save_restore_address:Q ctx_save_restore_size:I ctl_stack_size:I sdma_engine_id:I pad:I",
            earlier=(88,),
        ),
        _request("DESTROY_QUEUE", 0x03, BOTH, "queue_id:I pad:I"),
        _request(
            "SET_MEMORY_POLICY", 0x04, WRITE,
            "alternate_aperture_base:Q alternate_aperture_size:Q gpu_id:I default_policy:I alternate_policy:I pad:I",
        ),
        _request(
            "GET_CLOCK_COUNTERS", 0x05, BOTH,
            "gpu_clock_counter:Q cpu_clock_counter:Q system_clock_counter:Q system_clock_freq:Q gpu_id:I pad:I",
        ),
        _request(
            "UPDATE_QUEUE", 0x07, WRITE,
            "ring_base_address:Q queue_id:I ring_size:I queue_percentage:I queue_priority:I",
        ),
        _request(
            "CREATE_EVENT", 0x08, BOTH,
            "event_page_offset:Q event_trigger_data:I event_type:I auto_reset:I node_id:I event_id:I"
            " event_slot_index:I",
        ),
        _request("DESTROY_EVENT", 0x09, WRITE, "event_id:I pad:I"),
        _request("SET_EVENT", 0x0A, WRITE, "event_id:I pad:I"),
        _request("RESET_EVENT", 0x0B, WRITE, "event_id:I pad:I"),
        _request("WAIT_EVENTS", 0x0C, BOTH, "events_ptr:Q num_events:I wait_for_all:I timeout:I wait_result:I"),
        _request("DBG_REGISTER", 0x0D, WRITE, "gpu_id:I pad:I"),
        _request("DBG_UNREGISTER", 0x0E, WRITE, "gpu_id:I pad:I"),
        _request("DBG_ADDRESS_WATCH", 0x0F, WRITE, _DEPRECATED),
        _request("DBG_WAVE_CONTROL", 0x10, WRITE, _DEPRECATED),
        _request("SET_SCRATCH_BACKING_VA", 0x11, BOTH, "va_addr:Q gpu_id:I pad:I"),
        _request("SET_TRAP_HANDLER", 0x13, WRITE, "tba_addr:Q tma_addr:Q gpu_id:I pad:I"),
        _request("GET_PROCESS_APERTURES_NEW", 0x14, BOTH, "kfd_process_device_apertures_ptr:Q num_of_nodes:I pad:I"),
        _request("ACQUIRE_VM", 0x15, WRITE, "drm_fd:I gpu_id:I"),
        _request("ALLOC_MEMORY_OF_GPU", 0x16, BOTH, "va_addr:Q size:Q handle:Q mmap_offset:Q gpu_id:I flags:I"),
        _request("FREE_MEMORY_OF_GPU", 0x17, WRITE, "handle:Q"),
        _request("MAP_MEMORY_TO_GPU", 0x18, BOTH, "handle:Q device_ids_array_ptr:Q n_devices:I n_success:I"),
        _request("UNMAP_MEMORY_FROM_GPU", 0x19, BOTH, "handle:Q device_ids_array_ptr:Q n_devices:I n_success:I"),
        _request("SET_XNACK_MODE", 0x21, BOTH, "xnack_enabled:i"),
        _request("AVAILABLE_MEMORY", 0x23, BOTH, "available:Q gpu_id:I pad:I", since=9),
        _request("RUNTIME_ENABLE", 0x25, BOTH, "r_debug:Q mode_mask:I capabilities_mask:I", since=13),
    )
}  # fmt: skip
"""The requests that are played; the kernel knows more."""

NUMBERS: Final = ((13, 0x26), (12, 0x24), (0, 0x23))
"""The highest number that each minor version knows (``AMDKFD_COMMAND_END``), latest first."""

EVENT_DATA_BYTES: Final = 48
"""Of ``struct kfd_event_data``: 32 of the union, the extension's pointer, the event and padding."""
MEMORY_EXCEPTION: Final = Layout("not_present:I read_only:I no_execute:I imprecise:I va:Q gpu_id:I error_type:I")
HW_EXCEPTION: Final = Layout("reset_type:I reset_cause:I memory_lost:I gpu_id:I")

# memory (KFD_IOC_ALLOC_MEM_FLAGS_*)
VRAM, GTT, USERPTR, DOORBELL, MMIO_REMAP = (1 << bit for bit in range(5))
WRITABLE, EXECUTABLE, PUBLIC, NO_SUBSTITUTE, AQL_QUEUE_MEM, COHERENT, UNCACHED, EXT_COHERENT, CONTIGUOUS = (
    1 << bit for bit in range(31, 22, -1)
)

# queues (KFD_IOC_QUEUE_TYPE_*)
COMPUTE, SDMA, COMPUTE_AQL, SDMA_XGMI, SDMA_BY_ENG_ID = range(5)

# events (KFD_IOC_EVENT_*, KFD_IOC_WAIT_RESULT_*)
SIGNAL_EVENT, HW_EXCEPTION_EVENT, DEBUG_EVENT, MEMORY_EVENT = 0, 3, 5, 8
WAIT_COMPLETE, WAIT_TIMEOUT, WAIT_FAIL = range(3)

# offsets for mmap of /dev/kfd (kfd_priv.h)
MMAP_TYPE_SHIFT, MMAP_GPU_ID_SHIFT = 62, 46
MMAP_DOORBELL, MMAP_EVENTS, MMAP_RESERVED, MMAP_MMIO = 3, 2, 1, 0
