"""What instructions and memory cost on a CPU: planners and the cost model of a search ask here.

The defaults are those of an out-of-order core of 2013 to 2024 with vectors; a machine that differs has its own in its
:class:`~tg_codegen.machine.target.Target`. Each number has a unit and a source. *Fog* is Agner Fog, "Instruction
tables"; *Intel* the "Intel 64 and IA-32 Architectures Optimization Reference Manual"; *Neoverse* Arm's "Neoverse N1
Software Optimization Guide"; a probe is one of ``python -m bench.hardware``, which measures it where it runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tg_dtype import DType, dtypes

from .numbers import number

PARTIAL_SHARE = 0.05
"""Part of the cycles of a piece's multiply-adds that its partial results may take, at the most."""


@dataclass(frozen=True, slots=True)
class CPUCosts:
    """What instructions and memory cost on a CPU.

    Cycles are those of one core whose units are all busy: what several do at a time costs less than its latency.
    Where planners compare dimensions before there is a tile, they count *instructions* instead.
    """

    units: int = number(
        2, "instructions a cycle", "vector additions, multiply-adds or loads that begin together",
        "Fog: FMA and loads from Haswell to Zen 5; Neoverse: ASIMD multiply accumulate; probe `units`")  # fmt: skip
    latency: int = number(
        4, "cycles", "from one addition or multiply-add to the next that needs it",
        "Fog: FMA on Skylake and Zen 3; Neoverse: ASIMD multiply accumulate; probe `latency`")  # fmt: skip
    scheduler: int = number(
        96, "instructions", "that wait for their operands at a time, while others that have theirs begin",
        "Fog, “The microarchitecture of Intel, AMD and VIA CPUs”: Skylake 97, Haswell 60")  # fmt: skip
    crowding: float = number(
        1.25, "times", "the registers that values alive in chains side by side may take, of which some are reloaded",
        "exponentials, error functions, logarithms, sines: 2, 4 and 8 copies with AVX2 and AVX-512")  # fmt: skip
    slack: float = number(
        1.3, "times", "the accumulators that just hide that latency; with fewer whatever else delays a sum shows",
        "rows `sgemm` of the bench, tile by tile")  # fmt: skip
    far_load: float = number(
        1.0, "cycles", "a vector that is read from the second-level cache, in order",
        "Intel: 64 bytes a cycle between the caches since Haswell, of which half lasts; probe `reads`")  # fmt: skip
    late_line: float = number(
        0.4, "cycles", "more, of a line of the second-level cache that prefetchers do not fetch in time",
        "steps of 32x128 by 128x512 in a loop, in tiles of 4 by 4 and 8 by 2")  # fmt: skip
    reload: float = number(
        0.625, "cycles", "a vector that an unrolled loop reads again for each row, for it does not fit the registers",
        "rows `conv` of the bench held to AVX2")  # fmt: skip
    last_line: float = number(
        2.5, "cycles", "a line of the last cache that is read in order", "64 bytes at 100 GB/s; probe `reads`")
    far_line: float = number(
        6.0, "cycles", "a line of memory that is read in order, hardware prefetchers being ahead",
        "64 bytes at 40 GB/s and 4 GHz; probe `reads`")  # fmt: skip
    beside_line: float = number(
        1.0, "cycles", "a line takes longer where several rows are read at a time, rather than one after the other",
        "sums of rows of 256 bytes to 16 KB on Zen, 8 at a time and one by one; -1 on Intel, whose prefetchers follow "
        "each of several rows, where one waits for its line fill buffers (“Data Prefetching”): probe `rows`",
    )  # fmt: skip
    masked_load: float = number(
        1.0, "cycles", "a vector of which some elements are not read", "Fog: VMASKMOV, masked VMOVUPS; probe `masks`")
    far_store: int = number(
        7, "loads", "that cost as much as a store, where neither is of neighbours",
        "loads of a tile are transposed in registers: sums of one to six transposed matrices; probe `far`")  # fmt: skip
    store: float = number(1.0, "cycles", "a vector that is written", "Fog: VMOVUPS to memory; probe `stores`")
    masked_store: float = number(
        2.0, "cycles", "a vector of which some elements are not written", "Fog: VMASKMOV to memory; probe `masks`")
    division: float = number(
        8.0, "cycles", "a vector of quotients, square roots or reciprocals", "Fog: VDIVPS, VSQRTPS; probe `division`")
    function: float = number(
        10.0, "cycles", "a vector of exponentials, logarithms or sines",
        "about twenty multiply-adds and selections: what they are written with in `special`")  # fmt: skip
    integer_division: float = number(
        12.0, "cycles", "a quotient or a remainder of integers", "Fog: DIV of 32 bits; probe `integer division`")
    constant_quotient: float = number(
        2.0, "cycles", "an integer divided by a number that the compiler knows: a multiplication and a shift",
        "Granlund and Montgomery, “Division by invariant integers using multiplication”, 1994")  # fmt: skip
    constant_remainder: float = number(
        3.0, "cycles", "what is left of such a division: a multiplication and a subtraction more",
        "Granlund and Montgomery, 1994")  # fmt: skip
    pair_product: float = number(
        0.5, "cycles", "a vector to which products of pairs of bfloat16 are added, where that is an instruction",
        "as a multiply-add on Zen 5, but 2 cycles from Sapphire Rapids on (libxsmm/tpp-mlir, pull request 1025: half as"
        " fast as floats); probe `pairs`")  # fmt: skip
    tile_product: float = number(
        16.0, "cycles", "a product of two tile registers that is added to a third one",
        "Intel: 2048 operations on bytes or 1024 on bfloat16 in a cycle (4th Gen Xeon Scalable, AMX);"
        " probe `tiles`")  # fmt: skip
    conversion: float = number(1.0, "cycles", "a vector of halves that becomes one of floats", "Fog: VCVTPH2PS")
    insertion: float = number(
        1.0, "cycles", "a scalar that is put into a lane of a vector", "Fog: VINSERTPS, VPUNPCK: a shuffle each")
    scattered: float = number(
        5.0, "cycles", "an element that is read from a cache line of its own and put into its lane",
        "between what probe `columns` reads from the second-level cache and from memory")  # fmt: skip
    late_page: float = number(
        3.5, "cycles", "more, of such a line in a page whose address only the second-level TLB holds",
        "Intel: 7 cycles from Skylake on, half of them beside other work; 1x1 convolutions with stride 2 of random "
        "sizes")  # fmt: skip
    packed: float = number(
        3.0, "cycles", "an element that is packed: as far from the next, but its neighbours come soon after",
        "probe `columns`, near and far, with the store and the counting of a copy's loops")  # fmt: skip
    packed_transposed: float = number(
        1.0, "cycles", "an element that is packed from rows, which are transposed in registers",
        "log2(16) shuffles, a load and a store for 16 elements; lines of the second-level cache")  # fmt: skip
    masked: float = number(
        2.0, "times", "what a masked vector costs beside one that is not", "`masked_load` by a plain load")
    packed_read: float = number(
        2.0, "instructions", "a vector of an operand that is packed first and then read again and again",
        "a load, and its share of a store and the loads of packing")  # fmt: skip
    gap_read: float = number(
        2.0, "instructions", "a vector of elements a few apart, where an unrolled loop reads those between",
        "a load and a shuffle")  # fmt: skip
    transposed_read: float = number(
        5.0, "instructions", "a vector of a tile that is transposed in registers", "a load and log2(16) shuffles")
    lane: float = number(
        2.0, "instructions", "a lane that is read or written by itself",
        "a scalar load and an insertion; an extraction and a scalar store")  # fmt: skip
    combined_lanes: float = number(
        4.0, "instructions", "the lanes of an accumulator that become one number", "log2(16) shuffles with additions")
    merged_lanes: float = number(
        1.5, "cycles", "an accumulator whose lanes are merged with those of another", "two shuffles and an addition")
    iteration: float = number(
        2.0, "cycles", "of a loop beside its body: counting, comparing, and the next addresses",
        "Fog: ADD, CMP and a taken branch, one a cycle on most cores from Haswell to Zen 3")  # fmt: skip
    kept_value: float = number(
        10.0, "operations", "of a value, from which on it is kept for a row rather than computed again",
        "a store, a load and a loop of their own: five cycles of two operations each; rows `softmax` of the bench",
    )  # fmt: skip
    thread_cycles: int = number(
        20_000, "cycles", "of one core for a kernel, below which waking threads takes longer than it saves",
        "a launch on two threads takes 2 to 3 microseconds more, of which half of the kernel is to be saved; products, "
        "sums, softmax and convolutions of 30,000 to 2 million operations with and without; probe `threads`",
    )  # fmt: skip
    panel_reads: int = number(
        8, "reads", "of a vector that is far from the next one, from which on it is packed",
        "a load and a store beside that many lines that come late from the last cache")  # fmt: skip
    near_panel_reads: int = number(
        16, "reads", "of such a vector of an operand that stays in the second-level cache, from which on it is packed",
        "products of 16 to 128 rows by 128x512 and 256x256: multiply-adds hide such reads, but packing would not pay",
    )  # fmt: skip
    private_reads: int = number(
        256, "reads", "of a panel, from which on each thread packs one for itself rather than waiting for the others",
        "16 elements of `packed` cycles each take a fifth of a cycle more for each of 256 reads of their vector",
    )  # fmt: skip
    group_panels: int = number(
        4, "panels", "that are packed together, at the most, for one walk across the rows' operand to serve them all",
        "found by rows `sgemm` of the bench: the more panels, the fewer terms has each")  # fmt: skip
    row_panels: int = number(
        8, "panels", "that a packed block of rows serves, at the least, for packing it to cost less than reading lines",
        "an element costs `packed` cycles once, and a line of the second-level cache two for every panel; row `sgemm "
        "1024 A.T @ B` of the bench")  # fmt: skip
    packed_lines: int = number(
        3, "lines", "side by side from which a block of rows is packed, for their misses to overlap",
        "row `sgemm 1024 A.T @ B` of the bench")  # fmt: skip
    accumulator_share: float = number(
        0.375, "of all registers", "that hold accumulators where lanes run along a reduction",
        "each accumulator has an operand of its own, and what rows share needs the others; rows `gemv` of the bench",
    )  # fmt: skip
    kept_row: int = number(
        64, "elements", "of a row, at the least, for its values to be kept rather than computed again",
        "four vectors of 16: fewer are over before the loop that reads them has begun; rows `softmax` of the bench",
    )  # fmt: skip
    lines_apart: int = number(
        4, "lines", "that each of several threads writes, at the least, for them not to wait for one another's",
        "Intel, “Hardware Prefetch”: lines are fetched in pairs, so two at either end may be shared")  # fmt: skip
    near_pages: int = number(
        64, "pages", "whose addresses the first-level TLB holds, as many as a packed panel may have",
        "Intel: 64 from Haswell to Ice Lake, 96 on Golden Cove; AMD: 64 on Zen 2, 72 on Zen 3; for panels: Goto and "
        "van de Geijn, “Anatomy of high-performance matrix multiplication”, 2008")  # fmt: skip
    last_times: int = number(
        8, "times", "the second-level cache: what a core has of the last cache, where that is not known",
        "AMD: 4 MB beside 512 KB on Zen 2; Intel: 2 MB beside 256 KB on Haswell")  # fmt: skip
    tlb_pages: int = number(
        1024, "pages", "whose addresses the second-level TLB holds",
        "Intel: 1024 on Haswell, 1536 on Skylake; AMD: 2048 on Zen 2; Arm: 1280 on Cortex-A76")  # fmt: skip
    misses: int = number(
        8, "lines", "that are on their way from memory to a core beside those of its other loads",
        "Intel: 10 line fill buffers on Haswell, 12 on Skylake, 16 on Golden Cove")  # fmt: skip
    streams: int = number(
        8, "runs of memory", "that hardware prefetchers follow at a time, beside those of the other operands",
        "Intel, “Data Prefetching”: the streamer of Haswell follows 32, one in each direction of a page")  # fmt: skip
    scattered_bytes: int = number(
        1024, "bytes", "from one iteration to the next, from which on hardware prefetchers fall behind a walk",
        "a page, at whose end they stop, has four such steps (Intel, “Hardware Prefetch”)")  # fmt: skip
    tile_ahead_bytes: int = number(
        4096, "bytes", "fetched so far before a tile of rows needs them; 0 where no instruction fetches ahead",
        "latency times bandwidth: 100 ns at 40 GB/s; probe `prefetch`")  # fmt: skip
    row_ahead_bytes: int = number(
        8192, "bytes", "fetched so far before a row needs them that is walked several times; 0 as above",
        "probe `prefetch`: twice that, as nothing else is read meanwhile")  # fmt: skip
    run_ahead_bytes: int = number(
        16384, "bytes", "fetched so far ahead in a run of memory; 0 as above",
        "four pages, as hardware prefetchers stop where one ends (Intel, “Hardware Prefetch”); probe `prefetch`",
    )  # fmt: skip

    @property
    def load(self) -> float:
        """Cycles of a vector that is read from the first-level cache."""
        return 1 / self.units

    def product(self, dtype: DType) -> float:
        """Cycles of an instruction that adds up several products in each lane, of factors of a dtype.

        >>> CPUCosts().product(dtypes.int8)
        0.5
        """
        return self.pair_product if dtype is dtypes.bfloat16 else 1 / self.units

    def line(self, nbytes: int, l2_bytes: int, last_bytes: int) -> float:
        """Cycles of a line of an operand of ``nbytes`` that is read in order: from the cache that holds it, or memory.

        Args:
          nbytes: of the operand.
          l2_bytes: of the second-level cache.
          last_bytes: of the last cache; 0 if that is not known.
        """
        if nbytes <= l2_bytes:
            return self.far_load
        return self.last_line if nbytes <= last_bytes else self.far_line

    @property
    def short_piece(self) -> int:
        """Fewest iterations of a piece of a reduction for which loading and storing its partial results costs little.

        It is the first power of two for which that is less than :data:`PARTIAL_SHARE` of its multiply-adds.

        >>> CPUCosts().short_piece
        64
        """
        least = math.ceil((self.load + self.store) * self.units / PARTIAL_SHARE)
        return 1 << (least - 1).bit_length()

    @property
    def updated_vectors(self) -> int:
        """Vectors of a row that are updated together: as many are stored while one is added to.

        >>> CPUCosts().updated_vectors
        4
        """
        return max(1, int(self.latency // self.store))

    @property
    def in_flight(self) -> int:
        """How many accumulators hide the latency of an addition: Little's law."""
        return self.units * self.latency

    def strided_read(self, step: int) -> int:
        """Instructions of a vector of every ``step``-th element: so many vectors, and the shuffles that sort them.

        >>> CPUCosts().strided_read(2)
        3
        """
        return 2 * step - 1
