"""What differentiable functions share."""

from __future__ import annotations

from copy import copy
from functools import cache
from inspect import Parameter, signature

from tg_dtype import ConstType, DType, dtypes, sum_acc_dtype
from tg_lazy import LazyBuffer, Ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

Grads = tuple[LazyBuffer | None, ...]


def splat(like: LazyBuffer, value: ConstType, dtype: DType | None = None) -> LazyBuffer:
    """``value`` everywhere in the shape of ``like``, on its device, in its dtype unless another is given."""
    return like.const(value, dtype or like.dtype, like.shape, like.device)


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
    if type(x) is not LazyBuffer:
        return x.magnitude()  # type: ignore[attr-defined, no-any-return]
    bits = x.bitcast(_BITS[x.dtype.itemsize])
    return bits.alu(Ops.AND, splat(bits, (1 << (x.dtype.bits - 1)) - 1)).bitcast(x.dtype)


def total(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    """The sum over ``axes``, kept with size 1, accumulated in at least 32 bits and returned in the dtype of ``x``."""
    if not axes:
        return x
    return x.cast(sum_acc_dtype(x.dtype)).reduce(Ops.ADD, axes).cast(x.dtype)


def held(x: LazyBuffer) -> LazyBuffer:
    """The value of ``x``, through which no gradient of a gradient flows."""
    return x if type(x) is LazyBuffer else x.held()  # type: ignore[attr-defined]


@cache
def kept_names(kind: type[object]) -> tuple[tuple[str, int], ...]:
    """The attributes in which functions of a class keep operands, by place, and the result, as place -1.

    An operand is kept under the name that it has in :meth:`Function.forward`, the result as ``out``.
    """
    forward = getattr(kind, "forward", None)
    if forward is None:  # of a function that is never applied
        return ()
    names = [name for name, parameter in signature(forward).parameters.items()
             if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD][1:]  # fmt: skip
    slots = {slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())}
    places = {name: place for place, name in enumerate(names)} | {"out": -1}
    return tuple([(name, place) for name, place in places.items() if name in slots])


class Function:
    """A differentiable function applied once.

    What :meth:`backward` needs of operands and of the result is kept in attributes with the names that these have in
    :meth:`forward`, and ``out``: where the gradient is to be differentiated again, they are replaced by values that
    record what is done with them.

    Attributes:
      parents: the operands, as the tensors that they were; set only when a gradient may be wanted.
      needs: for each operand, whether its gradient is wanted.
      wanted: whether some operand required a gradient. If none did but one left it open, only ``gradient`` looks here.
      learnt: whether it depends on a parameter of a layer that leaves open whether it requires a gradient.
      stamp: number of the last write to any memory when it was applied, to notice if an operand was written to since.
      view: whether the result shares the operand's memory.
      renewed: whether functions applied to the result before write ``since`` refer to another tensor, ``before``.
      lasting: whether the operands stay known when the result is read or used, though no gradient is required.
      asks: whether its gradient is a function of a person's own, which is called once, however often it is derived.
    """

    __slots__ = ("learnt", "needs", "parents", "stamp", "wanted")

    view: ClassVar[bool] = False
    lasting: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    renewed: ClassVar[bool] = False

    parents: tuple[object, ...]
    needs: tuple[bool, ...]
    wanted: bool
    learnt: bool
    stamp: int
    forward: Callable[..., LazyBuffer]

    def backward(self, grad: LazyBuffer) -> Grads:
        """One gradient an operand, of its shape and dtype; None where it is not wanted or there is none."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """:meth:`backward` with values in the place of nodes that record what is done with them.

        Args:
          grad: such a value.
          operands: gives another one for what was kept: of an attribute's name, and the operand's place.

        Raises:
          TypeError: if something is kept that is neither an operand nor the result.
        """
        names = kept_names(type(self))  # type: ignore[arg-type]  # a class is hashable
        twin = copy(self) if names else self
        for name, place in names:
            if hasattr(twin, name):
                setattr(twin, name, operands(name, place))
        if twin.saved():
            raise TypeError(f"the gradient of {self.name} cannot be differentiated")
        return twin.backward(grad)

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
