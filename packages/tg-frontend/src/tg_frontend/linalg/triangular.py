"""Systems of equations whose matrix is triangular."""

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
    flat,
    lower,
    narrower,
    numbers,
    row,
    unflat,
    upper,
)


@traced_once
def substituted(a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
    """The solution of a @ x = b, without a gradient: a is (count, n, n), b is (count, n, m).

    One block of rows after the other: what is known of the solution goes into what follows by a product of matrices.
    """
    if 0 in (*a._ints(), *b._ints()):
        return b
    if lanes.in_lanes(a) and lanes.in_lanes(b):
        x = lanes.substituted(lanes.grouped(a), lanes.grouped(b).contiguous(), is_upper, unit)
        return lanes.singly(x, b._ints()[0])
    return _blocks_in_turn(a, b, is_upper, unit, WIDTHS)


def _blocks_in_turn(a: Tensor, b: Tensor, is_upper: bool, unit: bool, widths: Sequence[int]) -> Tensor:
    """One block of rows after the other, of the first of ``widths``; each of them by blocks of the next."""
    count, n, m = b._ints()
    widths = narrower(widths, n)
    if not widths:
        return _rows_in_turn(a, b, is_upper, unit)
    width, more = widths[0], -n % widths[0]
    a, b = bordered(a, n + more).contiguous(), b.pad(((0, 0), (0, more), (0, 0))).contiguous()
    places, inside = numbers(n + more, a), numbers(width, a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        own = j * width + inside
        columns = a.index_select(2, own).contiguous()
        right = rest.index_select(1, own).contiguous()
        x = _blocks_in_turn(columns.index_select(1, own).contiguous(), right, is_upper, unit, widths[1:]).contiguous()
        left = (places < j * width if is_upper else places >= (j + 1) * width).reshape((-1, 1))
        return rest - left.where(columns, 0) @ x, x

    _, found = scan(block, b, numbers((n + more) // width, a), reverse=is_upper)
    out: Tensor = found.transpose(0, 1).reshape((count, n + more, m))
    return out[:, :n]


def _rows_in_turn(a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
    """One row of the solution after the other."""
    places = numbers(a._ints()[1], a)

    def step(rest: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        factors, found = column(a, k), row(rest, k)
        if not unit:
            found = found / row(factors.unsqueeze(2), k)
        left = places < k if is_upper else places > k
        return rest - left.where(factors, 0).unsqueeze(2) * found.unsqueeze(1), found

    _, found = scan(step, b, places, reverse=is_upper)
    out: Tensor = found.transpose(0, 1)
    return out


class _Triangular(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
        x = substituted(a, b, is_upper, unit)
        ctx.save_for_backward(a, x)
        ctx.settings = is_upper, unit  # type: ignore[attr-defined]
        return x

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        a, x = ctx.saved_tensors
        is_upper, unit = ctx.settings  # type: ignore[attr-defined]
        into_b = solved(adjoint(a), grad, not is_upper, unit)
        inside = upper if is_upper else lower
        into_a = inside(-(into_b @ adjoint(x)), (1 if is_upper else -1) if unit else 0)
        return into_a, into_b, None, None


def solved(a: Tensor, b: Tensor, is_upper: bool, unit: bool = False) -> Tensor:
    """The solution of a @ x = b for triangular (count, n, n) and (count, n, m)."""
    out: Tensor = _Triangular.apply(a, b, is_upper, unit)
    return out


def together(a: Tensor, b: Tensor, what: str) -> tuple[Tensor, Tensor]:
    """Matrices and right sides with leading axes alike.

    Raises:
      ValueError: if they do not broadcast.
      TypeError: if the dtypes differ.
    """
    if a.dtype is not b.dtype:
        raise TypeError(f"{what}: matrices of {a.dtype.name} and right sides of {b.dtype.name}")
    lead = Tensor.zeros(*a._ints()[:-2], 1).shape[:-1]
    other = b._ints()[:-2]
    if lead == other:
        return a, b
    long = max(len(lead), len(other))
    ones = [(1,) * (long - len(shape)) + tuple(shape) for shape in (lead, other)]
    if any(p != q and 1 not in (p, q) for p, q in zip(*ones, strict=True)):
        raise ValueError(f"{what}: shapes {a.shape} and {b.shape} do not broadcast")
    both = tuple(q if p == 1 else p for p, q in zip(*ones, strict=True))
    return a.expand(*both, *a.shape[-2:]), b.expand(*both, *b.shape[-2:])


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solution of a @ x = b, or of x @ a = b, for a triangular matrix.

    A zero on the diagonal makes infinities or NaN.

    Args:
      a: shape (…, n, n); what is on the other side of the diagonal is not read.
      b: shape (…, n, m), or (…, m, n) where the matrix stands on the right; leading axes broadcast.
      upper: whether the triangle is the upper one.
      left: whether the matrix stands on the left.
      unitriangular: the diagonal counts as ones, and is not read.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.solve_triangular(Tensor([[2.0, 1.0], [0.0, 4.0]]), Tensor([[4.0], [8.0]]), upper=True)
      Tensor([[1.],
              [2.]])
    """
    what = "solve_triangular"
    check_matrix(a, what, square=True)
    check_matrix(b, what)
    if not left:
        out = solve_triangular(adjoint(a), adjoint(b), upper=not upper, unitriangular=unitriangular)
        return adjoint(out)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"{what}: a matrix of shape {a.shape[-2:]} and right sides of shape {b.shape[-2:]}")
    a, b = together(a, b, what)
    return unflat(solved(flat(a), flat(b), upper, unitriangular), b)
