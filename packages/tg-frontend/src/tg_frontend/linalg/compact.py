"""Reflections by blocks: so many of them in a row are the identity less a product of three thin matrices.

A reflection here is 1 - v @ v.T with v @ v = 2, or the identity with v = 0. For axes V, one a column, the product of
their reflections is 1 - V @ T @ V.T, where T is the inverse of the upper triangle of V.T @ V with ones on the diagonal.
Of complex numbers a transpose is meant with its elements conjugated.
Sources: Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder transformations",
1989; Puglisi, "Modification of the Householder method based on the compact WY representation", 1992.
"""

from __future__ import annotations

from typing import Any

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .matrices import adjoint, eye, phase, square, upper
from .triangular import substituted


def negligible_square(x: Tensor) -> float:
    """A sum of squares up to which is no length: single squares in it may have vanished."""
    return 2.0**-900 if x.real.dtype is dtypes.float64 else 2.0**-100


def nothing(count: int, m: int, size: int, like: Tensor) -> Tensor:
    """Zeros (count, m, size), for axes that are not there yet."""
    return Tensor.zeros(count, m, size, dtype=like.dtype, device=like.device).contiguous()


def applied(thin: Tensor, x: Tensor) -> Tensor:
    """(count, m, size) @ (count, size)."""
    return (thin * x.unsqueeze(1)).sum(2)


def against(thin: Tensor, x: Tensor) -> Tensor:
    """(count, m, size).T @ (count, m): shape (count, size)."""
    return (thin.conj() * x.unsqueeze(2)).sum(1)


def axis_of(here: Tensor, rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The reflection that makes zeros of all elements of vectors but one.

    Args:
      here: shape (count, m), with elements of 1 at most, and zeros before place ``k``.
      rows: 0 to m - 1.
      k: the place of the element that stays.

    Returns:
      The axis v (count, m), and what the element becomes (count, 1), which is complex where elements are.
    """
    first = (rows == k).where(here, 0).sum(1, keepdim=True)
    beyond = (rows > k).where(here, 0)
    rest = square(beyond).sum(1, keepdim=True)
    nothing = rest <= negligible_square(here)
    size = (square(first) + rest).sqrt()
    signed = phase(first) * size if first.is_complex() else (first < 0).where(-size, size)
    pivot = first + signed
    factor = nothing.where(0, (2 / nothing.where(1, square(pivot) + rest)).sqrt())
    return (rows == k).where(pivot, beyond) * factor, nothing.where(first, -signed)


def skew_axis_of(here: Tensor, rows: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`axis_of`, of complex numbers, so that what stays is real, as LAPACK's ``larfg`` does it.

    Returns:
      The axis v (count, m), and a real number s (count, 1): 1 - v @ v.T / (1 - 1j * s) makes the zeros, and is unitary
      whatever s is, as v @ v = 2.
    """
    first = (rows == k).where(here, 0).sum(1, keepdim=True)
    beyond = (rows > k).where(here, 0)
    rest = square(beyond).sum(1, keepdim=True)
    nothing = (rest <= negligible_square(here)) & (first.imag == 0)
    size = (square(first) + rest).sqrt()
    stays = (first.real < 0).where(size, -size)  # of the other sign, so that nothing is lost
    pivot = first - stays
    factor = nothing.where(0, 2 / nothing.where(1, square(pivot) + rest))
    return (rows == k).where(pivot, beyond) * factor.sqrt(), factor * stays * first.imag


def triangle_of(axes: Tensor, skews: Tensor | None = None) -> Tensor:
    """T of the axes (count, m, size): the product of their reflections is 1 - axes @ T @ axes.T.

    Args:
      axes: the axes.
      skews: the numbers s of each, (count, size), where they are those of :func:`skew_axis_of`.
    """
    count, _, size = axes._ints()
    ones = eye(size, axes).expand(count, size, size).contiguous()
    inverse = upper(adjoint(axes) @ axes, 1)
    if skews is not None:
        inverse = inverse + Tensor.complex(skews.full_like(1), skews).diag_embed()
    return substituted(inverse.contiguous(), ones, True, skews is None)


@traced_once
def multiplied(axes: Tensor, x: Tensor, triangles: Tensor | None = None) -> Tensor:
    """The product of all reflections, times matrices.

    Args:
      axes: shape (blocks, count, m, size), in the order of the product; rows beyond those of ``x`` are zeros.
      x: shape (count, k, n), with k <= m.
      triangles: T of each block where it is there already, (blocks, count, size, size).
    """
    blocks, count, m, size = axes._ints()
    k = x._ints()[1]
    if triangles is None:
        triangles = triangle_of(axes.reshape((blocks * count, m, size))).reshape((blocks, count, size, size))

    def step(x: Tensor, part: Any) -> tuple[Tensor, None]:
        own, triangle = part
        return x - own @ (triangle @ (adjoint(own) @ x)), None

    x, _ = scan(step, x.pad(((0, 0), (0, m - k), (0, 0))).contiguous(), (axes, triangles), reverse=True)
    return x[:, :k]
