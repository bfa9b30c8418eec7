"""One of two functions, chosen by a tensor."""

from __future__ import annotations

from typing import cast

from tg_dtype import dtypes
from tg_lazy import LazyBuffer

from ..autograd.differentiation import MODE, Switch
from ..autograd.functions import Grads
from ..autograd.recording import Recorded
from ..tensor import Tensor
from .batched_loop import run_branch
from .joint import Joint, Pullback, recorded_pullback
from .tracing import closed_over, numeric, placeholders, same_device, there_now, trace
from .tree import form, in_parts, leaves, of_parts, rebuild, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_WHAT = "cond"


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """``true_fn(*operands) if pred else false_fn(*operands)``, where only a tensor tells.

    Both functions are called, on tensors without values, and compiled when they are first needed; the one that is
    chosen is executed, when a result is asked for. Gradients flow through that one. Where ``pred`` is a Python bool,
    one of them is called, and nothing else happens.

    Args:
      pred: a tensor of one bool; or a bool.
      true_fn: takes the operands and returns a tree of tensors.
      false_fn: likewise, of the same form, shapes and dtypes.
      operands: tensors, or tuples, lists and dicts of such.

    Raises:
      TypeError: if ``pred`` is no bool; if the functions return other forms or dtypes, or something else than tensors.
      ValueError: if ``pred`` has more than one element, the functions return other shapes, or a size is symbolic.
      RuntimeError: if a function asks for a value, draws random numbers, or writes in place to a tensor that was there
        before.

    Example:
      >>> from tg_frontend import Tensor, cond
      >>> x = Tensor([1.0, -3.0])
      >>> cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x).tolist()
      [-1.0, 3.0]
    """
    if isinstance(pred, bool):
        return (true_fn if pred else false_fn)(*operands)
    if not isinstance(pred, Tensor) or pred.dtype is not dtypes.bool:
        got = f"a tensor of {pred.dtype.name}" if isinstance(pred, Tensor) else f"a {type(pred).__name__}"
        raise TypeError(f"cond: pred is a tensor of one bool, got {got}")
    if pred.numel() != 1:
        raise ValueError(f"cond: pred is a tensor of one bool, got one of shape {pred.shape}")
    operands = in_parts(operands)
    args = [(name, tensor_of(value, name, _WHAT, pred.device)) for name, value in leaves(operands, "operands")]
    same_device(_WHAT, [("pred", pred), *args])
    numeric(_WHAT, args)
    ways = [_Way(function, operands, args) for function in (true_fn, false_fn)]
    _check_alike(*ways)
    choice, tensors = pred.reshape(()), [tensor for _, tensor in args]
    values = _run(choice.lazydata, [(way.given, [t.lazydata for t in way.outs]) for way in ways], tensors)
    floating = [any(_floating(way.outs[n]) for way in ways) for n in range(len(values))]
    closed = list({id(t): t for way in ways for t in way.closed}.values())
    parents = [tensor for tensor in tensors if tensor.dtype.kind == "float"] + closed
    if MODE.recording and any(tensor._wish is not False for tensor in parents):
        results = Cond(choice.lazydata, ways, tensors, closed, values, floating).results(parents, values)
    else:
        results = [Tensor._value(value) for value in values]
    return of_parts(rebuild(ways[0].form, results))


class _Way:
    """One of the functions, called on placeholders.

    Attributes:
      given: the placeholders.
      form: the tree that it returned.
      names: of the leaves, for messages.
      outs: the leaves.
      closed: tensors that it used beside its arguments, and that may get a gradient.
    """

    def __init__(self, function: Callable[..., Any], operands: Any, args: Sequence[tuple[str, Tensor]]) -> None:
        self._function, self._operands = function, operands
        self._device = args[0][1].device if args else None
        self.given = placeholders([(tensor._ints(), tensor) for _, tensor in args])
        there = there_now()
        for tensor in self.given:
            there.pop(id(tensor), None)
        self.form = in_parts(trace(_WHAT, function, of_parts(rebuild(operands, self.given)), self.given))
        found = leaves(self.form, "result")
        self.names = [name for name, _ in found]
        self.outs = [tensor_of(value, name, _WHAT, self._device) for name, value in found]
        self.closed = closed_over(self.outs, self.given, there) if MODE.recording else []

    def again(self, args: Sequence[Tensor]) -> list[Tensor]:
        """The leaves of what the function returns for other tensors."""
        result = in_parts(self._function(*of_parts(rebuild(self._operands, args))))
        return [tensor_of(value, name, _WHAT, self._device) for name, value in leaves(result, "result")]


def _check_alike(true: _Way, false: _Way) -> None:
    if form(true.form) != form(false.form):
        raise TypeError(f"cond: true_fn returns the form {form(true.form)}, false_fn {form(false.form)}")
    for name, one, other in zip(true.names, true.outs, false.outs, strict=True):
        if one.shape != other.shape:
            raise ValueError(f"cond: {name} has shape {one.shape} from true_fn, {other.shape} from false_fn")
        if one.dtype is not other.dtype:
            raise TypeError(f"cond: {name} is {one.dtype.name} from true_fn, {other.dtype.name} from false_fn: cast it")


def _run(
    choice: LazyBuffer, ways: Sequence[tuple[Sequence[Tensor], Sequence[LazyBuffer]]], args: Sequence[Tensor],
    what: str = _WHAT,
) -> list[LazyBuffer]:  # fmt: skip
    if not ways[0][1]:
        return []
    parts = [([tensor.lazydata for tensor in given], outs) for given, outs in ways]
    try:
        return run_branch(what, choice, parts, [tensor.lazydata for tensor in args])
    except ValueError as error:
        raise ValueError(f"cond: in what the functions compute {error}") from None


def _floating(tensor: Tensor) -> bool:
    return tensor.dtype.kind == "float" and tensor._wish is not False


class Cond(Joint):
    """One of two ways, as a function of what both of them use."""

    __slots__ = ("args", "choice", "closed", "ways")

    def __init__(
        self, choice: LazyBuffer, ways: Sequence[_Way], args: Sequence[Tensor], closed: Sequence[Tensor],
        values: Sequence[LazyBuffer], floating: Sequence[bool],
    ) -> None:  # fmt: skip
        super().__init__(values, floating)
        self.choice, self.ways, self.closed = choice, ways, closed
        self.args = [tensor.detach() for tensor in args]

    def backward(self, grad: LazyBuffer) -> Grads:
        parts = {n: part for n, part in enumerate(self.parts(grad)) if part is not None}
        floats = [n for n, tensor in enumerate(self.args) if tensor.dtype.kind == "float"]
        ways = []
        for way in self.ways:
            wanted = [way.given[n] for n in floats]
            allowed = [n in parts and _floating(out) for n, out in enumerate(way.outs)]
            pull = Pullback(way.outs, allowed, [*wanted, *self.closed])
            rest = placeholders([(way.outs[n]._ints(), way.outs[n]) for n in parts])
            weights = [pull.weights.get(n, other) for n, other in zip(parts, rest, strict=True)]
            outs = [pull.at(tensor) for tensor in (*wanted, *self.closed)]
            ways.append(([*way.given, *weights], outs))
        args = [*self.args, *(Tensor._wrap(part) for part in parts.values())]
        return tuple(_run(self.choice, ways, args, "gradient of cond"))

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """The way back as a ``cond`` of tensors, which has a way back itself."""
        given = iter(cast("Sequence[Tensor]", self.parents))
        args = [next(given) if tensor.dtype.kind == "float" else tensor for tensor in self.args]
        closed = list(given)
        weights = {
            n: cast("Recorded", part).tensor for n, part in enumerate(self.parts(grad)) if part is not None
        }  # fmt: skip

        def back(way: _Way) -> Callable[..., list[Tensor]]:
            def step(args: list[Tensor], gains: list[Tensor]) -> list[Tensor]:
                found = recorded_pullback(way.again(args), dict(zip(weights, gains, strict=True)), [*args, *closed])
                return [found(tensor) for tensor in (*args, *closed) if tensor.dtype.kind == "float"]

            return step

        with Switch(MODE, "recording", True), Switch(MODE, "repeating", True):
            ways = [back(way) for way in self.ways]
            grads = cond(Tensor._wrap(self.choice), ways[0], ways[1], args, list(weights.values()))
        return tuple(cast("LazyBuffer", Recorded(one)) for one in grads)
