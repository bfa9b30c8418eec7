"""Movements."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import ShapeTracker, sint, smax, smin

from .base import Function, Grads, splat, total

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Expand(Function):
    """Axes of size 1 repeated."""

    __slots__ = ("axes", "shape")

    view = True

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

    view = True

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

    view = True

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

    view = True

    def __init__(self, bounds: tuple[tuple[sint, sint], ...]) -> None:
        self.bounds = bounds

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.shrink(self.bounds)

    def backward(self, grad: LazyBuffer) -> Grads:
        amounts = tuple((start, dim - stop) for (start, stop), dim in zip(self.bounds, self.shape, strict=True))
        return (grad.pad(amounts),)


class Stride(Function):
    """Every n-th element of each axis, from the end where n is negative."""

    __slots__ = ("shape", "steps")

    view = True

    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.stride(self.steps)

    def backward(self, grad: LazyBuffer) -> Grads:
        steps = [abs(step) for step in self.steps]
        wide = tuple(d for dim in grad.shape for d in (dim, 1))
        apart = tuple(pair for step in steps for pair in ((0, 0), (0, step - 1)))
        full = tuple(dim * step for dim, step in zip(grad.shape, steps, strict=True))
        out = grad.reshape(wide).pad(apart).reshape(full)
        cut = tuple((0, smin(a, b)) for a, b in zip(full, self.shape, strict=True))
        rest = tuple((0, smax(0, b - a)) for a, b in zip(full, self.shape, strict=True))
        out = out.shrink(cut).pad(rest)
        return (out.flip(tuple(axis for axis, step in enumerate(self.steps) if step < 0)),)


class Part(Function):
    """Elements of the operand, seen in a way that shows none twice and no padding, or all of them as often."""

    __slots__ = ("shape", "st")

    def __init__(self, st: ShapeTracker) -> None:
        self.st = st

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return x.seen(self.st)

    def backward(self, grad: LazyBuffer) -> Grads:
        view = self.st.views[0]
        repeated = tuple(a for a, (dim, step) in enumerate(zip(view.shape, view.strides, strict=True))
                         if step == 0 and dim != 1 and dim != 0)  # fmt: skip
        once = self.st.shrink(tuple((0, 1 if a in repeated else dim) for a, dim in enumerate(view.shape)))
        return (put(splat_of(grad, self.shape), once, total(grad, repeated)),)


class Seen(Part):
    """Memory, as a tensor sees it that has to look at a newer version.

    Attributes:
      before: the tensor that it belongs to as it was before a write; functions applied before refer to that.
      since: number of that write.
    """

    __slots__ = ("before", "since")

    view = True
    lasting = True
    renewed = True
    before: Any
    since: int


class Put(Function):
    """Memory with a part replaced."""

    __slots__ = ("st",)

    def __init__(self, st: ShapeTracker) -> None:
        self.st = st

    def forward(self, x: LazyBuffer, part: LazyBuffer) -> LazyBuffer:
        return put(x, self.st, part)

    def backward(self, grad: LazyBuffer) -> Grads:
        inside = part_of(grad, self.st)
        return put(grad, self.st, splat(inside, 0)) if self.needs[0] else None, inside if self.needs[1] else None


class Became(Function):
    """The operand, which is a view of what the result was before it became that in place.

    Attributes:
      before: as in :class:`Seen`.
      since: likewise.
    """

    __slots__ = ("before", "since")

    view = True
    lasting = True
    renewed = True
    before: Any
    since: int

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad,)


def put(whole: LazyBuffer, st: ShapeTracker, part: LazyBuffer) -> LazyBuffer:
    """A copy of ``whole`` with ``part`` in the place that ``st`` shows of it."""
    if type(whole) is not LazyBuffer:
        return whole.applied(Put(st), part)  # type: ignore[attr-defined, no-any-return]
    return whole.clone().seen(st).assign(part).base


def row_major(x: LazyBuffer) -> LazyBuffer:
    """A value whose base shows its elements in order."""
    return x if x.is_whole else x.contiguous()


def part_of(whole: LazyBuffer, st: ShapeTracker) -> LazyBuffer:
    """What ``st`` shows of the elements in order."""
    if type(whole) is not LazyBuffer:
        return whole.contiguous().applied(Part(st))  # type: ignore[attr-defined, no-any-return]
    return row_major(whole).seen(st)


def splat_of(like: LazyBuffer, shape: tuple[sint, ...]) -> LazyBuffer:
    """Zeros of another shape."""
    return like.const(0, like.dtype, shape, like.device)


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
