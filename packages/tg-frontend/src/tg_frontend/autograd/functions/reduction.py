"""Reductions. The axes that are reduced stay with size 1."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

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
        x, zero, one = self.x, splat(self.x, 0), splat(self.x, 1)
        is_zero = x.alu(Ops.CMPEQ, zero)
        others = is_zero.alu(Ops.WHERE, one, x)
        product = others.reduce(Ops.MUL, self.axes).expand(x.shape)
        zeros = is_zero.cast(dtypes.int32).reduce(Ops.ADD, self.axes).expand(x.shape)
        # The product of the other factors: all of them where none is 0; the non-zero ones at the only 0; else 0.
        at_zero = zeros.alu(Ops.CMPEQ, splat(zeros, 1)).alu(Ops.WHERE, product, zero)
        at_other = zeros.alu(Ops.CMPEQ, splat(zeros, 0)).alu(Ops.WHERE, product.alu(Ops.FDIV, others), zero)
        return (grad.expand(x.shape).alu(Ops.MUL, is_zero.alu(Ops.WHERE, at_zero, at_other)),)


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
