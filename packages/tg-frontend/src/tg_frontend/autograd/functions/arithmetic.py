"""Functions of two and three operands."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, magnitude, splat, widened, widened_pair


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
    """x * y. The product rule, d(x y) = y dx + x dy: each factor is the slope for the other one."""

    __slots__ = ("x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y = x, y
        return x.alu(Ops.MUL, y)

    def backward(self, grad: LazyBuffer) -> Grads:
        for_x, for_y = self.needs
        return grad.alu(Ops.MUL, self.y) if for_x else None, grad.alu(Ops.MUL, self.x) if for_y else None


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
    """x ** y of floats of one dtype and shape."""
    return widened_pair(x, y, lambda v, w: v.alu(Ops.POW, w))


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
            one, half = splat(self.y, 1), self.x.alu(Ops.MUL, splat(self.x, 0.5))
            known = magnitude(half.alu(Ops.RECIP)).alu(Ops.CMPLT, splat(self.x, math.inf))  # 1 / x is finite
            none = self.y.alu(Ops.CMPEQ, zero).alu(Ops.AND, known.alu(Ops.NOT))
            # x**0 where it is not looked at: the gradient of this gradient would be 0 * inf there
            lower = none.alu(Ops.WHERE, one, self.y).alu(Ops.SUB, one)
            slope = self.y.alu(Ops.MUL, power(self.x, lower))
            grad_x = none.alu(Ops.WHERE, zero, grad.alu(Ops.MUL, slope))
        if self.needs[1]:
            flat = self.x.alu(Ops.CMPEQ, zero).alu(Ops.AND, self.y.alu(Ops.CMPLT, zero).alu(Ops.NOT))
            # of 1 where it is not looked at: the gradient of this gradient would be 0 / 0 there
            base = flat.alu(Ops.WHERE, splat(self.x, 1), self.x)
            log = widened(base, lambda v: v.alu(Ops.LOG))
            grad_y = flat.alu(Ops.WHERE, zero, grad.alu(Ops.MUL, self.out).alu(Ops.MUL, log))
        return grad_x, grad_y


def _atan2(y: LazyBuffer, x: LazyBuffer) -> LazyBuffer:
    zero, inf = splat(x, 0), splat(x, math.inf)

    def below(v: LazyBuffer) -> LazyBuffer:
        """Where a number has the sign -, also as a zero."""
        return v.alu(Ops.CMPLT, zero).alu(
            Ops.OR, v.alu(Ops.CMPEQ, zero).alu(Ops.AND, v.alu(Ops.RECIP).alu(Ops.CMPLT, zero))
        )

    top, bottom = magnitude(y), magnitude(x)
    both = top.alu(Ops.CMPEQ, inf).alu(Ops.AND, bottom.alu(Ops.CMPEQ, inf))
    ratio = both.alu(Ops.WHERE, splat(x, 1), top.alu(Ops.FDIV, bottom))
    none = top.alu(Ops.CMPEQ, zero).alu(Ops.AND, bottom.alu(Ops.CMPEQ, zero))
    angle = none.alu(Ops.WHERE, zero, ratio).alu(Ops.ATAN)
    # pi as the sum of two numbers
    high = dtypes.as_const(math.pi, x.dtype)
    rest = math.pi - high + 1.2246467991473532e-16
    turned = splat(x, high).alu(Ops.SUB, angle.alu(Ops.SUB, splat(x, rest)))
    behind = x.alu(Ops.CMPLT, zero).alu(Ops.OR, none.alu(Ops.AND, below(x)))
    angle = behind.alu(Ops.WHERE, turned, angle)
    return below(y).alu(Ops.WHERE, angle.alu(Ops.NEG), angle)


class Atan2(Function):
    """The angle of the point (x, y), given y and x."""

    __slots__ = ("x", "y")

    def forward(self, y: LazyBuffer, x: LazyBuffer) -> LazyBuffer:
        self.y, self.x = y, x
        return widened_pair(y, x, _atan2)

    def backward(self, grad: LazyBuffer) -> Grads:
        # x / (x² + y²) and -y / (x² + y²), of coordinates over the longer one, whose squares are neither lost nor
        # infinite; 0 at the origin
        longer = magnitude(self.x).alu(Ops.MAX, magnitude(self.y))
        origin = longer.alu(Ops.CMPEQ, splat(longer, 0))
        unit = origin.alu(Ops.WHERE, splat(longer, 1), longer)
        x, y = self.x.alu(Ops.FDIV, unit), self.y.alu(Ops.FDIV, unit)
        square = x.alu(Ops.MUL, x).alu(Ops.ADD, y.alu(Ops.MUL, y))
        share = grad.alu(Ops.FDIV, origin.alu(Ops.WHERE, splat(longer, 1), square).alu(Ops.MUL, unit))
        return (
            share.alu(Ops.MUL, x) if self.needs[0] else None,
            share.alu(Ops.MUL, y).alu(Ops.NEG) if self.needs[1] else None,
        )
