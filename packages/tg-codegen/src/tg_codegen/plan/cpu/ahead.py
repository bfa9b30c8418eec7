"""What to fetch ahead: rows that a kernel walks several times.

While a row is walked for the second time, it comes from a cache, and memory is idle: hardware prefetchers fetch what
follows in a walk, and do not know that a walk over the next row comes after it. The second walk says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tg_shape import Variable, coefficient

from ...machine.target import Target
from ...nest.nest import Nest, Node
from ...nest.spec import Kind, NodeOp

LEAST_ROW_LINES = 4
"""Cache lines of a row, at the least, of which it pays to fetch the next."""
LEAST_ROWS = 4
"""Rows, at the least, of which it pays to fetch some ahead."""


@dataclass(frozen=True, slots=True)
class Walk:
    """One load of one walk over a row.

    Attributes:
      part: the number of the nest.
      level: of the reduction that walks; infinite for an output's loop.
      load: the load.
    """

    part: int
    level: float
    load: Node


def row_walks(parts: Sequence[Nest], row: Variable) -> Iterator[Walk]:
    """The loads that walk along rows, in the order of the walks."""
    for number, nest in enumerate(parts):
        reductions = sorted((n for n in nest.nodes() if n.op is NodeOp.REDUCE), key=lambda n: n.level)
        reduced = frozenset(v for n in reductions for v in n.arg[1])
        for node in reductions:
            for load in node.toposort():
                if load.op is NodeOp.LOAD and load.free & set(node.arg[1]):
                    yield Walk(number, node.level, load)
        for store in nest.stores:
            for load in store.value.toposort():
                if load.op is NodeOp.LOAD and load.free & set(store.roots) - {row} and not load.free & reduced:
                    yield Walk(number, inf, load)


def by_row(load: Node, row: Variable) -> int:
    """Elements from a load to the same load in the next row; 0 if that differs, or if the load is masked."""
    index, valid = load.arg[1:]
    return 0 if not isinstance(valid, int) else coefficient(index, row) or 0


def fetched_ahead(
    parts: Sequence[Nest], row: Variable, rows: int, together: int, target: Target
) -> list[tuple[int, Node, int]]:
    """What is worth fetching ahead, at most one load of each buffer.

    Args:
      parts: nests that run one after the other for each step of ``row``.
      row: the variable that counts rows.
      rows: how many there are.
      together: rows in a step.
      target: the machine.

    Returns:
      the number of the nest, the load and by how many elements ahead of it.
    """
    found: dict[int, list[Walk]] = {}
    for walk in row_walks(parts, row) if target.cpu.row_ahead_bytes else ():
        if not parts[walk.part].buffers[walk.load.arg[0]].internal:
            found.setdefault(walk.load.arg[0], []).append(walk)
    chosen = []
    for of_slot in found.values():
        steps = {by_row(walk.load, row) for walk in of_slot}
        times = list(dict.fromkeys((walk.part, walk.level) for walk in of_slot))
        if len(steps) != 1 or len(times) < 2:
            continue
        second = next(walk for walk in of_slot if (walk.part, walk.level) == times[1])
        step, itemsize = steps.pop() * together, second.load.dtype.itemsize
        if step * itemsize < LEAST_ROW_LINES * target.line_bytes or step * itemsize > target.resident_bytes:
            continue
        if rows // together < LEAST_ROWS or rows // together * step * itemsize <= target.l2_bytes:
            continue
        if contiguous(parts[second.part], second.load):
            chosen.append((second.part, second.load, step * -(-target.cpu.row_ahead_bytes // (step * itemsize))))
    return chosen


def contiguous(nest: Nest, load: Node) -> bool:
    """Whether the lanes of a load are neighbours in memory."""
    lanes = [a for a in nest.axes if a.kind in (Kind.VECTOR, Kind.LANES) and a.root in load.free]
    return bool(lanes) and all(coefficient(load.arg[1], a.root) == 1 and a.stride == 1 for a in lanes)
