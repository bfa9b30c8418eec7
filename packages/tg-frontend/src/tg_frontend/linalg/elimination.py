"""Gauss's elimination with partial pivoting: LU, determinants, inverses and systems of equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .matrices import (
    adjoint,
    check_matrix,
    column,
    diagonal_of,
    eye,
    flat,
    lower,
    numbers,
    unflat,
    upper,
)
from .triangular import solved, substituted, together


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class LU(NamedTuple):
    """a = P @ L @ U."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangles in one matrix, and with which row (from 1) each row was exchanged in turn."""

    LU: Tensor
    pivots: Tensor


_WIDTHS = (64, 16)
"""Columns that are eliminated by themselves before all others follow by a product: 16 columns of 512 rows fit into the
nearest caches, and products of 64 columns take longer than reading and writing what they are subtracted from."""
_HALVES = 2 * _WIDTHS[0]
"""Matrices of more columns are divided in two, which saves a third of the work on what is zero, but adds kernels."""


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
    if least <= _HALVES:
        return _blocks_in_turn(a)
    half = -(-least // _HALVES) * _WIDTHS[0]
    left, order, exchanged = (part.contiguous() for part in _blocks_in_turn(a[:, :, :half].contiguous()))
    right = _with_rows(a[:, :, half:], order).contiguous()
    top = substituted(left[:, :half, :half].contiguous(), right[:, :half].contiguous(), False, True).contiguous()
    rest = (right[:, half:] - left[:, half:] @ top).contiguous()
    other, moved, later = (part.contiguous() for part in _blocks_in_turn(rest))
    below = Tensor.cat(_with_rows(left[:, half:], moved), other, dim=2)
    both = Tensor.cat(Tensor.cat(left[:, :half], top, dim=2), below, dim=1)
    order = Tensor.cat(order[:, :half], order[:, half:].gather(1, moved), dim=1)
    return both, order, Tensor.cat(exchanged, later + half, dim=1)


def _blocks_in_turn(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Block after block of columns, results as of :func:`factored`."""
    count, m, n = a._ints()
    least, rows = min(m, n), numbers(m, a).reshape((1, -1)).expand(count, m).contiguous()
    rest, place, best = (
        part.contiguous() for part in _eliminated(a[:, :, :least].contiguous(), rows, 0, least, _WIDTHS)
    )
    order = (place * 0).scatter(1, place, rows).contiguous()
    both = _with_rows(rest, order)
    if n > least:
        right = _with_rows(a[:, :, least:], order).contiguous()
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
    while widths and n <= widths[0]:
        widths = widths[1:]
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
        corner, top = ((own < m).where(_rows_at(x, chosen), 0).contiguous() for x in (factors, rest))
        top = substituted(corner, top, False, True).contiguous()
        along = (columns >= begin) & (columns < begin + width)
        within = part.index_select(2, (columns - begin).clamp(0, width - 1))
        place_in = (place - start).unsqueeze(2)
        solved = _rows_at(top, (place - start).clamp(0, width - 1))
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
        size = (place >= k).where(here.abs(), -1)
        greatest = (size == size.max(1, keepdim=True)) | (size != size)
        earliest = greatest.where(place, m).min(1, keepdim=True)  # of those that are equal, as LAPACK has it
        best = (k < pivots).where(earliest, k)
        chosen = (place == best).where(rows, 0).sum(1, keepdim=True).cast(dtypes.int32).contiguous()
        top = _rows_at(rest, chosen).squeeze(1)
        place = (place == best).where(k, (place == k).where(best, place)).contiguous()
        pivot = (columns == i).where(top, 0).sum(1, keepdim=True)
        factor = here / (pivot == 0).where(1, pivot)
        less = rest - factor.unsqueeze(2) * top.unsqueeze(1)
        after = (columns > i).where(less, (columns == i).where(factor.unsqueeze(2), rest))
        return ((place > k).unsqueeze(2).where(after, rest), place), best.squeeze(1)

    (rest, place), best = scan(step, (rest, place), columns)
    return rest, place, best.transpose(0, 1)


def _rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Rows of (count, m, n) at places (count, k): shape (count, k, n)."""
    count, k = at._ints()
    return x.gather(1, at.unsqueeze(2).expand(count, k, x._ints()[2]))


def _with_rows(b: Tensor, order: Tensor) -> Tensor:
    """Rows of (count, n, m) in an order (count, n)."""
    return _rows_at(b, order)


class _Solve(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        both, order, _ = factored(a)
        x = solved(both, solved(both, _with_rows(b, order), False, unit=True), True)
        ctx.save_for_backward(a, x)
        return x, diagonal_of(both)

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        grad, _ = grads  # nobody differentiates the pivots
        a, x = ctx.saved_tensors
        into_b, _ = _Solve.apply(adjoint(a), grad)
        return -(into_b @ adjoint(x)), into_b


def solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    """The solution of a @ x = b, or of x @ a = b.

    A singular matrix makes infinities or NaN.

    Args:
      a: shape (…, n, n).
      b: shape (…, n, m), or (n,) or (…, n) where the matrices' leading axes say so; leading axes broadcast.
      left: whether the matrix stands on the left.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32 or float64, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.solve(Tensor([[0.0, 2.0], [1.0, 1.0]]), Tensor([4.0, 3.0]))
      Tensor([1., 2.])
    """
    return solved_with_pivots(a, b, left)[0]


def solved_with_pivots(a: Tensor, b: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """What :func:`solve` gives, and the pivots (…, n) of all systems.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32 or float64, or differ.
    """
    what = "solve"
    check_matrix(a, what, square=True)
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        x, pivots = solved_with_pivots(a, b.unsqueeze(-1), True)
        return x.squeeze(-1), pivots
    check_matrix(b, what)
    if not left:
        x, pivots = solved_with_pivots(adjoint(a), adjoint(b), True)
        return adjoint(x), pivots
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"{what}: a matrix of shape {a.shape[-2:]} and right sides of shape {b.shape[-2:]}")
    a, b = together(a, b, what)
    x, pivots = _Solve.apply(flat(a), flat(b))
    return unflat(x, b), pivots.reshape(a.shape[:-1])


def inv(a: Tensor) -> Tensor:
    """The inverses of square matrices. A singular one gives infinities or NaN.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.inv(Tensor([[0.0, 2.0], [1.0, 0.0]]))
      Tensor([[0. , 1. ],
              [0.5, 0. ]])
    """
    check_matrix(a, "inv", square=True)
    return inverse_with_pivots(a)[0]


def inverse_with_pivots(a: Tensor) -> tuple[Tensor, Tensor]:
    """The inverses of square matrices, and the pivots (…, n)."""
    inverse, pivots = _Solve.apply(flat(a), eye(a._ints()[-1], a).expand(*flat(a).shape))
    return unflat(inverse, a), pivots.reshape(a.shape[:-1])


class _Slogdet(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor]:
        both, _, exchanged = factored(a)
        diagonal = diagonal_of(both)
        swaps = (exchanged != numbers(exchanged._ints()[1], a)).sum(1)
        turned = 1 - 2 * (swaps % 2)
        ctx.save_for_backward(a)
        return diagonal.sign().prod(1) * turned.cast(a.dtype), diagonal.abs().log().sum(1)

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        _, grad = grads  # that of the sign is nothing
        (a,) = ctx.saved_tensors
        return grad.reshape((-1, 1, 1)) * adjoint(inv(a))


def slogdet(a: Tensor) -> Slogdet:
    """The sign of the determinants, and the logarithms of their magnitudes. A singular matrix has 0 and -infinity.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.slogdet(Tensor([[0.0, 1.0], [1.0, 0.0]]))
      Slogdet(sign=Tensor(-1.), logabsdet=Tensor(0.))
    """
    check_matrix(a, "slogdet", square=True)
    sign, magnitude = _Slogdet.apply(flat(a))
    lead = a.shape[:-2]
    return Slogdet(sign.reshape(lead), magnitude.reshape(lead))


class _Det(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> Tensor:
        both, _, exchanged = factored(a)
        swaps = (exchanged != numbers(exchanged._ints()[1], a)).sum(1)
        out = diagonal_of(both).prod(1) * (1 - 2 * (swaps % 2)).cast(a.dtype)
        ctx.save_for_backward(a)
        return out

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        (a,) = ctx.saved_tensors
        return (grad * det(a)).reshape((-1, 1, 1)) * adjoint(inv(a))


def det(a: Tensor) -> Tensor:
    """The determinants of square matrices; through that of a singular one no gradient is known (it is NaN).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.det(Tensor([[0.0, 2.0], [1.0, 3.0]]))
      Tensor(-2.)
    """
    check_matrix(a, "det", square=True)
    out: Tensor = _Det.apply(flat(a)).reshape(a.shape[:-2])
    return out


class _LU(Function):
    """Source of the gradient of square matrices: F. de Hoog, R. Anderssen and M. Lukas, "Differentiation of matrix
    functionals using triangular factorization", 2011. What a longer or wider matrix has beside its square is the
    solution of a triangular system: rows of L times U, or L times columns of U."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        both, order, exchanged = factored(a)
        ctx.save_for_backward(both, order)
        return both, order, exchanged

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        grad, *_ = grads
        both, order = ctx.saved_tensors
        m, n = both._ints()[1:]
        k = min(m, n)
        left, right = lower(both[:, :k, :k], -1) + eye(k, both), upper(both[:, :k, :k])
        into_left, into_right, beside = lower(grad[:, :k, :k], -1), upper(grad[:, :k, :k]), None
        if m > k:
            beside = adjoint(solved(right, adjoint(grad[:, k:]), True))  # of the rows below: times the inverse of U
            into_right = into_right - upper(adjoint(both[:, k:]) @ beside)
        elif n > k:
            beside = solved(adjoint(left), grad[:, :, k:], True, unit=True)
            into_left = into_left - lower(beside @ adjoint(both[:, :, k:]), -1)
        inner = lower(adjoint(left) @ into_left, -1) + upper(into_right @ adjoint(right))
        outer = solved(adjoint(left), adjoint(solved(right, adjoint(inner), True)), True, unit=True)
        if beside is not None:
            outer = outer.cat(beside, dim=1 if m > k else 2)
        back = Tensor.zeros(*order._ints(), dtype=dtypes.int32, device=order.device)
        places = numbers(m, order).reshape((1, -1)).expand(*order.shape)
        return _with_rows(outer, back.scatter(1, order, places))


def _checked_pivoting(pivot: bool, what: str) -> None:
    if not pivot:
        raise ValueError(f"{what}: elimination without exchanged rows is not offered")


def lu(a: Tensor, *, pivot: bool = True) -> LU:
    """Permutations, lower and upper triangles, such that a = P @ L @ U, by elimination with partial pivoting.

    Args:
      a: shape (…, m, n).
      pivot: whether rows are exchanged; they always are.

    Returns:
      P, L and U of shapes (…, m, m), (…, m, k), (…, k, n), k being the lesser of m and n.

    Raises:
      ValueError: if there is no matrix; or rows are not to be exchanged.
      TypeError: if it holds anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lu(Tensor([[1.0, 2.0], [2.0, 0.0]])).L
      Tensor([[1. , 0. ],
              [0.5, 1. ]])
    """
    check_matrix(a, "lu")
    _checked_pivoting(pivot, "lu")
    m, n = a._ints()[-2:]
    both, order, _ = _LU.apply(flat(a))
    least = min(m, n)
    left = lower(both[:, :, :least], -1) + Tensor.eye(m, least, dtype=a.dtype, device=a.device)
    permuted = (order.unsqueeze(1) == numbers(m, a).reshape((1, -1, 1))).cast(a.dtype)
    return LU(unflat(permuted, a), unflat(left, a), unflat(upper(both[:, :least, :]), a))


def lu_factor(a: Tensor, *, pivot: bool = True) -> LUFactor:
    """Both triangles of :func:`lu` in one matrix, and the rows that were exchanged (counted from 1).

    Args:
      a: shape (…, m, n).
      pivot: whether rows are exchanged; they always are.

    Raises:
      ValueError: if there is no matrix; or rows are not to be exchanged.
      TypeError: if it holds anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lu_factor(Tensor([[1.0, 2.0], [2.0, 0.0]])).pivots
      Tensor([2, 2])
    """
    check_matrix(a, "lu_factor")
    _checked_pivoting(pivot, "lu_factor")
    both, _, exchanged = _LU.apply(flat(a))
    return LUFactor(unflat(both, a), (exchanged + 1).reshape((*a.shape[:-2], exchanged.shape[-1])))


def _ordered(pivots: Tensor, m: int) -> Tensor:
    """Which of m rows each row was before exchanges (count, k), from 1, were carried out: shape (count, m)."""
    count, k = pivots._ints()
    rows = numbers(m, pivots)

    def step(order: Tensor, part: Any) -> tuple[Tensor, None]:
        k, best = part
        best = best.unsqueeze(1)
        source = (rows == k).where(best, (rows == best).where(k.reshape((1, 1)), rows))
        return order.gather(1, source), None

    start = rows.reshape((1, m)).expand(count, m).contiguous()
    if not k or not count:
        return start
    found: Tensor = scan(step, start, (rows[:k], (pivots - 1).transpose(0, 1)))[0]
    return found


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:  # fmt: skip
    """What :func:`lu` gives, from what :func:`lu_factor` gave.

    Args:
      LU_data: both triangles, shape (…, m, n).
      LU_pivots: the rows that were exchanged, shape (…, min(m, n)), integers from 1.
      unpack_data: whether the triangles are wanted.
      unpack_pivots: whether the permutation is.

    Returns:
      P, L and U, see :func:`lu`; of what is not wanted a tensor of no elements.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes do not.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lu_unpack(*linalg.lu_factor(Tensor([[1.0, 2.0], [2.0, 0.0]]))).L
      Tensor([[1. , 0. ],
              [0.5, 1. ]])
    """
    what = "lu_unpack"
    check_matrix(LU_data, what)
    m, n = LU_data._ints()[-2:]
    least = min(m, n)
    if LU_pivots.shape != (*LU_data.shape[:-2], least):
        raise ValueError(f"{what}: pivots of shape {LU_pivots.shape} for factors of shape {LU_data.shape}")
    if not dtypes.is_int(LU_pivots.dtype):
        raise TypeError(f"{what}: pivots are integers, got a tensor of {LU_pivots.dtype.name}")
    permuted = left = right = Tensor.zeros(0, dtype=LU_data.dtype, device=LU_data.device)
    if unpack_pivots:
        count = flat(LU_data)._ints()[0]
        order = _ordered(LU_pivots.cast(dtypes.int32).reshape((count, least)), m)
        placed = order.reshape((count, 1, m)) == numbers(m, LU_data).reshape((1, m, 1))
        permuted = placed.cast(LU_data.dtype).reshape((*LU_data.shape[:-2], m, m))
    if unpack_data:
        left = lower(LU_data[..., :least], -1) + Tensor.eye(m, least, dtype=LU_data.dtype, device=LU_data.device)
        right = upper(LU_data[..., :least, :])
    return LU(permuted, left, right)


def lu_solve(
    factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:  # fmt: skip
    """The solution of a @ x = b from what :func:`lu_factor` gave for a. Leading axes broadcast.

    Args:
      factors: shape (…, n, n).
      pivots: shape (…, n), integers.
      b: shape (…, n, m), or (…, m, n) where the matrix stands on the right.
      left: whether the matrix stands on the left; else x @ a = b is solved.
      adjoint: whether a is transposed first.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes do not.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> factors = linalg.lu_factor(Tensor([[0.0, 2.0], [1.0, 1.0]]))
      >>> linalg.lu_solve(*factors, Tensor([[4.0], [3.0]]))
      Tensor([[1.],
              [2.]])
    """
    what = "lu_solve"
    check_matrix(factors, what, square=True)
    check_matrix(b, what)
    if factors.shape[-1] != b.shape[-2 if left else -1] or pivots.shape != factors.shape[:-1]:
        raise ValueError(f"{what}: shapes {factors.shape}, {pivots.shape} and {b.shape} do not fit")
    if not dtypes.is_int(pivots.dtype):
        raise TypeError(f"{what}: pivots are integers, got a tensor of {pivots.dtype.name}")
    if not left:
        return lu_solve(factors, pivots, b.mT, adjoint=not adjoint).mT
    factors, b = together(factors, b, what)
    pivots = pivots.expand(*factors.shape[:-1])
    many, right = flat(factors), flat(b)
    count, n = many._ints()[:2]
    if 0 in right._ints():
        return b * 1
    order = _ordered(pivots.cast(dtypes.int32).reshape((count, n)), n)
    if not adjoint:
        half = solved(many, _with_rows(right, order), False, unit=True)
        return unflat(solved(many, half, True), b)
    turned = many.mT
    half = solved(turned, right, False)
    return unflat(_with_rows(solved(turned, half, True, unit=True), order.argsort(1)), b)
