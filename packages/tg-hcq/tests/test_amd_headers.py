"""The tables of AMD's headers: sizes and numbers that other sources state, and that all of them are consistent."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import tg_hcq.headers.amd
from tg_hcq.headers.amd import (
    aql,
    code_object,
    gc_9_4_3,
    gc_10_3_0,
    gc_11_0_0,
    gc_12_0_0,
    kfd_ioctl,
    pm4,
    sdma_v4,
    sdma_v6,
)
from tg_hcq.headers.layout import Packet, Register, Struct

MODULES = [
    importlib.import_module(f"tg_hcq.headers.amd.{module.name}")
    for module in pkgutil.iter_modules(tg_hcq.headers.amd.__path__)
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__.rpartition(".")[2]))
def test_fields_lie_within_and_apart(module: ModuleType) -> None:
    for name, table in vars(module).items():
        if isinstance(table, Struct):
            sizes = {"B": 1, "H": 2, "I": 4, "i": 4, "Q": 8, "q": 8}
            for field, (at, code) in table.fields.items():
                assert at + sizes[code] <= table.nbytes and at % sizes[code] == 0, (name, field)
        if isinstance(table, Register):
            assert all(shift + bits <= 32 for shift, bits in table.fields.values()), name
        if isinstance(table, Packet):
            seen = [0] * table.nwords
            for field, (word, shift, bits) in table.fields.items():
                assert shift + bits <= 32, (name, field)
                assert not seen[word] & (1 << bits) - 1 << shift, (name, field)
                seen[word] |= (1 << bits) - 1 << shift


def test_ioctl_numbers() -> None:
    # by hand: direction, size in bytes, 'K', number, as asm-generic/ioctl.h puts them together
    assert kfd_ioctl.IOC_GET_VERSION == 0x80084B01
    assert kfd_ioctl.IOC_ACQUIRE_VM == 0x40084B15
    assert kfd_ioctl.IOC_ALLOC_MEMORY_OF_GPU == 0xC0284B16
    assert kfd_ioctl.IOC_CREATE_QUEUE == 0xC0604B02
    assert {table.nbytes for table in kfd_ioctl.ARGUMENTS.values()} >= {8, 24, 96}
    for number, table in kfd_ioctl.ARGUMENTS.items():
        assert number >> 16 & 0x3FFF == table.nbytes


def test_members_of_unions_share_their_bytes() -> None:
    event = kfd_ioctl.kfd_event_data
    assert event.fields["memory_exception_data.va"] == (16, "Q")
    assert event.fields["hw_exception_data.reset_type"] == event.fields["memory_exception_data.failure.NotPresent"]
    assert event.fields["event_id"] == (40, "I") and event.nbytes == 48


def test_registers_where_packets_set_them() -> None:
    generations = gc_9_4_3, gc_10_3_0, gc_11_0_0, gc_12_0_0
    for registers in generations:
        # byte addresses of LLVM's SIDefines.h: R_00B848, R_00B84C, R_00B860, R_00B900
        assert registers.COMPUTE_PGM_RSRC1.address == 0xB848 // 4
        assert registers.COMPUTE_PGM_RSRC2.address == 0xB84C // 4
        assert registers.COMPUTE_TMPRING_SIZE.address == 0xB860 // 4
        assert registers.COMPUTE_USER_DATA_0.address == 0xB900 // 4
        assert registers.BY_ADDRESS[0xB848 // 4] is registers.COMPUTE_PGM_RSRC1
        assert pm4.PACKET3_SET_SH_REG_START <= registers.COMPUTE_USER_DATA_15.address < pm4.PACKET3_SET_SH_REG_END
    sizes = [register.COMPUTE_TMPRING_SIZE.fields["WAVESIZE"] for register in generations]
    assert sizes == [(12, 13), (12, 13), (12, 15), (12, 18)]


def test_packets() -> None:
    assert (pm4.PACKET3_RELEASE_MEM, pm4.PACKET3_ACQUIRE_MEM, pm4.PACKET3_SET_SH_REG) == (0x49, 0x58, 0x76)
    assert pm4.PACKET3_RELEASE_MEM_DATA_SEL__SHIFT == 29 and pm4.INDIRECT_BUFFER_VALID == 1 << 23
    assert sdma_v4.COPY_LINEAR.fields["count"] == (1, 0, 22) and sdma_v6.COPY_LINEAR.fields["count"] == (1, 0, 30)
    assert not hasattr(sdma_v4, "GCR_REQ") and sdma_v6.GCR_REQ.nwords == 5
    assert sdma_v6.FENCE.encode(op=5, addr_31_0=4, data=7) == [5, 4, 0, 7]


def test_code_objects() -> None:
    assert code_object.EF_AMDGPU_MACH_AMDGCN_GFX1100 == 0x41 and code_object.EF_AMDGPU_MACH_AMDGCN_GFX942 == 0x4C
    assert code_object.kernel_descriptor_t.nbytes == 64
    assert code_object.kernel_descriptor_t.fields["compute_pgm_rsrc1"] == (48, "I")
    assert aql.amd_queue_t.nbytes == 256 and aql.kernel_dispatch_packet.fields["kernel_object"] == (32, "Q")


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"COPY_LINEAR.count: 0x400000 does not fit 22 bits"):
        sdma_v4.COPY_LINEAR.encode(count=1 << 22)
    with pytest.raises(ValueError, match="FENCE has no field 'addr'"):
        sdma_v4.FENCE.encode(addr=0)
    with pytest.raises(ValueError, match=r"COMPUTE_PGM_RSRC2.USER_SGPR: 0x20 does not fit 5 bits"):
        gc_11_0_0.COMPUTE_PGM_RSRC2.encode(USER_SGPR=32)
    with pytest.raises(ValueError, match="COMPUTE_DIM_X has no field 'WIDTH'"):
        gc_11_0_0.COMPUTE_DIM_X.encode(WIDTH=1)
    with pytest.raises(ValueError, match=r"kfd_ioctl_acquire_vm_args.drm_fd: -0x1 does not fit 32 bits"):
        kfd_ioctl.kfd_ioctl_acquire_vm_args.pack(drm_fd=-1)
    with pytest.raises(ValueError, match="kfd_ioctl_acquire_vm_args has no field 'fd'"):
        kfd_ioctl.kfd_ioctl_acquire_vm_args.pack(fd=1)
