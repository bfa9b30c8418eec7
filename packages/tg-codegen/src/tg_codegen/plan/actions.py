"""Optimisation actions: small serialisable changes to a kernel.

Heuristics and search speak the same vocabulary: a sequence of actions, each of which gives a new kernel or raises
:class:`ActionError`. This module has those that change the loops of one nest, which they refer to by name; in a kernel
of several parts, :class:`In` says for which part they are. Actions that change what the parts are stand in modules of
their own, and :mod:`tg_codegen.plan.vocabulary` lists them all: there ``str(action)`` has its inverse.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from tg_lazy import ALU, CONVERSIONS

from ..ir.uop import UOp
from ..nest.kernel import Kernel
from ..nest.nest import Axis, Nest, Node, Stage
from ..nest.spec import ALONE, ITEMS, LANE, REDUCING, SERIAL, SERIAL_OUTPUT, Kind, NodeOp
from ..nest.updates import ordered_roots


class ActionError(ValueError):
    """An action does not fit the kernel; the message names the action and the loop."""


class Action:
    """A change to a kernel, printed as a name and arguments."""

    @classmethod
    def title(cls) -> str:
        """The name under which the action is printed.

        >>> Outermost.title()
        'outermost'
        """
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def __str__(self) -> str:
        parts = ", ".join(word(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return f"{self.title()}({parts})"


def word(argument: str | int | Kind | None) -> str:
    """An argument of an action as text: a name, a number, a kind of loop, or ``-`` for no loop."""
    if argument is None:
        return "-"
    return argument.name if isinstance(argument, Kind) else str(argument)


class KernelAction(Action, ABC):
    """A change to a kernel before it is emitted."""

    @abstractmethod
    def on(self, kernel: Kernel) -> Kernel:
        """The changed kernel.

        Raises:
          ActionError: if the action does not fit.
        """


class StructureAction(Action, ABC):
    """A change to the structured UOps that a kernel is emitted as: it comes after all that change its loops."""

    @abstractmethod
    def apply(self, sink: UOp) -> UOp:
        """The changed kernel.

        Raises:
          ActionError: if the action does not fit.
        """


class LoopAction(KernelAction):
    """A change to the loops of one nest."""

    @abstractmethod
    def apply(self, nest: Nest) -> Nest:
        """The changed nest.

        Raises:
          ActionError: if the action does not fit.
        """

    def on(self, kernel: Kernel) -> Kernel:
        if not kernel.single:
            parts = len(kernel.every_part)
            raise ActionError(f"{self}: the kernel has {parts} parts; '0: {self}' would be for the first one")
        return self.in_part(kernel, 0)

    def in_part(self, kernel: Kernel, number: int) -> Kernel:
        """The kernel with one part changed.

        Raises:
          ActionError: if the action does not fit.
        """
        return kernel.with_part(number, self.apply(kernel.every_part[number]))


@dataclass(frozen=True, slots=True)
class In(KernelAction):
    """An action on the loops of the ``number``-th part, printed as ``number: action``."""

    number: int
    action: LoopAction

    def __str__(self) -> str:
        return f"{self.number}: {self.action}"

    def on(self, kernel: Kernel) -> Kernel:
        parts = len(kernel.every_part)
        if not 0 <= self.number < parts:
            raise ActionError(f"{self}: the kernel has {parts} parts")
        return self.action.in_part(kernel, self.number)


def find(nest: Nest, name: str, action: Action) -> Axis:
    """The loop called ``name``.

    Raises:
      ActionError: if there is none.
    """
    try:
        return nest.axis(name)
    except KeyError as error:
        raise ActionError(f"{action}: {error.args[0]}") from None


def require_kind(nest: Nest, axis: Axis, action: Split | Mark) -> None:
    """Refuses to give a loop, or a part of it, a kind that does not fit.

    Raises:
      ActionError: if the kind is not for such a loop, or other loops exclude it.
    """
    kind = action.kind
    if axis.root in ordered_roots(nest):
        raise ActionError(f"{action}: iterations of {axis.name} may update one element, and are done in their order")
    if kind in LANE and any(s.update is not None and axis.root in s.update.place.free for s in nest.stores):
        raise ActionError(f"{action}: what {axis.name} updates is not known to be neighbours")
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
            beside = [a for a in others if a.kind in ALONE and a.root in node.arg[1]
                      and (a.kind is kind or a.root is not axis.root)]
            if axis.root in node.arg[1] and beside:
                raise ActionError(f"{action}: {beside[0].name} of the same reduction is {beside[0].kind.name} already")


def require_one_thread(kernel: Kernel, action: Split | Mark) -> None:
    """Refuses to divide a loop of one part among threads where all parts run in one.

    Threads share no scratch, and an iteration of a shared loop that one of them does is not divided again.

    Raises:
      ActionError: if the action does so.
    """
    if action.kind is Kind.THREAD and (kernel.scratch or any(a.kind is Kind.THREAD for a in kernel.shared)):
        raise ActionError(f"{action}: the parts run in one thread, for they share what they keep or a divided loop")


@dataclass(frozen=True, slots=True)
class Split(LoopAction):
    """Cuts ``axis`` into an outer loop of the same name and an inner one, ``axis.N``, of ``factor`` iterations.

    ``kind`` says what becomes of the inner loop. A factor that does not divide the extent leaves a partial last
    iteration.
    """

    axis: str
    factor: int
    kind: Kind

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        require_kind(nest, axis, self)
        if self.factor < 2:
            raise ActionError(f"{self}: the factor must be at least 2")
        if isinstance(axis.extent, int) and self.factor > axis.extent:
            raise ActionError(f"{self}: {self.axis} has only {axis.extent} iterations")
        if nest.of_root(axis.root)[0] is not axis and (not isinstance(axis.extent, int) or axis.extent % self.factor):
            raise ActionError(f"{self}: {self.factor} does not divide the {axis.extent} iterations of an inner loop")
        return nest.split(axis, self.factor, self.kind)

    def in_part(self, kernel: Kernel, number: int) -> Kernel:
        require_one_thread(kernel, self)
        return LoopAction.in_part(self, kernel, number)


@dataclass(frozen=True, slots=True)
class Mark(LoopAction):
    """Changes what becomes of the whole of ``axis``: unrolls a small loop, or spreads one over threads."""

    axis: str
    kind: Kind

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        require_kind(nest, axis, self)
        if self.kind not in (Kind.THREAD, Kind.GLOBAL) and not isinstance(axis.extent, int):
            raise ActionError(f"{self}: {self.axis} has the symbolic extent {axis.extent}")
        return replace(nest, axes=tuple(replace(a, kind=self.kind) if a is axis else a for a in nest.axes))

    def on(self, kernel: Kernel) -> Kernel:
        """The kernel with one of its shared loops, or one of its only part, changed."""
        if all(a.name != self.axis for a in kernel.shared):
            return LoopAction.on(self, kernel)
        if self.kind is not Kind.THREAD:
            raise ActionError(f"{self}: a loop around all parts is serial, or divided among the threads (THREAD)")
        if kernel.threaded:
            raise ActionError(f"{self}: another loop is divided among the threads already")
        shared = tuple(replace(a, kind=self.kind) if a.name == self.axis else a for a in kernel.shared)
        return replace(kernel, shared=shared)

    def in_part(self, kernel: Kernel, number: int) -> Kernel:
        require_one_thread(kernel, self)
        return LoopAction.in_part(self, kernel, number)


@dataclass(frozen=True, slots=True)
class Outermost(LoopAction):
    """Moves ``axis`` outside of all other serial output loops."""

    axis: str

    def apply(self, nest: Nest) -> Nest:
        axis = find(nest, self.axis, self)
        if axis.kind not in SERIAL_OUTPUT:
            raise ActionError(f"{self}: {self.axis} is {axis.kind.name}, not a serial loop of the outputs")
        rest = tuple(a for a in nest.axes if a is not axis)
        ordered = ordered_roots(nest)
        if axis.root in ordered and any(a.root in ordered for a in nest.axes[:nest.axes.index(axis)]):
            raise ActionError(f"{self}: iterations of {self.axis} may update one element, and are done in their order")
        return replace(nest, axes=(axis, *rest))


@dataclass(frozen=True, slots=True)
class Pack(LoopAction):
    """Keeps the ``number``-th load in scratch memory, filled inside the loop ``axis`` (``None``: at the top)."""

    number: int
    axis: str | None

    def apply(self, nest: Nest) -> Nest:
        return staged(nest, numbered_load(nest, self.number, self), self.axis, self)


@dataclass(frozen=True, slots=True)
class Share(LoopAction):
    """Keeps the ``number``-th load in memory of the work-group, filled by its items inside the loop ``axis``."""

    number: int
    axis: str | None

    def apply(self, nest: Nest) -> Nest:
        load = numbered_load(nest, self.number, self)
        if not any(a.kind in ITEMS for a in nest.axes):
            raise ActionError(f"{self}: there are no work-items to share it")
        return staged(nest, load, self.axis, self, shared=True)


@dataclass(frozen=True, slots=True)
class Convert(LoopAction):
    """Keeps what the ``number``-th load is converted to in scratch memory, filled inside the loop ``axis``.

    Constants may be combined with it before that, as where the sign of a byte is flipped.
    """

    number: int
    axis: str | None

    def apply(self, nest: Nest) -> Nest:
        load = numbered_load(nest, self.number, self)
        node, nodes = load, nest.nodes()
        while node is load or node.op not in CONVERSIONS:
            users = [n for n in nodes if node in n.src]
            if len(users) != 1 or any(s is not node and s.op is not NodeOp.CONST for s in users[0].src):
                raise ActionError(f"{self}: that load has other users than one conversion")
            node = users[0]
            if node.op not in ALU:
                raise ActionError(f"{self}: that load is not converted")
        return staged(nest, node, self.axis, self)


@dataclass(frozen=True, slots=True)
class SplitReduction(LoopAction):
    """Keeps partial results of the ``number``-th reduction in scratch, inside the loop ``axis`` (``None``: at the top).

    Its outermost serial loop then runs outside of the output loops inside ``axis``.
    """

    number: int
    axis: str | None

    def apply(self, nest: Nest) -> Nest:
        reductions = reductions_of(nest)
        if not 0 <= self.number < len(reductions):
            raise ActionError(f"{self}: the kernel has {len(reductions)} reductions")
        node = reductions[self.number]
        if not any(a.root in node.arg[1] and a.kind is Kind.REDUCE for a in nest.axes):
            raise ActionError(f"{self}: that reduction has no serial loop")
        return staged(nest, node, self.axis, self)


@dataclass(frozen=True, slots=True)
class Stream(LoopAction):
    """Writes whole vectors of the buffer ``slot`` past the caches, for a buffer that is too large for them anyway.

    A store through the caches reads the line first that it is going to overwrite. A buffer that the kernel also reads
    is near already, and must not be found stale.
    """

    slot: int

    def apply(self, nest: Nest) -> Nest:
        stores = [s for s in nest.stores if s.slot == self.slot]
        if len(stores) != 1 or nest.buffers[self.slot].internal:
            raise ActionError(f"{self}: the kernel writes that buffer in {len(stores)} places")
        if reads(nest, self.slot):
            raise ActionError(f"{self}: the kernel reads that buffer, too")
        if self.slot in nest.streams:
            raise ActionError(f"{self}: it is written so already")
        return replace(nest, streams=nest.streams | {self.slot})

    def in_part(self, kernel: Kernel, number: int) -> Kernel:
        """As other actions; but what another part reads must be in the caches."""
        if any(reads(part, self.slot) for n, part in enumerate(kernel.every_part) if n != number):
            raise ActionError(f"{self}: another part of the kernel reads that buffer")
        return LoopAction.in_part(self, kernel, number)


@dataclass(frozen=True, slots=True)
class Prefetch(LoopAction):
    """Tells the cache, with each vector of the ``number``-th load, of the one ``distance`` elements further.

    For rows that are walked several times: hardware prefetchers follow only the walk that is under way.
    """

    number: int
    distance: int

    def apply(self, nest: Nest) -> Nest:
        load = numbered_load(nest, self.number, self)
        if self.distance < 1:
            raise ActionError(f"{self}: {self.distance} elements are not ahead")
        if nest.buffers[load.arg[0]].internal:
            raise ActionError(f"{self}: that load reads what the kernel keeps itself")
        if any(node is load for node, _ in nest.ahead):
            raise ActionError(f"{self}: it is told already")
        return replace(nest, ahead=(*nest.ahead, (load, self.distance)))


@dataclass(frozen=True, slots=True)
class PrefetchIndirect(LoopAction):
    """Tells the cache what gathers will read ``distance`` iterations of ``axis`` later, their indices being there.

    Only gathers whose lanes are neighbours: rows of a table, one here and one there. Updates likewise.
    """

    axis: str
    distance: int

    def apply(self, nest: Nest) -> Nest:
        root = find(nest, self.axis, self).root
        if self.distance < 1:
            raise ActionError(f"{self}: {self.distance} iterations are not ahead")
        updated = any(s.update is not None and root in s.update.place.free for s in nest.stores)
        if not updated and not any(n.op is NodeOp.GATHER and root in n.free for n in nest.nodes()):
            raise ActionError(f"{self}: no gather and no update depends on that loop")
        if nest.indirect_ahead is not None:
            raise ActionError(f"{self}: gathers look ahead already")
        return replace(nest, indirect_ahead=(self.axis, self.distance))


def staged(nest: Nest, node: Node, axis: str | None, action: Action, shared: bool = False) -> Nest:
    """The nest with ``node`` kept in scratch inside the loop ``axis`` (``None``: at the top).

    Raises:
      ActionError: if it is kept already, or does not depend on the loop, so that it may be wanted outside of it.
    """
    if axis is not None and find(nest, axis, action).root not in node.free:
        raise ActionError(f"{action}: {node!r} does not depend on {axis}")
    if any(s.node is node for s in nest.stages):
        raise ActionError(f"{action}: {node!r} is kept in scratch already")
    return replace(nest, stages=(*nest.stages, Stage(node, axis, shared)))


def numbered_load(nest: Nest, number: int, action: Action) -> Node:
    """The load with a number.

    Raises:
      ActionError: if there are not so many.
    """
    loads = loads_of(nest)
    if not 0 <= number < len(loads):
        raise ActionError(f"{action}: the kernel has {len(loads)} loads")
    return loads[number]


def loads_of(nest: Nest) -> list[Node]:
    """The kernel's loads, in the order that :class:`Pack` numbers them."""
    return [n for n in nest.nodes() if n.op is NodeOp.LOAD]


def reductions_of(nest: Nest) -> list[Node]:
    """The kernel's reductions, in the order that :class:`SplitReduction` numbers them."""
    return [n for n in nest.nodes() if n.op is NodeOp.REDUCE]


def reads(nest: Nest, slot: int) -> bool:
    """Whether a nest reads a buffer."""
    if any(s.slot == slot and s.update is not None for s in nest.stores):
        return True
    return any(n.op in (NodeOp.LOAD, NodeOp.GATHER) and n.arg[0] == slot for n in nest.nodes())


def apply(nest: Nest, actions: Sequence[LoopAction]) -> Nest:
    """A nest with all actions applied in order.

    Raises:
      ActionError: if one does not fit.
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
