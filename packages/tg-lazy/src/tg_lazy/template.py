"""Schedules remembered by structure: the same small graph over other memory needs no second thought.

A graph's structure is its nodes in topological order, each with what it computes, on which earlier nodes, through which
views; for memory, which of it is the same. Graphs that assign are left out: what they must do depends on who still
reads the memory. So are symbolic ones, whose structure holds the values of the moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tg_dtype import DType

from .ast import LazyOp
from .cost import LIMITS
from .item import ScheduleItem
from .lazybuffer import LazyBuffer
from .ops import Ops
from .origin import Origin
from .storage import Storage

LARGEST = 256
"""Nodes of the largest graph that is remembered."""
CAPACITY = 512
"""How many schedules are remembered."""

_EXCLUDED = frozenset({Ops.ASSIGN, Ops.BUFFER_VIEW, Ops.CUSTOM})
Key = tuple[object, ...]


class _Step(NamedTuple):
    """A schedule item without memory: buffers and nodes are positions in lists."""

    ast: LazyOp
    bufs: tuple[int, ...]
    reason: str
    origin: int
    commits: tuple[tuple[int, int], ...]
    fused: int


class _Template(NamedTuple):
    """Steps, and the memory that they need beside what is there: device, size, dtype."""

    steps: tuple[_Step, ...]
    new: tuple[tuple[str, int, DType], ...]


_templates: dict[Key, _Template] = {}


def structure(bases: Sequence[LazyBuffer]) -> tuple[Key, list[LazyBuffer]] | None:
    """A graph's structure, and its nodes in the order in which the structure counts them; None if it is left out."""
    place: dict[object, int] = {}
    nodes: list[LazyBuffer] = []
    key: list[object] = []
    for base in bases:
        stack = [base]
        while stack:
            lazy = stack[-1]
            if lazy in place:
                stack.pop()
                continue
            ready = len(stack)
            row: list[object] = [lazy.op, lazy.device, lazy.dtype, lazy.st]
            for src in lazy.srcs:
                if src.op is Ops.VIEW:
                    row.append(src.st)
                    src = src.srcs[0]
                number = place.get(src)
                if number is None:
                    stack.append(src)
                row.append(number)
            if len(stack) > ready:
                stack[ready:] = reversed(stack[ready:])
                continue
            stack.pop()
            if lazy.op in _EXCLUDED or lazy.stale is not None or len(nodes) >= LARGEST:
                return None
            if lazy.op is Ops.BUFFER:
                storage = lazy.storage
                assert storage is not None
                row += (storage.size, place.setdefault(storage, len(nodes)))
            else:
                row.append(lazy.arg_key)
            place[lazy] = len(nodes)
            nodes.append(lazy)
            key.append(tuple(row))
        key.append(place[base])
    if LIMITS:
        key.append(tuple(LIMITS.items()))
    return tuple(key), nodes


def recall(key: Key, nodes: list[LazyBuffer]) -> list[ScheduleItem] | None:
    """The schedule of a graph of this structure, over these nodes; None if it is not remembered."""
    template = _templates.get(key)
    if template is None:
        return None
    new = [Storage(device, size, dtype) for device, size, dtype in template.new]
    items = []
    for step in template.steps:
        bufs = tuple([new[~n] if n < 0 else nodes[n].storage for n in step.bufs])
        commits = tuple([(nodes[n], bufs[slot]) for n, slot in step.commits])
        origin = Origin(nodes[step.origin].origin)
        items.append(ScheduleItem(step.ast, bufs, step.reason, origin, commits, step.fused))  # type: ignore[arg-type]
    return items


def remember(key: Key, nodes: list[LazyBuffer], items: list[ScheduleItem]) -> None:
    """Keeps a schedule that was just made for a graph of this structure."""
    there: dict[Storage, int] = {}
    for n, lazy in enumerate(nodes):
        if lazy.storage is not None:
            there.setdefault(lazy.storage, n)
    place = {lazy: n for n, lazy in enumerate(nodes)}
    new: list[tuple[str, int, DType]] = []
    steps = []
    for item in items:
        for storage in item.bufs:
            if storage not in there:
                there[storage] = ~len(new)
                new.append((storage.device, storage.size, storage.dtype))
        commits = tuple((place[lazy], item.bufs.index(storage)) for lazy, storage in item.commits)
        bufs = tuple(there[storage] for storage in item.bufs)
        origin = commits[0][0] if commits else len(nodes) - 1
        steps.append(_Step(item.ast, bufs, item.reason, origin, commits, item.fused))
    while len(_templates) >= CAPACITY:
        del _templates[next(iter(_templates))]
    _templates[key] = _Template(tuple(steps), tuple(new))
