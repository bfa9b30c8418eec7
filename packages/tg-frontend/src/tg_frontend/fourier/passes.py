"""The discrete Fourier transform of any length, of numbers in two planes: shape (2, count, n, inner).

A pass combines r numbers that are n / r apart, and writes what it gets beside one another, so that the last pass
leaves the result in order: Stockham's method (W. T. Cochran et al., "What is the fast Fourier transform?", 1967). After
passes whose radices multiply to ``span``, numbers lie as (n / span, span). Each pass is one kernel. Where a factor of
the length is a larger prime p, its pass is a product with a matrix, or by Bluestein's method (L. I. Bluestein, 1970) a
convolution of a length that has small factors.

There is only the forward transform: with the planes exchanged before and after, it is the inverse without its factor
1/n.
"""

from __future__ import annotations

from tg_dtype import dtypes

from .butterflies import RADICES, butterfly
from .tables import HOST, TABLES, chirp, matrix, twiddles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LARGEST_MATRIX = 61  # the largest prime whose pass is a product with a matrix: beyond, a convolution is less work


def factors(n: int) -> list[int]:
    """Radices of the passes of a length: small ones, then larger primes in order."""
    out = []
    for radix in RADICES:
        while n % radix == 0:
            out.append(radix)
            n //= radix
    prime = 17
    while n > 1:
        if prime * prime > n:
            prime = n
        while n % prime == 0:
            out.append(prime)
            n //= prime
        prime += 2
    return out


def good_length(least: int) -> int:
    """The smallest length of at least so many that passes of small radices make fast."""
    best = 1 << (least - 1).bit_length()
    for odd in (3, 5, 9, 15):
        best = min(best, odd << max(0, (-(-least // odd) - 1).bit_length()))
    return best


def dft(x: Any, scale: float = 1.0) -> Any:
    """The transform along the third axis, times ``scale``.

    Args:
      x: shape (2, count, n, inner), float32 or float64: the real plane, then the imaginary one.
    """
    count, n, inner = x.shape[1:]
    radices = factors(n)
    if not radices or 0 in x.shape:
        return x * scale
    span = 1
    for place, r in enumerate(radices):
        x = x.reshape((2, count, r, n // (r * span), span, inner))
        last = scale if place == len(radices) - 1 else 1.0
        small = _first_pass if span == 1 else _pass
        x = small(x, last) if r in RADICES else _prime_pass(x, last)
        span *= r
    return x.reshape((2, count, n, inner))


def _planes(x: Any, q: int) -> tuple[Any, Any]:
    """Real and imaginary part of number q, shape (count, m, span, inner)."""
    _, count, _, m, span, inner = x.shape
    row = x.shrink([None, None, (q, q + 1), None, None, None]).reshape((2, count, m, span, inner))
    a, b = (row.shrink([(n, n + 1), None, None, None, None]).reshape((count, m, span, inner)) for n in (0, 1))
    return a, b


def _times(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _factors_between(x: Any, r: int, span: int) -> tuple[Any, Any]:
    return twiddles(type(x), r, span, x.dtype, x.device)


def _first_pass(x: Any, scale: float) -> Any:
    """Shape (2, count, r, m, 1, inner) to (2, count, m, r, 1, inner): an expression for each result."""
    out = butterfly([_planes(x, q) for q in range(x.shape[2])])
    if scale != 1.0:
        out = [(a * scale, b * scale) for a, b in out]
    re, im = (out[0][n].stack(*[pair[n] for pair in out[1:]], dim=2) for n in (0, 1))
    return re.stack(im).contiguous()


def _pass(x: Any, scale: float) -> Any:
    """Shape (2, count, r, m, span, inner) to (2, count, m, r, span, inner): sums over r, in registers.

    They multiply more than a butterfly does, and are several times as fast, as every lane does the same.
    """
    _, count, r, m, span, inner = x.shape
    re, im = (x.shrink([(n, n + 1), *[None] * 5]).reshape((count, r, m, span, inner)) for n in (0, 1))
    a, b = (part.reshape((1, r, 1, span, 1)) for part in _factors_between(x, r, span))
    columns = [
        part.permute(0, 2, 1, 3, 4).reshape((count, m, 1, r, span, inner)) for part in _times((re, im), (a, b))
    ]
    c, s = (part.reshape((1, 1, r, r, 1, 1)) for part in matrix(type(x), r, x.dtype, x.device))
    out = [part.sum(3) for part in _times((columns[0], columns[1]), (c, s))]
    if scale != 1.0:
        out = [part * scale for part in out]
    return out[0].stack(out[1]).contiguous()


def _prime_pass(x: Any, scale: float) -> Any:
    """The same for a large prime radix."""
    _, count, r, m, span, inner = x.shape
    if span > 1:
        a, b = (part.reshape((1, r, 1, span, 1)) for part in _factors_between(x, r, span))
        re, im = (x.shrink([(n, n + 1), *[None] * 5]).reshape((count, r, m, span, inner)) for n in (0, 1))
        re, im = _times((re, im), (a, b))
        x = re.stack(im)
    columns = x.reshape((2, count, r, m * span * inner))
    if r <= _LARGEST_MATRIX:
        out = _by_matrix(columns, scale)
    else:
        out = bluestein(columns, scale)
    return out.reshape((2, count, r, m, span, inner)).permute(0, 1, 3, 2, 4, 5).contiguous()


def _by_matrix(x: Any, scale: float) -> Any:
    _, count, n, inner = x.shape
    x = x.contiguous()
    c, s = matrix(type(x), n, x.dtype, x.device)
    re, im = (x.shrink([(k, k + 1), None, None, None]).reshape((count, n, inner)) for k in (0, 1))
    a, b = c.matmul(re) - s.matmul(im), c.matmul(im) + s.matmul(re)
    out = a.stack(b)
    return out if scale == 1.0 else out * scale


def bluestein(x: Any, scale: float = 1.0) -> Any:
    """The transform along the third axis as a convolution with a chirp, by j k = (j² + k² - (k - j)²) / 2."""
    _, count, n, inner = x.shape
    long = good_length(2 * n - 1)
    w = [part.reshape((1, n, 1)) for part in chirp(type(x), n, x.dtype, x.device)]
    re, im = (x.shrink([(k, k + 1), None, None, None]).reshape((count, n, inner)) for k in (0, 1))
    a, b = _times((re, im), (w[0], w[1]))
    padded = a.stack(b).pad([None, None, (0, long - n), None])
    spectrum = dft(padded.contiguous())
    c, d = (spectrum.shrink([(k, k + 1), None, None, None]).reshape((count, long, inner)) for k in (0, 1))
    f = [part.reshape((1, long, 1)) for part in _filter(x, n, long)]
    a, b = _times((c, d), (f[0], f[1]))
    back = dft(b.stack(a).contiguous())  # planes exchanged: the inverse
    d, c = (back.shrink([(k, k + 1), None, (0, n), None]).reshape((count, n, inner)) for k in (0, 1))
    a, b = _times((c, d), (w[0] * scale, w[1] * scale))
    return a.stack(b)


def _filter(x: Any, n: int, long: int) -> tuple[Any, Any]:
    """The transform of the conjugate chirp on both sides of 0, over ``long``: computed in float64, rounded once."""

    def make() -> tuple[Any, Any]:
        cos, sin = chirp(type(x), n, dtypes.float64, HOST)
        rows = []
        for part, sign in ((cos, 1.0), (sin, -1.0)):
            after = part.shrink([(1, n)]).flip(0)
            rows.append(part.pad([(0, long - 2 * n + 1)]).cat(after) * sign)
        spectrum = dft(rows[0].stack(rows[1]).reshape((2, 1, long, 1)).contiguous(), 1.0 / long)
        return spectrum[0].reshape((long,)), spectrum[1].reshape((long,))

    return TABLES.get_or_make(("filter", type(x), n, long, x.dtype, x.device), make)
