"""Functions of one number."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, magnitude, splat, widened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Neg(Function):
    """-x"""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.NEG)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.NEG),)


class Abs(Function):
    """The absolute value of a float; the gradient at 0 is 0."""

    __slots__ = ("x",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        return magnitude(x)

    def backward(self, grad: LazyBuffer) -> Grads:
        zero = splat(grad, 0)
        above = zero.alu(Ops.CMPLT, self.x).alu(Ops.WHERE, grad, zero)
        return (self.x.alu(Ops.CMPLT, zero).alu(Ops.WHERE, grad.alu(Ops.NEG), above),)


class Reciprocal(Function):
    """1 / x"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = x.alu(Ops.RECIP)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.NEG).alu(Ops.MUL, self.out).alu(Ops.MUL, self.out),)


class Sqrt(Function):
    """The square root."""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = x.alu(Ops.SQRT)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.FDIV, self.out.alu(Ops.MUL, splat(grad, 2))),)


class Relu(Function):
    """max(x, 0)"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = x.alu(Ops.MAX, splat(x, 0))
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        positive = splat(self.out, 0).alu(Ops.CMPLT, self.out)
        return (positive.alu(Ops.WHERE, grad, splat(grad, 0)),)


def _sigmoid(x: LazyBuffer) -> LazyBuffer:
    """1 / (1 + e**-x), as e**x / (1 + e**x) where x is negative: both are accurate, and no power is infinite."""
    one, negative = splat(x, 1), x.alu(Ops.CMPLT, splat(x, 0))
    power = magnitude(x).alu(Ops.NEG).alu(Ops.EXP)
    return negative.alu(Ops.WHERE, power, one).alu(Ops.FDIV, one.alu(Ops.ADD, power))


class Sigmoid(Function):
    """1 / (1 + e ** -x)"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = widened(x, _sigmoid)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        slope = self.out.alu(Ops.MUL, splat(self.out, 1).alu(Ops.SUB, self.out))
        return (grad.alu(Ops.MUL, slope),)


class Softplus(Function):
    """log(1 + e ** x)"""

    __slots__ = ("x",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        def compute(v: LazyBuffer) -> LazyBuffer:
            power = magnitude(v).alu(Ops.NEG).alu(Ops.EXP)
            return v.alu(Ops.MAX, splat(v, 0)).alu(Ops.ADD, power.alu(Ops.LOG1P))

        self.x = x
        return widened(x, compute)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.MUL, widened(self.x, _sigmoid)),)


class Step(Function):
    """Something computed of x that does not change with x but in steps: the gradient is 0."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[LazyBuffer], LazyBuffer]) -> None:
        self.compute = compute

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return self.compute(x)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (splat(grad, 0),)


class Trunc(Function):
    """x rounded toward zero; the gradient is 0."""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.TRUNC)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (splat(grad, 0),)
