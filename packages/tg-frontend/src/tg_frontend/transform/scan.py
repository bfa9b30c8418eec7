"""A function applied step by step: each step begins with what the one before left."""

from __future__ import annotations

from typing import cast

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops

from ..autograd.differentiation import MODE, Switch
from ..autograd.functions import Grads
from ..autograd.recording import Recorded
from ..ops.above import Above
from ..tensor import Tensor
from .batched_loop import run
from .joint import Joint, Pullback, recorded_pullback
from .loop import Earlier, Results, Steps
from .tracing import closed_over, next_carry, numeric, placeholders, same_device, there_now, trace
from .tree import form, in_parts, leaves, of_parts, rebuild, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any



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
    init, xs = in_parts(init), in_parts(xs)
    carry = [(name, tensor_of(value, name, "scan")) for name, value in leaves(init, "init")]
    parts = _checked_xs(xs)
    count = _length(parts, length)
    same_device("scan", [*carry, *parts])
    numeric("scan", [*carry, *parts])
    body = _Traced(f, init, xs, [tensor for _, tensor in carry], [tensor for _, tensor in parts], reverse)
    start = [tensor for _, tensor in carry]
    through = [tensor for _, tensor in parts]
    if count == 0:
        empty = [Tensor.zeros(0, *y.shape, dtype=y.dtype, device=y.device) for y in body.y_out]
        return of_parts(rebuild(init, [tensor.contiguous() for tensor in start])), of_parts(rebuild(body.y_form, empty))
    finals, ys = body.run(start, through, count)
    return of_parts(rebuild(init, finals)), of_parts(rebuild(body.y_form, ys))


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
        self.reverse, self._f, self._init, self._xs = reverse, f, init, xs
        self.carry_in = placeholders([(tensor._ints(), tensor) for tensor in start])
        self.x_in = placeholders([(tensor._ints()[1:], tensor) for tensor in through])
        given = [*self.carry_in, *self.x_in]
        there = there_now()
        for tensor in given:
            there.pop(id(tensor), None)
        arguments = of_parts((rebuild(init, self.carry_in), rebuild(xs, self.x_in)))
        result = in_parts(trace("scan", f, arguments, given))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"scan: the function returns a carry and what is kept of a step, got {form(result)}")
        self.carry_out = next_carry("scan", init, result[0], self.carry_in)
        self.y_form = result[1]
        self._device = given[0].device if given else None
        self.y_out = [tensor_of(value, name, "scan", self._device) for name, value in leaves(result[1], "y")]
        if given:
            same_device("scan", [("the carry", given[0]), *((f"y[{i}]", y) for i, y in enumerate(self.y_out))])
        self.closed: list[Tensor] = []
        if MODE.recording:
            self.closed = closed_over([*self.carry_out, *self.y_out], given, there)

    def again(self, carry: Sequence[Tensor], x: Sequence[Tensor]) -> list[Tensor]:
        """What the function returns for other tensors: the leaves of the carry and of the rest."""
        new, y = in_parts(self._f(*of_parts((rebuild(self._init, carry), rebuild(self._xs, x)))))
        out = next_carry("scan", self._init, new, carry)
        return [*out, *(tensor_of(value, name, "scan", self._device) for name, value in leaves(y, "y"))]

    def steps(self) -> Steps:
        """It in nodes."""
        kinds = (self.carry_in, self.x_in, self.carry_out, self.y_out)
        return Steps(*(tuple(tensor.lazydata for tensor in kind) for kind in kinds))

    def run(self, start: Sequence[Tensor], through: Sequence[Tensor], count: int) -> tuple[list[Tensor], list[Tensor]]:
        """The last carry and the stacked rest."""
        if not self.carry_out and not self.y_out:
            return [], []
        init, xs = [tensor.lazydata for tensor in start], [tensor.lazydata for tensor in through]
        parents = [tensor for tensor in (*start, *through) if tensor.dtype.kind == "float"]
        parents += self.closed
        recorded = MODE.recording and any(tensor._wish is not False for tensor in parents)
        found = _run(self.steps(), init, xs, count, self.reverse, recorded)
        lazies = [*found.finals, *found.ys]
        if recorded:
            results = Scan(self, init, xs, found, count).results(parents, lazies)
        else:
            results = [Tensor._value(lazy) for lazy in lazies]
        return results[: len(start)], results[len(start) :]


def _run(
    steps: Steps, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], count: int, reverse: bool, stacked: bool,
    earlier: Sequence[Earlier] = (), what: str = "scan",
) -> Results:  # fmt: skip
    try:
        return run(what, steps, init, xs, count, reverse, stacked, earlier)
    except ValueError as error:
        raise ValueError(f"scan: in what the function computes {error}") from None


class Scan(Joint):
    """A loop as one function of its first carry, of what it goes through, and of what its body uses beside."""

    __slots__ = ("count", "init", "stacks", "traced", "xs")

    def __init__(
        self, traced: _Traced, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], found: Results, count: int
    ) -> None:
        super().__init__([*found.finals, *found.ys], [_floating(t) for t in (*traced.carry_out, *traced.y_out)])
        self.traced, self.init, self.xs, self.count = traced, tuple(init), tuple(xs), count
        self.stacks = found.stacks

    def backward(self, grad: LazyBuffer) -> Grads:
        traced, parts = self.traced, self.parts(grad)
        carried = len(traced.carry_out)
        outs = [*traced.carry_out, *traced.y_out]
        x_floats = [tensor for tensor in traced.x_in if tensor.dtype.kind == "float"]
        carry_floats = [tensor for tensor in traced.carry_in if tensor.dtype.kind == "float"]
        own = [*carry_floats, *x_floats, *traced.closed]
        needed = [tensor for tensor, need in zip(own, self.needs, strict=True) if need]
        asked = {id(tensor) for tensor in needed}
        others = [tensor for tensor in carry_floats if id(tensor) not in asked]  # what flows back goes through them
        pull = Pullback(outs, [part is not None for part in parts], [*others, *needed])
        x_asked = [tensor for tensor in x_floats if id(tensor) in asked]
        back = [n for n in pull.weights if n < carried]
        kept = [n for n in pull.weights if n >= carried]
        sums = [tensor for tensor in traced.closed if id(tensor) in asked and pull.reaches(tensor)]
        totals = [LazyBuffer.empty(t._ints(), _summed(t), t.device) for t in sums]
        added = [total.alu(Ops.ADD, pull.at(t).cast(total.dtype)) for total, t in zip(totals, sums, strict=True)]
        steps = Steps(
            (*(pull.weights[n].lazydata for n in back), *totals),
            (*(tensor.lazydata for tensor in traced.x_in), *(pull.weights[n].lazydata for n in kept)),
            (*(pull.at(traced.carry_in[n]) for n in back), *added),
            tuple(pull.at(tensor) for tensor in x_asked),
        )
        earlier = [
            Earlier(tensor.lazydata, stack, value)
            for tensor, stack, value in zip(traced.carry_in, self.stacks, self.init, strict=True)
        ]  # fmt: skip
        weights = {n: part.contiguous() for n, part in enumerate(parts) if part is not None}
        init = [*(weights[n] for n in back), *(LazyBuffer.const(0, t.dtype, t.shape, t.device) for t in totals)]
        xs = [*self.xs, *(weights[n] for n in kept)]
        found = _run(steps, init, xs, self.count, not traced.reverse, False, earlier, "gradient of a scan")
        of_init = dict(zip(back, found.finals, strict=False))
        of_closed = dict(zip(map(id, sums), found.finals[len(back) :], strict=True))
        closed = [
            of_closed[id(tensor)].cast(tensor.dtype) if id(tensor) in of_closed else None for tensor in traced.closed
        ]  # fmt: skip
        places = [n for n, tensor in enumerate(traced.carry_in) if tensor.dtype.kind == "float"]
        of_x = dict(zip(map(id, x_asked), found.ys, strict=True))
        return (*(of_init.get(n) for n in places), *(of_x.get(id(tensor)) for tensor in x_floats), *closed)

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        """The way back as a scan of tensors, which has a way back itself. The carries are computed again, for that."""
        traced, parts = self.traced, self.parts(grad)
        given = iter(cast("Sequence[Tensor]", self.parents))
        start, through = (
            [next(given) if lazy.dtype.kind == "float" else Tensor._wrap(lazy) for lazy in lazies]
            for lazies in (self.init, self.xs)
        )  # fmt: skip
        closed, carried = list(given), len(start)
        weights = {n: cast("Recorded", part).contiguous().tensor for n, part in enumerate(parts) if part is not None}
        back, kept = [n for n in weights if n < carried], [n for n in weights if n >= carried]

        def keep(carry: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            return traced.again(carry, x)[:carried], carry

        def step(state: Any, item: Any) -> Any:
            (cots, totals), (carry, x, gains) = state, item
            gains = dict(zip([*back, *kept], [*cots, *gains], strict=True))
            at = recorded_pullback(traced.again(carry, x), gains, [*carry, *x, *closed])
            sums = [total + at(tensor).cast(total.dtype) for total, tensor in zip(totals, closed, strict=True)]
            floats = [at(tensor) for tensor in x if tensor.dtype.kind == "float"]
            return ([at(carry[n]) for n in back], sums), floats

        with Switch(MODE, "recording", True), Switch(MODE, "repeating", True):
            carries = scan(keep, start, through, self.count, traced.reverse)[1]
            totals = [Tensor.zeros(*t._ints(), dtype=_summed(t), device=t.device) for t in closed]
            (first, sums), ys = scan(
                step, ([weights[n] for n in back], totals), (carries, through, [weights[n] for n in kept]), self.count,
                not traced.reverse,
            )  # fmt: skip
        of_init = dict(zip(back, first, strict=True))
        places = [n for n, tensor in enumerate(start) if tensor.dtype.kind == "float"]
        ends = [total.cast(tensor.dtype) for total, tensor in zip(sums, closed, strict=True)]
        grads = [*(of_init.get(n) for n in places), *ys, *ends]
        return tuple(None if one is None else cast("LazyBuffer", Recorded(one)) for one in grads)


def _floating(tensor: Tensor) -> bool:
    return tensor.dtype.kind == "float" and tensor._wish is not False


def _summed(tensor: Tensor) -> DType:
    return dtypes.float32 if tensor.dtype.itemsize < 4 else tensor.dtype


Above.scan = scan
