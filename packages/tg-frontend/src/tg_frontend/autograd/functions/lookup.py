"""Reading at computed positions, with the gradient as an update of zeros."""

from __future__ import annotations

from tg_dtype import DType, can_safe_cast, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import prod, sint, upper

from .base import Function, Grads, splat, total
from .parallel_updates import updated

_LARGEST_INT32 = (1 << 31) - 1
_COMPARED = 2
"""Elements of a row, at the most, for which comparing positions costs less than writing the row a second time."""


def _index_dtype(size: sint) -> DType:
    return dtypes.int32 if upper(size) <= _LARGEST_INT32 else dtypes.int64


def _positions(shape: tuple[sint, ...], axis: int, dtype: DType, device: str) -> LazyBuffer:
    """The index along ``axis`` at every place of ``shape``."""
    dim = shape[axis]
    single = tuple(dim if i == axis else 1 for i in range(len(shape)))
    return LazyBuffer.iota(dim, dtype, device).reshape(single).expand(shape)


def guarded(flat: LazyBuffer, index: LazyBuffer, bound: sint) -> LazyBuffer:
    """``flat`` where ``0 <= index < bound``, else -1, which reads as 0.

    The index is compared in its own type where that has more numbers than the type of ``flat``: narrowed, a position
    far outside would come back in.
    """
    own = index.cast(flat.dtype) if can_safe_cast(index.dtype, flat.dtype) else index
    ok = own.alu(Ops.CMPLT, _scalar(own, bound))
    if own.dtype.kind == "int":
        ok = ok.alu(Ops.AND, own.alu(Ops.CMPLT, splat(own, 0)).alu(Ops.NOT))
    return ok.alu(Ops.WHERE, flat, splat(flat, -1))


def _narrowed(index: LazyBuffer, bound: sint, dtype: DType) -> LazyBuffer:
    """Positions in ``dtype``; -1 for those that it has not."""
    narrow = index.cast(dtype)
    return narrow if can_safe_cast(index.dtype, dtype) else guarded(narrow, index, bound)


def _scalar(like: LazyBuffer, value: sint) -> LazyBuffer:
    if isinstance(value, int):
        return splat(like, value)
    single = LazyBuffer.symbolic(value, like.dtype, like.device)
    return single.reshape((1,) * len(like.shape)).expand(like.shape)


def put_back(grad: LazyBuffer, index: LazyBuffer, shape: tuple[sint, ...]) -> LazyBuffer:
    """What flows back to a table of ``shape`` (pre, n, post) from elements that were read at ``index`` (pre, m, post).

    Few of each row are compared with all positions, which shares the kernel of whoever uses the result.
    """
    pre, n, post = shape
    m = index.shape[1]
    if upper(m) > _COMPARED:
        wide = grad.cast(sum_acc_dtype(grad.dtype))
        zeros = LazyBuffer.const(0, wide.dtype, shape, grad.device)
        return updated(zeros, 1, index, wide, Ops.ADD).cast(grad.dtype)
    full = (pre, m, n, post)
    index = _narrowed(index, n, _index_dtype(prod(shape)))
    hit = index.reshape((pre, m, 1, post)).expand(full)
    hit = hit.alu(Ops.CMPEQ, _positions(full, 2, index.dtype, grad.device))
    value = grad.reshape((pre, m, 1, post)).expand(full)
    return total(hit.alu(Ops.WHERE, value, splat(value, 0)), (1,)).reshape(shape)


class Take(Function):
    """Whole slices along one axis: shape (pre, n, post) and an index of shape (m,) give (pre, m, post).

    A position outside ``0 <= i < n`` reads as 0.
    """

    __slots__ = ("index", "shape")

    def forward(self, x: LazyBuffer, index: LazyBuffer) -> LazyBuffer:
        self.index, self.shape = index, x.shape
        pre, n, post = x.shape
        out = (pre, index.shape[0], post)
        dtype = _index_dtype(prod(x.shape))
        place = index.reshape((1, index.shape[0], 1)).expand(out)
        wide = place.cast(dtype)
        row = wide
        if pre != 1:
            base = _positions(out, 0, dtype, x.device)
            row = base.alu(Ops.MUL, _scalar(base, n)).alu(Ops.ADD, wide)
        flat = row
        if post != 1:
            flat = row.alu(Ops.MUL, _scalar(row, post)).alu(Ops.ADD, _positions(out, 2, dtype, x.device))
        return x.gather(guarded(flat, place, n))

    def backward(self, grad: LazyBuffer) -> Grads:
        m = self.index.shape[0]
        return put_back(grad, self.index.reshape((1, m, 1)).expand(grad.shape), self.shape), None


class Chosen(Function):
    """What :class:`TakeAlong` gives, where that is known already: nothing is looked up."""

    __slots__ = ("index", "shape")

    def forward(self, x: LazyBuffer, index: LazyBuffer, values: LazyBuffer) -> LazyBuffer:
        self.index, self.shape = index, x.shape
        return values

    def backward(self, grad: LazyBuffer) -> Grads:
        return put_back(grad, self.index, self.shape), None, None


class TakeAlong(Function):
    """One element for each place: (pre, n, post) at an index of (pre, m, post) gives (pre, m, post).

    A position outside ``0 <= i < n`` reads as 0.
    """

    __slots__ = ("index", "shape")

    def forward(self, x: LazyBuffer, index: LazyBuffer) -> LazyBuffer:
        self.index, self.shape = index, x.shape
        _, n, post = x.shape
        dtype = _index_dtype(prod(x.shape))
        wide = index.cast(dtype)
        base = _positions(wide.shape, 0, dtype, x.device)
        row = base.alu(Ops.MUL, _scalar(base, n)).alu(Ops.ADD, wide)
        flat = row.alu(Ops.MUL, _scalar(row, post)).alu(Ops.ADD, _positions(wide.shape, 2, dtype, x.device))
        return x.gather(guarded(flat, index, n))

    def backward(self, grad: LazyBuffer) -> Grads:
        return put_back(grad, self.index, self.shape), None
