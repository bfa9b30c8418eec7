"""What a GPU has and what its memory likes: the numbers that planners for GPUs ask for.

*CUDA* is NVIDIA's "CUDA C++ Programming Guide", *Practices* its "CUDA C++ Best Practices Guide". No machine is probed:
what a driver tells stands in a :class:`~tg_codegen.machine.target.Target`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .numbers import number

ACCESS_BYTES = 16
"""Widest access of a work-item: neighbours no farther apart are reached together (*CUDA*, "Device Memory Accesses")."""
STATIC_SHARED_BYTES = 48 << 10
"""Most shared memory that a kernel of CUDA may declare; a launch states what is beyond (*CUDA*, "Shared Memory")."""


@dataclass(frozen=True, slots=True)
class GPUCosts:
    """What a GPU has and what its memory likes."""

    lanes: int = number(
        1 << 14, "work-items", "that the whole machine computes at once",
        "CUDA: 132 multiprocessors of 128 lanes on H100")  # fmt: skip
    resident: int = number(
        1 << 16, "work-items", "that hide the latency of memory on the whole machine", "four for each lane")
    groups: int = number(
        128, "work-groups", "that keep every multiprocessor busy", "CUDA: H100 has 132 multiprocessors, A100 has 108")
    group_items: int = number(
        256, "work-items", "in a group that suits most kernels", "Practices: “Thread and Block Heuristics”, 128 to 256")
    register_file: int = number(
        1 << 16, "registers", "that the groups of a multiprocessor share", "CUDA: “Compute Capabilities”")
    own_registers: int = number(
        24, "registers", "of a work-item beside its tile: addresses, counters, what is on its way",
        "ptxas -v of tiled products")  # fmt: skip
    bank_bytes: int = number(
        128, "bytes", "of the banks of shared memory: rows of a multiple of this begin in the same bank",
        "CUDA: “Shared Memory”, 32 banks of 32 bits")  # fmt: skip
    pad_bytes: int = number(
        16, "bytes", "by which such rows are lengthened", "the widest access, so that rows stay aligned for it")
    texel_items: int = number(
        16, "work-items", "of a group that writes an image, along its rows",
        "drivers give images to square tiles of 8 to 32 texels")  # fmt: skip
    barrier: float = number(32.0, "cycles", "until the items of a group have met", "CUDA: __syncthreads, 16 a cycle")

    @property
    def banks(self) -> int:
        """Banks of shared memory, of 32 bits each: a square with so many elements along a side meets each once.

        >>> GPUCosts().banks
        32
        """
        return self.bank_bytes // 4
