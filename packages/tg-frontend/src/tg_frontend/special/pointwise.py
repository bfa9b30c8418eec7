"""Functions of corresponding numbers that are computed by an algorithm, and whose slopes are given by a formula."""

from __future__ import annotations

from tg_dtype import dtypes, least_upper_float
from tg_lazy import LazyBuffer, Ops

from ..array.array import A
from ..array.operands import float_pair
from ..autograd.differentiation import MODE, Switch
from ..autograd.functions import Function, Grads
from ..ops.rounding import round
from .approximations import Polynomial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class Pointwise(Function):
    """A function of tensors of one shape and dtype.

    Its slopes are functions of the same tensors, made of what has a gradient in turn: so there are those of any order.

    Args:
      label: its name in messages.
      kind: the class of the tensors.
      compute: what it gives of tensors.
      slopes: the derivative by each operand; None where there is none.
    """

    __slots__ = ("compute", "kind", "label", "slopes", "x", "y")

    def __init__(
        self, label: str, kind: Any, compute: Callable[..., Any], slopes: Sequence[Callable[..., Any] | None]
    ) -> None:
        self.label, self.kind, self.compute, self.slopes = label, kind, compute, slopes

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return self.label

    def forward(self, x: LazyBuffer, y: LazyBuffer | None = None) -> LazyBuffer:
        self.x = x
        if y is not None:
            self.y = y
        return self._of(self.compute)

    def backward(self, grad: LazyBuffer) -> Grads:
        found: list[LazyBuffer | None] = []
        for needed, slope in zip(self.needs, self.slopes, strict=False):
            if needed and slope is None:
                place = "first" if not found else "second"
                raise TypeError(f"{self.label}: there is no gradient with respect to the {place} argument")
            wanted = slope is not None and (needed or not self.wanted)
            found.append(grad.alu(Ops.MUL, self._of(slope)) if wanted and slope is not None else None)
        return tuple(found)

    def _of(self, function: Callable[..., Any]) -> LazyBuffer:
        """The value of a function of the operands; recorded, if these are."""
        given: list[Any] = [self.x, self.y] if hasattr(self, "y") else [self.x]
        recorded = next((type(one) for one in given if not isinstance(one, LazyBuffer)), None)
        if recorded is not None:
            tensors = [self.kind._wrap(one) if isinstance(one, LazyBuffer) else one.tensor for one in given]
            found: LazyBuffer = recorded(function(*tensors))
            return found
        with Switch(MODE, "recording", False):
            found = function(*[self.kind._wrap(one) for one in given]).lazydata
            return found


def pointwise(label: str, compute: Callable[[A], A], slope: Callable[[A], A] | None, x: A) -> A:
    """A function of floats, of narrow ones in float32; of integers as floats.

    Args:
      label: its name in messages.
      compute: the algorithm, for float32 and float64.
      slope: its derivative; None if it has none that is offered.
      x: the argument.
    """
    wide = _widened(x)
    out = wide._apply(Pointwise(label, type(x), compute, (slope,)))
    return out.cast(least_upper_float(x.dtype))


def pointwise_pair(
    label: str, compute: Callable[[A, A], A], slopes: Sequence[Callable[[A, A], A] | None], x: A, other: Any
) -> A:
    """The same of two tensors that broadcast, or of one and a number."""
    a, b = float_pair(x, other, label)
    out = _widened(a)._apply(Pointwise(label, type(x), compute, slopes), _widened(b))
    return out.cast(least_upper_float(a.dtype))


def _widened(x: A) -> A:
    kind = least_upper_float(x.dtype)
    return x.cast(kind if kind.itemsize >= 4 else dtypes.float32)


def evaluated(polynomial: Polynomial, x: A) -> A:
    """The polynomial at ``x``, of the degree that its dtype wants, by Horner's rule."""
    t = x if polynomial.middle == 0 and polynomial.half == 1 else (x - polynomial.middle) * (1 / polynomial.half)
    *rest, last = polynomial.double if x.dtype.itemsize == 8 else polynomial.single
    out = t * last + rest.pop()
    for coefficient in reversed(rest):
        out = out * t + coefficient
    return out


def squared(x: A) -> tuple[A, A]:
    """The square as a part without error and a small rest, for numbers of magnitudes below 64: exp of it loses nothing.

    The first is the square of the number rounded to a multiple of 1/16.
    """
    high = round(x * 16) * (1 / 16)
    return high * high, (x - high) * (x + high)
