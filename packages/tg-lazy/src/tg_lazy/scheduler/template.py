"""Schedules remembered by structure: a graph of a known structure over other memory is not scheduled again.

A graph's structure is its nodes in topological order, each with what it computes, on which earlier nodes, through which
views; for memory, which of it is the same. Of a graph that assigns, who reads the memory that it overwrites belongs to
its structure too: nodes outside, which are computed first, and nodes inside that somebody holds. Graphs with host
functions are not remembered, nor are symbolic ones, whose structure includes the current values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tg_dtype import DType

from ..ast.nodes import LazyOp
from ..cost import LIMITS, Limits
from ..graph.label import Label
from ..graph.lazybuffer import LazyBuffer
from ..graph.origin import Origin
from ..graph.storage import Storage
from ..ops import Ops
from ..settings.context import STRICT
from ..subgraph import hazards
from .item import ScheduleItem

LARGEST = 1 << 15
"""Nodes of the largest graph that is remembered."""
CAPACITY = 512
"""How many schedules are remembered."""
CAPACITY_NODES = 1 << 17
"""Nodes of all remembered schedules together."""

_NOT_REMEMBERED = frozenset({Ops.CUSTOM})
_ASSIGN, _VIEW = Ops.ASSIGN, Ops.VIEW  # looked up once: attributes of an Enum are slow


class Structure:
    """What a graph's schedule depends on.

    Attributes:
      key: equal for graphs with equal schedules.
      nodes: in the order in which the key counts them.
      assigns: whether the graph overwrites memory.
      readers: nodes outside the graph that read what it overwrites: they are realised too.
      held: unrealised nodes inside that depend on memory that is overwritten, and are held by somebody.
    """

    __slots__ = ("_places", "assigns", "held", "key", "nodes", "readers", "entries")

    def __init__(self) -> None:
        self.nodes: list[LazyBuffer] = []
        self.entries: list[Label | int] = []
        self.key: tuple[Label | int, ...] = ()
        self.assigns: list[int] = []
        self.readers: list[LazyBuffer] = []
        self.held: set[LazyBuffer] = set()
        self._places: dict[object, int] = {}

    def walk(self, roots: Iterable[LazyBuffer]) -> bool:
        """Adds bases and what they depend on. Returns whether the structure can be remembered."""
        places, nodes, entries = self._places, self.nodes, self.entries
        place, same = places.get, places.setdefault
        for root in roots:
            stack = [root]
            while stack:
                lazy = stack[-1]
                if lazy in places:
                    stack.pop()
                    continue
                ready = len(stack)
                own: list[Label | int] = []
                for src in lazy.srcs:
                    if src.op is _VIEW:
                        src = src.srcs[0]
                    number = place(src)
                    if number is None:
                        if src.srcs:
                            stack.append(src)
                            continue
                        number = places[src] = len(nodes)
                        nodes.append(src)
                        storage = src._storage
                        if storage is None:
                            if src.stale is not None:  # a placeholder of a function that was traced
                                return False
                            entries.append(src.label)  # type: ignore[arg-type]
                        else:  # which memory it is, and of which other memory it is a part
                            entries += (src.label or src.memory_label(), same(storage, number))
                            if storage._root is not None:
                                entries.append(same(storage._root, number))
                    own.append(number)
                if len(stack) > ready:
                    continue
                stack.pop()
                number = places[lazy] = len(nodes)
                if lazy.op in _NOT_REMEMBERED or lazy.stale is not None or number >= LARGEST:
                    return False
                if lazy.op is _ASSIGN:
                    self.assigns.append(number)
                nodes.append(lazy)
                entries.append(lazy.label)  # type: ignore[arg-type]
                entries += own
            entries.append(places[root])
        return True

    def find_hazards(self, bases: Sequence[LazyBuffer]) -> bool:
        """Adds what a graph that assigns depends on besides its nodes. Returns whether it can be remembered."""
        nodes, entries = self.nodes, self.entries
        seen: set[LazyBuffer] = set()
        known: dict[LazyBuffer, object] = {}
        while True:
            ended = [lazy for lazy in hazards.overwritten(nodes, known) if lazy not in seen]
            seen.update(ended)
            more = [reader for lazy in ended for reader in hazards.outside(lazy, self._places, known)]
            if not more:
                break
            entries.append(~len(more))
            self.readers += more
            if not self.walk(more):
                return False
        known.clear()  # references are counted below
        # the serial number of an ASSIGN is its place among the versions of its memory
        self.assigns.sort(key=lambda n: nodes[n].arg)
        entries += self.assigns
        roots = {*bases, *self.readers}
        dirty = hazards.tainted(nodes, seen, roots)
        if dirty:
            extra = hazards.held_from_outside(nodes, 3)  # self.nodes, self._places and `dirty`
            self.held = {lazy for lazy in dirty if lazy in extra}
            entries += [~self._places[lazy] for lazy in dirty if lazy in extra]
        return True


class _Step(NamedTuple):
    """A schedule item without memory: buffers and nodes are positions in lists."""

    ast: LazyOp
    bufs: tuple[int, ...]
    reason: str
    origin: int
    commits: tuple[tuple[int, int], ...]
    fused: int


class Template:
    """A schedule without memory.

    Attributes:
      steps: in execution order.
      new: the memory that they need beside what is there: device, size, dtype, and of which other memory it is a part.
      size: how many nodes the graph has.
    """

    __slots__ = ("__weakref__", "new", "size", "steps")

    def __init__(
        self, steps: tuple[_Step, ...], new: tuple[tuple[str, int, DType, int | None], ...], size: int
    ) -> None:
        self.steps, self.new, self.size = steps, new, size

    def items(self, nodes: Sequence[LazyBuffer]) -> list[ScheduleItem]:
        """The schedule of a graph of this structure with these nodes."""
        new: list[Storage] = []

        def memory(n: int) -> Storage:
            storage = new[~n] if n < 0 else nodes[n].storage
            assert storage is not None
            return storage

        for device, size, dtype, root in self.new:
            new.append(Storage(device, size, dtype, None, None if root is None else memory(root).root))
        items = []
        for step in self.steps:
            bufs = tuple([memory(n) for n in step.bufs])
            commits = tuple([(nodes[n], bufs[slot]) for n, slot in step.commits])
            origin = Origin(nodes[step.origin].origin)
            items.append(ScheduleItem(step.ast, bufs, step.reason, origin, commits, step.fused))
        return items


_templates: dict[tuple[Label | int, ...], Template] = {}
_limits: dict[str, Limits] = {}
"""The limits under which these schedules were made."""


def structure(bases: Sequence[LazyBuffer], private: bool = False) -> Structure | None:
    """A graph's structure, and whether it is private; None if it is not to be remembered."""
    found = Structure()
    if not found.walk(bases) or (found.assigns and not found.find_hazards(bases)):
        return None
    found.entries += (STRICT.value, private)
    found.key = tuple(found.entries)
    return found


def recall(found: Structure) -> Template | None:
    """The schedule of graphs of this structure; None if it is not remembered."""
    if _limits != LIMITS:
        _templates.clear()
        _limits.clear()
        _limits.update(LIMITS)
    return _templates.get(found.key)


def remember(found: Structure, items: Sequence[ScheduleItem]) -> None:
    """Keeps a schedule that was just made for a graph of this structure."""
    there: dict[Storage, int] = {}
    place: dict[LazyBuffer, int] = {}
    for n, lazy in enumerate(found.nodes):
        place[lazy] = n
        if lazy.storage is not None:
            there.setdefault(lazy.storage, n)
    new: list[tuple[str, int, DType, int | None]] = []
    steps = []
    for item in items:
        for storage in item.bufs:
            if storage in there:
                continue
            root = None
            if storage.root is not storage:
                if storage.root not in there:
                    return  # a part of memory that only other parts of it name
                root = there[storage.root]
            there[storage] = ~len(new)
            new.append((storage.device, storage.size, storage.dtype, root))
        commits = tuple((place[lazy], item.bufs.index(storage)) for lazy, storage in item.commits)
        bufs = tuple(there[storage] for storage in item.bufs)
        origin = commits[0][0] if commits else len(found.nodes) - 1
        steps.append(_Step(item.ast, bufs, item.reason, origin, commits, item.fused))
    size = len(found.nodes)
    total = size + sum(template.size for template in _templates.values())
    while _templates and (len(_templates) >= CAPACITY or total > CAPACITY_NODES):
        total -= _templates.pop(next(iter(_templates))).size
    _templates[found.key] = Template(tuple(steps), tuple(new), size)
