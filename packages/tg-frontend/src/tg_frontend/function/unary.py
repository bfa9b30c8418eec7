"""Functions of one number."""

from __future__ import annotations

import math

from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, splat, widened

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


class Reciprocal(Function):
    """1 / x"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = x.alu(Ops.RECIP)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.NEG).alu(Ops.MUL, self.out).alu(Ops.MUL, self.out),)


class Sin(Function):
    """sin x, in radians"""

    __slots__ = ("x",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        return widened(x, lambda v: v.alu(Ops.SIN))

    def backward(self, grad: LazyBuffer) -> Grads:
        cos = widened(self.x, lambda v: splat(v, math.pi / 2).alu(Ops.SUB, v).alu(Ops.SIN))
        return (grad.alu(Ops.MUL, cos),)


class Exp2(Function):
    """2 ** x"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = widened(x, lambda v: v.alu(Ops.EXP2))
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.MUL, self.out).alu(Ops.MUL, splat(grad, math.log(2))),)


class Exp(Function):
    """e ** x"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.out = widened(x, lambda v: v.alu(Ops.MUL, splat(v, 1 / math.log(2))).alu(Ops.EXP2))
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.MUL, self.out),)


class Log2(Function):
    """log x, base 2"""

    __slots__ = ("x",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        return widened(x, lambda v: v.alu(Ops.LOG2))

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.FDIV, self.x.alu(Ops.MUL, splat(grad, math.log(2)))),)


class Log(Function):
    """log x, base e"""

    __slots__ = ("x",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        return widened(x, lambda v: v.alu(Ops.LOG2).alu(Ops.MUL, splat(v, math.log(2))))

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.alu(Ops.FDIV, self.x),)


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


class Sigmoid(Function):
    """1 / (1 + e ** -x)"""

    __slots__ = ("out",)

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        def compute(v: LazyBuffer) -> LazyBuffer:
            power = v.alu(Ops.MUL, splat(v, -1 / math.log(2))).alu(Ops.EXP2)
            return splat(v, 1).alu(Ops.ADD, power).alu(Ops.RECIP)

        self.out = widened(x, compute)
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        slope = self.out.alu(Ops.MUL, splat(self.out, 1).alu(Ops.SUB, self.out))
        return (grad.alu(Ops.MUL, slope),)


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
