"""KFD: ioctl numbers, flags and argument structs.

Made by ``python -m tools.amd_headers`` from Linux 6.12.117:

  include/uapi/linux/kfd_ioctl.h
"""

from ..layout import Struct

KFD_IOCTL_MAJOR_VERSION = 1
KFD_IOCTL_MINOR_VERSION = 0x11
KFD_IOC_QUEUE_TYPE_COMPUTE = 0
KFD_IOC_QUEUE_TYPE_SDMA = 1
KFD_IOC_QUEUE_TYPE_COMPUTE_AQL = 2
KFD_IOC_QUEUE_TYPE_SDMA_XGMI = 3
KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID = 4
KFD_MAX_QUEUE_PERCENTAGE = 0x64
KFD_MAX_QUEUE_PRIORITY = 0xf
KFD_MIN_QUEUE_RING_SIZE = 0x400
KFD_IOC_CACHE_POLICY_COHERENT = 0
KFD_IOC_CACHE_POLICY_NONCOHERENT = 1
NUM_OF_SUPPORTED_GPUS = 7
MAX_ALLOWED_NUM_POINTS = 0x64
MAX_ALLOWED_AW_BUFF_SIZE = 0x1000
MAX_ALLOWED_WAC_BUFF_SIZE = 0x80
KFD_INVALID_FD = 0xffffffff
KFD_IOC_EVENT_SIGNAL = 0
KFD_IOC_EVENT_NODECHANGE = 1
KFD_IOC_EVENT_DEVICESTATECHANGE = 2
KFD_IOC_EVENT_HW_EXCEPTION = 3
KFD_IOC_EVENT_SYSTEM_EVENT = 4
KFD_IOC_EVENT_DEBUG_EVENT = 5
KFD_IOC_EVENT_PROFILE_EVENT = 6
KFD_IOC_EVENT_QUEUE_EVENT = 7
KFD_IOC_EVENT_MEMORY = 8
KFD_IOC_WAIT_RESULT_COMPLETE = 0
KFD_IOC_WAIT_RESULT_TIMEOUT = 1
KFD_IOC_WAIT_RESULT_FAIL = 2
KFD_SIGNAL_EVENT_LIMIT = 0x1000
KFD_HW_EXCEPTION_WHOLE_GPU_RESET = 0
KFD_HW_EXCEPTION_PER_ENGINE_RESET = 1
KFD_HW_EXCEPTION_GPU_HANG = 0
KFD_HW_EXCEPTION_ECC = 1
KFD_MEM_ERR_NO_RAS = 0
KFD_MEM_ERR_SRAM_ECC = 1
KFD_MEM_ERR_POISON_CONSUMED = 2
KFD_MEM_ERR_GPU_HANG = 3
KFD_IOC_ALLOC_MEM_FLAGS_VRAM = 1
KFD_IOC_ALLOC_MEM_FLAGS_GTT = 2
KFD_IOC_ALLOC_MEM_FLAGS_USERPTR = 4
KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL = 8
KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP = 0x10
KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE = 0x80000000
KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE = 0x40000000
KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC = 0x20000000
KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE = 0x10000000
KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM = 0x8000000
KFD_IOC_ALLOC_MEM_FLAGS_COHERENT = 0x4000000
KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED = 0x2000000
KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT = 0x1000000
KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS = 0x800000
KFD_SMI_EVENT_MSG_SIZE = 0x60
KFD_IOCTL_SVM_FLAG_HOST_ACCESS = 1
KFD_IOCTL_SVM_FLAG_COHERENT = 2
KFD_IOCTL_SVM_FLAG_HIVE_LOCAL = 4
KFD_IOCTL_SVM_FLAG_GPU_RO = 8
KFD_IOCTL_SVM_FLAG_GPU_EXEC = 0x10
KFD_IOCTL_SVM_FLAG_GPU_READ_MOSTLY = 0x20
KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED = 0x40
KFD_IOCTL_SVM_FLAG_EXT_COHERENT = 0x80
KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK = 1
KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK = 2
KFD_DBG_QUEUE_ERROR_BIT = 0x1e
KFD_DBG_QUEUE_INVALID_BIT = 0x1f
AMDKFD_COMMAND_START = 1
AMDKFD_COMMAND_END = 0x27

# enums

KFD_SMI_EVENT_NONE = 0
KFD_SMI_EVENT_VMFAULT = 1
KFD_SMI_EVENT_THERMAL_THROTTLE = 2
KFD_SMI_EVENT_GPU_PRE_RESET = 3
KFD_SMI_EVENT_GPU_POST_RESET = 4
KFD_SMI_EVENT_MIGRATE_START = 5
KFD_SMI_EVENT_MIGRATE_END = 6
KFD_SMI_EVENT_PAGE_FAULT_START = 7
KFD_SMI_EVENT_PAGE_FAULT_END = 8
KFD_SMI_EVENT_QUEUE_EVICTION = 9
KFD_SMI_EVENT_QUEUE_RESTORE = 0xa
KFD_SMI_EVENT_UNMAP_FROM_GPU = 0xb
KFD_SMI_EVENT_ALL_PROCESS = 0x40
KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL = 0
KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL = 4
EC_NONE = 0
EC_QUEUE_WAVE_ABORT = 1
EC_QUEUE_WAVE_TRAP = 2
EC_QUEUE_WAVE_MATH_ERROR = 3
EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4
EC_QUEUE_WAVE_MEMORY_VIOLATION = 5
EC_QUEUE_WAVE_APERTURE_VIOLATION = 6
EC_QUEUE_PACKET_DISPATCH_DIM_INVALID = 0x10
EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 0x11
EC_QUEUE_PACKET_DISPATCH_CODE_INVALID = 0x12
EC_QUEUE_PACKET_RESERVED = 0x13
EC_QUEUE_PACKET_UNSUPPORTED = 0x14
EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 0x15
EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 0x16
EC_QUEUE_PACKET_VENDOR_UNSUPPORTED = 0x17
EC_QUEUE_PREEMPTION_ERROR = 0x1e
EC_QUEUE_NEW = 0x1f
EC_DEVICE_QUEUE_DELETE = 0x20
EC_DEVICE_MEMORY_VIOLATION = 0x21
EC_DEVICE_RAS_ERROR = 0x22
EC_DEVICE_FATAL_HALT = 0x23
EC_DEVICE_NEW = 0x24
EC_PROCESS_RUNTIME = 0x30
EC_PROCESS_DEVICE_REMOVE = 0x31
EC_MAX = 0x32

# arguments

kfd_process_device_apertures = Struct("kfd_process_device_apertures", 56, {
    "lds_base": (0, "Q"), "lds_limit": (8, "Q"), "scratch_base": (16, "Q"), "scratch_limit": (24, "Q"),
    "gpuvm_base": (32, "Q"), "gpuvm_limit": (40, "Q"), "gpu_id": (48, "I"), "pad": (52, "I"),
})  # fmt: skip
kfd_event_data = Struct("kfd_event_data", 48, {
    "memory_exception_data.failure.NotPresent": (0, "I"), "memory_exception_data.failure.ReadOnly": (4, "I"),
    "memory_exception_data.failure.NoExecute": (8, "I"), "memory_exception_data.failure.imprecise": (12, "I"),
    "memory_exception_data.va": (16, "Q"), "memory_exception_data.gpu_id": (24, "I"),
    "memory_exception_data.ErrorType": (28, "I"), "hw_exception_data.reset_type": (0, "I"),
    "hw_exception_data.reset_cause": (4, "I"), "hw_exception_data.memory_lost": (8, "I"),
    "hw_exception_data.gpu_id": (12, "I"), "signal_event_data.last_event_age": (0, "Q"),
    "kfd_event_data_ext": (32, "Q"), "event_id": (40, "I"), "pad": (44, "I"),
})  # fmt: skip
kfd_context_save_area_header = Struct("kfd_context_save_area_header", 40, {
    "wave_state.control_stack_offset": (0, "I"), "wave_state.control_stack_size": (4, "I"),
    "wave_state.wave_state_offset": (8, "I"), "wave_state.wave_state_size": (12, "I"), "debug_offset": (16, "I"),
    "debug_size": (20, "I"), "err_payload_addr": (24, "Q"), "err_event_id": (32, "I"), "reserved1": (36, "I"),
})  # fmt: skip
kfd_ioctl_get_version_args = Struct("kfd_ioctl_get_version_args", 8, {
    "major_version": (0, "I"), "minor_version": (4, "I"),
})  # fmt: skip
kfd_ioctl_create_queue_args = Struct("kfd_ioctl_create_queue_args", 96, {
    "ring_base_address": (0, "Q"), "write_pointer_address": (8, "Q"), "read_pointer_address": (16, "Q"),
    "doorbell_offset": (24, "Q"), "ring_size": (32, "I"), "gpu_id": (36, "I"), "queue_type": (40, "I"),
    "queue_percentage": (44, "I"), "queue_priority": (48, "I"), "queue_id": (52, "I"),
    "eop_buffer_address": (56, "Q"), "eop_buffer_size": (64, "Q"), "ctx_save_restore_address": (72, "Q"),
    "ctx_save_restore_size": (80, "I"), "ctl_stack_size": (84, "I"), "sdma_engine_id": (88, "I"), "pad": (92, "I"),
})  # fmt: skip
kfd_ioctl_destroy_queue_args = Struct("kfd_ioctl_destroy_queue_args", 8, {"queue_id": (0, "I"), "pad": (4, "I")})
kfd_ioctl_set_memory_policy_args = Struct("kfd_ioctl_set_memory_policy_args", 32, {
    "alternate_aperture_base": (0, "Q"), "alternate_aperture_size": (8, "Q"), "gpu_id": (16, "I"),
    "default_policy": (20, "I"), "alternate_policy": (24, "I"), "pad": (28, "I"),
})  # fmt: skip
kfd_ioctl_get_clock_counters_args = Struct("kfd_ioctl_get_clock_counters_args", 40, {
    "gpu_clock_counter": (0, "Q"), "cpu_clock_counter": (8, "Q"), "system_clock_counter": (16, "Q"),
    "system_clock_freq": (24, "Q"), "gpu_id": (32, "I"), "pad": (36, "I"),
})  # fmt: skip
kfd_ioctl_update_queue_args = Struct("kfd_ioctl_update_queue_args", 24, {
    "ring_base_address": (0, "Q"), "queue_id": (8, "I"), "ring_size": (12, "I"), "queue_percentage": (16, "I"),
    "queue_priority": (20, "I"),
})  # fmt: skip
kfd_ioctl_create_event_args = Struct("kfd_ioctl_create_event_args", 32, {
    "event_page_offset": (0, "Q"), "event_trigger_data": (8, "I"), "event_type": (12, "I"), "auto_reset": (16, "I"),
    "node_id": (20, "I"), "event_id": (24, "I"), "event_slot_index": (28, "I"),
})  # fmt: skip
kfd_ioctl_destroy_event_args = Struct("kfd_ioctl_destroy_event_args", 8, {"event_id": (0, "I"), "pad": (4, "I")})
kfd_ioctl_set_event_args = Struct("kfd_ioctl_set_event_args", 8, {"event_id": (0, "I"), "pad": (4, "I")})
kfd_ioctl_reset_event_args = Struct("kfd_ioctl_reset_event_args", 8, {"event_id": (0, "I"), "pad": (4, "I")})
kfd_ioctl_wait_events_args = Struct("kfd_ioctl_wait_events_args", 24, {
    "events_ptr": (0, "Q"), "num_events": (8, "I"), "wait_for_all": (12, "I"), "timeout": (16, "I"),
    "wait_result": (20, "I"),
})  # fmt: skip
kfd_ioctl_set_scratch_backing_va_args = Struct("kfd_ioctl_set_scratch_backing_va_args", 16, {
    "va_addr": (0, "Q"), "gpu_id": (8, "I"), "pad": (12, "I"),
})  # fmt: skip
kfd_ioctl_get_tile_config_args = Struct("kfd_ioctl_get_tile_config_args", 40, {
    "tile_config_ptr": (0, "Q"), "macro_tile_config_ptr": (8, "Q"), "num_tile_configs": (16, "I"),
    "num_macro_tile_configs": (20, "I"), "gpu_id": (24, "I"), "gb_addr_config": (28, "I"), "num_banks": (32, "I"),
    "num_ranks": (36, "I"),
})  # fmt: skip
kfd_ioctl_set_trap_handler_args = Struct("kfd_ioctl_set_trap_handler_args", 24, {
    "tba_addr": (0, "Q"), "tma_addr": (8, "Q"), "gpu_id": (16, "I"), "pad": (20, "I"),
})  # fmt: skip
kfd_ioctl_get_process_apertures_new_args = Struct("kfd_ioctl_get_process_apertures_new_args", 16, {
    "kfd_process_device_apertures_ptr": (0, "Q"), "num_of_nodes": (8, "I"), "pad": (12, "I"),
})  # fmt: skip
kfd_ioctl_acquire_vm_args = Struct("kfd_ioctl_acquire_vm_args", 8, {"drm_fd": (0, "I"), "gpu_id": (4, "I")})
kfd_ioctl_alloc_memory_of_gpu_args = Struct("kfd_ioctl_alloc_memory_of_gpu_args", 40, {
    "va_addr": (0, "Q"), "size": (8, "Q"), "handle": (16, "Q"), "mmap_offset": (24, "Q"), "gpu_id": (32, "I"),
    "flags": (36, "I"),
})  # fmt: skip
kfd_ioctl_free_memory_of_gpu_args = Struct("kfd_ioctl_free_memory_of_gpu_args", 8, {"handle": (0, "Q")})
kfd_ioctl_map_memory_to_gpu_args = Struct("kfd_ioctl_map_memory_to_gpu_args", 24, {
    "handle": (0, "Q"), "device_ids_array_ptr": (8, "Q"), "n_devices": (16, "I"), "n_success": (20, "I"),
})  # fmt: skip
kfd_ioctl_unmap_memory_from_gpu_args = Struct("kfd_ioctl_unmap_memory_from_gpu_args", 24, {
    "handle": (0, "Q"), "device_ids_array_ptr": (8, "Q"), "n_devices": (16, "I"), "n_success": (20, "I"),
})  # fmt: skip
kfd_ioctl_set_cu_mask_args = Struct("kfd_ioctl_set_cu_mask_args", 16, {
    "queue_id": (0, "I"), "num_cu_mask": (4, "I"), "cu_mask_ptr": (8, "Q"),
})  # fmt: skip
kfd_ioctl_get_queue_wave_state_args = Struct("kfd_ioctl_get_queue_wave_state_args", 24, {
    "ctl_stack_address": (0, "Q"), "ctl_stack_used_size": (8, "I"), "save_area_used_size": (12, "I"),
    "queue_id": (16, "I"), "pad": (20, "I"),
})  # fmt: skip
kfd_ioctl_get_dmabuf_info_args = Struct("kfd_ioctl_get_dmabuf_info_args", 32, {
    "size": (0, "Q"), "metadata_ptr": (8, "Q"), "metadata_size": (16, "I"), "gpu_id": (20, "I"), "flags": (24, "I"),
    "dmabuf_fd": (28, "I"),
})  # fmt: skip
kfd_ioctl_import_dmabuf_args = Struct("kfd_ioctl_import_dmabuf_args", 24, {
    "va_addr": (0, "Q"), "handle": (8, "Q"), "gpu_id": (16, "I"), "dmabuf_fd": (20, "I"),
})  # fmt: skip
kfd_ioctl_alloc_queue_gws_args = Struct("kfd_ioctl_alloc_queue_gws_args", 16, {
    "queue_id": (0, "I"), "num_gws": (4, "I"), "first_gws": (8, "I"), "pad": (12, "I"),
})  # fmt: skip
kfd_ioctl_smi_events_args = Struct("kfd_ioctl_smi_events_args", 8, {"gpuid": (0, "I"), "anon_fd": (4, "I")})
kfd_ioctl_set_xnack_mode_args = Struct("kfd_ioctl_set_xnack_mode_args", 4, {"xnack_enabled": (0, "i")})
kfd_ioctl_criu_args = Struct("kfd_ioctl_criu_args", 56, {
    "devices": (0, "Q"), "bos": (8, "Q"), "priv_data": (16, "Q"), "priv_data_size": (24, "Q"),
    "num_devices": (32, "I"), "num_bos": (36, "I"), "num_objects": (40, "I"), "pid": (44, "I"), "op": (48, "I"),
})  # fmt: skip
kfd_ioctl_get_available_memory_args = Struct("kfd_ioctl_get_available_memory_args", 16, {
    "available": (0, "Q"), "gpu_id": (8, "I"), "pad": (12, "I"),
})  # fmt: skip
kfd_ioctl_export_dmabuf_args = Struct("kfd_ioctl_export_dmabuf_args", 16, {
    "handle": (0, "Q"), "flags": (8, "I"), "dmabuf_fd": (12, "I"),
})  # fmt: skip
kfd_ioctl_runtime_enable_args = Struct("kfd_ioctl_runtime_enable_args", 16, {
    "r_debug": (0, "Q"), "mode_mask": (8, "I"), "capabilities_mask": (12, "I"),
})  # fmt: skip

# ioctls, as the last argument but one of ioctl(2)

IOC_GET_VERSION = 0x80084b01
IOC_CREATE_QUEUE = 0xc0604b02
IOC_DESTROY_QUEUE = 0xc0084b03
IOC_SET_MEMORY_POLICY = 0x40204b04
IOC_GET_CLOCK_COUNTERS = 0xc0284b05
IOC_UPDATE_QUEUE = 0x40184b07
IOC_CREATE_EVENT = 0xc0204b08
IOC_DESTROY_EVENT = 0x40084b09
IOC_SET_EVENT = 0x40084b0a
IOC_RESET_EVENT = 0x40084b0b
IOC_WAIT_EVENTS = 0xc0184b0c
IOC_SET_SCRATCH_BACKING_VA = 0xc0104b11
IOC_GET_TILE_CONFIG = 0xc0284b12
IOC_SET_TRAP_HANDLER = 0x40184b13
IOC_GET_PROCESS_APERTURES_NEW = 0xc0104b14
IOC_ACQUIRE_VM = 0x40084b15
IOC_ALLOC_MEMORY_OF_GPU = 0xc0284b16
IOC_FREE_MEMORY_OF_GPU = 0x40084b17
IOC_MAP_MEMORY_TO_GPU = 0xc0184b18
IOC_UNMAP_MEMORY_FROM_GPU = 0xc0184b19
IOC_SET_CU_MASK = 0x40104b1a
IOC_GET_QUEUE_WAVE_STATE = 0xc0184b1b
IOC_GET_DMABUF_INFO = 0xc0204b1c
IOC_IMPORT_DMABUF = 0xc0184b1d
IOC_ALLOC_QUEUE_GWS = 0xc0104b1e
IOC_SMI_EVENTS = 0xc0084b1f
IOC_SET_XNACK_MODE = 0xc0044b21
IOC_CRIU_OP = 0xc0384b22
IOC_AVAILABLE_MEMORY = 0xc0104b23
IOC_EXPORT_DMABUF = 0xc0104b24
IOC_RUNTIME_ENABLE = 0xc0104b25

ARGUMENTS = {
    IOC_GET_VERSION: kfd_ioctl_get_version_args,
    IOC_CREATE_QUEUE: kfd_ioctl_create_queue_args,
    IOC_DESTROY_QUEUE: kfd_ioctl_destroy_queue_args,
    IOC_SET_MEMORY_POLICY: kfd_ioctl_set_memory_policy_args,
    IOC_GET_CLOCK_COUNTERS: kfd_ioctl_get_clock_counters_args,
    IOC_UPDATE_QUEUE: kfd_ioctl_update_queue_args,
    IOC_CREATE_EVENT: kfd_ioctl_create_event_args,
    IOC_DESTROY_EVENT: kfd_ioctl_destroy_event_args,
    IOC_SET_EVENT: kfd_ioctl_set_event_args,
    IOC_RESET_EVENT: kfd_ioctl_reset_event_args,
    IOC_WAIT_EVENTS: kfd_ioctl_wait_events_args,
    IOC_SET_SCRATCH_BACKING_VA: kfd_ioctl_set_scratch_backing_va_args,
    IOC_GET_TILE_CONFIG: kfd_ioctl_get_tile_config_args,
    IOC_SET_TRAP_HANDLER: kfd_ioctl_set_trap_handler_args,
    IOC_GET_PROCESS_APERTURES_NEW: kfd_ioctl_get_process_apertures_new_args,
    IOC_ACQUIRE_VM: kfd_ioctl_acquire_vm_args,
    IOC_ALLOC_MEMORY_OF_GPU: kfd_ioctl_alloc_memory_of_gpu_args,
    IOC_FREE_MEMORY_OF_GPU: kfd_ioctl_free_memory_of_gpu_args,
    IOC_MAP_MEMORY_TO_GPU: kfd_ioctl_map_memory_to_gpu_args,
    IOC_UNMAP_MEMORY_FROM_GPU: kfd_ioctl_unmap_memory_from_gpu_args,
    IOC_SET_CU_MASK: kfd_ioctl_set_cu_mask_args,
    IOC_GET_QUEUE_WAVE_STATE: kfd_ioctl_get_queue_wave_state_args,
    IOC_GET_DMABUF_INFO: kfd_ioctl_get_dmabuf_info_args,
    IOC_IMPORT_DMABUF: kfd_ioctl_import_dmabuf_args,
    IOC_ALLOC_QUEUE_GWS: kfd_ioctl_alloc_queue_gws_args,
    IOC_SMI_EVENTS: kfd_ioctl_smi_events_args,
    IOC_SET_XNACK_MODE: kfd_ioctl_set_xnack_mode_args,
    IOC_CRIU_OP: kfd_ioctl_criu_args,
    IOC_AVAILABLE_MEMORY: kfd_ioctl_get_available_memory_args,
    IOC_EXPORT_DMABUF: kfd_ioctl_export_dmabuf_args,
    IOC_RUNTIME_ENABLE: kfd_ioctl_runtime_enable_args,
}
"""The struct that each ioctl takes."""
