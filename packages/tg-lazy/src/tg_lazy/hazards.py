"""Values that an assignment would destroy: unrealised nodes that read memory which this schedule overwrites.

A node that somebody still holds keeps the values of the version that it was built on. So it is realised in the same
schedule, before the memory is overwritten: nodes outside the graph, found through the weak references that memory keeps
to its readers, and nodes inside the graph that would have been fused away, where something other than the graph holds
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from sys import getrefcount
from typing import TypeVar

from .graph import Graph, Node
from .lazybuffer import MEMORY, LazyBuffer
from .ops import Ops

T = TypeVar("T")
LARGE = 1 << 22
"""Bytes up to which a value may take more memory than what it is made of."""
READER = "it reads memory that this schedule overwrites"


def memory_of(lazy: LazyBuffer) -> object:
    """What stands for the memory of a base: one object for all its versions and parts."""
    while lazy.op is Ops.ASSIGN or lazy.op is Ops.BUFFER_VIEW:
        lazy = lazy.srcs[0].base
    return lazy if lazy.storage is None else lazy.storage.root


def overwritten(graph: Graph, start: int = 0) -> list[Node]:
    """The versions of memory that the ASSIGNs among the nodes from ``start`` on end, and parts of these versions."""
    last: dict[object, Node] = {}
    for node in graph.nodes[start:]:
        if node.op is Ops.ASSIGN and node.lazy is not None:
            memory = memory_of(node.lazy)
            if memory not in last or last[memory].arg < node.arg:
                last[memory] = node
    if not last:
        return []
    ended: dict[Node, None] = {}
    for node in graph.nodes:
        if node.lazy is None or node.op not in MEMORY:
            continue
        final = last.get(memory_of(node.lazy))
        if node.op is Ops.BUFFER_VIEW:
            gone = node.srcs[0][0] in ended
        elif node.op is Ops.ASSIGN:
            gone = final is not None and node.arg < final.arg
        else:
            gone = final is not None
        if gone:
            ended[node] = None
    return list(ended)


def reach_readers(graph: Graph) -> None:
    """Adds the readers outside the graph, until there are none."""
    seen: set[LazyBuffer] = set()
    start = 0
    while start < len(graph.nodes):
        fresh, start = overwritten(graph, start), len(graph.nodes)
        for node in fresh:
            if node.lazy is not None and node.lazy not in seen:
                seen.add(node.lazy)
                graph.reach(list(_outside(node.lazy, graph)), READER)


def _outside(version: LazyBuffer, graph: Graph) -> Iterable[LazyBuffer]:
    memory = memory_of(version)
    stack = version.readers.alive()
    seen: set[LazyBuffer] = set(stack)
    while stack:
        reader = stack.pop()
        if reader in graph.of or reader.is_realized or reader.stale is not None:
            continue
        if reader.op is Ops.ASSIGN and memory_of(reader) is memory:
            continue  # another write, which comes later
        above: list[LazyBuffer] = []
        if reader.op is Ops.BUFFER_VIEW or _inflates(reader):
            above = [r for r in reader.readers.alive() if not r.is_realized]
        if above:
            stack.extend(r for r in above if r not in seen)
            seen.update(above)
        elif reader.op is not Ops.BUFFER_VIEW:
            yield reader


def _inflates(lazy: LazyBuffer) -> bool:
    """Whether a value is large, and much larger than what it is made of, so that its users are what should be kept."""
    size = _elements(lazy)
    return size * lazy.dtype.itemsize > LARGE and size > 2 * max((_elements(src.base) for src in lazy.srcs), default=0)


def _elements(lazy: LazyBuffer) -> int:
    size = lazy.size
    return size if isinstance(size, int) else size.vmax


def held(graph: Graph) -> list[Node]:
    """The nodes inside the graph that are not realised, depend on overwritten memory, and are held from outside."""
    ended = set(overwritten(graph))
    if not ended:
        return []
    dirty: list[Node] = []
    tainted: set[Node] = set()
    for node in graph.nodes:
        if node.reason and node.lazy is not None:
            continue
        if any(src in ended or src in tainted for src, _ in node.srcs):
            tainted.add(node)
            if node.lazy is not None:  # what the scheduler itself puts in memory is gone when the schedule has run
                dirty.append(node)
    if not dirty:
        return []
    extra = _held_from_outside(graph)
    return [node for node in dirty if node.lazy in extra and not _inflates(node.lazy)]


def _held_from_outside(graph: Graph) -> set[LazyBuffer]:
    """The bases in the graph to which, or to a view of which, there are more references than the graph's own."""
    known = _references(graph)  # counted in a function of its own, whose variables hold nothing any more
    return {lazy.base for lazy in _beyond(known, _SLACK)}


def _references(graph: Graph) -> dict[LazyBuffer, int]:
    """How often the graph itself refers to each base and view."""
    known: dict[LazyBuffer, int] = {}
    for lazy in graph.of:
        known[lazy] = known.get(lazy, 0) + 2  # keyed in Graph.of, and Node.lazy
        for src in lazy.srcs:
            before = known.get(src, 0)
            known[src] = before + 1
            if not before and src.op is Ops.VIEW:
                known[src.srcs[0]] = known.get(src.srcs[0], 0) + 1
    return known


def _beyond(known: dict[T, int], slack: int) -> list[T]:
    """The keys to which there are more references than their value says, plus ``slack``."""
    return [key for key, references in known.items() if getrefcount(key) > references + slack]


_SLACK = next(slack for slack in count() if not _beyond({object(): 0}, slack))
"""References to a key that only its dictionary holds, while :func:`_beyond` looks at it."""
