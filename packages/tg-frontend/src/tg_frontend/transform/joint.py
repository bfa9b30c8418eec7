"""Several results of one function: their gradients are wanted at once."""

from __future__ import annotations

from functools import reduce
from math import prod

from tg_dtype import dtypes
from tg_lazy import LazyBuffer

from ..autograd.differentiation import MODE, Switch, differentiate, operands_first
from ..autograd.functions import Function, Grads
from ..autograd.recording import Recorded
from ..memory.realization import TRACING
from ..tensor import Tensor
from .tracing import placeholders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Joint(Function):
    """A function of several results. Its own result stands for all of them, and is of no value itself.

    Args:
      values: the results.
      floating: which of them may have a gradient.

    Attributes:
      places: where each result's gradient lies in that of the whole; None of what has none.
      shapes: of the results.
      kinds: their dtypes.
      reached: where those lie whose gradients were given since the function was last asked for its own.
    """

    __slots__ = ("dtype", "kinds", "places", "reached", "shapes", "size")

    def __init__(self, values: Sequence[LazyBuffer], floating: Sequence[bool]) -> None:
        self.size = 0
        self.reached = set[int]()
        self.places: list[int | None] = []
        self.shapes = [ints(value) for value in values]
        self.kinds = [value.dtype for value in values]
        for shape, wanted in zip(self.shapes, floating, strict=True):
            self.places.append(self.size if wanted else None)
            self.size += prod(shape) if wanted else 0
        self.dtype = dtypes.float64 if dtypes.float64 in self.kinds else dtypes.float32

    def forward(self, *operands: LazyBuffer) -> LazyBuffer:
        return LazyBuffer.const(0, self.dtype, (self.size,), operands[0].device)

    def parts(self, grad: LazyBuffer) -> list[LazyBuffer | None]:
        """The gradient of each result."""
        return [
            None if place is None else grad.shrink(((place, place + prod(shape)),)).reshape(shape).cast(dtype)
            for place, shape, dtype in zip(self.places, self.shapes, self.kinds, strict=True)
        ]  # fmt: skip

    def results(self, parents: Sequence[Tensor], values: Sequence[LazyBuffer]) -> list[Tensor]:
        """The results of the function, applied to ``parents``."""
        whole = parents[0]._apply(self, *parents[1:])
        return [
            Tensor._value(value) if place is None else _part(whole, Result(value, place, self))
            for value, place in zip(values, self.places, strict=True)
        ]  # fmt: skip


class Result(Function):
    """A result of several: its value is there, its gradient a part of the whole's."""

    __slots__ = ("dtype", "of", "place", "size", "value")

    def __init__(self, value: LazyBuffer, place: int, of: Joint) -> None:
        self.value, self.place, self.of = value, place, of

    def forward(self, whole: LazyBuffer) -> LazyBuffer:
        (self.size,), self.dtype = ints(whole), whole.dtype
        return self.value

    def backward(self, grad: LazyBuffer) -> Grads:
        self.of.reached.add(self.place)
        count = prod(ints(grad))
        flat = grad.cast(self.dtype).reshape((count,))
        return (flat.pad(((self.place, self.size - self.place - count),)),)

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        return self.backward(grad)  # which needs no value


def _part(whole: Tensor, result: Result) -> Tensor:
    out = whole._apply(result)
    out._part()
    return out


def weighed(outs: Sequence[Tensor], weights: dict[int, Tensor]) -> Tensor:
    """The sum of all elements of results, given by place, each times its weight."""
    terms = [(outs[n] * weight).sum() for n, weight in weights.items()]
    wide = any(term.dtype is dtypes.float64 for term in terms)
    return reduce(lambda a, b: a + b, [term.cast("float64" if wide else "float32") for term in terms])


class Pullback:
    """Gradients of what was traced, weighted with placeholders.

    Args:
      outs: what a function returned.
      floating: which of it may have a gradient.
      wanted: tensors at which gradients are wanted: arguments and others.

    Attributes:
      weights: by the place of a result, what stands for the weights of its elements.
    """

    def __init__(self, outs: Sequence[Tensor], floating: Sequence[bool], wanted: Sequence[Tensor]) -> None:
        places = [place for place, one in enumerate(floating) if one]
        self.weights = dict(zip(places, placeholders([(outs[n]._ints(), outs[n]) for n in places]), strict=True))
        self._found: dict[int, LazyBuffer] = {}
        if not places:
            return
        unknown = (*TRACING.unknown, *(weight.lazydata for weight in self.weights.values()))
        with (
            Switch(MODE, "recording", True), Switch(TRACING, "unknown", unknown),
            Switch(TRACING, "what", "the gradient of a loop"),
        ):  # fmt: skip
            root = weighed(outs, {n: weight.detach() for n, weight in self.weights.items()})
            order = operands_first(root, True, {id(tensor): tensor for tensor in wanted})
            seed = LazyBuffer.const(1, root.dtype, (), root.device)
            self._found = {id(node): part for node, part in differentiate(root, seed, wanted, order)}

    def reaches(self, tensor: Tensor) -> bool:
        """Whether anything depends on a tensor."""
        return id(tensor) in self._found

    def at(self, tensor: Tensor) -> LazyBuffer:
        """The gradient at a tensor; zeros if nothing depends on it."""
        none = LazyBuffer.const(0, tensor.dtype, tensor.shape, tensor.device)
        return self._found.get(id(tensor), none)


def recorded_pullback(
    outs: Sequence[Tensor], weights: dict[int, Tensor], wanted: Sequence[Tensor]
) -> Callable[[Tensor], Tensor]:
    """As :class:`Pullback`, of tensors: what it gives can be differentiated.

    Args:
      outs: what a function returned.
      weights: by the place of a result, the weights of its elements.
      wanted: tensors at which gradients are wanted; those of integers are passed over.

    Returns:
      What gives the gradient at one of these; zeros if nothing depends on it.
    """
    floats = [tensor for tensor in wanted if tensor.dtype.kind == "float"]
    root = weighed(outs, weights)
    order = operands_first(root, True, {id(tensor): tensor for tensor in floats})
    seed = Recorded(Tensor.ones(dtype=root.dtype, device=root.device))
    found = {id(node): part.tensor for node, part in differentiate(root, seed, floats, order)}

    def at(tensor: Tensor) -> Tensor:
        return found[id(tensor)] if id(tensor) in found else tensor.zeros_like()

    return at


def ints(node: LazyBuffer) -> tuple[int, ...]:
    """A shape that is known to be of numbers."""
    return node.shape  # type: ignore[return-value]
