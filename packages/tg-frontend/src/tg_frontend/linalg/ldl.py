"""Symmetric and Hermitian matrices that need not be definite: Bunch's and Kaufman's decomposition, solving by it.

Source: J. R. Bunch and L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems",
Mathematics of Computation 31, 1977, algorithm A. How factors and exchanges are kept is LAPACK's way (dsytf2, zhetf2,
dsytrs).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from .checked import first_failure
from .matrices import check_matrix, diagonal_of, flat, lower, mirrored, numbers, unflat
from .triangular import together

_ALPHA = (1 + math.sqrt(17)) / 8
"""A pivot is taken alone if it is at least this part of what stands beside it: so elements grow least."""


class LDLFactor(NamedTuple):
    """Both factors in one matrix, and how rows were exchanged; see :func:`ldl_factor`."""

    LD: Tensor
    pivots: Tensor


class LDLFactorInfo(NamedTuple):
    """See :func:`ldl_factor`; and for each matrix which block of D is the first that is 0, from 1; 0 if none is."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


# Elements are chosen by masks and sums: unlike that of a gather, the gradient of those is possible inside of a loop.


def _at(x: Tensor, place: Tensor) -> Tensor:
    """What stands at a place (count, 1), or (1, 1), along axis 1 of each of (count, n) or (count, n, m)."""
    here = numbers(x._ints()[1], x).reshape((1, -1)) == place
    return (here if x.ndim == 2 else here.unsqueeze(2)).where(x, 0).sum(1, keepdim=True)


def _swapped(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Two rows (count, 1), or (1, 1), of each of (count, n, m) exchanged."""
    place = numbers(x._ints()[1], x).reshape((1, -1))
    first, second = (place == one).unsqueeze(2), (place == other).unsqueeze(2)
    return first.where(_at(x, other), second.where(_at(x, one), x))


def _size(x: Tensor) -> Tensor:
    """The magnitudes that are compared: of complex elements those of their parts added, as LAPACK has it."""
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


def _conjugate(x: Tensor, hermitian: bool) -> Tensor:
    return x.conj() if hermitian else x


def _own(x: Tensor, hermitian: bool) -> Tensor:
    """An element of the diagonal: of a Hermitian matrix it is real, but for what is rounded."""
    return x.real.cast(x.dtype) if hermitian else x


def factored(a: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Eliminates (count, n, n), of which the lower triangle is read.

    Args:
      a: the matrices.
      hermitian: that they are the conjugates of their transposes; of real ones it is False.

    Returns:
      Both factors in one matrix (count, n, n); pivots (count, n); and which blocks are 0 (count, n).
    """
    count, n, _ = a._ints()
    place = numbers(n, a).reshape((1, -1))
    both = mirrored(a) if hermitian else lower(a) + lower(a, -1).mT
    no = Tensor.zeros(count, 1, dtype=dtypes.bool, device=a.device)
    nothing = Tensor.zeros(count, n, dtype=a.dtype, device=a.device)
    start = (both, no, nothing, Tensor.zeros(count, 1, dtype=dtypes.int32, device=a.device))

    def step(state: Any, k: Tensor) -> tuple[Any, Any]:
        rest, pending, second, partner = state
        k = k.reshape((1, 1))
        here = _at(rest, k).squeeze(1)  # as good as the column, of which it may be the conjugate
        behind = (place > k).where(_size(here), -1)
        pivot = _size(_own(_at(here, k), hermitian))
        best = behind.detach().argmax(1, keepdim=True).cast(dtypes.int32)
        most = behind.amax(1, keepdim=True).maximum(0)
        best = (k < n - 1).where(best, k)
        beside = _at(rest, best).squeeze(1)
        most_beside = ((place >= k) & (place != best)).where(_size(beside), 0).amax(1, keepdim=True)
        zero = (pivot.maximum(most) == 0) & pending.logical_not()
        alone = pivot >= _ALPHA * most
        alone = alone | (pivot * most_beside >= _ALPHA * most * most)
        other_alone = alone.logical_not() & (_size(_own(_at(beside, best), hermitian)) >= _ALPHA * most_beside)
        double = (alone | other_alone).logical_not() & pending.logical_not()
        # which rows meet: k, or k + 1 of two, and what takes its place
        from_place = k + double.cast(dtypes.int32)
        to_place = (alone | zero | pending).where(from_place, best)
        across = _conjugate(_swapped(rest, from_place, to_place).mT, hermitian)
        moved = _swapped(across, from_place, to_place)
        next_place = (k + 1).clamp(0, n - 1)
        one, two = (_conjugate(_at(moved, row).squeeze(1), hermitian) for row in (k, next_place))
        d11, d21, d22 = _own(_at(one, k), hermitian), _at(one, next_place), _own(_at(two, next_place), hermitian)
        # of two pivots: the inverse of their block, scaled by what is beside the diagonal, which is the greatest
        scale = double.where(d21, 1)
        other = _conjugate(scale, hermitian)
        p, q = d22 / scale, d11 / other
        apart = p * q - 1
        below = place > k + double.cast(dtypes.int32)
        single = below.where(one / (zero | double | pending).where(1, d11), 0)
        left = below.where((p * one - two) / double.where(apart * other, 1), 0)
        right = below.where((q * two - one) / double.where(apart * scale, 1), 0)
        factor = double.where(left, single)
        follows = double.where(right, 0)
        down = factor.unsqueeze(2) * below.where(_conjugate(one, hermitian), 0).unsqueeze(1)
        down = down + follows.unsqueeze(2) * below.where(_conjugate(two, hermitian), 0).unsqueeze(1)
        kept = (pending | zero).unsqueeze(2)
        after = kept.where(rest, moved - down)
        column = factor + (place == k).where(d11, 0) + ((place == next_place) & double).where(d21, 0)
        column = pending.where(second, zero.where((place == k).where(d11, 0), column))
        pivots = pending.where(-partner - 1, double.where(-to_place - 1, to_place + 1)).squeeze(1)
        stored = follows + (place == next_place).where(d22, 0)
        return (after, double, stored, to_place), (column, pivots, zero.squeeze(1))

    _, (columns, pivots, zeros) = scan(step, start, numbers(n, a))
    return columns.permute(1, 2, 0), pivots.transpose(0, 1), zeros.transpose(0, 1)


def _checked(a: Tensor, hermitian: bool, what: str) -> bool:
    """Whether elements are conjugated; see :func:`factored`."""
    check_matrix(a, what, square=True)
    if not isinstance(hermitian, bool):
        raise TypeError(f"{what}: hermitian is True or False, got {hermitian!r}")
    return hermitian and a.is_complex()


def ldl_factor_ex(a: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorInfo:
    """:func:`ldl_factor`, and which matrices are singular.

    Args:
      a: shape (…, n, n), of which the lower triangle is read.
      hermitian: that they are the conjugates of their transposes, not the transposes; of real numbers that is the same.
      check_errors: raise where one is singular; the result is computed for that.

    Raises:
      ValueError: if the matrices are not square.
      LinAlgError: if one is singular, and that is to be checked.
      TypeError: if they hold neither float32, float64 nor complex numbers.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.ldl_factor_ex(Tensor([[0.0, 1.0], [1.0, 0.0]])).info
      Tensor(0)
    """
    what = "ldl_factor_ex"
    conjugated = _checked(a, hermitian, what)
    if 0 in a._ints():
        return LDLFactorInfo(
            a * 1,
            Tensor.zeros(*a._ints()[:-1], dtype=dtypes.int32, device=a.device),
            Tensor.zeros(*a._ints()[:-2], dtype=dtypes.int32, device=a.device),
        )
    both, pivots, zeros = factored(flat(a), conjugated)
    lead = a.shape[:-2]
    failed = zeros.reshape((*lead, a.shape[-1]))
    info = first_failure(failed, check_errors, what, "a matrix is singular: 0 is the block number")
    return LDLFactorInfo(unflat(both, a), pivots.reshape((*lead, a.shape[-1])), info)


def ldl_factor(a: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """Symmetric matrices that need not be definite: a = P @ L @ D @ L.T @ P.T, or with L.mH if they are Hermitian.

    D has blocks of one or two rows on its diagonal, and L has ones there.

    Args:
      a: shape (…, n, n), of which the lower triangle is read.
      hermitian: that they are the conjugates of their transposes, not the transposes; of real numbers that is the same.

    Returns:
      ``LD``, shape (…, n, n): L below the blocks, D in them. ``pivots``, shape (…, n), int32: a number k above 0 says
      that row k, from 1, was exchanged with this one, whose block has one row; of a block of two rows both say -k, and
      row k was exchanged with the second.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold neither float32, float64 nor complex numbers.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.ldl_factor(Tensor([[4.0, 2.0], [2.0, -5.0]])).LD
      Tensor([[ 4. ,  0. ],
              [ 0.5, -6. ]])
    """
    _checked(a, hermitian, "ldl_factor")
    found = ldl_factor_ex(a, hermitian=hermitian)
    return LDLFactor(found.LD, found.pivots)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution of a @ x = b from what :func:`ldl_factor` gave for a. Leading axes broadcast.

    Args:
      LD: shape (…, n, n).
      pivots: shape (…, n), integers.
      B: shape (…, n, m).
      hermitian: that they are the conjugates of their transposes, not the transposes; of real numbers that is the same.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes do not.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> factors = linalg.ldl_factor(Tensor([[0.0, 2.0], [2.0, 1.0]]))
      >>> linalg.ldl_solve(*factors, Tensor([[4.0], [3.0]]))
      Tensor([[0.5],
              [2. ]])
    """
    what = "ldl_solve"
    conjugated = _checked(LD, hermitian, what)
    check_matrix(B, what)
    if LD.shape[-1] != B.shape[-2] or pivots.shape != LD.shape[:-1]:
        raise ValueError(f"{what}: shapes {LD.shape}, {pivots.shape} and {B.shape} do not fit")
    if not dtypes.is_int(pivots.dtype):
        raise TypeError(f"{what}: pivots are integers, got a tensor of {pivots.dtype.name}")
    factors, right = together(LD, B, what)
    if 0 in right._ints():
        return right * 1
    places = pivots.cast(dtypes.int32).expand(*factors.shape[:-1]).reshape((-1, factors._ints()[-1]))
    return unflat(_solved(flat(factors), places, flat(right), conjugated), right)


def _solved(factors: Tensor, pivots: Tensor, b: Tensor, hermitian: bool) -> Tensor:
    """The solution of (count, n, n) and (count, n, m)."""
    n = factors._ints()[-1]
    place = numbers(n, b).reshape((1, -1, 1))
    first = _pairs(pivots)
    second = first[:, :1].zeros_like().cat(first[:, :-1], dim=1)
    target = pivots.abs() - 1
    # L without the blocks on the diagonal, and those: their diagonal, and what is beside it
    beside = factors.diagonal(-1, -2, -1).pad(((0, 0), (0, 1)))
    beside = first.where(beside, 0)
    row_number, column_number = numbers(n, b).reshape((1, -1, 1)), numbers(n, b).reshape((1, 1, -1))
    inside = (row_number == column_number + 1) & first.unsqueeze(1)
    left = inside.where(0, lower(factors, -1))

    def exchanged(x: Tensor, k: Tensor, to: Tensor, double: Tensor, is_second: Tensor) -> Tensor:
        """With row k, or the second of two, in another place."""
        own = k.reshape((1, 1)) + double.unsqueeze(1).cast(dtypes.int32)
        return _swapped(x, own, is_second.unsqueeze(1).where(own, to.unsqueeze(1)))

    def forward(x: Tensor, part: Any) -> tuple[Tensor, None]:
        k, column, *moves = part
        x = exchanged(x, k, *moves)
        return x - column.unsqueeze(2) * _at(x, k.reshape((1, 1))), None

    by_step = (
        numbers(n, b),
        left.permute(2, 0, 1),
        target.transpose(0, 1),
        first.transpose(0, 1),
        second.transpose(0, 1),
    )
    x, _ = scan(forward, b, by_step)
    x = _divided(x, _own(diagonal_of(factors), hermitian), beside, first, second, hermitian)

    def backward(x: Tensor, part: Any) -> tuple[Tensor, None]:
        k, column, *moves = part
        here = place == k.reshape((1, 1, 1))
        through = (_conjugate(column, hermitian).unsqueeze(2) * x).sum(1, keepdim=True)
        return exchanged(x - here.where(through, 0), k, *moves), None

    found: Tensor = scan(backward, x, tuple(part.flip(0) for part in by_step))[0]
    return found


def _pairs(pivots: Tensor) -> Tensor:
    """Which of (count, n) are the first of two rows: negative ones are, in turn."""
    negative = (pivots < 0).transpose(0, 1)

    def step(open_: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
        first = now & open_.logical_not()
        return first, first

    _, found = scan(step, negative[0].zeros_like(), negative)
    out: Tensor = found.transpose(0, 1)
    return out


def _divided(x: Tensor, diagonal: Tensor, beside: Tensor, first: Tensor, second: Tensor, hermitian: bool) -> Tensor:
    """The solution of D @ y = x: blocks of one row, or of two."""
    before = beside[:, :1].zeros_like().cat(beside[:, :-1], dim=1)  # of second rows: what is left of the diagonal
    up, down = x[:, :1].zeros_like().cat(x[:, :-1], dim=1), x[:, 1:].cat(x[:, :1].zeros_like(), dim=1)
    last = diagonal[:, :1].zeros_like()
    above, under = last.cat(diagonal[:, :-1], dim=1), diagonal[:, 1:].cat(last, dim=1)
    # of d11, d21, d22: scaled by d21, which is the greatest
    off = first.where(_conjugate(beside, hermitian), second.where(before, 1))
    across = _conjugate(off, hermitian)
    other = first.where(under, second.where(above, 0)) / off
    own = diagonal / across
    paired = (other.unsqueeze(2) * x - first.unsqueeze(2).where(down, up)) / ((own * other - 1) * across).unsqueeze(2)
    double = (first | second).unsqueeze(2)
    return double.where(paired, x / (first | second).where(1, diagonal).unsqueeze(2))
