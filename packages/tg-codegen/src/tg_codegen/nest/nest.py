"""The loop nest: a kernel as values over named index variables, with the loops that run through them.

Lowering turns a kernel AST into *nodes*: scalar values at a point of the iteration space. Index variables
(:class:`Root`) are the dimensions of that space; a node knows which ones it depends on. The nodes never change after
lowering. What an optimisation changes is only the list of :class:`Axis`: how each root is cut into loops, in which
order they nest and what becomes of each (a thread, a vector lane, an unrolled copy …), and which nodes are
*staged*, that is, materialised in scratch memory at some loop. Code is emitted from nodes and axes together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from tg_dtype import DType, dtypes
from tg_lazy import ALU, BufferArg, Ops
from tg_shape import Variable, ceildiv, sint, step, toposort

from .spec import EXPRESSIONS, READS, STATED, Kind, NodeOp

GATHERED = Variable("place", 0, 2**62)
"""Stands for the computed index in the address expression of a GATHER, or of a store that updates."""


class Node:
    """A value at a point of the iteration space. Nodes are interned per :class:`NodeTable`.

    Attributes:
      op: an elementwise op or a :class:`NodeOp`.
      free: roots on which the value depends.
      level: nesting depth of reductions beneath and including this node.
    """

    __slots__ = ("arg", "dtype", "free", "level", "op", "src")

    def __init__(
        self, op: Ops | NodeOp, dtype: DType, src: tuple[Node, ...], arg: Any, free: frozenset[Variable], level: int
    ) -> None:
        self.op, self.dtype, self.src, self.arg, self.free, self.level = op, dtype, src, arg, free, level

    def __repr__(self) -> str:
        return f"<Node {self.op.name} {self.dtype.name} over {sorted(v.name for v in self.free)}>"

    @property
    def expressions(self) -> tuple[sint, ...]:
        """The symbolic integers in its argument."""
        return expressions(self.op, self.arg)

    def toposort(self) -> list[Node]:
        """Every node that this one depends on, operands first, itself last."""
        return toposort((self,), _SRC)


_SRC: Callable[[Node], tuple[Node, ...]] = attrgetter("src")


def expressions(op: Ops | NodeOp, arg: Any) -> tuple[sint, ...]:
    """The symbolic integers in a node's argument."""
    if op in READS:
        return (arg[1], arg[2])
    return (arg,) if op in EXPRESSIONS else ()


def with_expressions(op: Ops | NodeOp, arg: Any, to: Callable[[sint], sint]) -> Any:
    """A node's argument with what ``to`` makes of each symbolic integer in it."""
    if op in READS:
        return (arg[0], to(arg[1]), to(arg[2]))
    return to(arg) if op in EXPRESSIONS else arg


class NodeTable:
    """Makes nodes, equal ones once. ``roots`` tells index variables from kernel variables."""

    def __init__(self) -> None:
        self.roots: dict[Variable, Root] = {}
        self._nodes: dict[tuple[object, ...], Node] = {}

    def make(self, op: Ops | NodeOp, dtype: DType, src: tuple[Node, ...] = (), arg: Any = None) -> Node:
        """The node with these parts."""
        key = (op, dtype, src, struct.pack("<d", arg) if isinstance(arg, float) else (type(arg), arg))
        found = self._nodes.get(key)
        if found is None:
            free: frozenset[Variable] = frozenset().union(*(s.free for s in src))
            level = max((s.level for s in src), default=0)
            if op is NodeOp.REDUCE:
                free -= frozenset(arg[1])
                level += 1
            else:
                free = free.union(*map(self._roots_of, expressions(op, arg)))
            found = self._nodes[key] = Node(op, dtype, src, arg, free, level)
        return found

    def _roots_of(self, expr: sint) -> frozenset[Variable]:
        return frozenset() if isinstance(expr, int) else frozenset(v for v in expr.variables() if v in self.roots)


@dataclass(frozen=True, slots=True)
class Root:
    """A dimension of the iteration space.

    Attributes:
      var: the index variable; its ``vmax`` is the greatest extent less one.
      extent: number of values, symbolic where the shape is.
      reduce: whether a REDUCE runs over it (else it indexes outputs).
    """

    var: Variable
    extent: sint
    reduce: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop: it contributes ``stride`` times its counter to its root.

    Attributes:
      name: unique in the kernel; derived from the root's name.
      root: the dimension that it is part of.
      stride: step in the root's values.
      extent: iterations, the last of which may be partial for the axes inside it.
      kind: what becomes of it.
    """

    name: str
    root: Variable
    stride: int
    extent: sint
    kind: Kind

    def step(self, index: sint) -> int:
        """How far apart in memory neighbours along the loop are, in elements; 0 where that differs."""
        return step(index, self.root) * self.stride


@dataclass(frozen=True, slots=True)
class Update:
    """How a store combines its value with what is there, at a computed place, in the order of the iterations.

    Attributes:
      place: the computed place: the store's index has ``GATHERED`` in its stead.
      size: how many places there are; nothing is written unless ``0 <= place < size``.
      op: combines what is there with the value; None to replace it.
      found: index and mask, in the same slot, of where what was there is kept; None if nobody wants it.
      distinct: no two values are for one element.
    """

    place: Node
    size: sint
    op: Ops | None
    found: tuple[sint, sint] | None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """An output: ``value`` goes to element ``index`` of ``slot`` where ``valid``, for all values of ``roots``.

    With an ``update``, it is combined with what is there, and ``index`` depends on a computed place.
    """

    slot: int
    index: sint
    valid: sint
    value: Node
    roots: tuple[Variable, ...]
    update: Update | None = None

    @property
    def operands(self) -> tuple[Node, ...]:
        """The nodes that it asks for."""
        return (self.value,) if self.update is None else (self.value, self.update.place)

    def accesses(self) -> tuple[tuple[sint, sint], ...]:
        """Index and mask of each element that it writes."""
        found = self.update.found if self.update is not None else None
        return ((self.index, self.valid),) if found is None else ((self.index, self.valid), found)

    def over(self, roots: tuple[Variable, ...], nodes: Mapping[Node, Node], at: Callable[[sint], sint]) -> Store:
        """The same store over other dimensions.

        Args:
          roots: the dimensions.
          nodes: what each node has become.
          at: what an index or a mask has become.
        """
        update = self.update
        if update is not None:
            found = None if update.found is None else (at(update.found[0]), at(update.found[1]))
            update = Update(nodes[update.place], update.size, update.op, found, update.distinct)
        return Store(self.slot, at(self.index), at(self.valid), nodes[self.value], roots, update)


class _Written(tuple[Store, ...]):
    """The outputs of a nest, and of all nests that actions on loops make of it: what they ask for is found once."""

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, operands first."""
        return tuple(toposort([node for store in self for node in store.operands], _SRC))


@dataclass(frozen=True, slots=True)
class Stage:
    """A node kept in scratch memory, filled inside the loop ``axis`` (``None``: before all serial loops).

    Scratch is private to a thread, or, ``shared``, one for all items of a work-group, which fill it together.
    """

    node: Node
    axis: str | None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Nest:
    """A kernel between lowering and emission.

    Attributes:
      stores: the outputs.
      buffers: one entry per slot.
      roots: the dimensions, output ones first.
      axes: the loops, outermost first.
      stages: nodes kept in scratch memory.
      streams: the slots that are written past the caches.
      ahead: for loads, by how many elements ahead of each the cache is told what comes.
      indirect_ahead: the loop for which gathers tell the cache what they will read, and by how many iterations ahead.
      partitions: loops that are emitted in parts, one of which needs no masks, and how many iterations of the others
        may be copies of the code.
      rolled: unrolled loops of the outputs that are loops nevertheless where the outputs are written.
    """

    stores: tuple[Store, ...]
    buffers: tuple[BufferArg, ...]
    roots: dict[Variable, Root]
    axes: tuple[Axis, ...]
    stages: tuple[Stage, ...] = ()
    streams: frozenset[int] = frozenset()
    ahead: tuple[tuple[Node, int], ...] = ()
    indirect_ahead: tuple[str, int] | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    rolled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.stores, _Written):
            object.__setattr__(self, "stores", _Written(self.stores))

    def axis(self, name: str) -> Axis:
        """The loop called ``name``.

        Raises:
          KeyError: if there is none; the message lists the loops.
        """
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise KeyError(f"no loop {name!r}; the kernel has {', '.join(a.name for a in self.axes)}")

    def of_root(self, root: Variable) -> list[Axis]:
        """The loops of one dimension, outermost first."""
        return sorted((a for a in self.axes if a.root is root), key=lambda a: -a.stride)

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, operands first."""
        assert isinstance(self.stores, _Written)
        return self.stores.nodes

    def is_known_later(self, index: Node) -> bool:
        """Whether an index can be computed for a later iteration: no part of it is kept in scratch, or a loop's result.

        Scratch holds what the present iterations of its loop read.
        """
        kept = {stage.node for stage in self.stages}
        return not any(n.op is NodeOp.REDUCE or n in kept for n in toposort([index], _SRC))

    @property
    def untouched(self) -> bool:
        """Whether each dimension is one serial loop still, and nothing else is decided."""
        serial = all(a.kind in STATED and a.stride == 1 for a in self.axes)
        added = self.stages or self.streams or self.ahead or self.indirect_ahead or self.partitions or self.rolled
        return serial and len(self.axes) == len({a.root for a in self.axes}) and not added

    def split(self, axis: Axis, factor: int, kind: Kind) -> Nest:
        """The nest with ``axis`` cut into a loop of its name and an inner one of ``factor`` iterations and ``kind``."""
        parts = sum(a.root is axis.root for a in self.axes)
        outer = replace(axis, stride=axis.stride * factor, extent=ceildiv(axis.extent, factor))
        inner = Axis(f"{axis.root.name}.{parts}", axis.root, axis.stride, factor, kind)
        position = self.axes.index(axis)
        return replace(self, axes=(*self.axes[:position], outer, inner, *self.axes[position + 1 :]))


def is_float_reduce(node: Node) -> bool:
    """Whether the node is a reduction whose result depends on the order of its operands by rounding."""
    return node.op is NodeOp.REDUCE and dtypes.is_float(node.dtype) and node.arg[0] is not Ops.MAX


def is_elementwise(node: Node) -> bool:
    """Whether the node is elementwise work."""
    return node.op in ALU
