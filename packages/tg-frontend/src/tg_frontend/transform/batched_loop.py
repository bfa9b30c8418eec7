"""Loops that can be batched: for many values at once, their body is computed for all, and the loop goes once.

The functions are those of ``loop``. What they give is remembered with how it is computed for many values, which is a
loop again; so loops within loops, and the ways back through them, follow of themselves.
"""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.isolate import Isolated, bases_first, depending
from tg_runtime import Body

from . import loop
from .batching import Batch, note
from .loop import Earlier, Results, Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def run(
    what: str, steps: Steps, init: Sequence[LazyBuffer], xs: Sequence[LazyBuffer], length: int, reverse: bool,
    stacked: bool, earlier: Sequence[Earlier] = (),
) -> Results:  # fmt: skip
    """As ``loop.run``. For many values, what does not depend on them is carried and gone through once."""
    found = loop.run(what, steps, init, xs, length, reverse, stacked, earlier)
    before = [one.placeholder for one in earlier]
    outputs = [*steps.carry_out, *steps.y_out]
    rests = [*found.stacks, *found.ys]
    axes, axes_of_rests = [[len(one.shape) for one in kind] for kind in (found.finals, rests)]

    def for_all(batch: Batch) -> list[LazyBuffer]:  # which must not hold the results: they are remembered with it
        _numeric(batch, what)
        inner = batch.within(outputs, [*steps.carry_in, *steps.x_in, *before])
        sources = (*xs, *(one.stack for one in earlier), *(one.init for one in earlier))
        places = (*steps.x_in, *before, *before)
        varying = [place for place, value in zip(places, sources, strict=True) if batch.depends(value)]
        carried = _carried(batch, inner, steps.carry_in, steps.carry_out, init, varying)
        wide = {place: inner.stand_in(place) for place in (*varying, *carried)}
        new = Steps(
            tuple(wide.get(place, place) for place in steps.carry_in),
            tuple(wide.get(place, place) for place in steps.x_in),
            tuple(inner.all_of(c) if p in wide else c for p, c in zip(steps.carry_in, steps.carry_out, strict=True)),
            tuple(inner.all_of(y) if inner.depends(y) else y for y in steps.y_out),
        )
        many = run(
            what, new, [batch.all_of(v) if p in wide else v for p, v in zip(steps.carry_in, init, strict=True)],
            [_turned(batch.all_of(x)) if p in wide else x for p, x in zip(steps.x_in, xs, strict=True)], length,
            reverse, stacked,
            [Earlier(wide[one.placeholder], _turned(batch.all_of(one.stack)), batch.all_of(one.init))
             if one.placeholder in wide else one for one in earlier],
        )  # fmt: skip
        finals = [_for_each(one, n, batch) for one, n in zip(many.finals, axes, strict=True)]
        with_steps = zip((*many.stacks, *many.ys), axes_of_rests, strict=True)
        return [*finals, *(_for_each(_turned(one) if len(one.shape) > n else one, n, batch) for one, n in with_steps)]

    note(found.packed, [*found.finals, *rests], for_all)
    return found


def run_while(
    what: str, carry_in: Sequence[LazyBuffer], carry_out: Sequence[LazyBuffer], flag: LazyBuffer,
    init: Sequence[LazyBuffer], first: LazyBuffer,
) -> list[LazyBuffer]:  # fmt: skip
    """As ``loop.run_while``. For many values, it goes on until the last one is done; the others stay as they are."""
    packed, found = loop.run_while(what, carry_in, carry_out, flag, init, first)
    axes = [len(one.shape) for one in found]

    def for_all(batch: Batch) -> list[LazyBuffer]:
        _numeric(batch, what)
        outputs = [*carry_out, flag]
        inner = batch.within(outputs, carry_in)
        carried = _carried(batch, inner, carry_in, carry_out, init, ())
        each = batch.depends(first) or flag.base in _reached(inner, bases_first(outputs), carried)
        if each:
            carried = list(carry_in)  # those that are done keep all of it
        wide = {place: inner.stand_in(place) for place in carried}
        before = [wide.get(place, place) for place in carry_in]
        start = [batch.all_of(v) if p in wide else v for p, v in zip(carry_in, init, strict=True)]
        after = [inner.all_of(c) if p in wide else c for p, c in zip(carry_in, carry_out, strict=True)]
        if not each:
            ends = run_while(what, before, after, flag, start, first)
        else:
            awake = LazyBuffer.empty((batch.size,), first.dtype, first.device)
            after = [_per_value(awake, new).alu(Ops.WHERE, new, old) for new, old in zip(after, before, strict=True)]
            going = awake.alu(Ops.AND, inner.all_of(flag))
            firsts = batch.all_of(first)
            ends = run_while(what, [*before, awake], [*after, going], _any(going), [*start, firsts], _any(firsts))[:-1]
        return [_for_each(one, n, batch) for one, n in zip(ends, axes, strict=True)]

    note(packed, found, for_all)
    return found


def run_branch(
    what: str, choice: LazyBuffer, ways: Sequence[tuple[Sequence[LazyBuffer], Sequence[LazyBuffer]]],
    args: Sequence[LazyBuffer],
) -> list[LazyBuffer]:  # fmt: skip
    """As ``loop.run_branch``. Where every value chooses for itself, both ways are gone, and each takes its own."""
    packed, found = loop.run_branch(what, choice, ways, args)

    def for_all(batch: Batch) -> list[LazyBuffer]:
        _numeric(batch, what)
        if batch.depends(choice):
            both = []
            for given, outputs in ways:
                inner = batch.within(outputs, given)
                for place, value in zip(given, args, strict=True):
                    inner.put(place, batch.all_of(value))
                both.append([inner.all_of(output) for output in outputs])
            chosen = batch.all_of(choice)
            return [_per_value(chosen, one).alu(Ops.WHERE, one, other) for one, other in zip(*both, strict=True)]
        wide = [n for n, value in enumerate(args) if batch.depends(value)]
        new = []
        for given, outputs in ways:
            inner = batch.within(outputs, given)
            stand_ins = {n: inner.stand_in(given[n]) for n in wide}
            new.append(([stand_ins.get(n, place) for n, place in enumerate(given)], [inner.all_of(o) for o in outputs]))
        return run_branch(what, choice, new, [batch.all_of(v) if n in wide else v for n, v in enumerate(args)])

    note(packed, found, for_all)
    return found


def run_body(
    what: str, body: Body, part: Isolated, given: Sequence[LazyBuffer], outs: Sequence[LazyBuffer],
    args: Sequence[LazyBuffer],
) -> list[LazyBuffer]:  # fmt: skip
    """As ``loop.run_body``, of a part that was cut from ``outs``. For many values, these are computed for all.

    Args:
      what: what to call it in print.
      body: of ``part``.
      part: what is computed, without placeholders in common with ``outs``.
      given: what stands in ``outs`` for the values.
      outs: what is computed.
      args: the values.
    """
    packed, found = loop.run_body(what, body, part, outs, args)

    def for_all(batch: Batch) -> list[LazyBuffer]:
        _numeric(batch, what)
        inner = batch.within(outs, given)
        for place, value in zip(given, args, strict=True):
            if batch.depends(value):
                inner.put(place, batch.all_of(value))
            else:
                inner.put(place, _for_each(value, len(value.shape), batch))
        return [inner.all_of(one) for one in outs]

    note(packed, found, for_all)
    return found


def _numeric(batch: Batch, what: str) -> None:
    """Looks whether it is known how many values there are.

    Raises:
      ValueError: if it is not.
    """
    if not isinstance(batch.size, int):
        raise ValueError(f"vmap: {what} in a function of {batch.size} values: their number must be no symbol")


def _reached(inner: Batch, order: Sequence[LazyBuffer], places: Sequence[LazyBuffer]) -> set[LazyBuffer]:
    """The bases of a body that depend on values, if placeholders do."""
    return depending(order, [*(node for node in order if inner.knows(node)), *places])


def _carried(
    batch: Batch, inner: Batch, carry_in: Sequence[LazyBuffer], carry_out: Sequence[LazyBuffer],
    init: Sequence[LazyBuffer], varying: Sequence[LazyBuffer],
) -> list[LazyBuffer]:  # fmt: skip
    """The placeholders of carries that differ from value to value, in the first step or in a later one."""
    found = [place for place, value in zip(carry_in, init, strict=True) if batch.depends(value)]
    order = bases_first(carry_out)
    while True:
        reached = _reached(inner, order, [*found, *varying])
        more = [p for p, new in zip(carry_in, carry_out, strict=True) if new.base in reached and p not in found]
        if not more:
            return found
        found += more


def _turned(values: LazyBuffer) -> LazyBuffer:
    """The first two axes exchanged: steps and values."""
    return values.permute((1, 0, *range(2, len(values.shape))))


def _for_each(result: LazyBuffer, axes: int, batch: Batch) -> LazyBuffer:
    """A result for each value: repeated if it has the axes of a single one, and is the same for all."""
    if len(result.shape) > axes:
        return result
    return result.reshape((1, *result.shape)).expand((batch.size, *result.shape))


def _per_value(flags: LazyBuffer, like: LazyBuffer) -> LazyBuffer:
    """Flags of shape (size,), repeated for the elements of each value."""
    return flags.reshape((*flags.shape, *(1 for _ in like.shape[1:]))).expand(like.shape)


def _any(flags: LazyBuffer) -> LazyBuffer:
    return flags.reduce(Ops.MAX, (0,)).reshape(())
