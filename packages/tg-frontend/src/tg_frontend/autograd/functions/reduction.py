"""Reductions. The axes that are reduced stay with size 1."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import prod

from .base import Function, Grads, splat, total


class Sum(Function):
    """The sum along axes, in the dtype of the operand."""

    __slots__ = ("axes", "shape")

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.reduce(Ops.ADD, self.axes)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.expand(self.shape),)


class Prod(Function):
    """The product along axes. The gradient is right where factors are 0, too."""

    __slots__ = ("axes", "x")

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        return x.reduce(Ops.MUL, self.axes)

    def backward(self, grad: LazyBuffer) -> Grads:
        if type(grad) is not LazyBuffer:
            return (self._by_pairs(grad),)
        x, zero, one = self.x, splat(self.x, 0), splat(self.x, 1)
        is_zero = x.alu(Ops.CMPEQ, zero)
        others = is_zero.alu(Ops.WHERE, one, x)
        product = others.reduce(Ops.MUL, self.axes).expand(x.shape)
        zeros = is_zero.cast(dtypes.int32).reduce(Ops.ADD, self.axes).expand(x.shape)
        # The product of the other factors: all of them where none is 0; the non-zero ones at the only 0; else 0.
        at_zero = zeros.alu(Ops.CMPEQ, splat(zeros, 1)).alu(Ops.WHERE, product, zero)
        at_other = zeros.alu(Ops.CMPEQ, splat(zeros, 0)).alu(Ops.WHERE, product.alu(Ops.FDIV, others), zero)
        return (grad.expand(x.shape).alu(Ops.MUL, is_zero.alu(Ops.WHERE, at_zero, at_other)),)

    def _by_pairs(self, grad: LazyBuffer) -> LazyBuffer:
        """The same as products of halves, and of halves of these: right where factors are 0 in any order."""
        order = (*(a for a in range(len(self.x.shape)) if a not in self.axes), *self.axes)
        moved = self.x.permute(order)
        rows, number = moved.shape[: len(order) - len(self.axes)], prod(self.x.shape[a] for a in self.axes)
        if not isinstance(number, int):
            raise TypeError("the gradient of prod over an axis of a symbolic size cannot be differentiated")
        count = number
        around = ((0, 0),) * len(rows)
        whole = tuple((0, dim) for dim in rows)
        size = 1 << (count - 1).bit_length() if count else 1
        # behind the factors are ones
        factors = moved.reshape((*rows, count))
        rest = splat(factors, 1).shrink((*whole, (0, 1))) if count else splat(grad.reshape((*rows, 1)), 1)
        if size > count:
            more = rest.expand((*rows, size - count)).pad((*around, (count, 0)))
            factors = factors.pad((*around, (0, size - count))).alu(Ops.ADD, more)
        halves: list[tuple[LazyBuffer, LazyBuffer]] = []
        while size > 1:
            size //= 2
            pair = factors.shrink((*whole, (0, size))), factors.shrink((*whole, (size, 2 * size)))
            halves.append(pair)
            factors = pair[0].alu(Ops.MUL, pair[1])
        share = grad.permute(order).reshape((*rows, 1))
        for left, right in reversed(halves):
            half = left.shape[-1]
            first = share.alu(Ops.MUL, right).pad((*around, (0, half)))
            share = first.alu(Ops.ADD, share.alu(Ops.MUL, left).pad((*around, (half, 0))))
        inner = share.shrink((*whole, (0, count))).reshape(moved.shape)
        return inner.permute(tuple(order.index(a) for a in range(len(order))))


class Max(Function):
    """The maximum along axes; ties share the gradient evenly."""

    __slots__ = ("axes", "out", "x")

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x, self.out = x, x.reduce(Ops.MAX, self.axes)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        shape = self.x.shape
        hit = self.x.alu(Ops.CMPEQ, self.out.expand(shape))
        count = total(hit.cast(dtypes.float32 if grad.dtype.itemsize < 4 else grad.dtype), self.axes).cast(grad.dtype)
        share = grad.alu(Ops.FDIV, count).expand(shape)
        return (hit.alu(Ops.WHERE, share, splat(share, 0)),)
