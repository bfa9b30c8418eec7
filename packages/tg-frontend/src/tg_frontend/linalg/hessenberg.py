"""General matrices made zero below the elements that are next below the diagonal, by reflections from both sides.

For each column there is one product of the whole matrix and a vector; all else is done for a block of columns at a
time: with Q = 1 - V @ T @ V.T the matrix is Q.T @ (A - Y @ V.T), where Y is A @ V @ T. Source: Quintana-Orti and van de
Geijn, "Improving the performance of reduction to Hessenberg form", 2006.
"""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from ..transform.scan import scan
from .compact import against, applied, axis_of, nothing
from .matrices import BLOCK, adjoint, column, numbers, row, upper


def hessenberg(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """H = Q.T @ A @ Q of (count, n, n) whose elements are about 1 at most, with n >= 3.

    Returns:
      H; the axes of the reflections that Q is the product of, (blocks, count, n or more, size); and T of each block.
    """
    count, n, _ = a._ints()
    size = min(BLOCK, n)
    more = -n % size
    rows, inside = numbers(n + more, a), numbers(size, a)

    def block(rest: Tensor, j: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        def step(state: Any, i: Tensor) -> tuple[Any, None]:
            v, y, t = state
            k, own = j * size + i, inside == i
            here = column(rest, k) - applied(y, row(v, k))
            here = (here - applied(v, against(t, against(v, here.contiguous())))).contiguous()
            axis, _ = axis_of((rows > k).where(here, 0), rows, k + 1)
            axis = axis.contiguous()
            beside = against(v, axis).contiguous()
            reached = (rest @ axis.unsqueeze(2)).squeeze(2) - applied(y, beside)
            before = own.where(1, -applied(t, beside))
            return (
                own.where(axis.unsqueeze(2), v),
                own.where(reached.unsqueeze(2), y),
                own.where(before.unsqueeze(2), t),
            ), None

        start = nothing(count, n + more, size, a), nothing(count, n + more, size, a), nothing(count, size, size, a)
        (v, y, t), _ = scan(step, start, inside)
        # products alike, and like those of `multiplied`, are one kernel
        rest = (rest - y @ adjoint(v).contiguous()).contiguous()
        return rest - v @ (adjoint(t).contiguous() @ (adjoint(v) @ rest)), (v, t)

    padded = a.pad(((0, 0), (0, more), (0, more))).contiguous()
    rest, (axes, triangles) = scan(block, padded, numbers((n + more) // size, a))
    return upper(rest[:, :n, :n], -1), axes, triangles
