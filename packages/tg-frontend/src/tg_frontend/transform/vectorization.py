"""vmap: a function of single values, applied to many at once."""

from __future__ import annotations

from functools import wraps

from tg_lazy import LazyBuffer
from tg_lazy.graph.lazybuffer import graph_lock
from tg_shape import sint

from ..autograd.differentiation import (
    MODE,
    depends_on_a_wish,
    differentiate,
    differentiate_again,
    operands,
    operands_first,
)
from ..autograd.functions import Function, Grads, Same, total
from ..autograd.recording import Recorded
from ..keywords import offered
from ..memory.realization import Moves, Unavailable, live
from ..tensor import Tensor
from .batching import Batch, placeholder
from .joint import Result
from .tracing import name_of
from .tree import map_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


_REFUSAL = Unavailable(
    "vmap: an element was asked for while the function is called for all values at once: it cannot be read, as by "
    "item() or tolist(), nor decide what is computed; use where()"
)


class Mapped(Function):
    """What a function of single values computed, for all of them.

    Args:
      batch: the values.
      root: the function's result, for a single value.
      places: the operands, as the function saw them.
      single: how many of these are placeholders: the first ones, whose values are the operands.
    """

    __slots__ = ("batch", "places", "root", "single")

    def __init__(self, batch: Batch, root: Tensor, places: Sequence[Tensor], single: int) -> None:
        self.batch, self.root, self.places, self.single = batch, root, places, single

    def forward(self, *operands: LazyBuffer) -> LazyBuffer:
        return self.batch.all_of(self.root.lazydata)

    def saved(self) -> list[LazyBuffer]:
        """The values."""
        return self.batch.given()

    def backward(self, grad: LazyBuffer) -> Grads:
        weight = placeholder(self.root.shape, grad, _REFUSAL)
        self.batch.put(weight, grad)
        order = operands_first(self.root, True, self._ends())
        found = {id(node): part for node, part in differentiate(self.root, weight, self._targets(), order)}
        parts: list[LazyBuffer | None] = []
        for number, place in enumerate(self.places):
            part = found.get(id(place))
            if part is not None:
                part = self.batch.all_of(part)
                if number >= self.single:
                    part = total(part, (0,)).reshape(place.shape)
            parts.append(part)
        return tuple(parts)

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """The same, recorded: the gradient for a single value, for all of them."""
        if any(lazy.base.ended for lazy in self.saved()):
            raise RuntimeError("vmap: values were written to in place after they were used, before backward()")
        outer: Any = grad.tensor  # type: ignore[attr-defined]
        weight = _single(self.batch, outer)
        found = {id(node): part for node, part in differentiate_again(self.root, weight, self._targets(), self._ends())}
        parents: Any = self.parents
        given = [(weight, outer), *zip(self.places[: self.single], parents[: self.single], strict=True)]
        parts: list[Any] = []
        for number, place in enumerate(self.places):
            part = found.get(id(place))
            if part is not None:
                part = _for_all(self.batch, part, given)
                part = Recorded(part if number < self.single else part.sum(0))
            parts.append(part)
        return tuple(parts)

    def _targets(self) -> list[Tensor]:
        return [place for place, need in zip(self.places, self.needs, strict=True) if need]

    def _ends(self) -> frozenset[int]:
        return frozenset(id(place) for place in self.places)


def _single(batch: Batch, values: Tensor) -> Tensor:
    """One of many values: a tensor of shape (...) for values of shape (size, ...)."""
    lazy = values.lazydata
    place = placeholder(lazy.shape[1:], lazy, _REFUSAL)
    batch.put(place, lazy)
    return type(values)._wrap(place, values._wish if values.dtype.kind == "float" else False)


def _for_all(batch: Batch, root: Tensor, given: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """What was computed for a single value, for all of them: shape (size, ...).

    Args:
      batch: the values.
      root: the result for a single value.
      given: placeholders, each with its values.
    """
    lazy = root.lazydata
    inside: dict[int, Any] = {id(place): place for place, _ in given}
    captured: dict[int, Any] = {}
    above: Any
    order = operands_first(root, True, inside) if MODE.recording else []
    wholes = {id(node._ctx.parents[0]) for node in order if type(node._ctx) is Result and batch.depends(node.lazydata)}
    for node in order:
        assert node._ctx is not None
        above = operands(node._ctx)
        if any(id(parent) in inside for parent in above) or id(node) in wholes or batch.depends(node.lazydata):
            inside[id(node)] = node
            captured.update((id(parent), parent) for parent in above if id(parent) not in inside)
    if id(root) not in inside:
        if not batch.depends(lazy):
            return root.unsqueeze(0).expand(batch.size, *root.shape)
        return type(root)._value(batch.all_of(lazy))
    there = [t for t in captured.values() if t._wish is not False and t.dtype.kind == "float"]
    places = [*(place for place, _ in given), *there]
    parents: list[Tensor] = [*(values for _, values in given), *there]
    out = parents[0]._apply(Mapped(batch, root, places, len(given)), *parents[1:])
    if out._ctx is not None:  # an argument of a function that is differentiated counts as what it was outside of that
        out._ctx.wanted = any(depends_on_a_wish(parent) for parent in parents)
        out._wants_grad = True if out._ctx.wanted else None
    return out


class _Outside:
    """The tensors that are there before a function is called, which it must not write to."""

    def __init__(self) -> None:
        there: list[Any] = list(live())
        self._values = [(tensor, tensor.lazydata) for tensor in there]
        names = ("_lazy", "_place", "_home", "_ctx", "_wants_grad", "_cut")
        self._states = [(tensor, {name: getattr(tensor, name) for name in names}) for tensor in there]
        self._grads = [(tensor, tensor.grad) for tensor in there]
        homes = {id(tensor._home): tensor._home for tensor in there if tensor._home is not None}
        parts = ("root", "base", "direct", "written", "node")
        self._homes = [(home, {name: getattr(home, name) for name in parts}) for home in homes.values()]
        lines = {id(tensor._cut): tensor._cut for tensor in there if tensor._cut is not None}
        self._lines = [(line, {"node": line.node}) for line in lines.values()]

    def restore(self, batch: Batch) -> tuple[sint, ...] | None:
        """Undoes writes of what depends on single values; gives the shape of a tensor that was written, if one was."""
        shape = None
        for tensor, grad in self._grads:
            if tensor.grad is not grad and tensor.grad is not None and batch.depends(tensor.grad.lazydata):
                shape, tensor.grad = tensor.shape, grad
        for tensor, lazy in self._values:
            if tensor.lazydata is not lazy and batch.depends(tensor.lazydata):
                shape = tensor.shape
        if shape is not None:
            with graph_lock:
                for thing, state in (*self._homes, *self._lines, *self._states):
                    for name, value in state.items():
                        setattr(thing, name, value)
                for _, lazy in self._values:
                    lazy.base.ended = False
                Moves.number += 1
        return shape


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that applies ``function`` along an axis of its arguments, to all values at once.

    ``function`` is called once, with tensors that lack that axis; what it computes is computed for every value. It can
    be differentiated inside and outside, nested, and recorded by TinyJit.

    It cannot read elements, so what it computes does not depend on them but by ``where``. It may write to tensors that
    it made, and to its arguments; not to others. Random numbers are drawn once, and are the same for every value.

    Args:
      function: takes tensors, in lists, tuples and dicts perhaps, and returns tensors, likewise.
      in_axes: the axis of each tensor along which the values lie; None for what is the same for every value. One for
        all arguments, or a tuple or list with one for each, in which an argument's may be nested like it.
      out_axes: where the axis is in the results: one for all, or nested like them.

    Raises:
      ValueError: when called, if no argument has values, or their numbers differ, or ``in_axes`` or ``out_axes`` does
        not fit.
      IndexError: when called, if there is no such axis.
      TypeError: when called, if the function returns no tensor.
      RuntimeError: when called, if the function reads elements, or writes to tensors that it has not made.

    Example:
      >>> from tg_frontend import Tensor, vmap
      >>> dot = lambda x, y: (x * y).sum()
      >>> vmap(dot)(Tensor([[1, 2], [3, 4]]), Tensor([[5, 6], [7, 8]])).tolist()
      [17, 53]
      >>> vmap(dot, in_axes=(0, None))(Tensor([[1, 2], [3, 4]]), Tensor([1, 10])).tolist()
      [21, 43]
    """

    @wraps(function, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        axes = list(_axes_of(args, in_axes))
        tensors = tensors_in(list(args))
        size = _size(tensors, axes)
        batch = Batch(size)
        given: list[tuple[Tensor, Tensor]] = []
        rest: Iterator[int | None] = iter(axes)

        def opened(tensor: Tensor) -> Tensor:
            axis = next(rest)
            if axis is None:
                return tensor
            values = _moved(tensor, axis % tensor.ndim, 0)
            single = _single(batch, values)
            given.append((single, values))
            return single._apply(Same())  # which the function may write to

        outside = _Outside()
        seen = [map_tensors(arg, opened) for arg in args]
        try:
            result = function(*seen, **kwargs)
        finally:
            written = outside.restore(batch)
        if written is not None:
            raise RuntimeError(
                f"vmap: {name_of(function)} writes what depends on single values to a tensor of shape {written} from "
                "outside, or leaves it a gradient; return it instead"
            )
        if not tensors_in(result):
            raise TypeError(f"vmap: {name_of(function)} returned a {type(result).__name__}, not a tensor")
        back = iter(list(_out_axes(result, out_axes)))
        return map_tensors(result, lambda root: _placed(_for_all(batch, root, given), next(back)))

    return wrapper


def _placed(values: Tensor, axis: int) -> Tensor:
    if not -values.ndim <= axis < values.ndim:
        raise IndexError(f"vmap: out_axes={axis} is out of range for a result of shape {values.shape}")
    return _moved(values, 0, axis % values.ndim)


def _moved(tensor: Tensor, start: int, end: int) -> Tensor:
    order = [axis for axis in range(tensor.ndim) if axis != start]
    order.insert(end, start)
    return tensor.permute(order)


def _axes_of(args: Sequence[Any], in_axes: Any) -> Iterator[int | None]:
    """An axis, or None, for each tensor in the arguments.

    Raises:
      ValueError: if there are not as many as arguments, or one is no axis.
    """
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            raise ValueError(f"vmap: in_axes={in_axes} for {len(args)} arguments")
        for arg, axes in zip(args, in_axes, strict=True):
            yield from _axes(arg, axes, "in_axes")
    else:
        yield from _axes(list(args), in_axes, "in_axes")


def _axes(tree: Any, axes: Any, what: str) -> Iterator[int | None]:
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        for _ in tensors_in(tree):
            yield axes
    elif isinstance(axes, dict) and isinstance(tree, dict) and axes.keys() == tree.keys():
        for key, value in tree.items():
            yield from _axes(value, axes[key], what)
    elif isinstance(axes, (tuple, list)) and isinstance(tree, (tuple, list)) and len(axes) == len(tree):
        for value, axis in zip(tree, axes, strict=True):
            yield from _axes(value, axis, what)
    else:
        raise ValueError(f"vmap: {what} has {axes!r} for a {type(tree).__name__}")


def _out_axes(result: Any, out_axes: Any) -> Iterator[int]:
    for axis in _axes(result, out_axes, "out_axes"):
        if axis is None:
            raise ValueError("vmap: out_axes has None; a result has its values along an axis")
        yield axis


def _size(tensors: Sequence[Tensor], axes: Sequence[int | None]) -> sint:
    """How many values there are.

    Raises:
      IndexError: if a tensor has no such axis.
      ValueError: if the tensors have different numbers of values, or none has any.
    """
    found: dict[sint, str] = {}
    for number, (tensor, axis) in enumerate(zip(tensors, axes, strict=True)):
        if axis is None:
            continue
        if not -tensor.ndim <= axis < tensor.ndim:
            raise IndexError(f"vmap: in_axes={axis} is out of range for tensor {number}, of shape {tensor.shape}")
        found.setdefault(tensor.shape[axis], f"{tensor.shape[axis]} along axis {axis} of tensor {number}")
    if len(found) != 1:
        raise ValueError(
            "vmap: numbers of values differ: " + ", ".join(found.values()) if found else
            "vmap: no argument has values along an axis: every one of in_axes is None, or there is no tensor"
        )  # fmt: skip
    return next(iter(found))


offered(globals(), ["vmap"], "tinytg", {"vmap": "any"})
