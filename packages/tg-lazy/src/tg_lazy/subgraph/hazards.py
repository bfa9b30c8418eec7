"""Values that an assignment would destroy: unrealised nodes that read memory which this schedule overwrites.

A node that somebody still holds keeps the values of the version that it was built on. So it is realised in the same
schedule, before the memory is overwritten: nodes outside the graph, found through the weak references that memory keeps
to its readers, and nodes inside the graph that would have been fused away, where something other than the graph holds
them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from itertools import count
from sys import getrefcount
from typing import TypeVar

from tg_shape import upper

from ..graph.lazybuffer import LazyBuffer
from ..ops import LEAVES, MEMORY, Ops
from .graph import Graph

T = TypeVar("T")
_ASSIGN, _BUFFER_VIEW, _VIEW = Ops.ASSIGN, Ops.BUFFER_VIEW, Ops.VIEW  # looked up once: an Enum's are slow
LARGE = 1 << 22
"""Bytes from which on a value is not kept if it is much larger than its operands."""
READER = "it reads memory that this schedule overwrites"


def memory_of(lazy: LazyBuffer, known: dict[LazyBuffer, object]) -> object:
    """What stands for the memory of a base: one object for all its versions and parts.

    Args:
      lazy: the base.
      known: that of others, to which all on the way are added: of a thousand versions each is asked once.
    """
    way: list[LazyBuffer] = []
    while (lazy.op is _ASSIGN or lazy.op is _BUFFER_VIEW) and lazy not in known:
        way.append(lazy)
        lazy = lazy.srcs[0].base
    memory = known.get(lazy)
    if memory is None:
        storage = lazy._storage
        memory = lazy if storage is None else storage.root
    known.update(dict.fromkeys(way, memory))
    return memory


def overwritten(
    order: Sequence[LazyBuffer], known: dict[LazyBuffer, object], start: int = 0
) -> list[LazyBuffer]:
    """The versions of memory that the ASSIGNs among the bases from ``start`` on end, and parts of these versions.

    Args:
      order: bases, operands first.
      known: as in :func:`memory_of`.
      start: where in it.
    """
    last: dict[object, LazyBuffer] = {}
    for lazy in order[start:] if start else order:
        if lazy.op is _ASSIGN:
            memory = memory_of(lazy, known)
            if memory not in last or last[memory].arg < lazy.arg:
                last[memory] = lazy
    if not last:
        return []
    ended: dict[LazyBuffer, None] = {}
    for lazy in order:
        op = lazy.op
        if op not in MEMORY:
            continue
        final = last.get(memory_of(lazy, known))
        if op is _BUFFER_VIEW:
            gone = lazy.srcs[0].base in ended
        elif op is _ASSIGN:
            gone = final is not None and lazy.arg < final.arg
        else:
            gone = final is not None
        if gone:
            ended[lazy] = None
    return list(ended)


def reach_readers(graph: Graph) -> None:
    """Adds the readers outside the graph, until there are none."""
    seen: set[LazyBuffer] = set()
    known: dict[LazyBuffer, object] = {}
    start = 0
    while start < len(graph.nodes):
        order = list(graph.of)
        fresh, start = overwritten(order, known), len(graph.nodes)
        for lazy in fresh:
            if lazy not in seen:
                seen.add(lazy)
                graph.reach(list(outside(lazy, graph.of, known)), READER)


def outside(
    version: LazyBuffer, inside: Container[object], known: dict[LazyBuffer, object]
) -> Iterable[LazyBuffer]:
    """The unrealised nodes that read a version of memory and are not ``inside``."""
    memory = memory_of(version, known)
    stack = version.readers.alive()
    seen: set[LazyBuffer] = set(stack)
    while stack:
        reader = stack.pop()
        if reader in inside or reader.is_realized or reader.stale is not None:
            continue
        if reader.op is Ops.ASSIGN and memory_of(reader, known) is memory:
            continue  # another write, which comes later
        above: list[LazyBuffer] = []
        if reader.op in (Ops.BUFFER_VIEW, Ops.UPDATE) or _inflates(reader):
            above = [r for r in reader.readers.alive() if not r.is_realized]
        if above:
            stack.extend(r for r in above if r not in seen)
            seen.update(above)
        elif reader.op not in (Ops.BUFFER_VIEW, Ops.UPDATE):
            yield reader


def _inflates(lazy: LazyBuffer) -> bool:
    """Whether a value is large, and much larger than its operands, so that its users should be kept instead."""
    size = _elements(lazy)
    return size * lazy.dtype.itemsize > LARGE and size > 2 * max((_elements(src.base) for src in lazy.srcs), default=0)


def _elements(lazy: LazyBuffer) -> int:
    return upper(lazy.size)


def tainted(
    order: Iterable[LazyBuffer], ended: Collection[LazyBuffer], realised: Container[LazyBuffer]
) -> list[LazyBuffer]:
    """The bases that would be lost with versions of memory: computed from them, and not put in memory themselves.

    Args:
      order: bases, operands first.
      ended: the versions of memory.
      realised: the bases that are put in memory, beside those that always are.
    """
    lost: dict[LazyBuffer, None] = {}
    for lazy in order:
        op = lazy.op
        if op in MEMORY or op in LEAVES or lazy in realised:
            continue
        for src in lazy.srcs:
            base = src.srcs[0] if src.op is _VIEW else src
            if base in ended or base in lost:
                lost[lazy] = None
                break
    return list(lost)


def kept(graph: Graph, held: Container[LazyBuffer] | None) -> list[LazyBuffer]:
    """The nodes inside the graph that are not realised, depend on overwritten memory, and are held from outside.

    Args:
      graph: with what is realised decided.
      held: the nodes that are held from outside; None to count references, which is right only while nothing but the
        graph and its holders refers to its nodes.
    """
    ended = set(overwritten(list(graph.of), {}))
    if not ended:
        return []
    dirty = tainted(graph.of, ended, {lazy for lazy, node in graph.of.items() if node.reason})
    if not dirty:
        return []
    if held is None:
        held = held_from_outside(list(graph.of), 4)  # Graph.of, Node.lazy, the list and `dirty`
    return [lazy for lazy in dirty if lazy in held and lazy.op is not Ops.UPDATE and not _inflates(lazy)]


def held_from_outside(order: Sequence[LazyBuffer], own: int) -> set[LazyBuffer]:
    """The bases to which, or to a view of which, there are more references than those from one another.

    Args:
      order: bases.
      own: how many references to each the caller has, ``order`` included.
    """
    known = _references(order, own)  # a function of its own, so that its variables hold no reference any more
    return {lazy.base for lazy in _beyond(known, _SLACK)}


def _references(order: Iterable[LazyBuffer], own: int) -> dict[LazyBuffer, int]:
    """How often bases and views are referred to by one another and by the caller."""
    known: dict[LazyBuffer, int] = {}
    for lazy in order:
        known[lazy] = known.get(lazy, 0) + own
        for src in lazy.srcs:
            before = known.get(src, 0)
            known[src] = before + 1
            if not before and src.op is _VIEW:
                known[src.srcs[0]] = known.get(src.srcs[0], 0) + 1
    return known


def _beyond(known: dict[T, int], slack: int) -> list[T]:
    """The keys to which there are more references than their value says, plus ``slack``."""
    return [key for key, references in known.items() if getrefcount(key) > references + slack]


_SLACK = next(slack for slack in count() if not _beyond({object(): 0}, slack))
"""References to a key that only its dictionary holds, while :func:`_beyond` looks at it."""
