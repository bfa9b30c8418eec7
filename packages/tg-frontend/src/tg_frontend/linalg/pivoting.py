"""Gauss's elimination with partial pivoting, in blocks within blocks of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .lanes import eliminated, grouped, in_lanes, magnitude, singly
from .matrices import WIDTHS, column, diagonal_of, narrower, numbers
from .triangular import substituted

_HALVES = 512
"""Matrices of more columns are divided in two, which saves a third of the work on what is zero, but doubles how many
kernels are compiled: of smaller matrices that takes as long as a hundred decompositions."""


@traced_once
def factored(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eliminates (count, m, n): half of the columns after the other, and in each half one block after the other.

    Sources: Golub and Van Loan, "Matrix Computations", 4th edition, section 3.4.7; Toledo, "Locality of reference in LU
    decomposition with partial pivoting", 1997 (halves).

    Returns:
      Both triangles in one matrix; for each of its rows, which of ``a`` it was (count, m); and for each step the row
      that was exchanged with it (count, min(m, n)).
    """
    count, m, n = a._ints()
    if 0 in (count, m, n):
        order = numbers(m, a).reshape((1, -1)).expand(count, m).contiguous()
        return a, order, Tensor.zeros(count, min(m, n), dtype=dtypes.int32, device=a.device)
    least = min(m, n)
    if in_lanes(a):
        return _in_lanes(a, least)
    if least <= _HALVES:
        return _blocks_in_turn(a)
    half = -(-least // (2 * WIDTHS[0])) * WIDTHS[0]
    left, order, exchanged = (part.contiguous() for part in _blocks_in_turn(a[:, :, :half].contiguous()))
    right = with_rows(a[:, :, half:], order).contiguous()
    top = substituted(left[:, :half, :half].contiguous(), right[:, :half].contiguous(), False, True).contiguous()
    rest = (right[:, half:] - left[:, half:] @ top).contiguous()
    other, moved, later = (part.contiguous() for part in _blocks_in_turn(rest))
    below = Tensor.cat(with_rows(left[:, half:], moved), other, dim=2)
    both = Tensor.cat(Tensor.cat(left[:, :half], top, dim=2), below, dim=1)
    order = Tensor.cat(order[:, :half], order[:, half:].gather(1, moved), dim=1)
    return both, order, Tensor.cat(exchanged, later + half, dim=1)


def pivots_of(a: Tensor) -> tuple[Tensor, Tensor]:
    """The pivots of (count, m, n), and for each the row that was exchanged with it, both (count, min(m, n))."""
    count, m, n = a._ints()
    if not in_lanes(a):
        both, _, exchanged = factored(a)
        return diagonal_of(both), exchanged
    found = eliminated(grouped(a).contiguous(), min(m, n))
    return singly(found.pivots, count), singly(found.exchanged, count)


def _in_lanes(a: Tensor, least: int) -> tuple[Tensor, Tensor, Tensor]:
    """Many small matrices side by side: see :func:`factored`."""
    count, m, n = a._ints()
    found = eliminated(grouped(a).contiguous(), least)
    place = singly(found.places, count).contiguous()
    rows, columns = numbers(m, a), numbers(n, a)
    order = (place * 0).scatter(1, place, rows.reshape((1, m)).expand(count, m).contiguous()).contiguous()
    left = with_rows(singly(found.factors, count).contiguous(), order).pad(((0, 0), (0, 0), (0, n - least)))
    right = singly(found.rows, count).pad(((0, 0), (0, m - least), (0, 0)))
    return (rows.reshape((m, 1)) > columns).where(left, right), order, singly(found.exchanged, count).contiguous()


def _blocks_in_turn(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Block after block of columns, results as of :func:`factored`."""
    count, m, n = a._ints()
    least, rows = min(m, n), numbers(m, a).reshape((1, -1)).expand(count, m).contiguous()
    rest, place, best = (
        part.contiguous() for part in _eliminated(a[:, :, :least].contiguous(), rows, 0, least, WIDTHS)
    )
    order = (place * 0).scatter(1, place, rows).contiguous()
    both = with_rows(rest, order)
    if n > least:
        right = with_rows(a[:, :, least:], order).contiguous()
        both = Tensor.cat(both, substituted(both[:, :, :least].contiguous(), right, False, True), dim=2)
    return both, order, best


def _eliminated(
    rest: Tensor, place: Tensor, first: Tensor | int, pivots: int, widths: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Eliminates below the diagonal. Rows are not moved: each is told its place.

    Args:
      rest: shape (count, m, n).
      place: where each row has to go (count, m); those that go before ``first`` stay as they are.
      first: the place of the first pivot, a number or a tensor of one.
      pivots: how many there are in all; columns beyond are padding.
      widths: columns that are done by themselves, from the outside to the inside.

    Returns:
      What stands in the rows then; their places; and for each column the place with which that of the pivot was
      exchanged (count, n).
    """
    count, m, n = rest._ints()
    widths = narrower(widths, n)
    if not widths:
        return _eliminated_in_turn(rest, place, first, pivots)
    width, more = widths[0], -n % widths[0]
    rest = rest.pad(((0, 0), (0, 0), (0, more))).contiguous()
    rows, columns, inside = numbers(m, rest), numbers(n + more, rest), numbers(width, rest)

    def block(state: Any, j: Tensor) -> tuple[Any, Tensor]:
        rest, place = state
        begin = j * width
        start = begin + first
        part = rest.index_select(2, begin + inside).contiguous()
        part, place, best = (one.contiguous() for one in _eliminated(part, place, start, pivots, widths[1:]))
        own = (start + inside).reshape((1, -1, 1))
        chosen = (place.unsqueeze(1) == own).where(rows, 0).sum(2).cast(dtypes.int32).contiguous()
        factors = (place.unsqueeze(2) > start + inside).where(part, 0).contiguous()
        corner, top = ((own < m).where(with_rows(x, chosen), 0).contiguous() for x in (factors, rest))
        top = substituted(corner, top, False, True).contiguous()
        along = (columns >= begin) & (columns < begin + width)
        within = part.index_select(2, (columns - begin).clamp(0, width - 1))
        place_in = (place - start).unsqueeze(2)
        solved = with_rows(top, (place - start).clamp(0, width - 1))
        below = rest - factors @ (columns >= begin + width).where(top, 0)
        beyond = (place_in >= width).where(below, (place_in >= 0).where(solved, rest))
        rest = along.where(within, (columns >= begin).where(beyond, rest))
        return (rest, place), best.transpose(0, 1)

    (rest, place), best = scan(block, (rest, place), numbers((n + more) // width, rest))
    return rest[:, :, :n], place, best.reshape((n + more, count))[:n].transpose(0, 1)


def _eliminated_in_turn(
    rest: Tensor, place: Tensor, first: Tensor | int, pivots: int
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Column after column: see :func:`_eliminated`."""
    _, m, n = rest._ints()
    rows, columns = numbers(m, rest), numbers(n, rest)

    def step(state: Any, i: Tensor) -> tuple[Any, Tensor]:
        rest, place = state
        k = i + first
        here = column(rest, i)
        size = (place >= k).where(magnitude(here), -1)
        greatest = (size == size.max(1, keepdim=True)) | (size != size)
        earliest = greatest.where(place, m).min(1, keepdim=True)  # of those that are equal, as LAPACK has it
        best = (k < pivots).where(earliest, k)
        chosen = (place == best).where(rows, 0).sum(1, keepdim=True).cast(dtypes.int32).contiguous()
        top = with_rows(rest, chosen).squeeze(1)
        place = (place == best).where(k, (place == k).where(best, place)).contiguous()
        pivot = (columns == i).where(top, 0).sum(1, keepdim=True)
        factor = here / (pivot == 0).where(1, pivot)
        less = rest - factor.unsqueeze(2) * top.unsqueeze(1)
        after = (columns > i).where(less, (columns == i).where(factor.unsqueeze(2), rest))
        return ((place > k).unsqueeze(2).where(after, rest), place), best.squeeze(1)

    (rest, place), best = scan(step, (rest, place), columns)
    return rest, place, best.transpose(0, 1)


def order_after(exchanged: Tensor, m: int) -> Tensor:
    """Which of m rows each row was before rows (count, k) were exchanged in turn: shape (count, m)."""
    count, k = exchanged._ints()
    rows = numbers(m, exchanged)

    def step(order: Tensor, part: Any) -> tuple[Tensor, None]:
        k, best = part
        best = best.unsqueeze(1)
        source = (rows == k).where(best, (rows == best).where(k.reshape((1, 1)), rows))
        return order.gather(1, source), None

    start = rows.reshape((1, m)).expand(count, m).contiguous()
    if not k or not count:
        return start
    found: Tensor = scan(step, start, (rows[:k], exchanged.transpose(0, 1)))[0]
    return found


def with_rows(x: Tensor, at: Tensor) -> Tensor:
    """Rows of (count, m, n) at places, or in an order, (count, k): shape (count, k, n)."""
    count, k = at._ints()
    return x.gather(1, at.unsqueeze(2).expand(count, k, x._ints()[2]))
