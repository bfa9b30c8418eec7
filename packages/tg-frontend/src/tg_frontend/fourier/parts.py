"""Real and imaginary parts that are one tensor, of shape (2, ...), for the sake of gradients.

As such they are never computed: what was stacked is taken from the stack again.
"""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops

from ..autograd.functions.base import Function, Grads


def parts(stack: LazyBuffer) -> tuple[LazyBuffer, LazyBuffer]:
    """Both parts of shape (2, ...): of a stack that is not in memory what was stacked."""
    return _part(stack, 0), _part(stack, 1)


def _part(stack: LazyBuffer, number: int) -> LazyBuffer:
    source = stack
    if stack.op is Ops.WHERE and not stack.is_realized and _is_second(stack.srcs[0]):
        source = stack.srcs[2 - number]
    rest = stack.shape[1:]
    return source.shrink(((number, number + 1), *((0, dim) for dim in rest))).reshape(rest)


def _is_second(condition: LazyBuffer) -> bool:
    """Whether a condition of shape (2, ...) is true in the second half and nowhere else."""
    if condition.op is not Ops.VIEW or condition.base.op is not Ops.CONST or condition.base.arg is not True:
        return False
    view, *others = condition.st.views
    return not others and view.mask == ((1, 2), *((0, dim) for dim in condition.shape[1:]))


class Part(Function):
    """The real (0) or the imaginary part (1) of a stack of both."""

    __slots__ = ("number", "shape")

    def __init__(self, number: int) -> None:
        self.number = number

    def forward(self, x: LazyBuffer) -> LazyBuffer:
        self.shape = x.shape
        return parts(x)[self.number]

    def backward(self, grad: LazyBuffer) -> Grads:
        whole = grad.reshape((1, *self.shape[1:]))
        return (whole.pad(((self.number, 1 - self.number), *((0, 0) for _ in self.shape[1:]))),)
