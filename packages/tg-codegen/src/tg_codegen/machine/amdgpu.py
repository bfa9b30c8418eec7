"""AMD GPUs by the name of their instruction set, as LLVM has it.

Sources: LLVM, "User Guide for AMDGPU Backend", table "AMDGPU Processors" (names, waves); *RDNA 2*, *RDNA 3* and
*RDNA 4 Instruction Set Architecture*, and *CDNA 3* and *CDNA 4 Instruction Set Architecture*, chapters "Kernel State"
and "Data Share Operations" (registers, LDS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..ir.amd_matrix import amd_rows
from .gpu import GPUCosts
from .target import Target


@dataclass(frozen=True, slots=True)
class AMDGPU:
    """An instruction set.

    Attributes:
      arch: its name.
      lanes: work-items of a wave, as LLVM compiles by default.
      shared_bytes: LDS that one work-group may have.
      registers: vector registers of a work-item.
      register_file: registers of 32 bits that the work-groups of a compute unit share.
      units: compute units of the largest card, as few as there may be of the smallest.
    """

    arch: str
    lanes: int
    shared_bytes: int
    registers: int
    register_file: int
    units: int


ARCHS: Final = {
    known.arch: known
    for known in (
        AMDGPU("gfx942", 64, 64 << 10, 512, 4 * 512 * 64, 304),
        AMDGPU("gfx950", 64, 160 << 10, 512, 4 * 512 * 64, 256),
        AMDGPU("gfx1030", 32, 64 << 10, 256, 2 * 1024 * 32, 80),
        AMDGPU("gfx1031", 32, 64 << 10, 256, 2 * 1024 * 32, 40),
        AMDGPU("gfx1032", 32, 64 << 10, 256, 2 * 1024 * 32, 32),
        AMDGPU("gfx1033", 32, 64 << 10, 256, 2 * 1024 * 32, 8),
        AMDGPU("gfx1034", 32, 64 << 10, 256, 2 * 1024 * 32, 16),
        AMDGPU("gfx1035", 32, 64 << 10, 256, 2 * 1024 * 32, 12),
        AMDGPU("gfx1036", 32, 64 << 10, 256, 2 * 1024 * 32, 2),
        AMDGPU("gfx1100", 32, 64 << 10, 256, 2 * 1536 * 32, 96),
        AMDGPU("gfx1101", 32, 64 << 10, 256, 2 * 1536 * 32, 60),
        AMDGPU("gfx1102", 32, 64 << 10, 256, 2 * 1024 * 32, 32),
        AMDGPU("gfx1103", 32, 64 << 10, 256, 2 * 1024 * 32, 12),
        AMDGPU("gfx1150", 32, 64 << 10, 256, 2 * 1024 * 32, 16),
        AMDGPU("gfx1151", 32, 64 << 10, 256, 2 * 1536 * 32, 40),
        AMDGPU("gfx1152", 32, 64 << 10, 256, 2 * 1024 * 32, 8),
        AMDGPU("gfx1153", 32, 64 << 10, 256, 2 * 1024 * 32, 4),
        AMDGPU("gfx1200", 32, 64 << 10, 256, 2 * 1536 * 32, 32),
        AMDGPU("gfx1201", 32, 64 << 10, 256, 2 * 1536 * 32, 64),
    )
}
"""Those that kernels are compiled for."""
_ITEMS: Final = 1024
_GROUPS: Final = (2**31 - 1, 65535, 65535)
"""Numbers along y and z share a register from gfx12 on (LLVM, "Initial Kernel Execution State": TTMP7)."""
_PACKET_GROUPS: Final = ((2**32 - 1) // _ITEMS, 65535, 65535)
"""Where packets of HSA dispatch, which count work-items along a dimension in 32 bits (*HSA Platform System
Architecture*, "AQL kernel dispatch packet")."""
_MOST_ARGUMENTS: Final = 512 - 8


def amd_gpu(arch: str) -> AMDGPU:
    """What is known of an instruction set.

    Raises:
      ValueError: if it is none that kernels are compiled for.

    >>> amd_gpu("gfx942").lanes
    64
    """
    if arch not in ARCHS:
        raise ValueError(f"{arch!r} is no architecture of an AMD GPU that is known here; there are {', '.join(ARCHS)}")
    return ARCHS[arch]


def amd_target(arch: str, units: int = 0, shared_bytes: int = 0) -> Target:
    """The machine as the code generator sees it.

    Args:
      arch: its instruction set.
      units: compute units of this card; those of the largest if 0.
      shared_bytes: what this card has for a work-group, if that is less than the instruction set allows.

    Raises:
      ValueError: if there is no such architecture.

    >>> amd_target("gfx1100").shared_bytes
    65536
    """
    known = amd_gpu(arch)
    units, shared = units or known.units, min(shared_bytes or known.shared_bytes, known.shared_bytes)
    lanes = units * (128 if known.lanes == 32 else 64)
    return Target(
        kind="gpu", vector_bytes=16, registers=known.registers - 1, shared_bytes=shared,
        local_max=_ITEMS, global_max=_PACKET_GROUPS if known.lanes == 64 else _GROUPS,
        max_params=_MOST_ARGUMENTS, line_bytes=128,
        matrices=tuple(row.instruction for row in amd_rows(arch)),
        gpu=GPUCosts(lanes=lanes, resident=4 * lanes, groups=units, register_file=known.register_file),
    )  # fmt: skip
