"""Computed indices as sums of symbolic integers and of nodes that conditions hold within bounds.

A gather's conditions may tell all that there is to know of its index: ``0 <= i < n`` of one into a row, whose number is
a loop's counter. Then no element has to be asked whether it is inside, and what all lanes have in common, as the row,
is no part of what differs from lane to lane: it is added to the address, and the lanes' parts serve every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import bounds_of, sint

from ..nest.nest import Node
from ..nest.spec import NodeOp


@dataclass(frozen=True, slots=True)
class Limits:
    """What conditions tell of a node: its least and greatest value where those of these numbers hold."""

    low: int
    high: int
    told_by: frozenset[int]


@dataclass(frozen=True, slots=True)
class PlaceSum:
    """``number`` and the sum of nodes, each times a factor."""

    number: sint
    terms: tuple[tuple[Node, int], ...] = ()

    def times(self, factor: int) -> PlaceSum:
        """The sum times a number."""
        return PlaceSum(self.number * factor, tuple((node, by * factor) for node, by in self.terms))

    def plus(self, other: PlaceSum) -> PlaceSum:
        """Both sums together."""
        return PlaceSum(self.number + other.number, self.terms + other.terms)

    def bounds(self, limits: Mapping[Node, Limits]) -> tuple[int, int]:
        """Its least and greatest value where the conditions hold."""
        low, high = bounds_of(self.number)
        for node, by in self.terms:
            ends = limits[node].low * by, limits[node].high * by
            low, high = low + min(ends), high + max(ends)
        return low, high


def limits_of(conditions: Sequence[Node]) -> dict[Node, Limits]:
    """The nodes that conditions, all of which hold, keep between two numbers."""
    lows: dict[Node, int] = {}
    highs: dict[Node, int] = {}
    told: dict[Node, set[int]] = {}
    for number, condition in enumerate(conditions):
        for node, low, high in compared(condition):
            if low is not None:
                lows[node] = max(low, lows.get(node, low))
            if high is not None:
                highs[node] = min(high, highs.get(node, high))
            told.setdefault(node, set()).add(number)
            if dtypes.is_unsigned(node.dtype):
                lows.setdefault(node, 0)
    return {node: Limits(low, highs[node], frozenset(told[node]))
            for node, low in lows.items() if node in highs and low <= highs[node]}


def compared(condition: Node) -> Iterator[tuple[Node, int | None, int | None]]:
    """The comparisons of integers with numbers that hold where a condition does: least and greatest values of nodes."""
    left = [condition]
    while left:
        node = left.pop()
        if node.op is Ops.AND:
            left.extend(node.src)
            continue
        holds = node.op is not Ops.NOT
        test = node if holds else node.src[0]
        if test.op is not Ops.CMPLT or not dtypes.is_int(test.src[0].dtype):
            continue
        a, b = test.src
        if b.op is NodeOp.CONST:
            yield (a, None, int(b.arg) - 1) if holds else (a, int(b.arg), None)
        elif a.op is NodeOp.CONST:
            yield (b, int(a.arg) + 1, None) if holds else (b, None, int(a.arg))


def place_sum(index: Node, limits: Mapping[Node, Limits]) -> PlaceSum | None:
    """An index as a sum, of which no part wraps around where the conditions hold; None if it is something else."""
    sums: dict[Node, PlaceSum | None] = {}
    for node in index.toposort():
        found = PlaceSum(0, ((node, 1),)) if node in limits else _sum(node, [sums[s] for s in node.src])
        sums[node] = found if found is not None and _holds(node.dtype, found.bounds(limits)) else None
    return sums[index]


def _sum(node: Node, src: list[PlaceSum | None]) -> PlaceSum | None:
    if not dtypes.is_int(node.dtype):
        return None
    if node.op in (NodeOp.INDEX, NodeOp.CONST):
        return PlaceSum(node.arg)
    if not src or src[0] is None:
        return None
    if node.op is Ops.CAST:
        return src[0]
    if node.op not in (Ops.ADD, Ops.SUB, Ops.MUL) or src[1] is None:
        return None
    a, b = src[0], src[1]
    if node.op is not Ops.MUL:
        return a.plus(b if node.op is Ops.ADD else b.times(-1))
    if isinstance(b.number, int) and not b.terms:
        return a.times(b.number)
    return b.times(a.number) if isinstance(a.number, int) and not a.terms else None


def _holds(dtype: DType, bounds: tuple[int, int]) -> bool:
    return dtypes.min(dtype) <= bounds[0] and bounds[1] <= dtypes.max(dtype)
