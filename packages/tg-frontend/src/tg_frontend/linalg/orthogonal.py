"""Orthogonal factors by Householder's reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .compact import axis_of, multiplied, negligible_square, skew_axis_of, triangle_of
from .matrices import (
    BLOCK,
    adjoint,
    check_matrix,
    column,
    extent,
    eye,
    flat,
    mirrored,
    numbers,
    square,
    unflat,
    upper,
)
from .triangular import solved


class QR(NamedTuple):
    """a = Q @ R."""

    Q: Tensor
    R: Tensor


@traced_once
def reflected(a: Tensor, whole: bool) -> tuple[Tensor, Tensor]:
    """Q (count, m, k) and R (count, k, n) of (count, m, n), block after block of columns: see ``compact``.

    Args:
      a: the matrices.
      whole: whether all columns of Q are wanted, k being m; else it is the lesser of m and n.
    """
    count, m, n = a._ints()
    least = min(m, n)
    k = m if whole else least
    first = eye(m, a)[:, :k].expand(count, m, k).contiguous()
    if 0 in (count, m, n):
        return first, a[:, :k]
    size = min(BLOCK, least)
    rows, columns, inside = numbers(m, a), numbers(n + -n % size, a), numbers(size, a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        own = j * size + inside

        def step(panel: Tensor, i: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            k = j * size + i
            here = (rows >= k).where(column(panel, i), 0)
            most = extent(here).max(1, keepdim=True)
            here = (here / (most == 0).where(1, most)).contiguous()
            if not here.is_complex():
                axis = axis_of(here, rows, k)[0].contiguous()
                return panel - axis.unsqueeze(2) * (axis.unsqueeze(1) @ panel), (axis, axis[:, :0])
            axis, skew = skew_axis_of(here, rows, k)
            axis = axis.contiguous()
            along = (axis.conj().unsqueeze(1) @ panel) / Tensor.complex(skew.full_like(1), -skew).unsqueeze(2)
            return panel - axis.unsqueeze(2) * along, (axis, skew)

        panel, (axes, skews) = scan(step, rest.index_select(2, own).contiguous(), inside)
        axes = axes.permute(1, 2, 0).contiguous()
        triangle = triangle_of(axes, skews.squeeze(2).T if a.is_complex() else None).contiguous()
        less = axes @ (adjoint(triangle) @ (adjoint(axes) @ rest))
        here = (columns >= j * size) & (columns < (j + 1) * size)
        done = panel.index_select(2, (columns - j * size).clamp(0, size - 1))
        return here.where(done, (columns >= j * size).where(rest - less, rest)), (axes, triangle)

    padded = a.pad(((0, 0), (0, 0), (0, -n % size))).contiguous()
    rest, (axes, triangles) = scan(block, padded, numbers(-(-least // size), a))
    q, r = multiplied(axes, first, triangles), upper(rest[:, :k, :n])
    if not a.is_complex():
        return q, r
    return q, _of_real_diagonal(r)


def _of_real_diagonal(r: Tensor) -> Tensor:
    """Triangles (count, k, n) without the imaginary parts on the diagonal."""
    k, n = r._ints()[1:]
    own = numbers(k, r).reshape((-1, 1)) == numbers(n, r)
    return Tensor.complex(r.real, own.where(0, r.imag))


def reflections(a: Tensor) -> tuple[Tensor, Tensor]:
    """R and the axes of the reflections in one matrix (…, m, n), and their factors (…, min(m, n)): LAPACK's ``geqrf``.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.
    """
    check_matrix(a, "geqrf")
    many = flat(a)
    count, m, n = many._ints()
    least = min(m, n)
    if 0 in (count, m, n):
        return a * 1, Tensor.zeros(*a._ints()[:-2], least, dtype=a.dtype, device=a.device)
    rows = numbers(m, a)

    def step(rest: Tensor, k: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        here = (rows >= k).where(column(rest, k), 0)
        most = extent(here).max(1, keepdim=True)
        axis, factor = _axis_and_factor(here / (most == 0).where(1, most), rows, k)
        rest = rest - axis.unsqueeze(2) * (factor.conj() * (axis.conj().unsqueeze(1) @ rest).squeeze(1)).unsqueeze(1)
        return rest, ((rows > k).where(axis, 0), factor.squeeze(1))  # an axis counts as 1 on the diagonal

    rest, (axes, factors) = scan(step, many, numbers(least, a))
    axes = axes.permute(1, 2, 0)
    if n > m:
        axes = axes.pad(((0, 0), (0, 0), (0, n - m)))
    return unflat(upper(rest) + axes, a), factors.transpose(0, 1).reshape((*a.shape[:-2], least))


def _axis_and_factor(here: Tensor, rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """An axis v (count, m), 1 at place ``k``, and a factor t (count, 1), such that 1 - t* v @ v.mH makes zeros below.

    What stays there is real, so that complex factors are not; see :func:`~.compact.axis_of` for the arguments.
    """
    first = (rows == k).where(here, 0).sum(1, keepdim=True)
    beyond = (rows > k).where(here, 0)
    rest = square(beyond).sum(1, keepdim=True)
    nothing = rest <= negligible_square(here)
    if here.is_complex():
        nothing = nothing & (first.imag == 0)
    size = (square(first) + rest).sqrt()
    stays = (first.real < 0).where(size, -size)  # of the other sign, so that nothing is lost
    pivot = first - stays
    factor = nothing.where(0, -pivot / nothing.where(1, stays))
    return (rows == k).where(1, nothing.where(0, beyond / nothing.where(1, pivot))), factor


class _QR(Function):
    """Source of the gradient: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with
    application in optimum experimental design", 2012; for matrices that are at least as high as wide."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, reduced: bool) -> tuple[Tensor, Tensor]:
        q, r = reflected(a, not reduced)
        ctx.save_for_backward(q, r)
        return q, r

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_q, of_r = grads
        q, r = ctx.saved_tensors
        m, n = q._ints()[1], r._ints()[2]
        if q._ints()[2] != min(m, n):
            raise RuntimeError(
                f"qr: mode 'complete' of {m} rows and {n} columns has no gradient: the last columns of Q may be any "
                "that complete a basis; mode='reduced' has one"
            )
        if m < n:  # what is beside the square part follows from it
            square, beside = r[:, :, :m], r[:, :, m:]
            of_beside = q @ of_r[:, :, m:]
            more = (q @ beside) @ adjoint(of_r[:, :, m:])  # a2 = Q R2: R2 is Q.T a2
            into = _into_square(q, square, of_q + more, of_r[:, :, :m])
            return Tensor.cat(into, of_beside, dim=2), None
        return _into_square(q, r, of_q, of_r), None


def _into_square(q: Tensor, r: Tensor, of_q: Tensor, of_r: Tensor) -> Tensor:
    inner = r @ adjoint(upper(of_r)) - adjoint(of_q) @ q
    both = mirrored(inner)
    return adjoint(solved(r, adjoint(of_q + q @ both), True))


def qr(a: Tensor, mode: str = "reduced") -> QR:
    """Orthonormal columns Q and an upper triangle R with a = Q @ R, by Householder's reflections.

    The diagonal of R is real, and its signs are LAPACK's, whose reflections these are: that of an element is the other
    than its real part has when its turn comes. Nothing but a convention chooses them: what is to be the same elsewhere
    is not to depend on it.

    Args:
      a: shape (…, m, n).
      mode: ``"reduced"`` for shapes (…, m, k) and (…, k, n), k being the lesser of m and n; ``"complete"`` for
        (…, m, m) and (…, m, n); ``"r"`` for R of the first, Q being empty.

    Raises:
      ValueError: if there is no matrix, or no such mode.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

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


def householder_product(a: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections, as LAPACK's ``geqrf`` keeps them.

    Reflection i is ``1 - tau[i] * v @ v.mH``, where v is 0 above place i, 1 there, and below it what ``a`` has in
    column i.

    Args:
      a: shape (…, m, n), with m >= n.
      tau: shape (…, k), with k <= n.

    Returns:
      Shape (…, m, n).

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.householder_product(Tensor([[0.0], [1.0]]), Tensor([1.0]))
      Tensor([[ 0.],
              [-1.]])
    """
    what = "householder_product"
    _check_reflections(a, tau, what)
    m, n = a._ints()[-2:]
    if m < n or tau._ints()[-1] > n:
        raise ValueError(f"{what}: reflections of shape {a.shape} and factors of shape {tau.shape} do not fit")
    many = flat(a)
    start = eye(m, a)[:, :n].expand(many._ints()[0], m, n).contiguous()
    return unflat(_in_turn(many, tau, start, reverse=True), a)


def reflected_by(a: Tensor, tau: Tensor, x: Tensor, left: bool, transpose: bool) -> Tensor:
    """Matrices times the whole product Q of reflections, which is not made: LAPACK's ``ormqr``.

    Args:
      a: shape (…, q, n); see :func:`householder_product`.
      tau: shape (…, k), with k <= min(q, n).
      x: shape (…, q, p), or (…, p, q) where Q stands on the right.
      left: whether it stands on the left.
      transpose: whether it is transposed, and complex elements conjugated.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.
    """
    what = "ormqr"
    _check_reflections(a, tau, what)
    check_matrix(x, what)
    if x.dtype is not a.dtype:
        raise TypeError(f"{what}: reflections of {a.dtype.name} and a matrix of {x.dtype.name}")
    if not left:
        return adjoint(reflected_by(a, tau, adjoint(x), True, not transpose))
    if x.shape[:-2] != a.shape[:-2] or x.shape[-2] != a.shape[-2] or tau._ints()[-1] > min(a._ints()[-2:]):
        raise ValueError(f"{what}: shapes {a.shape}, {tau.shape} and {x.shape} do not fit")
    return unflat(_in_turn(flat(a), tau.conj() if transpose else tau, flat(x), reverse=not transpose), x)


def _check_reflections(a: Tensor, tau: Tensor, what: str) -> None:
    check_matrix(a, what)
    if not isinstance(tau, Tensor) or tau.dtype is not a.dtype:
        raise TypeError(f"{what}: a tensor of {a.dtype.name} is wanted for tau")
    if tau.ndim != a.ndim - 1 or tau.shape[:-1] != a.shape[:-2]:
        raise ValueError(f"{what}: reflections of shape {a.shape} and factors of shape {tau.shape} do not fit")


def _in_turn(a: Tensor, tau: Tensor, x: Tensor, reverse: bool) -> Tensor:
    """(count, m, p) reflected by each of the axes in (count, m, n), the last one first with ``reverse``."""
    count, m, _ = a._ints()
    k, rows = tau._ints()[-1], numbers(m, a)
    if 0 in x._ints() or not k:
        return x * 1

    def step(state: Any, i: Tensor) -> tuple[Any, None]:
        turned, kept, factors = state
        axis = ((rows > i).where(column(kept, i), 0) + (rows == i).cast(a.dtype)).unsqueeze(2)
        factor = factors.index_select(1, i.reshape((1,))).unsqueeze(2)
        return (turned - axis * (factor * (adjoint(axis) @ turned)), kept, factors), None

    order = numbers(k, a)
    start = (x.contiguous(), a, tau.reshape((count, k)))
    (turned, _, _), _ = scan(step, start, order.flip(0) if reverse else order)
    out: Tensor = turned
    return out
