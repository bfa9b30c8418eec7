"""AQL: packets of HSA queues, and what the firmware reads of such a queue beside its ring. Written by hand.

From the HSA Runtime Programmer's Reference Manual 1.2, sections 2.8 and 2.9 (packets, ``hsa_queue_t``), and for
``amd_queue_t`` from ``amd_hsa_queue.h`` of ROCm/ROCR-Runtime at 44b489d8a40af42f1d485bdd708e5973bbb06d90 (its first
version, which every firmware takes).
"""

from ..layout import Register, Struct

PACKET_NBYTES = 64
PACKET_TYPE_VENDOR_SPECIFIC = 0
PACKET_TYPE_INVALID = 1
PACKET_TYPE_KERNEL_DISPATCH = 2
PACKET_TYPE_BARRIER_AND = 3
PACKET_TYPE_AGENT_DISPATCH = 4
PACKET_TYPE_BARRIER_OR = 5

FENCE_SCOPE_NONE = 0
FENCE_SCOPE_AGENT = 1
FENCE_SCOPE_SYSTEM = 2

HEADER = Register("HEADER", 0, {
    "type": (0, 8), "barrier": (8, 1), "acquire_fence_scope": (9, 2), "release_fence_scope": (11, 2),
})  # fmt: skip
"""The first 16 bits of each packet."""

kernel_dispatch_packet = Struct("hsa_kernel_dispatch_packet_t", 64, {
    "header": (0, "H"), "setup": (2, "H"), "workgroup_size_x": (4, "H"), "workgroup_size_y": (6, "H"),
    "workgroup_size_z": (8, "H"), "grid_size_x": (12, "I"), "grid_size_y": (16, "I"), "grid_size_z": (20, "I"),
    "private_segment_size": (24, "I"), "group_segment_size": (28, "I"), "kernel_object": (32, "Q"),
    "kernarg_address": (40, "Q"), "completion_signal": (56, "Q"),
})  # fmt: skip
barrier_packet = Struct("hsa_barrier_and_packet_t", 64, {
    "header": (0, "H"), "dep_signal[0]": (8, "Q"), "dep_signal[1]": (16, "Q"), "dep_signal[2]": (24, "Q"),
    "dep_signal[3]": (32, "Q"), "dep_signal[4]": (40, "Q"), "completion_signal": (56, "Q"),
})  # fmt: skip
VENDOR_FORMAT_PM4_IB = 1
"""A vendor packet whose words 1 to 4 are an INDIRECT_BUFFER of PM4, as AMD's runtime sends it."""

pm4_ib_packet = Struct("amd_aql_pm4_ib", 64, {
    "header": (0, "H"), "ven_hdr": (2, "H"), "ib_jump_cmd[0]": (4, "I"), "ib_jump_cmd[1]": (8, "I"),
    "ib_jump_cmd[2]": (12, "I"), "ib_jump_cmd[3]": (16, "I"), "dw_cnt_remain": (20, "I"),
    "completion_signal": (56, "Q"),
})  # fmt: skip

amd_queue_t = Struct("amd_queue_t", 256, {
    "hsa_queue.type": (0, "I"), "hsa_queue.features": (4, "I"), "hsa_queue.base_address": (8, "Q"),
    "hsa_queue.doorbell_signal": (16, "Q"), "hsa_queue.size": (24, "I"), "hsa_queue.id": (32, "Q"),
    "caps": (40, "I"), "write_dispatch_id": (56, "Q"), "group_segment_aperture_base_hi": (64, "I"),
    "private_segment_aperture_base_hi": (68, "I"), "max_cu_id": (72, "I"), "max_wave_id": (76, "I"),
    "max_legacy_doorbell_dispatch_id_plus_1": (80, "Q"), "legacy_doorbell_lock": (88, "I"),
    "read_dispatch_id": (128, "Q"), "read_dispatch_id_field_base_byte_offset": (136, "I"),
    "compute_tmpring_size": (140, "I"), "scratch_resource_descriptor[0]": (144, "I"),
    "scratch_resource_descriptor[1]": (148, "I"), "scratch_resource_descriptor[2]": (152, "I"),
    "scratch_resource_descriptor[3]": (156, "I"), "scratch_backing_memory_location": (160, "Q"),
    "scratch_backing_memory_byte_size": (168, "Q"), "scratch_wave64_lane_byte_size": (176, "I"),
    "queue_properties": (180, "I"), "queue_inactive_signal": (192, "Q"),
})  # fmt: skip
QUEUE_PROPERTIES = Register("queue_properties", 0, {
    "enable_trap_handler": (0, 1), "is_ptr64": (1, 1), "enable_trap_handler_debug_sgprs": (2, 1),
    "enable_profiling": (3, 1), "use_scratch_once": (4, 1),
})  # fmt: skip
