"""A function applied step by step: each step begins with what the one before left."""

from __future__ import annotations

from functools import reduce
from math import prod

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

from ..autograd.differentiation import MODE, Switch, differentiate, operands_first
from ..autograd.functions import Function, Grads
from ..tensor import Tensor
from .loop import Earlier, Results, Steps, run
from .tracing import closed_over, placeholders, there_now, trace
from .tree import form, leaves, rebuild, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


_ADD = Ops.ADD


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Goes through tensors step by step: ``carry, y = f(carry, x)`` with each ``x`` of ``xs``, one after another.

    The function is called once, on tensors without values, and compiled once; that is executed for each step, when a
    result is asked for. Tensors that it uses beside its arguments are the same in every step. Gradients flow to
    ``init``, ``xs`` and these; for them the carry of each step is kept, unless inside of ``Tensor.no_grad()``.

    Args:
      f: takes a carry and a part of ``xs``, and returns the next carry, of the same shapes and dtypes, and what is to
        be kept of the step: trees of tensors; None for nothing.
      init: the first carry: a tensor, or tuples, lists and dicts of such.
      xs: a tree of tensors of one length along their first axis, which ``f`` gets an element of in each step; None if
        it needs nothing but the carry.
      length: how many steps there are, where ``xs`` does not tell.
      reverse: begin at the end of ``xs``; what is kept of each step stands where its element does.

    Returns:
      The last carry, and what was kept of the steps, stacked along a new first axis.

    Raises:
      TypeError: if the carry changes its form or a dtype, or is something else than tensors.
      ValueError: if the carry changes a shape, ``xs`` have other lengths, or a size is symbolic.
      RuntimeError: if the function asks for a value, draws random numbers, or writes in place to a tensor that was
        there before.

    Example:
      >>> from tg_frontend import Tensor, scan
      >>> total, sums = scan(lambda total, x: (total + x, total + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
      >>> total.item(), sums.tolist()
      (6.0, [1.0, 3.0, 6.0])
    """
    carry = [(name, tensor_of(value, name, "scan")) for name, value in leaves(init, "init")]
    parts = _checked_xs(xs)
    count = _length(parts, length)
    _same_device([*carry, *parts])
    for name, tensor in (*carry, *parts):
        if not tensor.lazydata.st.numeric:
            raise ValueError(f"scan: {name} has the symbolic shape {tensor.shape}; sizes must be numbers")
    body = _Traced(f, init, xs, [tensor for _, tensor in carry], [tensor for _, tensor in parts], reverse)
    start = [tensor for _, tensor in carry]
    through = [tensor for _, tensor in parts]
    if count == 0:
        empty = [Tensor.zeros(0, *y.shape, dtype=y.dtype, device=y.device) for y in body.y_out]
        return rebuild(init, [tensor.contiguous() for tensor in start]), rebuild(body.y_form, empty)
    finals, ys = body.run(start, through, count)
    return rebuild(init, finals), rebuild(body.y_form, ys)


def _checked_xs(xs: Any) -> list[tuple[str, Tensor]]:
    found = leaves(xs, "xs")
    for name, value in found:
        if not isinstance(value, Tensor):
            raise TypeError(f"scan: {name} is a tensor, got a {type(value).__name__}")
        if value.ndim == 0:
            raise ValueError(f"scan: {name} has shape (), and no axis to go through")
    return found


def _length(parts: Sequence[tuple[str, Tensor]], length: int | None) -> int:
    """How many steps there are."""
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 0):
        raise ValueError(f"scan: length is a number of steps, got {length!r}")
    if not parts:
        if length is None:
            raise ValueError("scan: without xs, length says how many steps there are")
        return length
    known: Any = {name: tensor.shape[0] for name, tensor in parts}
    if length is not None:
        known["length"] = length
    (first, count), *others = known.items()
    for name, other in others:
        if other is not count and other != count:
            raise ValueError(f"scan: {first} has length {count}, {name} {other}")
    if not isinstance(count, int):
        raise ValueError(f"scan: {first} has the symbolic length {count}; sizes must be numbers")
    return count


def _same_device(tensors: Sequence[tuple[str, Tensor]]) -> None:
    for name, tensor in tensors:
        if tensor.device != tensors[0][1].device:
            first = tensors[0]
            raise ValueError(f"scan: {first[0]} is on {first[1].device}, {name} on {tensor.device}")


class _Traced:
    """The function of a scan, called once on placeholders.

    Attributes:
      carry_in: placeholders for the carry.
      x_in: for an element of each of ``xs``.
      carry_out: the carry that it returned.
      y_out: what it returned beside.
      y_form: the tree of that.
      closed: tensors that it used beside its arguments, and that may get a gradient.
    """

    def __init__(
        self, f: Callable[..., Any], init: Any, xs: Any, start: Sequence[Tensor], through: Sequence[Tensor],
        reverse: bool,
    ) -> None:  # fmt: skip
        self.reverse = reverse
        self.carry_in = placeholders([(tensor._ints(), tensor) for tensor in start])
        self.x_in = placeholders([(tensor._ints()[1:], tensor) for tensor in through])
        given = [*self.carry_in, *self.x_in]
        there = there_now()
        for tensor in given:
            there.pop(id(tensor), None)
        result = trace("scan", f, (rebuild(init, self.carry_in), rebuild(xs, self.x_in)), given)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"scan: the function returns a carry and what is kept of a step, got {form(result)}")
        self.carry_out = _next_carry(init, result[0], self.carry_in)
        self.y_form = result[1]
        device = given[0].device if given else None
        self.y_out = [tensor_of(value, name, "scan", device) for name, value in leaves(result[1], "y")]
        if given:
            _same_device([("the carry", given[0]), *((f"y[{i}]", y) for i, y in enumerate(self.y_out))])
        self.closed: list[Tensor] = []
        if MODE.recording:
            self.closed = closed_over([*self.carry_out, *self.y_out], given, there)

    def steps(self) -> Steps:
        """It in nodes."""
        kinds = (self.carry_in, self.x_in, self.carry_out, self.y_out)
        return Steps(*(tuple(tensor.lazydata for tensor in kind) for kind in kinds))

    def run(self, start: Sequence[Tensor], through: Sequence[Tensor], count: int) -> tuple[list[Tensor], list[Tensor]]:
        """The last carry and the stacked rest."""
        init, xs = [tensor.lazydata for tensor in start], [tensor.lazydata for tensor in through]
        parents = [tensor for tensor in (*start, *through) if tensor.dtype.kind == "float"]
        parents += self.closed
        recorded = MODE.recording and any(tensor.requires_grad is not False for tensor in parents)
        found = _run(self.steps(), init, xs, count, self.reverse, recorded)
        lazies = [*found.finals, *found.ys]
        if not recorded:
            results = [Tensor._value(lazy) for lazy in lazies]
        else:
            loop = _Loop(self, init, xs, found, count)
            whole = parents[0]._apply(loop, *parents[1:])
            results = [
                Tensor._value(lazy) if place is None else _part(whole, lazy, place)
                for lazy, place in zip(lazies, loop.places, strict=True)
            ]  # fmt: skip
        return results[: len(start)], results[len(start) :]


def _run(
    steps: Steps, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], count: int, reverse: bool, stacked: bool,
    earlier: Sequence[Earlier] = (), what: str = "scan",
) -> Results:  # fmt: skip
    try:
        return run(what, steps, init, xs, count, reverse, stacked, earlier)
    except ValueError as error:
        raise ValueError(f"scan: in what the function computes {error}") from None


def _next_carry(init: Any, carry: Any, before: Sequence[Tensor]) -> list[Tensor]:
    """The carry that a function returned, checked to be like the one that it got.

    Raises:
      TypeError: if its form or a dtype is another one.
      ValueError: if a shape is.
    """
    if form(init) != form(carry):
        raise TypeError(f"scan: the carry has the form {form(init)}, and the function returns one of {form(carry)}")
    out = []
    for (name, value), old in zip(leaves(carry, "carry"), before, strict=True):
        if isinstance(value, (bool, int, float)):
            value = old.full_like(value)
        new = tensor_of(value, name, "scan")
        if new.shape != old.shape:
            raise ValueError(f"scan: {name} has shape {old.shape}, and the function returns it with shape {new.shape}")
        if new.dtype is not old.dtype:
            now = new.dtype.name
            raise TypeError(f"scan: {name} is {old.dtype.name}, and the function returns it as {now}: cast it")
        if new.device != old.device:
            raise ValueError(f"scan: {name} is on {old.device}, and the function returns it on {new.device}")
        out.append(new)
    return out


class _Loop(Function):
    """A loop as one function. Its result stands for all that it computes, and is of no value itself.

    Attributes:
      places: where each result's gradient lies in that of the whole; None of what has no gradient.
    """

    __slots__ = ("count", "dtype", "init", "places", "size", "stacks", "traced", "xs")

    def __init__(
        self, traced: _Traced, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], found: Results, count: int
    ) -> None:
        self.traced, self.init, self.xs, self.count = traced, tuple(init), tuple(xs), count
        self.stacks = found.stacks
        self.size = 0
        self.places: list[int | None] = []
        lazies = [*found.finals, *found.ys]
        for lazy, tensor in zip(lazies, (*traced.carry_out, *traced.y_out), strict=True):
            wanted = lazy.dtype.kind == "float" and tensor.requires_grad is not False
            self.places.append(self.size if wanted else None)
            self.size += prod(_ints(lazy)) if wanted else 0
        wide = any(lazy.dtype is dtypes.float64 for lazy in lazies)
        self.dtype = dtypes.float64 if wide else dtypes.float32

    def forward(self, *operands: LazyBuffer) -> LazyBuffer:
        return LazyBuffer.const(0, self.dtype, (self.size,), operands[0].device)

    def backward(self, grad: LazyBuffer) -> Grads:
        with Switch(MODE, "recording", True):
            return self._backward(grad)

    def _backward(self, grad: LazyBuffer) -> Grads:
        traced = self.traced
        outs = [*traced.carry_out, *traced.y_out]
        shapes = [out._ints() for out in outs]
        carried = len(traced.carry_out)
        shapes[carried:] = [(self.count, *shape) for shape in shapes[carried:]]
        parts = [
            None if place is None
            else grad.shrink(((place, place + prod(shape)),)).reshape(shape).cast(out.dtype).contiguous()
            for out, shape, place in zip(outs, shapes, self.places, strict=True)
        ]  # fmt: skip
        weighed = [place for place, part in enumerate(parts) if part is not None]
        weights = dict(zip(weighed, placeholders([(outs[n]._ints(), outs[n]) for n in weighed]), strict=True))
        terms = [(outs[n] * weight.detach()).sum() for n, weight in weights.items()]
        root = reduce(lambda a, b: a + b, [term.cast(self.dtype) for term in terms])
        floats = [tensor for tensor in (*traced.carry_in, *traced.x_in) if tensor.dtype.kind == "float"]
        wanted = [*floats, *traced.closed]
        ends = {id(tensor): tensor for tensor in wanted}
        order = operands_first(root, True, ends)
        seed = LazyBuffer.const(1, root.dtype, (), root.device)
        found = {id(node): part for node, part in differentiate(root, seed, wanted, order)}

        def at(tensor: Tensor) -> LazyBuffer:
            none = LazyBuffer.const(0, tensor.dtype, tensor.shape, tensor.device)
            return found.get(id(tensor), none)

        back = [n for n in weighed if n < carried]
        sums = [tensor for tensor in traced.closed if id(tensor) in found]
        totals = placeholders([(t._ints(), t.cast(_summed(t))) for t in sums])
        added = [total.lazydata.alu(_ADD, at(t).cast(total.dtype)) for total, t in zip(totals, sums, strict=True)]
        x_floats = [tensor for tensor in traced.x_in if tensor.dtype.kind == "float"]
        steps = Steps(
            (*(weights[n].lazydata for n in back), *(total.lazydata for total in totals)),
            (*(tensor.lazydata for tensor in traced.x_in), *(weights[n].lazydata for n in weighed if n >= carried)),
            (*(at(traced.carry_in[n]) for n in back), *added),
            tuple(at(tensor) for tensor in x_floats),
        )
        earlier = [
            Earlier(tensor.lazydata, stack, value)
            for tensor, stack, value in zip(traced.carry_in, self.stacks, self.init, strict=True)
        ]  # fmt: skip
        zeros = [LazyBuffer.const(0, total.dtype, total.shape, total.device) for total in totals]
        init = [*(parts[n] for n in back), *zeros]
        xs = [*self.xs, *(parts[n] for n in weighed if n >= carried)]
        assert None not in init and None not in xs
        results = _run(steps, init, xs, self.count, not traced.reverse, False, earlier, "gradient of a scan")  # type: ignore[arg-type]
        of_init = dict(zip(back, results.finals, strict=False))
        of_closed = dict(zip(map(id, sums), results.finals[len(back) :], strict=True))
        grads: list[LazyBuffer | None] = [
            of_init.get(n) for n, tensor in enumerate(traced.carry_in) if tensor.dtype.kind == "float"
        ]  # fmt: skip
        grads += results.ys
        grads += [
            of_closed[id(tensor)].cast(tensor.dtype) if id(tensor) in of_closed else None for tensor in traced.closed
        ]  # fmt: skip
        return tuple(grads)


class _Result(Function):
    """A result of a loop: its value is there, its gradient a part of the whole's."""

    __slots__ = ("dtype", "place", "size", "value")

    def __init__(self, value: LazyBuffer, place: int) -> None:
        self.value, self.place = value, place

    def forward(self, whole: LazyBuffer) -> LazyBuffer:
        (self.size,), self.dtype = _ints(whole), whole.dtype
        return self.value

    def backward(self, grad: LazyBuffer) -> Grads:
        flat = grad.cast(self.dtype).reshape((prod(_ints(grad)),))
        return (flat.pad(((self.place, self.size - self.place - prod(_ints(grad))),)),)


def _part(whole: Tensor, lazy: LazyBuffer, place: int) -> Tensor:
    out = whole._apply(_Result(lazy, place))
    out._part()
    return out


def _summed(tensor: Tensor) -> str:
    return "float32" if tensor.dtype.itemsize < 4 else tensor.dtype.name


def _ints(node: LazyBuffer) -> tuple[int, ...]:
    return node.shape  # type: ignore[return-value]
