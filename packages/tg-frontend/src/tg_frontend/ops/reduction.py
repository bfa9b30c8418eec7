"""Reductions: many elements to one, along axes."""

from __future__ import annotations

from tg_dtype import DType, dtypes, sum_acc_dtype, sum_dtype
from tg_lazy import Ops
from tg_lazy.trackers import max_size
from tg_shape import prod, sint

from ..array.core import DTypeLike
from ..autograd.functions import Max, Prod, Sum
from ..host.coerce import to_dtype
from .creation import Creation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    Axes = int | Sequence[int] | None


class Reduction(Creation):
    """Sums, products, extrema and what is made of them. ``axis=None`` means all; ``keepdim`` keeps size-1 axes."""

    __slots__ = ()

    def _axes(self, axis: Axes, what: str) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(self.ndim))
        given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(self._axis(a, what) for a in given)
        if len(set(axes)) != len(axes):
            raise ValueError(f"{what}: an axis is given twice in {given}")
        return tuple(sorted(axes)) if self.ndim else ()

    def _kept(self, axes: tuple[int, ...], keepdim: bool) -> Self:
        """This reduced tensor without the reduced axes, unless they are to be kept."""
        return self if keepdim else self.reshape(tuple(dim for i, dim in enumerate(self.shape) if i not in axes))

    def sum(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The sum. Narrow floats are accumulated in float32 and rounded once; integers and bools give int64.

        Args:
          dtype: accumulate and return in this dtype instead.

        Raises:
          IndexError: an axis is out of range.
          ValueError: an axis is given twice.
        """
        axes = self._axes(axis, "sum")
        if dtype is not None:
            return self.cast(to_dtype(dtype))._apply(Sum(axes))._kept(axes, keepdim)
        return self.cast(self._accumulator(axes))._apply(Sum(axes)).cast(sum_dtype(self.dtype))._kept(axes, keepdim)

    def _accumulator(self, axes: tuple[int, ...]) -> DType:
        """What a sum along axes is accumulated in: of integers 32 bits where so few of them cannot exceed these."""
        narrow = sum_acc_dtype(self.dtype)
        if narrow.kind == "float":
            return narrow
        count, most = max_size(tuple(self.shape[axis] for axis in axes)), int(dtypes.max(self.dtype)) + 1
        return narrow if count * most <= int(dtypes.max(narrow)) else sum_dtype(self.dtype)

    def prod(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The product, accumulated as :meth:`sum` is.

        Raises:
          IndexError: an axis is out of range.
          ValueError: an axis is given twice.
        """
        axes = self._axes(axis, "prod")
        if dtype is not None:
            return self.cast(to_dtype(dtype))._apply(Prod(axes))._kept(axes, keepdim)
        kind = sum_dtype(self.dtype)
        accumulator = sum_acc_dtype(kind) if kind.kind == "float" else kind
        return self.cast(accumulator)._apply(Prod(axes)).cast(kind)._kept(axes, keepdim)

    def _nonempty(self, axes: tuple[int, ...], what: str) -> None:
        if any(isinstance(self.shape[axis], int) and self.shape[axis] == 0 for axis in axes):
            raise ValueError(f"{what}: there is no element along axes {axes} of shape {self.shape}")

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The maximum; NaN if there is one. Ties share the gradient evenly.

        Raises:
          ValueError: there is nothing to choose from, or an axis is given twice.
          IndexError: an axis is out of range.
        """
        axes = self._axes(axis, "max")
        self._nonempty(axes, "max")
        return self._apply(Max(axes))._kept(axes, keepdim)

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The minimum; NaN if there is one. Ties share the gradient evenly.

        Raises:
          ValueError: there is nothing to choose from, or an axis is given twice.
          IndexError: an axis is out of range.
        """
        axes = self._axes(axis, "min")
        self._nonempty(axes, "min")
        if self.dtype.kind == "float":
            return (-(-self)._apply(Max(axes)))._kept(axes, keepdim)
        # ~x reverses the order of integers and of bools, and none is lost
        return self._alu(Ops.NOT)._apply(Max(axes))._alu(Ops.NOT)._kept(axes, keepdim)

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether some element is not 0."""
        axes = self._axes(axis, "any")
        return self.cast(dtypes.bool)._apply(Max(axes))._kept(axes, keepdim)

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether every element is not 0."""
        return self.logical_not().any(axis, keepdim).logical_not()

    def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Whether every element is close to the other, as :meth:`isclose` says. Computes it now."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    def _count(self, axes: tuple[int, ...]) -> sint:
        return prod(self.shape[axis] for axis in axes)

    def mean(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The mean, of integers and bools as floats; NaN of nothing.

        Args:
          dtype: cast to this float dtype first.
        """
        axes = self._axes(axis, "mean")
        x = self._floating() if dtype is None else self.cast(dtype)
        if x.dtype.kind != "float":
            raise TypeError(f"mean: a mean of {x.dtype.name} is no {x.dtype.name}; give a float dtype")
        wide = x.cast(sum_acc_dtype(x.dtype))
        return (wide._apply(Sum(axes)) / self._count(axes)).cast(x.dtype)._kept(axes, keepdim)

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The variance: squared distances from the mean, summed and divided by the count less ``correction``."""
        return self.var_mean(axis, keepdim, correction)[0]

    def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """:meth:`var` and :meth:`mean`."""
        axes = self._axes(axis, "var")
        x = self._floating()
        wide = x.cast(sum_acc_dtype(x.dtype))
        mean = wide.mean(axes, keepdim=True)
        distance = wide - mean
        count = self._count(axes) - correction
        divisor = max(0, count) if isinstance(count, int) else count
        var = (distance * distance)._apply(Sum(axes)) / divisor
        return var.cast(x.dtype)._kept(axes, keepdim), mean.cast(x.dtype)._kept(axes, keepdim)

    def _root(self) -> Self:
        """The square root, through which no gradient flows where it is 0 (elsewhere it would be 0 * inf)."""
        if self._ctx is None:
            return self.sqrt()
        flat = self.detach().eq(0)
        return flat.where(0, flat.where(1, self).sqrt())

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The square root of :meth:`var`; the gradient where that is 0 is 0."""
        return self.var(axis, keepdim, correction)._root()

    def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """:meth:`std` and :meth:`mean`."""
        var, mean = self.var_mean(axis, keepdim, correction)
        return var._root(), mean

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the maximum is (the first of them; a NaN counts as the maximum), as int32 (int64 where
        an axis is too long for that); None: in the flat tensor.

        Raises:
          ValueError: there is nothing to choose from.
          IndexError: the axis is out of range.
        """
        if axis is None:
            flat = self.flatten().argmax(0)
            return flat.reshape((1,) * self.ndim) if keepdim else flat
        return self._first_hit(self._axis(axis, "argmax"), keepdim, "argmax")

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Where the minimum is (the first of them; a NaN counts as the minimum), as int32 (int64 where
        an axis is too long for that); None: in the flat tensor.

        Raises:
          ValueError: there is nothing to choose from.
          IndexError: the axis is out of range.
        """
        turned = self._alu(Ops.NEG if self.dtype.kind == "float" else Ops.NOT)
        return turned.argmax(axis, keepdim)

    def _first_hit(self, axis: int, keepdim: bool, what: str) -> Self:
        x = self.detach().reshape((1,)) if self.ndim == 0 else self.detach()
        x._nonempty((axis,), what)
        hit = x.eq(x._apply(Max((axis,))))
        if x.dtype.kind == "float":
            hit = hit | x.ne(x)
        n = x.shape[axis]
        backward = n - x._counter(axis)
        found = n - hit.where(backward, 0)._apply(Max((axis,)))
        return found.reshape(()) if self.ndim == 0 else found._kept((axis,), keepdim)
