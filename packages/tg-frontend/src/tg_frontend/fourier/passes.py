"""The discrete Fourier transform of any length, of numbers as two tensors of shape (count, n, inner).

A pass combines r numbers that are n / r apart, and writes what it gets beside one another, so that the last pass
leaves the result in order: Stockham's method (W. T. Cochran et al., "What is the fast Fourier transform?", 1967), where
frequencies are halved (W. M. Gentleman and G. Sande, 1966). After passes whose radices multiply to ``span``, numbers
lie as (n / span, span). Each pass is one kernel, in which what lies beside one another is computed side by side. Passes
of powers of two are butterflies, and come first: what they write beside one another is turned in registers.

Where the numbers of one transform do not fit a core's caches, each pass goes through memory. There two passes share a
kernel: for a few numbers that lie beside one another it combines those of all rows by both radices, and what is between
them stays in a cache (D. H. Bailey's method, below, on blocks of columns).

Where little lies beside one another in other passes, a length n = a b is transformed as a matrix of (a, b) numbers: its
columns, times the roots between, and the columns of the transposed matrix (D. H. Bailey, "FFTs in external or
hierarchical memory", 1990). Where a factor of the length is a larger prime p, its pass is a product with a matrix, or
by Bluestein's method (L. I. Bluestein, 1970) a convolution of a length that has small factors.

A NaN makes all of the result NaN, and an infinity makes it infinities and NaN.

There is only the forward transform: with the parts exchanged before and after, it is the inverse without its factor
1/n.
"""

from __future__ import annotations

from math import gcd, prod

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_lazy.cost import limits_of
from tg_runtime import Device

from ..array.shapes import broadcast_shape
from .butterflies import butterfly, stacked
from .tables import HOST, TABLES, chirp, matrix, twiddles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Pair = tuple[Any, Any]

_SMALL = (7, 11, 13, 5, 3)  # odd radices whose pass is a sum in registers
_LARGEST_MATRIX = 61  # the largest prime whose pass is a product with a matrix: beyond, a convolution is less work
_WIDEST = 16  # floats of the widest vector that a processor has (AVX-512): fewer numbers side by side leave lanes empty
_LEAST_MATRIX = 64  # shorter transforms are not worth a transposition
_MOST_BITS = 6  # of radices that share a kernel: more rows than 64 are as many streams of memory
_BLOCK = 1 << 13  # numbers that such a kernel works on at a time, at the most: 64 KiB in float32
_BLOCKS = 8  # of which the second-level cache has room for at least so many, as kernels in blocks of rows ask


def factors(n: int) -> list[int]:
    """Radices of the passes of a length: eights, and what is left of twos; then larger primes and small odd ones.

    The parts of eight numbers are in the registers of a core with AVX2. Sixteen are not, but one pass less.

    Example:
      >>> factors(4096), factors(2048), factors(360), factors(17 * 6)
      ([8, 8, 8, 8], [16, 16, 8], [8, 5, 3, 3], [2, 17, 3])
    """
    bits = (n & -n).bit_length() - 1
    n >>= bits
    eights, left = divmod(bits, 3)
    twos = [8] * eights + [1 << left] * (left > 0) if eights < left else [16] * left + [8] * (eights - left)
    small, large = list[int](), list[int]()
    for radix in _SMALL:
        while n % radix == 0:
            small.append(radix)
            n //= radix
    prime = 17
    while n > 1:
        if prime * prime > n:
            prime = n
        while n % prime == 0:
            large.append(prime)
            n //= prime
        prime += 2
    return [*twos, *large, *small]


def kernels(radices: list[int], through_memory: bool) -> list[list[int]]:
    """The radices of each kernel's passes: those of powers of two together where passes go through memory.

    Example:
      >>> kernels(factors(1 << 20), True), kernels(factors(1 << 11), True), kernels(factors(96), True)
      ([[8, 4], [8, 4], [8, 4], [8, 4]], [[8, 8], [8, 4]], [[8, 4], [3]])
      >>> kernels(factors(1 << 9), False)
      [[8], [8], [8]]
    """
    others = [r for r in radices if r & (r - 1)]
    bits = (prod(radices) // prod(others)).bit_length() - 1
    if not through_memory or bits < 5:
        return [[r] for r in radices]
    count = -(-bits // _MOST_BITS)
    shares = [(bits + n) // count for n in reversed(range(count))]
    twos = [[8, 1 << (share - 3)] if share > 4 else [1 << share] for share in shares]
    return [*twos, *([r] for r in others)]


def good_length(least: int) -> int:
    """The smallest length of at least so many that passes of small radices make fast."""
    best = 1 << (least - 1).bit_length()
    for odd in (3, 5, 9, 15):
        best = min(best, odd << max(0, (-(-least // odd) - 1).bit_length()))
    return best


def dft(x: Pair, scale: float = 1.0) -> Pair:
    """The transform along the second axis, times ``scale``.

    Args:
      x: the real and the imaginary part, each of shape (count, n, inner), float32 or float64.
      scale: a factor.
    """
    _, n, inner = x[0].shape
    radices = factors(n)
    if not radices or 0 in x[0].shape:
        return x[0] * scale, x[1] * scale
    if inner * (n & -n) < _WIDEST and n >= _LEAST_MATRIX and len(radices) > 1:
        return _as_matrix(x, _halved(radices), scale)
    return _in_passes(x, radices, scale)


def _halved(radices: list[int]) -> int:
    """A product of some radices, near the root of the product of all."""
    n, best = prod(radices), 1
    found = {1}
    for radix in radices:
        found |= {f * radix for f in found}
    for one in sorted(found):
        if max(one, n // one) < max(best, n // best):
            best = one
    return best


def _as_matrix(x: Pair, rows: int, scale: float) -> Pair:
    """The transform of n numbers as a matrix of so many rows."""
    count, n, inner = x[0].shape
    columns = n // rows
    x = _reshaped(x, (count, rows, columns * inner))
    between = twiddles(type(x[0]), rows, columns, x[0].dtype, x[0].device)
    a, b = (part.expand((rows, columns, inner)) for part in _reshaped(between, (rows, columns, 1)))
    x = _in_memory(_in_passes(x, factors(rows), 1.0, (a, b)))
    a, b = (part.permute(0, 2, 1, 3) for part in _reshaped(x, (count, rows, columns, inner)))
    x = _reshaped(_in_memory((a, b)), (count, columns, rows * inner))
    return _reshaped(dft(x, scale), (count, n, inner))


def _in_passes(x: Pair, radices: list[int], scale: float, after: Pair | None = None) -> Pair:
    """The transform along the second axis in passes, times ``scale``, and times numbers of the shape of a result."""
    count, n, inner = x[0].shape
    span, left = 1, n
    if len(radices) > 1:  # the roots between passes are computed on the device
        Device[x[0].device]  # whose limits are known once it is open
    nbytes, limit = 2 * x[0].dtype.itemsize, limits_of(x[0].device).row_bytes
    numbers = min(_BLOCK, limit // (_BLOCKS * nbytes))
    through_memory = after is None and n * inner * nbytes >= limit and numbers >= _WIDEST << _MOST_BITS
    todo = kernels(radices, through_memory)[::-1]
    while todo:
        group = todo.pop()
        r = prod(group)
        block = _block(numbers // r, left // r, span * inner)
        if len(group) > 1 and block is None:
            todo += [[one] for one in reversed(group)]
            continue
        left //= r
        shape = (count, r, left, span * inner)
        last = left == 1
        x, factor = _reshaped(x, shape), scale if last else 1.0
        if len(group) > 1 and block is not None:
            x = _in_blocks(x, group, block, factor)
            span *= r
            continue
        here = _as_butterflies if r & (r - 1) == 0 else _as_sums
        x = here(x, factor)
        if not last:
            x = _times(x, _between(x, r))
        elif after is not None:
            x = _times(x, _reshaped(after, (1, *x[0].shape[1:])))
        if here is _as_butterflies:
            x = _by_one_kernel(x, 1, last)
        elif not last:
            x = _in_memory(x)
        span *= r
    return _reshaped(x, (count, n, inner))


def _block(width: int, m: int, beside: int) -> tuple[int, int] | None:
    """How many of (m, beside) numbers are worked on at a time, about ``width``; None if they would be few."""
    if width < _WIDEST:
        return None
    if beside > width:
        w, wm = next(w for w in range(width, 0, -1) if beside % w == 0), 1
    else:
        w, wm = beside, gcd(m, 1 << (width // beside).bit_length() - 1)
    return (wm, w) if wm * w >= _WIDEST else None


def _in_blocks(x: Pair, radices: list[int], block: tuple[int, int], scale: float) -> Pair:
    """From (count, r, m, beside) to (count, m, r, beside), in memory: by one kernel, of two radices of powers of two.

    Args:
      x: both parts.
      radices: the two, whose product is r.
      block: how many of (m, beside) numbers are worked on at a time, each with all of r.
      scale: a factor.
    """
    kind = type(x[0])
    count, r, m, beside = x[0].shape
    wm, w = block
    lead = (count, m // wm, beside // w)
    parts = _reshaped(x, (count, r, lead[1], wm, lead[2], w))
    x = parts[0].permute(0, 2, 4, 1, 3, 5), parts[1].permute(0, 2, 4, 1, 3, 5)
    first, second = radices
    # of (first, second, wm, 1, w) the first, to (second, wm, 2, 2, …, 1, w), times the roots between
    x = _butterflies(_reshaped(x, (*lead, first, second, wm, 1, w)), 5)
    bits = x[0].shape[5:-2]
    tables = _reshaped(twiddles(kind, first, second, x[0].dtype, x[0].device), (*bits, second))
    a, b = (t.permute(len(bits), *range(len(bits))).reshape((1, 1, 1, second, 1, *bits, 1, 1)) for t in tables)
    x = _by_one_kernel(_times(x, (a, b)), len(lead), False)
    # of (second, wm, first, w) the second, to (wm, 2, 2, …, first, w), times the roots between this kernel and others
    x = _scaled(_butterflies(_reshaped(x, (*lead, second, wm, first, w)), 4), scale)
    bits = x[0].shape[4:-2]
    if m > 1:
        roots = twiddles(kind, m, r, x[0].dtype, x[0].device)
        x = _times(x, _reshaped(roots, (1, lead[1], 1, wm, *bits, first, 1)))
    at = len(x[0].shape)
    order = (0, 1, *range(3, at - 1), 2, at - 1)
    return _reshaped(_by_one_kernel(x, len(lead), True, order), (count, m, r, beside))


def _butterflies(x: Pair, to: int) -> Pair:
    """Of tensors of shape (count, sets, blocks, r, ...) the transforms along r, which come before other axes."""
    kind = type(x[0])
    re, im = butterfly((x[0].lazydata, x[1].lazydata), 3, to)
    return kind._wrap(re), kind._wrap(im)


def _between(x: Pair, r: int) -> Pair:
    """The roots between a pass and those after it, for numbers of shape (count, m, r, beside), r being in parts."""
    _, m, *parts, _ = x[0].shape
    last = len(parts) + 1
    tables = _reshaped(twiddles(type(x[0]), r, m, x[0].dtype, x[0].device), (1, *parts, m, 1))
    a, b = (table.permute(0, last, *range(1, last), last + 1) for table in tables)
    return a, b


def _as_butterflies(x: Pair, scale: float) -> Pair:
    """From (count, r, m, beside) to (count, m, 2, 2, …, beside): transforms of r numbers, a power of two."""
    kind = type(x[0])
    re, im = butterfly((x[0].lazydata, x[1].lazydata), 1, 2)
    return _scaled((kind._wrap(re), kind._wrap(im)), scale)


def _as_sums(x: Pair, scale: float) -> Pair:
    """From (count, r, m, beside) to (count, m, r, beside): transforms of any r numbers."""
    count, r, m, beside = x[0].shape
    if r > max(_SMALL):
        columns = _reshaped(_large_pass(_reshaped(x, (count, r, m * beside)), scale), (count, r, m, beside))
        return columns[0].permute(0, 2, 1, 3), columns[1].permute(0, 2, 1, 3)
    a, b = (part.permute(0, 2, 1, 3).reshape((count, m, 1, r, beside)) for part in x)
    c, s = _reshaped(matrix(type(a), r, a.dtype, a.device), (1, 1, r, r, 1))
    return _scaled(((a * c - b * s).sum(3), (a * s + b * c).sum(3)), scale)


def _scaled(x: Pair, scale: float) -> Pair:
    return x if scale == 1.0 else (x[0] * scale, x[1] * scale)


def _by_one_kernel(x: Pair, lead: int, last: bool, order: Sequence[int] | None = None) -> Pair:
    """Both parts, which have most in common, written by one kernel: row by row for the next pass, or one after another.

    Args:
      x: the parts.
      lead: how many axes count the rows.
      last: whether no other pass follows in the kernel: each part is a tensor, in memory.
      order: of the axes of such a tensor, those of the parts.
    """
    kind, axes = type(x[0]), len(x[0].shape)
    both = stacked((x[0].lazydata, x[1].lazydata), lead)
    place, shape = lead, x[0].shape
    if last:
        order = range(axes) if order is None else order
        both = both.permute((lead, *(axis + (axis >= lead) for axis in order))).contiguous()
        place, shape = 0, both.shape[1:]
    else:
        both = both.intermediate()
    whole = [(0, dim) for dim in both.shape]
    a, b = (both.shrink([*whole[:place], (n, n + 1), *whole[place + 1 :]]).reshape(shape) for n in (0, 1))
    return kind._wrap(a), kind._wrap(b)


def _in_memory(x: Pair) -> Pair:
    return x[0].contiguous(), x[1].contiguous()


def _reshaped(x: Pair, shape: tuple[int, ...]) -> Pair:
    return x[0].reshape(shape), x[1].reshape(shape)


def _times(x: Pair, y: Pair) -> Pair:
    """Products of complex numbers; of the two products that a part is made of, one is rounded with their sum."""
    kind = type(x[0])
    shape = broadcast_shape("fft", x[0].shape, y[0].shape)
    a, b, c, d = (part.expand(shape).lazydata for part in (*x, *y))
    re = a.alu(Ops.MULACC, c, b.alu(Ops.MUL, d).alu(Ops.NEG))
    im = a.alu(Ops.MULACC, d, b.alu(Ops.MUL, c))
    return kind._wrap(re), kind._wrap(im)


def _large_pass(x: Pair, scale: float) -> Pair:
    """Transforms along the second axis, whose length is a prime that is not small."""
    n = x[0].shape[1]
    if n > _LARGEST_MATRIX:
        return bluestein(x, scale)
    re, im = _in_memory(x)
    c, s = matrix(type(re), n, re.dtype, re.device)
    return _scaled((c.matmul(re) - s.matmul(im), c.matmul(im) + s.matmul(re)), scale)


def bluestein(x: Pair, scale: float = 1.0) -> Pair:
    """The transform along the second axis as a convolution with a chirp, by j k = (j² + k² - (k - j)²) / 2."""
    n = x[0].shape[1]
    long = good_length(2 * n - 1)
    kind, dtype, device = type(x[0]), x[0].dtype, x[0].device
    chirped = _times(x, turns := _reshaped(chirp(kind, n, dtype, device), (1, n, 1)))
    a, b = (part.pad([None, (0, long - n), None]) for part in chirped)
    a, b = _times(dft(_in_memory((a, b))), _reshaped(_filter(x[0], n, long), (1, long, 1)))
    b, a = (part.shrink([None, (0, n), None]) for part in dft(_in_memory((b, a))))  # parts exchanged: the inverse
    return _times((a, b), (turns[0] * scale, turns[1] * scale))


def _filter(x: Any, n: int, long: int) -> Pair:
    """The transform of the conjugate chirp on both sides of 0, over ``long``: computed in float64, rounded once."""

    def make() -> Pair:
        cos, sin = chirp(type(x), n, dtypes.float64, HOST)
        rows = []
        for part, sign in ((cos, 1.0), (sin, -1.0)):
            after = part.shrink([(1, n)]).flip(0)
            rows.append((part.pad([(0, long - 2 * n + 1)]).cat(after) * sign).reshape((1, long, 1)).contiguous())
        return _reshaped(dft((rows[0], rows[1]), 1.0 / long), (long,))

    return TABLES.get_or_make(("filter", type(x), n, long, x.dtype, x.device), make)
