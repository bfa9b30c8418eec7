"""Scatters: values that go to computed positions along an axis of a tensor, and where their gradients come from.

A position out of range is left out, and its value has a gradient of 0.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import prod

from .base import Function, Grads, held, splat
from .lookup import TakeAlong
from .parallel_updates import updated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
    """A tensor multiplied by values at positions along an axis. The gradient is right beside factors of 0 as well."""

    __slots__ = ("axis", "index", "value", "x")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: LazyBuffer, index: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        self.x, self.index, self.value = x, index, value
        return updated(x, self.axis, index, value, Ops.MUL)

    def backward(self, grad: LazyBuffer) -> Grads:
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

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """Refuses: where factors are 0, what :func:`_without` leaves out is constant only to first order.

        Raises:
          TypeError: when it is called.
        """
        raise TypeError("the gradient of products that are scattered cannot be differentiated")


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
