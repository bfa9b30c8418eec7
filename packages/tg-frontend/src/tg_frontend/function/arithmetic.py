"""Functions of two and three operands."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, splat, widened


class Add(Function):
    """x + y"""

    __slots__ = ()

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.ADD, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        return grad, grad


class Sub(Function):
    """x - y"""

    __slots__ = ()

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.SUB, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        return grad, grad.alu(Ops.NEG) if self.needs[1] else None


class Mul(Function):
    """x * y"""

    __slots__ = ("x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y = x, y
        return x.alu(Ops.MUL, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (
            grad.alu(Ops.MUL, self.y) if self.needs[0] else None,
            grad.alu(Ops.MUL, self.x) if self.needs[1] else None,
        )


class Div(Function):
    """x / y"""

    __slots__ = ("out", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.y, self.out = y, x.alu(Ops.FDIV, y)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        quotient = grad.alu(Ops.FDIV, self.y)
        return quotient, quotient.alu(Ops.NEG).alu(Ops.MUL, self.out) if self.needs[1] else None


class Maximum(Function):
    """The greater of x and y; ties split the gradient in halves."""

    __slots__ = ("x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y = x, y
        return x.alu(Ops.MAX, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        half, zero = grad.alu(Ops.MUL, splat(grad, 0.5)), splat(grad, 0)
        tie = self.x.alu(Ops.CMPEQ, self.y).alu(Ops.WHERE, half, zero)
        return (
            self.y.alu(Ops.CMPLT, self.x).alu(Ops.WHERE, grad, tie) if self.needs[0] else None,
            self.x.alu(Ops.CMPLT, self.y).alu(Ops.WHERE, grad, tie) if self.needs[1] else None,
        )


class Where(Function):
    """x where the condition holds, else y."""

    __slots__ = ("condition",)

    def forward(self, condition: LazyBuffer, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.condition = condition
        return condition.alu(Ops.WHERE, x, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        zero = splat(grad, 0)
        return (
            None,
            self.condition.alu(Ops.WHERE, grad, zero) if self.needs[1] else None,
            self.condition.alu(Ops.WHERE, zero, grad) if self.needs[2] else None,
        )


def power(x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
    """x ** y of floats of one dtype and shape; NaN where -inf < x < 0 and y is no integer, 1 where y is 0."""

    def compute(v: LazyBuffer, w: LazyBuffer) -> LazyBuffer:
        zero, one = splat(v, 0), splat(v, 1)
        negative = v.alu(Ops.CMPLT, zero)
        magnitude = negative.alu(Ops.WHERE, v.alu(Ops.NEG), v).alu(Ops.LOG2).alu(Ops.MUL, w).alu(Ops.EXP2)
        half = w.alu(Ops.MUL, splat(w, 0.5))
        odd = half.alu(Ops.TRUNC).alu(Ops.CMPNE, half)
        whole = w.alu(Ops.TRUNC).alu(Ops.CMPEQ, w)
        signed = odd.alu(Ops.WHERE, magnitude.alu(Ops.NEG), magnitude)
        lowest = v.alu(Ops.CMPEQ, splat(v, -math.inf))
        broken = lowest.alu(Ops.WHERE, magnitude, splat(v, math.nan))
        result = negative.alu(Ops.WHERE, whole.alu(Ops.WHERE, signed, broken), magnitude)
        trivial = w.alu(Ops.CMPEQ, zero).alu(Ops.OR, v.alu(Ops.CMPEQ, one))
        return trivial.alu(Ops.WHERE, one, result)

    if x.dtype.itemsize >= 4:
        return compute(x, y)
    return compute(x.cast(dtypes.float32), y.cast(dtypes.float32)).cast(x.dtype)


class Pow(Function):
    """x ** y of floats. At x = 0 and y >= 0 the gradient of y is 0; for x < 0 it is NaN, as there is none."""

    __slots__ = ("out", "x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y, self.out = x, y, power(x, y)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        zero = splat(grad, 0)
        grad_x = grad_y = None
        if self.needs[0]:
            slope = self.y.alu(Ops.MUL, power(self.x, self.y.alu(Ops.SUB, splat(self.y, 1))))
            grad_x = self.y.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, zero, grad.alu(Ops.MUL, slope))
        if self.needs[1]:
            log = widened(self.x, lambda v: v.alu(Ops.LOG2).alu(Ops.MUL, splat(v, math.log(2))))
            flat = self.x.alu(Ops.CMPEQ, zero).alu(Ops.AND, self.y.alu(Ops.CMPLT, zero).alu(Ops.NOT))
            grad_y = flat.alu(Ops.WHERE, zero, grad.alu(Ops.MUL, self.out).alu(Ops.MUL, log))
        return grad_x, grad_y
