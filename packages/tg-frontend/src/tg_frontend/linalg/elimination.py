"""Gauss's elimination with partial pivoting: LU, determinants, inverses and systems of equations."""

from __future__ import annotations

from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.traced_once import traced_once
from .lanes import eliminated, grouped, in_lanes, singly, substituted
from .matrices import adjoint, check_matrix, diagonal_of, eye, flat, lower, numbers, unflat, upper
from .pivoting import factored, order_after, pivots_of, with_rows
from .triangular import solved, together


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


@traced_once
def _solved_in_lanes(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The solution of a @ x = b, and the pivots: elimination takes the right sides along."""
    count, n, _ = a._ints()
    found = eliminated(Tensor.cat(grouped(a), grouped(b), dim=2).contiguous(), n)
    x = substituted(found.rows[:, :, :n].contiguous(), found.rows[:, :, n:].contiguous(), True, False)
    return singly(x, count), singly(found.pivots, count).contiguous()


class _Solve(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        if in_lanes(a) and in_lanes(b):
            x, pivots = _solved_in_lanes(a, b)
        else:
            both, order, _ = factored(a)
            x = solved(both, solved(both, with_rows(b, order), False, unit=True), True)
            pivots = diagonal_of(both)
        ctx.save_for_backward(a, x)
        return x, pivots

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
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

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
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.
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
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

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


def _turned(exchanged: Tensor, like: Tensor) -> Tensor:
    """1 for each matrix (count,) of which an even number of rows was exchanged with others, -1 for the rest."""
    swaps = (exchanged != numbers(exchanged._ints()[1], like)).sum(1)
    return (1 - 2 * (swaps % 2)).cast(like.dtype)


@traced_once
def _sign_and_logarithm(a: Tensor) -> tuple[Tensor, Tensor]:
    """The signs of the determinants of (count, n, n), and the logarithms of their magnitudes."""
    pivots, exchanged = pivots_of(a)
    return pivots.sgn().prod(1) * _turned(exchanged, a), pivots.abs().log().sum(1)


@traced_once
def _determinant(a: Tensor) -> Tensor:
    """The determinants of (count, n, n)."""
    pivots, exchanged = pivots_of(a)
    return pivots.prod(1) * _turned(exchanged, a)


class _Slogdet(Function):
    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor]:
        sign, logarithm = _sign_and_logarithm(a)
        ctx.save_for_backward(a)
        if a.is_complex():
            ctx.save_for_backward(a, sign)
        return sign, logarithm

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_sign, grad = grads  # that of a real sign is nothing
        a, *signs = ctx.saved_tensors
        if signs:
            grad = Tensor.complex(grad, -(of_sign.conj() * signs[0]).imag)
        return grad.reshape((-1, 1, 1)) * adjoint(inv(a))


def slogdet(a: Tensor) -> Slogdet:
    """The sign of the determinants, and the logarithms of their magnitudes. A singular matrix has 0 and -infinity.

    The sign of a complex number is its quotient by its magnitude.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

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
        ctx.save_for_backward(a)
        return _determinant(a)

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        (grad,) = grads
        (a,) = ctx.saved_tensors
        return (grad * det(a).conj()).reshape((-1, 1, 1)) * adjoint(inv(a))


def det(a: Tensor) -> Tensor:
    """The determinants of square matrices; through that of a singular one no gradient is known (it is NaN).

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

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
        return with_rows(outer, back.scatter(1, order, places))


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
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

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
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lu_factor(Tensor([[1.0, 2.0], [2.0, 0.0]])).pivots
      Tensor([2, 2])
    """
    check_matrix(a, "lu_factor")
    _checked_pivoting(pivot, "lu_factor")
    both, _, exchanged = _LU.apply(flat(a))
    return LUFactor(unflat(both, a), (exchanged + 1).reshape((*a.shape[:-2], exchanged.shape[-1])))


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
        order = order_after(LU_pivots.cast(dtypes.int32).reshape((count, least)) - 1, m)
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
      adjoint: whether a is transposed first, and complex elements conjugated.

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
        return lu_solve(factors, pivots, b.mH, adjoint=not adjoint).mH
    factors, b = together(factors, b, what)
    pivots = pivots.expand(*factors.shape[:-1])
    many, right = flat(factors), flat(b)
    count, n = many._ints()[:2]
    if 0 in right._ints():
        return b * 1
    order = order_after(pivots.cast(dtypes.int32).reshape((count, n)) - 1, n)
    if not adjoint:
        half = solved(many, with_rows(right, order), False, unit=True)
        return unflat(solved(many, half, True), b)
    turned = many.mH
    half = solved(turned, right, False)
    return unflat(with_rows(solved(turned, half, True, unit=True), order.argsort(1)), b)
