"""A lazy graph for many values at once: every node gets an axis in front, along which the values lie.

There is a rule for each op. What does not depend on the values stays as it is, and is repeated where it meets them.
A node of several results, such as a loop, says itself how these are computed for many values: :func:`note`.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.isolate import bases_first, within
from tg_lazy.ops import ALU
from tg_shape import ShapeTracker, View, prod, sint, upper

from ..memory.realization import computable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..memory.realization import Unavailable

    ForAll = Callable[["Batch"], Sequence[LazyBuffer]]


def placeholder(shape: tuple[sint, ...], like: LazyBuffer, refusal: Unavailable) -> LazyBuffer:
    """Stands for one of the values; to compute it raises."""
    return LazyBuffer.custom(refusal, (), shape, like.dtype, like.device)


_WHOLES: WeakSet[LazyBuffer] = WeakSet()
"""Nodes of several results, in which nobody looks but through these."""

_RESULTS: WeakKeyDictionary[LazyBuffer, tuple[ForAll, int]] = WeakKeyDictionary()
"""For each of these results, what computes all of them for many values, and its place among them."""


def note(whole: LazyBuffer, results: Sequence[LazyBuffer], for_all: ForAll) -> None:
    """Remembers how the results of a node are computed for many values, if they cannot be computed before.

    Args:
      whole: the node.
      results: made of parts of it.
      for_all: gives them for a :class:`Batch`, each of shape (size, *shape).
    """
    if computable([whole]):
        return
    _WHOLES.add(whole)
    for place, result in enumerate(results):
        if result.base.srcs:  # it is not empty
            _RESULTS[result.base] = for_all, place


class Batch:
    """Values for placeholders, and what is computed from them.

    Args:
      size: how many values a placeholder has.
    """

    __slots__ = ("_given", "_known", "_several", "size")

    def __init__(self, size: sint) -> None:
        self.size = size
        self._known: dict[LazyBuffer, LazyBuffer | None] = {}  # None for a node that depends on no placeholder
        self._given: list[LazyBuffer] = []
        self._several: dict[ForAll, Sequence[LazyBuffer]] = {}

    def put(self, place: LazyBuffer, values: LazyBuffer) -> None:
        """Gives a placeholder its values: shape (size, *shape)."""
        self._known[place] = values
        self._given.append(values)

    def given(self) -> list[LazyBuffer]:
        """The values of all placeholders."""
        return self._given

    def within(self, outputs: Sequence[LazyBuffer], parameters: Sequence[LazyBuffer]) -> Batch:
        """For the body of a loop: knows what is computed outside of it for each value.

        Args:
          outputs: what the body computes.
          parameters: what stands in it for what changes from step to step.
        """
        order = bases_first(outputs)
        body = within(order, parameters)
        borders = [src.base for node in order if node in body for src in node.srcs]
        inner = Batch(self.size)
        for node in (*borders, *(output.base for output in outputs)):
            if node not in body and self.depends(node):
                inner._known[node] = self._known[node]
        return inner

    def stand_in(self, place: LazyBuffer) -> LazyBuffer:
        """A placeholder for all values of another one."""
        values = LazyBuffer.empty((self.size, *place.shape), place.dtype, place.device)
        self._known[place] = values
        return values

    def knows(self, base: LazyBuffer) -> bool:
        """Whether a base was given values, or is known to depend on such."""
        return self._known.get(base) is not None

    def depends(self, lazy: LazyBuffer) -> bool:
        """Whether a node depends on a placeholder."""
        return self._of(lazy.base) is not None

    def all_of(self, lazy: LazyBuffer) -> LazyBuffer:
        """The node for all values: shape (size, *shape)."""
        self._of(lazy.base)
        return self._spread(lazy)

    def _of(self, base: LazyBuffer) -> LazyBuffer | None:
        known, stack = self._known, [base]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            waiting = [src.base for src in node.srcs if src.base not in known]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if any(known[src.base] is not None for src in node.srcs):
                # an update is written by the ASSIGN whose value it is, and is nothing by itself; nor is a whole
                known[node] = node if node.op is Ops.UPDATE or node in _WHOLES else self._rule(node)
            else:
                known[node] = None
        return known[base]

    def _spread(self, lazy: LazyBuffer) -> LazyBuffer:
        """An operand for all values, once its base is known."""
        values = self._known[lazy.base]
        if values is None:
            return lazy.reshape((1, *lazy.shape)).expand((self.size, *lazy.shape))
        if lazy.op is not Ops.VIEW:
            return values
        return _seen(values, self._lifted(lazy.st, lazy.base.size))

    def _lifted(self, st: ShapeTracker, size: sint) -> ShapeTracker:
        """A tracker of a buffer of ``size`` elements, for one such buffer after another."""
        views = []
        for view in st.views:
            mask = None if view.mask is None else ((0, self.size), *view.mask)
            views.append(View((self.size, *view.shape), (size, *view.strides), view.offset, mask))
            size = prod(view.shape)
        return ShapeTracker(tuple(views))

    def _rule(self, node: LazyBuffer) -> LazyBuffer:
        """The node for all values, of operands of which one at least depends on them."""
        op = node.op
        if node in _RESULTS:
            for_all, place = _RESULTS[node]
            if for_all not in self._several:
                self._several[for_all] = for_all(self)
            return self._several[for_all][place].reshape((self.size, *node.shape))
        if op is Ops.ASSIGN:
            return self._assigned(*node.srcs)
        srcs = [self._spread(src) for src in node.srcs]
        if op is Ops.CAST:
            return srcs[0].cast(node.dtype)
        if op in (Ops.BITCAST, Ops.BUFFER_VIEW):
            return srcs[0].bitcast(node.dtype)
        if op in ALU:
            return srcs[0].alu(op, *srcs[1:])
        if op is Ops.REDUCE:
            kind, axes = node.arg
            return srcs[0].reduce(kind, [axis + 1 for axis in axes])
        if op is Ops.GATHER:
            return self._gathered(node.srcs[0], srcs[1])
        if op is Ops.CONTIGUOUS:
            return srcs[0].intermediate() if node.arg else srcs[0].clone()
        if op is Ops.COPY:
            return srcs[0].copy_to(node.device)
        raise TypeError(f"vmap: there is no rule for {op.name}, which gave shape {node.shape}")

    def _gathered(self, source: LazyBuffer, index: LazyBuffer) -> LazyBuffer:
        if self._known[source.base] is None:
            return source.gather(index)
        size = source.size
        if upper(size) * upper(self.size) > dtypes.max(index.dtype):
            index = index.cast(dtypes.int64)
        single = (self.size, *(1 for _ in index.shape[1:]))
        number = LazyBuffer.iota(self.size, index.dtype, index.device).reshape(single).expand(index.shape)
        inside = index.alu(Ops.CMPLT, _number(index, size))
        if index.dtype.kind == "int":
            inside = inside.alu(Ops.AND, index.alu(Ops.CMPLT, index.const_like(0)).alu(Ops.NOT))
        place = number.alu(Ops.MUL, _number(index, size)).alu(Ops.ADD, index)
        outside = _number(index, size * self.size)
        return self._spread(source).gather(inside.alu(Ops.WHERE, place, outside))

    def _assigned(self, target: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        """The next version of memory. It is made in new memory: others may read the version before."""
        base = target.base
        memory = self._spread(base).clone()
        if value.op is not Ops.UPDATE:
            part = memory if target.op is not Ops.VIEW else _seen(memory, self._lifted(target.st, base.size))
            return part.assign(self._spread(value)).base
        op, where, found, distinct = value.arg
        what, index = (self._spread(src) for src in value.srcs)
        kept = None if found is None else self._lifted(found, base.size)
        return memory.update(what, index, self._lifted(where, base.size), op, kept, distinct)


def _seen(values: LazyBuffer, st: ShapeTracker) -> LazyBuffer:
    return values.seen(values.st + st if values.op is Ops.VIEW else st)


def _number(like: LazyBuffer, value: sint) -> LazyBuffer:
    if isinstance(value, int):
        return like.const_like(value)
    single = LazyBuffer.symbolic(value, like.dtype, like.device)
    return single.reshape((1,) * len(like.shape)).expand(like.shape)
