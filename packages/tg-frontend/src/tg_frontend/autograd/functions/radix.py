"""The order of rows of keys by radix: one pass a digit, each a table of counts, its running sums, and a move."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.cost import limits_of, update_parts
from tg_lazy.trackers import max_size
from tg_shape import upper

from .base import splat
from .updating import arranged, fetched, updated_in_order

_MANY = 4096  # keys of a row: so many are worth a table of counts that fills half of a first-level cache
_DIGIT, _WIDE_DIGIT = 8, 11  # bits
_BLOCK = 16  # elements that are added up each with each
_WHOLE = 256  # so many are one block, where that is little work
_LITTLE = 1 << 16  # elements


def order_of(keys: LazyBuffer, bits: int) -> LazyBuffer:
    """The positions of the keys of each row in rising order; equal keys stay as they stand.

    Long rows are cut into as many parts as suit the device, whose last one is filled with keys above all others.

    Args:
      keys: unsigned integers in memory, shape (rows, n) with n a number.
      bits: of a key, from the lowest, that may be set.

    Returns:
      int32, shape (rows, n).
    """
    rows, n = keys.shape
    assert isinstance(n, int)
    parts = update_parts(n, 1 << _DIGIT, max(1, upper(rows)), limits_of(keys.device))
    if parts == 1:
        return _in_passes(keys, n, bits, 1)
    whole = -(-n // parts) * parts
    above = keys.alu(Ops.NOT).pad(((0, 0), (0, whole - n))).alu(Ops.NOT)
    if bits < keys.dtype.bits:
        above = above.alu(Ops.AND, splat(above, (1 << bits) - 1))
    return _in_passes(above.contiguous(), whole, bits, parts).shrink(((0, rows), (0, n)))


def running_sums(x: LazyBuffer) -> LazyBuffer:
    """The sum of the elements up to each, in each row of a matrix; the rows have a number of elements."""
    rows, n = x.shape
    assert isinstance(n, int)
    if n > _WHOLE or (n > _BLOCK and max_size(x.shape) > _LITTLE):  # sums of blocks, and of the blocks before
        blocks = -(-n // _BLOCK)
        inner = x.pad(((0, 0), (0, blocks * _BLOCK - n))).reshape((rows * blocks, _BLOCK))
        inner = running_sums(inner).reshape((rows, blocks, _BLOCK))
        last = inner.shrink(((0, rows), (0, blocks), (_BLOCK - 1, _BLOCK))).reshape((rows, blocks))
        before = running_sums(last).pad(((0, 0), (1, 0))).shrink(((0, rows), (0, blocks)))
        joined = before.reshape((rows, blocks, 1)).expand(inner.shape).alu(Ops.ADD, inner)
        return joined.reshape((rows, blocks * _BLOCK)).shrink(((0, rows), (0, n)))
    square = (rows, n, n)
    at = LazyBuffer.iota(n, dtypes.int32, x.device)
    later = at.reshape((1, n, 1)).expand(square).alu(Ops.CMPLT, at.reshape((1, 1, n)).expand(square))
    each = x.reshape((rows, 1, n)).expand(square)
    return later.alu(Ops.WHERE, splat(each, 0), each).reduce(Ops.ADD, (2,)).reshape((rows, n))


def _digits(bits: int, n: int) -> list[int]:
    """The widths of the digits of a key, from the lowest."""
    count = -(-bits // (_WIDE_DIGIT if n >= _MANY else _DIGIT))
    return [(bits + i) // count for i in reversed(range(count))]


def _places(words: LazyBuffer, bits: int, parts: int) -> LazyBuffer:
    """Where the elements of each row go in an order by their lowest bits, which is stable.

    Each of the parts of a row counts its own elements, and begins behind the equal ones of the parts before it.
    """
    rows, n = words.shape
    assert isinstance(n, int)
    size = 1 << bits
    digits = words.alu(Ops.AND, splat(words, size - 1)).cast(dtypes.int32).reshape((rows * parts, n // parts))
    one = splat(digits, 1)
    none = LazyBuffer.const(0, dtypes.int32, (rows * parts, size), words.device)
    counts = updated_in_order(none, 1, digits, one, Ops.ADD)
    if parts > 1:
        counts = counts.reshape((rows, parts, size)).permute((0, 2, 1)).reshape((rows, size * parts)).contiguous()
    first = running_sums(counts).alu(Ops.SUB, counts)
    if parts > 1:
        first = first.reshape((rows, size, parts)).permute((0, 2, 1)).reshape((rows * parts, size))
    return fetched(first.contiguous(), 1, digits, one, Ops.ADD)[1].reshape((rows, n))


def _shifted(words: LazyBuffer, op: Ops, bits: int) -> LazyBuffer:
    return words.alu(op, splat(words, bits))


def _in_passes(keys: LazyBuffer, n: int, bits: int, parts: int) -> LazyBuffer:
    """One pass a digit, from the lowest: count, add up, and move each element to where its digit is due.

    A word is a key with its position above it, and is rotated by a digit in each pass: so every pass is the same
    program, and in the end the position is below.
    """
    at = LazyBuffer.iota(n, dtypes.int32, keys.device).reshape((1, n)).expand(keys.shape)
    widths = _digits(bits, n // parts)
    if len(widths) == 1:
        return arranged(1, _places(keys, bits, parts), at)
    if bits > dtypes.uint32.bits:
        for width in widths:
            places = _places(keys, width, parts)
            at = arranged(1, places, at)
            keys = arranged(1, places, _shifted(keys, Ops.SHR, width))
        return at
    word = _word(bits, n)
    words = keys.cast(word).alu(Ops.OR, _shifted(at.cast(word), Ops.SHL, bits)).contiguous()
    for width in widths:
        turned = _shifted(words, Ops.SHR, width).alu(Ops.OR, _shifted(words, Ops.SHL, word.bits - width))
        words = arranged(1, _places(words, width, parts), turned)
    return words.alu(Ops.AND, splat(words, (1 << (word.bits - bits)) - 1)).cast(dtypes.int32)


def _word(bits: int, n: int) -> DType:
    """What holds a key of so many bits and a position."""
    return dtypes.uint32 if bits + (n - 1).bit_length() <= dtypes.uint32.bits else dtypes.uint64
