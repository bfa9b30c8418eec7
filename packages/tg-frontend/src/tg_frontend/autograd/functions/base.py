"""What differentiable functions share."""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer, Ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

Grads = tuple[LazyBuffer | None, ...]


def splat(like: LazyBuffer, value: ConstType, dtype: DType | None = None) -> LazyBuffer:
    """``value`` everywhere in the shape of ``like``, on its device, in its dtype unless another is given."""
    return LazyBuffer.const(value, dtype or like.dtype, like.shape, like.device)


def widened(x: LazyBuffer, compute: Callable[[LazyBuffer], LazyBuffer]) -> LazyBuffer:
    """``compute(x)``, in float32 where ``x`` is a narrower float, rounded once to the dtype of ``x``."""
    if x.dtype.itemsize >= 4:
        return compute(x)
    return compute(x.cast(dtypes.float32)).cast(x.dtype)


def widened_pair(
    x: LazyBuffer, y: LazyBuffer, compute: Callable[[LazyBuffer, LazyBuffer], LazyBuffer]
) -> LazyBuffer:
    """The same for a function of two numbers of one dtype."""
    if x.dtype.itemsize >= 4:
        return compute(x, y)
    return compute(x.cast(dtypes.float32), y.cast(dtypes.float32)).cast(x.dtype)


_BITS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def magnitude(x: LazyBuffer) -> LazyBuffer:
    """A float without its sign: of -0.0 and of a NaN, too."""
    bits = x.bitcast(_BITS[x.dtype.itemsize])
    return bits.alu(Ops.AND, splat(bits, (1 << (x.dtype.bits - 1)) - 1)).bitcast(x.dtype)


def total(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    """The sum over ``axes``, kept with size 1, accumulated in at least 32 bits and returned in the dtype of ``x``."""
    if not axes:
        return x
    return x.cast(sum_acc_dtype(x.dtype)).reduce(Ops.ADD, axes).cast(x.dtype)


class Function:
    """A differentiable function applied once.

    Attributes:
      parents: the operands, as the tensors that they were; set only when a gradient may be wanted.
      needs: for each operand, whether its gradient is wanted.
      wanted: whether some operand required a gradient. If none did but one left it open, only ``gradient`` looks here.
      stamp: number of the last write to any memory when it was applied, to notice if an operand was written to since.
      view: whether the result shares the operand's memory.
    """

    __slots__ = ("needs", "parents", "stamp", "wanted")

    view: ClassVar[bool] = False

    parents: tuple[object, ...]
    needs: tuple[bool, ...]
    wanted: bool
    stamp: int
    forward: Callable[..., LazyBuffer]

    def backward(self, grad: LazyBuffer) -> Grads:
        """One gradient an operand, of its shape and dtype; None where it is not wanted or there is none."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    def saved(self) -> list[LazyBuffer]:
        """The values that were kept for :meth:`backward`."""
        found: list[LazyBuffer] = []
        for kind in type(self).__mro__:
            for name in getattr(kind, "__slots__", ()):
                value = getattr(self, name, None) if name != "parents" else None
                for item in value if isinstance(value, (tuple, list)) else (value,):
                    if isinstance(item, LazyBuffer):
                        found.append(item)
        return found

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return type(self).__name__.lower()
