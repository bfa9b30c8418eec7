"""Decompositions that tell for which matrices they failed: PyTorch's names that end with ``_ex``."""

from __future__ import annotations

from typing import NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from .cholesky import cholesky
from .elimination import inverse_with_pivots, lu_factor, solved_with_pivots
from .matrices import LinAlgError, check_matrix, diagonal_of, numbers


class CholeskyInfo(NamedTuple):
    """The factors, and for each matrix the order of the first leading minor that is not positive; 0 if all are."""

    L: Tensor
    info: Tensor


class InverseInfo(NamedTuple):
    """The inverses, and for each matrix which pivot is the first that is 0, from 1; 0 if none is."""

    inverse: Tensor
    info: Tensor


class SolveInfo(NamedTuple):
    """The solutions, and for each matrix which pivot is the first that is 0, from 1; 0 if none is."""

    result: Tensor
    info: Tensor


class LUFactorInfo(NamedTuple):
    """See :func:`~tinytg.linalg.lu_factor`, and for each matrix which pivot is the first that is 0; 0 if none is."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def first_failure(failed: Tensor, check: bool, what: str, why: str) -> Tensor:
    """The first place, from 1, of (…, n) that has failed: int32 of shape (…); 0 where none has.

    Raises:
      LinAlgError: if ``check``, which reads it, and one has failed.
    """
    n = failed._ints()[-1]
    if not n:
        return Tensor.zeros(*failed.shape[:-1], dtype=dtypes.int32, device=failed.device)
    found = failed.where(numbers(n, failed) + 1, n + 1).min(-1)
    info: Tensor = (found > n).where(0, found).cast(dtypes.int32).detach()
    if check and info.max().item():
        raise LinAlgError(f"linalg.{what}: {why} {info.max().item()}")
    return info


def _zero(pivots: Tensor, check: bool, what: str) -> Tensor:
    return first_failure(pivots == 0, check, what, "a matrix is singular: 0 is the pivot number")


def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """:func:`cholesky`, and which matrices are not positive definite: their factors have NaN.

    Args:
      a: shape (…, n, n).
      upper: see :func:`cholesky`.
      check_errors: raise where one is not; the result is computed for that.

    Raises:
      ValueError: if the matrices are not square.
      LinAlgError: if one fails that is to be checked.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cholesky_ex(Tensor([[4.0, 0.0], [0.0, -1.0]])).info
      Tensor(2)
    """
    check_matrix(a, "cholesky_ex", square=True)
    factor = cholesky(a, upper=upper)
    failed = (diagonal_of(factor).real > 0).logical_not()
    return CholeskyInfo(
        factor, first_failure(failed, check_errors, "cholesky_ex", "not positive definite: minor number")
    )


def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorInfo:
    """:func:`lu_factor`, and which matrices are singular.

    Args:
      a: shape (…, m, n).
      pivot: whether rows are exchanged; they always are.
      check_errors: raise where one is singular; the result is computed for that.

    Raises:
      ValueError: if there are fewer axes; or rows are not to be exchanged.
      LinAlgError: if one fails that is to be checked.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lu_factor_ex(Tensor([[1.0, 2.0], [2.0, 4.0]])).info
      Tensor(2)
    """
    both, exchanged = lu_factor(a, pivot=pivot)
    return LUFactorInfo(both, exchanged, _zero(diagonal_of(both), check_errors, "lu_factor_ex"))


def inv_ex(a: Tensor, *, check_errors: bool = False) -> InverseInfo:
    """:func:`~tinytg.linalg.inv`, and which matrices are singular: their inverses have infinities or NaN.

    Args:
      a: shape (…, n, n).
      check_errors: raise where one is singular; the result is computed for that.

    Raises:
      ValueError: if the matrices are not square.
      LinAlgError: if one fails that is to be checked.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.inv_ex(Tensor([[0.0, 2.0], [1.0, 0.0]])).info
      Tensor(0)
    """
    check_matrix(a, "inv_ex", square=True)
    inverse, pivots = inverse_with_pivots(a)
    return InverseInfo(inverse, _zero(pivots, check_errors, "inv_ex"))


def solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveInfo:
    """:func:`~tinytg.linalg.solve`, and which matrices are singular: their solutions have infinities or NaN.

    Args:
      a: shape (…, n, n).
      b: see :func:`~tinytg.linalg.solve`.
      left: see :func:`~tinytg.linalg.solve`.
      check_errors: raise where one is singular; the result is computed for that.

    Raises:
      ValueError: if the shapes do not fit.
      LinAlgError: if one fails that is to be checked.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.solve_ex(Tensor([[1.0, 0.0], [0.0, 0.0]]), Tensor([1.0, 1.0])).info
      Tensor(2)
    """
    found, pivots = solved_with_pivots(a, b, left)
    pivots = pivots[(0,) * (pivots.ndim - a.ndim + 1)]  # of matrices that stand for several, one is enough
    for axis, n in enumerate(a.shape[:-2]):
        pivots = pivots if n == pivots.shape[axis] else pivots[(*(slice(None),) * axis, slice(0, 1))]
    return SolveInfo(found, _zero(pivots, check_errors, "solve_ex"))
