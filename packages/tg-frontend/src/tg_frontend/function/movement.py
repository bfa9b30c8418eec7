"""Movements."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import sint

from .base import Function, Grads, splat, total


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
