"""What a GPU has and what its memory likes: the numbers that planners for GPUs ask for.

*CUDA* is NVIDIA's "CUDA C++ Programming Guide", *Practices* its "CUDA C++ Best Practices Guide". What a driver tells
stands in a :class:`~tg_codegen.machine.target.Target`. The probes are those of ``bench.gpu``; where one is named beside
a reason, it is the reason that the number comes from until the probe has run on a GPU.
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
    run: int = number(
        8, "elements", "side by side, at the least, that items read or write together",
        "CUDA: “Device Memory Accesses”, transactions of 32 bytes and more")  # fmt: skip
    far_store: int = number(
        4, "loads", "that cost as much as a store, where neither is of neighbours",
        "a line is read and written, in memory as in the cache; probe `far`")  # fmt: skip
    lone_results: int = number(
        1 << 13, "results", "of reductions, from which on each has one item",
        "half of `lanes`: of fewer, most of the machine is idle; probe `sums`")  # fmt: skip
    item_terms: int = number(
        4, "terms", "of a reduction, at the least, for each item that it is divided among",
        "so many reads of memory hide the 8 barriers of a tree of 256 items (`barrier`); probe `terms`")  # fmt: skip
    item_read: float = number(
        2.0, "multiply-adds", "that take as long as an item's read of one operand from shared memory",
        "CUDA: 64 multiply-adds (“Arithmetic Instructions”, 7.0 and 8.0) and 32 words of shared memory a cycle; "
        "probe `tiles`")  # fmt: skip
    warp_read: float = number(
        8.0, "multiply-adds", "the same for a row or a column of a warp's matrix instructions",
        "NVIDIA, “Tensor Cores”: 8 of Volta do 64 multiply-adds each a cycle, in which 64 float16 are read from shared "
        "memory; probe `warps`")  # fmt: skip
    group_read: float = number(
        16.0, "multiply-adds", "the same for a row or a column that a group of such warps copies to shared memory",
        "twice `warp_read`: what is copied is written to shared memory and read from a cache that is no faster; "
        "probe `warps`")  # fmt: skip
    item_columns: int = number(
        8, "columns", "of an item's tile, at the most", "two vectors of `ACCESS_BYTES`; probe `tiles`")
    warp_results: int = number(
        16, "results", "of matrix instructions that a warp keeps, at the most",
        "4 registers of each item: 64 of the 128 that 512 items have (`register_file`); probe `warps`")  # fmt: skip
    schedulers: int = number(
        4, "warps", "of a group, at the least, for each scheduler of a multiprocessor to have one",
        "CUDA: “Compute Capability 7.x”")  # fmt: skip
    idle_loss: float = number(
        0.5, "power", "of the idle share of the machine, by which a kernel takes longer",
        "half of a product's time is memory's, which those that run share with nobody; probe `idle`")  # fmt: skip
    barrier: float = number(32.0, "cycles", "until the items of a group have met", "CUDA: __syncthreads, 16 a cycle")

    @property
    def banks(self) -> int:
        """Banks of shared memory, of 32 bits each: a square with so many elements along a side meets each once.

        >>> GPUCosts().banks
        32
        """
        return self.bank_bytes // 4
