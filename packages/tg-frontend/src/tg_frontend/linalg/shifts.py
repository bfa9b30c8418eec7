"""Shifts for the QR algorithm: the eigenvalues of the last rows and columns of a block, about as they are.

All of them are found side by side, by Ehrlich's and Aberth's iteration on the determinant of B - x, which for
Hessenberg matrices Hyman's recurrence gives with its derivative. How exact they are decides how soon the QR algorithm
converges, not what it converges to. Sources: Wilkinson, "The algebraic eigenvalue problem", 1965, section 7.11;
Bini, Gemignani and Tisseur, "The Ehrlich-Aberth method for the nonsymmetric tridiagonal eigenvalue problem", 2005.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import Any

from ..tensor import Tensor
from ..transform.scan import scan
from .bulges import Shifts
from .matrices import diagonal_of, numbers

_ITERATIONS = 12
"""Of Ehrlich and Aberth: as many make most eigenvalues of twenty about right."""
_UNUSUAL = 12
"""So often the first bulge has other shifts, lest a matrix stays as it is, as that of a cycle does: Wilkinson and
Reinsch, "Handbook for automatic computation II", 1971, contribution II/15."""
_TURN = pi * (3 - sqrt(5))
"""The angle between one first guess and the next: so they fill a disc evenly, and no two are conjugate."""


def shifts_of(h: Tensor, lo: Tensor, hi: Tensor, bulges: int, number: Tensor) -> Shifts:
    """Shifts for a chain in one block of each of the Hessenberg matrices (count, n, n).

    Args:
      h: shape (count, n, n or more).
      lo: the first row of the block, (count, 1).
      hi: the last one.
      bulges: how many a chain has at the most.
      number: how many chains there were, (): now and then shifts of another kind are taken.
    """
    k, rows = 2 * bulges, hi - lo + 1
    size = rows.clamp(1, k)
    places = numbers(k, h)
    there = places >= k - size  # the last ones are those of the block
    own = (hi - (k - 1) + places).clamp(0, h._ints()[1] - 1)
    count, n, wide = h._ints()
    b = h.reshape((count, n * wide)).gather(1, (own.unsqueeze(2) * wide + own.unsqueeze(1)).reshape((count, k * k)))
    b = b.reshape((count, k, k))
    b = (there.unsqueeze(1) & there.unsqueeze(2)).where(b, 0).contiguous()
    last = b[:, -1:, -1]
    middle, beside = _last_two(b)
    unusual = number % _UNUSUAL == _UNUSUAL - 1
    below = b[:, -1:, -2].abs()
    middle, beside = unusual.where(last + below * 0.75, middle), unusual.where(below * below * 0.4375, beside)
    if bulges == 1:
        return Shifts(middle, beside, rows * 0 + 1)
    guesses = _first(b, there, size)
    (re, im), _ = scan(lambda state, _: (_improved(b, there, size, *state), None), guesses, length=_ITERATIONS)
    many = _paired(re, im, there, last, bulges, rows)
    # that one to the last bit: equal eigenvalues want it, and are found as if they were a little apart
    first = numbers(bulges, h) == 0
    middle, beside = first.where(middle, many.middle), first.where(beside, many.beside)
    return Shifts(middle.contiguous(), beside.contiguous(), many.used)


def _last_two(b: Tensor) -> tuple[Tensor, Tensor]:
    """Of the last two rows the eigenvalues where they are conjugate, or twice the one nearer to the last element."""
    last, below = b[:, -1:, -1], b[:, -1:, -2]
    half, product = (b[:, -2:-1, -2] - last) * 0.5, b[:, -2:-1, -1] * below
    square = half * half + product
    root = square.abs().sqrt()
    reach = half + (half < 0).where(-root, root)
    nearer = last - product / (reach == 0).where(1, reach)
    return (square < 0).where(last + half, nearer), (square < 0).where(-square, 0)


def _first(b: Tensor, there: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Guesses in a disc around the mean of the eigenvalues: (count, k) and (count, k)."""
    k = b._ints()[1]
    mean = diagonal_of(b).sum(1, keepdim=True) / size
    off = (b * b).sum((1, 2)).unsqueeze(1) / size - mean * mean
    # b * b is no less than the eigenvalues' squares
    radius = (off.maximum(0) + 2.0**-60).sqrt()
    re, im = (
        Tensor([sqrt((i + 0.5) / k) * part(i * _TURN + 0.4) for i in range(k)], dtype=b.dtype, device=b.device)
        for part in (cos, sin)
    )
    return (mean + radius * re).contiguous(), (radius * im).contiguous()


def _improved(b: Tensor, there: Tensor, size: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, Tensor]:
    """One iteration."""
    k = b._ints()[1]
    places = numbers(k, b)
    signs = ((numbers(4, b) % 2) * 2 - 1).cast(b.dtype).reshape((-1, 1))

    def step(state: Any, i: Tensor) -> tuple[Any, None]:
        vectors, last = state  # for each row the vector, and its derivative: (count, k, 4, k)
        row = b.index_select(1, i.reshape((1,))).squeeze(1)
        total = (row.reshape((-1, k, 1, 1)) * vectors).sum(1)
        here = vectors.index_select(1, i.reshape((1,))).squeeze(1)
        # the product of x, and of its derivative, and the vector beside that
        turned = here.reshape((-1, 2, 2, k)).flip(2).reshape((-1, 4, k)) * signs
        total = (total - re.unsqueeze(1) * here - im.unsqueeze(1) * turned - here[:, :2].pad(((0, 0), (2, 0), (0, 0))))
        total = total.contiguous()
        below = (places == i - 1).where(row, 0).sum(1).reshape((-1, 1, 1))
        below = (below == 0).where(1, below)
        following = (-total / below).contiguous()  # once, not for each element of all vectors
        most = following.abs().max(1, keepdim=True).maximum(vectors.abs().max((1, 2)).unsqueeze(1))
        first = (i == k - size).reshape((-1, 1, 1))
        goes_on = (i > k - size).reshape((-1, 1, 1))
        shrink = (1 / (most == 0).where(1, most)).contiguous()
        grown = (places == i - 1).reshape((-1, 1, 1)).where(following.unsqueeze(1), vectors) * shrink.unsqueeze(1)
        return (goes_on.unsqueeze(1).where(grown, vectors), first.where(total, last)), None

    start = (places == k - 1).reshape((-1, 1, 1)).where((numbers(4, b) == 0).cast(b.dtype).reshape((-1, 1)), 0)
    start = start.expand(b._ints()[0], k, 4, k).contiguous()
    (_, found), _ = scan(step, (start, start[:, 0].contiguous() * 0), places, reverse=True)
    value, slope = Tensor.complex(found[:, 0], found[:, 1]), Tensor.complex(found[:, 2], found[:, 3])
    x = Tensor.complex(re, im)
    gap = x.unsqueeze(2) - x.unsqueeze(1)
    length = gap.real * gap.real + gap.imag * gap.imag
    others = there.unsqueeze(1) & (length > 0)
    length = others.where(length, 1)
    pull = Tensor.complex(others.where(gap.real / length, 0).sum(2), others.where(-gap.imag / length, 0).sum(2))
    # value / slope / (1 - value / slope * pull), without the quotient that may be none
    down = slope - value * pull
    length = down.real * down.real + down.imag * down.imag
    good = length > 0
    length = good.where(length, 1)
    move = value * down.conj()
    new_re, new_im = re - good.where(move.real / length, 0), im - good.where(move.imag / length, 0)
    good = new_re.isfinite() & new_im.isfinite()
    return good.where(new_re, re).contiguous(), good.where(new_im, im).contiguous()


def _paired(re: Tensor, im: Tensor, there: Tensor, last: Tensor, bulges: int, rows: Tensor) -> Shifts:
    """For each bulge an eigenvalue and its conjugate, those first that are next to the last element (count, 1)."""
    k = re._ints()[1]
    places = numbers(k, re)
    usable = there & (im >= -(2.0**-20) * (re.abs() + im.abs()))
    away = usable.where((re - last).abs() + im.abs(), float("inf"))
    mine, its = away.unsqueeze(2), away.unsqueeze(1)
    before = (its < mine) | ((its == mine) & (places < places.reshape((-1, 1))))
    rank = before.cast(rows.dtype).sum(2).unsqueeze(1)
    chosen = rank == numbers(bulges, re).reshape((-1, 1))
    middle = chosen.where(re.unsqueeze(1), 0).sum(2)
    beside = chosen.where((im * im).unsqueeze(1), 0).sum(2)
    most = (rows // 6).maximum(1).minimum(bulges)
    used = usable.cast(rows.dtype).sum(1, keepdim=True).maximum(1).minimum(most)
    return Shifts(middle.contiguous(), beside.contiguous(), used.contiguous())
