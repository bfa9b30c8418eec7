"""Where elements lie, and their type."""

from __future__ import annotations

from tg_dtype import DType
from tg_lazy import LazyBuffer
from tg_shape import sint

from .base import Function, Grads


class Contiguous(Function):
    """The operand in memory, row-major; in new memory if it is to be ``fresh``."""

    __slots__ = ("fresh",)

    def __init__(self, fresh: bool = False) -> None:
        self.fresh = fresh

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        return x.clone() if self.fresh else x.contiguous()

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad,)


class Same(Function):
    """The operand's value, which shares no memory with it, and has no element of other operands, which get zeros."""

    __slots__ = ("others",)

    def __init__(self) -> None:
        self.others: list[tuple[DType, tuple[sint, ...], str]] = []

    def forward(self, x: LazyBuffer, *others: LazyBuffer) -> LazyBuffer:
        self.others = [(other.dtype, other.shape, other.device) for other in others]
        return x

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad, *(LazyBuffer.const(0, *other) for other in self.others))


class Beside(Function):
    """The operand's value, which has a gradient where another tensor has one: both are parts of a complex one."""

    __slots__ = ()

    def forward(self, x: LazyBuffer, other: LazyBuffer) -> LazyBuffer:
        return x

    def backward(self, grad: LazyBuffer) -> Grads:
        return grad, None


class ContiguousBackward(Function):
    """The operand itself; its gradient is put in memory before it flows on."""

    __slots__ = ()

    view = True

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


class Unrecorded(Function):
    """What was written as data, though parameters of layers that leave it open might have wanted a gradient of it."""

    __slots__ = ()

    lasting = True

    def backward(self, grad: LazyBuffer) -> Grads:
        raise RuntimeError(
            "backward: a part with symbolic bounds was written as data, because no parameter said that it requires a "
            "gradient; set requires_grad=True on those that do before writing (an optimiser does that), or detach() "
            "what is read"
        )


UNRECORDED = Unrecorded()
UNRECORDED.parents = UNRECORDED.needs = ()
UNRECORDED.stamp, UNRECORDED.wanted, UNRECORDED.learnt = 0, False, False


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
