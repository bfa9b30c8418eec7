"""Functions of one number."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, magnitude, splat, widened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Neg(Function):
    """-x, a linear map that is its own transpose."""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.NEG)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (self.forward(grad),)


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
    """y = 1 / x. From x y = 1 follows y dx + x dy = 0, so that dy = -y y dx: of x itself nothing is needed."""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = out = x.alu(Ops.RECIP)
        return out

    def backward(self, grad: LazyBuffer) -> Grads:
        # one factor after the other: the square alone may exceed what the dtype holds
        scaled = grad.alu(Ops.MUL, self.out).alu(Ops.MUL, self.out)
        return (scaled.alu(Ops.NEG),)


class Sqrt(Function):
    """The root y of x. From y y = x follows 2 y dy = dx."""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = out = x.alu(Ops.SQRT)
        return out

    def backward(self, grad: LazyBuffer) -> Grads:
        twice = self.out.alu(Ops.ADD, self.out)
        return (grad.alu(Ops.FDIV, twice),)


class Relu(Function):
    """The positive part of x, which grows with x where it is not 0; at 0 itself the slope is taken to be 0."""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = out = x.alu(Ops.MAX, splat(x, 0))
        return out

    def backward(self, grad: LazyBuffer) -> Grads:
        zero = splat(grad, 0)
        return (zero.alu(Ops.CMPLT, self.out).alu(Ops.WHERE, grad, zero),)


def _sigmoid(x: LazyBuffer) -> LazyBuffer:
    """1 / (1 + e**-x), as e**x / (1 + e**x) where x is negative: both are accurate, and no power is infinite."""
    one, negative = splat(x, 1), x.alu(Ops.CMPLT, splat(x, 0))
    power = negative.alu(Ops.WHERE, x, x.alu(Ops.NEG)).alu(Ops.EXP)  # whose slope at 0 is that of both
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
