"""Searching in what is in order."""

from __future__ import annotations

from ..array.array import A
from ..array.axes import iota
from ..array.positions import counting_dtype


def lower_bound(rows: A, values: A, right: bool = False) -> A:
    """Where values belong in rows that are in order: how many elements are less (``right``: or equal).

    Every step halves what is left of the row, for all values at once and without a branch, in one kernel.

    Args:
      rows: in memory, shape (rows, n) with n a number.
      values: of the dtype of ``rows``, shape (rows, m).

    Returns:
      int32 (int64 where there are more elements than that counts), shape (rows, m).
    """
    count, n = rows.shape
    assert isinstance(n, int)
    dtype = counting_dtype(rows.numel())
    start = iota(type(rows), count, dtype, rows.device).reshape((count, 1)) * n
    if n == 0:
        return start.expand(values.shape) * 0
    flat = rows.lazydata

    def step(at: A, by: int) -> A:
        found = rows._wrap(flat.gather((at + (by - 1)).lazydata))
        return (found <= values if right else found < values).where(at + by, at)

    at, left = start.expand(values.shape), n
    while left > 1:
        at = step(at, left // 2)
        left -= left // 2
    return step(at, 1) - start
