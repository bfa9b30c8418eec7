"""Functions of one number that are ops of their own, and their slopes."""

from __future__ import annotations

import math
from typing import NamedTuple

from tg_lazy import LazyBuffer, Ops

from .base import Function, Grads, splat, widened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Slope(NamedTuple):
    """A derivative.

    Attributes:
      of: gives it, from the argument and the result, in float32 at least.
      over: whether the gradient is divided by that, not multiplied with it.
    """

    of: Callable[[LazyBuffer, LazyBuffer], LazyBuffer]
    over: bool = False


def _plus(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.ADD, splat(x, value))


def _times(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.MUL, splat(x, value))


def _less(x: LazyBuffer) -> LazyBuffer:
    """(1 - x) * (1 + x)"""
    return splat(x, 1).alu(Ops.SUB, x).alu(Ops.MUL, _plus(x, 1))


def _bell(x: LazyBuffer) -> LazyBuffer:
    """The derivative of ERF."""
    return _times(x.alu(Ops.MUL, x).alu(Ops.NEG).alu(Ops.EXP), 2 / math.sqrt(math.pi))


def _acosh(x: LazyBuffer, out: LazyBuffer) -> LazyBuffer:
    return _plus(x, -1).alu(Ops.MUL, _plus(x, 1)).alu(Ops.SQRT)


SLOPES: dict[Ops, Slope] = {
    Ops.EXP: Slope(lambda x, out: out),
    Ops.EXP2: Slope(lambda x, out: _times(out, math.log(2))),
    Ops.EXPM1: Slope(lambda x, out: x.alu(Ops.EXP)),  # the result and 1 are nothing where the result is nearly -1
    Ops.LOG: Slope(lambda x, out: x, over=True),
    Ops.LOG2: Slope(lambda x, out: _times(x, math.log(2)), over=True),
    Ops.LOG10: Slope(lambda x, out: _times(x, math.log(10)), over=True),
    Ops.LOG1P: Slope(lambda x, out: _plus(x, 1), over=True),
    Ops.SIN: Slope(lambda x, out: x.alu(Ops.COS)),
    Ops.COS: Slope(lambda x, out: x.alu(Ops.SIN).alu(Ops.NEG)),
    Ops.TAN: Slope(lambda x, out: _plus(out.alu(Ops.MUL, out), 1)),
    Ops.ASIN: Slope(lambda x, out: _less(x).alu(Ops.SQRT), over=True),
    Ops.ACOS: Slope(lambda x, out: _less(x).alu(Ops.SQRT).alu(Ops.NEG), over=True),
    Ops.ATAN: Slope(lambda x, out: _plus(x.alu(Ops.MUL, x), 1), over=True),
    Ops.SINH: Slope(lambda x, out: x.alu(Ops.COSH)),
    Ops.COSH: Slope(lambda x, out: x.alu(Ops.SINH)),
    Ops.TANH: Slope(lambda x, out: _less(out)),
    Ops.ASINH: Slope(lambda x, out: _plus(x.alu(Ops.MUL, x), 1).alu(Ops.SQRT), over=True),
    Ops.ACOSH: Slope(_acosh, over=True),
    Ops.ATANH: Slope(lambda x, out: _less(x), over=True),
    Ops.ERF: Slope(lambda x, out: _bell(x)),
    Ops.ERFC: Slope(lambda x, out: _bell(x).alu(Ops.NEG)),
}


class Elementary(Function):
    """A function of one number.

    Args:
      op: which of those in :data:`SLOPES`.
    """

    __slots__ = ("op", "out", "x")

    def __init__(self, op: Ops) -> None:
        self.op = op

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return self.op.name.lower()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.x = x
        self.out = widened(x, lambda v: v.alu(self.op))
        return self.out

    def backward(self, grad: LazyBuffer) -> Grads:
        slope = SLOPES[self.op]

        def found(v: LazyBuffer) -> LazyBuffer:
            return slope.of(v, self.out.cast(v.dtype))

        return (grad.alu(Ops.FDIV if slope.over else Ops.MUL, widened(self.x, found)),)
