"""The order of rows of keys: by comparing each with each where they are few, else by radix."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy.cost import limits_of, update_parts
from tg_shape import upper

from ..array.array import A
from ..array.axes import iota
from .creation import full
from .scan import cumsum
from .updating import arrange, fetch_update, update

FEW = 128  # keys of a row: as many are sooner compared each with each than counted, in a dozen kernels
_MANY = 4096  # keys of a row: so many are worth a table of counts that fills half of a first-level cache
_DIGIT, _WIDE_DIGIT = 8, 11  # bits


def ordered(keys: A) -> A:
    """The positions of the keys of each row in rising order; equal keys stay as they stand.

    Args:
      keys: unsigned integers in memory, shape (rows, n) with n a number.

    Returns:
      int32, shape (rows, n).
    """
    n = keys.shape[1]
    assert isinstance(n, int)
    return ranked(keys, n) if n <= FEW else _by_radix(keys, n)


def ranked(keys: A, k: int) -> A:
    """The positions of the first ``k`` in the order of each row, each key compared with every other one."""
    n = keys.shape[1]
    i = iota(type(keys), n, dtypes.int32, keys.device)
    mine, other = keys.unsqueeze(2), keys.unsqueeze(1)
    earlier = i.reshape((1, 1, n)) < i.reshape((1, n, 1))
    rank = ((other < mine) | (other.eq(mine) & earlier)).sum(2, dtype=dtypes.int32)
    place = iota(type(keys), k, dtypes.int32, keys.device).reshape((1, k, 1))
    return rank.unsqueeze(1).eq(place).where(i, 0).sum(2, dtype=dtypes.int32)


def _digits(bits: int, n: int) -> list[int]:
    """The widths of the digits of a key, from the lowest."""
    count = -(-bits // (_WIDE_DIGIT if n >= _MANY else _DIGIT))
    return [(bits + i) // count for i in reversed(range(count))]


def _places(words: A, bits: int, parts: int) -> A:
    """Where the elements of each row go in an order by their lowest bits, which is stable.

    Each of the parts of a row counts its own elements, and begins behind the equal ones of the parts before it.
    """
    rows, n = words.shape
    assert isinstance(n, int)
    size = 1 << bits
    digits = (words & (size - 1)).cast(dtypes.int32).reshape((rows * parts, n // parts))
    none = full(type(words), (rows * parts, size), 0, words.device).cast(dtypes.int32)
    counts = update(none, digits, 1, axis=1)
    if parts > 1:
        counts = counts.reshape((rows, parts, size)).permute(0, 2, 1).reshape((rows, size * parts)).contiguous()
    first = cumsum(counts, 1, dtype=dtypes.int32) - counts
    if parts > 1:
        first = first.reshape((rows, size, parts)).permute(0, 2, 1).reshape((rows * parts, size))
    return fetch_update(first.contiguous(), digits, 1, axis=1)[1].reshape((rows, n))


def _by_radix(keys: A, n: int) -> A:
    """The order of long rows, cut into as many parts as suit the device; keys above all others fill the last one."""
    rows = max(1, upper(keys.shape[0]))
    parts = update_parts(n, 1 << _DIGIT, rows, limits_of(keys.device))
    if parts == 1:
        return _in_passes(keys, n, 1)
    whole = -(-n // parts) * parts
    keys = keys.pad(((0, 0), (0, whole - n)), value=dtypes.max(keys.dtype))
    return _in_passes(keys.contiguous(), whole, parts).shrink((None, (0, n)))


def _in_passes(keys: A, n: int, parts: int) -> A:
    """One pass a digit, from the lowest: count, add up, and move each element to where its digit is due.

    A word is a key with its position above it, and is rotated by a digit in each pass: so every pass is the same
    program, and in the end the position is below.
    """
    bits = keys.dtype.bits
    at = iota(type(keys), n, dtypes.int32, keys.device).reshape((1, n)).expand(keys.shape)
    widths = _digits(bits, n // parts)
    if len(widths) == 1:
        return arrange(at, _places(keys, bits, parts), 1)
    if bits > dtypes.uint32.bits:
        for width in widths:
            places = _places(keys, width, parts)
            at = arrange(at, places, 1)
            keys = arrange(keys >> width, places, 1)
        return at
    word = dtypes.uint32 if bits + (n - 1).bit_length() <= dtypes.uint32.bits else dtypes.uint64
    words = (keys.cast(word) | (at.cast(word) << bits)).contiguous()
    for width in widths:
        words = arrange((words >> width) | (words << (word.bits - width)), _places(words, width, parts), 1)
    return (words & ((1 << (word.bits - bits)) - 1)).cast(dtypes.int32)
