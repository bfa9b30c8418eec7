"""Gradients at the price of time: what a part of a model computes is not kept for them, but computed again."""

from __future__ import annotations

from contextlib import nullcontext
from typing import cast
from weakref import ref

from tg_lazy import LazyBuffer
from tg_shape import sint

from ..autograd.differentiation import (
    MODE,
    Switch,
    differentiate,
    differentiate_again,
    is_leaf,
    operands,
    operands_first,
)
from ..autograd.functions import Function, Grads
from ..autograd.recording import Recorded
from ..memory.home import Clock
from ..memory.realization import computable, live, realize_all
from ..ops.streams import DRAWING
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

_NAMES = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop")


class Checkpoint(Function):
    """What a function computed, without how: that is found out again when its gradient is wanted."""

    __slots__ = ("outside", "part", "value")

    def __init__(self, part: _Part, value: LazyBuffer, outside: frozenset[int]) -> None:
        self.part, self.outside = part, outside
        self.value: LazyBuffer | ref[LazyBuffer] = value

    def forward(self, *operands: LazyBuffer) -> LazyBuffer:
        value = self.value
        assert isinstance(value, LazyBuffer)
        self.value = ref(value)  # it is to go with those who compute with it
        return value

    def backward(self, grad: LazyBuffer) -> Grads:
        value = self.value()  # type: ignore[operator]
        # Computed now, for two reasons: what is computed again is not to be found as what there is still of the first
        # time; and the memory that it takes is not to be taken before it is needed.
        values = [grad] if value is None else [grad, value]
        now = computable(values)  # not in a function that is traced
        if now:
            realize_all(values)
        again = self._again(grad)
        order = operands_first(again, True, self.outside)
        found = {id(node): part for node, part in differentiate(again, grad, self._targets(), order)}
        if now:
            realize_all(list(found.values()))
        return tuple([found.get(id(parent)) for parent in self._operands()])

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """The way back as a function of tensors, which is a checkpoint itself: nothing of it is kept either."""

        def back(weights: Tensor) -> list[Tensor | None]:
            again = self._again(weights.lazydata)
            found = {id(node): part for node, part in differentiate_again(again, weights, targets, self.outside)}
            return [found.get(id(parent)) for parent in parents]

        back.__qualname__ = f"the gradient of {_name(self.part.function)}"
        parents, targets = self._operands(), self._targets()
        parts = checkpoint(back, cast("Recorded", grad).tensor)
        return tuple([None if part is None else cast("LazyBuffer", Recorded(part)) for part in parts])

    def _operands(self) -> Sequence[Tensor]:
        return cast("Sequence[Tensor]", self.parents)

    def _targets(self) -> list[Tensor]:
        return [parent for parent, need in zip(self._operands(), self.needs, strict=True) if need]

    def _again(self, grad: LazyBuffer) -> Tensor:
        """The results, computed again: of the shape of their gradient.

        Raises:
          RuntimeError: if what they are computed with was written to since, or they are something else.
        """
        self.part.check(self._operands(), self.stamp, "since: call backward() before that")
        again = self.part.again()
        strange = [tensor for tensor in _leaves(again, self.outside) if tensor._wish]
        if again.shape != grad.shape or strange:
            raise RuntimeError(
                f"checkpoint: {_name(self.part.function)} computes something else the second time: "
                + (f"with a tensor of shape {strange[0].shape} that it did not use before" if strange else
                   f"shape {again.shape}, not {grad.shape}")
            )  # fmt: skip
        return again


class _Part:
    """A function and its arguments, to be called for the first time and again.

    Attributes:
      training: whether layers behave as in training.
      precision: what operations cast their operands to.
      drawn: the random numbers of the first call.
      written: number of the last write in place before the first call.
      given: the tensors among the arguments.
      chosen: which of the results require a gradient.
      around: ``with`` blocks of a person's own, around the first call and around each other one.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], around: tuple[Any, Any]
    ) -> None:
        self.function, self.around = function, around
        self.args = tuple([_in_memory(value) for value in args])
        self.kwargs = {name: _in_memory(value) for name, value in kwargs.items()}
        self.given = [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, Tensor)]
        self.training, self.precision = Tensor.training, MODE.precision
        self.drawn: list[LazyBuffer] = []
        self.written = Clock.now
        self.chosen: list[int] = []

    def first(self) -> Any:
        """What the function returns."""
        before = DRAWING.into
        with Switch(DRAWING, "into", self.drawn), self.around[0]:
            results = self.function(*self.args, **self.kwargs)
        if before is not None:
            before.extend(self.drawn)
        return results

    def again(self) -> Tensor:
        """The results that require a gradient, computed again, as one tensor."""
        with (
            Switch(MODE, "recording", True), Switch(MODE, "repeating", True), Switch(Tensor, "training", self.training),
            Switch(MODE, "precision", self.precision), Switch(DRAWING, "into", None),
            Switch(DRAWING, "again", iter(self.drawn)), self.around[1],
        ):  # fmt: skip
            results = _listed(self.function(*self.args, **self.kwargs))
            if max(self.chosen) >= len(results):
                count = len(results)
                raise RuntimeError(f"checkpoint: {_name(self.function)} returned {count} results the second time")
            return _joined([results[place] for place in self.chosen])

    def check(self, parents: Iterable[Tensor], stamp: int, when: str) -> None:
        """Looks whether what the function computes with is what it was.

        Raises:
          RuntimeError: if a tensor was written to after the write of number ``stamp``.
        """
        for tensor in (*parents, *self.given):
            if tensor._home is not None and tensor._home.written > stamp:
                raise RuntimeError(
                    f"checkpoint: a tensor of shape {tensor.shape} that {_name(self.function)} computes with was "
                    f"written to in place {when}"
                )


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function, and keeps nothing of it for the gradient but its arguments: ``backward`` calls it again.

    A deep network needs memory for what every layer computes until ``backward`` has come by. With checkpoints it needs
    memory for what lies between them, and for one part at a time; the price is that every part is computed twice.

    Random numbers are the same in both calls, whether layers behave as in training, too, and BatchNorm counts a batch
    once. What else the function does beside computing, it does twice. Under TinyJit both are recorded. Gradients can
    be differentiated again: each order calls the function once more. A function of ``vmap``, or of a loop, may call
    this, too; memory is then not saved inside of it.

    Args:
      function: gives a tensor, or a tuple or list of tensors. Tensors that it uses beside its arguments, such as
        the parameters of layers, get their gradients, too.
      args: its arguments; what of them is not in memory yet will be put there.
      kwargs: likewise. ``context_fn`` returns two ``with`` blocks, one for the first call and one for the others.
        ``use_reentrant``, ``preserve_rng_state``, ``determinism_check``, ``debug`` and ``early_stop``, which PyTorch
        has, are left out: this function needs no choice.

    Returns:
      What the function returns; tensors share no memory with others.

    Raises:
      RuntimeError: if the function writes in place to a tensor that requires a gradient and was there before. In
        ``backward``: what it computes with was written to since, or it does something else the second time.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> x, layers = Tensor([[1.0, 2.0]], requires_grad=True), [nn.Linear(2, 64), Tensor.relu, nn.Linear(64, 2)]
      >>> y = nn.checkpoint(lambda x: x.sequential(layers), x)
      >>> _ = y.sum().backward()
      >>> x.grad.shape
      (1, 2)
    """
    kwargs = {name: value for name, value in kwargs.items() if name not in _NAMES}
    around = kwargs.pop("context_fn", lambda: (nullcontext(), nullcontext()))()
    if not MODE.recording:
        with around[0]:
            return function(*args, **kwargs)
    part = _Part(function, args, kwargs, around)
    there = {id(tensor): tensor for tensor in live()}
    results = part.first()
    listed = _listed(results)
    part.chosen = [
        place for place, value in enumerate(listed)
        if isinstance(value, Tensor) and value._wish is not False and id(value) not in there
    ]  # fmt: skip
    if not part.chosen:
        return results
    made: list[Tensor] = [listed[place] for place in part.chosen]
    parents = _borders(made, there)
    if not parents:
        return results
    part.check(parents, part.written, "by that, and would be again")
    outside = frozenset(id(parent) for parent in parents)
    whole = parents[0]._apply(Checkpoint(part, _joined(made).lazydata.contiguous(), outside), *parents[1:])
    start: sint = 0
    for place, tensor in zip(part.chosen, made, strict=True):
        end = start + tensor.numel()
        own = whole.shrink(((start, end),)).reshape(tensor.shape) if len(made) > 1 else whole
        listed[place], start = own.cast(tensor.dtype), end
    if isinstance(results, Tensor):
        return listed[0]
    return tuple(listed) if isinstance(results, tuple) else listed


def _in_memory(value: Any) -> Any:
    return value.contiguous() if isinstance(value, Tensor) else value


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _joined(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    return tensors[0].flatten().cat(*[tensor.flatten() for tensor in tensors[1:]])


def _borders(made: list[Tensor], there: dict[int, Any]) -> list[Tensor]:
    """Those that were there before at which the graph of new tensors ends, and that may require a gradient."""
    found: dict[int, Any] = {}
    for root in made:
        for node in operands_first(root, True, there):
            assert node._ctx is not None
            found |= {id(parent): parent for parent in operands(node._ctx) if id(parent) in there}
    return [p for p in found.values() if p._wish is not False and p.dtype.kind == "float"]


def _leaves(root: Tensor, ends: frozenset[int]) -> list[Any]:
    """The leaves on which a tensor depends, but for what lies behind ``ends``."""
    found: dict[int, Any] = {}
    for node in operands_first(root, True, ends):
        assert node._ctx is not None
        found |= {id(p): p for p in operands(node._ctx) if is_leaf(p, True) and id(p) not in ends}
    return list(found.values())


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
