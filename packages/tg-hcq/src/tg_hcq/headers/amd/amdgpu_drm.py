"""Render nodes of amdgpu: the ioctl that tells facts of the card.

Made by ``python -m tools.amd_headers`` from Linux 6.12.117:

  include/uapi/drm/amdgpu_drm.h
"""

from ..layout import Struct

AMDGPU_INFO_DEV_INFO = 0x16
AMDGPU_INFO_MEMORY = 0x19
drm_amdgpu_info_device = Struct("drm_amdgpu_info_device", 440, {
    "device_id": (0, "I"), "chip_rev": (4, "I"), "external_rev": (8, "I"), "pci_rev": (12, "I"), "family": (16, "I"),
    "num_shader_engines": (20, "I"), "num_shader_arrays_per_engine": (24, "I"), "gpu_counter_freq": (28, "I"),
    "max_engine_clock": (32, "Q"), "max_memory_clock": (40, "Q"), "cu_active_number": (48, "I"),
    "cu_ao_mask": (52, "I"), "enabled_rb_pipes_mask": (120, "I"), "num_rb_pipes": (124, "I"),
    "num_hw_gfx_contexts": (128, "I"), "pcie_gen": (132, "I"), "ids_flags": (136, "Q"),
    "virtual_address_offset": (144, "Q"), "virtual_address_max": (152, "Q"), "virtual_address_alignment": (160, "I"),
    "pte_fragment_size": (164, "I"), "gart_page_size": (168, "I"), "ce_ram_size": (172, "I"), "vram_type": (176, "I"),
    "vram_bit_width": (180, "I"), "vce_harvest_config": (184, "I"), "gc_double_offchip_lds_buf": (188, "I"),
    "prim_buf_gpu_addr": (192, "Q"), "pos_buf_gpu_addr": (200, "Q"), "cntl_sb_buf_gpu_addr": (208, "Q"),
    "param_buf_gpu_addr": (216, "Q"), "prim_buf_size": (224, "I"), "pos_buf_size": (228, "I"),
    "cntl_sb_buf_size": (232, "I"), "param_buf_size": (236, "I"), "wave_front_size": (240, "I"),
    "num_shader_visible_vgprs": (244, "I"), "num_cu_per_sh": (248, "I"), "num_tcc_blocks": (252, "I"),
    "gs_vgt_table_depth": (256, "I"), "gs_prim_buffer_depth": (260, "I"), "max_gs_waves_per_vgt": (264, "I"),
    "pcie_num_lanes": (268, "I"), "high_va_offset": (336, "Q"), "high_va_max": (344, "Q"),
    "pa_sc_tile_steering_override": (352, "I"), "tcc_disabled_mask": (360, "Q"), "min_engine_clock": (368, "Q"),
    "min_memory_clock": (376, "Q"), "tcp_cache_size": (384, "I"), "num_sqc_per_wgp": (388, "I"),
    "sqc_data_cache_size": (392, "I"), "sqc_inst_cache_size": (396, "I"), "gl1c_cache_size": (400, "I"),
    "gl2c_cache_size": (404, "I"), "mall_size": (408, "Q"), "enabled_rb_pipes_mask_hi": (416, "I"),
    "shadow_size": (420, "I"), "shadow_alignment": (424, "I"), "csa_size": (428, "I"), "csa_alignment": (432, "I"),
})  # fmt: skip
drm_amdgpu_info = Struct("drm_amdgpu_info", 32, {
    "return_pointer": (0, "Q"), "return_size": (8, "I"), "query": (12, "I"),
})  # fmt: skip
IOC_INFO = 0x40206445
