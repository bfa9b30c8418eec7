"""Running reductions along an axis."""

from __future__ import annotations

import math

from tg_dtype import ConstType, dtypes, sum_dtype
from tg_lazy import Ops
from tg_lazy.trackers import max_size

from ..array.array import A
from ..array.axes import counter, iota
from ..array.base import DTypeLike
from ..array.casts import floating
from ..array.movement import stretch
from ..array.operands import alu
from ..autograd.functions import Function, Max, Prod, Sum
from .creation import zeros_like
from .softmax import logsumexp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_BLOCK = 32  # elements of a running reduction that are combined each with each
_WHOLE = 256  # so many are one block, where that is little work
_LITTLE = 1 << 16  # elements


def _scan(x: A, axis: int, reduce: Callable[[tuple[int, ...]], Function], join: Callable[[A, A], A],
          identity: ConstType) -> A:  # fmt: skip
    """Along the last axis: element i combines the elements up to i."""
    order = [i for i in range(x.ndim) if i != axis]
    back = list(range(x.ndim - 1))
    back.insert(axis, x.ndim - 1)
    return _scan_last(x.permute(*order, axis), reduce, join, identity).permute(*back)


def _scan_last(x: A, reduce: Callable[[tuple[int, ...]], Function], join: Callable[[A, A], A],
               identity: ConstType) -> A:  # fmt: skip
    *lead, n = x.shape
    if not isinstance(n, int):  # as many as there can be, and of these as many as there are
        most = x.pad([*((0, 0) for _ in lead), (0, n.vmax - n)], value=identity)
        return _scan_last(most, reduce, join, identity).shrink([*((0, dim) for dim in lead), (0, n)])
    if n > _WHOLE or (n > _BLOCK and max_size(x.shape) > _LITTLE):
        # Blocks are scanned each by itself, then joined with the scan of the totals of the blocks before.
        blocks = -(-n // _BLOCK)
        widths = ((0, 0),) * len(lead) + ((0, blocks * _BLOCK - n),)
        inner = _scan_last(x.pad(widths, value=identity).reshape((*lead, blocks, _BLOCK)), reduce, join, identity)
        keep = tuple((0, dim) for dim in lead)
        totals = inner.shrink((*keep, (0, blocks), (_BLOCK - 1, _BLOCK))).reshape((*lead, blocks))
        before = _scan_last(totals, reduce, join, identity)
        before = before.pad(((0, 0),) * len(lead) + ((1, 0),), value=identity).shrink((*keep, (0, blocks)))
        joined = join(before.reshape((*lead, blocks, 1)), inner)
        return joined.reshape((*lead, blocks * _BLOCK)).shrink((*keep, (0, n)))
    rows = stretch(x.reshape((*lead, 1, n)), (*lead, n, n))
    i = iota(type(x), n, dtypes.int32, x.device)
    seen = i <= i.reshape((n, 1))
    return seen.where(rows, identity)._apply(reduce((len(lead) + 1,))).reshape((*lead, n))


def _scanned(x: A, axis: int, what: str, reduce: Callable[[tuple[int, ...]], Function],
             join: Callable[[A, A], A], identity: ConstType) -> A:  # fmt: skip
    place = x._axis(axis, what)
    return x if x.ndim == 0 or x.numel() == 0 else _scan(x, place, reduce, join, identity)


def cumsum(x: A, axis: int = 0, dtype: DTypeLike | None = None) -> A:
    """The sum of the elements up to each, along an axis.

    Args:
      dtype: of the sums; as of :meth:`sum` if not given.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).cumsum()
      Tensor([1, 3, 6], dtype=int64)
    """
    x = x.cast(sum_dtype(x.dtype) if dtype is None else dtype)
    return _scanned(x, axis, "cumsum", Sum, lambda a, b: a + b, 0)


def cumprod(x: A, axis: int, dtype: DTypeLike | None = None) -> A:
    """The product of the elements up to each, along an axis.

    Args:
      dtype: of the products; as of :meth:`prod` if not given.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).cumprod(0)
      Tensor([1, 2, 6], dtype=int64)
    """
    x = x.cast(sum_dtype(x.dtype) if dtype is None else dtype)
    return _scanned(x, axis, "cumprod", Prod, lambda a, b: a * b, 1)


def _cummax(x: A, axis: int, what: str) -> tuple[A, A]:
    place = x._axis(axis, what)
    values = _scanned(x, axis, what, Max, lambda a, b: a.maximum(b), dtypes.min(x.dtype))
    if x.ndim == 0 or x.numel() == 0:
        return values, zeros_like(x, dtype=dtypes.int32)
    plain = x.detach()
    hit = plain.eq(values.detach())
    if x.dtype.kind == "float":
        hit = hit | plain.ne(plain)
    at = hit.where(counter(plain, place), 0)
    return values, _scanned(at, axis, what, Max, lambda a, b: a.maximum(b), 0)


def cummax(x: A, axis: int = 0) -> tuple[A, A]:
    """The maximum of the elements up to each, and where it is (the last of equals), along an axis.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 3, 2]).cummax()
      (Tensor([1, 3, 3]), Tensor([0, 1, 1]))
    """
    return _cummax(x, axis, "cummax")


def cummin(x: A, axis: int = 0) -> tuple[A, A]:
    """The minimum of the elements up to each, and where it is (the last of equals), along an axis.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).cummin()
      (Tensor([3, 1, 1]), Tensor([0, 1, 1]))
    """
    if x.dtype.kind == "float":
        values, at = _cummax(-x, axis, "cummin")
        return -values, at
    values, at = _cummax(alu(x, Ops.NOT), axis, "cummin")
    return alu(values, Ops.NOT), at


def logcumsumexp(x: A, axis: int = 0) -> A:
    """log(sum(exp(x))) of the elements up to each, along an axis, without overflow.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.0, 0.0]).logcumsumexp().round(4)
      Tensor([0.    , 0.6931, 1.0986])
    """
    place = x._axis(axis, "logcumsumexp")
    floats = floating(x)
    if x.ndim == 0 or x.numel() == 0:
        return floats
    order = [i for i in range(x.ndim) if i != place]
    back = list(range(x.ndim - 1))
    back.insert(place, x.ndim - 1)
    rows = floats.permute(*order, place)
    *lead, n = rows.shape
    i = iota(type(x), n, dtypes.int32, x.device)
    seen = i <= i.reshape((n, 1))
    rows = seen.where(stretch(rows.reshape((*lead, 1, n)), (*lead, n, n)), -math.inf)
    return logsumexp(rows, -1).permute(*back)
