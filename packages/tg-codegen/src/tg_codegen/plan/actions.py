"""Optimisation actions: small serialisable changes to a nest's loops.

Heuristics and search speak the same vocabulary: a sequence of actions, each of which refers to loops by name and either
gives a new nest or raises :class:`ActionError`. ``str(action)`` and :func:`parse` are inverse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from tg_lazy import Ops
from tg_shape import ceildiv

from ..nest.nest import LANE, REDUCING, SERIAL, Axis, Kind, Nest, Node, NodeOp, Stage


class ActionError(ValueError):
    """An action does not fit the nest; the message names the action and the loop."""


class Action(ABC):
    """A change to a nest."""

    @abstractmethod
    def apply(self, nest: Nest) -> Nest:
        """The changed nest.

        Raises:
          ActionError: the action does not fit.
        """

    def __str__(self) -> str:
        parts = ", ".join(str(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__.lower()}({parts})"


def find(nest: Nest, name: str, action: Action) -> Axis:
    """The loop called ``name``.

    Raises:
      ActionError: there is none.
    """
    try:
        return nest.axis(name)
    except KeyError as error:
        raise ActionError(f"{action}: {error.args[0]}") from None


def kind_for(nest: Nest, axis: Axis, action: Split | Mark) -> Kind:
    """The kind that ``action`` gives to ``axis``, or to a part of it.

    Raises:
      ActionError: there is no such kind, it is not for such a loop, or other loops exclude it.
    """
    kind = Kind.__members__.get(action.kind)
    if kind is None:
        raise ActionError(f"{action}: {action.kind} is no kind of loop; these are: {', '.join(Kind.__members__)}")
    reduce = nest.roots[axis.root].reduce
    if (kind in REDUCING) is not reduce:
        raise ActionError(f"{action}: {axis.name} is {'a' if reduce else 'not a'} reduction")
    if axis.kind not in SERIAL | {Kind.GLOBAL}:
        raise ActionError(f"{action}: {axis.name} is {axis.kind.name} already")
    others = [a for a in nest.axes if a is not axis or isinstance(action, Split)]
    if kind is Kind.THREAD and any(a.kind is Kind.THREAD for a in others):
        raise ActionError(f"{action}: another loop is divided among the threads already")
    if kind in LANE and any(a.kind in LANE and a.root is axis.root for a in others):
        raise ActionError(f"{action}: the dimension {axis.root.name} has vector lanes already")
    if kind in ALONE:
        for node in reductions_of(nest):
            beside = [a for a in others if a.kind in ALONE and a.root in node.arg[1]]
            if axis.root in node.arg[1] and beside:
                raise ActionError(f"{action}: {beside[0].name} of the same reduction is {beside[0].kind.name} already")
    return kind


ALONE = frozenset({Kind.LANES, Kind.CONTRACT})
"""Of these a reduction has one loop: its accumulators' lanes, or what an instruction adds."""


@dataclass(frozen=True, slots=True)
class Split(Action):
    """Cuts ``axis`` into an outer loop of the same name and an inner one, ``axis.N``, of ``factor`` iterations.

    ``kind`` says what becomes of the inner loop. A factor that does not divide the extent leaves a partial last
    iteration.
    """

    axis: str
    factor: int
    kind: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        kind = kind_for(nest, axis, self)
        if self.factor < 2:
            raise ActionError(f"{self}: the factor must be at least 2")
        if isinstance(axis.extent, int) and self.factor > axis.extent:
            raise ActionError(f"{self}: {self.axis} has only {axis.extent} iterations")
        if nest.of_root(axis.root)[0] is not axis and (not isinstance(axis.extent, int) or axis.extent % self.factor):
            raise ActionError(f"{self}: {self.factor} does not divide the {axis.extent} iterations of an inner loop")
        parts = sum(a.root is axis.root for a in nest.axes)
        outer = replace(axis, stride=axis.stride * self.factor, extent=ceildiv(axis.extent, self.factor))
        inner = Axis(f"{axis.root.name}.{parts}", axis.root, axis.stride, self.factor, kind)
        position = nest.axes.index(axis)
        return nest.with_axes((*nest.axes[:position], outer, inner, *nest.axes[position + 1 :]), str(self))


@dataclass(frozen=True, slots=True)
class Mark(Action):
    """Changes what becomes of the whole of ``axis``: unrolls a small loop, or spreads one over threads."""

    axis: str
    kind: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        kind = kind_for(nest, axis, self)
        if kind not in (Kind.THREAD, Kind.GLOBAL) and not isinstance(axis.extent, int):
            raise ActionError(f"{self}: {self.axis} has the symbolic extent {axis.extent}")
        axes = tuple(replace(a, kind=kind) if a is axis else a for a in nest.axes)
        return nest.with_axes(axes, str(self))


@dataclass(frozen=True, slots=True)
class Outermost(Action):
    """Moves ``axis`` outside of all other serial output loops."""

    axis: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        if axis.kind not in (Kind.LOOP, Kind.THREAD):
            raise ActionError(f"{self}: {self.axis} is {axis.kind.name}, not a serial loop of the outputs")
        rest = tuple(a for a in nest.axes if a is not axis)
        return nest.with_axes((axis, *rest), str(self))


@dataclass(frozen=True, slots=True)
class Pack(Action):
    """Keeps the ``number``-th load in scratch memory, filled inside the loop ``axis`` (``-``: at the top)."""

    number: int
    axis: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        loads = loads_of(nest)
        if not 0 <= self.number < len(loads):
            raise ActionError(f"{self}: the kernel has {len(loads)} loads")
        return staged(nest, loads[self.number], self.axis, self)


@dataclass(frozen=True, slots=True)
class Share(Action):
    """Keeps the ``number``-th load in memory of the work-group, filled by its items inside the loop ``axis``."""

    number: int
    axis: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        loads = loads_of(nest)
        if not 0 <= self.number < len(loads):
            raise ActionError(f"{self}: the kernel has {len(loads)} loads")
        if not any(a.kind in (Kind.LOCAL, Kind.GROUP) for a in nest.axes):
            raise ActionError(f"{self}: there are no work-items to share it")
        return staged(nest, loads[self.number], self.axis, self, shared=True)


@dataclass(frozen=True, slots=True)
class Convert(Action):
    """Keeps what the ``number``-th load is converted to in scratch memory, filled inside the loop ``axis``."""

    number: int
    axis: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        loads = loads_of(nest)
        if not 0 <= self.number < len(loads):
            raise ActionError(f"{self}: the kernel has {len(loads)} loads")
        users = [n for n in nest.nodes() if loads[self.number] in n.src]
        if len(users) != 1 or users[0].op is not Ops.CAST:
            raise ActionError(f"{self}: that load has other users than one conversion")
        return staged(nest, users[0], self.axis, self)


@dataclass(frozen=True, slots=True)
class Partial(Action):
    """Keeps partial results of the ``number``-th reduction in scratch, inside the loop ``axis`` (``-``: at the top).

    Its outermost serial loop then runs outside of the output loops inside ``axis``.
    """

    number: int
    axis: str

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        reductions = reductions_of(nest)
        if not 0 <= self.number < len(reductions):
            raise ActionError(f"{self}: the kernel has {len(reductions)} reductions")
        node = reductions[self.number]
        if not any(a.root in node.arg[1] and a.kind is Kind.REDUCE for a in nest.axes):
            raise ActionError(f"{self}: that reduction has no serial loop")
        return staged(nest, node, self.axis, self)


@dataclass(frozen=True, slots=True)
class Stream(Action):
    """Writes whole vectors of the buffer ``slot`` past the caches, for a buffer that is too large for them anyway.

    A store through the caches reads the line first that it is going to overwrite. A buffer that the kernel also reads
    is near already, and must not be found stale.
    """

    slot: int

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        stores = [s for s in nest.stores if s.slot == self.slot]
        if len(stores) != 1 or nest.buffers[self.slot].internal:
            raise ActionError(f"{self}: the kernel writes that buffer in {len(stores)} places")
        if any(n.op in (NodeOp.LOAD, NodeOp.GATHER) and n.arg[0] == self.slot for n in nest.nodes()):
            raise ActionError(f"{self}: the kernel reads that buffer, too")
        if self.slot in nest.streams:
            raise ActionError(f"{self}: it is written so already")
        return replace(nest, streams=nest.streams | {self.slot}, log=(*nest.log, str(self)))


@dataclass(frozen=True, slots=True)
class Prefetch(Action):
    """Tells the cache, with each vector of the ``number``-th load, of the one ``distance`` elements further.

    For rows that are walked several times: the machine foresees only the walk that it is in.
    """

    number: int
    distance: int

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        loads = loads_of(nest)
        if not 0 <= self.number < len(loads):
            raise ActionError(f"{self}: the kernel has {len(loads)} loads")
        if self.distance < 1:
            raise ActionError(f"{self}: {self.distance} elements are not ahead")
        load = loads[self.number]
        if nest.buffers[load.arg[0]].internal:
            raise ActionError(f"{self}: that load reads what the kernel keeps itself")
        if any(node is load for node, _ in nest.ahead):
            raise ActionError(f"{self}: it is told already")
        return replace(nest, ahead=(*nest.ahead, (load, self.distance)), log=(*nest.log, str(self)))


@dataclass(frozen=True, slots=True)
class Foresee(Action):
    """Tells the cache what gathers will read ``distance`` iterations of ``axis`` later, their indices being there.

    Only gathers whose lanes are neighbours: rows of a table, one here and one there.
    """

    axis: str
    distance: int

    __str__ = Action.__str__

    def apply(self, nest: Nest) -> Nest:
        root = find(nest, self.axis, self).root
        if self.distance < 1:
            raise ActionError(f"{self}: {self.distance} iterations are not ahead")
        if not any(n.op is NodeOp.GATHER and root in n.free for n in nest.nodes()):
            raise ActionError(f"{self}: no gather depends on that loop")
        if nest.foreseen is not None:
            raise ActionError(f"{self}: gathers look ahead already")
        return replace(nest, foreseen=(self.axis, self.distance), log=(*nest.log, str(self)))


def staged(nest: Nest, node: Node, axis: str, action: Action, shared: bool = False) -> Nest:
    """The nest with ``node`` kept in scratch inside the loop ``axis``.

    Raises:
      ActionError: it is kept already, or does not depend on the loop, so that it may be wanted outside of it.
    """
    if axis != "-" and find(nest, axis, action).root not in node.free:
        raise ActionError(f"{action}: {node!r} does not depend on {axis}")
    if any(s.node is node for s in nest.stages):
        raise ActionError(f"{action}: {node!r} is kept in scratch already")
    stage = Stage(node, None if axis == "-" else axis, shared)
    return replace(nest, stages=(*nest.stages, stage), log=(*nest.log, str(action)))


def loads_of(nest: Nest) -> list[Node]:
    """The kernel's loads, in the order that :class:`Pack` numbers them."""
    return [n for n in nest.nodes() if n.op is NodeOp.LOAD]


def reductions_of(nest: Nest) -> list[Node]:
    """The kernel's reductions, in the order that :class:`Partial` numbers them."""
    return [n for n in nest.nodes() if n.op is NodeOp.REDUCE]


ACTIONS: dict[str, type[Action]] = {
    cls.__name__.lower(): cls
    for cls in (Split, Mark, Outermost, Pack, Convert, Share, Partial, Stream, Prefetch, Foresee)
}


def parse(text: str) -> Action:
    """The action that ``text`` prints.

    >>> str(parse("split(i0, 4, UPCAST)"))
    'split(i0, 4, UPCAST)'

    Raises:
      ActionError: the text is not an action.
    """
    name, _, rest = text.strip().partition("(")
    cls = ACTIONS.get(name)
    words = [word.strip() for word in rest.removesuffix(")").split(",")]
    if cls is None or not rest.endswith(")") or len(words) != len(fields(cls)):  # type: ignore[arg-type]
        raise ActionError(f"not an action: {text!r}; these are: {', '.join(ACTIONS)}")
    types = [f.type for f in fields(cls)]  # type: ignore[arg-type]
    try:
        return cls(*(int(word) if kind == "int" else word for word, kind in zip(words, types, strict=True)))
    except ValueError:
        raise ActionError(f"not an action: {text!r}: one of its arguments is to be a number") from None


def apply(nest: Nest, actions: tuple[Action, ...] | list[Action]) -> Nest:
    """``nest`` with all actions applied in order.

    Raises:
      ActionError: one does not fit.
    """
    for action in actions:
        nest = action.apply(nest)
    return nest


@contextmanager
def noting(actions: Iterable[object]) -> Iterator[None]:
    """Notes on an error from inside which actions were taken when it was raised."""
    try:
        yield
    except Exception as error:
        error.add_note(f"actions: {'; '.join(map(str, actions)) or 'none'}")
        raise
