"""Many small matrices at once, a lane for each: of one element after the other, what stands there in all of them.

Loops over the rows or columns of one small matrix are short, and leave most of a vector idle. Here matrices are taken
in groups of as many as a vector has lanes; a group is (m, n, lanes), and the groups are what threads share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tensor import Tensor
from ..transform.scan import scan
from .matrices import numbers

LANES = 16
"""Matrices of a group: as many as float32 that fit into the widest vectors. With 64, kernels took as long, and more of
the last group was padding."""
_ROWS = 32
"""Matrices of more rows or columns are decomposed one by one, in blocks of columns that are kept near."""


def in_lanes(a: Tensor) -> bool:
    """Whether (count, m, n) are so many and so small that a lane for each is the faster way.

    What is padded to a group costs little: from a quarter of one on, inverses took half the time.
    """
    count, m, n = a._ints()
    return 4 * count >= LANES and 0 < min(m, n) and max(m, n) <= _ROWS


def grouped(a: Tensor) -> Tensor:
    """Matrices (count, m, n) in groups, (groups, m, n, lanes): the last ones are filled up with zeros.

    Many groups are as many as threads and blocks that stay in a cache divide evenly: a power of two divides them, for
    which at most one of sixteen is added.
    """
    count, m, n = a._ints()
    groups = -(-count // LANES)
    groups += -groups % (1 << max(0, (groups // 16).bit_length() - 1))
    filled = a.pad(((0, groups * LANES - count), (0, 0), (0, 0)))
    return filled.reshape((groups, LANES, m, n)).permute(0, 2, 3, 1)


def singly(x: Tensor, count: int) -> Tensor:
    """What :func:`grouped` was given, from what it gave; of (groups, …, lanes) shape (count, …)."""
    groups, *rest, lanes = x._ints()
    return x.permute(0, len(rest) + 1, *range(1, len(rest) + 1)).reshape((groups * lanes, *rest))[:count]


def magnitude(x: Tensor) -> Tensor:
    """What LAPACK takes the greatest of for a pivot: of complex elements the sum of both parts' magnitudes."""
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


class Elimination(NamedTuple):
    """What Gauss's elimination leaves of (groups, m, n, lanes), of which so many columns were eliminated.

    Attributes:
      rows: those of the pivots in turn, (groups, pivots, n, lanes): on and above the diagonal the upper triangle.
      factors: by what each row of ``a`` was multiplied in each step, (groups, m, pivots, lanes): of rows that became
        no pivot before, the lower triangle.
      pivots: shape (groups, pivots, lanes).
      exchanged: in each step the row that was exchanged with it, (groups, pivots, lanes).
      places: where each row of ``a`` went, (groups, m, lanes).
    """

    rows: Tensor
    factors: Tensor
    pivots: Tensor
    exchanged: Tensor
    places: Tensor


def eliminated(a: Tensor, pivots: int) -> Elimination:
    """Gauss's elimination with partial pivoting in the first columns.

    Rows are not moved: each is told its place. So a step reads the matrix twice, once for the row of the pivot, and
    writes it once.

    Args:
      a: shape (groups, m, n, lanes).
      pivots: how many columns are eliminated; the others follow.
    """
    groups, m, _, lanes = a._ints()
    start = numbers(m, a).reshape((1, m, 1)).expand(groups, m, lanes).contiguous()

    def step(state: Any, k: Tensor) -> Any:
        rest, place = state
        here = rest.index_select(2, k.reshape((1,))).squeeze(2).contiguous()
        size = (place >= k).where(magnitude(here), -1)
        greatest = (size == size.max(1, keepdim=True)) | (size != size)
        best = greatest.where(place, m).min(1, keepdim=True).contiguous()  # of equal ones the first, as LAPACK
        chosen = place == best
        pivot = chosen.where(here, 0).sum(1, keepdim=True).contiguous()
        top = chosen.unsqueeze(2).where(rest, 0).sum(1).contiguous()
        place = chosen.where(k, (place == k).where(best, place)).contiguous()
        factor = (place > k).where(here / (pivot == 0).where(1, pivot), 0).contiguous()
        less = rest - factor.unsqueeze(2) * top.unsqueeze(1)
        return (less, place), (top, factor, pivot.squeeze(1), best.squeeze(1))

    (_, places), (rows, factors, found, best) = scan(step, (a, start), numbers(pivots, a))
    return Elimination(
        rows.transpose(0, 1), factors.permute(1, 2, 0, 3), found.transpose(0, 1), best.transpose(0, 1), places
    )  # fmt: skip


def substituted(a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
    """The solution of a @ x = b for triangular (groups, n, n, lanes) and (groups, n, m, lanes)."""
    rows = numbers(a._ints()[1], a).reshape((-1, 1))

    def step(rest: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        own = k.reshape((1,))
        factors, found = a.index_select(2, own).squeeze(2).contiguous(), rest.index_select(1, own)
        if not unit:
            found = found / factors.index_select(1, own).unsqueeze(2)
        found = found.contiguous()
        left = rows < k if is_upper else rows > k
        return rest - left.where(factors, 0).unsqueeze(2) * found, found.squeeze(1)

    _, found = scan(step, b, numbers(a._ints()[1], a), reverse=is_upper)
    out: Tensor = found.transpose(0, 1)
    return out


def factor(a: Tensor) -> Tensor:
    """Cholesky's lower factor of (groups, n, n, lanes), of which the lower triangle is read."""
    n = a._ints()[1]
    rows = numbers(n, a).reshape((n, 1))

    def step(rest: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        own = k.reshape((1,))
        here = rest.index_select(2, own).squeeze(2).contiguous()
        pivot = here.index_select(1, own).real
        if a.is_complex():
            here = (rows == k).where(pivot, here)
        column = (rows >= k).where(here / pivot.sqrt(), 0).contiguous()
        return rest - column.unsqueeze(2) * column.conj().unsqueeze(1), column

    _, found = scan(step, a, numbers(n, a))
    out: Tensor = found.permute(1, 2, 0, 3)
    return out
