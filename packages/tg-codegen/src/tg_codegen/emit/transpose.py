"""Transposition in registers: a square of vectors by log2(n) stages of shuffles of two vectors.

Each stage takes the vectors in pairs and moves one bit of a vector's number into the number of the lane. Inside of
16 bytes a stage interleaves the low and the high halves of two vectors (``unpack``); over units of 16 bytes it takes
the even and the odd units of both. Both are one instruction on x86 with AVX2 and AVX-512, and on AArch64.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.uop import UOp, shuffle
from ..machine.memory import INTERLEAVED_BYTES


def transpose(vectors: Sequence[UOp], group: int = 1) -> list[UOp]:
    """The columns of n vectors, n a power of two; in vectors of more than n lanes, those of each n lanes apart.

    Args:
      vectors: n vectors of n*m lanes, each of which is a group of elements that stay together.
      group: elements of a lane.

    Returns:
      n vectors of n*m lanes: lane ``n*k + i`` of the j-th is lane ``n*k + j`` of ``vectors[i]``.

    >>> from tg_codegen.ir.uop import const, vectorize
    >>> from tg_dtype import dtypes
    >>> rows = [vectorize(*(const(10 * i + j, dtypes.int32) for j in range(4))) for i in range(4)]
    >>> [[lane.arg for lane in column.src] for column in transpose(rows)][1]
    [1, 11, 21, 31]

    Raises:
      ValueError: if n is not a power of two, or does not divide the lanes.
    """
    n, lanes = len(vectors), vectors[0].dtype.count // group
    if n & (n - 1) or lanes % n:
        raise ValueError(f"{n} vectors of {lanes} lanes are not transposed by halves")
    fitting = max(1, INTERLEAVED_BYTES // (group * vectors[0].dtype.scalar().itemsize))
    unit = min(n, 1 << (fitting.bit_length() - 1))
    stages = n.bit_length() - 1
    inside = unit.bit_length() - 1
    now = list(vectors)
    for stage in range(stages):
        first, second = interleaved(n, unit, 1 << stage) if stage < inside else parted(n, unit)
        low, high = (
            [group * lane + element for lane in over_blocks(half, n, lanes) for element in range(group)]
            for half in (first, second))
        bit = 1 << stage
        for number in range(n):
            if not number & bit:
                a, b = now[number], now[number | bit]
                now[number], now[number | bit] = shuffle(a, b, *low), shuffle(a, b, *high)
    # where a stage left the bit of the column that it took out of the lanes
    source = [inside - 1 - stage if stage < inside else stage for stage in range(stages)]
    return [now[sum((column >> source[stage] & 1) << stage for stage in range(stages))] for column in range(n)]


def interleaved(n: int, unit: int, width: int) -> tuple[list[int], list[int]]:
    """Of two blocks of n lanes: in each unit, groups of ``width`` lanes of the low, and of the high halves in turn."""
    halves: tuple[list[int], list[int]] = ([], [])
    for start in range(0, n, unit):
        for half in (0, 1):
            begin = start + half * unit // 2
            for group in range(begin, begin + unit // 2, width):
                halves[half].extend(range(group, group + width))
                halves[half].extend(range(n + group, n + group + width))
    return halves


def parted(n: int, unit: int) -> tuple[list[int], list[int]]:
    """Of two blocks of n lanes: the even units of both, and the odd ones."""
    parts: tuple[list[int], list[int]] = ([], [])
    for odd in (0, 1):
        for block in (0, n):
            for start in range(block + odd * unit, block + n, 2 * unit):
                parts[odd].extend(range(start, start + unit))
    return parts


def over_blocks(lanes: list[int], n: int, count: int) -> list[int]:
    """A shuffle of blocks of n lanes for all blocks of vectors of ``count`` lanes."""
    return [lane + start if lane < n else lane - n + count + start for start in range(0, count, n) for lane in lanes]
