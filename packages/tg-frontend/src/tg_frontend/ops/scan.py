"""Running reductions along an axis."""

from __future__ import annotations

import math
from typing import NamedTuple

from tg_dtype import ConstType, dtypes, sum_dtype
from tg_lazy import Ops
from tg_lazy.trackers import max_size
from tg_shape import prod

from ..array.array import A
from ..array.axes import counter, iota
from ..array.base import DTypeLike
from ..array.casts import wide
from ..array.movement import stretch
from ..array.operands import alu
from ..autograd.functions import Chosen, Function, Max, Prod, RunningProduct, Sum
from .creation import zeros_like
from .elementwise import logaddexp
from .found import Found
from .softmax import logsumexp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_BLOCK = 16  # elements of a running reduction that are combined each with each
_HEAVY_BLOCK = 8  # likewise, where each pair takes an exponential
_WHOLE = 256  # so many are one block, where that is little work
_LITTLE = 1 << 20  # pairs of elements, about as much work as two more kernels


class _Kind(NamedTuple):
    """A running reduction.

    Attributes:
      reduce: combines the elements along an axis of a tensor, which goes away.
      join: combines two.
      identity: changes nothing.
      block: elements that are combined each with each: fewer where that is much work.
      any_order: whether floats, too, give the same in any order.
    """

    reduce: Callable[[Any, int], Any]
    join: Callable[[Any, Any], Any]
    identity: ConstType
    block: int = _BLOCK
    any_order: bool = False


def _applied(function: Callable[[tuple[int, ...]], Function]) -> Callable[[Any, int], Any]:
    def reduce(x: Any, axis: int) -> Any:
        return x._apply(function((axis,))).reshape((*x.shape[:axis], *x.shape[axis + 1 :]))

    return reduce


def _scan(x: A, axis: int, kind: _Kind) -> A:
    """Along an axis: element i combines the elements up to i."""
    order = [i for i in range(x.ndim) if i != axis]
    back = list(range(x.ndim - 1))
    back.insert(axis, x.ndim - 1)
    return _scan_last(x.permute(*order, axis), kind).permute(*back)


def _scan_last(x: A, kind: _Kind) -> A:
    *lead, n = x.shape
    identity, block = kind.identity, kind.block
    if not isinstance(n, int):  # as many as there can be, and of these as many as there are
        most = x.pad([*((0, 0) for _ in lead), (0, n.vmax - n)], value=identity)
        return _scan_last(most, kind).shrink([*((0, dim) for dim in lead), (0, n)])
    if n > _WHOLE or (n > block and n * max_size(x.shape) > _LITTLE):
        # Blocks are scanned each by itself, then joined with the scan of the totals of the blocks before.
        blocks = -(-n // block)
        widths = ((0, 0),) * len(lead) + ((0, blocks * block - n),)
        cut = x.pad(widths, value=identity).reshape((*lead, blocks, block))
        inner, keep = _scan_last(cut, kind), tuple((0, dim) for dim in lead)
        exact = kind.any_order or x.dtype.kind not in ("float", "complex")
        # Running maxima of odd lengths are compared with the elements, which then go through the same blocks.
        if exact and (n == blocks * block or not kind.any_order):
            totals = kind.reduce(cut, len(lead) + 1)
        else:  # what a block begins with is what the one before ends with, to the bit: sums of no negatives only grow
            totals = inner.shrink((*keep, (0, blocks), (block - 1, block))).reshape((*lead, blocks))
        before = _scan_last(totals, kind)
        before = before.pad(((0, 0),) * len(lead) + ((1, 0),), value=identity).shrink((*keep, (0, blocks)))
        joined = kind.join(before.reshape((*lead, blocks, 1)), inner)
        return joined.reshape((*lead, blocks * block)).shrink((*keep, (0, n)))  # type: ignore[no-any-return]
    rows = stretch(x.reshape((*lead, 1, n)), (*lead, n, n))
    i = iota(type(x), n, dtypes.int32, x.device)
    seen = i <= i.reshape((n, 1))
    return kind.reduce(seen.where(rows, identity), len(lead) + 1)  # type: ignore[no-any-return]


def _scanned(x: A, axis: int, what: str, kind: _Kind) -> A:
    place = x._axis(axis, what)
    return x if x.ndim == 0 or x.numel() == 0 else _scan(x, place, kind)


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
    return _scanned(x, axis, "cumsum", _Kind(_applied(Sum), lambda a, b: a + b, 0))


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
    if x.dtype.kind == "float":
        return wide(x, lambda x: _cumprod(x, axis))
    return _cumprod(x, axis)


def _cumprod(x: A, axis: int) -> A:
    place = x._axis(axis, "cumprod")
    products = _scanned(x.detach(), axis, "cumprod", _Kind(_applied(Prod), lambda a, b: a * b, 1))
    return x if x.ndim == 0 or x.numel() == 0 else x._apply(RunningProduct(place), products)


def _cummax(x: A, axis: int, what: str) -> Found[A]:
    place = x._axis(axis, what)
    most = _Kind(_applied(Max), lambda a, b: a.maximum(b), dtypes.min(x.dtype), any_order=True)
    if x.ndim == 0 or x.numel() == 0:
        return Found(x, zeros_like(x, dtype=dtypes.int32))
    plain = x.detach()
    values = _scanned(plain, axis, what, most)
    hit = plain.eq(values)
    if x.dtype.kind == "float":
        hit = hit | plain.ne(plain)
    at = _scanned(hit.where(counter(plain, place), 0), axis, what, most._replace(identity=0))
    # a gradient goes to where the maximum is, in one step, instead of back through the blocks
    rows = (prod(x.shape[:place]), x.shape[place], prod(x.shape[place + 1 :]))
    chosen = x.reshape(rows)._apply(Chosen(), at.reshape(rows), values.reshape(rows))
    return Found(chosen.reshape(x.shape), at)


def cummax(x: A, axis: int = 0) -> Found[A]:
    """The maximum of the elements up to each, and where it is (the last of equals), along an axis.

    A gradient goes to that element.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 3, 2]).cummax()
      Found(values=Tensor([1, 3, 3]), indices=Tensor([0, 1, 1]))
    """
    return _cummax(x, axis, "cummax")


def cummin(x: A, axis: int = 0) -> Found[A]:
    """The minimum of the elements up to each, and where it is (the last of equals), along an axis.

    A gradient goes to that element.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([3, 1, 2]).cummin()
      Found(values=Tensor([3, 1, 1]), indices=Tensor([0, 1, 1]))
    """
    if x.dtype.kind == "float":
        values, at = _cummax(-x, axis, "cummin")
        return Found(-values, at)
    values, at = _cummax(alu(x, Ops.NOT), axis, "cummin")
    return Found(alu(values, Ops.NOT), at)


def logcumsumexp(x: A, axis: int = 0) -> A:
    """log(sum(exp(x))) of the elements up to each, along an axis, without overflow.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 0.0, 0.0]).logcumsumexp().round(4)
      Tensor([0.    , 0.6931, 1.0986])
    """
    sums = _Kind(lambda rows, last: logsumexp(rows, last), lambda a, b: logaddexp(a, b), -math.inf, _HEAVY_BLOCK)
    return wide(x, lambda x: _scanned(x, axis, "logcumsumexp", sums))
