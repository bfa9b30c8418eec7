"""Scatters: values that go to computed positions along an axis of a tensor, and where their gradients come from.

A position out of range is left out, and its value has a gradient of 0.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import prod, sint

from .base import Function, Grads, held, splat
from .group_products import slopes_of_products
from .lookup import TakeAlong
from .parallel_updates import updated


def taken(table: LazyBuffer, axis: int, index: LazyBuffer) -> LazyBuffer:
    """The elements that values at these positions go to, in the shape of the index; 0 where one is out of range."""
    shape, n = index.shape, table.shape[axis]
    box = table.shrink([(0, n if i == axis else dim) for i, dim in enumerate(shape)])
    pre, post = prod(shape[:axis]), prod(shape[axis + 1 :])
    rows, places = box.reshape((pre, n, post)), index.reshape((pre, shape[axis], post))
    if type(rows) is not LazyBuffer:
        return rows.applied(TakeAlong(), places).reshape(shape)  # type: ignore[attr-defined, no-any-return]
    return TakeAlong().forward(rows, held(places)).reshape(shape)


class Scatter(Function):
    """A tensor with values at positions along an axis: of several for one position the last one stays."""

    __slots__ = ("axis", "index")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        self.index = index
        return updated(x, self.axis, index, value)

    def backward(self, grad: LazyBuffer) -> Grads:
        index, axis = self.index, self.axis
        mine = theirs = None
        if self.needs[0]:
            mine = updated(grad, axis, index, LazyBuffer.const(0, grad.dtype, index.shape, grad.device))
        if self.needs[2]:
            single = tuple(dim if i == axis else 1 for i, dim in enumerate(index.shape))
            turn = LazyBuffer.iota(index.shape[axis], dtypes.int32, grad.device).reshape(single).expand(index.shape)
            turn = turn.alu(Ops.ADD, splat(turn, 1))
            last = taken(updated(splat(grad, 0, dtypes.int32), axis, index, turn), axis, index)
            part = taken(grad, axis, index)
            theirs = last.alu(Ops.CMPEQ, turn).alu(Ops.WHERE, part, splat(part, 0))
        return mine, None, theirs


class ScatterAdd(Function):
    """A tensor with values added at positions along an axis."""

    __slots__ = ("axis", "index")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        self.index = index
        return updated(x, self.axis, index, value, Ops.ADD)

    def backward(self, grad: LazyBuffer) -> Grads:
        return grad, None, taken(grad, self.axis, self.index) if self.needs[2] else None


class ScatterProd(Function):
    """A tensor multiplied by values at positions along an axis; of any order, gradients are right beside zeros."""

    __slots__ = ("axis", "index", "value", "x")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        self.x, self.index, self.value = x, index, value
        return updated(x, self.axis, index, value, Ops.MUL)

    def backward(self, grad: LazyBuffer) -> Grads:
        if type(grad) is not LazyBuffer:
            return self._by_groups(grad)
        axis, index = self.axis, self.index
        zero = [part.alu(Ops.CMPEQ, splat(part, 0)) for part in (self.x, self.value)]
        factors = [
            here.alu(Ops.WHERE, splat(part, 1), part) for here, part in zip(zero, (self.x, self.value), strict=True)]
        others = updated(factors[0], axis, index, factors[1], Ops.MUL)
        zeros = updated(zero[0].cast(dtypes.int32), axis, index, zero[1].cast(dtypes.int32), Ops.ADD)
        mine = _without(zero[0], factors[0], others, zeros, grad) if self.needs[0] else None
        theirs = None
        if self.needs[2]:
            reached = [taken(part, axis, index) for part in (others, zeros, grad)]
            theirs = _without(zero[1], factors[1], *reached)
        return mine, None, theirs

    def _by_groups(self, grad: LazyBuffer) -> Grads:
        """The same where it is differentiated: what :func:`_without` leaves out at zeros has slopes of its own."""
        axis, shape, n = self.axis, self.index.shape, self.x.shape[self.axis]
        m, pre, post = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
        if not (isinstance(n, int) and isinstance(m, int) and isinstance(pre, int) and isinstance(post, int)):
            raise TypeError("the gradient of products that are scattered over symbolic sizes cannot be differentiated")
        if n * m * pre * post == 0:
            return grad, None, None

        def joined(mine: LazyBuffer, theirs: LazyBuffer) -> LazyBuffer:
            """Elements of the tensor, and behind them values: shape (pre * post, n + m)."""
            parts = []
            for part, count, around in ((theirs, m, (n, 0)), (mine, n, (0, m))):
                rows = part.reshape((pre, count, post)).permute((0, 2, 1)).reshape((pre * post, count))
                parts.append(rows.pad(((0, 0), around)))
            return parts[0].alu(Ops.ADD, parts[1])

        def separate(rows: LazyBuffer, start: int, count: int, shape: tuple[sint, ...]) -> LazyBuffer:
            part = rows.shrink(((0, pre * post), (start, start + count))).reshape((pre, post, count))
            return part.permute((0, 2, 1)).reshape(shape)

        box = tuple((0, n if i == axis else dim) for i, dim in enumerate(shape))
        inside = tuple(end for _, end in box)
        index = self.index.cast(dtypes.int32)
        above = index.alu(Ops.CMPLT, splat(index, n))
        known = above.alu(Ops.AND, index.alu(Ops.CMPLT, splat(index, 0)).alu(Ops.NOT))
        key = known.alu(Ops.WHERE, index.alu(Ops.ADD, splat(index, 1)), splat(index, n + 1))
        own = LazyBuffer.iota(n, dtypes.int32, grad.device)
        own = own.alu(Ops.ADD, splat(own, 1)).reshape(tuple(n if i == axis else 1 for i in range(len(shape))))
        slopes = slopes_of_products(
            joined(self.x.shrink(box), self.value), joined(own.expand(inside), key),
            joined(grad.shrink(box), taken(grad, axis, self.index)),
        )  # fmt: skip
        mine = separate(slopes, 0, n, inside)
        if inside != self.x.shape:  # elements that no value can reach
            around = tuple((0, whole - end) for whole, end in zip(self.x.shape, inside, strict=True))
            far = splat(mine, 1).pad(around).alu(Ops.CMPEQ, splat(grad, 0))
            mine = far.alu(Ops.WHERE, grad, mine.pad(around))
        return mine, None, separate(slopes, n, m, shape)


def _without(
    zero: LazyBuffer, factor: LazyBuffer, product: LazyBuffer, zeros: LazyBuffer, grad: LazyBuffer
) -> LazyBuffer:
    """The gradient of each factor of products: the product of the other factors.

    Args:
      zero: whether the factor is 0.
      factor: the factor, or 1 where it is 0.
      product: the product of all factors that are not 0.
      zeros: how many are.
      grad: the gradient of the product.
    """
    rest = product.alu(Ops.FDIV, factor)
    other = zeros.alu(Ops.CMPEQ, zero.cast(zeros.dtype))  # no zero but itself
    return other.alu(Ops.WHERE, grad.alu(Ops.MUL, rest), splat(grad, 0))


class ScatterMax(Function):
    """The greatest of each element and the values that go there. Those that are equal share the gradient."""

    __slots__ = ("axis", "index", "out", "value", "x")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        self.x, self.index, self.value = x, index, value
        self.out = updated(x, self.axis, index, value, Ops.MAX)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        axis, index = self.axis, self.index
        mine = self.x.alu(Ops.CMPEQ, self.out)
        theirs = self.value.alu(Ops.CMPEQ, taken(self.out, axis, index))
        count = updated(mine.cast(grad.dtype), axis, index, theirs.cast(grad.dtype), Ops.ADD)
        share = grad.alu(Ops.FDIV, count)
        part = taken(share, axis, index)
        return (
            mine.alu(Ops.WHERE, share, splat(share, 0)), None,
            theirs.alu(Ops.WHERE, part, splat(part, 0)) if self.needs[2] else None)
