"""Remainders, and quotients without a fraction, of floats."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, held, splat, widened_pair


def _unlike(x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
    """Where x is not 0 and has another sign than y."""
    zero = splat(x, 0)
    opposite = x.alu(Ops.CMPLT, zero).alu(Ops.CMPNE, y.alu(Ops.CMPLT, zero))
    return opposite.alu(Ops.AND, x.alu(Ops.CMPNE, zero))


def _near(x: LazyBuffer) -> LazyBuffer:
    """The whole number near one that is nearly whole."""
    down = x.alu(Ops.TRUNC)
    # what is large has no fraction
    left = x.alu(Ops.SUB, down)
    zero, half = splat(x, 0), splat(x, 0.5)
    up = half.alu(Ops.CMPLT, left).alu(Ops.WHERE, splat(x, 1), zero)
    up = left.alu(Ops.CMPLT, half.alu(Ops.NEG)).alu(Ops.WHERE, splat(x, -1), up)
    return down.alu(Ops.ADD, up)


def floored_remainder(x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
    """x - y * floor(x / y), exactly; with the sign of y, also where it is 0."""
    rest = x.alu(Ops.MOD, y)
    moved = _unlike(rest, y).alu(Ops.WHERE, rest.alu(Ops.ADD, y), rest)
    zero = splat(x, 0)
    signed = y.alu(Ops.CMPLT, zero).alu(Ops.WHERE, splat(x, -0.0), zero)
    return moved.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, signed, moved)


def floored_quotient(x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
    """The whole number next below x / y, of which the quotient of floats may be the one above; x / 0 is x / y."""
    rest, quotient = x.alu(Ops.MOD, y), x.alu(Ops.FDIV, y)
    whole = _near(x.alu(Ops.SUB, rest).alu(Ops.FDIV, y))
    whole = _unlike(rest, y).alu(Ops.WHERE, whole.alu(Ops.SUB, splat(x, 1)), whole)
    small = whole.alu(Ops.CMPEQ, splat(x, 0))
    # 0 has the sign of the quotient
    whole = small.alu(Ops.WHERE, quotient.alu(Ops.MUL, splat(x, 0)), whole)
    return y.alu(Ops.CMPEQ, splat(x, 0)).alu(Ops.WHERE, quotient, whole)


class Remainder(Function):
    """x - y * floor(x / y)"""

    __slots__ = ("x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y = x, y
        return widened_pair(x, y, floored_remainder)

    def backward(self, grad: LazyBuffer) -> Grads:
        if not self.needs[1]:
            return grad, None
        return grad, grad.alu(Ops.MUL, widened_pair(held(self.x), held(self.y), floored_quotient).alu(Ops.NEG))


class Fmod(Function):
    """x - y * trunc(x / y)"""

    __slots__ = ("out", "x", "y")

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        self.x, self.y = x, y
        self.out = widened_pair(x, y, lambda v, w: v.alu(Ops.MOD, w))
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        if not self.needs[1]:
            return grad, None
        quotient = _near(held(self.x).alu(Ops.SUB, held(self.out)).alu(Ops.FDIV, held(self.y)))
        return grad, grad.alu(Ops.MUL, quotient.alu(Ops.NEG))


class FloorDiv(Function):
    """floor(x / y); the gradient is 0."""

    __slots__ = ()

    def forward(self, x: LazyBuffer, y: LazyBuffer) -> LazyBuffer:
        return widened_pair(x, y, floored_quotient)

    def backward(self, grad: LazyBuffer) -> Grads:
        return splat(grad, 0), splat(grad, 0)
