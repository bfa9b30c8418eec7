"""Systems of equations whose matrix is triangular."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .matrices import (
    BLOCK,
    SEVERAL_BLOCKS,
    adjoint,
    bordered,
    check_matrix,
    flat,
    lower,
    numbers,
    row,
    unflat,
    upper,
)


@traced_once
def substituted(a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
    """The solution of a @ x = b, without a gradient: a is (count, n, n), b is (count, n, m).

    One block of rows after the other: what is known of the solution goes into a block by a product of matrices.
    """
    n = a._ints()[1]
    if n == 0 or 0 in b._ints():
        return b
    if n < SEVERAL_BLOCKS:
        return _rows_in_turn(a, b, is_upper, unit)
    more = -n % BLOCK
    a = bordered(a, n + more)
    b = b.pad(((0, 0), (0, more), (0, 0)))
    places, inside = numbers(n + more, a), numbers(BLOCK, a)

    def block(x: Tensor, j: Tensor) -> tuple[Tensor, None]:
        first = j * BLOCK
        own = first + inside
        rows = a.index_select(1, own)
        others = (places >= first + BLOCK if is_upper else places < first).where(rows, 0)
        found = _rows_in_turn(rows.index_select(2, own), b.index_select(1, own) - others @ x, is_upper, unit)
        here = ((places >= first) & (places < first + BLOCK)).reshape((-1, 1))
        return here.where(found.index_select(1, (places - first).clamp(0, BLOCK - 1)), x), None

    out, _ = scan(block, b * 0, numbers((n + more) // BLOCK, a), reverse=is_upper)
    result: Tensor = out[:, :n]
    return result


def _rows_in_turn(a: Tensor, b: Tensor, is_upper: bool, unit: bool) -> Tensor:
    """One row of the solution after the other."""
    place = numbers(a._ints()[1], a)

    def step(x: Tensor, k: Tensor) -> tuple[Tensor, None]:
        here = row(a, k)
        others = (place > k if is_upper else place < k).where(here, 0)
        rest = row(b, k) - (others.unsqueeze(1) @ x).squeeze(1)
        if not unit:
            rest = rest / (place == k).where(here, 0).sum(1, keepdim=True)
        return (place == k).reshape((1, -1, 1)).where(rest.unsqueeze(1), x), None

    out, _ = scan(step, b * 0, place, reverse=is_upper)
    result: Tensor = out
    return result


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


def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
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
      TypeError: if the dtypes are others than float32 or float64, or differ.

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
