"""The order of rows of keys: by comparing each with each where they are few, else by radix."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.array import A
from ..array.axes import iota
from ..autograd.functions.radix import order_of

FEW = 128  # keys of a row: as many are sooner compared each with each than counted, in a dozen kernels


def ordered(keys: A) -> A:
    """The positions of the keys of each row in rising order; equal keys stay as they stand.

    Args:
      keys: unsigned integers in memory, shape (rows, n) with n a number.

    Returns:
      int32, shape (rows, n).
    """
    n = keys.shape[1]
    assert isinstance(n, int)
    return ranked(keys, n) if n <= FEW else keys._value(order_of(keys.lazydata, keys.dtype.bits))


def ranked(keys: A, k: int) -> A:
    """The positions of the first ``k`` in the order of each row, each key compared with every other one."""
    n = keys.shape[1]
    i = iota(type(keys), n, dtypes.int32, keys.device)
    mine, other = keys.unsqueeze(2), keys.unsqueeze(1)
    earlier = i.reshape((1, 1, n)) < i.reshape((1, n, 1))
    rank = ((other < mine) | (other.eq(mine) & earlier)).sum(2, dtype=dtypes.int32)
    place = iota(type(keys), k, dtypes.int32, keys.device).reshape((1, k, 1))
    return rank.unsqueeze(1).eq(place).where(i, 0).sum(2, dtype=dtypes.int32)
