"""Lowering: a kernel AST over shapes becomes a loop nest over index variables.

Every AST node is visited with the tuple of index expressions at which its value is wanted; movement has no code of
its own, it is substitution of indices. A reduction opens fresh roots; two reductions of one nesting level and equal
extents share them, so that one loop can serve both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_dtype import DType, dtypes
from tg_lazy import ALU, LazyOp, Ops
from tg_lazy import ast as ast_module
from tg_shape import Variable, prod, sint, toposort, upper

from .dimensions import join_dimensions
from .gathers import with_conditions
from .nest import GATHERED, Axis, Nest, Node, NodeTable, Root, Store, Update
from .spec import Kind, NodeOp

Index = tuple[sint, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a value is wanted: at ``index``, and whether it is wanted there at all (0 or 1, symbolic).

    What is not wanted may lie outside of a buffer: loads are masked with ``wanted``.
    """

    index: Index
    wanted: sint = 1


Demand = tuple[LazyOp, Point]


class LowerError(ValueError):
    """A kernel AST has no loop nest; the message names the node."""


class Lowering:
    """One kernel's lowering: the table of nodes, and what was visited."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.memo: dict[Demand, Node] = {}
        self.outputs: dict[tuple[int, sint], Variable] = {}
        self.reductions: dict[tuple[object, ...], tuple[Variable, ...]] = {}

    def root(self, name: str, extent: sint, reduce: bool) -> Variable:
        """A new dimension."""
        var = Variable(name, 0, extent - 1 if upper(extent) > 1 else 0)
        self.table.roots[var] = Root(var, extent, reduce)
        return var

    def output_index(self, shape: Sequence[sint]) -> Index:
        """Index variables over an output's shape; outputs share the dimensions in which their shapes agree."""
        index: list[sint] = []
        for position, dim in enumerate(shape):
            if isinstance(dim, int) and dim == 1:
                index.append(0)
                continue
            key = (position, dim)
            if key not in self.outputs:
                self.outputs[key] = self.root(f"i{len(self.outputs)}", dim, reduce=False)
            index.append(self.outputs[key])
        return tuple(index)

    def reduction_index(self, dims: Sequence[sint], level: int) -> tuple[Variable, ...]:
        """Index variables for the reduced dimensions of a reduction at nesting ``level``."""
        key = (level, *dims)
        if key not in self.reductions:
            start = sum(len(v) for v in self.reductions.values())
            self.reductions[key] = tuple(self.root(f"r{start + n}", dim, reduce=True) for n, dim in enumerate(dims))
        return self.reductions[key]

    def value(self, ast: LazyOp, index: Index) -> Node:
        """The node for ``ast`` at ``index``."""
        goal: Demand = (ast, Point(index))
        levels = reduce_levels(ast)

        def unmet(demand: Demand) -> list[Demand]:
            return [other for other in self.operands(*demand, levels) if other not in self.memo]

        for demand in toposort([goal], unmet):
            if demand not in self.memo:
                operands = tuple(self.memo[other] for other in self.operands(*demand, levels))
                self.memo[demand] = self.build(*demand, operands, levels)
        return self.memo[goal]

    def operands(self, node: LazyOp, point: Point, levels: dict[LazyOp, int]) -> list[Demand]:
        """The operands of ``node`` with the places at which it wants them."""
        if node.op is Ops.VIEW:
            flat, valid = node.arg.index(point.index)
            if isinstance(valid, int) and not valid:
                return []
            return [(node.src[0], Point(unflatten(flat, node.src[0].shape), point.wanted & valid))]
        if node.op is Ops.REDUCE:
            axes = [a for a in node.arg[1] if node.src[0].shape[a] != 1]
            inner = self.reduction_index([node.src[0].shape[a] for a in axes], levels[node])
            full = list(point.index)
            for axis, var in zip(axes, inner, strict=True):
                full[axis] = var
            return [(node.src[0], Point(tuple(full), point.wanted))]
        return [(child, point) for child in node.src]

    def build(self, node: LazyOp, point: Point, src: tuple[Node, ...], levels: dict[LazyOp, int]) -> Node:
        """The node itself, its operands being there."""
        make = self.table.make
        op = node.op
        if op in ALU:
            return make(op, node.dtype, src)
        if op is Ops.CONST:
            return make(NodeOp.CONST, node.dtype, (), node.arg)
        if op is Ops.SYM:
            return make(NodeOp.INDEX, node.dtype, (), node.arg)
        if op is Ops.IOTA:
            flat, valid = node.arg.index(point.index)
            return self.select(make(NodeOp.INDEX, node.dtype, (), flat), valid)
        if op is Ops.LOAD:
            slot, st = node.arg
            flat, valid = st.index(point.index)
            valid = valid & point.wanted
            if isinstance(valid, int) and not valid:
                return self.zero(node.dtype)
            return make(NodeOp.LOAD, node.dtype, (), (slot, flat, valid))
        if op is Ops.GATHER:
            slot, st = node.arg
            flat, valid = st.index((GATHERED,))
            if not (isinstance(valid, int) and valid):
                raise LowerError(f"{node!r}: gather through a masked view")
            size = st.shape[0]
            return make(NodeOp.GATHER, node.dtype, with_conditions(src[0], size, self.table), (slot, flat, size))
        if op is Ops.VIEW:
            _, valid = node.arg.index(point.index)
            return self.select(src[0] if src else self.zero(node.dtype), valid)
        if op is Ops.REDUCE:
            reducer, axes = node.arg
            dims = [node.src[0].shape[a] for a in axes if node.src[0].shape[a] != 1]
            if not dims:
                return src[0]
            return make(NodeOp.REDUCE, node.dtype, src, (reducer, self.reduction_index(dims, levels[node])))
        raise LowerError(f"{node!r} does not belong in a kernel")

    def zero(self, dtype: DType) -> Node:
        """The constant 0."""
        return self.table.make(NodeOp.CONST, dtype, (), dtypes.as_const(0, dtype))

    def select(self, x: Node, valid: sint) -> Node:
        """``x`` where ``valid``, else 0."""
        if isinstance(valid, int):
            return x if valid else self.zero(x.dtype)
        return self.table.make(NodeOp.SELECT, x.dtype, (x,), valid)


def reduce_levels(ast: LazyOp) -> dict[LazyOp, int]:
    """The nesting level of every REDUCE beneath ``ast``: one more than the deepest beneath it."""
    depth: dict[LazyOp, int] = {}
    for node in ast.toposort():
        depth[node] = max((depth[child] for child in node.src), default=0) + (node.op is Ops.REDUCE)
    return depth


def unflatten(flat: sint, shape: Sequence[sint]) -> Index:
    """The row-major multi-index of ``flat`` in ``shape``."""
    index: list[sint] = []
    for position, dim in enumerate(shape):
        if isinstance(dim, int) and dim == 1:
            index.append(0)
            continue
        rest = flat // prod(shape[position + 1 :])
        index.append(rest % dim if any(d != 1 for d in shape[:position]) else rest)
    return tuple(index)


def lower(ast: LazyOp) -> Nest:
    """The loop nest of a kernel AST, every loop serial, its dimensions joined as all accesses allow.

    Raises:
      InvalidAST: if the AST breaks a rule of :mod:`tg_lazy.ast`.
      LowerError: if a node has no place in a kernel.
    """
    ast_module.verify(ast)
    lowering = Lowering()
    stores = []
    for node in ast.src:
        at = lowering.output_index(node.shape)
        over = tuple(v for v in at if isinstance(v, Variable))
        stores.append((update_of if node.op is Ops.UPDATE else store_of)(lowering, node, at, over))
    roots = sorted(lowering.table.roots.values(), key=lambda root: root.reduce)
    axes = tuple(
        Axis(r.var.name, r.var, 1, r.extent, Kind.REDUCE if r.reduce else Kind.LOOP) for r in roots
    )
    nest = Nest(tuple(stores), ast.arg, {r.var: r for r in roots}, axes)
    used = {v for node in nest.nodes() for v in node.free} | {v for s in stores for v in s.roots}
    used |= {v for node in nest.nodes() if node.op is NodeOp.REDUCE for v in node.arg[1]}
    nest = Nest(nest.stores, nest.buffers, {v: r for v, r in nest.roots.items() if v in used},
                tuple(a for a in axes if a.root in used))
    return join_dimensions(order_outputs(nest))


def store_of(lowering: Lowering, node: LazyOp, at: Index, roots: tuple[Variable, ...]) -> Store:
    """A STORE over the dimensions ``at``, of which ``roots`` are those with more than one value."""
    slot, st = node.arg
    index, valid = st.index(at)
    return Store(slot, index, valid, lowering.value(node.src[0], at), roots)


def update_of(lowering: Lowering, node: LazyOp, at: Index, roots: tuple[Variable, ...]) -> Store:
    """An UPDATE over the dimensions ``at``, of which ``roots`` are those with more than one value."""
    slot, where, op, found, distinct = node.arg
    value, place = (lowering.value(operand, at) for operand in node.src)
    index, valid = where.index((*at, GATHERED))
    kept = None if found is None else found.index(at)
    return Store(slot, index, valid, value, roots, Update(place, where.shape[-1], op, kept, distinct))


def order_outputs(nest: Nest) -> Nest:
    """Puts the output loops that reductions depend on outside of those that they do not.

    In a softmax, the rows come first: the maximum and the sum of a row are computed once, before the loop over its
    columns.
    """
    needed: set[Variable] = set()
    for node in nest.nodes():
        if node.op is NodeOp.REDUCE:
            needed |= node.free
    outputs = [a for a in nest.axes if a.kind is Kind.LOOP]
    outputs.sort(key=lambda a: bool(needed) and a.root not in needed)
    rest = [a for a in nest.axes if a.kind is not Kind.LOOP]
    return Nest(nest.stores, nest.buffers, nest.roots, (*outputs, *rest))
