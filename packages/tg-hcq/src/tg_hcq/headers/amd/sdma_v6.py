"""SDMA packets of SDMA 6.x and 7.x (gfx11, gfx12).

Made by ``python -m tools.amd_headers`` from Linux 6.12.117:

  drivers/gpu/drm/amd/amdgpu/sdma_v6_0_0_pkt_open.h
"""

from ..layout import Packet

SDMA_OP_NOP = 0
SDMA_OP_COPY = 1
SDMA_OP_WRITE = 2
SDMA_OP_INDIRECT = 4
SDMA_OP_FENCE = 5
SDMA_OP_TRAP = 6
SDMA_OP_SEM = 7
SDMA_OP_POLL_REGMEM = 8
SDMA_OP_COND_EXE = 9
SDMA_OP_ATOMIC = 0xa
SDMA_OP_CONST_FILL = 0xb
SDMA_OP_PTEPDE = 0xc
SDMA_OP_TIMESTAMP = 0xd
SDMA_OP_SRBM_WRITE = 0xe
SDMA_OP_PRE_EXE = 0xf
SDMA_OP_GPUVM_INV = 0x10
SDMA_OP_GCR_REQ = 0x11
SDMA_OP_DUMMY_TRAP = 0x20
SDMA_SUBOP_TIMESTAMP_SET = 0
SDMA_SUBOP_TIMESTAMP_GET = 1
SDMA_SUBOP_TIMESTAMP_GET_GLOBAL = 2
SDMA_SUBOP_COPY_LINEAR = 0
SDMA_SUBOP_COPY_LINEAR_SUB_WIND = 4
SDMA_SUBOP_COPY_TILED = 1
SDMA_SUBOP_COPY_TILED_SUB_WIND = 5
SDMA_SUBOP_COPY_T2T_SUB_WIND = 6
SDMA_SUBOP_COPY_SOA = 3
SDMA_SUBOP_COPY_DIRTY_PAGE = 7
SDMA_SUBOP_COPY_LINEAR_PHY = 8
SDMA_SUBOP_COPY_LINEAR_SUB_WIND_LARGE = 0x24
SDMA_SUBOP_COPY_LINEAR_BC = 0x10
SDMA_SUBOP_COPY_TILED_BC = 0x11
SDMA_SUBOP_COPY_LINEAR_SUB_WIND_BC = 0x14
SDMA_SUBOP_COPY_TILED_SUB_WIND_BC = 0x15
SDMA_SUBOP_COPY_T2T_SUB_WIND_BC = 0x16
SDMA_SUBOP_WRITE_LINEAR = 0
SDMA_SUBOP_WRITE_TILED = 1
SDMA_SUBOP_WRITE_TILED_BC = 0x11
SDMA_SUBOP_PTEPDE_GEN = 0
SDMA_SUBOP_PTEPDE_COPY = 1
SDMA_SUBOP_PTEPDE_RMW = 2
SDMA_SUBOP_PTEPDE_COPY_BACKWARDS = 3
SDMA_SUBOP_MEM_INCR = 1
SDMA_SUBOP_DATA_FILL_MULTI = 1
SDMA_SUBOP_POLL_REG_WRITE_MEM = 1
SDMA_SUBOP_POLL_DBIT_WRITE_MEM = 2
SDMA_SUBOP_POLL_MEM_VERIFY = 3
SDMA_SUBOP_VM_INVALIDATION = 4
SDMA_OP_AQL_COPY = 0
SDMA_OP_AQL_BARRIER_OR = 0
SDMA_GCR_RANGE_IS_PA = 0x40000
SDMA_GCR_GL2_WB = 0x8000
SDMA_GCR_GL2_INV = 0x4000
SDMA_GCR_GL2_DISCARD = 0x2000
SDMA_GCR_GL2_US = 0x400
SDMA_GCR_GL1_INV = 0x200
SDMA_GCR_GLV_INV = 0x100
SDMA_GCR_GLK_INV = 0x80
SDMA_GCR_GLK_WB = 0x40
SDMA_GCR_GLM_INV = 0x20
SDMA_GCR_GLM_WB = 0x10
SDMA_GCR_SEQ__SHIFT = 0x10
SDMA_GCR_GL2_RANGE__SHIFT = 0xb
SDMA_GCR_GL1_RANGE__SHIFT = 2
SDMA_GCR_GLI_INV__SHIFT = 0

COPY_LINEAR = Packet("COPY_LINEAR", 7, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "encrypt": (0, 16, 1), "tmz": (0, 18, 1), "cpv": (0, 19, 1),
    "backwards": (0, 25, 1), "broadcast": (0, 27, 1), "count": (1, 0, 30), "dst_sw": (2, 16, 2),
    "dst_cache_policy": (2, 18, 3), "src_sw": (2, 24, 2), "src_cache_policy": (2, 26, 3), "src_addr_31_0": (3, 0, 32),
    "src_addr_63_32": (4, 0, 32), "dst_addr_31_0": (5, 0, 32), "dst_addr_63_32": (6, 0, 32),
})  # fmt: skip
WRITE_UNTILED = Packet("WRITE_UNTILED", 5, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "encrypt": (0, 16, 1), "tmz": (0, 18, 1), "cpv": (0, 28, 1),
    "dst_addr_31_0": (1, 0, 32), "dst_addr_63_32": (2, 0, 32), "count": (3, 0, 20), "sw": (3, 24, 2),
    "cache_policy": (3, 26, 3), "data0": (4, 0, 32),
})  # fmt: skip
INDIRECT = Packet("INDIRECT", 6, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "vmid": (0, 16, 4), "priv": (0, 31, 1), "ib_base_31_0": (1, 0, 32),
    "ib_base_63_32": (2, 0, 32), "ib_size": (3, 0, 20), "csa_addr_31_0": (4, 0, 32), "csa_addr_63_32": (5, 0, 32),
})  # fmt: skip
FENCE = Packet("FENCE", 4, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "mtype": (0, 16, 3), "gcc": (0, 19, 1), "sys": (0, 20, 1),
    "snp": (0, 22, 1), "gpa": (0, 23, 1), "l2_policy": (0, 24, 2), "llc_policy": (0, 26, 1), "cpv": (0, 28, 1),
    "addr_31_0": (1, 0, 32), "addr_63_32": (2, 0, 32), "data": (3, 0, 32),
})  # fmt: skip
CONSTANT_FILL = Packet("CONSTANT_FILL", 5, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "sw": (0, 16, 2), "cache_policy": (0, 24, 3), "cpv": (0, 28, 1),
    "fillsize": (0, 30, 2), "dst_addr_31_0": (1, 0, 32), "dst_addr_63_32": (2, 0, 32), "src_data_31_0": (3, 0, 32),
    "count": (4, 0, 30),
})  # fmt: skip
POLL_REGMEM = Packet("POLL_REGMEM", 6, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "cache_policy": (0, 20, 3), "cpv": (0, 24, 1), "hdp_flush": (0, 26, 1),
    "func": (0, 28, 3), "mem_poll": (0, 31, 1), "addr_31_0": (1, 0, 32), "addr_63_32": (2, 0, 32),
    "value": (3, 0, 32), "mask": (4, 0, 32), "interval": (5, 0, 16), "retry_count": (5, 16, 12),
})  # fmt: skip
POLL_REG_WRITE_MEM = Packet("POLL_REG_WRITE_MEM", 4, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "cache_policy": (0, 24, 3), "cpv": (0, 28, 1), "addr_31_2": (1, 2, 30),
    "addr_31_0": (2, 0, 32), "addr_63_32": (3, 0, 32),
})  # fmt: skip
ATOMIC = Packet("ATOMIC", 8, {
    "op": (0, 0, 8), "loop": (0, 16, 1), "tmz": (0, 18, 1), "cache_policy": (0, 20, 3), "cpv": (0, 24, 1),
    "atomic_op": (0, 25, 7), "addr_31_0": (1, 0, 32), "addr_63_32": (2, 0, 32), "src_data_31_0": (3, 0, 32),
    "src_data_63_32": (4, 0, 32), "cmp_data_31_0": (5, 0, 32), "cmp_data_63_32": (6, 0, 32),
    "loop_interval": (7, 0, 13),
})  # fmt: skip
TIMESTAMP_GET = Packet("TIMESTAMP_GET", 3, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "l2_policy": (0, 24, 2), "llc_policy": (0, 26, 1), "cpv": (0, 28, 1),
    "write_addr_31_3": (1, 3, 29), "write_addr_63_32": (2, 0, 32),
})  # fmt: skip
TIMESTAMP_GET_GLOBAL = Packet("TIMESTAMP_GET_GLOBAL", 3, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "l2_policy": (0, 24, 2), "llc_policy": (0, 26, 1), "cpv": (0, 28, 1),
    "write_addr_31_3": (1, 3, 29), "write_addr_63_32": (2, 0, 32),
})  # fmt: skip
TRAP = Packet("TRAP", 2, {"op": (0, 0, 8), "sub_op": (0, 8, 8), "int_context": (1, 0, 28)})
GCR_REQ = Packet("GCR_REQ", 5, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "base_va_31_7": (1, 7, 25), "base_va_47_32": (2, 0, 16),
    "gcr_control_15_0": (2, 16, 16), "gcr_control_18_16": (3, 0, 3), "limit_va_31_7": (3, 7, 25),
    "limit_va_47_32": (4, 0, 16), "vmid": (4, 24, 4),
})  # fmt: skip
NOP = Packet("NOP", 2, {"op": (0, 0, 8), "sub_op": (0, 8, 8), "count": (0, 16, 14), "data0": (1, 0, 32)})
SRBM_WRITE = Packet("SRBM_WRITE", 3, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "byte_en": (0, 28, 4), "addr": (1, 0, 18), "apertureid": (1, 20, 12),
    "data": (2, 0, 32),
})  # fmt: skip
COND_EXE = Packet("COND_EXE", 5, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "cache_policy": (0, 24, 3), "cpv": (0, 28, 1), "addr_31_0": (1, 0, 32),
    "addr_63_32": (2, 0, 32), "reference": (3, 0, 32), "exec_count": (4, 0, 14),
})  # fmt: skip
POLL_MEM_VERIFY = Packet("POLL_MEM_VERIFY", 13, {
    "op": (0, 0, 8), "sub_op": (0, 8, 8), "cache_policy": (0, 24, 3), "cpv": (0, 28, 1), "mode": (0, 31, 1),
    "pattern": (1, 0, 32), "cmp0_start_31_0": (2, 0, 32), "cmp0_start_63_32": (3, 0, 32), "cmp0_end_31_0": (4, 0, 32),
    "cmp0_end_63_32": (5, 0, 32), "cmp1_start_31_0": (6, 0, 32), "cmp1_start_63_32": (7, 0, 32),
    "cmp1_end_31_0": (8, 0, 32), "cmp1_end_63_32": (9, 0, 32), "rec_31_0": (10, 0, 32), "rec_63_32": (11, 0, 32),
    "reserved": (12, 0, 32),
})  # fmt: skip
