"""Schur's form of complex matrices: Hessenberg's form by reflections, then the QR algorithm with Wilkinson's shifts.

Each step of the algorithm factors the whole
matrix less its shifts, Q @ R, by rotations, and applies these to R and to the vectors from the right: n at n elements
each, where a product with Q would cost n for each element. Every diagonal block that has come apart has a shift of its
own, so all blocks, and all matrices, converge side by side. Sources: Golub and Van Loan, "Matrix Computations", 4th
edition, sections 7.4.2 (reflections), 7.5 (shifts, deflation) and 7.6.4 (eigenvectors); the occasional other shift:
Wilkinson and Reinsch, "Handbook for Automatic Computation II", 1971, contribution II/15.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from ..transform.while_loop import while_loop
from .francis import GRADED
from .matrices import diagonal_of, epsilon, eye, numbers, upper

_STEPS = 30
"""Steps for each column, at the most: about two are enough."""
_UNUSUAL = 10
"""So often another shift is taken, lest a matrix stays as it is, as that of a cycle does."""


def _pair(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.real, z.imag


def _square(z: Tensor) -> Tensor:
    """The squared magnitudes."""
    return z.real * z.real + z.imag * z.imag


def _below(z: Tensor) -> Tensor:
    """What is just below the diagonal: (count, n - 1)."""
    return z.diagonal(-1, 1, 2)


def _cleared(z: Tensor, diagonal: int) -> Tensor:
    """Zeros below a diagonal."""
    return Tensor.complex(upper(z.real, diagonal), upper(z.imag, diagonal))


def _column(z: Tensor, k: Tensor) -> Tensor:
    """Column ``k`` of (count, m, n): shape (count, m, 1)."""
    return z.index_select(2, k.reshape((1,)))


def _hessenberg(a: Tensor) -> tuple[Tensor, Tensor]:
    """H, zero below the diagonal next to the middle one, and unitary Z, with a = Z @ H @ Z.mH."""
    count, n, _ = a._ints()
    one = eye(n, a.real).expand(count, n, n)
    start = (*_pair(a), one.contiguous(), (one * 0).contiguous())
    if n < 3:
        return a, Tensor.complex(*start[2:])
    rows = numbers(n, a.real).reshape((-1, 1))

    def step(state: Any, k: Tensor) -> tuple[Any, None]:
        rest, turned = Tensor.complex(*state[:2]), Tensor.complex(*state[2:])
        here = (rows > k).where(_column(rest, k), 0)
        most = here.abs().max(1, keepdim=True)
        here = here / (most == 0).where(1, most)
        first = (rows == k + 1).where(here, 0).sum(1, keepdim=True)
        size = _square(here).sum(1, keepdim=True).sqrt()
        magnitude = first.abs()
        phase = (magnitude == 0).where(1, first) / (magnitude == 0).where(1, magnitude)
        axis = here + (rows == k + 1).where(phase * size, 0)
        length = _square(axis).sum(1, keepdim=True)
        factor = (length == 0).where(0, 2 / (length == 0).where(1, length))
        rest = rest - axis * (factor * (axis.mH @ rest))
        rest = rest - ((rest @ axis) * factor) * axis.mH
        turned = turned - ((turned @ axis) * factor) * axis.mH
        return (*_pair(rest), *_pair(turned)), None

    found, _ = scan(step, start, numbers(n - 2, a.real))
    return _cleared(Tensor.complex(*found[:2]), -1), Tensor.complex(*found[2:])


def _negligible(h: Tensor) -> Tensor:
    """For each element below the diagonal whether it is as good as zero: (count, n - 1).

    Elements are 1 at most, and of what is NaN nothing is left to do.
    """
    along = diagonal_of(h).abs()
    beside = along[:, 1:] + along[:, :-1]
    return (_below(h).abs() > epsilon(h.real) * beside.maximum(GRADED)).logical_not()


def _shifts(h: Tensor, small: Tensor, number: Tensor) -> Tensor:
    """For each row the shift of its block, (count, n): of the last 2 by 2 the eigenvalue nearer to the last element."""
    n = h._ints()[1]
    along, below, above = diagonal_of(h), _below(h), h.diagonal(1, 1, 2)
    half, last = (along[:, :-1] - along[:, 1:]) * 0.5, along[:, 1:]
    product = above * below
    root = (half * half + product).sqrt()
    turned = (half + root).abs() < (half - root).abs()
    bottom = half + turned.where(-root, root)
    nothing = bottom.abs() == 0
    near = last - product / nothing.where(1, bottom)
    unusual = (number % _UNUSUAL) == _UNUSUAL - 1
    near = unusual.where(last + below.abs() * 0.75, near)
    each = Tensor.cat(along[:, :1], near, dim=1)
    place = numbers(n, small)
    stops = Tensor.cat(small, Tensor.ones(small.shape[0], 1, dtype=dtypes.bool, device=small.device), dim=1)
    ends = stops.unsqueeze(1) & (place.reshape((1, -1)) >= place.reshape((-1, 1)))
    end = ends.where(place, n).min(2)
    return each.gather(1, end)


def _rotated(h: Tensor, small: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """R of matrices that have one diagonal of elements below the middle one, by one rotation of rows after another.

    Returns:
      R; and the rotations (n, count, 1), c and s: of rows x and y they make c* x + s* y and c y - s x. The last one, of
      a row that is not there, leaves the other as it is.
    """
    count, n, _ = h._ints()
    place = numbers(n, h.real)
    rows = h.real.transpose(0, 1).contiguous(), h.imag.transpose(0, 1).contiguous()
    ends = Tensor.ones(count, 1, dtype=dtypes.bool, device=small.device)
    alone = Tensor.cat(small, ends, dim=1).transpose(0, 1).unsqueeze(2).contiguous()

    def step(state: Any, part: Any) -> tuple[Any, Any]:
        top, (k, apart) = Tensor.complex(*state), part
        row = Tensor.complex(*(_next(part, k, n) for part in rows))
        x = (place == k).where(top, 0).sum(1, keepdim=True)
        y = apart.where(0, (place == k).where(row, 0).sum(1, keepdim=True))
        most = x.abs().maximum(y.abs())
        rests = y.abs() == 0
        scale = rests.where(1, most)
        x, y = x / scale, y / scale
        size = rests.where(1, (_square(x) + _square(y)).sqrt())
        c, s = rests.where(1, x / size), rests.where(0, y / size)
        done = c.conj() * top + s.conj() * row
        return _pair(c * row - s * top), (_pair(done), _pair(c), _pair(s))

    start = rows[0][0].contiguous(), rows[1][0].contiguous()
    _, (done, c, s) = scan(step, start, (numbers(n, h.real), alone))
    r = Tensor.complex(*(part.transpose(0, 1) for part in done))
    return _cleared(r, 0), Tensor.complex(*c), Tensor.complex(*s)


def _next(rows: Tensor, k: Tensor, n: int) -> Tensor:
    """Row k + 1 of (n, count, m); the last one once more where there is none."""
    return rows.index_select(0, (k + 1).minimum(n - 1).reshape((1,))).squeeze(0)


def _turned(columns: Sequence[Tensor], c: Tensor, s: Tensor) -> list[Tensor]:
    """Matrices times the adjoint of rotations of rows: what :func:`_rotated` did, from the right.

    Args:
      columns: for each matrix the real and the imaginary part of its columns, (n, count, m).
      c: see :func:`_rotated`.
      s: see there.

    Returns:
      The parts, as ``columns``.
    """
    n = columns[0]._ints()[0]

    def step(state: Any, part: Any) -> tuple[Any, Any]:
        k, *turn = part
        c, s = Tensor.complex(*turn[:2]), Tensor.complex(*turn[2:])
        kept: list[Tensor] = []
        done: list[Tensor] = []
        for place in range(0, len(columns), 2):
            x = Tensor.complex(*state[place : place + 2])
            y = Tensor.complex(*(_next(part, k, n) for part in columns[place : place + 2]))
            kept += _pair(c.conj() * y - s.conj() * x)
            done += _pair(c * x + s * y)
        return tuple(kept), tuple(done)

    start = tuple(part[0].contiguous() for part in columns)
    _, done = scan(step, start, (numbers(n, columns[0]), *_pair(c), *_pair(s)))
    return list(done)


def schur(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The triangular form of complex matrices (count, n, n) whose elements are 1 at most.

    Returns:
      T, upper triangular, and unitary Z with a = Z @ T @ Z.mH; and whether each matrix has converged (count,).
    """
    h, z = _hessenberg(a)
    count, n, _ = a._ints()
    if n == 1:
        return h, z, Tensor.ones(count, dtype=dtypes.bool, device=a.device)
    bound = _STEPS * n

    def step(state: Any) -> Any:
        h, z = Tensor.complex(*state[:2]), state[2:4]  # columns of z
        small = _negligible(h)
        shift = _shifts(h, small, state[4]).diag_embed()
        r, c, s = _rotated(h - shift, small)
        re, im, *z = _turned([*(part.permute(2, 0, 1).contiguous() for part in _pair(r)), *z], c, s)
        h = Tensor.complex(re.permute(1, 2, 0), im.permute(1, 2, 0))
        return *_pair(_cleared(h, -1) + shift), *z, state[4] + 1

    def goes_on(state: Any) -> Tensor:
        left: Tensor = _negligible(Tensor.complex(*state[:2])).logical_not().any()
        on: Tensor = left & (state[4] < bound)
        return on

    columns = (part.permute(2, 0, 1) for part in _pair(z))
    start = (*_pair(h), *columns, Tensor(0, dtype=dtypes.int32, device=a.device))
    found = while_loop(goes_on, step, tuple(part.contiguous() for part in start))
    h, z = Tensor.complex(*found[:2]), Tensor.complex(*(part.permute(1, 2, 0) for part in found[2:4]))
    return _cleared(h, 0), z, _negligible(h).all(1)
