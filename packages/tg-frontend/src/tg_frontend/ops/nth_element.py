"""Selection: the elements of given ranks, and the first ones in order, without sorting a row.

A key is found by its bits, two at a time from the top: how many keys are below each of the three next prefixes says
which one the key begins with. A row of n keys of b bits takes b / 2 passes, whatever is in it.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_shape import upper

from ..array.array import A
from ..array.axes import iota
from .gather_scatter import gather
from .row_order import FEW, ordered, ranked
from .scan import cumsum
from .searching import lower_bound

_BITS = 2  # of a key that one pass finds: passes are bound by memory until they compare with more than three prefixes
_LEAST_BLOCK = 4  # keys: to look for the best blocks first saves nothing where they are smaller
_HALF = 16  # bits of a number of keys, where a row has few


def kth_keys(keys: A, ranks: A) -> A:
    """The keys of given ranks in each row.

    Args:
      keys: unsigned integers, shape (rows, n).
      ranks: int32, shape (rows or 1, m), from 1 to n.

    Returns:
      shape (rows, m).
    """
    dtype, (rows, n) = keys.dtype, keys.shape
    m = ranks.shape[1]
    kind = type(keys)
    column = iota(kind, 2, dtypes.int32, keys.device)
    # What is known of the key, and what one more of the digit to come adds to it: in memory, that all passes are one
    # kernel.
    state = column.eq(0).where(0, 1 << (dtype.bits - _BITS)).cast(dtype).reshape((1, 1, 2)).expand(rows, m, 2)
    state = state.contiguous()
    digits = (iota(kind, (1 << _BITS) - 1, dtypes.int32, keys.device) + 1).cast(dtype)
    table = keys.reshape((rows, 1, 1, n))
    for _ in range(dtype.bits // _BITS):
        prefix, unit = state.shrink((None, None, (0, 1))), state.shrink((None, None, (1, 2)))
        bounds = prefix + unit * digits
        below = (table < bounds.unsqueeze(3)).sum(3, dtype=dtypes.int32)
        digit = (below < ranks.unsqueeze(2)).sum(2, keepdim=True, dtype=dtypes.int32).cast(dtype)
        state = column.eq(0).where(prefix + digit * unit, unit >> _BITS).contiguous()
    return state.shrink((None, None, (0, 1))).reshape((rows, m))


def first_of(keys: A, wanted: A) -> A:
    """Where each of the wanted keys stands first in its row.

    Args:
      keys: shape (rows, n).
      wanted: keys that are there, shape (rows, m).

    Returns:
      int32, shape (rows, m).
    """
    rows, n = keys.shape
    at = iota(type(keys), n, dtypes.int32, keys.device)
    hit = keys.reshape((rows, 1, n)).eq(wanted.unsqueeze(2))
    return hit.where(at, int(upper(n)) - 1).min(2)


def _lead(keys: A, k: int) -> A:
    """The positions of the ``k`` least keys of each row, of equal ones the first: in rising order of position."""
    rows, n = keys.shape
    assert isinstance(n, int)
    last = kth_keys(keys, iota(type(keys), 1, dtypes.int32, keys.device).reshape((1, 1)) + k)
    half, dtype = (_HALF, dtypes.int32) if n < 1 << (_HALF - 1) else (32, dtypes.int64)
    counts = (keys < last).cast(dtype) + (keys.eq(last).cast(dtype) << half)
    seen = cumsum(counts, 1, dtype=dtype).contiguous()  # how many are less, and how many are equal
    less = seen & ((1 << half) - 1)
    ties = k - less.shrink((None, (n - 1, n)))
    taken = (less + (seen >> half).minimum(ties)).cast(dtypes.int32)
    turns = iota(type(keys), k, dtypes.int32, keys.device).reshape((1, k)) + 1
    return lower_bound(taken.contiguous(), turns.expand(rows, k))


def _candidates(keys: A, k: int, width: int) -> tuple[A, A]:
    """Positions among which the ``k`` least keys are, and the keys there: the ``k`` blocks with the least minima.

    A last block of fewer than ``width`` keys goes on past the row with keys that come after all others.
    """
    rows, n = keys.shape
    assert isinstance(n, int)
    blocks = -(-n // width)
    keys = keys.pad(((0, 0), (0, blocks * width - n)), value=dtypes.max(keys.dtype))
    best = _lead(keys.reshape((rows, blocks, width)).min(2).contiguous(), k)
    inside = iota(type(keys), width, dtypes.int32, keys.device)
    places = (best.unsqueeze(2) * width + inside).reshape((rows, k * width)).contiguous()
    return places, gather(keys, 1, places).contiguous()


def least(keys: A, k: int) -> A:
    """The positions of the ``k`` least keys of each row in order; equal ones as they stand.

    Args:
      keys: unsigned integers in memory, shape (rows, n) with n a number.
      k: from 1 to n.

    Returns:
      int32, shape (rows, k).
    """
    n = keys.shape[1]
    assert isinstance(n, int)
    if n <= FEW:
        return ranked(keys, k)
    if k > n // 2:
        return ordered(keys).shrink((None, (0, k)))
    width = 1 << (math.isqrt(n // k).bit_length() - 1)
    if width >= _LEAST_BLOCK:
        places, found = _candidates(keys, k, width)
        lead = gather(places, 1, _lead(found, k))
    else:
        lead = _lead(keys, k)
    lead = lead.contiguous()
    return gather(lead, 1, ordered(gather(keys, 1, lead).contiguous()))
