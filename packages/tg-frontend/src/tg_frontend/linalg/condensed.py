"""Matrices made tridiagonal or bidiagonal by reflections from both sides.

Half of the work are products of the matrix and a vector, for each column; the other half is done for a block of columns
at a time. Source: Dongarra, Sorensen and Hammarling, "Block reduction of matrices to condensed forms for eigenvalue
computations", 1989.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from ..transform.scan import scan
from .compact import against, applied, axis_of, nothing
from .matrices import BLOCK, adjoint, column, numbers, phase, row


def _in_order(x: Tensor, n: int) -> Tensor:
    """What each column of each block gave, (blocks, size, count), as (count, n)."""
    blocks, size, count = x._ints()
    return x.reshape((blocks * size, count)).transpose(0, 1)[:, :n]


def _in_halves(
    rest: Tensor, size: int, condensed: Callable[[Tensor, int, int], tuple[Tensor, Sequence[Tensor]]], axes: int
) -> list[Tensor]:  # fmt: skip
    """What all blocks of columns give, of matrices of which the second half is condensed by itself where it is large.

    Products with vectors are of the whole matrix, as long as its shape stays: that of the second half is a quarter.

    Args:
      rest: shape (count, m, n), with n a multiple of ``size``.
      size: columns of a block.
      condensed: takes matrices, how many blocks, and of how many columns; gives what is left of the matrices, and what
        each block gave, stacked.
      axes: how many of these, the first ones, are (blocks, count, m or n, size).
    """
    n = rest._ints()[2]
    blocks = n // size
    if n <= 4 * BLOCK:
        return list(condensed(rest, blocks, size)[1])
    half = blocks // 2
    rest, first = condensed(rest, half, size)
    done = half * size
    _, second = condensed(rest[:, done:, done:].contiguous(), blocks - half, size)
    second = [x.pad(((0, 0), (0, 0), (done, 0), (0, 0))) if i < axes else x for i, x in enumerate(second)]
    return [Tensor.cat(x, y, dim=0) for x, y in zip(first, second, strict=True)]


def tridiagonal(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """T = Q.T @ A @ Q of symmetric or Hermitian (count, n, n) whose elements are 1 at most.

    Complex matrices become complex ones: see :func:`real_tridiagonal`.

    Returns:
      The diagonal of T (count, n); what is beside it (count, n - 1); and the axes of the reflections that Q is the
      product of, (blocks, count, n or more, size).
    """
    n = a._ints()[1]
    size = min(BLOCK, n)
    more = -n % size
    padded = a.pad(((0, 0), (0, more), (0, more))).contiguous()
    axes, along, beside = _in_halves(padded, size, _tridiagonal_blocks, 1)
    return _in_order(along, n), _in_order(beside, n - 1), axes


def _tridiagonal_blocks(a: Tensor, blocks: int, size: int) -> tuple[Tensor, Sequence[Tensor]]:
    """The first blocks of columns: what is left, the axes, and what is on the diagonal and beside it."""
    count, n, _ = a._ints()
    rows, inside = numbers(n, a), numbers(size, a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, Any]:
        def step(state: Any, i: Tensor) -> tuple[Any, Any]:
            v, w = state  # the matrix is now rest - v @ w.T - w @ v.T
            k, beyond = j * size + i, rows > j * size + i
            here = (column(rest, k) - applied(v, row(w, k).conj()) - applied(w, row(v, k).conj())).contiguous()
            axis, beside = axis_of(beyond.where(here, 0), rows, k + 1)
            axis = axis.contiguous()
            reached = (rest @ axis.unsqueeze(2)).squeeze(2)
            reached = reached - applied(v, against(w, axis)) - applied(w, against(v, axis))
            reached = beyond.where(reached, 0).contiguous()
            other = reached - (reached * axis.conj()).sum(1, keepdim=True) * 0.5 * axis
            new = (inside == i).where(axis.unsqueeze(2), v), (inside == i).where(other.unsqueeze(2), w)
            return new, ((rows == k).where(here, 0).sum(1), beside.squeeze(1))

        start = nothing(count, n, size, a), nothing(count, n, size, a)
        (v, w), found = scan(step, start, inside)
        return rest - Tensor.cat(v, w, dim=2) @ adjoint(Tensor.cat(w, v, dim=2)), (v, *found)

    rest, found = scan(block, a, numbers(blocks, a))
    return rest, found


def bidiagonal(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """B = P.T @ A @ Q of (count, m, n) with m >= n, whose elements are 1 at most.

    Complex matrices become complex ones: see :func:`real_bidiagonal`.

    Returns:
      The diagonal of B (count, n); what is above it (count, n - 1); and the axes of the reflections that P and Q are
      the products of, (blocks, count, m or more, size) and (blocks, count, n or more, size).
    """
    _, m, n = a._ints()
    size = min(BLOCK, n)
    padded = a.pad(((0, 0), (0, -m % size), (0, -n % size))).contiguous()
    left, right, along, above = _in_halves(padded, size, _bidiagonal_blocks, 2)
    return _in_order(along, n), _in_order(above, n - 1), left, right


def real_tridiagonal(d: Tensor, e: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The diagonal of complex tridiagonal T, the magnitudes of what is below it, and the unitary D that makes it so.

    Args:
      d: shape (count, n), of which the imaginary part is rounding.
      e: what is below, shape (count, n - 1).

    Returns:
      The two of D.mH @ T @ D, real; and the diagonal of D, (count, n).
    """
    return d.real, e.abs(), _accumulated(phase(e))


def real_bidiagonal(d: Tensor, e: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The magnitudes of what is in complex bidiagonal B, and the unitary L and R that make it so.

    Args:
      d: the diagonal, shape (count, n).
      e: what is above, shape (count, n - 1).

    Returns:
      The two of L.mH @ B @ R, real; and the diagonals of L and R, (count, n).
    """
    along = phase(d)
    right = _accumulated(along[:, :-1] * phase(e).conj())
    return d.abs(), e.abs(), along * right, right


def _accumulated(turns: Tensor) -> Tensor:
    """1, and the products of the first of (count, n - 1) numbers of magnitude 1."""
    first = Tensor.ones(turns._ints()[0], 1, dtype=turns.dtype, device=turns.device)
    return phase(Tensor.cat(first, turns, dim=1).cumprod(1))


def _bidiagonal_blocks(a: Tensor, blocks: int, size: int) -> tuple[Tensor, Sequence[Tensor]]:
    """The first blocks of columns: what is left, the axes of both sides, and what is on the diagonal and above it."""
    count, high, wide = a._ints()
    rows, columns, inside = numbers(high, a), numbers(wide, a), numbers(size, a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, Any]:
        across = adjoint(rest).contiguous()  # products with rows are read along rows

        def step(state: Any, i: Tensor) -> tuple[Any, Any]:
            v, y, x, u = state  # the matrix is now rest - v @ y.T - x @ u.T
            k, own = j * size + i, inside == i
            here = (column(rest, k) - applied(v, row(y, k).conj()) - applied(x, row(u, k).conj())).contiguous()
            left, along = axis_of((rows >= k).where(here, 0), rows, k)
            left = left.contiguous()
            reached = (across @ left.unsqueeze(2)).squeeze(2)
            reached = reached - applied(y, against(v, left)) - applied(u, against(x, left))
            reached = (columns > k).where(reached, 0)
            v, y = own.where(left.unsqueeze(2), v).contiguous(), own.where(reached.unsqueeze(2), y).contiguous()
            here = row(rest, k).conj() - applied(y, row(v, k).conj()) - applied(u, row(x, k).conj())
            right, above = axis_of((columns > k).where(here.contiguous(), 0), columns, k + 1)
            right = right.contiguous()
            reached = (rest @ right.unsqueeze(2)).squeeze(2)
            reached = reached - applied(v, against(y, right)) - applied(x, against(u, right))
            reached = (rows > k).where(reached, 0)
            x, u = own.where(reached.unsqueeze(2), x), own.where(right.unsqueeze(2), u)
            return (v, y, x, u), (along.squeeze(1), above.squeeze(1).conj())

        tall, flat = nothing(count, high, size, a), nothing(count, wide, size, a)
        (v, y, x, u), found = scan(step, (tall, flat, tall, flat), inside)
        return rest - Tensor.cat(v, x, dim=2) @ adjoint(Tensor.cat(y, u, dim=2)), (v, u, *found)

    rest, found = scan(block, a, numbers(blocks, a))
    return rest, found
