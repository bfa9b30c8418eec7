"""Gradients of gradients: the rules of functions, over values that record what is done with them.

A rule (:meth:`Function.backward`) computes with nodes of the lazy graph. A :class:`Recorded` has the same methods, but
is a tensor: what a rule does with it is applied to that tensor, and so can be differentiated in turn, to any order.
Every function has one rule, and nobody pays for recording who does not ask for it.
"""

from __future__ import annotations

from tg_dtype import ConstType, DType
from tg_lazy import LazyBuffer, Ops

from ..memory.home import Clock
from .functions import (
    SLOPES,
    Abs,
    Add,
    Cast,
    Contiguous,
    Copy,
    Div,
    Elementary,
    Expand,
    Flip,
    Fmod,
    Function,
    Grads,
    Max,
    Maximum,
    Mul,
    Neg,
    Pad,
    Permute,
    Pow,
    Prod,
    Reciprocal,
    Reshape,
    Same,
    Shrink,
    Sqrt,
    Stride,
    Sub,
    Sum,
    Trunc,
    Where,
    held,
)
from .functions.parallel_updates import updated
from .functions.scattering import Scatter, ScatterAdd, ScatterMax, ScatterProd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tg_shape import sint

FUNCTIONS: dict[Ops, Callable[[], Function]] = {
    Ops.NEG: Neg,
    Ops.RECIP: Reciprocal,
    Ops.SQRT: Sqrt,
    Ops.TRUNC: Trunc,
    Ops.ADD: Add,
    Ops.SUB: Sub,
    Ops.MUL: Mul,
    Ops.FDIV: Div,
    Ops.MOD: Fmod,
    Ops.POW: Pow,
    Ops.MAX: Maximum,
    Ops.WHERE: Where,
}
"""The functions that compute the same as an op of floats; those of :data:`SLOPES` beside."""

SCATTERS: dict[Ops | None, Callable[[int], Function]] = {
    None: Scatter, Ops.ADD: ScatterAdd, Ops.MUL: ScatterProd, Ops.MAX: ScatterMax,
}  # fmt: skip

REDUCTIONS: dict[Ops, Callable[[tuple[int, ...]], Function]] = {Ops.ADD: Sum, Ops.MUL: Prod, Ops.MAX: Max}


class Recorded:
    """A tensor in the place of its node, for a rule: operations on it are recorded.

    Args:
      tensor: the tensor.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[sint, ...]:
        """Sizes of the axes."""
        return self.tensor._lazy.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.tensor._lazy.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """Name of the device."""
        return self.tensor._lazy.device  # type: ignore[no-any-return]

    def held(self) -> LazyBuffer:
        """The value alone."""
        return self.tensor.lazydata  # type: ignore[no-any-return]

    def applied(self, function: Function, *others: Any) -> Recorded:
        """The result of a function on this value and others."""
        return Recorded(self.tensor._apply(function, *[self._tensor_of(other) for other in others]))

    def _tensor_of(self, value: Recorded | LazyBuffer) -> Any:
        return value.tensor if isinstance(value, Recorded) else type(self.tensor)._wrap(value)

    def _plain(self, lazy: LazyBuffer) -> Recorded:
        return Recorded(type(self.tensor)._wrap(lazy))

    # *** what rules do with a node ***

    def const(self, value: ConstType, dtype: DType, shape: Sequence[sint], device: str) -> Recorded:
        """``value`` everywhere in ``shape``."""
        return self._plain(LazyBuffer.const(value, dtype, shape, device))

    def alu(self, op: Ops, *others: Recorded | LazyBuffer) -> Recorded:
        """An elementwise op."""
        kind = (others[-1] if op is Ops.WHERE else self).dtype.kind
        if kind == "float":
            if op in FUNCTIONS:
                return self.applied(FUNCTIONS[op](), *others)
            if op in SLOPES:
                return self.applied(Elementary(op))
        return self._plain(self.held().alu(op, *[held(other) for other in others]))  # type: ignore[arg-type]

    def magnitude(self) -> Recorded:
        """A float without its sign."""
        return self.applied(Abs())

    def cast(self, dtype: DType) -> Recorded:
        """The values in another dtype."""
        return self if dtype is self.dtype else self.applied(Cast(dtype))

    def reduce(self, op: Ops, axes: tuple[int, ...]) -> Recorded:
        """The values combined along axes."""
        if self.dtype.kind != "float":
            return self._plain(self.held().reduce(op, axes))
        return self.applied(REDUCTIONS[op](axes))

    def expand(self, shape: tuple[sint, ...]) -> Recorded:
        """Axes of size 1 repeated."""
        return self.applied(Expand(shape))

    def reshape(self, shape: tuple[sint, ...]) -> Recorded:
        """Another shape."""
        return self.applied(Reshape(shape))

    def permute(self, order: tuple[int, ...]) -> Recorded:
        """The axes in another order."""
        return self.applied(Permute(order))

    def pad(self, amounts: tuple[tuple[sint, sint], ...]) -> Recorded:
        """Zeros around."""
        return self.applied(Pad(amounts))

    def shrink(self, bounds: tuple[tuple[sint, sint], ...]) -> Recorded:
        """A box."""
        return self.applied(Shrink(bounds))

    def stride(self, steps: tuple[int, ...]) -> Recorded:
        """Every n-th element."""
        return self.applied(Stride(steps))

    def flip(self, axes: tuple[int, ...]) -> Recorded:
        """Axes reversed."""
        return self.applied(Flip(axes))

    def contiguous(self) -> Recorded:
        """The value in memory, row-major."""
        return self.applied(Contiguous())

    def clone(self) -> Recorded:
        """The value in new memory."""
        return self.applied(Contiguous(fresh=True))

    def copy_to(self, device: str) -> Recorded:
        """The value on another device."""
        return self.applied(Copy(device))

    def updated(
        self, table: Recorded | LazyBuffer, axis: int, index: Recorded | LazyBuffer, value: Recorded | LazyBuffer,
        op: Ops | None,
    ) -> Recorded:  # fmt: skip
        """A table with values at positions along an axis; one of the three is this value."""
        operands: Any = (table, index, value)
        if table.dtype.kind != "float":
            there, places, values = (held(one) for one in operands)
            return self._plain(updated(there, axis, places, values, op))
        tensors = [self._tensor_of(one) for one in operands]
        return Recorded(tensors[0]._apply(SCATTERS[op](axis), *tensors[1:]))

    def __getattr__(self, name: str) -> Any:
        raise TypeError(f"a gradient that is made with {name} cannot be differentiated")


class Overwritten:
    """What was kept for a gradient and is not there any more: whoever asks for it is told.

    Args:
      message: the error.
    """

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(self.message)


def recorded(node: Any, function: Function, parents: Sequence[Any], grad: Recorded) -> Grads:
    """The rule of a function, recorded.

    Args:
      node: the result of the function.
      function: the function.
      parents: its operands, as they were when it was applied.
      grad: the gradient of the result.
    """

    def operand(name: str, place: int) -> Any:
        tensor = node if place < 0 else parents[place]
        return _of(tensor, getattr(function, name), function, node)

    found: Any = function.derive(grad, operand)  # type: ignore[arg-type]
    # a rule that was given recorded values alone gives another one where that depends on none: zeros, of no elements
    own: Any = tuple([Recorded(type(node)._wrap(part)) if type(part) is LazyBuffer else part for part in found])
    return own  # type: ignore[no-any-return]


def _of(tensor: Any, kept: LazyBuffer, function: Function, node: Any) -> Recorded | Overwritten:
    """A value that was kept, as the operand or result that it was."""
    if tensor.lazydata is kept:
        return Recorded(tensor)
    if kept.base.ended:
        return Overwritten(
            f"backward: an operand or the result of {function.name}, which gave shape {node._lazy.shape}, was "
            "written to in place after it was used"
        )
    return Recorded(stand_in(tensor, kept))


def stand_in(tensor: Any, value: LazyBuffer, always: bool = False) -> Any:
    """A tensor of this value whose gradient is that of ``tensor``; a leaf, unless ``always``, if that refuses one."""
    out = type(tensor)._wrap(value, False)
    if always or (tensor._wants_grad is not False and value.dtype.kind == "float"):
        same = Same()
        same.parents, same.stamp = (tensor,), Clock.now
        same.wanted = tensor._wants_grad is True
        same.needs, same.learnt = (same.wanted,), tensor._ctx is not None and tensor._ctx.learnt
        out._ctx, out._wants_grad = same, True if same.wanted else None
    return out

