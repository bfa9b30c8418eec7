"""Normalised exponentials, and running reductions along an axis."""

from __future__ import annotations

import math

from tg_dtype import ConstType, dtypes, sum_dtype
from tg_lazy import Ops
from tg_lazy.trackers import max_size

from ..array.core import DTypeLike
from ..autograd.functions import Function, Max, Prod, Sum
from .reduction import Reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_BLOCK = 32  # elements of a running reduction that are combined each with each
_WHOLE = 256  # so many are one block, where that is little work
_LITTLE = 1 << 16  # elements


class Scan(Reduction):
    """Softmax and its kin; cumulative sums, products, extrema."""

    __slots__ = ()

    def _shifted(self, axis: int) -> tuple[Self, Self]:
        """This tensor less its maximum along an axis, and the maximum; no gradient flows through the maximum."""
        highest = self.detach()._apply(Max((axis,)))
        highest = highest.isinf().where(0, highest)
        return self - highest, highest

    def _softmax_axis(self, axis: int, what: str) -> tuple[Self, int]:
        place = self._axis(axis, what)
        return (self.reshape((1,)) if self.ndim == 0 else self)._floating(), place

    def softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """exp(x) / sum(exp(x)) along an axis, without overflow.

        Raises:
          IndexError: the axis is out of range.
        """
        x, place = (self if dtype is None else self.cast(dtype))._softmax_axis(axis, "softmax")
        powers = x._shifted(place)[0].exp()
        return (powers * powers.sum(place, keepdim=True).reciprocal()).reshape(self.shape)

    def log_softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """The logarithm of :meth:`softmax`, accurate where that is tiny.

        Raises:
          IndexError: the axis is out of range.
        """
        x, place = (self if dtype is None else self.cast(dtype))._softmax_axis(axis, "log_softmax")
        shifted = x._shifted(place)[0]
        return (shifted - shifted.exp().sum(place, keepdim=True).log()).reshape(self.shape)

    def softmin(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """:meth:`softmax` of -self."""
        return (-self).softmax(axis, dtype)

    def logsumexp(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """log(sum(exp(x))) along an axis (None: over everything), without overflow.

        Raises:
          IndexError: the axis is out of range.
        """
        if axis is None:
            out = self.flatten().logsumexp(0)
            return out.reshape((1,) * self.ndim) if keepdim else out
        x, place = self._softmax_axis(axis, "logsumexp")
        shifted, highest = x._shifted(place)
        out = shifted.exp().sum(place, keepdim=True).log() + highest
        return out.reshape(()) if self.ndim == 0 else out._kept((place,), keepdim)

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """The tensor divided by its p-norm along an axis, or by ``eps`` where that is greater.

        The norm for ``p=0`` is the number of elements that are not 0; through it no gradient flows. For infinity it
        is the greatest absolute value, for minus infinity the least.
        """
        axis = self._axis(dim, "normalize")

        def divided(x: Self) -> Self:
            if p == 0:
                norm = x.ne(0).sum(axis, keepdim=True).cast(x.dtype)
            elif math.isinf(p):
                norm = x.abs().max(axis, keepdim=True) if p > 0 else x.abs().min(axis, keepdim=True)
            else:
                norm = (x * x if p == 2 else x.abs().pow(p)).sum(axis, keepdim=True).pow(1 / p)
            return x / norm.maximum(eps)

        return self._wide(divided)

    # *** running reductions ***

    def _scan(self, axis: int, reduce: Callable[[tuple[int, ...]], Function], join: Callable[[Self, Self], Self],
              identity: ConstType) -> Self:  # fmt: skip
        """Along the last axis: element i combines the elements up to i."""
        order = [i for i in range(self.ndim) if i != axis]
        back = list(range(self.ndim - 1))
        back.insert(axis, self.ndim - 1)
        return self.permute(*order, axis)._scan_last(reduce, join, identity).permute(*back)

    def _scan_last(self, reduce: Callable[[tuple[int, ...]], Function], join: Callable[[Self, Self], Self],
                   identity: ConstType) -> Self:  # fmt: skip
        *lead, n = self.shape
        if not isinstance(n, int):  # as many as there can be, and of these as many as there are
            most = self.pad([*((0, 0) for _ in lead), (0, n.vmax - n)], value=identity)
            return most._scan_last(reduce, join, identity).shrink([*((0, dim) for dim in lead), (0, n)])
        if n > _WHOLE or (n > _BLOCK and max_size(self.shape) > _LITTLE):
            # Blocks are scanned each by itself, then joined with the scan of the totals of the blocks before.
            blocks = -(-n // _BLOCK)
            widths = ((0, 0),) * len(lead) + ((0, blocks * _BLOCK - n),)
            inner = self.pad(widths, value=identity).reshape((*lead, blocks, _BLOCK))._scan_last(reduce, join, identity)
            keep = tuple((0, dim) for dim in lead)
            totals = inner.shrink((*keep, (0, blocks), (_BLOCK - 1, _BLOCK))).reshape((*lead, blocks))
            before = totals._scan_last(reduce, join, identity)
            before = before.pad(((0, 0),) * len(lead) + ((1, 0),), value=identity).shrink((*keep, (0, blocks)))
            joined = join(before.reshape((*lead, blocks, 1)), inner)
            return joined.reshape((*lead, blocks * _BLOCK)).shrink((*keep, (0, n)))
        rows = self.reshape((*lead, 1, n))._stretch((*lead, n, n))
        i = self._iota(n, dtypes.int32, self.device)
        seen = i <= i.reshape((n, 1))
        return seen.where(rows, identity)._apply(reduce((len(lead) + 1,))).reshape((*lead, n))

    def _scanned(self, axis: int, what: str, reduce: Callable[[tuple[int, ...]], Function],
                 join: Callable[[Self, Self], Self], identity: ConstType) -> Self:  # fmt: skip
        place = self._axis(axis, what)
        return self if self.ndim == 0 or self.numel() == 0 else self._scan(place, reduce, join, identity)

    def cumsum(self, axis: int = 0, dtype: DTypeLike | None = None) -> Self:
        """The sum of the elements up to each, along an axis.

        Args:
          dtype: of the sums; as of :meth:`sum` if not given.

        Raises:
          IndexError: the axis is out of range.
        """
        x = self.cast(sum_dtype(self.dtype) if dtype is None else dtype)
        return x._scanned(axis, "cumsum", Sum, lambda a, b: a + b, 0)

    def cumprod(self, axis: int, dtype: DTypeLike | None = None) -> Self:
        """The product of the elements up to each, along an axis.

        Args:
          dtype: of the products; as of :meth:`prod` if not given.

        Raises:
          IndexError: the axis is out of range.
        """
        x = self.cast(sum_dtype(self.dtype) if dtype is None else dtype)
        return x._scanned(axis, "cumprod", Prod, lambda a, b: a * b, 1)

    def _cummax(self, axis: int, what: str) -> tuple[Self, Self]:
        place = self._axis(axis, what)
        values = self._scanned(axis, what, Max, lambda a, b: a.maximum(b), dtypes.min(self.dtype))
        if self.ndim == 0 or self.numel() == 0:
            return values, self.zeros_like(dtype=dtypes.int32)
        x = self.detach()
        hit = x.eq(values.detach())
        if self.dtype.kind == "float":
            hit = hit | x.ne(x)
        at = hit.where(x._counter(place), 0)
        return values, at._scanned(axis, what, Max, lambda a, b: a.maximum(b), 0)

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """The maximum of the elements up to each, and where it is (the last of equals), along an axis.

        Raises:
          IndexError: the axis is out of range.
        """
        return self._cummax(axis, "cummax")

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """The minimum of the elements up to each, and where it is (the last of equals), along an axis.

        Raises:
          IndexError: the axis is out of range.
        """
        if self.dtype.kind == "float":
            values, at = (-self)._cummax(axis, "cummin")
            return -values, at
        values, at = self._alu(Ops.NOT)._cummax(axis, "cummin")
        return values._alu(Ops.NOT), at

    def logcumsumexp(self, axis: int = 0) -> Self:
        """log(sum(exp(x))) of the elements up to each, along an axis, without overflow.

        Raises:
          IndexError: the axis is out of range.
        """
        place = self._axis(axis, "logcumsumexp")
        x = self._floating()
        if self.ndim == 0 or self.numel() == 0:
            return x
        order = [i for i in range(self.ndim) if i != place]
        back = list(range(self.ndim - 1))
        back.insert(place, self.ndim - 1)
        rows = x.permute(*order, place)
        *lead, n = rows.shape
        i = self._iota(n, dtypes.int32, self.device)
        seen = i <= i.reshape((n, 1))
        rows = seen.where(rows.reshape((*lead, 1, n))._stretch((*lead, n, n)), -math.inf)
        return rows.logsumexp(-1).permute(*back)
