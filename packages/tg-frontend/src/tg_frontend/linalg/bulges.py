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

_MOST = 15
"""Bulges of a chain."""


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
    """Rows or columns from ``first`` (count, 1) on of (count, m, n); the outermost ones where there are none."""
    shape = list(x._ints())
    places = (first + numbers(size, x)).clamp(0, shape[dim] - 1)
    shape[dim] = size
    return x.gather(dim, (places.unsqueeze(2) if dim == 1 else places.unsqueeze(1)).expand(*shape)).contiguous()


def _reflection(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The axes (…, 3) of the reflections 1 - v @ v.T that make zeros of y and z; zeros where nothing is to be done."""
    most = x.abs().maximum(y.abs()).maximum(z.abs())
    scale = (most == 0).where(1, most)
    x, y, z = x / scale, y / scale, z / scale
    rest = y * y + z * z
    stays = rest <= negligible_square(x)
    size = (x * x + rest).sqrt()
    pivot = x + (x < 0).where(-size, size)
    factor = stays.where(0, (2 / stays.where(1, pivot * pivot + rest)).sqrt())
    return Tensor.stack(pivot * factor, y * factor, z * factor, dim=2).contiguous()


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


def _chased(x: Tensor, shifts: Shifts, lo: Tensor, hi: Tensor, start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """A window after some steps of the chain, and the orthogonal U of these: before it was U @ window @ U.T.

    Args:
      x: windows (count, size, size).
      shifts: of the chain.
      lo: the first row of the block that the chain goes through (count, 1).
      hi: the last one.
      start: how many steps the chain has done, ().
      steps: how many it does.
    """
    count, size, _ = x._ints()
    bulges = shifts.middle._ints()[1]
    slots, local = numbers(bulges, x), numbers(size, x)
    corners = (slots * 3 + 1) * (size + 1)  # of the bulges in the first step
    table = Tensor.cat(*(corners + d for d in (-1, size - 1, 2 * size - 1, 0, 1, size, size + 1, 2 * size + 1)))
    middle, beside = shifts.middle.flip(1), shifts.beside.flip(1)  # slots are in the order of rows
    wanted = slots >= bulges - shifts.used

    def step(state: Any, i: Tensor) -> tuple[Any, None]:
        window, turned = state
        first = lo + (start + i) - 3 * (bulges - 1) + 3 * slots
        read = window.reshape((count, size * size)).index_select(1, table + i * (size + 1))
        x, y, z, a, b, c, d, e = (read[:, bulges * k : bulges * (k + 1)] for k in range(8))
        new = first == lo
        x = new.where((a - middle) * (a - middle) + beside + b * c, x)
        y, z = new.where(c * (a + d - 2 * middle), y), new.where(c * e, z)
        active = wanted & (first >= lo) & (first < hi)
        axes = _reflection(active.where(x, 0), active.where(y, 0), (active & (first + 2 <= hi)).where(z, 0))
        axes = axes.reshape((count, 3 * bulges))
        own = local - (i + 1)  # the element of the axes that each row has
        inside = (own >= 0) & (own < 3 * bulges)
        part = own % 3
        apart = numbers(5, window).reshape((-1, 1)) - 2
        partner = (part + apart >= 0) & (part + apart < 3) & inside
        mine = axes.index_select(1, own.clamp(0, 3 * bulges - 1)).unsqueeze(1)
        its = axes.index_select(1, (own + apart).clamp(0, 3 * bulges - 1).reshape((-1,))).reshape((count, 5, size))
        factors = ((apart == 0).cast(window.dtype) - partner.where(mine * its, 0)).contiguous()
        gone = (inside & (part >= 1)).reshape((-1, 1)) & (local == (own - part + i).reshape((-1, 1)))
        above = gone.where(0, _neighbours(window, factors, 1)).contiguous()
        return (_neighbours(above, factors, 2), _neighbours(turned, factors, 2)), None

    one = eye(size, x).expand(count, size, size).contiguous()
    found, _ = scan(step, (x, one), numbers(steps, x))
    return found  # type: ignore[no-any-return]


def swept(h: Tensor, z: Tensor | None, shifts: Shifts, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor | None]:
    """H after a chain has gone through one block of each matrix, and Z.T, multiplied by the same from the left.

    Args:
      h: shape (count, n, n).
      z: Z.T of H = Z.T @ A @ Z, shape (count, n, n); or nothing.
      shifts: of the chain.
      lo: the first row of the block, of at least three, (count, 1).
      hi: the last one; -1 where a matrix stays as it is.
    """
    n = h._ints()[1]
    bulges = shifts.middle._ints()[1]
    steps = 3 * bulges + 5
    size = steps + 3 * bulges + 1
    last = (hi - lo + 3 * (shifts.used - 1)).max()
    places = numbers(n, h)

    def window(state: Any) -> Any:
        h, done, *z = state
        first = lo + done - 3 * (bulges - 1) - 1
        rows = _picked(h, first, size, 1)
        x, turns = _chased(_picked(rows, first, size, 2), shifts, lo, hi, done, steps)
        turns = turns.contiguous()
        rows, columns = adjoint(turns).contiguous() @ rows, _picked(h, first, size, 2) @ turns
        local = places - first  # a place beyond the window is one that gather finds nothing at
        inside = (local >= 0) & (local < size)
        down, across = inside.unsqueeze(2), inside.unsqueeze(1)
        own, beside = local.unsqueeze(2).expand(*local.shape, n), local.unsqueeze(1).expand(local._ints()[0], n, n)
        rows, columns, x = rows.contiguous(), columns.contiguous(), x.contiguous()
        within = x.reshape((-1, size * size)).gather(1, (own * size + beside).reshape((-1, n * n))).reshape(h.shape)
        turned_rows = across.where(within, rows.gather(1, own))
        h = down.where(turned_rows, across.where(columns.gather(2, beside), h))
        z = [down.where((adjoint(turns).contiguous() @ _picked(part, first, size, 1)).contiguous().gather(1, own), part)
             for part in z]  # fmt: skip
        return h, done + steps, *z

    def goes_on(state: Any) -> Tensor:
        on: Tensor = state[1] < last
        return on

    begin = (h.contiguous(), Tensor(0, dtype=dtypes.int32, device=h.device))
    h, _, *rest = while_loop(goes_on, window, begin if z is None else (*begin, z.contiguous()))
    return h, rest[0] if rest else None
