"""Partial results combined to one: those of accumulators, of lanes and of work-items."""

from __future__ import annotations

from tg_lazy import Ops

from ..ir.uop import UOp, shuffle, vectorize

RADIX = 8
"""Partial results that one work-item combines at a time: a tree of few levels, each of which costs a barrier."""


def tree(width: int) -> list[int]:
    """How many partial results there are at each level, when at most ``RADIX`` or so become one from level to level.

    >>> tree(4), tree(64), tree(256), tree(48)
    ([4], [64, 8], [256, 32, 4], [48, 6])
    """
    levels = [width]
    while levels[-1] > RADIX:
        part = next((n for n in (RADIX, 6, 4, 3, 2, 5, 7) if levels[-1] % n == 0), levels[-1])
        if part == levels[-1]:
            break
        levels.append(levels[-1] // part)
    return levels


def combine(op: Ops, parts: list[UOp]) -> UOp:
    """A balanced tree of ``op`` over ``parts``."""
    while len(parts) > 1:
        pairs = [parts[n].alu(op, parts[n + 1]) for n in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) & ~1 :]
    return parts[0]


def gathered(op: Ops, vectors: list[UOp]) -> UOp:
    """A vector with one lane for each of several vectors: its lanes combined, in the order of :func:`horizontal`.

    Two vectors' halves are combined by one operation, whose result has both vectors' lanes, half as many of each.
    """
    whole = vectors[0].dtype.count
    if len(vectors) == 1 or len(vectors) > whole or any(n & (n - 1) for n in (whole, len(vectors))):
        return vectorize(*(horizontal(op, vector) for vector in vectors))
    group = whole
    while len(vectors) > 1:
        half = group // 2
        low = [at for first in range(0, 2 * whole, group) for at in range(first, first + half)]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [shuffle(a, b, *low).alu(op, shuffle(a, b, *(at + half for at in low))) for a, b in pairs]
        group = half
    vector = vectors[0]
    while group > 1:
        low = [at for first in range(0, vector.dtype.count, group) for at in range(first, first + group // 2)]
        vector = vector.gep(*low).alu(op, vector.gep(*(at + group // 2 for at in low)))
        group //= 2
    return vector


def horizontal(op: Ops, vector: UOp) -> UOp:
    """The lanes of a vector combined, halves first."""
    while vector.dtype.count > 1:
        lanes = vector.dtype.count
        if lanes % 2:
            return combine(op, [vector.gep(n) for n in range(lanes)])
        half = lanes // 2
        vector = vector.gep(*range(half)).alu(op, vector.gep(*range(half, lanes)))
    return vector
