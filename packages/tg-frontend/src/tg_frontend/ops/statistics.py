"""Variance and standard deviation."""

from __future__ import annotations

from tg_dtype import sum_acc_dtype

from ..array.array import A
from ..array.axes import axes_of, kept
from ..array.casts import floating
from ..array.reduction import _count
from ..autograd.functions import Sum
from .elementary import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Axes = int | Sequence[int] | None


def var(x: A, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> A:
    """The variance: squared distances from the mean, summed and divided by the count less ``correction``.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.var(axis=0)
      Tensor([2., 2.])
    """
    return var_mean(x, axis, keepdim, correction)[0]


def var_mean(x: A, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[A, A]:
    """:meth:`var` and :meth:`mean`.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> x.var_mean(axis=0)
      (Tensor([2., 2.]), Tensor([2., 3.]))
    """
    axes = axes_of(x, axis, "var")
    floats = floating(x)
    wide = floats.cast(sum_acc_dtype(floats.dtype))
    mean = wide.mean(axes, keepdim=True)
    distance = wide - mean
    count = _count(x, axes) - correction
    divisor = max(0, count) if isinstance(count, int) else count
    var = (distance * distance)._apply(Sum(axes)) / divisor
    return kept(var.cast(floats.dtype), axes, keepdim), kept(mean.cast(floats.dtype), axes, keepdim)


def _root(x: A) -> A:
    """The square root, through which no gradient flows where it is 0 (elsewhere it would be 0 * inf)."""
    if x._ctx is None:
        return sqrt(x)
    flat = x.detach().eq(0)
    return flat.where(0, sqrt(flat.where(1, x)))


def std(x: A, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> A:
    """The square root of :meth:`var`; the gradient where that is 0 is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 3.0]).std(correction=0)
      Tensor(1.)
    """
    return _root(var(x, axis, keepdim, correction))


def std_mean(x: A, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[A, A]:
    """:meth:`std` and :meth:`mean`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 3.0]).std_mean(correction=0)
      (Tensor(1.), Tensor(2.))
    """
    var, mean = var_mean(x, axis, keepdim, correction)
    return _root(var), mean
