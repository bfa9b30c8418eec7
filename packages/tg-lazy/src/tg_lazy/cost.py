"""What fusion weighs: arithmetic, bytes moved, launches, and the limits of a kernel.

The unit is the byte. A node that is not realised is computed wherever it is used; realised, it is computed once,
written once and read by each kernel that uses it. So it stays fused while

    flops computed again / ``balance``  <=  bytes not moved + ``launch_bytes``

with the numbers of :class:`Limits`. :func:`tg_lazy.explain` prints both sides for each node that is realised by cost.

A *unit* is what works by itself on a result: a thread of a CPU, a work-group of a GPU. ``python -m bench.reductions``
measures, on the device at hand, what a unit reads while a kernel is launched, and from which length on it pays to split
a reduction.
"""

from __future__ import annotations

from typing import NamedTuple

from .ops import CONVERSIONS, SPEC, Ops, Trait


class Limits(NamedTuple):
    """A target as the scheduler sees it.

    Attributes:
      nodes: most nodes of a kernel's AST that are not loads.
      buffers: most buffers of a kernel.
      stages: most reductions in one kernel.
      uses: most places in which one node is computed; where each computes another part of it, ``beside`` of them.
      balance: flops that take as long as moving a byte.
      launch_bytes: bytes that take as long to move as launching a kernel.
      cache_bytes: a row's data up to this size are read from memory once, however many stages of a kernel read them.
      rows: fewer independent rows than this do not fill the machine.
      serial_elements: elements that one unit reads while a kernel is launched: less work than that is done before it
        matters that the other units have none. A launch takes about 5 microseconds, in which a core reads 13 GB/s of
        float32 from memory; a multiprocessor reads 36 GB/s (4.8 TB/s by 132, on H200), and its launches take half as
        long.
      tile_outputs: outputs that one unit may compute together, in a tile of 8 by 8 registers: as few share no more
        than one unit.
      split_parts: parts into which a reduction is split at most, as many as there are work-groups of 256 in the 65536
        work-items that hide the latency of memory on the largest GPU; a CPU has fewer threads.
      units: what computes side by side: threads of a CPU, work-items of a GPU.
      serial_updates: values that a thread or a work-item combines with elements in memory, one after the other, while a
        kernel is launched. A launch takes about 5 microseconds; each value waits for a load, that is half a microsecond
        on a GPU (NVIDIA: 400 to 800 cycles), and a nanosecond in a cache of a CPU.
      row_bytes: an intermediate of at least so many bytes may stay in the fast memory of a kernel that works on blocks
        of rows, if eight rows take no more than that; 0: the target has no such kernels.
      beside: for so many iterations of short dimensions, at the most, an expression that does not depend on them is
        computed once, wherever their loops are: planners put them side by side, in registers.
      block_sums: whether a kernel may multiply integers in blocks and add up what the blocks give, each by a scale: the
        target has instructions for such products.
      factor_bytes: two factors of a product that take more than so many bytes do not stay in a unit's cache, so that
        the layout of both counts; 0: it never does.
    """

    nodes: int = 512
    buffers: int = 31
    stages: int = 6
    uses: int = 12
    balance: float = 8.0
    launch_bytes: int = 32768
    cache_bytes: int = 131072
    rows: int = 16
    serial_elements: int = 16384
    tile_outputs: int = 64
    split_parts: int = 256
    units: int = 1 << 16
    serial_updates: int = 16
    row_bytes: int = 0
    beside: int = 32
    block_sums: bool = False
    factor_bytes: int = 0

    def of_threads(self, threads: int) -> Limits:
        """The same of so many threads of a CPU, which four rows for each fill: none then waits long for the others."""
        return self._replace(units=threads, serial_updates=4096, rows=4 * threads if threads > 1 else 1)


LIMITS: dict[str, Limits] = {}
"""Limits by kind of device (``"WEBGPU"``), for those that differ from the default. Runtimes fill it."""
_DEFAULT = Limits()


def limits_of(device: str) -> Limits:
    """The limits of a device such as ``"CUDA:1"``."""
    return LIMITS.get(device.partition(":")[0], _DEFAULT) if LIMITS else _DEFAULT


READING = 2.0
"""Flops that take as long as a value of a table that is near: a load, and a conversion or a comparison with 0.

What counters alone are computed from with no more is never a table: where loops are unrolled, compilers know it.
"""
_TABLE_PASSES = 4
"""How often each element of a table of partial results is read or written: cleared, filled, combined, and read."""


def update_parts(values: int, size: int, rows: int, limits: Limits) -> int:
    """Into how many parts it is best to cut a row of values that go to computed places of a table one by one.

    Each part has a table of its own, and a unit: ``p`` parts take as long as ``values / p`` values, and as long as the
    units are busy with ``p`` tables for each row.

    Args:
      values: of each row.
      size: elements of a row's table.
      rows: side by side.
      limits: of the device.

    >>> update_parts(1_000_000, 256, 1, Limits()), update_parts(1_000_000, 256, 1, Limits().of_threads(2))
    (8000, 2)
    >>> update_parts(16_384, 256, 64, Limits().of_threads(8)), update_parts(50, 1000, 1, Limits())
    (1, 1)
    """
    tables = _TABLE_PASSES * rows * size / limits.units
    parts = min(limits.units // rows, values, int((values / tables) ** 0.5))
    if parts < 2:
        return 1
    launches = _TABLE_PASSES * limits.serial_updates
    return parts if values - (values / parts + tables * parts) >= launches else 1


_SORT_LAUNCHES = 14
"""Kernels of a pass that sorts positions by a digit: counts, their running sums, places, and what is moved."""
_DIGIT = 8
"""Bits of a digit."""


def update_sorts(values: int, size: int, rows: int, lanes: int, parts: int, limits: Limits) -> bool:
    """Whether it is best to sort positions first, so that values for one place stand together.

    Args:
      values: of each row.
      size: places of a row.
      rows: that are sorted.
      lanes: side by side in any case: the rows, and what each of their positions stands for.
      parts: those of :func:`update_parts`.
      limits: of the device.

    >>> update_sorts(100_000, 100_000, 1, 1, 128, Limits()), update_sorts(100_000, 100_000, 1, 64, 16, Limits())
    (True, True)
    >>> update_sorts(1_000_000, 256, 1, 1, 8000, Limits()), update_sorts(5_000, 100, 1, 1, 1, Limits().of_threads(8))
    (False, False)
    """
    units, passes = limits.units, -(-size.bit_length() // _DIGIT)
    tables = _TABLE_PASSES * lanes * size * parts / units if parts > 1 else 0.0
    in_order = values / parts * max(1.0, lanes * parts / units) + tables
    launches = passes * _SORT_LAUNCHES * limits.serial_updates
    return in_order > launches + (passes * _TABLE_PASSES * rows + _TABLE_PASSES * lanes) * values / units


_SLOW = {Ops.RECIP: 4.0, Ops.SQRT: 4.0, Ops.FDIV: 4.0, Ops.IDIV: 8.0, Ops.MOD: 8.0, Ops.GATHER: 4.0}

FLOPS: dict[Ops, float] = {
    op: 0.0 if op in CONVERSIONS else 12.0 if Trait.TRANSCENDENTAL in row.traits else _SLOW.get(op, 1.0)
    for op, row in SPEC.items()
}
"""Arithmetic of one element, in additions. Conversions count as part of the load or store that they accompany."""
