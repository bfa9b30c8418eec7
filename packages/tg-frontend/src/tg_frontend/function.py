"""The differentiable functions: what the lazy graph computes forward, and which gradient flows back.

Every differentiable method of ``Tensor`` is made of these. A function is a small object: its constructor takes the
parameters that are not tensors, :meth:`Function.forward` takes the operands' ``LazyBuffer`` and keeps what the
gradient needs, :meth:`Function.backward` takes the gradient of the result and gives one gradient an operand.
Operands arrive with the shapes and dtypes that the graph needs (broadcast, promoted); checking what a person typed
is the business of the methods.

Gradients at points where there is more than one: ``Max`` and ``Maximum`` split evenly between ties, ``Relu`` gives 0
at 0, ``Trunc`` gives 0 everywhere.
"""

from __future__ import annotations

import math

from tg_dtype import ConstType, DType, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer, Ops
from tg_shape import sint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Grads = tuple[LazyBuffer | None, ...]


def splat(like: LazyBuffer, value: ConstType, dtype: DType | None = None) -> LazyBuffer:
    """``value`` everywhere in the shape of ``like``, on its device, in its dtype unless another is given."""
    return LazyBuffer.const(value, dtype or like.dtype, like.shape, like.device)


def widened(x: LazyBuffer, compute: Callable[[LazyBuffer], LazyBuffer]) -> LazyBuffer:
    """``compute(x)``, in float32 where ``x`` is a narrower float, rounded once to the dtype of ``x``."""
    if x.dtype.itemsize >= 4:
        return compute(x)
    return compute(x.cast(dtypes.float32)).cast(x.dtype)


def total(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    """The sum over ``axes``, kept with size 1, accumulated in at least 32 bits and returned in the dtype of ``x``."""
    if not axes:
        return x
    return x.cast(sum_acc_dtype(x.dtype)).reduce(Ops.ADD, axes).cast(x.dtype)


class Function:
    """A differentiable function applied once.

    Attributes:
      parents: the operands, as the tensors that they were; set only when a gradient will be wanted.
      needs: for each operand, whether its gradient is wanted.
    """

    __slots__ = ("needs", "parents")

    parents: tuple[object, ...]
    needs: tuple[bool, ...]
    forward: Callable[..., LazyBuffer]

    def backward(self, grad: LazyBuffer) -> Grads:
        """One gradient an operand, of its shape and dtype; None where it is not wanted or there is none."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return type(self).__name__.lower()


# *** memory and type ***


class Contiguous(Function):
    """The operand in memory, row-major."""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.contiguous()

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad,)


class ContiguousBackward(Function):
    """The operand itself; its gradient is put in memory before it flows on."""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.contiguous(),)


class Copy(Function):
    """The operand on another device."""

    __slots__ = ("device", "source")

    def __init__(self, device: str) -> None:
        self.device = device

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.source = x.device
        return x.copy_to(self.device)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.copy_to(self.source),)


class Cast(Function):
    """The operand converted to another dtype."""

    __slots__ = ("dtype", "source")

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.source = x.dtype
        return x.cast(self.dtype)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.cast(self.source),)


# *** elementwise, one operand ***


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


class Trunc(Function):
    """x rounded toward zero; the gradient is 0."""

    __slots__ = ()

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.TRUNC)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (splat(grad, 0),)


# *** elementwise, two and three operands ***


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
    """x ** y of floats of one dtype and shape; NaN where x < 0 and y is not an integer, 1 where y is 0."""

    def compute(v: LazyBuffer, w: LazyBuffer) -> LazyBuffer:
        zero, one = splat(v, 0), splat(v, 1)
        negative = v.alu(Ops.CMPLT, zero)
        magnitude = negative.alu(Ops.WHERE, v.alu(Ops.NEG), v).alu(Ops.LOG2).alu(Ops.MUL, w).alu(Ops.EXP2)
        half = w.alu(Ops.MUL, splat(w, 0.5))
        odd = half.alu(Ops.TRUNC).alu(Ops.CMPNE, half)
        whole = w.alu(Ops.TRUNC).alu(Ops.CMPEQ, w)
        signed = odd.alu(Ops.WHERE, magnitude.alu(Ops.NEG), magnitude)
        result = negative.alu(Ops.WHERE, whole.alu(Ops.WHERE, signed, splat(v, math.nan)), magnitude)
        trivial = w.alu(Ops.CMPEQ, zero).alu(Ops.OR, v.alu(Ops.CMPEQ, one))
        return trivial.alu(Ops.WHERE, one, result)

    if x.dtype.itemsize >= 4:
        return compute(x, y)
    return compute(x.cast(dtypes.float32), y.cast(dtypes.float32)).cast(x.dtype)


class Pow(Function):
    """x ** y of floats. At x = 0 and y > 0 the gradient of y is 0; for x < 0 it is NaN, as there is none."""

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
            flat = self.x.alu(Ops.CMPEQ, zero).alu(Ops.AND, zero.alu(Ops.CMPLT, self.y))
            grad_y = flat.alu(Ops.WHERE, zero, grad.alu(Ops.MUL, self.out).alu(Ops.MUL, log))
        return grad_x, grad_y


# *** reductions: the axes stay with size 1 ***


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


# *** movement ***


class Expand(Function):
    """Axes of size 1 repeated."""

    __slots__ = ("axes", "shape")

    def __init__(self, shape: tuple[sint, ...]) -> None:
        self.shape = shape

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.axes = tuple(i for i, (old, new) in enumerate(zip(x.shape, self.shape, strict=True)) if old != new)
        return x.expand(self.shape)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (total(grad, self.axes),)


class Reshape(Function):
    """The elements in order, in another shape."""

    __slots__ = ("shape", "source")

    def __init__(self, shape: tuple[sint, ...]) -> None:
        self.shape = shape

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.source = x.shape
        return x.reshape(self.shape)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.reshape(self.source),)


class Permute(Function):
    """The axes in another order."""

    __slots__ = ("order",)

    def __init__(self, order: tuple[int, ...]) -> None:
        self.order = order

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.permute(self.order)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.permute(tuple(self.order.index(i) for i in range(len(self.order)))),)


class Pad(Function):
    """Zeros around the operand: (before, after) for each axis."""

    __slots__ = ("amounts", "shape")

    def __init__(self, amounts: tuple[tuple[sint, sint], ...]) -> None:
        self.amounts = amounts

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.pad(self.amounts)

    def backward(self, grad: LazyBuffer) -> Grads:
        bounds = tuple((before, before + dim) for (before, _), dim in zip(self.amounts, self.shape, strict=True))
        return (grad.shrink(bounds),)


class Shrink(Function):
    """A box of the operand: [start, stop) for each axis."""

    __slots__ = ("bounds", "shape")

    def __init__(self, bounds: tuple[tuple[sint, sint], ...]) -> None:
        self.bounds = bounds

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.shrink(self.bounds)

    def backward(self, grad: LazyBuffer) -> Grads:
        amounts = tuple((start, dim - stop) for (start, stop), dim in zip(self.bounds, self.shape, strict=True))
        return (grad.pad(amounts),)


class Flip(Function):
    """Axes reversed."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.flip(self.axes)

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad.flip(self.axes),)


class Cat(Function):
    """Operands one after another along an axis."""

    __slots__ = ("axis", "bounds")

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, *parts: LazyBuffer) -> LazyBuffer:
        axis = self.axis
        start: sint = 0
        whole = sum((part.shape[axis] for part in parts), start=0)
        self.bounds: list[tuple[tuple[sint, sint], ...]] = []
        out: LazyBuffer | None = None
        for part in parts:
            stop = start + part.shape[axis]
            around = tuple((start, whole - stop) if i == axis else (0, 0) for i in range(len(part.shape)))
            self.bounds.append(tuple((start, stop) if i == axis else (0, d) for i, d in enumerate(part.shape)))
            padded = part.pad(around)
            # Chosen, not added: -0.0 + 0.0 would lose its sign.
            out = padded if out is None else splat(part, True, dtypes.bool).pad(around).alu(Ops.WHERE, padded, out)
            start = stop
        assert out is not None
        return out

    def backward(self, grad: LazyBuffer) -> Grads:
        return tuple(grad.shrink(b) if need else None for b, need in zip(self.bounds, self.needs, strict=True))
