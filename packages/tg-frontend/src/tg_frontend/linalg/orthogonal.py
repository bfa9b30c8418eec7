"""Orthogonal factors by Householder's reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from .matrices import adjoint, check_matrix, column, diagonal_of, eye, flat, lower, numbers, unflat, upper
from .triangular import solved


class QR(NamedTuple):
    """a = Q @ R."""

    Q: Tensor
    R: Tensor


def reflected(a: Tensor) -> tuple[Tensor, Tensor]:
    """All of Q (count, m, m) and of R (count, m, n) of (count, m, n), one reflection after the other.

    A column that is scaled by its greatest element first neither overflows nor vanishes when it is squared.
    """
    count, m, n = a._ints()
    rows = numbers(m, a)
    start = eye(m, a).expand(count, m, m).contiguous()
    if 0 in (count, m, n):
        return start, a

    def step(state: Any, k: Tensor) -> tuple[Any, None]:
        rest, turned = state
        here = (rows >= k).where(column(rest, k), 0)
        most = here.abs().max(1, keepdim=True)
        scaled = here / (most == 0).where(1, most)
        first = (rows == k).where(scaled, 0).sum(1, keepdim=True)
        beyond = (rows > k).where(scaled, 0)
        rest_norm = (beyond * beyond).sum(1, keepdim=True)
        size = (first * first + rest_norm).sqrt()
        signed = (first < 0).where(-size, size)
        pivot = first + signed
        axis = (rows == k).where(pivot, beyond)
        # nothing is left to reflect where all below is 0 already
        length = pivot * pivot + rest_norm
        factor = ((rest_norm == 0) | (length == 0)).where(0, 2 / (length == 0).where(1, length))
        axis, factor = axis.unsqueeze(2), factor.unsqueeze(2)
        rest = rest - axis * (factor * (adjoint(axis) @ rest))
        turned = turned - ((turned @ axis) * factor) * adjoint(axis)
        return (rest, turned), None

    (rest, turned), _ = scan(step, (a, start), numbers(min(m, n), a))
    return turned, upper(rest)


class _QR(Function):
    """Source of the gradient: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with
    application in optimum experimental design", 2012; for matrices that are at least as high as wide."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, reduced: bool) -> tuple[Tensor, Tensor]:
        turned, rest = reflected(a)
        least = min(a._ints()[1:])
        q, r = (turned[:, :, :least], rest[:, :least]) if reduced else (turned, rest)
        ctx.save_for_backward(q, r)
        return q, r

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_q, of_r = grads
        q, r = ctx.saved_tensors
        m, n = q._ints()[1], r._ints()[2]
        if q._ints()[2] != min(m, n):
            raise NotImplementedError("qr: there is a gradient in mode 'reduced' alone")
        if m < n:  # what is beside the square part follows from it
            square, beside = r[:, :, :m], r[:, :, m:]
            of_beside = q @ of_r[:, :, m:]
            more = (q @ beside) @ adjoint(of_r[:, :, m:])  # a2 = Q R2: R2 is Q.T a2
            into = _into_square(q, square, of_q + more, of_r[:, :, :m])
            return Tensor.cat(into, of_beside, dim=2), None
        return _into_square(q, r, of_q, of_r), None


def _into_square(q: Tensor, r: Tensor, of_q: Tensor, of_r: Tensor) -> Tensor:
    inner = r @ adjoint(upper(of_r)) - adjoint(of_q) @ q
    both = lower(inner) + adjoint(lower(inner, -1))
    return adjoint(solved(r, adjoint(of_q + q @ both), True))


def qr(a: Tensor, mode: str = "reduced") -> QR:
    """Orthonormal columns Q and an upper triangle R with a = Q @ R, by Householder's reflections.

    Args:
      a: shape (…, m, n).
      mode: ``"reduced"`` for shapes (…, m, k) and (…, k, n), k being the lesser of m and n; ``"complete"`` for
        (…, m, m) and (…, m, n); ``"r"`` for R of the first, Q being empty.

    Raises:
      ValueError: if there is no matrix, or no such mode.
      TypeError: if it holds anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.qr(Tensor([[3.0], [4.0]])).R.abs()
      Tensor([[5.]])
    """
    check_matrix(a, "qr")
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode {mode!r}; there are reduced, complete, r")
    q, r = _QR.apply(flat(a), mode != "complete")
    return QR(Tensor.empty(0, dtype=a.dtype, device=a.device) if mode == "r" else unflat(q, a), unflat(r, a))


def full_rank_signs(r: Tensor) -> Tensor:
    """1 or -1 by the diagonal of R: shape (count, k)."""
    return (diagonal_of(r) < 0).where(-1.0, 1.0).cast(r.dtype)


def householder_product(a: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections, as LAPACK's ``geqrf`` keeps them.

    Reflection i is ``1 - tau[i] * v @ v.T``, where v is 0 above place i, 1 there, and below what ``a`` has in column i.

    Args:
      a: shape (…, m, n), with m >= n.
      tau: shape (…, k), with k <= n.

    Returns:
      Shape (…, m, n).

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32 or float64, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.householder_product(Tensor([[0.0], [1.0]]), Tensor([1.0]))
      Tensor([[ 0.],
              [-1.]])
    """
    what = "householder_product"
    check_matrix(a, what)
    m, n = a._ints()[-2:]
    if not isinstance(tau, Tensor) or tau.dtype is not a.dtype:
        raise TypeError(f"{what}: a tensor of {a.dtype.name} is wanted for tau")
    if m < n or tau.ndim != a.ndim - 1 or tau.shape[:-1] != a.shape[:-2] or tau._ints()[-1] > n:
        raise ValueError(f"{what}: reflections of shape {a.shape} and factors of shape {tau.shape} do not fit")
    count, k = flat(a)._ints()[0], tau._ints()[-1]
    rows = numbers(m, a)
    start = eye(m, a)[:, :n].expand(count, m, n).contiguous()
    if 0 in (count, n, k):
        return unflat(start, a)

    def step(state: Any, i: Tensor) -> tuple[Any, None]:
        turned, kept, factors = state
        axis = ((rows > i).where(column(kept, i), 0) + (rows == i).cast(a.dtype)).unsqueeze(2)
        factor = factors.index_select(1, i.reshape((1,))).unsqueeze(2)
        return (turned - axis * (factor * (adjoint(axis) @ turned)), kept, factors), None

    (turned, _, _), _ = scan(step, (start, flat(a), tau.reshape((count, k))), numbers(k, a).flip(0))
    return unflat(turned, a)
