"""Vectors out of other vectors: put one behind the other, dealt out, woven and turned."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import dtypes
from tg_lazy import Ops

from ..ir.uop import UOp, const, shuffle, vectorize
from .transpose import transpose


def concatenated(vectors: Sequence[UOp]) -> UOp:
    """Vectors one behind the other."""
    if len(vectors) & (len(vectors) - 1):
        return vectorize(*(vector.gep(n) for vector in vectors for n in range(vector.dtype.count)))
    while len(vectors) > 1:
        lanes = range(2 * vectors[0].dtype.count)
        vectors = [shuffle(a, b, *lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def dealt(vectors: Sequence[UOp]) -> list[UOp]:
    """The elements of 2**n vectors, one behind the other, dealt to as many vectors in turn.

    >>> from tg_codegen.ir.uop import vectorize
    >>> rows = [vectorize(*(const(n, dtypes.int32) for n in row)) for row in ((0, 1), (2, 3))]
    >>> [[lane.arg for lane in vector.src] for vector in dealt(rows)]
    [[0, 2], [1, 3]]
    """
    if len(vectors) == 1:
        return list(vectors)
    lanes = 2 * vectors[0].dtype.count
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = [dealt([shuffle(a, b, *range(first, lanes, 2)) for a, b in pairs]) for first in (0, 1)]
    return [vector for both in zip(*halves, strict=True) for vector in both]


def turned(vectors: list[UOp]) -> list[UOp]:
    """The columns of vectors, as :func:`~tg_codegen.emit.transpose.transpose` has them.

    Bools, which may be single bits, are turned as bytes.
    """
    if not dtypes.is_bool(vectors[0].dtype):
        return transpose(vectors)
    columns = transpose([vector.cast(dtypes.uint8) for vector in vectors])
    return [column.alu(Ops.CMPNE, const(0, column.dtype)) for column in columns]


def woven(vectors: list[UOp]) -> UOp:
    """The lanes of several vectors in turn: the first of each, the second of each …"""
    count, lanes = len(vectors), vectors[0].dtype.count
    if count == 1 or lanes == 1:
        return vectors[0] if count == 1 else vectorize(*vectors)
    if count % 2:
        return vectorize(*(vector.gep(lane) for lane in range(lanes) for vector in vectors))
    even, odd = woven(vectors[0::2]), woven(vectors[1::2])
    half = count // 2 * lanes
    return shuffle(even, odd, *(n // 2 + n % 2 * half for n in range(2 * half)))
