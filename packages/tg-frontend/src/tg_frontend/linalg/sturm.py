"""Eigenvalues of many small symmetric matrices, and singular values of many small ones, side by side: without vectors.

A matrix becomes tridiagonal or bidiagonal by reflections. Of a tridiagonal one, as many eigenvalues are less than x as
the quotients of its leading minors less x have negative signs; so each eigenvalue is found by bisection, all of them
and all matrices at once, to the last bit that the norm of the matrix has. The singular values of a bidiagonal matrix
are the positive eigenvalues of a tridiagonal one with zeros on the diagonal, and its elements in turn beside it.

Sources: Golub and Van Loan, "Matrix Computations", 4th edition, sections 8.3.1, 8.4.1, 5.4.8 and 8.6.1; Demmel, Dhillon
and Ren, "On the correctness of some bisection-like parallel eigenvalue algorithms in floating point arithmetic", 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from .compact import axis_of
from .matrices import epsilon, numbers

_SINGLE_STEPS = 20
"""Halvings in single precision: an interval is still wider then than what counts are wrong by."""


def tridiagonal(a: Tensor) -> tuple[Tensor, Tensor]:
    """What is on the diagonal, and what is beside it, of symmetric (groups, n, n, lanes) made tridiagonal.

    Args:
      a: real, with elements of 1 at most.

    Returns:
      Both (groups, n, lanes); the last of the second is 0.
    """
    n = a._ints()[1]
    rows = numbers(n, a).reshape((n, 1))

    def step(rest: Tensor, k: Tensor) -> Any:
        here = rest.index_select(2, k.reshape((1,))).squeeze(2).contiguous()
        axis, beside = axis_of((rows > k).where(here, 0), rows, k + 1)
        axis = axis.contiguous()
        reached = (rest * axis.unsqueeze(1)).sum(2)
        reached = (rows > k).where(reached, 0).contiguous()
        other = (reached - (reached * axis).sum(1, keepdim=True) * 0.5 * axis).contiguous()
        less = rest - axis.unsqueeze(2) * other.unsqueeze(1) - other.unsqueeze(2) * axis.unsqueeze(1)
        return less, ((rows == k).where(here, 0).sum(1), beside.squeeze(1))

    _, (along, beside) = scan(step, a, numbers(n, a))
    return along.transpose(0, 1), beside.transpose(0, 1)


def bidiagonal(a: Tensor) -> tuple[Tensor, Tensor]:
    """What is on the diagonal, and what is above it, of (groups, m, n, lanes) with m >= n made bidiagonal.

    Args:
      a: real, with elements of 1 at most.

    Returns:
      Both (groups, n, lanes); the last of the second is 0.
    """
    _, m, n, _ = a._ints()
    rows, columns = numbers(m, a).reshape((m, 1)), numbers(n, a).reshape((n, 1))

    def step(rest: Tensor, k: Tensor) -> Any:
        own = k.reshape((1,))
        here = (rows >= k).where(rest.index_select(2, own).squeeze(2), 0).contiguous()
        left, along = axis_of(here, rows, k)
        left = left.contiguous()
        across = (rest * left.unsqueeze(2)).sum(1).contiguous()  # rest - left @ across.T is what the left one leaves
        first = left.index_select(1, own)
        here = (columns > k).where(rest.index_select(1, own).squeeze(1) - first * across, 0).contiguous()
        right, above = axis_of(here, columns, k + 1)
        right = right.contiguous()
        reached = (rest * right.unsqueeze(1)).sum(2) - left * (across * right).sum(1, keepdim=True)
        reached = reached.contiguous()
        less = rest - left.unsqueeze(2) * across.unsqueeze(1) - reached.unsqueeze(2) * right.unsqueeze(1)
        return less, (along.squeeze(1), above.squeeze(1))

    _, (along, above) = scan(step, a, numbers(n, a))
    return along.transpose(0, 1), above.transpose(0, 1)


def eigenvalues(d: Sequence[Tensor], e: Sequence[Tensor], low: Tensor, bound: Tensor, count: int) -> Tensor:
    """The greatest eigenvalues of symmetric tridiagonal matrices, in ascending order.

    Of doubles the first bits are found in single precision, which gives counts that are right for matrices near these.

    Args:
      d: what is on the diagonal, (groups, 1, lanes) each.
      e: what is beside it, one less.
      low: none of those in question is less, (groups, 1, lanes).
      bound: no eigenvalue is of a greater magnitude, (groups, 1, lanes).
      count: how many are found.

    Returns:
      Shape (groups, count, lanes); 0 where that is as near as floats tell.
    """
    groups, _, lanes = bound._ints()
    squares = [x * x for x in e]
    first, last = (x.expand(groups, count, lanes) for x in (low, bound))
    steps, wide = 1 - round(log2(epsilon(bound))) + 1, bound.dtype is dtypes.float64
    if wide:
        along, beside, ends = ([x.cast(dtypes.float32) for x in part] for part in (d, squares, (first, last)))
        first, last = (x.cast(bound.dtype) for x in _halved(along, beside, ends, _SINGLE_STEPS))
        beyond = bound * 2.0**-_SINGLE_STEPS
        first, last, steps = first - beyond, last + beyond, steps + 2 - _SINGLE_STEPS
    first, last = _halved(d, squares, (first, last), steps)
    found = (first + last) * 0.5
    return (found.abs() <= bound * (epsilon(bound) / 4)).where(0, found)


def _halved(
    d: Sequence[Tensor], squares: Sequence[Tensor], ends: Sequence[Tensor], steps: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Intervals (groups, count, lanes) of the greatest eigenvalues, halved so many times.

    Args:
      d: what is on the diagonal.
      squares: of what is beside it.
      ends: the least and the greatest number of each interval.
      steps: how many times.
    """
    low, high = (x.contiguous() for x in ends)
    count = low._ints()[1]
    tiny = 2.0**-960 if low.dtype is dtypes.float64 else 2.0**-120
    place = numbers(count, low).reshape((count, 1)) + (len(d) - count)

    def counted(quotient: Tensor) -> Tensor:
        """It counts with the sign with which it divides: one that is 0 is negative in both."""
        return (quotient.abs() < tiny).where(-tiny, quotient)

    def halve(state: Any, _: None) -> Any:
        low, high = state
        middle = (low + high) * 0.5
        quotient = counted(d[0] - middle)
        less = (quotient < 0).cast(dtypes.int32)
        for one, square in zip(d[1:], squares, strict=True):
            quotient = counted(one - middle - square / quotient)
            less = less + (quotient < 0).cast(dtypes.int32)
        below = less <= place
        return (below.where(middle, low), below.where(high, middle)), None

    (low, high), _ = scan(halve, (low, high), length=steps)
    return low, high


def symmetric_values(a: Tensor) -> Tensor:
    """The ascending eigenvalues of real symmetric (groups, n, n, lanes) with elements of 1 at most."""
    n = a._ints()[1]
    d, e = (x.contiguous() for x in tridiagonal(a))
    bound = d.abs().max(1, keepdim=True) + 2 * e.abs().max(1, keepdim=True)
    bound = _more(bound)
    return eigenvalues(_each(d, n), _each(e, n - 1), -bound, bound, n)


def singular_values(a: Tensor) -> Tensor:
    """The ascending singular values of real (groups, m, n, lanes) with m >= n and elements of 1 at most."""
    n = a._ints()[2]
    d, e = (x.contiguous() for x in bidiagonal(a))
    bound = d.abs().max(1, keepdim=True) + e.abs().max(1, keepdim=True)
    beside = [x for pair in zip(_each(d, n), _each(e, n), strict=True) for x in pair][:-1]
    return eigenvalues([bound * 0] * (2 * n), beside, bound * 0, _more(bound), n)


def _each(x: Tensor, count: int) -> list[Tensor]:
    """The first of (groups, n, lanes), (groups, 1, lanes) each."""
    return [x[:, i : i + 1] for i in range(count)]


def _more(bound: Tensor) -> Tensor:
    """A bound that rounding has not made too small; not 0."""
    return (bound * (1 + 2.0**-10) + 2.0**-60).contiguous()
