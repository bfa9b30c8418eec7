"""What the optimiser must know of the machine that a kernel is for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tg_dtype import DType, dtypes

from ..ir.matrix import WARP, MatrixInstruction
from .costs import CPUCosts
from .gpu import GPUCosts

COPIES = 100
"""Copies of a multiplication that unrolled loops make, at the most, where the kernel is not far too long with them."""
PANEL_BYTES = 1 << 20
"""Most bytes of a packed operand: it lies on the stack of a thread, of which there are 8 MiB by default (Linux)."""
SCRATCH_BYTES = PANEL_BYTES * 17 // 16
"""The same with what lengthens strides: at most a line in :attr:`Target.period_bytes`."""
LANE_BYTES = 4
"""A work-item has registers of 32 bits (CUDA, "Arithmetic Instructions")."""
ALIASED_BYTES = 4096
"""Cores compare the address of a load with those of stores before it modulo so many bytes, and wait where they agree:
*Intel 64 and IA-32 Architectures Optimization Reference Manual*, "4-KByte Aliasing"."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine's shape, as far as loops care.

    Attributes:
      kind: ``"cpu"`` (loops, threads by ``core_id``) or ``"gpu"`` (work-groups: ``gidx``, ``lidx``).
      vector_bytes: width of a SIMD register in bytes (CPU), or of the widest single memory access (GPU).
      registers: vector registers that the compiler may use without spilling (CPU), scalar registers a thread (GPU).
      threads: CPU threads that a kernel may be split over; 1 on a GPU.
      l1_bytes: first-level data cache of a core.
      l1_ways: how many lines each of its sets holds.
      l2_bytes: second-level cache of a core.
      l2_ways: how many lines each of its sets holds.
      last_bytes: the last cache before memory; 0 if that is not known.
      line_bytes: a line of the caches.
      shared_bytes: memory shared by a work-group; 0 if there is none.
      local_max: most work-items in a work-group, 0 if there are no work-groups.
      global_max: most work-groups along each dimension.
      fused_multiply_add: whether a*b+c is one instruction.
      folds: whether a multiply-add may read one of its operands from memory.
      max_params: most arguments of a kernel.
      scales: whether multiplying by a power of two, with one rounding, is an instruction.
      converts_words: whether integers of 64 bits become float64 in vectors.
      awake: whether a kernel's threads are there when it begins, and wait for none of the others when it ends: then
        they share however little work it does, and the kernel tells what each touches.
      strict: keep the order in which reductions of floats are stated, and round every product.
      matrices: instructions that multiply matrices, the best first.
      copies: how many copies of a multiplication unrolled loops may make of it: a compiler's patience, in a way.
      scratch_bytes: most bytes of one array of scratch: less where a kernel's copies of it are too much for a stack.
      cpu: what instructions and memory cost, of a CPU.
      gpu: the same of a GPU.
    """

    kind: Literal["cpu", "gpu"] = "cpu"
    vector_bytes: int = 16
    registers: int = 16
    threads: int = 1
    l1_bytes: int = 32 * 1024
    l1_ways: int = 8
    l2_bytes: int = 512 * 1024
    l2_ways: int = 16
    last_bytes: int = 0
    line_bytes: int = 64
    shared_bytes: int = 0
    local_max: int = 0
    global_max: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    fused_multiply_add: bool = True
    folds: bool = False
    max_params: int = 1024
    matrices: tuple[MatrixInstruction, ...] = ()
    copies: int = COPIES
    scratch_bytes: int = SCRATCH_BYTES
    strict: bool = False
    awake: bool = False
    scales: bool = False
    converts_words: bool = True
    cpu: CPUCosts = field(default=CPUCosts())
    gpu: GPUCosts = field(default=GPUCosts())

    @property
    def grid(self) -> bool:
        """Whether a kernel is a grid of work-items, whose groups share memory; else its threads loop.

        >>> Target(kind="gpu").grid, Target(threads=8).grid
        (True, False)
        """
        return self.kind == "gpu"

    @property
    def warp(self) -> int:
        """Work-items that do a matrix instruction together, and that run together in any case; 1 where threads loop.

        >>> Target(kind="gpu").warp, Target().warp
        (32, 1)
        """
        return next((found.threads for found in self.matrices if found.threads > 1), WARP) if self.grid else 1

    @property
    def keeps_rows(self) -> bool:
        """Whether a thread keeps rows in scratch from part to part of a kernel; work-items keep what registers hold.

        >>> Target(kind="gpu").keeps_rows
        False
        """
        return not self.grid

    @property
    def skips(self) -> bool:
        """Whether a branch skips what no lane of a vector needs; work-items are lanes that run side by side anyway.

        >>> Target(kind="gpu").skips
        False
        """
        return not self.grid

    @property
    def walks_memory(self) -> bool:
        """Whether a thread walks memory by itself: the order of its loops, and walks that overlap, then decide.

        Of work-items the machine runs others while some wait, in an order of its own.

        >>> Target(kind="gpu").walks_memory
        False
        """
        return not self.grid

    @property
    def alu_bytes(self) -> int:
        """Width of one instruction that computes: of a vector, or of a work-item's lane.

        >>> Target(kind="gpu").alu_bytes, Target(vector_bytes=32).alu_bytes
        (4, 32)
        """
        return LANE_BYTES if self.grid else self.vector_bytes

    @property
    def prefetches(self) -> bool:
        """Whether it gains to fetch ahead: work-items of a grid wait for memory while others compute.

        >>> Target(kind="gpu").prefetches
        False
        """
        return not self.grid

    @property
    def hides_latency(self) -> bool:
        """Whether a thread hides how long its own arithmetic takes: of work-items, others compute while some wait.

        >>> Target(kind="gpu").hides_latency
        False
        """
        return not self.grid

    @property
    def reads_unasked(self) -> bool:
        """Whether lanes read an element that nobody wants rather than ask: a branch for each of them takes longer.

        Work-items of a grid ask all at once.

        >>> Target(kind="gpu").reads_unasked, Target().reads_unasked
        (False, True)
        """
        return not self.grid

    @property
    def counter(self) -> DType:
        """The dtype of loop counters: as wide as an address where that costs nothing, half as wide in work-items.

        A work-item has registers of 32 bits and takes two instructions to add 64 (CUDA, "Arithmetic Instructions").
        """
        return dtypes.int32 if self.grid else dtypes.int64

    @property
    def period_bytes(self) -> int:
        """Addresses so far apart share a set of the first-level cache: strides of such a size are lengthened by a line.

        That is the size of one way, or :data:`ALIASED_BYTES` if that is more.

        >>> Target(l1_bytes=64 << 10, l1_ways=4).period_bytes
        16384
        """
        return max(ALIASED_BYTES, self.l1_bytes // self.l1_ways)

    @property
    def resident_bytes(self) -> int:
        """Bytes that stay in the second-level cache beside three more operands or results that are as large.

        >>> Target(l2_bytes=1 << 20).resident_bytes
        262144
        """
        return self.l2_bytes // 4

    @property
    def beside_bytes(self) -> int:
        """Bytes that stay in the second-level cache beside as much else.

        >>> Target(l2_bytes=1 << 20).beside_bytes
        524288
        """
        return self.l2_bytes // 2

    @property
    def block_bytes(self) -> int:
        """Bytes of a block that stay in the second-level cache beside what else is read.

        >>> Target(l2_bytes=1 << 20).block_bytes
        786432
        """
        return self.l2_bytes * 3 // 4

    @property
    def l1_resident_bytes(self) -> int:
        """As :attr:`resident_bytes`, of the first-level cache."""
        return self.l1_bytes // 4

    @property
    def l1_beside_bytes(self) -> int:
        """As :attr:`beside_bytes`, of the first-level cache."""
        return self.l1_bytes // 2

    @property
    def far_bytes(self) -> int:
        """An operand of more bytes comes from memory whenever it is walked: it is more than a core's last cache."""
        return self.cpu.last_times * self.l2_bytes

    @property
    def panel_bytes(self) -> int:
        """Most bytes of a packed operand, without what lengthens its strides.

        >>> Target().panel_bytes == PANEL_BYTES
        True
        """
        return self.scratch_bytes * PANEL_BYTES // SCRATCH_BYTES

    @property
    def partial_bytes(self) -> int:
        """Most bytes of partial results: two strides in scratch may be lengthened, each by a line in a period."""
        return self.scratch_bytes * (self.period_bytes - 2 * self.line_bytes) // self.period_bytes
