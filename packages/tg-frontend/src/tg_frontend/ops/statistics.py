"""Variance and standard deviation, covariance and correlation."""

from __future__ import annotations

import math

from tg_dtype import least_upper_float, sum_acc_dtype

from ..array.array import A, Array
from ..array.axes import axes_of, kept
from ..array.casts import floating
from ..array.counted import only
from ..array.operands import common_dtype
from ..array.reduction import count_along
from ..autograd.functions import Sum
from ..host.coerce import to_dtype
from .diagonal import diagonal
from .elementary import sqrt
from .elementwise import clip
from .linear import matmul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..array.base import DTypeLike

    Axes = int | Sequence[int] | None


def var(
    x: A, axis: Axes | bool = None, *, keepdim: bool = False, correction: float | None = 1,
    dtype: DTypeLike | None = None, where: Any = None, mean: A | None = None,
) -> A:  # fmt: skip
    """The variance: squared distances from the mean, summed and divided by the count less ``correction``.

    Args:
      dtype: cast to this float dtype first.
      where: bools that broadcast to the shape of ``x``: which elements count; all if None.
      mean: the mean, where it is known: of the shape that it has with ``keepdim``.

    Raises:
      TypeError: if the dtype is no float, or ``where`` holds no bools.
      ValueError: if ``where`` or ``mean`` has another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.var(axis=0)
      Tensor([2., 2.])
    """
    return _moments(x, axis, keepdim, correction, dtype, where, mean)[0]


def var_mean(x: A, axis: Axes | bool = None, *, keepdim: bool = False, correction: float | None = 1) -> tuple[A, A]:
    """:meth:`var` and :meth:`mean`.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.var_mean(axis=0)
      (Tensor([2., 2.]), Tensor([2., 3.]))
    """
    return _moments(x, axis, keepdim, correction)


def _moments(
    x: A, axis: Axes | bool, keepdim: bool, correction: Any, dtype: DTypeLike | None = None, where: Any = None,
    mean: Any = None, root: bool = False,
) -> tuple[A, A]:  # fmt: skip
    """The variance, or with ``root`` the deviation, and the mean: rounded to the dtype once."""
    less: Any = 1 if correction is None else correction
    if isinstance(less, complex) or getattr(less, "is_complex", bool)():
        raise TypeError(f"var: the correction is a real number, got {less!r}")
    if isinstance(axis, bool):  # PyTorch's ``unbiased``, by position
        less, axis = int(axis), None
    axes = axes_of(x, axis, "var")
    floats = floating(x) if dtype is None else x.cast(dtype)
    if floats.dtype.kind != "float":
        raise TypeError(f"var: a variance of {floats.dtype.name} is no {floats.dtype.name}; give a float dtype")
    wide = floats.cast(sum_acc_dtype(floats.dtype))
    if mean is None:
        mean = wide.mean(axes, keepdim=True, where=where)
    elif tuple(mean.shape) != tuple(1 if i in axes else n for i, n in enumerate(x.shape)):
        raise ValueError(f"var: a mean of shape {tuple(mean.shape)} along axes {axes} of shape {x.shape}")
    distance = only(wide - mean, where, 0, "var")
    count = count_along(x, axes, where, "var") - less
    divisor = max(0, count) if isinstance(count, (int, float)) else count
    if isinstance(divisor, Array):
        divisor = divisor.maximum(0)
    var = (distance * distance)._apply(Sum(axes)) / divisor
    spread = _root(var) if root else var
    return kept(spread.cast(floats.dtype), axes, keepdim), kept(mean.cast(floats.dtype), axes, keepdim)


def _root(x: A) -> A:
    """The square root, through which no gradient flows where it is 0 (elsewhere it would be 0 * inf)."""
    if x._ctx is None:
        return sqrt(x)
    flat = x.detach().eq(0)
    return flat.where(0, sqrt(flat.where(1, x)))


def std(
    x: A, axis: Axes | bool = None, *, keepdim: bool = False, correction: float | None = 1,
    dtype: DTypeLike | None = None, where: Any = None, mean: A | None = None,
) -> A:  # fmt: skip
    """The square root of :meth:`var`, whose arguments it takes; the gradient where that is 0 is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 3.0]).std(correction=0)
      Tensor(1.)
    """
    return _moments(x, axis, keepdim, correction, dtype, where, mean, root=True)[0]


def std_mean(x: A, axis: Axes | bool = None, *, keepdim: bool = False, correction: float | None = 1) -> tuple[A, A]:
    """:meth:`std` and :meth:`mean`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 3.0]).std_mean(correction=0)
      (Tensor(1.), Tensor(2.))
    """
    return _moments(x, axis, keepdim, correction, root=True)


def _weights(x: A, weights: A | None, what: str) -> A | None:
    if weights is not None and weights.shape != x.shape[1:]:
        raise ValueError(f"{what}: weights of shape {weights.shape} for observations of shape {x.shape[1:]}")
    return weights


def cov(
    x: A, correction: int | None = None, fweights: A | None = None, aweights: A | None = None, *, y: A | None = None,
    rowvar: bool = True, bias: bool = False, dtype: DTypeLike | None = None,
) -> A:  # fmt: skip
    """The covariance of variables, which are rows, over observations, which are columns.

    Args:
      y: more variables, of the same form.
      rowvar: if False, variables are columns, and observations rows.
      bias: whether the correction is 0, if none is given, instead of 1.
      dtype: compute in this float dtype.
      correction: what is taken off the number of observations; numpy's ``ddof``.
      fweights: how often each observation counts, whole numbers.
      aweights: how much each counts. One below 0, here or there, makes the covariances NaN.

    Returns:
      shape (n, n) for n rows; one number for one row, or a vector.

    Raises:
      ValueError: if there are more than two axes, or weights or ``y`` do not fit.
      TypeError: if ``fweights`` are no integers, or the dtype is no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).cov().tolist()
      [[1.0, -1.0], [-1.0, 1.0]]
    """
    rows = _variables(x, rowvar, dtype)
    if y is not None:
        more = _variables(y, rowvar, dtype)
        if more.shape[1] != rows.shape[1]:
            raise ValueError(f"cov: {rows.shape[1]} observations of some variables, {more.shape[1]} of others")
        rows = rows.cat(more)
    correction = int(not bias) if correction is None else correction
    kind = rows.dtype if aweights is None else common_dtype(rows, aweights)
    rows = rows.cast(sum_acc_dtype(kind))
    if fweights is not None and fweights.dtype.kind not in ("int", "uint"):
        raise TypeError(f"cov: fweights are integers, got a tensor of {fweights.dtype.name}")
    frequency, importance = (_weights(rows, w, "cov") for w in (fweights, aweights))
    weights = frequency if importance is None else importance if frequency is None else frequency * importance
    if weights is None:
        count, apart = rows.shape[1], rows - rows.mean(1, keepdim=True)
        product = matmul(apart, apart.T)
        out = product / (max(0, count - correction) if isinstance(count, int) else count - correction)
    else:
        weights = weights.cast(rows.dtype)
        total = weights.sum()
        apart = rows - (rows * weights).sum(1, keepdim=True) / total
        taken = 1 if importance is None else (weights * importance).sum() / total
        out = matmul(apart * weights, apart.T) / (total - taken * correction).maximum(0)
        for given in (frequency, importance):
            out = out if given is None else given.lt(0).any().where(math.nan, out)
    return (out.reshape(()) if rows.shape[0] == 1 else out).cast(kind)


def _variables(x: A, rowvar: bool, dtype: DTypeLike | None) -> A:
    """Variables as rows of floats."""
    if x.ndim > 2:
        raise ValueError(f"cov: rows of a matrix are wanted, got shape {x.shape}")
    rows = x.reshape((1, -1)) if x.ndim < 2 else x if rowvar else x.T
    floats = floating(rows) if dtype is None else rows.cast(dtype)
    if floats.dtype.kind != "float":
        raise TypeError(f"cov: a covariance of {floats.dtype.name}; give a float dtype")
    return floats


def corrcoef(x: A, y: A | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> A:
    """Correlation coefficients of variables, which are rows, over observations, which are columns; from -1 to 1.

    The arguments are those of :meth:`cov`.

    Raises:
      ValueError: if there are more than two axes, or ``y`` does not fit.
      TypeError: if the dtype is no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).corrcoef().round(4).tolist()
      [[1.0, -1.0], [-1.0, 1.0]]
    """
    kind = least_upper_float(x.dtype if y is None else common_dtype(x, y)) if dtype is None else to_dtype(dtype)
    found = cov(x, y=y, rowvar=rowvar, dtype=sum_acc_dtype(kind))
    if found.ndim == 0:
        return (found / found).cast(kind)
    deviation = sqrt(diagonal(found))
    return clip(found / deviation.unsqueeze(1) / deviation, -1, 1).cast(kind)
