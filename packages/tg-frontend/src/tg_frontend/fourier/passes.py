"""The discrete Fourier transform of any length, of numbers as two tensors of shape (count, n, inner).

A pass combines r numbers that are n / r apart, and writes what it gets beside one another, so that the last pass
leaves the result in order: Stockham's method (W. T. Cochran et al., "What is the fast Fourier transform?", 1967), where
frequencies are halved (W. M. Gentleman and G. Sande, 1966). After passes whose radices multiply to ``span``, numbers
lie as (n / span, span). Each pass is one kernel, in which what lies beside one another is computed side by side.

Where little lies beside one another, a length n = a b is transformed as a matrix of (a, b) numbers: its columns, times
the roots between, and the columns of the transposed matrix (D. H. Bailey, "FFTs in external or hierarchical memory",
1990). Where a factor of the length is a larger prime p, its pass is a product with a matrix, or by Bluestein's method
(L. I. Bluestein, 1970) a convolution of a length that has small factors.

A pass is a sum over its numbers: an infinity or NaN makes all of the result NaN.

There is only the forward transform: with the parts exchanged before and after, it is the inverse without its factor
1/n.
"""

from __future__ import annotations

from math import prod

from tg_dtype import dtypes

from .tables import HOST, TABLES, chirp, matrix, twiddles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Pair = tuple[Any, Any]

_SMALL = (7, 11, 13, 5, 3)  # odd radices whose pass is a sum in registers
_LARGEST_MATRIX = 61  # the largest prime whose pass is a product with a matrix: beyond, a convolution is less work
_WIDEST = 16  # floats of the widest vector that a processor has (AVX-512): fewer numbers side by side leave lanes empty
_LEAST_MATRIX = 64  # shorter transforms are not worth a transposition


def factors(n: int) -> list[int]:
    """Radices of the passes of a length: larger primes, small odd ones, fours, and an eight or a two.

    Eight numbers at once are twice the work of four, as passes are sums, but one pass less.

    Example:
      >>> factors(4096), factors(2048), factors(360), factors(17 * 6)
      ([4, 4, 4, 4, 4, 4], [4, 4, 4, 4, 8], [5, 3, 3, 8], [17, 3, 2])
    """
    twos = (n & -n).bit_length() - 1
    n >>= twos
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
    fours, odd = divmod(twos, 2)
    if odd and fours:
        return [*large, *small, *[4] * (fours - 1), 8]
    return [*large, *small, *[4] * fours, *[2] * odd]


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
    if inner < _WIDEST and n >= _LEAST_MATRIX and len(radices) > 1:
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
    for r in radices:
        if span > 1:
            x = _in_memory(x)
        left //= r
        x = _pass(x, count, r, left, span * inner, scale if left == 1 else 1.0)
        span *= r
    if after is not None:
        x = _times(x, _reshaped(after, (1, *x[0].shape[1:])))
    return _reshaped(x, (count, n, inner))


def _pass(x: Pair, count: int, r: int, m: int, beside: int, scale: float) -> Pair:
    """From (count, r, m, beside) to (count, m, r, beside): transforms of r numbers, each times a root of r m."""
    if r > max(_SMALL):
        columns = _reshaped(_large_pass(_reshaped(x, (count, r, m * beside)), scale), (count, r, m, beside))
        re, im = (part.permute(0, 2, 1, 3) for part in columns)
    else:
        a, b = (part.permute(0, 2, 1, 3) for part in _reshaped(x, (count, r, m, beside)))
        a, b = _reshaped((a, b), (count, m, 1, r, beside))
        c, s = _reshaped(matrix(type(a), r, a.dtype, a.device), (1, 1, r, r, 1))
        re, im = (a * c - b * s).sum(3), (a * s + b * c).sum(3)
        if scale != 1.0:
            re, im = re * scale, im * scale
    if m == 1:
        return re, im
    return _times((re, im), _reshaped(twiddles(type(re), m, r, re.dtype, re.device), (1, m, r, 1)))


def _in_memory(x: Pair) -> Pair:
    return x[0].contiguous(), x[1].contiguous()


def _reshaped(x: Pair, shape: tuple[int, ...]) -> Pair:
    return x[0].reshape(shape), x[1].reshape(shape)


def _times(x: Pair, y: Pair) -> Pair:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _large_pass(x: Pair, scale: float) -> Pair:
    """Transforms along the second axis, whose length is a prime that is not small."""
    n = x[0].shape[1]
    if n > _LARGEST_MATRIX:
        return bluestein(x, scale)
    re, im = _in_memory(x)
    c, s = matrix(type(re), n, re.dtype, re.device)
    out = c.matmul(re) - s.matmul(im), c.matmul(im) + s.matmul(re)
    return out if scale == 1.0 else (out[0] * scale, out[1] * scale)


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
