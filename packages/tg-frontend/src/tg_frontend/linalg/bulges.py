"""Chains of bulges chased down the diagonals of Hessenberg matrices: many double shifts of the QR algorithm at once.

A bulge of a pair of shifts is three rows high, and is moved down by a row by one reflection of three rows and columns.
As many as there are follow one another closely; all move by a row in one step. The steps are done within a window
around the diagonal. Their product is an orthogonal matrix of the window's size, by which the rows and the columns of
the whole matrix are multiplied. Source: Braman, Byers and Mathias, "The multishift QR algorithm, part I: maintaining
well-focused shifts and level 3 performance", 2002.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from ..transform.while_loop import while_loop
from .compact import negligible_square
from .matrices import adjoint, eye, numbers

_MOST = 10
"""Bulges of a chain: with 16 and with 8, eig of 509 rows took a tenth longer. Windows of ten are near to the core."""
_ROUND = 16
"""The size of a window is a multiple of it, as vectors are."""


class Shifts(NamedTuple):
    """Pairs of shifts, each of them the roots of (x - middle) ** 2 + beside; the first of a chain goes first.

    Attributes:
      middle: shape (count, bulges).
      beside: shape (count, bulges), not negative.
      used: how many of them there are, (count, 1).
    """

    middle: Tensor
    beside: Tensor
    used: Tensor


def bulges_of(n: int) -> int:
    """How many bulges a chain in matrices of n rows has at the most: it takes up half of such a matrix."""
    return max(1, min(_MOST, n // 6))


def _picked(x: Tensor, first: Tensor, size: int, dim: int) -> Tensor:
    """Rows (1) or columns (2) from ``first`` (count, 1) on of (count, m, n).

    The places are told for each element: those that are kept somewhere are not known to follow one another.
    """
    shape = list(x._ints())
    shape[dim] = size
    places = numbers(size, x).reshape((-1, 1) if dim == 1 else (1, -1)).expand(*shape)
    return x.gather(dim, places + first.unsqueeze(2)).contiguous()


def _reflection(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The reflections 1 - v @ w.T that make zeros of y and z, each (count, bulges).

    The first of v is 1: where there is next to nothing to be done, a reflection turns the sign of x alone, and exactly.
    Axes whose squares are 2 but for rounding would make all that they turn longer, each time by the same. Where nothing
    is to be done at all, w is zero.

    Returns:
      The elements of v, one after the other, and those of w: (count, 6 * bulges).
    """
    most = x.abs().maximum(y.abs()).maximum(z.abs())
    scale = (most == 0).where(1, most)
    x, y, z = x / scale, y / scale, z / scale
    rest = y * y + z * z
    stays = rest <= negligible_square(x)
    size = (x * x + rest).sqrt()
    pivot = stays.where(1, x + (x < 0).where(-size, size))
    y, z = y / pivot, z / pivot
    y, z, weight = (part.contiguous() for part in (y, z, stays.where(0, 2 / (y * y + z * z + 1))))
    return Tensor.cat(weight.full_like(1), y, z, weight, weight * y, weight * z, dim=1).contiguous()


def _neighbours(x: Tensor, factors: Tensor, dim: int) -> Tensor:
    """For each row or column of (count, m, n) the sum of the five around it, times factors (count, 5, m or n)."""
    n = x._ints()[dim]
    edges = tuple((2, 2) if d == dim else (0, 0) for d in range(3))
    padded = x.pad(edges)
    total: Tensor | None = None
    for d in range(5):
        other = padded[:, d : d + n] if dim == 1 else padded[:, :, d : d + n]
        term = factors[:, d].unsqueeze(3 - dim) * other
        total = term if total is None else total + term
    assert total is not None
    return total


def _chased(x: Tensor, shifts: Shifts, lo: Tensor, hi: Tensor, start: Tensor, first: Tensor, steps: int) -> Any:
    """A window after some steps of the chain, and the orthogonal U of these: before it was U @ window @ U.T.

    Args:
      x: windows (count, size, size).
      shifts: of the chain.
      lo: the first row of the block that the chain goes through (count, 1).
      hi: the last one.
      start: how many steps the chain has done, ().
      first: the first row of the window (count, 1).
      steps: how many it does.
    """
    count, size, _ = x._ints()
    bulges = shifts.middle._ints()[1]
    slots, local = numbers(bulges, x), numbers(size, x)
    corners = slots * 3 * (size + 1)  # of the bulges, from that of the last one on
    table = Tensor.cat(*(corners + d for d in (-1, size - 1, 2 * size - 1, 0, 1, size, size + 1, 2 * size + 1)))
    middle, beside = shifts.middle.flip(1), shifts.beside.flip(1)  # slots are in the order of rows
    wanted = slots >= bulges - shifts.used
    behind = (lo + start - 3 * (bulges - 1)).contiguous()  # the row of the last one

    def step(state: Any, i: Tensor) -> tuple[Any, None]:
        window, turned = state
        rows = behind + i + 3 * slots
        at = behind - first + i
        # by itself, as each read of a computed place is code for each lane of all that is made of it
        read = window.reshape((count, size * size)).gather(1, table + at * (size + 1)).contiguous()
        x, y, z, a, b, c, d, e = (read[:, bulges * k : bulges * (k + 1)] for k in range(8))
        new = rows == lo
        x = new.where((a - middle) * (a - middle) + beside + b * c, x)
        y, z = new.where(c * (a + d - 2 * middle), y), new.where(c * e, z)
        active = wanted & (rows >= lo) & (rows < hi)
        axes = _reflection(active.where(x, 0), active.where(y, 0), (active & (rows + 2 <= hi)).where(z, 0))
        own = local - at  # of which bulge the axis, and which of its elements, each row has
        inside = (own >= 0) & (own < 3 * bulges)
        bulge, part = own // 3, own % 3
        apart = numbers(5, window).reshape((-1, 1)) - 2
        partner = (part.unsqueeze(1) + apart >= 0) & (part.unsqueeze(1) + apart < 3) & inside.unsqueeze(1)
        mine = axes.gather(1, part * bulges + bulge).unsqueeze(1)
        its = (part.unsqueeze(1) + apart + 3) * bulges + bulge.unsqueeze(1)
        its = axes.gather(1, its.reshape((count, 5 * size))).reshape((count, 5, size))
        factors = ((apart == 0).cast(window.dtype) - partner.where(mine * its, 0)).contiguous()
        gone = (inside & (part >= 1)).unsqueeze(2) & (local == (own - part + at - 1).unsqueeze(2))
        above = gone.where(0, _neighbours(window, factors, 1)).contiguous()
        return (_neighbours(above, factors, 2), _neighbours(turned, factors, 2)), None

    one = eye(size, x).expand(count, size, size).contiguous()
    found, _ = scan(step, (x, one), numbers(steps, x))
    return found


def swept(h: Tensor, shifts: Shifts, lo: Tensor, hi: Tensor) -> Tensor:
    """H after a chain has gone through one block of each matrix, and what stands beside it, turned from the left alike.

    Args:
      h: shape (count, n, m): its first n columns are H.
      shifts: of the chain.
      lo: the first row of the block, of at least three, (count, 1).
      hi: the last one; -1 where a matrix stays as it is.
    """
    count, n, wide = h._ints()
    bulges = shifts.middle._ints()[1]
    reach = -(-6 * bulges // _ROUND) * _ROUND
    steps, size = reach - 3 * bulges - 1, min(reach, n)
    last = (hi - lo + 3 * (shifts.used - 1)).max()

    def window(state: Any) -> Any:
        h, done = state
        first = (lo + done - 3 * (bulges - 1) - 1).clamp(0, n - size).contiguous()
        rows, columns = _picked(h, first, size, 1), _picked(h, first, size, 2)
        x, turns = _chased(_picked(rows, first, size, 2), shifts, lo, hi, done, first, steps)
        turns = turns.contiguous()
        rows, columns = adjoint(turns).contiguous() @ rows, columns @ turns
        rows, columns, x = rows.contiguous(), columns.contiguous(), x.contiguous()
        place, other = numbers(n, h).reshape((-1, 1)).expand(count, n, wide), numbers(wide, h).expand(count, n, wide)
        row, column = place - first.unsqueeze(2), other - first.unsqueeze(2)
        down, across = (row >= 0) & (row < size), (column >= 0) & (column < size) & (other < n)
        within = x.reshape((count, size * size)).gather(1, (row * size + column).reshape((count, n * wide)))
        turned = across.where(within.reshape((count, n, wide)), rows.gather(1, row))
        return down.where(turned, across.where(columns.gather(2, column), h)), done + steps

    def goes_on(state: Any) -> Tensor:
        on: Tensor = state[1] < last
        return on

    h, _ = while_loop(goes_on, window, (h.contiguous(), Tensor(0, dtype=dtypes.int32, device=h.device)))
    return h
