"""Reach: how far the loops of a kernel's parts have to go along the rows of a block.

A value that is chosen by comparing counters is a constant on one side of the comparison: scores behind the diagonal of
causal attention are -infinity, and their exponentials 0. Where that constant is the identity of a reduction, its loop
need not go on to where all rows of a block have it. What no loop reads of an internal buffer, none has to write. So the
bounds of the loops follow from the comparisons: forward, what is known of an internal buffer; and backward, what is
wanted of it.

That 0 times infinity would be NaN is not kept, as in :mod:`tg_codegen.nest.trim`: what is masked adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tg_dtype import ConstType, dtypes
from tg_lazy import Ops, identity
from tg_shape import (
    Expr,
    Variable,
    bounds_of,
    ceildiv,
    coefficient,
    linear_terms,
    sint,
    smax,
    smin,
    substitute,
    toposort,
)

from .nest import Nest, Node
from .spec import STATED, NodeOp
from .trim import conditions

Conditions = frozenset[Expr]


@dataclass(frozen=True, slots=True)
class Outside:
    """What a value is unless all of some conditions hold: a constant."""

    constant: ConstType
    unless: Conditions

    def at(self, places: Mapping[Expr, sint]) -> Outside:
        """The same with other expressions in place of variables."""
        found = (substitute(condition, places) for condition in self.unless)
        return Outside(self.constant, frozenset(c for c in found if isinstance(c, Expr)))


def integer_of(node: Node) -> sint | None:
    """The integer that a node is, in terms of counters; None where it is something else, or might wrap."""
    if node.op is NodeOp.INDEX:
        found: sint | None = node.arg
    elif node.op is NodeOp.CONST:
        found = node.arg if dtypes.is_int(node.dtype) else None
    elif node.op is Ops.CAST:
        found = integer_of(node.src[0]) if dtypes.is_int(node.dtype) else None
    elif node.op in (Ops.ADD, Ops.SUB, Ops.MUL):
        left, right = (integer_of(s) for s in node.src)
        if left is None or right is None:
            return None
        found = left + right if node.op is Ops.ADD else left - right if node.op is Ops.SUB else left * right
    else:
        return None
    if found is None or not dtypes.is_int(node.dtype):
        return None
    low, high = bounds_of(found)
    return found if dtypes.min(node.dtype) <= low and high <= dtypes.max(node.dtype) else None


def holding(node: Node, truth: bool) -> Conditions:
    """Conditions that hold wherever a comparison of counters, or several of them, is ``truth``."""
    if node.op is Ops.NOT:
        return holding(node.src[0], not truth)
    if node.op is (Ops.AND if truth else Ops.OR):
        return holding(node.src[0], truth) | holding(node.src[1], truth)
    if node.op is not Ops.CMPLT:
        return frozenset()
    left, right = (integer_of(s) for s in node.src)
    if left is None or right is None:
        return frozenset()
    less = left - right if truth else right - left - 1
    found = less.lt(0) if isinstance(less, Expr) else 1
    return frozenset(conditions(found))


class Knowledge:
    """What is known of values in one part of a kernel.

    Args:
      part: the part.
      buffers: of internal slots, the part that fills each and what is known of the value that it stores.
    """

    def __init__(self, part: Nest, buffers: Mapping[int, tuple[Nest, Outside]]) -> None:
        self.part, self.buffers = part, buffers
        self.found: dict[Node, Outside | None] = {}

    def outside(self, value: Node) -> Outside | None:
        """What is known of a value; None where nothing is."""
        for node in toposort((value,), lambda node: [s for s in node.src if s not in self.found]):
            self.found[node] = self.of(node)
        return self.found[value]

    def of(self, node: Node) -> Outside | None:
        """What is known of a node whose operands have been looked at."""
        if node.op is Ops.WHERE:
            return self.chosen(node)
        if node.op is NodeOp.SELECT:
            return self.also(node, frozenset(conditions(node.arg)))
        if node.op is NodeOp.LOAD and node.arg[0] not in self.buffers:
            valid = frozenset(conditions(node.arg[2]))
            return Outside(dtypes.as_const(0, node.dtype), valid) if valid else None
        if node.op is NodeOp.LOAD:
            writer, known = self.buffers[node.arg[0]]
            places = places_of(writer, self.part, node.arg[1])
            return None if places is None or node.arg[2] != 1 else known.at(places)
        if node.op is Ops.CAST:
            return self.converted(node)
        if node.op is Ops.MUL:
            zeros = [found for found in map(self.found.get, node.src) if found is not None and found.constant == 0]
            if zeros:
                return Outside(dtypes.as_const(0, node.dtype), frozenset().union(*(z.unless for z in zeros)))
        return None

    def chosen(self, node: Node) -> Outside | None:
        """What is known of a choice between a value and a constant."""
        condition, *choices = node.src
        for value, truth in zip(choices, (True, False), strict=True):
            other = choices[truth]
            if other.op is NodeOp.CONST and (found := holding(condition, truth)):
                inner = self.found[value]
                same = inner is not None and inner.constant == other.arg
                return Outside(other.arg, found | inner.unless if inner is not None and same else found)
        return None

    def also(self, node: Node, found: Conditions) -> Outside | None:
        """What is known of a value that is 0 unless ``found``."""
        inner = self.found[node.src[0]]
        zero = inner is not None and inner.constant == 0
        known = found | inner.unless if inner is not None and zero else found
        return Outside(dtypes.as_const(0, node.dtype), known) if known else None

    def converted(self, node: Node) -> Outside | None:
        """What is known of a value in another dtype: 0 stays 0, and an infinity of IEEE 754 infinite."""
        known = self.found[node.src[0]]
        if known is None:
            return None
        wide = all(d in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
                   for d in (node.dtype, node.src[0].dtype))
        if known.constant == 0 or (wide and known.constant in (float("inf"), float("-inf"))):
            return Outside(dtypes.as_const(known.constant, node.dtype), known.unless)
        return None


def places_of(writer: Nest, reader: Nest, index: sint) -> dict[Expr, sint] | None:
    """Which values of a store's dimensions an index of its buffer stands for; None where that is not plain.

    Plain is an index that has, for each dimension of the store, one variable that steps as it does, and no farther than
    it does: windows that overlap go on where the next one begins.

    Args:
      writer: the part whose first store it is.
      reader: the part that has the index.
      index: of an element of the buffer.
    """
    store = writer.stores[0]
    mine, constant = linear_terms(store.index)
    theirs, other = linear_terms(index)
    steps = {step: var for var, step in theirs}
    if constant != other or len(steps) != len(theirs) or len({step for _, step in mine}) != len(mine):
        return None
    if {step for _, step in mine} != set(steps) or {var for var, _ in mine} != set(store.roots):
        return None
    for var, step in mine:
        assert isinstance(var, Variable)
        place = steps[step]
        root = reader.roots.get(place) if isinstance(place, Variable) else None
        if root is None or bounds_of(writer.roots[var].extent - root.extent)[0] < 0:
            return None
    return {var: steps[step] for var, step in mine}


def reaches(parts: Sequence[Nest], step: int) -> list[dict[Variable, sint]]:
    """For each part of a kernel the dimensions that are not walked to their end, and how far they are.

    A bound may depend on the counters of the loops around the parts, and on the kernel's variables. A dimension whose
    outermost loop is not a serial one is walked to its end.

    Args:
      parts: of a kernel that run one after the other.
      step: bounds are multiples of it, or the dimension's end.
    """
    return Reach(parts, step).bounds


class Reach:
    """The bounds of all dimensions in all parts of a kernel that run one after the other.

    Attributes:
      bounds: for each part the dimensions that are not walked to their end, and how far they are.
    """

    def __init__(self, parts: Sequence[Nest], step: int) -> None:
        self.parts, self.step = parts, step
        self.internal = {slot for part in parts for slot, buffer in enumerate(part.buffers) if buffer.internal}
        writers = [store.slot for part in parts for store in part.stores]
        self.once = {slot for slot in self.internal if writers.count(slot) == 1}
        known: dict[int, tuple[Nest, Outside]] = {}
        self.knowledge: list[Knowledge] = []
        for part in parts:
            self.knowledge.append(Knowledge(part, dict(known)))
            store = part.stores[0]
            if store.slot in self.once and store.valid == 1 and store.update is None:
                found = self.knowledge[-1].outside(store.value)
                if found is not None:
                    known[store.slot] = part, found
        self.bounds: list[dict[Variable, sint]] = [{} for _ in parts]
        for number in reversed(range(len(parts))):
            self.bounds[number] = self.reduced(number) | self.written(number)

    def reduced(self, number: int) -> dict[Variable, sint]:
        """How far the reductions of a part go along each of their dimensions."""
        part = self.parts[number]
        found: dict[Variable, list[sint]] = {}
        for node in part.nodes():
            if node.op is NodeOp.REDUCE:
                known = self.knowledge[number].outside(node.src[0])
                neutral = known is not None and known.constant == identity(node.arg[0], node.dtype)
                unless = known.unless if known is not None and neutral else frozenset()
                for root in node.arg[1]:
                    found.setdefault(root, []).append(end_of(part, root, unless, self.step))
        return shorter(part, found)

    def written(self, number: int) -> dict[Variable, sint]:
        """How far a part's store to an internal buffer goes: to where later parts read it."""
        part = self.parts[number]
        store = part.stores[0]
        if store.slot not in self.once or store.update is not None:
            return {}
        ends: dict[Variable, list[sint]] = {root: [] for root in store.roots}
        for other, bounds in zip(self.parts, self.bounds, strict=True):
            for node in other.nodes():
                if node.op in (NodeOp.LOAD, NodeOp.GATHER) and node.arg[0] == store.slot:
                    places = places_of(part, other, node.arg[1]) if node.op is NodeOp.LOAD else None
                    if places is None:
                        return {}
                    for root, place in places.items():
                        assert isinstance(root, Variable) and isinstance(place, Variable)
                        ends[root].append(bounds.get(place, other.roots[place].extent))
        return shorter(part, ends)


def shorter(part: Nest, ends: Mapping[Variable, Sequence[sint]]) -> dict[Variable, sint]:
    """The greatest of a dimension's ends, where that is not its extent and the dimension's loop can end there."""
    serial = (root for root, found in ends.items() if found and part.of_root(root)[0].kind in STATED)
    return {root: end for root in serial if (end := smax(*ends[root])) != part.roots[root].extent}


def end_of(part: Nest, root: Variable, unless: Conditions, step: int) -> sint:
    """Up to where conditions may hold along a dimension, whatever the part's other dimensions are, in whole steps."""
    end = part.roots[root].extent
    for condition in sorted(unless, key=Expr.render):
        left, room = condition.args if condition.op == "lt" else (0, 0)
        if not isinstance(left, Expr) or not isinstance(room, int):
            continue
        by = coefficient(left, root)
        if not by or by < 0:
            continue
        rest = least(part, left - root * by)
        if rest is not None:
            end = smin(end, smax(ceildiv(ceildiv(room - rest, by), step), 1) * step)
    return end


def least(part: Nest, value: sint) -> sint | None:
    """The least that a value is over all dimensions of a part; None where it is not linear in them."""
    terms, least = linear_terms(value)
    found: sint = least
    for atom, by in terms:
        if atom in part.roots:
            assert isinstance(atom, Variable)
            low, high = 0, part.roots[atom].extent - 1
            found = found + by * (low if by > 0 else high)
        elif atom.op == "var" or not atom.variables() & part.roots.keys():
            found = found + by * atom
        else:
            return None
    return found
