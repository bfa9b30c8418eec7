"""Cholesky's decomposition, and systems of equations by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from . import lanes
from .matrices import (
    WIDTHS,
    adjoint,
    bordered,
    check_matrix,
    column,
    diagonal_of,
    eye,
    flat,
    lower,
    narrower,
    numbers,
    unflat,
)
from .triangular import solve_triangular, solved


@traced_once
def _factor(a: Tensor) -> Tensor:
    """The lower factor of (count, n, n), half of the columns after the other; only the lower triangle is read."""
    count, n, _ = a._ints()
    if lanes.in_lanes(a):
        return lanes.singly(lanes.factor(lanes.grouped(lower(a)).contiguous()), count)
    wide = WIDTHS[0] if n > WIDTHS[0] else WIDTHS[1]
    length = n if n <= wide else -(-n // wide) * wide
    a = (bordered(lower(a), length) if length > n else lower(a)).contiguous()
    if length <= 2 * WIDTHS[0]:
        return _columns(a, 0, WIDTHS)[0][:, :n, :n]
    half = length // (2 * wide) * wide
    left, rest = _columns(a, 0, WIDTHS, half)
    right, _ = _columns(rest[:, half:, half:].contiguous(), 0, WIDTHS)
    return Tensor.cat(left, right.pad(((0, 0), (half, 0), (0, 0))), dim=2)[:, :n, :n]


def _columns(
    a: Tensor, first: Tensor | int, widths: Sequence[int], steps: int | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The factor's columns (count, m, steps) of the first of (count, m, n), and what is left of all.

    Args:
      a: the matrices.
      first: the row in which the diagonal begins.
      widths: columns that are done by themselves, from the outside to the inside.
      steps: how many columns, n if None.
    """
    count, m, n = a._ints()
    steps = n if steps is None else steps
    widths = narrower(widths, n)
    if not widths:
        return _columns_in_turn(a, first)
    width, columns, inside = widths[0], numbers(n, a), numbers(widths[0], a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        part, _ = _columns(rest.index_select(2, j * width + inside).contiguous(), first + j * width, widths[1:])
        part = part.contiguous()
        return rest - part @ adjoint(part.index_select(1, first + columns)), part

    rest, parts = scan(block, a, numbers(steps // width, a))
    return parts.permute(1, 2, 0, 3).reshape((count, m, steps)), rest


def _columns_in_turn(a: Tensor, first: Tensor | int) -> tuple[Tensor, Tensor]:
    """As :func:`_columns`, of all columns, one after the other."""
    _, m, n = a._ints()
    place, columns = numbers(m, a), numbers(n, a)

    def step(rest: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        here, k = column(rest, i), i + first
        pivot = (place == k).where(here.real, 0).sum(1, keepdim=True)
        if here.is_complex():
            here = (place == k).where(pivot, here)
        factor = (place >= k).where(here / pivot.sqrt(), 0)
        across = factor.index_select(1, columns + first).conj()
        return rest - factor.unsqueeze(2) * across.unsqueeze(1), factor

    rest, found = scan(step, a, columns)
    return found.permute(1, 2, 0), rest


class _Cholesky(Function):
    """Source of the gradient: Murray, "Differentiation of the Cholesky decomposition", 2016, section 3.1."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> Tensor:
        factor = _factor(a)
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        (factor,) = ctx.saved_tensors
        inner = lower(adjoint(factor) @ lower(grad))
        half = inner - 0.5 * diagonal_of(inner).diag_embed()
        right = solved(adjoint(factor), half, True)  # L^-T @ half
        both = adjoint(solved(adjoint(factor), adjoint(right), True))  # … @ L^-1
        return (both + adjoint(both)) * 0.5


def cholesky(a: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular factor l of symmetric or Hermitian positive definite matrices: a = l @ l.mH.

    A matrix that is not positive definite gives NaN.

    Args:
      a: shape (…, n, n), of which the lower triangle is read; the upper one with ``upper``.
      upper: return l.mH instead.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]]))
      Tensor([[2., 0.],
              [1., 2.]])
    """
    check_matrix(a, "cholesky", square=True)
    if 0 in a._ints():
        return a * 1
    out = unflat(_Cholesky.apply(flat(adjoint(a) if upper else a)), a)
    return adjoint(out) if upper else out


def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """The solution of a @ x = b from Cholesky's factor of a.

    Args:
      b: shape (…, n, m).
      factor: shape (…, n, n), lower triangular; upper with ``upper``.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cholesky_solve(Tensor([[4.0], [2.0]]), Tensor([[2.0, 0.0], [0.0, 1.0]]))
      Tensor([[1.],
              [2.]])
    """
    left = adjoint(factor) if upper else factor
    half = solve_triangular(left, b, upper=False)
    return solve_triangular(adjoint(left), half, upper=True)


def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix from its Cholesky factor.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cholesky_inverse(Tensor([[2.0, 0.0], [0.0, 1.0]]))
      Tensor([[0.25, 0.  ],
              [0.  , 1.  ]])
    """
    check_matrix(factor, "cholesky_inverse", square=True)
    return cholesky_solve(eye(factor._ints()[-1], factor), factor, upper)
